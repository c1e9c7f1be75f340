//! The seam below which two networks differ: the sockets of this machine, and one that a simulation
//! makes up. Everything above is the same code on both.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::{Connected, TcpIncoming};

/// What a node dials others through, and listens on. Clones are the same.
#[derive(Clone)]
pub struct Network(Arc<dyn Transport>);

/// Makes connections.
pub trait Transport: Send + Sync {
    /// Dials `host:port`. A name is resolved anew each time.
    fn connect(&self, address: String) -> BoxFuture<'static, io::Result<Connection>>;

    /// Listens.
    fn listen(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Listener>>;
}

/// What carries bytes both ways.
pub trait Carrier: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Carrier for T {}

/// A connection, whatever it is made of.
pub struct Connection(Box<dyn Carrier>);

/// A port that is listened on.
pub struct Listener {
    address: SocketAddr,
    connections: BoxStream<'static, io::Result<Connection>>,
}

impl Network {
    /// The sockets of this machine.
    #[must_use]
    pub fn sockets() -> Self {
        Network::new(Sockets)
    }

    /// A network that is made so.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Network(Arc::new(transport))
    }

    /// Dials `host:port`.
    ///
    /// # Errors
    /// Those of the network.
    pub async fn connect(&self, address: &str) -> io::Result<Connection> {
        self.0.connect(address.to_owned()).await
    }

    /// Listens.
    ///
    /// # Errors
    /// Those of the network; the address may be in use.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        self.0.listen(address).await
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection that is made of this.
    pub fn new(carrier: impl Carrier + 'static) -> Self {
        Connection(Box::new(carrier))
    }
}

impl Listener {
    /// A port at `address` where these connections arrive.
    pub fn new(
        address: SocketAddr,
        connections: BoxStream<'static, io::Result<Connection>>,
    ) -> Self {
        Listener {
            address,
            connections,
        }
    }

    /// Where it listens: the port that was chosen, where any was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections, as they arrive.
    #[must_use]
    pub fn connections(self) -> BoxStream<'static, io::Result<Connection>> {
        self.connections
    }
}

/// The sockets of this machine.
struct Sockets;

impl Transport for Sockets {
    fn connect(&self, address: String) -> BoxFuture<'static, io::Result<Connection>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // Small answers must not wait for the acknowledgement of the packet before: that is
            // 40 ms.
            stream.set_nodelay(true)?;
            Ok(Connection::new(stream))
        })
    }

    fn listen(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Listener>> {
        Box::pin(async move { Ok(TcpListener::bind(address).await?.into()) })
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        let address = listener.local_addr();
        let address = address.expect("a port that is listened on has an address");
        // As where this side dials.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let connections = incoming.map(|stream| stream.map(Connection::new));
        Listener::new(address, connections.boxed())
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
