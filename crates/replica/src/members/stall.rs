//! A disk that takes nothing any more, and fails nothing either.
//!
//! A leader on it still talks: its heartbeats need no disk, and the others write what it sends. But
//! its answers come late or never, so that it must not lead.

use std::collections::BTreeMap;
use std::time::Duration;

use model::GroupId;
use tokio::time::Instant;

use crate::raft::Core;

/// How long an entry may take to the disk.
const WRITE_MAX: Duration = Duration::from_secs(1);

/// For groups with entries that are not on the disk yet: the last that is, and since when it is
/// the last.
#[derive(Default)]
pub(super) struct Stalls(BTreeMap<GroupId, (u64, Instant)>);

impl Stalls {
    /// Looks at all groups that this node leads, and answers whether one of them waits for the
    /// disk for too long. They all share it.
    pub(super) fn see<'a>(&mut self, led: impl Iterator<Item = &'a Core>) -> bool {
        let mut waiting = BTreeMap::new();
        for core in led {
            if let Some(written) = core.unwritten_after() {
                let known = self
                    .0
                    .get(&core.group())
                    .filter(|(last, _)| *last == written);
                let since = known.map_or_else(Instant::now, |(_, since)| *since);
                waiting.insert(core.group(), (written, since));
            }
        }
        self.0 = waiting;
        self.0
            .values()
            .any(|(_, since)| since.elapsed() >= WRITE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use engine::command::Proposal;
    use model::{NodeId, ShardNumber, Timestamp};
    use store::{Identity, MemoryDisk, Pace, Start, Store};
    use tokio::sync::mpsc;

    use super::*;
    use crate::groups::Groups;
    use crate::peer::Peers;
    use crate::settings::Settings;

    const NODE: NodeId = NodeId(1);
    const GROUP: GroupId = GroupId::Shard(ShardNumber(1));

    /// A disk that works until it is told to hang.
    fn disk() -> (Store, Arc<AtomicBool>) {
        let start = Start::New(Identity {
            cluster: "test".to_owned(),
            node: NODE,
            called: None,
        });
        let (wait, mut waits) = mpsc::unbounded_channel();
        let pace = Pace::Driven(Arc::new(move |_| wait.send(()).expect("it is driven")));
        let settings = store::Settings::new("memory", start);
        let store = Store::memory(&MemoryDisk::new(), settings, pace).expect("it is new");
        let hangs = Arc::new(AtomicBool::new(false));
        let (disk, hung) = (store.clone(), hangs.clone());
        tokio::spawn(async move {
            while let Some(()) = waits.recv().await {
                if !hung.load(Ordering::Relaxed) {
                    disk.write_waiting();
                }
            }
        });
        (store, hangs)
    }

    fn nothing() -> Proposal {
        Proposal {
            at: Timestamp(1),
            commands: Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_hangs_is_seen_and_one_that_works_is_not() {
        let (store, hangs) = disk();
        let groups = Groups::new(Settings::alone(NODE), store, Peers::none(NODE));
        let core = groups.open(GROUP).await.expect("the disk works");
        core.found(BTreeSet::from([NODE]))
            .await
            .expect("it is empty");
        core.caught_up().await.expect("it runs");
        let mut stalls = Stalls::default();
        for _ in 0..3 {
            assert!(core.propose(None, nothing()).await.await.is_ok());
            assert!(!stalls.see([&core].into_iter()));
            tokio::time::advance(2 * WRITE_MAX).await;
        }

        hangs.store(true, Ordering::Relaxed);
        let _pending = core.propose(None, nothing()).await;
        while core.unwritten_after().is_none() {
            tokio::task::yield_now().await;
        }
        assert!(!stalls.see([&core].into_iter()), "it may only be slow");
        tokio::time::advance(WRITE_MAX).await;
        assert!(stalls.see([&core].into_iter()), "it is not slow any more");
    }
}
