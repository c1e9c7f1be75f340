//! Decision records have unique numbers and one form: context, decision, consequences.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::tree::Tree;

const FOLDER: &str = "crates/decisions/";
const PARTS: [&str; 3] = ["## Context", "## Decision", "## Consequences"];

/// Checks name, number, title and parts of each record.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut owners: BTreeMap<&str, String> = BTreeMap::new();
    for (name, text) in tree.below(FOLDER).filter(|(name, _)| *name != "README.md") {
        let path = format!("{FOLDER}{name}");
        let Some(number) = number(name) else {
            let next = "name it NNNN-what-was-decided.md, with the next free number";
            findings.push(Finding::new(
                &path,
                1,
                "the name has no number of four digits",
                next,
            ));
            continue;
        };
        if let Some(owner) = owners.insert(number, path.clone()) {
            let what = format!("{owner} has the number {number} too");
            findings.push(Finding::new(&path, 1, what, "take the next free number"));
        }
        findings.extend(check_record(&path, number, text));
    }
    findings
}

fn check_record(path: &str, number: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let title = format!("# {number}: ");
    if !text
        .lines()
        .next()
        .is_some_and(|line| line.starts_with(&title) && line.len() > title.len())
    {
        let next = format!("begin with \"{title}What was decided\"");
        findings.push(Finding::new(
            path,
            1,
            "the title is not in the form of all records",
            next,
        ));
    }
    for part in PARTS
        .iter()
        .filter(|part| !text.lines().any(|line| line == **part))
    {
        let next = format!("add the heading \"{part}\" and a few sentences");
        findings.push(Finding::new(
            path,
            1,
            format!("the part \"{part}\" is missing"),
            next,
        ));
    }
    findings
}

/// The number of a record by its file name.
fn number(name: &str) -> Option<&str> {
    let (number, slug) = name.strip_suffix(".md")?.split_once('-')?;
    let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !slug.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tree::Tree;

    const RECORD: &str = "# 0001: One way\n\n## Context\n\n## Decision\n\n## Consequences\n";

    #[test]
    fn accepts_the_form() {
        assert!(check(&Tree::of(&[("crates/decisions/0001-one-way.md", RECORD)])).is_empty());
    }

    #[test]
    fn refuses_a_number_used_twice() {
        let files = [
            ("crates/decisions/0001-a.md", RECORD),
            ("crates/decisions/0001-b.md", RECORD),
        ];
        let found = check(&Tree::of(&files));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/decisions/0001-b.md");
    }

    #[test]
    fn refuses_other_names_titles_and_missing_parts() {
        for (name, text) in [
            ("crates/decisions/one-way.md", RECORD),
            ("crates/decisions/0002-one-way.md", RECORD),
            (
                "crates/decisions/0001-one-way.md",
                "# 0001: One way\n\n## Context\n\n## Decision\n",
            ),
        ] {
            assert_eq!(check(&Tree::of(&[(name, text)])).len(), 1, "{name}");
        }
    }
}
