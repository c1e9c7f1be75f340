//! What load balancers and operators ask over HTTP/1.1: `/livez`, `/readyz`, `/readyz/{check}` and
//! `/metrics`.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use replica::health::{Check, Health};
use replica::metrics::Metrics;

use crate::metrics::{self, Watch};

/// The page that tools wait for which start an emulator, and the probes.
pub(crate) fn pages(health: Health, metrics: Metrics) -> Router {
    let watched = Router::new()
        .route("/metrics", get(metrics::page))
        .with_state(Watch::new(metrics));
    Router::new()
        .route("/", get(|| async { "Ok" }))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/readyz/{check}", get(one))
        .with_state(health)
        .merge(watched)
}

/// All that must be well, one line each.
async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    answer(&health.ready())
}

/// One thing, also one that need not be well for the node to be ready.
async fn one(State(health): State<Health>, Path(name): Path<String>) -> (StatusCode, String) {
    let mut checks = health.ready();
    checks.push(health.placement());
    let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    match checks.iter().find(|check| check.name == name) {
        Some(check) => answer(std::slice::from_ref(check)),
        None => {
            let known = format!("no check \"{name}\": there are {}\n", names.join(", "));
            (StatusCode::NOT_FOUND, known)
        }
    }
}

fn answer(checks: &[Check]) -> (StatusCode, String) {
    let line = |check: &Check| match &check.ailment {
        None => format!("{}: ok\n", check.name),
        Some(ailment) => format!("{}: {ailment}\n", check.name),
    };
    let well = checks.iter().all(|check| check.ailment.is_none());
    let status = match well {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, checks.iter().map(line).collect())
}
