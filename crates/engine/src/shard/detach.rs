//! A subscription takes no part any more. Its backlog goes later, in steps; see [`super::sweep`].

use model::MessageId;

use super::{At, Detach, Effect, Outcome, Reply, read};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::attachment::{Attachment, AttachmentKey};
use crate::table::detached::{Detached, DetachedKey, Step};
use crate::table::topic::{Topic, TopicKey};

pub(super) fn apply(overlay: &mut Overlay<'_>, detach: &Detach, at: At) -> Result<Outcome, Fault> {
    let (topic, subscription) = (detach.topic, detach.subscription);
    let key = AttachmentKey {
        topic,
        subscription,
    };
    let Some(attachment) = overlay.row::<Attachment>(&key)? else {
        return Ok(Reply::Done.into());
    };
    overlay.delete::<Attachment>(&key);
    count_out(overlay, detach)?;
    let detached = Detached {
        after: attachment.after,
        until: at.newest(&read::shard(overlay)?),
        ordered: attachment.settings.ordered,
        next: Step::Runs(first_run(overlay, detach, attachment.after)?),
    };
    let key = DetachedKey {
        topic,
        subscription,
    };
    overlay.put(&key, &detached);
    Ok(Outcome::done(Effect::Detached {
        topic,
        subscription,
    }))
}

/// Where the runs begin that may wait for the subscription: behind where it began, unless a move has
/// brought others.
fn first_run(overlay: &Overlay<'_>, detach: &Detach, after: MessageId) -> Result<MessageId, Fault> {
    let arrived = read::arrived(overlay, detach.topic).next().transpose()?;
    Ok(match arrived {
        Some(_) => MessageId(1),
        None => MessageId(after.0 + 1),
    })
}

/// From here on no run waits for the subscription.
fn count_out(overlay: &mut Overlay<'_>, detach: &Detach) -> Result<(), Fault> {
    let topic = read::topic(overlay, detach.topic)?;
    assert!(topic.attachments > 0, "an attachment is counted");
    let key = TopicKey {
        topic: detach.topic,
    };
    let attachments = topic.attachments - 1;
    overlay.put(
        &key,
        &Topic {
            attachments,
            ..topic
        },
    );
    Ok(())
}
