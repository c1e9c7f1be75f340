//! Routers of several nodes in one process, over the real engine, the real store and TCP.

mod cluster;
mod exactly_once;
mod flow;
mod moves;
mod reader;
