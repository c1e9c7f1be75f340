//! The chores: verify, fix, tidy.

fn main() {}
