//! Which session a key goes to: rendezvous hashing, so that a session that comes or goes moves
//! only the keys that it gets or had.

use model::{KeyHash, SessionId};

/// The session with the highest weight for the key.
pub(super) fn choose(
    strand: KeyHash,
    sessions: impl Iterator<Item = SessionId>,
) -> Option<SessionId> {
    sessions.max_by_key(|session| (weight(strand, *session), *session))
}

/// Strands are hashes already; it is enough to mix the session in.
fn weight(strand: KeyHash, session: SessionId) -> u64 {
    let key = u128::from_be_bytes(strand.0);
    let key = (key >> 64) as u64 ^ key as u64;
    mix(key ^ mix(session.number ^ mix(session.node.0)))
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): each bit of the input changes about half
/// of the output's.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use model::NodeId;

    use super::*;

    fn sessions(count: u64) -> impl Iterator<Item = SessionId> {
        (1..=count).map(|number| SessionId {
            node: NodeId(1),
            number,
        })
    }

    fn strand(number: u64) -> KeyHash {
        KeyHash(u128::from(mix(number)).to_be_bytes())
    }

    #[test]
    fn keys_spread_evenly() {
        let mut keys = [0_u32; 11];
        for key in 0..10_000 {
            keys[choose(strand(key), sessions(10)).unwrap().number as usize] += 1;
        }
        for session in &keys[1..] {
            assert!((800..1_200).contains(session), "{keys:?}");
        }
    }

    #[test]
    fn a_session_that_joins_takes_only_its_share() {
        for key in 0..1_000 {
            let before = choose(strand(key), sessions(9)).unwrap();
            let after = choose(strand(key), sessions(10)).unwrap();
            assert!(after == before || after.number == 10);
        }
    }
}
