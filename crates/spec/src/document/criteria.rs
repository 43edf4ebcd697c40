//! What must hold of an app beyond Argo CD's verdict, as the file says it.

use tiphys_expression::Expression;

use super::object::document;
use crate::decode::{Decode, Fields};
use crate::diagnostic::{Diagnostic, Diagnostics};
#[cfg(test)]
use crate::schema;
use crate::yaml::Node;

pub(crate) const STATUS_CODES: (i64, i64) = (100, 599);

/// Exactly one of `resource`, `tcp`, `http`, `postgres` and `redis`.
#[derive(Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Criterion", rename_all = "camelCase"))]
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

document! {
    #[schemars(rename = "ResourceCriterion")]
    ResourceDocument, "a resource criterion" {
        #[schemars(schema_with = "schema::text")]
        api_version: String = required("apiVersion"),
        #[schemars(schema_with = "schema::text")]
        kind: String = required("kind"),
        #[schemars(schema_with = "schema::text")]
        name: String = required("name"),
        #[schemars(schema_with = "schema::text")]
        namespace: Option<String> = optional("namespace"),
        /// A CEL expression over `obj`; a missing field means that it is not met yet.
        #[schemars(schema_with = "schema::text")]
        expression: Expression = required("expression"),
    }
}

document! {
    #[schemars(rename = "TcpCriterion")]
    TcpDocument, "a tcp criterion" {
        #[schemars(schema_with = "schema::text")]
        service: String = required("service"),
        #[schemars(schema_with = "schema::text")]
        namespace: Option<String> = optional("namespace"),
        #[schemars(schema_with = "schema::port")]
        port: u16 = required("port"),
    }
}

document! {
    #[schemars(rename = "HttpCriterion")]
    HttpDocument, "an http criterion" {
        #[schemars(schema_with = "schema::text")]
        service: String = required("service"),
        #[schemars(schema_with = "schema::text")]
        namespace: Option<String> = optional("namespace"),
        #[schemars(schema_with = "schema::port")]
        port: u16 = required("port"),
        #[schemars(schema_with = "schema::text")]
        path: String = required("path"),
        /// The status code that counts as healthy; 200 unless given.
        #[schemars(schema_with = "schema::status_code")]
        expect: Option<StatusCode> = optional("expect"),
        /// The service speaks TLS; its certificate is not verified.
        #[schemars(with = "bool")]
        tls: Option<bool> = optional("tls"),
    }
}

document! {
    #[schemars(rename = "PostgresCriterion")]
    PostgresDocument, "a postgres criterion" {
        #[schemars(schema_with = "schema::text")]
        service: String = required("service"),
        #[schemars(schema_with = "schema::text")]
        namespace: Option<String> = optional("namespace"),
        /// 5432 unless given.
        #[schemars(schema_with = "schema::port")]
        port: Option<u16> = optional("port"),
    }
}

document! {
    #[schemars(rename = "RedisCriterion")]
    RedisDocument, "a redis criterion" {
        #[schemars(schema_with = "schema::text")]
        service: String = required("service"),
        #[schemars(schema_with = "schema::text")]
        namespace: Option<String> = optional("namespace"),
        /// 6379 unless given.
        #[schemars(schema_with = "schema::port")]
        port: Option<u16> = optional("port"),
    }
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
            let title = "a health criterion must have exactly one of `resource`, `tcp`, `http`, \
                         `postgres` and `redis`";
            let label = if given == 0 { "none is given" } else { "more than one is given" };
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
