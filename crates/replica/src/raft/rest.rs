//! A leader's work rests before its leadership is handed over. From the hand-over on nothing can be
//! proposed, and what is under way then has a fate that nobody here hears of: its callers could only
//! be told that it may have been done. Whoever calls while the work rests waits for the next leader.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Between who hands a leadership over and who works as the leader. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Rest(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// How many ask for it.
    asked: watch::Sender<usize>,
    /// Whether nothing is under way that one task does, which says so.
    rests: watch::Sender<bool>,
    /// How many callers work by themselves, where there is no such task.
    works: watch::Sender<usize>,
}

/// While this is held, the work should rest.
pub(super) struct Asked(Arc<Inner>);

/// While this is held, something is under way.
pub(crate) struct Works(Arc<Inner>);

impl Rest {
    /// Asks the work of a task to rest, and waits until it does, for so long at most.
    pub(super) async fn begin(&self, patience: Duration) -> Asked {
        let asked = self.ask();
        let mut rests = self.0.rests.subscribe();
        // What takes longer is cut off by the hand-over.
        let _ = timeout(patience, rests.wait_for(|rests| *rests)).await;
        asked
    }

    /// The same where callers work by themselves.
    pub(super) async fn begin_of_callers(&self, patience: Duration) -> Asked {
        let asked = self.ask();
        let mut works = self.0.works.subscribe();
        let _ = timeout(patience, works.wait_for(|works| *works == 0)).await;
        asked
    }

    fn ask(&self) -> Asked {
        self.0.asked.send_modify(|asked| *asked += 1);
        Asked(Arc::clone(&self.0))
    }

    /// Waits until the work may go on, and says that something is under way while this is held.
    pub(crate) async fn works(&self) -> Works {
        let mut asked = self.0.asked.subscribe();
        // The count is raised first, so that no hand-over begins in between.
        loop {
            self.0.works.send_modify(|works| *works += 1);
            let works = Works(Arc::clone(&self.0));
            if *asked.borrow_and_update() == 0 {
                return works;
            }
            drop(works);
            // An error means that the group is gone, which the caller finds out.
            let _ = asked.wait_for(|asked| *asked == 0).await;
        }
    }

    /// How many ask the work to rest.
    pub(crate) fn asked(&self) -> watch::Receiver<usize> {
        self.0.asked.subscribe()
    }

    /// Says whether nothing is under way, and nothing begins before the work may go on.
    pub(crate) fn say(&self, rests: bool) {
        self.0.rests.send_if_modified(|said| {
            let changed = *said != rests;
            *said = rests;
            changed
        });
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.asked.send_modify(|asked| *asked -= 1);
    }
}

impl Drop for Works {
    fn drop(&mut self) {
        self.0.works.send_modify(|works| *works -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn the_work_is_asked_until_the_hand_over_is_over() {
        let rest = Rest::default();
        let asked = rest.asked();
        let work = async {
            let mut asked = rest.asked();
            asked.wait_for(|asked| *asked > 0).await.unwrap();
            rest.say(true);
        };
        let (begun, ()) = tokio::join!(rest.begin(LONG), work);
        assert_eq!(*asked.borrow(), 1);
        drop(begun);
        assert_eq!(*asked.borrow(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_rest_holds_nothing_up() {
        let rest = Rest::default();
        let begun = timeout(LONG, rest.begin(LONG / 2)).await;
        assert!(begun.is_ok());
    }

    #[tokio::test]
    async fn callers_that_work_by_themselves_are_waited_for_and_wait() {
        let rest = Rest::default();
        let works = rest.works().await;
        let begun = rest.begin_of_callers(LONG);
        let mut begun = std::pin::pin!(begun);
        assert!(futures::poll!(&mut begun).is_pending());
        drop(works);
        let asked = begun.await;
        let next = rest.works();
        let mut next = std::pin::pin!(next);
        assert!(futures::poll!(&mut next).is_pending());
        drop(asked);
        next.await;
    }
}
