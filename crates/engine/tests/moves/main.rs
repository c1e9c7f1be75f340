//! Two shards, one registry group and their leaders in memory: keys that move from one to the other.

mod world;

mod moves;
mod pins;
