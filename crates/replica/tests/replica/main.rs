//! One node's replicas, over the real engine and the real store.

mod batch;
mod catalogue;
mod cluster;
mod delivery;
mod founding;
mod full;
mod lease;
mod node;
mod puller;
mod restart;
mod way;
