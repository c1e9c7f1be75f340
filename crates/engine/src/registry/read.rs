//! What the rows of a registry group say.

use model::{Incarnation, KeyHash};

use super::Pin;
use super::table::counters::{Counters, CountersKey};
use crate::Fault;
use crate::kv::{View, ViewExt};
use crate::table::strand::StrandKey;

/// The counters of the group.
pub(super) fn counters(view: &dyn View) -> Result<Counters, Fault> {
    Ok(view.row(&CountersKey)?.unwrap_or_default())
}

/// The pin of a key, if it has one.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn pin(view: &dyn View, key: &StrandKey) -> Result<Option<Pin>, Fault> {
    view.row(key)
}

/// The pins of this group from a key on, by topic and key.
pub fn pins(
    view: &dyn View,
    from: StrandKey,
) -> impl Iterator<Item = Result<(StrandKey, Pin), Fault>> {
    let end = StrandKey {
        topic: Incarnation(u64::MAX),
        strand: KeyHash([u8::MAX; 16]),
    };
    view.rows::<Pin>(&from, &end)
}
