//! The asked side: what other replicas of a group want of the one on this node.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use openraft::ReadPolicy;
use proto::cluster;
use tracing::warn;

use super::super::{Core, Stopped};
use super::wire;

/// Answers to appends, in their order.
pub(crate) type Replies =
    Pin<Box<dyn Stream<Item = Result<cluster::AppendReply, Unanswered>> + Send>>;

/// Why a call of another replica has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// *Refused*: it is not a call of this version's program.
    Malformed,
    /// *Refused*: this node does not lead.
    NotLeading,
    /// *Retry*: the checkpoint is not this replica's state.
    NotInstalled(String),
    /// *Retry*: the replica on this node has stopped.
    Stopped(Stopped),
}

impl Core {
    /// Appends what arrives, in order. A malformed request ends the stream.
    pub(crate) fn append(
        &self,
        requests: impl Stream<Item = cluster::AppendRequest> + Send + 'static,
    ) -> Replies {
        let group = self.group();
        let requests = requests
            .map(wire::to_append_request)
            .take_while(move |request| {
                if request.is_none() {
                    warn!(%group, "a leader sends what is no append");
                }
                std::future::ready(request.is_some())
            })
            .filter_map(std::future::ready);
        let core = self.clone();
        let replies = self.raft().stream_append(requests).map(move |appended| {
            let appended = appended.map_err(|fatal| Unanswered::Stopped(core.stopped(fatal)))?;
            Ok(wire::append_reply(appended, !core.has_room(core.node())))
        });
        Box::pin(replies)
    }

    /// As [`Core::append`], for one request.
    pub(crate) async fn append_one(
        &self,
        request: cluster::AppendRequest,
    ) -> Result<cluster::AppendReply, Unanswered> {
        let request = wire::to_append_request(request).ok_or(Unanswered::Malformed)?;
        let previous = request.prev_log_id;
        let last = request.entries.last().map(|entry| entry.log_id);
        let last = last.or(previous);
        let appended = self.raft().append_entries(request).await;
        let appended = appended.map_err(|fatal| Unanswered::Stopped(self.stopped(fatal)))?;
        let result = appended.into_stream_result(previous, last);
        Ok(wire::append_reply(result, !self.has_room(self.node())))
    }

    /// A vote for the candidate, or none.
    pub(crate) async fn vote(
        &self,
        request: cluster::VoteRequest,
    ) -> Result<cluster::VoteReply, Unanswered> {
        let request = wire::to_vote_request(request).ok_or(Unanswered::Malformed)?;
        let response = self.raft().vote(request).await;
        let response = response.map_err(|fatal| Unanswered::Stopped(self.stopped(fatal)))?;
        Ok(wire::vote_reply(&response))
    }

    /// Whether the candidate would have this replica's vote.
    pub(crate) async fn pre_vote(
        &self,
        request: cluster::VoteRequest,
    ) -> Result<cluster::VoteReply, Unanswered> {
        let request = wire::to_vote_request(request).ok_or(Unanswered::Malformed)?;
        let response = self.raft().pre_vote(request).await;
        let response = response.map_err(|fatal| Unanswered::Stopped(self.stopped(fatal)))?;
        Ok(wire::vote_reply(&response))
    }

    /// Takes the leadership over, or lets another replica do so.
    pub(crate) async fn take_over(
        &self,
        request: cluster::TransferLeaderRequest,
    ) -> Result<cluster::TransferLeaderReply, Unanswered> {
        let request = wire::to_transfer_request(request).ok_or(Unanswered::Malformed)?;
        let response = self.raft().handle_transfer_leader(request).await;
        let response = response.map_err(|fatal| Unanswered::Stopped(self.stopped(fatal)))?;
        Ok(wire::transfer_reply(&response))
    }

    /// How far any state must have come to be as new as what this leader has answered.
    pub(crate) async fn read_index(&self) -> Result<cluster::ReadIndexReply, Unanswered> {
        let linearizer = self.raft().get_read_linearizer(ReadPolicy::LeaseRead).await;
        let linearizer = linearizer.map_err(|_| Unanswered::NotLeading)?;
        let at = linearizer.read_log_id().log_id();
        Ok(cluster::ReadIndexReply {
            at: Some(wire::log_position(at)),
        })
    }
}
