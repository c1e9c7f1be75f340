//! How long a Pull waits.

use std::time::Duration;

use model::limits::PULL_WAIT_MAX;
use proto::pubsub::{PullRequest, PullResponse};
use tokio::time::{Instant, sleep};
use tonic::{Request, Status};

use super::{AT_ONCE, SUBSCRIPTION, Service};

const PATIENT: Duration = Duration::from_secs(90);

impl Service {
    /// One Pull by a client with a deadline.
    fn pull(
        &self,
        deadline: Option<Duration>,
    ) -> impl Future<Output = Result<PullResponse, Status>> + Send + use<> {
        let mut request = Request::new(PullRequest {
            subscription: SUBSCRIPTION.to_owned(),
            max_messages: 10,
            ..PullRequest::default()
        });
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        let mut client = self.subscriber.clone();
        async move { Ok(client.pull(request).await?.into_inner()) }
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_pull_is_answered_before_its_deadline_and_never_waits_long() {
    let service = Service::start().await;
    for (deadline_ms, answered_ms) in [(200, 150), (1_000, 750), (5_000, 4_000), (90_000, 20_000)] {
        let begun = Instant::now();
        let pulled = service.pull(Some(Duration::from_millis(deadline_ms))).await;
        assert_eq!(pulled.expect("an empty OK"), PullResponse::default());
        let late = begun.elapsed() - Duration::from_millis(answered_ms);
        assert!(late < AT_ONCE, "{deadline_ms} ms: {late:?} late");
    }
    let begun = Instant::now();
    let pulled = service.pull(None).await;
    assert_eq!(pulled.expect("an empty OK"), PullResponse::default());
    assert!(begun.elapsed() - PULL_WAIT_MAX < AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_late_ends_the_wait_at_once() {
    const LATE: Duration = Duration::from_secs(15);
    let mut service = Service::start().await;
    let begun = Instant::now();
    let pulling = tokio::spawn(service.pull(Some(PATIENT)));
    // sleep: virtual time
    sleep(LATE).await;
    service.publish("paid").await;
    let pulled = pulling.await.expect("a pull does not panic");
    let pulled = pulled.expect("it is answered");
    assert_eq!(pulled.received_messages.len(), 1);
    assert!(begun.elapsed() - LATE < AT_ONCE);
}
