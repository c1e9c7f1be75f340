//! A connection with a peer, and who is at its other end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use super::identity::Identity;
use super::tls::explained;
use crate::network::{Carrier, Connection};

/// A connection, and who is at its other end.
pub(super) struct Wire {
    connection: Connection,
    proven: Proven,
}

/// Who the other end has proven to be; nobody where connections are not secured.
#[derive(Clone, Debug)]
pub(super) struct Proven(pub(super) Option<Identity>);

impl Wire {
    pub(super) fn plain(connection: Connection) -> Self {
        Wire {
            connection,
            proven: Proven(None),
        }
    }

    pub(super) fn secured(carrier: impl Carrier + 'static, identity: Identity) -> Self {
        Wire {
            connection: Connection::new(carrier),
            proven: Proven(Some(identity)),
        }
    }
}

impl Connected for Wire {
    type ConnectInfo = Proven;

    fn connect_info(&self) -> Proven {
        self.proven.clone()
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.connection).poll_read(context, into);
        match self.proven.0 {
            // Whether its certificate was taken the one that dials hears only now.
            Some(_) => read.map_err(explained),
            None => read,
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}
