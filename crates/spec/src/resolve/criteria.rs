//! Health criteria, with their defaults.

use tiphys_model::Criterion;
use tiphys_model::criterion::{HttpCriterion, ResourceCriterion, ServiceCriterion};

use crate::document::criteria::CriterionDocument;

/// What each protocol's servers listen on unless told otherwise.
const POSTGRES: u16 = 5432;
const REDIS: u16 = 6379;

pub(super) fn resolve(given: CriterionDocument) -> Criterion {
    let service = |service, namespace, port| ServiceCriterion { namespace, port, service };
    match given {
        CriterionDocument::Resource(r) => Criterion::Resource(ResourceCriterion {
            api_version: r.api_version,
            expression: r.expression.to_string(),
            kind: r.kind,
            name: r.name,
            namespace: r.namespace,
        }),
        CriterionDocument::Tcp(t) => Criterion::Tcp(service(t.service, t.namespace, t.port)),
        CriterionDocument::Http(h) => Criterion::Http(HttpCriterion {
            expect: h.expect.map_or(200, |code| code.0),
            namespace: h.namespace,
            path: h.path,
            port: h.port,
            service: h.service,
            tls: h.tls.unwrap_or(false),
        }),
        CriterionDocument::Postgres(p) => {
            Criterion::Postgres(service(p.service, p.namespace, p.port.unwrap_or(POSTGRES)))
        }
        CriterionDocument::Redis(r) => {
            Criterion::Redis(service(r.service, r.namespace, r.port.unwrap_or(REDIS)))
        }
    }
}
