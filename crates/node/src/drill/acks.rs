//! The acks of an audit. They do what careful users do: an ack whose answer says nothing is sent
//! again, through whichever node is ready, until it is known whether it counts. So what comes again
//! after that is a violation, and what comes again before is none.

use std::sync::Arc;
use std::time::Duration;

use proto::pubsub::AcknowledgeRequest;
use proto::pubsub::subscriber_client::SubscriberClient;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use super::endpoints::Endpoints;
use super::ledger::{Audited, Ledger};
use super::message::Delivery;
use crate::cli::session::is_passing;

/// The deadline of one request. A client gives up after it, and asks another node.
const CALL_MAX: Duration = Duration::from_secs(2);
/// The wait before an ack is sent again.
const RETRY: Duration = Duration::from_millis(20);
/// Acks of one request.
const REQUEST_ACKS_MAX: usize = 1_000;
/// Deliveries of one key that wait for their acks. A stream whose delivery finds no room is not
/// read on.
const WAITING_MAX: usize = 1_000;
/// The reason of a status that tells the fate of each ack.
const EACH_ACK: &str = "EXACTLY_ONCE_ACKID_FAILURE";
/// How the fate of an ack begins that may count when it is sent again.
const TRANSIENT: &str = "TRANSIENT_";

/// Where the deliveries of one subscription go to be acknowledged. Clones are the same.
#[derive(Clone)]
pub(super) struct Acks {
    /// By the number of the key: only the acks of one key depend on each other.
    keys: Arc<[mpsc::Sender<Delivery>]>,
}

/// What the acknowledging tasks of a subscription share.
pub(super) struct Acknowledging {
    pub(super) endpoints: Endpoints,
    pub(super) ledger: Arc<Ledger>,
    pub(super) audited: Audited,
    pub(super) subscription: String,
}

/// What became of acks that were sent together. Those that count for nothing are in neither: their
/// messages come again.
#[derive(Default)]
struct Fates {
    counted: Vec<Delivery>,
    /// It is not known, or not decided yet.
    open: Vec<Delivery>,
}

impl Acks {
    /// Starts a task for each key.
    pub(super) fn start(acknowledging: Acknowledging, keys: u32, tasks: &mut JoinSet<()>) -> Self {
        let acknowledging = Arc::new(acknowledging);
        let mut start = |key: u32| {
            let (sender, waiting) = mpsc::channel(WAITING_MAX);
            tasks.spawn(Arc::clone(&acknowledging).work(key, waiting));
            sender
        };
        Acks {
            keys: (0..keys).map(&mut start).collect(),
        }
    }

    /// Acknowledges a delivery, sooner or later. Waits while many of its key wait.
    pub(super) async fn add(&self, delivery: Delivery) {
        let key = self.keys.get(delivery.token.key as usize);
        // Its task ends with the audit.
        let _ = key.expect("only keys of the audit").send(delivery).await;
    }
}

impl Acknowledging {
    /// Sends what waits of one key, one request after another.
    async fn work(self: Arc<Self>, key: u32, mut waiting: mpsc::Receiver<Delivery>) {
        let mut open = Vec::new();
        loop {
            // What came meanwhile goes along: an ack may have to wait for that of a message that
            // has just come again.
            let room = REQUEST_ACKS_MAX.saturating_sub(open.len());
            if open.is_empty() {
                if waiting.recv_many(&mut open, room).await == 0 {
                    return;
                }
            } else {
                let came = std::iter::from_fn(|| waiting.try_recv().ok());
                open.extend(came.take(room));
            }
            let answer = self.ask(key, &open).await;
            let fates = Fates::new(open, answer);
            if self.audited == Audited::ExactlyOnce {
                for delivery in &fates.counted {
                    self.ledger.acked(delivery.message_id);
                }
            }
            open = fates.open;
            if !open.is_empty() {
                sleep(RETRY).await;
            }
        }
    }

