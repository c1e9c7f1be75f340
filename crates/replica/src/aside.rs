//! Work that waits for the disk, done where it holds nobody up.

use store::Store;
use tokio::task::{JoinError, spawn_blocking};

/// Does the work on a thread of its own, or at once where the store's disk makes nobody wait: a
/// simulation has one thread.
///
/// # Errors
/// When the work panics.
pub(crate) async fn aside<T: Send + 'static>(
    store: &Store,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match store.waits() {
        true => spawn_blocking(work).await,
        false => Ok(work()),
    }
}
