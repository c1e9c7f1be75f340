//! Keys and messages, from text and to text.

use bytes::Bytes;
use model::KeyHash;

pub(crate) fn key(name: &str) -> KeyHash {
    let mut hash = [0; 16];
    hash[..name.len()].copy_from_slice(name.as_bytes());
    KeyHash(hash)
}

/// An encoded message that has only data.
pub(crate) fn message(data: &str) -> Bytes {
    let mut out = vec![0x0a, data.len() as u8];
    out.extend_from_slice(data.as_bytes());
    out.into()
}

/// The data of an encoded message made by [`message`].
pub(crate) fn data(message: &Bytes) -> String {
    let length = usize::from(message[1]);
    String::from_utf8(message[2..2 + length].to_vec()).unwrap()
}
