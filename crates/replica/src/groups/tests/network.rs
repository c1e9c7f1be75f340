//! A network that can be cut.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a relay holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Nothing,
    /// What goes to the target. What comes from there still passes.
    ToTarget,
}

/// Passes connections on to one address, and what is said on them.
pub(super) struct Relay {
    address: String,
    cut: watch::Sender<Cut>,
}

impl Relay {
    pub(super) async fn to(target: String) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback is there");
        let address = listener.local_addr().expect("it is bound").to_string();
        let cut = watch::Sender::new(Cut::Nothing);
        let held = cut.subscribe();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                if let Ok(far) = TcpStream::connect(&target).await {
                    let (near_in, near_out) = near.into_split();
                    let (far_in, far_out) = far.into_split();
                    tokio::spawn(pass(near_in, far_out, Some(held.clone())));
                    tokio::spawn(pass(far_in, near_out, None));
                }
            }
        });
        Relay { address, cut }
    }

    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    pub(super) fn set(&self, cut: Cut) {
        self.cut.send_replace(cut);
    }
}

/// Passes bytes on, in order, until the connection ends.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut held: Option<watch::Receiver<Cut>>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if let Some(held) = &mut held
            && held.wait_for(|cut| *cut == Cut::Nothing).await.is_err()
        {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
