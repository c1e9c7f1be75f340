//! A change that users notice has a fragment in `changelog.d/`; each fragment says something.

use crate::finding::Finding;
use crate::tree::Tree;

const FOLDER: &str = "changelog.d/";

/// Checks the name and the text of each fragment.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, text) in tree.below(FOLDER).filter(|(name, _)| *name != "README.md") {
        let path = format!("{FOLDER}{name}");
        if !name.strip_suffix(".md").is_some_and(is_slug) {
            let next = "name it by what changed: lower-case-words.md";
            findings.push(Finding::new(&path, 1, "not the name of a fragment", next));
        }
        if text.trim().is_empty() {
            let next = "say in a sentence what a user will notice";
            findings.push(Finding::new(&path, 1, "the fragment is empty", next));
        }
    }
    findings
}

fn is_slug(name: &str) -> bool {
    let of_words = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.chars().all(of_words)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tree::Tree;

    #[test]
    fn a_fragment_has_a_name_and_a_text() {
        let found = check(&Tree::of(&[
            ("changelog.d/README.md", "How to write one.\n"),
            ("changelog.d/seek-by-time.md", "Seek takes a time.\n"),
            ("changelog.d/empty.md", " \n"),
            ("changelog.d/New Thing.txt", "text\n"),
        ]));
        let paths: Vec<_> = found.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["changelog.d/New Thing.txt", "changelog.d/empty.md"]);
    }
}
