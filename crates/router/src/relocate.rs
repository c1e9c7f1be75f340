//! Keys that live where their topic may not be stored any more: its storage policy or its survival
//! goal has changed. They move before anything more is published to them.

use engine::control::Topic;
use engine::dispatch::MoveReply;
use engine::route::Spread;
use engine::table::strand::StrandKey;
use model::KeyHash;
use tokio::time::{Instant, timeout_at};

use crate::{PublishError, Router};

impl Router {
    /// Has a key move to where its topic may be stored, and learns where it is after that: perhaps
    /// still where it was, or on its way.
    ///
    /// # Errors
    /// [`PublishError::TooLargeToMove`], and those of a topic that no shard may store.
    pub(crate) async fn relocate(
        &self,
        topic: &Topic,
        strand: KeyHash,
        until: Instant,
    ) -> Result<(), PublishError> {
        let to = self.route(topic, Spread::Key(strand))??.shard;
        let key = StrandKey {
            topic: topic.incarnation,
            strand,
        };
        let moves = async {
            let moved = self.shards().move_key(key, to, Some(until)).await;
            (moved, self.shards().pin(key).await)
        };
        let Ok((moved, pin)) = timeout_at(until, moves).await else {
            return Ok(());
        };
        if let Ok(Some(pin)) = pin {
            self.inner.pins.learn(strand, pin.shard, pin.epoch);
        }
        match moved {
            Ok(MoveReply::TooLarge) => Err(PublishError::TooLargeToMove(topic.name.clone())),
            _ => Ok(()),
        }
    }
}
