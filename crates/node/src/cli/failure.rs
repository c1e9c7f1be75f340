//! Why a command failed, what to do next, and its exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use thiserror::Error;
use tonic::{Code, Status};

use crate::config::ConfigError;
use crate::start::StartError;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// An argument does not make sense.
    #[error("{0}")]
    Usage(String),
    /// No node answers.
    #[error(
        "no node answers at {endpoint} ({why}): start one with \"orderly serve\", or name another \
         with --endpoint"
    )]
    Unreachable {
        /// Where it was looked for.
        endpoint: String,
        /// What the transport says.
        why: String,
    },
    /// No node listens for operators there.
    #[error(
        "no node listens for operators at {endpoint} ({why}). By default a node does so on its own \
         machine only, 2,000 ports above the one for clients: run the command there, or name the \
         listener with --admin-endpoint. For other machines a node needs \"admin_listen\" and [tls] \
         in its configuration, and the command --ca, --certificate and --key"
    )]
    NoOperators {
        /// Where it was looked for.
        endpoint: String,
        /// What the transport says.
        why: String,
    },
    /// The node refused the call.
    #[error("{code}: {text}", code = code_name(.0.code()), text = .0.message())]
    Refused(Box<Status>),
    /// What is asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// The node did not start, or stopped.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A configuration can't be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file can't be written.
    #[error("{path} can't be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The runtime did not start.
    #[error("the runtime can't start: {0}")]
    Runtime(#[source] std::io::Error),
    /// Someone pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// A check that the command makes has failed; the text says which.
    #[error("{0}")]
    Check(String),
}

impl Failure {
    /// An update that would change nothing.
    pub(crate) fn nothing_to_update() -> Self {
        Failure::Usage("nothing to update: give at least one setting".into())
    }

    /// 2 for a wrong call, 3 for a node that can't be reached, 4 for one that refused, 5 for a
    /// failed check, 1 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Usage(_) | Failure::Config(_) => 2,
            Failure::Unreachable { .. } | Failure::NoOperators { .. } => 3,
            Failure::Refused(_) | Failure::NotFound(_) => 4,
            Failure::Check(_) => 5,
            Failure::Start(_)
            | Failure::Write { .. }
            | Failure::Runtime(_)
            | Failure::Interrupted => 1,
        })
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Refused(Box::new(status))
    }
}

/// The code as the API's documentation spells it.
pub(crate) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
