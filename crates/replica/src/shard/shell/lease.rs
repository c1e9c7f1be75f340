//! Whether a leader may decide anything now: nobody else leads yet.
//!
//! What goes through the log is safe by itself. But deliveries at least once do not, and a leader that
//! is cut off from the others hears nothing of the next one: it would send again what was
//! acknowledged there.

use std::time::Duration;

use tokio::time::Instant;

use super::{End, Shell};

/// A leader lease that lasts is believed for so long: less than followers wait beyond it before
/// they elect somebody.
const BELIEVED_FOR: Duration = Duration::from_millis(50);
/// A leadership whose lease does not come back for so long is over.
const LOST_AFTER: Duration = Duration::from_secs(2);
/// The pause before a lease that does not last is asked for again.
pub(super) const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What a leadership knows of its leader lease.
#[derive(Debug, Default)]
pub(super) struct LeaderLease {
    /// When it was last asked for and lasted.
    lasted: Option<Instant>,
    /// Since when it does not last.
    pub(super) lapsed: Option<Instant>,
}

impl Shell<'_> {
    /// Whether the leader lease lasts.
    ///
    /// # Errors
    /// [`End::NotCommitted`] when it has not for too long.
    pub(super) async fn holds_lease(&mut self) -> Result<bool, End> {
        let asked = Instant::now();
        let is_fresh = |lasted: Instant| asked.duration_since(lasted) < BELIEVED_FOR;
        if self.lease.lasted.is_some_and(is_fresh) {
            return Ok(true);
        }
        if self.around.core.holds_lease().await {
            self.lease = LeaderLease {
                lasted: Some(asked),
                lapsed: None,
            };
            return Ok(true);
        }
        let lapsed = *self.lease.lapsed.get_or_insert(asked);
        match lapsed.elapsed() >= LOST_AFTER {
            true => Err(End::NotCommitted),
            false => Ok(false),
        }
    }
}
