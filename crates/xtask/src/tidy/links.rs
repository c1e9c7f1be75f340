//! A link from one text of the project to another leads somewhere.

use crate::finding::Finding;
use crate::tree::Tree;

/// Follows every relative link of the Markdown files, to a file or a folder.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (index, line) in text.lines().enumerate() {
            for target in targets(line).filter(|target| !leads_somewhere(tree, path, target)) {
                let what = format!("the link to {target} leads nowhere");
                let next = "mend the path; it is relative to this file";
                findings.push(Finding::new(path, index + 1, what, next));
            }
        }
    }
    findings
}

/// The targets of a line's links, without those that leave the project or stay on the page.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

fn leads_somewhere(tree: &Tree, from: &str, target: &str) -> bool {
    let Some(path) = resolve(from, target) else {
        return false;
    };
    let folder = format!("{path}/");
    tree.text(&path).is_some() || tree.below(&folder).next().is_some()
}

/// A target's path from the root of the checkout; `None` if it leaves the checkout.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tree::Tree;

    #[test]
    fn follows_links_to_files_folders_and_upwards() {
        let map = "[one](../README.md) [two](decisions/) [three](decisions/0001-a.md#why)\n\
            [out](https://example.org) [here](#top)\n";
        let files = [
            ("README.md", ""),
            ("crates/MAP.md", map),
            ("crates/decisions/0001-a.md", ""),
        ];
        assert!(check(&Tree::of(&files)).is_empty());
    }

    #[test]
    fn names_links_that_lead_nowhere() {
        let text = "fine\n[gone](crates/gone.md)\n[out](../other/README.md)\n";
        let found = check(&Tree::of(&[("README.md", text)]));
        let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
