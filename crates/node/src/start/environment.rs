//! What a node finds around it: its disk, the network, the time, and chance. There is one of this
//! machine, and one that a simulation makes up; a node is the same on both.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use replica::{Clock, Network};
use store::{OpenError, Store};

use super::StartError;

/// What a node finds around it. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Environment {
    /// How its disk is opened.
    pub disk: Disk,
    /// How others are reached.
    pub network: Network,
    /// What the time is.
    pub clock: Clock,
    /// What nobody can guess.
    pub chance: Chance,
}

/// Opens the disk of a node.
#[derive(Clone)]
pub struct Disk(Arc<Open>);

type Open = dyn Fn(store::Settings) -> Result<Store, OpenError> + Send + Sync;

/// Where random bytes come from.
#[derive(Clone)]
pub struct Chance(Arc<Mutex<Draw>>);

type Draw = dyn FnMut(&mut [u8]) -> Result<(), String> + Send;

impl Environment {
    /// This machine. Must be called within a tokio runtime.
    #[must_use]
    pub fn machine() -> Self {
        Environment {
            disk: Disk::new(Store::open),
            network: Network::sockets(),
            clock: Clock::machine(),
            chance: Chance::new(|bytes| {
                getrandom::fill(bytes).map_err(|why| format!("the operating system: {why}"))
            }),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

impl Disk {
    /// A disk that is opened so.
    pub fn new(
        open: impl Fn(store::Settings) -> Result<Store, OpenError> + Send + Sync + 'static,
    ) -> Self {
        Disk(Arc::new(open))
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`OpenError`]
    pub(super) fn open(&self, settings: store::Settings) -> Result<Store, OpenError> {
        (self.0)(settings)
    }
}

impl Chance {
    /// Random bytes that are made so.
    pub fn new(draw: impl FnMut(&mut [u8]) -> Result<(), String> + Send + 'static) -> Self {
        Chance(Arc::new(Mutex::new(draw)))
    }

    /// Bytes that nobody can guess.
    pub(super) fn bytes(&self) -> Result<[u8; 16], StartError> {
        let mut bytes = [0; 16];
        let mut draw = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        draw(&mut bytes).map_err(StartError::Random)?;
        Ok(bytes)
    }
}
