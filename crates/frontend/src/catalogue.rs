//! Reads and changes of the catalogue, as the services make them.

use engine::Fault;
use engine::control::read::Seen;
use engine::control::{Command, Reply, Subscription, Topic};
use engine::kv::View;
use router::{Router, StateView};

use crate::status::Failure;

/// What the catalogue says of one name, as `look` finds it: not older than anything that was
/// answered before.
pub(crate) async fn look_up<T>(
    router: &Router,
    look: impl FnOnce(&StateView) -> Result<Seen<T>, Fault>,
) -> Result<Option<T>, Failure> {
    Ok(router.control().look_up(look).await?)
}

/// The catalogue, not older than anything that was answered before.
pub(crate) async fn read(router: &Router) -> Result<&impl View, Failure> {
    Ok(router.control().read().await?)
}

/// Carries out a command that answers with a topic.
pub(crate) async fn topic(router: &Router, command: Command) -> Result<Topic, Failure> {
    match router.control().propose(command).await? {
        Reply::Topic(topic) => Ok(*topic),
        Reply::Rejected(why) => Err(why.into()),
        other => unreachable!("a command about one topic was answered with {other:?}"),
    }
}

/// Carries out a command that answers with a subscription.
pub(crate) async fn subscription(
    router: &Router,
    command: Command,
) -> Result<Subscription, Failure> {
    match router.control().propose(command).await? {
        Reply::Subscription(subscription) => Ok(*subscription),
        Reply::Rejected(why) => Err(why.into()),
        other => unreachable!("a command about one subscription was answered with {other:?}"),
    }
}

/// Carries out a command that has nothing to answer.
pub(crate) async fn done(router: &Router, command: Command) -> Result<(), Failure> {
    match router.control().propose(command).await? {
        Reply::Done => Ok(()),
        Reply::Rejected(why) => Err(why.into()),
        other => unreachable!("a deletion was answered with {other:?}"),
    }
}
