//! The decisions: pure state machines, no IO.
