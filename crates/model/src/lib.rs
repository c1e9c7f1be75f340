//! The words: names, ids, messages, limits, time, regions.
//!
//! Everything here is shared by two crates or more and knows nothing of any of them.
//! No IO, no clock, no randomness.

pub mod ack_id;
pub mod id;
pub mod limits;
pub mod name;
pub mod region;
pub mod run;
pub mod sabotage;
pub mod secret;
pub mod time;

pub use ack_id::AckId;
pub use id::{
    Boot, ClientId, Epoch, FormatLevel, Generation, GroupId, Incarnation, KeyHash, MessageId,
    NodeId, RegistryNumber, SessionId, ShardNumber, Term,
};
pub use name::{ProjectId, SubscriptionName, TopicName};
pub use region::{InvalidPlaceName, NodeName, RegionName, SurvivalGoal, ZoneName};
pub use secret::ClusterSecret;
pub use time::Timestamp;