    async fn ask(&self, key: u32, asked: &[Delivery]) -> Result<(), Status> {
        let ack_ids = asked.iter().map(|delivery| delivery.ack_id.clone());
        let mut request = Request::new(AcknowledgeRequest {
            subscription: self.subscription.clone(),
            ack_ids: ack_ids.collect(),
        });
        request.set_timeout(CALL_MAX);
        let channel = self.endpoints.shared(key as usize).await;
        let mut client = SubscriberClient::new(channel);
        // A node that hangs does not keep its word on deadlines either.
        let answered = timeout(CALL_MAX, client.acknowledge(request)).await;
        answered.map_err(|_| Status::deadline_exceeded("no answer"))??;
        Ok(())
    }
}

impl Fates {
    fn new(asked: Vec<Delivery>, answer: Result<(), Status>) -> Self {
        let mut fates = Fates::default();
        let Err(status) = answer else {
            fates.counted = asked;
            return fates;
        };
        let details = status.get_error_details();
        let each = details.error_info().filter(|info| info.reason == EACH_ACK);
        match each {
            Some(each) => {
                for delivery in asked {
                    match each.metadata.get(&delivery.ack_id) {
                        Some(fate) if fate.starts_with(TRANSIENT) => fates.open.push(delivery),
                        Some(_) => {}
                        // There are more than the answer holds.
                        None if status.code() == Code::Aborted => fates.open.push(delivery),
                        None => fates.counted.push(delivery),
                    }
                }
            }
            // Some messages will be sent again, and the acks of the others count.
            None if status.code() == Code::Aborted => {}
            None if is_passing(status.code()) => fates.open = asked,
            None => {}
        }
        fates
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::super::message::Token;
    use super::*;

    fn asked() -> Vec<Delivery> {
        let delivery = |value: u64| Delivery {
            token: Token {
                key: 0,
                value,
                attempt: 0,
            },
            message_id: value,
            ack_id: format!("id-{value}"),
        };
        (0..3).map(delivery).collect()
    }

    /// The messages whose acks count, and those whose fate is open.
    fn fates(answer: Result<(), Status>) -> (Vec<u64>, Vec<u64>) {
        let Fates { counted, open } = Fates::new(asked(), answer);
        let ids = |deliveries: Vec<Delivery>| deliveries.iter().map(|it| it.message_id).collect();
        (ids(counted), ids(open))
    }

    /// The first ack fails so.
    fn first_fails(code: Code, fate: &str) -> Result<(), Status> {
        let fates = HashMap::from([("id-0".to_owned(), fate.to_owned())]);
        let details = ErrorDetails::with_error_info(EACH_ACK, "pubsub.googleapis.com", fates);
        Err(Status::with_error_details(code, "", details))
    }

    #[test]
    fn an_answer_that_says_nothing_leaves_all_open() {
        let unavailable = Err(Status::unavailable("no leader"));
        assert_eq!(fates(unavailable), (vec![], vec![0, 1, 2]));
        assert_eq!(fates(Ok(())), (vec![0, 1, 2], vec![]));
    }

    #[test]
    fn what_fails_for_good_is_not_asked_for_again() {
        let invalid = "PERMANENT_FAILURE_INVALID_ACK_ID";
        let permanent = first_fails(Code::InvalidArgument, invalid);
        assert_eq!(fates(permanent), (vec![1, 2], vec![]));
        let more = first_fails(Code::Aborted, invalid);
        assert_eq!(fates(more), (vec![], vec![1, 2]));
        let again = Err(Status::aborted("some messages will be sent again"));
        assert_eq!(fates(again), (vec![], vec![]));
    }

    #[test]
    fn what_is_out_of_order_is_asked_for_again() {
        let unordered = "TRANSIENT_FAILURE_UNORDERED_ACK_ID";
        let transient = first_fails(Code::FailedPrecondition, unordered);
        assert_eq!(fates(transient), (vec![1, 2], vec![0]));
    }
}
