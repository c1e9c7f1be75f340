//! grpc.health.v1: what `/readyz` says over HTTP, for those who ask over gRPC.

use std::time::Duration;

use proto::pubsub::publisher_server::PublisherServer;
use proto::pubsub::subscriber_server::SubscriberServer;
use replica::health::Health;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health as HealthCalls, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

use crate::Shutdown;
use crate::publisher::PublisherService;
use crate::subscriber::SubscriberService;

/// How often the node is looked at. Those who watch hear of a change that much later.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The node as a whole, and the services that users call.
const SERVICES: [&str; 3] = [
    "",
    <PublisherServer<PublisherService> as NamedService>::NAME,
    <SubscriberServer<SubscriberService> as NamedService>::NAME,
];

/// The service; a task keeps what it says true until the shutdown, which ends whoever watches.
pub(crate) async fn service(
    node: Health,
    shutdown: Shutdown,
) -> HealthServer<impl HealthCalls + use<>> {
    let (reporter, service) = health_reporter();
    let status = status(&node);
    report(&reporter, status).await;
    tokio::spawn(follow(reporter, node, status, shutdown));
    service
}

/// Those who watch hear what was `said` when they begin, and then of changes only.
async fn follow(
    mut reporter: HealthReporter,
    node: Health,
    mut said: ServingStatus,
    mut shutdown: Shutdown,
) {
    loop {
        tokio::select! {
            () = shutdown.begun() => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let status = status(&node);
        if status != said {
            report(&reporter, status).await;
            said = status;
        }
    }
    report(&reporter, ServingStatus::NotServing).await;
    // Whoever watches hears the last word, and that it was the last.
    for service in SERVICES {
        reporter.clear_service_status(service).await;
    }
}

fn status(node: &Health) -> ServingStatus {
    match node.ready().iter().all(|check| check.ailment.is_none()) {
        true => ServingStatus::Serving,
        false => ServingStatus::NotServing,
    }
}

async fn report(reporter: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        reporter.set_service_status(service, status).await;
    }
}
