//! A topic takes no more messages.

use super::{CloseTopic, Outcome, Reply, read};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::topic::{Topic, TopicKey};

pub(super) fn apply(overlay: &mut Overlay<'_>, close_topic: &CloseTopic) -> Result<Outcome, Fault> {
    let key = TopicKey {
        topic: close_topic.topic,
    };
    let topic = read::topic(overlay, close_topic.topic)?;
    let closed = true;
    overlay.put(&key, &Topic { closed, ..topic });
    Ok(Reply::Done.into())
}
