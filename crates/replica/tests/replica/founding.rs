//! A cluster is born only when someone asks for it.

use std::sync::Arc;
use std::time::Duration;

use model::{GroupId, RegistryNumber};
use replica::{Clock, Replicas, StartError};
use store::{Identity, MemoryDisk, Pace, Start, Store};
use tokio::sync::mpsc;

use crate::node::{Disk, NODE, found, settings, soon};

#[tokio::test]
async fn an_empty_disk_starts_no_cluster() {
    let disk = Disk::memory();
    let (forwards, _letters) = mpsc::channel(1);
    let store = disk.new_store();
    let start = Replicas::start(settings(), store.clone(), Clock::machine(), forwards);
    let refused = soon("the refusal", start).await.err();
    assert_eq!(refused, Some(StartError::NotFounded));
    let groups = store.groups().unwrap();
    assert_eq!(groups, [], "nothing was written on the way");
}

/// A replica that is still applying when the founding has ended would meet its own next start, and
/// the same entry would be applied twice.
#[tokio::test(start_paused = true)]
async fn a_founding_ends_when_every_replica_has_applied_its_first_entries() {
    let store = slow_store();
    assert_eq!(found(&store, 4).await, Ok(()));
    let groups = store.groups().unwrap();
    assert!(groups.len() > 4, "{groups:?}");
    for group in groups {
        let logged = store.log_bounds(group).unwrap().last;
        let applied = store.applied(group).unwrap();
        assert_eq!(applied.map(|applied| applied.at), logged, "{group}");
    }
}

#[tokio::test]
async fn a_cluster_is_not_founded_twice() {
    let disk = Disk::memory();
    let store = disk.new_store();
    assert_eq!(found(&store, 2).await, Ok(()));
    assert_eq!(found(&store, 2).await, Err(StartError::AlreadyFounded));
}

#[tokio::test]
async fn a_group_that_is_gone_is_missed() {
    let disk = Disk::memory();
    let store = disk.new_store();
    assert_eq!(found(&store, 1).await, Ok(()));
    // The catalogue of a cluster, on a disk that holds none of its other groups.
    let larger = Disk::memory().new_store();
    assert_eq!(found(&larger, 2).await, Ok(()));
    let control = GroupId::Control;
    let entries = larger
        .read_log(control, 0..100, usize::MAX, store::Payloads::Joined)
        .unwrap();
    let torn = Disk::memory().new_store();
    torn.append(control, entries, Box::new(|written| written.unwrap()));
    let (forwards, _letters) = mpsc::channel(1);
    let start = Replicas::start(settings(), torn, Clock::machine(), forwards);
    let refused = soon("the refusal", start).await.err();
    let missing = GroupId::Registry(RegistryNumber(1));
    assert_eq!(refused, Some(StartError::Missing(missing)));
}

/// A store on an empty disk that takes a while for each batch, so that groups which have begun
/// later are later at each step.
fn slow_store() -> Store {
    let (tell, mut waiting) = mpsc::unbounded_channel();
    let identity = Identity {
        cluster: "memory".to_owned(),
        node: NODE,
        called: None,
    };
    let settings = store::Settings::new("memory", Start::New(identity));
    let pace = Pace::Driven(Arc::new(move |_| {
        // It fails only at the end of the test.
        let _ = tell.send(());
    }));
    let store = Store::memory(&MemoryDisk::new(), settings, pace).unwrap();
    let disk = store.clone();
    tokio::spawn(async move {
        while waiting.recv().await.is_some() {
            // sleep: virtual time, which passes when nobody has anything else to do
            tokio::time::sleep(Duration::from_millis(1)).await;
            disk.write_waiting();
        }
    });
    store
}
