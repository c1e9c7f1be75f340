//! A cluster is born only when someone asks for it.

use model::{GroupId, RegistryNumber};
use replica::{Clock, Replicas, StartError};
use tokio::sync::mpsc;

use crate::node::{Disk, found, settings, soon};

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
