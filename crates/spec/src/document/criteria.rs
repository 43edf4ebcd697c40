//! What must hold of an app beyond Argo CD's verdict, as the file says it.

use schemars::JsonSchema;
use tiphys_model::Expression;

use crate::decode::{Decode, Fields};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::schema;
use crate::yaml::Node;

pub(crate) const STATUS_CODES: (i64, i64) = (100, 599);

/// Exactly one of `resource`, `tcp`, `http`, `postgres` and `redis`.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Criterion", rename_all = "camelCase")]
pub(crate) enum CriterionDocument {
    Resource(ResourceDocument),
    /// A service accepts connections.
    Tcp(TcpDocument),
    Http(HttpDocument),
    /// A service is a PostgreSQL that lets clients log in.
    Postgres(PostgresDocument),
    /// A service is a Redis that answers.
    Redis(RedisDocument),
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "ResourceCriterion", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["apiVersion", "kind", "name", "expression"]))]
pub(crate) struct ResourceDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) api_version: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) kind: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) name: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) namespace: Option<String>,
    /// CEL over `obj`; a missing field means: not yet.
    #[schemars(schema_with = "schema::text")]
    pub(crate) expression: Expression,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "TcpCriterion", deny_unknown_fields)]
#[schemars(extend("required" = ["service", "port"]))]
pub(crate) struct TcpDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) service: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) namespace: Option<String>,
    #[schemars(schema_with = "schema::port")]
    pub(crate) port: u16,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "HttpCriterion", deny_unknown_fields)]
#[schemars(extend("required" = ["service", "port", "path"]))]
pub(crate) struct HttpDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) service: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) namespace: Option<String>,
    #[schemars(schema_with = "schema::port")]
    pub(crate) port: u16,
    #[schemars(schema_with = "schema::text")]
    pub(crate) path: String,
    /// The status code that counts as healthy; 200 unless given.
    #[schemars(schema_with = "schema::status_code")]
    pub(crate) expect: Option<StatusCode>,
    /// The service speaks TLS; its certificate is not verified.
    #[schemars(with = "bool")]
    pub(crate) tls: Option<bool>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "PostgresCriterion", deny_unknown_fields)]
#[schemars(extend("required" = ["service"]))]
pub(crate) struct PostgresDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) service: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) namespace: Option<String>,
    /// 5432 unless given.
    #[schemars(schema_with = "schema::port")]
    pub(crate) port: Option<u16>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "RedisCriterion", deny_unknown_fields)]
#[schemars(extend("required" = ["service"]))]
pub(crate) struct RedisDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) service: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) namespace: Option<String>,
    /// 6379 unless given.
    #[schemars(schema_with = "schema::port")]
    pub(crate) port: Option<u16>,
}

/// A status code of HTTP.
#[derive(Debug)]
pub(crate) struct StatusCode(pub(crate) u16);

impl Decode for CriterionDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        const KINDS: [&str; 5] = ["resource", "tcp", "http", "postgres", "redis"];
        let mut fields = Fields::open(node, "a health criterion", problems)?;
        let given = KINDS.into_iter().filter(|name| fields.has(name)).count();
        if given != 1 {
            let title =
                "a health criterion is one of `resource`, `tcp`, `http`, `postgres` and `redis`";
            let label = if given == 0 { "none of them is here" } else { "more than one is here" };
            problems.push(Diagnostic::new(title, node.span(), label));
        }
        let resource = fields.optional("resource", problems).map(CriterionDocument::Resource);
        let tcp = fields.optional("tcp", problems).map(CriterionDocument::Tcp);
        let http = fields.optional("http", problems).map(CriterionDocument::Http);
        let postgres = fields.optional("postgres", problems).map(CriterionDocument::Postgres);
        let redis = fields.optional("redis", problems).map(CriterionDocument::Redis);
        if given > 0 {
            fields.finish(problems);
        }
        resource.or(tcp).or(http).or(postgres).or(redis)
    }
}

impl Decode for ResourceDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a resource criterion", problems)?;
        let api_version = fields.required("apiVersion", problems);
        let kind = fields.required("kind", problems);
        let name = fields.required("name", problems);
        let namespace = fields.optional("namespace", problems);
        let expression = fields.required("expression", problems);
        fields.finish(problems);
        Some(ResourceDocument {
            api_version: api_version?,
            kind: kind?,
            name: name?,
            namespace,
            expression: expression?,
        })
    }
}

impl Decode for TcpDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a tcp criterion", problems)?;
        let service = fields.required("service", problems);
        let namespace = fields.optional("namespace", problems);
        let port = fields.required("port", problems);
        fields.finish(problems);
        Some(TcpDocument { service: service?, namespace, port: port? })
    }
}

impl Decode for HttpDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "an http criterion", problems)?;
        let service = fields.required("service", problems);
        let namespace = fields.optional("namespace", problems);
        let port = fields.required("port", problems);
        let path = fields.required("path", problems);
        let expect = fields.optional("expect", problems);
        let tls = fields.optional("tls", problems);
        fields.finish(problems);
        Some(HttpDocument { service: service?, namespace, port: port?, path: path?, expect, tls })
    }
}

impl Decode for PostgresDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a postgres criterion", problems)?;
        let service = fields.required("service", problems);
        let namespace = fields.optional("namespace", problems);
        let port = fields.optional("port", problems);
        fields.finish(problems);
        Some(PostgresDocument { service: service?, namespace, port })
    }
}

impl Decode for RedisDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a redis criterion", problems)?;
        let service = fields.required("service", problems);
        let namespace = fields.optional("namespace", problems);
        let port = fields.optional("port", problems);
        fields.finish(problems);
        Some(RedisDocument { service: service?, namespace, port })
    }
}
