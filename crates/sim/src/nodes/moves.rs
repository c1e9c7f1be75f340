//! What an operator asks of one node to move a key, carried out by the node's process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::control::read;
use engine::dispatch::MoveReply;
use engine::table::strand::StrandKey;
use model::{GroupId, SurvivalGoal, TopicName};
use replica::{ControlClient, Shards};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

/// How long a node tries to move a key.
const MOVE_MAX: Duration = Duration::from_secs(5);
/// How long an operator waits for the answer.
const ANSWER_MAX: Duration = Duration::from_secs(6);

/// Asks the present process of a node to move keys.
#[derive(Default)]
pub(super) struct Mover(Mutex<Option<mpsc::UnboundedSender<Order>>>);

/// What is asked.
pub(super) struct Order {
    topic: TopicName,
    key: String,
    /// Decides where to.
    place: u64,
    answer: oneshot::Sender<Outcome>,
}

/// What has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It has moved.
    Moved,
    /// It is where it was.
    Stays,
}

impl Mover {
    /// What is asked of a new process.
    pub(super) fn open(&self) -> mpsc::UnboundedReceiver<Order> {
        let (asks, asked) = mpsc::unbounded_channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(asks);
        asked
    }

    /// Has a key of a topic move; `place` decides where to. `None` when that is not known to have
    /// come to an end.
    pub(super) async fn move_key(
        &self,
        topic: &TopicName,
        key: &str,
        place: u64,
    ) -> Option<Outcome> {
        let (answer, answered) = oneshot::channel();
        let order = Order {
            topic: topic.clone(),
            key: key.to_owned(),
            place,
            answer,
        };
        let asks = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        asks?.send(order).ok()?;
        timeout(ANSWER_MAX, answered).await.ok()?.ok()
    }
}

/// Moves keys for as long as the process lasts.
pub(super) async fn serve(
    control: ControlClient,
    shards: Shards,
    mut asked: mpsc::UnboundedReceiver<Order>,
) {
    while let Some(order) = asked.recv().await {
        let (control, shards) = (control.clone(), shards.clone());
        tokio::spawn(async move {
            if let Some(outcome) = move_key(&control, &shards, &order).await {
                // Nobody waits any more.
                let _ = order.answer.send(outcome);
            }
        });
    }
}

async fn move_key(control: &ControlClient, shards: &Shards, order: &Order) -> Option<Outcome> {
    let view = control.current().ok()?;
    let cluster = read::cluster(view).ok()??;
    let topic = read::topic(view, &order.topic).ok()??.incarnation;
    let key = StrandKey {
        topic,
        strand: cluster.secret.key_hash(topic, &order.key),
    };
    let placements = read::placements(view).ok()?.into_iter();
    // Others would not survive what the topic shall.
    let fit = placements.filter(|placement| placement.goal == SurvivalGoal::Region);
    let fit: Vec<_> = fit
        .filter_map(|placement| match placement.group {
            GroupId::Shard(shard) => Some(shard),
            GroupId::Control | GroupId::Registry(_) => None,
        })
        .collect();
    let to = fit[(order.place % fit.len() as u64) as usize];
    let pin = shards.pin(key).await.ok()?;
    if pin.is_none_or(|pin| pin.shard == to) {
        return Some(Outcome::Stays);
    }
    let deadline = Instant::now() + MOVE_MAX;
    match shards.move_key(key, to, Some(deadline)).await.ok()? {
        MoveReply::Moved => Some(Outcome::Moved),
        MoveReply::Undone | MoveReply::TooLarge => Some(Outcome::Stays),
        // Perhaps an earlier request moves it still.
        MoveReply::NotHere => None,
    }
}
