//! Sabotage: one-line faults, put in on purpose, that the tests must catch.
//!
//! A check that can't fail is worth nothing. So at places where a promise hangs on one line, the
//! line can be broken: `if sabotage!("skip-fsync") { .. }`. Without the feature `sabotage` the
//! condition is `false` and compiles to nothing. With it, one build holds all of them, and the
//! environment variable `ORDERLY_SABOTAGE` names the one that is on. `cargo xtask sabotage` turns
//! each on and expects its test to fail.

/// Whether the sabotage of this name is on; always `false` without the feature.
#[cfg(feature = "sabotage")]
#[must_use]
pub fn is_on(name: &str) -> bool {
    use std::sync::OnceLock;
    static ON: OnceLock<Option<String>> = OnceLock::new();
    ON.get_or_init(|| std::env::var("ORDERLY_SABOTAGE").ok())
        .as_deref()
        == Some(name)
}

/// Whether the sabotage of this name is on; always `false` without the feature.
#[cfg(not(feature = "sabotage"))]
#[must_use]
#[inline(always)]
pub const fn is_on(_name: &str) -> bool {
    false
}

/// A condition that is `true` only while the sabotage of this name is on.
#[macro_export]
macro_rules! sabotage {
    ($name:literal) => {
        $crate::sabotage::is_on($name)
    };
}
