use engine::command::Command;
use engine::shard;
use model::run::RunPayload;
use model::{Incarnation, KeyHash, Timestamp};

use super::*;

fn voters(nodes: &[u64]) -> BTreeSet<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

fn publish(message: &'static [u8]) -> Command {
    Command::Shard(shard::Command::Publish(shard::Publish {
        topic: Incarnation(1),
        strand: KeyHash([2; 16]),
        keyed: true,
        opening: None,
        count: 1,
        bytes: message.len() as u64,
        payload: RunPayload::new(&[Bytes::from_static(message)]),
    }))
}

#[test]
fn entries_of_every_kind_come_back() {
    let joint = RaftMembers::new_with_defaults(vec![voters(&[1, 2]), voters(&[2])], voters(&[9]));
    let proposal = Proposal {
        at: Timestamp(7),
        commands: vec![publish(b"one"), publish(b"two")],
    };
    let payloads = [
        EntryPayload::Blank,
        EntryPayload::Membership(joint.clone()),
        EntryPayload::Normal(Proposed(Arc::new(proposal.clone()))),
    ];
    for payload in payloads {
        let written = Entry {
            log_id: log_id(Term(4), 5),
            payload,
        };
        let read = from_store(to_store(&written)).unwrap();
        assert_eq!(read.log_id, written.log_id);
        match read.payload {
            EntryPayload::Blank => assert!(matches!(written.payload, EntryPayload::Blank)),
            EntryPayload::Membership(members) => assert_eq!(members, joint),
            EntryPayload::Normal(Proposed(read)) => assert_eq!(*read, proposal),
        }
    }
}

#[test]
fn an_entry_read_without_payloads_has_empty_ones() {
    let proposal = Proposal {
        at: Timestamp(7),
        commands: vec![publish(b"one")],
    };
    let mut stored = to_store(&Entry {
        log_id: log_id(Term(4), 5),
        payload: EntryPayload::Normal(Proposed(Arc::new(proposal))),
    });
    assert_eq!(stored.payloads.len(), 1);
    stored.payloads.clear();
    let EntryPayload::Normal(Proposed(read)) = from_store(stored).unwrap().payload else {
        panic!("it was an entry with commands");
    };
    assert!(read.payloads().all(RunPayload::is_empty));
}

#[test]
fn votes_and_memberships_come_back() {
    for vote in [Vote::new(7, NodeId(3)), Vote::new_committed(8, NodeId(4))] {
        assert_eq!(vote_from_store(&vote_to_store(&vote)).unwrap(), vote);
    }
    let members = RaftMembers::new_with_defaults(vec![voters(&[1, 2, 3])], voters(&[4]));
    for membership in [
        Membership::default(),
        Membership::new(Some(log_id(Term(2), 6)), members),
    ] {
        let read = membership_from_store(&membership_to_store(&membership));
        assert_eq!(read.unwrap(), membership);
    }
}

#[test]
fn bytes_of_another_format_are_refused() {
    let vote = vote_to_store(&Vote::new(7, NodeId(3)));
    let later: Bytes = [&[FORMAT + 1], &vote[1..]].concat().into();
    assert!(vote_from_store(&later).is_err());
    assert!(vote_from_store(&[]).is_err());
    assert!(membership_from_store(&vote[..2]).is_err());
    let head = Bytes::from_static(&[FORMAT, 9]);
    let payloads = Vec::new();
    let at = Position { term: 1, index: 1 };
    assert!(from_store(LogEntry { at, head, payloads }).is_err());
}
