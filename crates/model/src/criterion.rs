//! Health criteria: what must hold of an app beyond Argo CD's verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A health criterion beyond Argo CD's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Criterion {
    Resource(ResourceCriterion),
    /// A service accepts connections.
    Tcp(ServiceCriterion),
    Http(HttpCriterion),
    /// A service is a PostgreSQL that lets clients log in.
    Postgres(ServiceCriterion),
    /// A service is a Redis that answers.
    Redis(ServiceCriterion),
}

/// A CEL expression over one object. A missing field means: not yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceCriterion {
    pub api_version: String,
    /// Checked where the platform was read.
    pub expression: String,
    pub kind: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceCriterion {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub port: u16,
    pub service: String,
}

/// A service answers a GET with the expected status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCriterion {
    pub expect: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub path: String,
    pub port: u16,
    pub service: String,
    /// Encrypted, whoever has signed the certificate.
    pub tls: bool,
}

impl Criterion {
    /// Where it looks, if the platform file says so.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let namespace = match self {
            Criterion::Resource(resource) => &resource.namespace,
            Criterion::Http(http) => &http.namespace,
            Criterion::Tcp(service) | Criterion::Postgres(service) | Criterion::Redis(service) => {
                &service.namespace
            }
        };
        namespace.as_deref()
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Criterion::Resource(resource) => write!(f, "{}/{}", resource.kind, resource.name),
            Criterion::Tcp(service) => write!(f, "tcp {service}"),
            Criterion::Http(http) => {
                let scheme = if http.tls { "https" } else { "http" };
                write!(f, "{scheme} {}:{}{}", http.service, http.port, http.path)
            }
            Criterion::Postgres(service) => write!(f, "postgres {service}"),
            Criterion::Redis(service) => write!(f, "redis {service}"),
        }
    }
}

impl fmt::Display for ServiceCriterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.service, self.port)
    }
}
