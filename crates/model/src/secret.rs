//! The cluster's secret: the key of the hashes that name ordering keys and sign ack ids.

use std::fmt;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::{Incarnation, KeyHash};

/// Made once, when the cluster is founded, and the same on every node.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSecret(pub [u8; 16]);

impl ClusterSecret {
    /// Names an ordering key. The empty key names the unkeyed strand of the topic.
    #[must_use]
    pub fn key_hash(&self, topic: Incarnation, ordering_key: &str) -> KeyHash {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(b"key");
        hasher.write(&topic.0.to_be_bytes());
        hasher.write(ordering_key.as_bytes());
        KeyHash(hasher.finish128().as_bytes())
    }

    /// Signs the body of an ack id, so that one can't be made up.
    #[must_use]
    pub(crate) fn signature(&self, body: &[u8]) -> [u8; 8] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(b"ack");
        hasher.write(body);
        hasher.finish128().h1.to_be_bytes()
    }
}

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(..)")
    }
}
