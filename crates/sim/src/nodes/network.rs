//! The network of a simulation: turmoil's, with the delays and faults of the world that it is in.

use std::io;
use std::net::SocketAddr;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use replica::network::{Connection, Listener, Transport};
use turmoil::net::{TcpListener, TcpStream};

/// What nodes and clients of a simulation dial and listen through.
pub(super) struct Virtual;

impl Transport for Virtual {
    fn connect(&self, address: String) -> BoxFuture<'static, io::Result<Connection>> {
        Box::pin(async move { Ok(Connection::new(TcpStream::connect(address).await?)) })
    }

    fn listen(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Listener>> {
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            let connections = stream::unfold(listener, |listener| async move {
                let accepted = listener.accept().await;
                let accepted = accepted.map(|(stream, _)| Connection::new(stream));
                Some((accepted, listener))
            });
            Ok(Listener::new(address, connections.boxed()))
        })
    }
}
