use model::{Incarnation, KeyHash, MessageId};

use super::garbage::{Garbage, GarbageKey};
use super::lane::LaneKey;
use super::run::PayloadAt;
use super::shard::{Shard, ShardKey};
use super::strand_run::{StrandRun, StrandRunKey};
use super::*;

fn strand_run(topic: u64, strand: u8, first: u64) -> StrandRunKey {
    let (topic, first) = (Incarnation(topic), MessageId(first));
    StrandRunKey {
        topic,
        strand: KeyHash([strand; 16]),
        first,
    }
}

#[test]
fn keys_round_trip_and_sort_by_their_fields() {
    let keys = [
        strand_run(1, 9, 9),
        strand_run(2, 1, 256),
        strand_run(2, 1, 65_536),
        strand_run(2, 2, 1),
    ];
    let bytes: Vec<_> = keys.iter().map(row_key::<StrandRun>).collect();
    assert!(bytes.is_sorted());
    for (key, bytes) in keys.iter().zip(&bytes) {
        assert_eq!(StrandRunKey::read(&bytes[1..]).as_ref(), Some(key));
    }
    let at = PayloadAt {
        term: 1,
        index: 2,
        number: 3,
    };
    let garbage = row_key::<Garbage>(&GarbageKey(at));
    assert_eq!(GarbageKey::read(&garbage[1..]), Some(GarbageKey(at)));
}

#[test]
fn a_key_of_another_length_is_refused() {
    let bytes = row_key::<StrandRun>(&strand_run(1, 2, 3));
    assert!(LaneKey::read(&bytes[1..bytes.len() - 1]).is_none());
    assert!(StrandRunKey::read(&[&bytes[1..], &[0]].concat()).is_none());
}

#[test]
fn a_cut_lengthened_or_newer_value_is_corrupt() {
    let key = row_key::<Shard>(&ShardKey);
    let value = write_row(&Shard {
        counter: 300,
        ..Shard::default()
    });
    assert_eq!(read_row::<Shard>(&key, &value).unwrap().counter, 300);
    let newer = [&[FORMAT + 1], &value[1..]].concat();
    for bad in [
        &value[..value.len() - 1],
        &[&value[..], &[0]].concat(),
        &newer,
        &[],
    ] {
        assert!(matches!(
            read_row::<Shard>(&key, bad),
            Err(Fault::CorruptRow { table: 1, .. })
        ));
    }
}
