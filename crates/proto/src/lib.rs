//! The wire: what clients and nodes say to each other, generated from the
//! files in `proto/`. What nodes say is in [`cluster`], what operators ask in [`admin`].
//!
//! [`pubsub`] and [`iam`] hold Google's Pub/Sub API: messages, `*_client` and
//! `*_server` modules. Three messages of [`pubsub`] differ in type, not on the
//! wire, from what the files say: they carry what they are made of encoded.
//! [`wire`] tells why, and has the functions for it.

pub mod wire;

/// Clients, servers and messages of topics, subscriptions, snapshots, schemas.
pub use generated::google::pubsub::v1 as pubsub;

/// Client, server and messages of access rules.
pub use generated::google::iam::v1 as iam;

/// Clients, servers and messages between the nodes of a cluster.
pub use generated::orderly::cluster::v1 as cluster;

/// Client, server and messages of what operators ask.
pub use generated::orderly::admin::v1 as admin;

/// A condition in a binding of an [`iam::Policy`].
pub use generated::google::r#type::Expr;

/// Everything in `proto/` with its imports and REST bindings: an encoded
/// `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Code that no one reads, so it is free of our lints.
#[allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}
