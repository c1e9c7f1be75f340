//! What a rule of tidy has to say: where, what is wrong, and what to do next.

use std::fmt;

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, relative to the root of the checkout.
    pub(crate) path: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
    /// What the reader does next.
    pub(crate) next: String,
}

impl Finding {
    /// A finding at a line of a file.
    pub(crate) fn new(
        path: &str,
        line: usize,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            next: next.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}:{}: {}\n  next: {}",
            self.path, self.line, self.what, self.next
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Finding;

    #[test]
    fn names_place_fault_and_way_out() {
        let finding = Finding::new("a.rs", 7, "a tab", "use spaces");
        assert_eq!(finding.to_string(), "a.rs:7: a tab\n  next: use spaces");
    }
}
