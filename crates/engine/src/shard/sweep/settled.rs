//! Records of exactly-once acks that nobody may repeat any more.

use model::Timestamp;
use model::limits::{SETTLED_KEPT, SWEEP_ROWS_MAX};

use crate::Fault;
use crate::kv::Overlay;
use crate::shard::{Swept, read};
use crate::table::settled::{Settled, SettledKey};
use crate::table::settled_at::SettledAt;

/// Each record has two rows.
const RECORDS_MAX: usize = SWEEP_ROWS_MAX / 2;

pub(super) fn sweep(overlay: &mut Overlay<'_>, time: Timestamp) -> Result<Swept, Fault> {
    let until = Timestamp(time.0.saturating_sub(SETTLED_KEPT.as_nanos() as u64));
    let old = read::settled_until(overlay, until).take(RECORDS_MAX);
    let old = old.collect::<Result<Vec<_>, _>>()?;
    for key in &old {
        overlay.delete::<SettledAt>(key);
        overlay.delete::<Settled>(&SettledKey {
            subscription: key.subscription,
            message: key.message,
        });
    }
    match old.len() {
        RECORDS_MAX => Ok(Swept::More),
        _ => Ok(Swept::All),
    }
}
