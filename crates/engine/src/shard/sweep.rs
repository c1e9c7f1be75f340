//! Steps of cleaning up. Each is small, and any may be repeated or left out: what is left to do
//! stands in the rows.

mod detached;
mod idle_strands;
mod settled;

use super::{At, Outcome, Reply, Sweep};
use crate::Fault;
use crate::kv::Overlay;

pub(super) fn apply(overlay: &mut Overlay<'_>, sweep: &Sweep, at: At) -> Result<Outcome, Fault> {
    let swept = match *sweep {
        Sweep::Detached {
            topic,
            subscription,
        } => detached::sweep(overlay, topic, subscription)?,
        Sweep::IdleStrands { topic, from } => idle_strands::sweep(overlay, topic, from, at.time)?,
        Sweep::Settled => settled::sweep(overlay, at.time)?,
    };
    Ok(Reply::Swept(swept).into())
}
