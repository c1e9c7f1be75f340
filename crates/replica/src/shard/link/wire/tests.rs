use engine::dispatch::{Credit, Ended};
use model::{Epoch, Generation, Term, Timestamp};

use super::*;

const SHARD: ShardNumber = ShardNumber(3);
const SESSION: SessionId = SessionId {
    node: NodeId(2),
    number: 17,
};

fn ack(counter: u64) -> AckId {
    AckId {
        subscription: Incarnation(9),
        key: KeyHash([7; 16]),
        message: MessageId::new(counter, SHARD),
        generation: Generation {
            epoch: Epoch(1),
            term: Term(4),
            counter,
        },
    }
}

fn delivered(counter: u64, message: &'static str) -> Delivered {
    Delivered {
        ack: ack(counter),
        published: Timestamp(counter),
        message: Bytes::from_static(message.as_bytes()),
        delivery_attempt: 2,
    }
}

fn event(what: SessionChange) -> Reply {
    Reply::Event(SessionEvent {
        shard: SHARD,
        session: SESSION,
        what,
    })
}

fn publish() -> Call {
    asked(Ask::Publish {
        topic: Incarnation(5),
        strand: KeyHash([1; 16]),
        keyed: true,
        deadline: Duration::from_millis(1_234),
    })
}

fn asked(ask: Ask) -> Call {
    Call::Ask {
        call: CallId(1),
        shard: SHARD,
        ask,
    }
}

#[test]
fn calls_come_back() {
    let session = |say| Call::Session {
        shard: SHARD,
        session: SESSION,
        say,
    };
    let calls = [
        Call::Hello {
            node: NodeId(1),
            number: 4,
        },
        asked(Ask::Acknowledge {
            subscription: Incarnation(9),
            ids: vec![ack(1), ack(2)],
        }),
        asked(Ask::ModifyDeadline {
            subscription: Incarnation(9),
            ids: vec![(ack(1), Duration::from_secs(30))],
        }),
        Call::Cancel { call: CallId(4) },
        session(Say::Grant {
            credit: Credit {
                messages: 3,
                bytes: 4,
            },
        }),
        session(Say::Close {
            returned: vec![ack(3)],
        }),
    ];
    for call in calls {
        let (back, run) = Call::decode(call.encode(None)).unwrap();
        assert_eq!((back, run), (call, RunPayload::default()));
    }
}

#[test]
fn a_publish_carries_its_payload_beside_its_head() {
    let run = RunPayload::new(&[Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
    let part = publish().encode(Some(run.clone()));
    assert_eq!(
        part.payloads[0].as_ptr(),
        run.as_bytes().as_ptr(),
        "it is not copied"
    );
    assert_eq!(Call::decode(part).unwrap(), (publish(), run));
}

#[test]
fn replies_come_back_with_their_messages() {
    let replies = [
        Reply::Beat {
            elapsed: Duration::from_secs(9),
        },
        Reply::Answer {
            call: CallId(1),
            shard: SHARD,
            what: Returned::Acknowledged(vec![AckReply::Stale, AckReply::Acknowledged]),
        },
        Reply::Leader {
            shard: SHARD,
            leader: Some(NodeId(3)),
        },
        event(SessionChange::Deliver {
            deliveries: vec![delivered(1, "one"), delivered(2, "")],
            granted: Credit {
                messages: 2,
                bytes: 100,
            },
        }),
        event(SessionChange::Ended { why: Ended::Reopen }),
    ];
    for reply in replies {
        assert_eq!(Reply::decode(reply.clone().encode()).unwrap(), reply);
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let mut part = publish().encode(None);
    assert_eq!(Call::decode(part.clone()), Err(Malformed::Payloads(0)));
    part.payloads = vec![Bytes::from_static(b"not a run")];
    assert_eq!(Call::decode(part.clone()), Err(Malformed::Run));
    part.head = Bytes::from_static(&[9]);
    assert_eq!(Call::decode(part.clone()), Err(Malformed::Format(Some(9))));
    part.head = Bytes::new();
    assert_eq!(Call::decode(part.clone()), Err(Malformed::Format(None)));
    part.head = Bytes::from_static(&[FORMAT, 200]);
    assert!(matches!(Call::decode(part), Err(Malformed::Head(_))));
    let deliver = event(SessionChange::Deliver {
        deliveries: vec![delivered(1, "one")],
        granted: Credit::default(),
    });
    let mut part = deliver.encode();
    part.payloads.clear();
    assert_eq!(Reply::decode(part), Err(Malformed::Payloads(0)));
}
