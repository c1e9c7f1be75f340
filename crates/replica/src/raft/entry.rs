//! Log entries, votes and memberships, as the store keeps them.
//!
//! The store knows positions and payloads and does not look inside of the rest: that is written
//! here, each with a format first.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use engine::command::Proposal;
use model::{NodeId, Term};
use openraft::EntryPayload;
use serde::de::DeserializeOwned;
use store::{LogEntry, Position};

use super::{Entry, LogId, Membership, Proposed, Vote, log_id};

/// The format of everything written by this file.
const FORMAT: u8 = 1;

/// The second byte of an entry says what it is.
const BLANK: u8 = 0;
const COMMANDS: u8 = 1;
const MEMBERSHIP: u8 = 2;

/// Voters, of two configurations while one replaces the other, and all nodes.
type Members = (Vec<BTreeSet<NodeId>>, BTreeSet<NodeId>);
/// openraft's form of the same.
type RaftMembers = openraft::Membership<NodeId, openraft::impls::EmptyNode>;

/// Where an entry stands, for the store.
pub(super) fn position(at: &LogId) -> Position {
    Position {
        term: at.leader_id.term,
        index: at.index,
    }
}

/// Where an entry stands, for openraft.
pub(super) fn at(position: Position) -> LogId {
    log_id(Term(position.term), position.index)
}

/// An entry on its way to the disk.
pub(super) fn to_store(entry: &Entry) -> LogEntry {
    let (head, payloads) = match &entry.payload {
        EntryPayload::Blank => (vec![FORMAT, BLANK], Vec::new()),
        EntryPayload::Normal(Proposed(proposal)) => {
            let mut head = vec![FORMAT, COMMANDS];
            head.extend_from_slice(&proposal.encode());
            (head, proposal.payloads().cloned().collect())
        }
        EntryPayload::Membership(members) => {
            let head = postcard::to_extend(&to_members(members), vec![FORMAT, MEMBERSHIP]);
            (
                head.expect("node ids are plain data, which encodes"),
                vec![],
            )
        }
    };
    LogEntry {
        at: position(&entry.log_id),
        head: head.into(),
        payloads,
    }
}

/// Reads what [`to_store`] made. The payloads come along if the store brought them.
///
/// # Errors
/// When the bytes are not an entry of this program.
pub(super) fn from_store(stored: LogEntry) -> io::Result<Entry> {
    let at = at(stored.at);
    let malformed = || malformed(&format!("log entry {at}"));
    let payload = match &stored.head[..] {
        [FORMAT, BLANK] => EntryPayload::Blank,
        [FORMAT, COMMANDS, commands @ ..] => {
            let mut proposal = Proposal::decode(commands).map_err(io::Error::other)?;
            if !stored.payloads.is_empty() {
                proposal.attach_payloads(stored.payloads);
            }
            EntryPayload::Normal(Proposed(Arc::new(proposal)))
        }
        [FORMAT, MEMBERSHIP, members @ ..] => {
            let members = decode(members).ok_or_else(malformed)?;
            EntryPayload::Membership(from_members(members))
        }
        _ => return Err(malformed()),
    };
    Ok(Entry {
        log_id: at,
        payload,
    })
}

/// A vote on its way to the disk.
pub(super) fn vote_to_store(vote: &Vote) -> Bytes {
    let leader = &vote.leader_id;
    let fields = (leader.term, leader.voted_for, vote.committed);
    encode(&fields)
}

/// Reads what [`vote_to_store`] made.
///
/// # Errors
/// When the bytes are not a vote of this program.
pub(super) fn vote_from_store(bytes: &[u8]) -> io::Result<Vote> {
    let fields: Option<(u64, NodeId, bool)> = decode_formatted(bytes);
    let (term, voted_for, committed) = fields.ok_or_else(|| malformed("vote"))?;
    Ok(match committed {
        true => Vote::new_committed(term, voted_for),
        false => Vote::new(term, voted_for),
    })
}

/// The membership of an applied state on its way to the disk.
pub(super) fn membership_to_store(membership: &Membership) -> Bytes {
    let since = membership.log_id().as_ref().map(position);
    let since = since.map(|since| (since.term, since.index));
    encode(&(since, to_members(membership.membership())))
}

/// Reads what [`membership_to_store`] made.
///
/// # Errors
/// When the bytes are not a membership of this program.
pub(super) fn membership_from_store(bytes: &[u8]) -> io::Result<Membership> {
    let fields: Option<(Option<(u64, u64)>, Members)> = decode_formatted(bytes);
    let (since, members) = fields.ok_or_else(|| malformed("membership"))?;
    let since = since.map(|(term, index)| log_id(Term(term), index));
    Ok(Membership::new(since, from_members(members)))
}

fn to_members(members: &RaftMembers) -> Members {
    let nodes = members.nodes().map(|(node, _)| *node).collect();
    (members.get_joint_config().clone(), nodes)
}

fn from_members((voters, nodes): Members) -> RaftMembers {
    RaftMembers::new_with_defaults(voters, nodes)
}

fn encode(fields: &impl serde::Serialize) -> Bytes {
    let bytes = postcard::to_extend(fields, vec![FORMAT]);
    Bytes::from(bytes.expect("plain data always encodes"))
}

fn decode_formatted<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match bytes {
        [FORMAT, fields @ ..] => decode(fields),
        _ => None,
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((fields, [])) => Some(fields),
        _ => None,
    }
}

fn malformed(what: &str) -> io::Error {
    let text = format!("{what} is not in a format of this program");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests;
