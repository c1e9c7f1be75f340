//! How pins are spread over registry groups.

use model::{KeyHash, RegistryNumber};

/// The registry groups of a cluster, numbered from one. Their number is fixed when the cluster is
/// founded: to change it would be to move pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registries(u16);

impl Registries {
    /// What a cluster of one node needs.
    pub const ONE: Registries = Registries(1);

    /// So many groups.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn new(count: u16) -> Self {
        assert!(count > 0, "a cluster has a registry group");
        Registries(count)
    }

    /// The group that has the pin of a key.
    #[must_use]
    pub fn of(self, strand: KeyHash) -> RegistryNumber {
        let count = u128::from(self.0);
        let group = u128::from_be_bytes(strand.0) % count;
        RegistryNumber(1 + u16::try_from(group).expect("it is less than the count"))
    }

    /// Every group.
    pub fn all(self) -> impl Iterator<Item = RegistryNumber> {
        (1..=self.0).map(RegistryNumber)
    }
}
