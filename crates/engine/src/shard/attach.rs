//! A subscription takes part, or changes its settings.

use model::sabotage;

use super::{At, Attach, Effect, Outcome, Rejected, Reply, read};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::subscription::SubscriptionSettings;
use crate::table::attachment::{Attachment, AttachmentKey};
use crate::table::detached::{Detached, DetachedKey};
use crate::table::topic::{Topic, TopicKey};

pub(super) fn apply(overlay: &mut Overlay<'_>, attach: &Attach, at: At) -> Result<Outcome, Fault> {
    let (topic, subscription) = (attach.topic, attach.subscription);
    let key = AttachmentKey {
        topic,
        subscription,
    };
    let attachment = match overlay.row::<Attachment>(&key)? {
        Some(before) if attach.version <= before.version && !sabotage!("old-settings-win") => {
            return Ok(Reply::Done.into());
        }
        Some(before) => changed(before, attach),
        None if was_detached(overlay, attach)? && !sabotage!("detached-comes-back") => {
            return Ok(Rejected::NotAttached.into());
        }
        None => added(overlay, attach, at)?,
    };
    overlay.put(&key, &attachment);
    Ok(Outcome::done(Effect::Attached {
        topic,
        subscription,
    }))
}

/// A detached subscription does not come back: this is an old command that was overtaken.
fn was_detached(overlay: &Overlay<'_>, attach: &Attach) -> Result<bool, Fault> {
    let key = DetachedKey {
        topic: attach.topic,
        subscription: attach.subscription,
    };
    Ok(overlay.row::<Detached>(&key)?.is_some())
}

/// Order and filter are fixed at creation: what is settled already was judged by them.
fn changed(before: Attachment, attach: &Attach) -> Attachment {
    Attachment {
        after: before.after,
        version: attach.version,
        settings: SubscriptionSettings {
            ordered: before.settings.ordered,
            filter: before.settings.filter,
            ..attach.settings.clone()
        },
    }
}

fn added(overlay: &mut Overlay<'_>, attach: &Attach, at: At) -> Result<Attachment, Fault> {
    let topic = read::topic(overlay, attach.topic)?;
    let key = TopicKey {
        topic: attach.topic,
    };
    let attachments = topic.attachments + 1;
    overlay.put(
        &key,
        &Topic {
            attachments,
            ..topic
        },
    );
    let newest = at.newest(&read::shard(overlay)?);
    let too_late = u32::from(sabotage!("attach-too-late"));
    Ok(Attachment {
        after: newest.plus(too_late),
        version: attach.version,
        settings: attach.settings.clone(),
    })
}
