//! Counting of results over runners that each print in their own words.

use std::fmt;

/// What the runners reported so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: usize,
    failed: usize,
    /// Tests that skipped themselves; their runner counts them as passed.
    skipped_themselves: usize,
    /// Each thing that was not run, with its reason where one was given.
    skipped: Vec<String>,
}

impl Tally {
    /// Reads one line of `cargo test`.
    ///
    /// A test that finds at run time that it cannot run here (no root, no loop device) writes a line
    /// `skipped: NAME: REASON` straight to its error output, past the runner's capture. The runner
    /// counts it as passed too, so it is taken off there.
    pub(crate) fn read_cargo_line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("test result:") {
            self.passed += count_before(rest, " passed");
            self.failed += count_before(rest, " failed");
        } else if let Some(ignored) = ignored_test(line) {
            self.skipped.push(ignored);
        } else if let Some(reason) = line.strip_prefix("skipped: ") {
            self.skipped_themselves += 1;
            self.skipped.push(reason.to_owned());
        }
    }

    /// Reads one line of the client suites, which is `CLIENT: passed`, `CLIENT: failed` or
    /// `CLIENT: skipped`, the last two with a reason behind.
    pub(crate) fn read_suite_line(&mut self, line: &str) {
        let Some((client, verdict)) = line.split_once(':') else {
            return;
        };
        let verdict = verdict.trim_start();
        let (word, reason) = verdict.split_once(' ').unwrap_or((verdict, ""));
        match word.trim_end_matches(':') {
            "passed" => self.passed += 1,
            "failed" => self.failed += 1,
            "skipped" => self.skipped.push(format!("{client}: {reason}")),
            _ => {}
        }
    }

    /// Counts a runner that ended badly without naming a failed test, such as a build error.
    pub(crate) fn require_failure(&mut self, failed_before: usize) {
        if self.failed == failed_before {
            self.failed += 1;
        }
    }

    /// Counts a whole suite that could not be run.
    pub(crate) fn skip(&mut self, what: &str) {
        self.skipped.push(what.to_owned());
    }

    /// How many failed.
    pub(crate) fn failed(&self) -> usize {
        self.failed
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reason in &self.skipped {
            writeln!(out, "skipped: {reason}")?;
        }
        write!(
            out,
            "{} passed, {} failed, {} skipped",
            self.passed.saturating_sub(self.skipped_themselves),
            self.failed,
            self.skipped.len()
        )
    }
}

/// The name (and reason) of a test that `cargo test` reports as ignored.
fn ignored_test(line: &str) -> Option<String> {
    let (name, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = verdict.strip_prefix("ignored")?;
    Some(format!("{name}{}", reason.replacen(", ", ": ", 1)))
}

/// The number that stands before a word, as in `3 passed`.
fn count_before(text: &str, word: &str) -> usize {
    text.split(word)
        .next()
        .and_then(|head| head.rsplit(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn adds_up_several_test_binaries() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test power::loop_image ... ignored, needs root",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            tally.read_cargo_line(line);
        }
        assert_eq!(
            tally.to_string(),
            "skipped: power::loop_image: needs root\n14 passed, 3 failed, 1 skipped"
        );
    }

    #[test]
    fn a_test_that_skips_itself_is_not_passed() {
        let mut tally = Tally::default();
        tally.read_cargo_line("skipped: loop_image: needs root");
        tally.read_cargo_line("test result: ok. 2 passed; 0 failed; 0 ignored");
        assert_eq!(
            tally.to_string(),
            "skipped: loop_image: needs root\n1 passed, 0 failed, 1 skipped"
        );
    }

    #[test]
    fn reads_the_verdict_of_each_client() {
        let mut tally = Tally::default();
        tally.read_suite_line("python: passed (24 scenarios)");
        tally.read_suite_line("java: skipped: no mvn");
        tally.read_suite_line("rust: failed: order");
        tally.read_suite_line("server log at target/compat");
        assert_eq!(
            tally.to_string(),
            "skipped: java: no mvn\n1 passed, 1 failed, 1 skipped"
        );
    }

    #[test]
    fn a_build_error_is_a_failure() {
        let mut tally = Tally::default();
        tally.require_failure(0);
        assert_eq!(tally.failed(), 1);
    }
}
