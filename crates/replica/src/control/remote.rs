//! Calls to the control group's leader on another node, and from other nodes.

use model::NodeId;
use proto::cluster::control_client::ControlClient as Caller;
use proto::cluster::control_reply::Outcome;
use proto::cluster::control_server::{Control, ControlServer};
use proto::cluster::{ControlReply, ControlRequest, Refusal};
use tokio::time::Instant;
use tonic::{Code, Request, Response, Status};

use super::client::{ControlClient, Refused};
use super::request::{Answer, Call, decode, encode};
use crate::Unavailable;
use crate::peer::{Peers, Use};

/// Asks the node `leader`, which must answer before `until`.
pub(super) async fn call(
    peers: &Peers,
    leader: NodeId,
    call: &Call,
    until: Instant,
) -> Result<Answer, Refused> {
    let channel = peers.channel(leader, Use::Calls);
    let channel = channel.map_err(|_| Refused::not_done(None))?;
    let mut request = Request::new(ControlRequest {
        call: encode(call).into(),
    });
    request.set_timeout(until.saturating_duration_since(Instant::now()));
    match Caller::new(channel).call(request).await {
        Ok(reply) => outcome(reply.into_inner()),
        Err(status) => Err(failed(&status)),
    }
}

fn outcome(reply: ControlReply) -> Result<Answer, Refused> {
    match reply.outcome {
        // An answer that is not understood was given nevertheless.
        Some(Outcome::Answer(answer)) => decode(&answer).ok_or_else(Refused::unknown),
        Some(Outcome::Refusal(Refusal { unknown, leader })) => Err(Refused {
            why: Unavailable { unknown },
            leader: leader.map(NodeId),
        }),
        None => Err(Refused::unknown()),
    }
}

/// A call that failed on its way was done, unless it certainly never arrived.
fn failed(status: &Status) -> Refused {
    match status.code() {
        Code::FailedPrecondition | Code::Unimplemented | Code::InvalidArgument => {
            Refused::not_done(None)
        }
        Code::Unavailable if never_sent(status) => Refused::not_done(None),
        _ => Refused::unknown(),
    }
}

/// Whether no connection could be made.
fn never_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Answers other nodes.
pub(super) struct Service(pub(super) ControlClient);

impl ControlClient {
    /// The service that other nodes call.
    pub(crate) fn service(&self) -> ControlServer<impl Control> {
        ControlServer::new(Service(self.clone()))
    }
}

#[tonic::async_trait]
impl Control for Service {
    async fn call(
        &self,
        request: Request<ControlRequest>,
    ) -> Result<Response<ControlReply>, Status> {
        let call: Call = decode(&request.into_inner().call)
            .ok_or_else(|| Status::invalid_argument("the call is of a format not known here"))?;
        let outcome = match self.0.ask_here(call).await {
            Ok(answer) => Outcome::Answer(encode(&answer).into()),
            Err(Unavailable { unknown }) => Outcome::Refusal(Refusal {
                unknown,
                leader: self.0.leader().map(|leader| leader.0),
            }),
        };
        Ok(Response::new(ControlReply {
            outcome: Some(outcome),
        }))
    }
}
