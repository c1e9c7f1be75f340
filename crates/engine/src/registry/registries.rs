//! How pins are spread over registry groups.

use std::num::NonZeroU16;

use model::{KeyHash, RegistryNumber};

/// The registry groups of a cluster, numbered from one. Their number is fixed when the cluster is
/// founded: to change it would be to move pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registries(NonZeroU16);

impl Registries {
    /// So many groups.
    #[must_use]
    pub fn new(count: NonZeroU16) -> Self {
        Registries(count)
    }

    /// The group that has the pin of a key.
    #[must_use]
    pub fn of(self, strand: KeyHash) -> RegistryNumber {
        let count = u128::from(self.0.get());
        let group = u128::from_be_bytes(strand.0) % count;
        RegistryNumber(1 + u16::try_from(group).expect("it is less than the count"))
    }

    /// Every group.
    pub fn all(self) -> impl Iterator<Item = RegistryNumber> {
        (1..=self.0.get()).map(RegistryNumber)
    }
}
