//! The proof: engines and nodes in one thread from one seed, and the checkers of every promise.
