//! The distance between regions, emulated: a demonstration on one machine has none.
//!
//! The dialling side holds up what it sends and what it receives, each for the time that a packet
//! would take. Order is kept, and bandwidth is not limited.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::network::Carrier;

/// What is read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Pieces that are on their way in one direction. Beyond, the sender waits.
const PIECES_MAX: usize = 1_024;

/// The near end of a connection whose far end is so far away.
pub(super) fn far_away(carrier: impl Carrier + 'static, one_way: Duration) -> DuplexStream {
    let (near, inner) = duplex(PIECE_BYTES);
    let (from_here, to_here) = split(inner);
    let (from_there, to_there) = split(carrier);
    tokio::spawn(carry(from_here, to_there, one_way));
    tokio::spawn(carry(from_there, to_here, one_way));
    near
}

/// Carries bytes one way, until one of the ends closes.
async fn carry(from: impl AsyncRead + Unpin, to: impl AsyncWrite + Unpin, one_way: Duration) {
    let (leaving, arriving) = mpsc::channel(PIECES_MAX);
    let arrived = arrive(arriving, to);
    let left = async {
        leave(from, leaving, one_way).await;
        // What has left is still on its way.
        std::future::pending().await
    };
    tokio::select! {
        () = arrived => {}
        () = left => {}
    }
}

async fn leave(
    mut from: impl AsyncRead + Unpin,
    leaving: mpsc::Sender<(Instant, Bytes)>,
    one_way: Duration,
) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE_BYTES);
        match from.read_buf(&mut buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let piece = (Instant::now() + one_way, buffer.split().freeze());
        if leaving.send(piece).await.is_err() {
            return;
        }
    }
}

async fn arrive(mut arriving: mpsc::Receiver<(Instant, Bytes)>, mut to: impl AsyncWrite + Unpin) {
    while let Some((at, piece)) = arriving.recv().await {
        sleep_until(at).await;
        if to.write_all(&piece).await.is_err() {
            return;
        }
    }
    // The other end hears of it, or has closed already.
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_WAY: Duration = Duration::from_millis(40);

    #[tokio::test(start_paused = true)]
    async fn bytes_arrive_in_order_after_the_way() {
        let (far, mut there) = duplex(PIECE_BYTES);
        let mut here = far_away(far, ONE_WAY);
        let sent = Instant::now();
        for word in ["one ", "two ", "three"] {
            here.write_all(word.as_bytes()).await.unwrap();
        }
        let mut heard = [0; 13];
        there.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"one two three");
        assert!(
            sent.elapsed() >= ONE_WAY,
            "the way there: {:?}",
            sent.elapsed()
        );

        there.write_all(b"heard").await.unwrap();
        let mut answer = [0; 5];
        here.read_exact(&mut answer).await.unwrap();
        assert!(
            sent.elapsed() >= 2 * ONE_WAY,
            "and back: {:?}",
            sent.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn many_pieces_take_no_longer_than_one() {
        let (far, mut there) = duplex(PIECE_BYTES);
        let mut here = far_away(far, ONE_WAY);
        let sent = Instant::now();
        let sending = tokio::spawn(async move {
            for _ in 0..100 {
                here.write_all(&[7; 10_000]).await.unwrap();
            }
            here
        });
        let mut heard = vec![0; 1_000_000];
        there.read_exact(&mut heard).await.unwrap();
        assert!(
            sent.elapsed() < 2 * ONE_WAY,
            "a megabyte: {:?}",
            sent.elapsed()
        );
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_arrives_after_everything_before_it() {
        let (far, mut there) = duplex(PIECE_BYTES);
        let mut here = far_away(far, ONE_WAY);
        here.write_all(b"last words").await.unwrap();
        here.shutdown().await.unwrap();
        let mut heard = Vec::new();
        there.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"last words");
    }
}
