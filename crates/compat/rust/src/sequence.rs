//! The rule that every ordered subscription keeps for one key.

use anyhow::{Result, ensure};

/// Checks that each delivery is the previous plus one, or goes back to an earlier message; the
/// highest number delivered.
pub fn check(numbers: &[u64], first: u64) -> Result<u64> {
    let mut expected = first;
    for (position, &number) in numbers.iter().enumerate() {
        ensure!(
            number <= expected,
            "{number} came after {:?}",
            &numbers[position.saturating_sub(5)..position]
        );
        expected = number + 1;
    }
    Ok(numbers.iter().copied().max().unwrap_or(first))
}
