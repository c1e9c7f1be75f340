//! `crates/ARCHITECTURE.md` names every room of the tree, and no room that is gone.
//!
//! A crate is a heading (`### engine`); below it each module is a code span before the first colon of
//! a list line (``- `shard/apply`: ...``). A module is named by its path below `src`, without ending:
//! `dispatch` is `dispatch.rs` or `dispatch/mod.rs`. The roots `lib` and `main` and files of tests
//! have no line of their own.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::tree::Tree;

const MAP: &str = "crates/ARCHITECTURE.md";

/// Compares the map with the tree, both ways.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(MAP) else {
        return vec![Finding::new(
            MAP,
            1,
            "there is no map of the crates",
            "write it",
        )];
    };
    let drawn = drawn_rooms(text);
    let built = built_rooms(tree);
    let mut findings = Vec::new();
    for (name, modules) in &built {
        let Some((line, rooms)) = drawn.get(name) else {
            let next = format!("add `### {name}` with a line on what it must not know");
            findings.push(Finding::new(
                MAP,
                1,
                format!("crates/{name} is not on the map"),
                next,
            ));
            continue;
        };
        for module in modules.iter().filter(|module| !rooms.contains_key(*module)) {
            let what = format!("module {module} of {name} is not on the map");
            let next = format!("add the line \"- `{module}`: what it is for\" below `### {name}`");
            findings.push(Finding::new(MAP, *line, what, next));
        }
    }
    findings.extend(ghosts(&drawn, &built));
    findings
}

/// The rooms of a crate by name, with the line on which the map names each.
type Rooms = BTreeMap<String, usize>;

fn ghosts(
    drawn: &BTreeMap<String, (usize, Rooms)>,
    built: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, (line, rooms)) in drawn {
        let Some(modules) = built.get(name) else {
            let what = format!("there is no crates/{name}");
            findings.push(Finding::new(
                MAP,
                *line,
                what,
                "take the heading off the map",
            ));
            continue;
        };
        for (room, line) in rooms.iter().filter(|(room, _)| !modules.contains(*room)) {
            let what = format!("{name} has no module {room}");
            findings.push(Finding::new(
                MAP,
                *line,
                what,
                "take it off the map, or mend its name",
            ));
        }
    }
    findings
}

/// What the map names: by crate, the line of its heading and its rooms.
fn drawn_rooms(text: &str) -> BTreeMap<String, (usize, Rooms)> {
    let mut drawn: BTreeMap<String, (usize, Rooms)> = BTreeMap::new();
    let mut heading = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("### ") {
            heading = Some(name.trim().to_owned());
            drawn.insert(name.trim().to_owned(), (index + 1, Rooms::new()));
        } else if line.starts_with('#') {
            heading = None;
        } else if let (Some(name), true) = (&heading, line.starts_with("- `"))
            && let Some((_, rooms)) = drawn.get_mut(name)
        {
            rooms.extend(code_spans(line).map(|room| (room.to_owned(), index + 1)));
        }
    }
    drawn
}

/// The code spans of a list line before its first colon.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    let names = line.split_once(':').map_or(line, |(names, _)| names);
    names.split('`').skip(1).step_by(2)
}

/// What the tree holds: each folder below `crates/`, with its modules if it is a crate.
fn built_rooms(tree: &Tree) -> BTreeMap<String, BTreeSet<String>> {
    let mut built: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, _) in tree.below("crates/") {
        let Some((name, rest)) = path.split_once('/') else {
            continue;
        };
        let modules = built.entry(name.to_owned()).or_default();
        modules.extend(rest.strip_prefix("src/").and_then(module_name));
    }
    built
}

/// The name on the map of a source file, if it has one.
fn module_name(path: &str) -> Option<String> {
    let name = path.strip_suffix(".rs")?;
    let name = name.strip_suffix("/mod").unwrap_or(name);
    let is_root = matches!(name, "lib" | "main");
    let is_test = name
        .split('/')
        .any(|part| part == "tests" || part.ends_with("_tests"));
    (!is_root && !is_test).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{MAP, check};
    use crate::tree::Tree;

    fn faults(map: &str, files: &[&str]) -> Vec<String> {
        let mut all: Vec<(&str, &str)> = files.iter().map(|path| (*path, "")).collect();
        all.push((MAP, map));
        check(&Tree::of(&all))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const FILES: [&str; 5] = [
        "crates/engine/Cargo.toml",
        "crates/engine/src/lib.rs",
        "crates/engine/src/shard/mod.rs",
        "crates/engine/src/shard/apply.rs",
        "crates/engine/src/shard/apply/tests.rs",
    ];

    #[test]
    fn accepts_a_map_that_names_each_room() {
        let map = "### engine\n\nDecides: no `clock`.\n\n- `shard`, `shard/apply`: see `kv`\n";
        assert_eq!(faults(map, &FILES), Vec::<String>::new());
    }

    #[test]
    fn names_a_missing_module_and_a_missing_crate() {
        let missing = faults("### engine\n- `shard`: messages\n", &FILES);
        assert_eq!(missing.len(), 1);
        assert!(missing[0].starts_with("crates/ARCHITECTURE.md:1: module shard/apply of engine"));
        assert!(faults("# Map\n", &FILES)[0].contains("crates/engine is not on the map"));
    }

    #[test]
    fn names_ghosts_with_their_line() {
        let map = "### engine\n- `shard`: x\n- `shard/apply`: x\n- `shard/gone`: x\n### old\n";
        let ghosts = faults(map, &FILES);
        assert_eq!(ghosts.len(), 2);
        assert!(ghosts[0].starts_with("crates/ARCHITECTURE.md:4: engine has no module shard/gone"));
        assert!(ghosts[1].starts_with("crates/ARCHITECTURE.md:5: there is no crates/old"));
    }
}
