//! Raft's words as they travel between nodes.

use model::run::RunPayload;
use model::{GroupId, NodeId};
use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, TransferLeaderError,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use proto::cluster;
use proto::cluster::append_reply::Answer;
use proto::cluster::transfer_leader_reply::Refusal;
use store::{LogEntry, Position};

use super::super::entry::{at, from_store, position as stood, to_store};
use super::super::{Entry, LogId, Types, Vote};

/// The position of an entry, for the store.
pub(super) fn position(at: cluster::LogPosition) -> Position {
    Position {
        term: at.term,
        index: at.index,
    }
}

/// The position of an entry, as it travels.
pub(super) fn log_position(at: &LogId) -> cluster::LogPosition {
    let Position { term, index } = stood(at);
    cluster::LogPosition { term, index }
}

fn log_id(position: cluster::LogPosition) -> LogId {
    at(self::position(position))
}

pub(in crate::raft) fn ballot(vote: &Vote) -> cluster::Ballot {
    cluster::Ballot {
        term: vote.leader_id.term,
        node: vote.leader_id.voted_for.0,
        committed: vote.committed,
    }
}

pub(in crate::raft) fn to_vote(ballot: cluster::Ballot) -> Vote {
    let node = NodeId(ballot.node);
    match ballot.committed {
        true => Vote::new_committed(ballot.term, node),
        false => Vote::new(ballot.term, node),
    }
}

pub(super) fn append_request(
    group: GroupId,
    request: AppendEntriesRequest<Types>,
) -> cluster::AppendRequest {
    cluster::AppendRequest {
        group: group.to_number(),
        leader: Some(ballot(&request.vote)),
        previous: request.prev_log_id.as_ref().map(log_position),
        entries: request.entries.iter().map(log_entry).collect(),
        committed: request.leader_commit.as_ref().map(log_position),
    }
}

/// Reads what [`append_request`] made; `None` when it says no leader, or an entry is malformed.
pub(super) fn to_append_request(
    request: cluster::AppendRequest,
) -> Option<AppendEntriesRequest<Types>> {
    Some(AppendEntriesRequest {
        vote: to_vote(request.leader?),
        prev_log_id: request.previous.map(log_id),
        entries: request
            .entries
            .into_iter()
            .map(to_entry)
            .collect::<Option<_>>()?,
        leader_commit: request.committed.map(log_id),
    })
}

fn log_entry(entry: &Entry) -> cluster::LogEntry {
    let stored = to_store(entry);
    let payloads = stored.payloads.iter();
    cluster::LogEntry {
        term: stored.at.term,
        index: stored.at.index,
        head: stored.head,
        payloads: payloads.map(|payload| payload.as_bytes().clone()).collect(),
    }
}

fn to_entry(entry: cluster::LogEntry) -> Option<Entry> {
    let payloads = entry.payloads.into_iter().map(RunPayload::from_stored);
    let stored = LogEntry {
        at: Position {
            term: entry.term,
            index: entry.index,
        },
        head: entry.head,
        payloads: payloads.collect::<Result<_, _>>().ok()?,
    };
    from_store(stored).ok()
}

/// An answer to an append, of a node whose disk is `full` or not.
pub(super) fn append_reply(result: StreamAppendResult<Types>, full: bool) -> cluster::AppendReply {
    let answer = match result {
        Ok(last) => Answer::Matching(matching(last.as_ref())),
        Err(StreamAppendError::Conflict(at)) => Answer::Conflict(log_position(&at)),
        Err(StreamAppendError::HigherVote(vote)) => Answer::Higher(ballot(&vote)),
    };
    cluster::AppendReply {
        answer: Some(answer),
        full,
    }
}

pub(super) fn to_appended(reply: cluster::AppendReply) -> Option<StreamAppendResult<Types>> {
    Some(match reply.answer? {
        Answer::Matching(matching) => Ok(matching.last.map(log_id)),
        Answer::Conflict(at) => Err(StreamAppendError::Conflict(log_id(at))),
        Answer::Higher(higher) => Err(StreamAppendError::HigherVote(to_vote(higher))),
    })
}

fn matching(last: Option<&LogId>) -> cluster::Matching {
    cluster::Matching {
        last: last.map(log_position),
    }
}

pub(super) fn vote_request(group: GroupId, request: VoteRequest<Types>) -> cluster::VoteRequest {
    cluster::VoteRequest {
        group: group.to_number(),
        candidate: Some(ballot(&request.vote)),
        last: request.last_log_id.as_ref().map(log_position),
        transfer: request.leadership_transfer,
    }
}

pub(super) fn to_vote_request(request: cluster::VoteRequest) -> Option<VoteRequest<Types>> {
    Some(VoteRequest {
        vote: to_vote(request.candidate?),
        last_log_id: request.last.map(log_id),
        leadership_transfer: request.transfer,
    })
}

pub(super) fn vote_reply(response: &VoteResponse<Types>) -> cluster::VoteReply {
    cluster::VoteReply {
        ballot: Some(ballot(&response.vote)),
        granted: response.vote_granted,
        last: response.last_log_id.as_ref().map(log_position),
    }
}

pub(super) fn to_vote_response(reply: cluster::VoteReply) -> Option<VoteResponse<Types>> {
    Some(VoteResponse {
        vote: to_vote(reply.ballot?),
        vote_granted: reply.granted,
        last_log_id: reply.last.map(log_id),
    })
}

pub(super) fn transfer_request(
    group: GroupId,
    request: &TransferLeaderRequest<Types>,
) -> cluster::TransferLeaderRequest {
    cluster::TransferLeaderRequest {
        group: group.to_number(),
        leader: Some(ballot(request.from_leader())),
        to: request.to_node_id().0,
        last: request.last_log_id().map(log_position),
    }
}

pub(super) fn to_transfer_request(
    request: cluster::TransferLeaderRequest,
) -> Option<TransferLeaderRequest<Types>> {
    let (leader, last) = (to_vote(request.leader?), request.last.map(log_id));
    Some(TransferLeaderRequest::new(leader, NodeId(request.to), last))
}

pub(super) fn transfer_reply(
    response: &TransferLeaderResponse<Types>,
) -> cluster::TransferLeaderReply {
    let refusal = response.as_ref().err().map(|refusal| match refusal {
        TransferLeaderError::VoteChanged { actual, .. } => Refusal::Changed(ballot(actual)),
        TransferLeaderError::LogNotFlushed { actual, .. } => {
            Refusal::Behind(matching(actual.as_ref()))
        }
    });
    cluster::TransferLeaderReply { refusal }
}

pub(super) fn to_transfer_response(
    request: &TransferLeaderRequest<Types>,
    reply: cluster::TransferLeaderReply,
) -> TransferLeaderResponse<Types> {
    match reply.refusal {
        None => Ok(()),
        Some(Refusal::Changed(actual)) => Err(TransferLeaderError::VoteChanged {
            expected: *request.from_leader(),
            actual: to_vote(actual),
        }),
        Some(Refusal::Behind(actual)) => Err(TransferLeaderError::LogNotFlushed {
            expected: request.last_log_id().copied(),
            actual: actual.last.map(log_id),
        }),
    }
}
