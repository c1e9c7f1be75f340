//! What the catalogue has and a shard lacks.

use std::collections::BTreeMap;

use engine::Fault;
use engine::control;
use engine::kv::View;
use engine::shard::{self, Attach, CloseTopic, Detach};
use engine::table::attachment::AttachmentKey;

/// The commands that bring a shard up to the catalogue, from whatever it has.
///
/// # Errors
/// [`Fault`] when a state can't be read.
pub(crate) fn missing(
    catalogue: &dyn View,
    shard: &dyn View,
) -> Result<Vec<shard::Command>, Fault> {
    let mut commands = Vec::new();
    let mut wanted = wanted(catalogue)?;
    for row in shard::read::attachments(shard) {
        let (key, attachment) = row?;
        match wanted.remove(&key) {
            Some(attach) if attach.version <= attachment.version => {}
            Some(attach) => commands.push(shard::Command::Attach(attach)),
            None => commands.push(shard::Command::Detach(Detach {
                topic: key.topic,
                subscription: key.subscription,
            })),
        }
    }
    if !model::sabotage!("new-leader-attaches-nothing") {
        commands.extend(wanted.into_values().map(shard::Command::Attach));
    }
    let open = control::read::open_topics(catalogue)?;
    for row in shard::read::topics(shard) {
        let (key, topic) = row?;
        if !topic.closed && !open.contains(&key.topic) {
            let topic = key.topic;
            commands.push(shard::Command::CloseTopic(CloseTopic { topic }));
        }
    }
    Ok(commands)
}

fn wanted(catalogue: &dyn View) -> Result<BTreeMap<AttachmentKey, Attach>, Fault> {
    let attachments = control::read::all_attachments(catalogue)?;
    let keyed = attachments.into_iter().map(|attach| {
        let key = AttachmentKey {
            topic: attach.topic,
            subscription: attach.subscription,
        };
        (key, attach)
    });
    Ok(keyed.collect())
}

#[cfg(test)]
mod tests;
