//! The list of sabotages and the code name the same ones, each once.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::sabotage::list::{List, PATH};
use crate::tree::{Tree, line_of};

/// How the code says that a fault stands here.
const CALL: &str = "sabotage!(\"";

/// Compares the list with the code, both ways.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(PATH).unwrap_or_default();
    let list = match List::parse(text) {
        Ok(list) => list,
        Err(error) => {
            let what = format!("the list of sabotages cannot be read: {}", error.message());
            return vec![Finding::new(PATH, 1, what, "mend it")];
        }
    };
    let mut listed = BTreeMap::new();
    let mut findings = Vec::new();
    for sabotage in &list.sabotages {
        let line = line_of(text, &format!("\"{}\"", sabotage.name));
        if listed.insert(sabotage.name.as_str(), line).is_some() {
            let what = format!("{} is on the list twice", sabotage.name);
            findings.push(Finding::new(PATH, line, what, "give one another name"));
        }
    }
    let mut built = BTreeMap::new();
    for (path, line, name) in calls(tree) {
        if built.insert(name, (path, line)).is_some() {
            let what = format!("sabotage {name} stands in two places");
            let next = "break one line with each name";
            findings.push(Finding::new(path, line, what, next));
        }
        if !listed.contains_key(name) {
            let what = format!("sabotage {name} is not on the list");
            let next = format!("add it to {PATH}, with the test that must fail");
            findings.push(Finding::new(path, line, what, next));
        }
    }
    for (name, line) in listed.iter().filter(|(name, _)| !built.contains_key(*name)) {
        let what = format!("no line of the code has the sabotage {name}");
        let next = "put it in, or take it off the list";
        findings.push(Finding::new(PATH, *line, what, next));
    }
    findings
}

/// Every sabotage in the code: file, line and name. Comments and the tests of this rule don't count.
fn calls(tree: &Tree) -> impl Iterator<Item = (&str, usize, &str)> {
    let files = tree.files().filter(|(path, _)| {
        path.ends_with(".rs") && path.starts_with("crates/") && !path.starts_with("crates/xtask/")
    });
    files.flat_map(|(path, text)| {
        let lines = text.lines().enumerate();
        let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
        code.flat_map(move |(index, line)| {
            let after = line.split(CALL).skip(1);
            let names = after.filter_map(|rest| rest.split('"').next());
            names.map(move |name| (path, index + 1, name))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{PATH, check};
    use crate::tree::Tree;

    const LIST: &str = r#"
packages = ["orderly-engine"]

[[sabotage]]
name = "time-goes-back"
breaks = "Time goes on."
binary = "engine"
test = "time"

[[sabotage]]
name = "ids-again"
breaks = "Ids are new."
binary = "engine"
test = "ids"
"#;

    const BOTH: &str = "\
//! Put in by `sabotage!(\"example\")`.
if sabotage!(\"time-goes-back\") || b {}
    let a = sabotage!(\"ids-again\");
";

    fn lines(path: &str, code: &str) -> Vec<(String, usize)> {
        let findings = check(&Tree::of(&[(path, code), (PATH, LIST)]));
        let places = findings.iter();
        places.map(|it| (it.path.clone(), it.line)).collect()
    }

    #[test]
    fn the_list_and_the_code_name_the_same() {
        assert_eq!(lines("crates/engine/src/a.rs", BOTH), []);
        assert_eq!(
            lines("crates/xtask/src/a.rs", BOTH),
            [(PATH.to_owned(), 11), (PATH.to_owned(), 5)]
        );
    }

    #[test]
    fn a_sabotage_that_is_new_or_stands_twice_is_found() {
        let code = format!("{BOTH}x(sabotage!(\"ids-again\"), sabotage!(\"new\"));\n");
        let path = "crates/engine/src/a.rs";
        let here = (path.to_owned(), 4);
        assert_eq!(lines(path, &code), [here.clone(), here]);
    }
}
