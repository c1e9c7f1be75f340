//! The binary `orderly`.

fn main() {}
