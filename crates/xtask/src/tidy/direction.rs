//! Crates depend in one direction: `model <- engine <- store <- replica <- router <- frontend <- node`.
//!
//! Cargo refuses cycles; this rule also refuses edges that make no cycle yet, and keeps the engine pure.

use toml::Table;

use crate::finding::Finding;
use crate::tree::{Tree, line_of};

/// Each crate, and the crates of this workspace that it may use. A new edge is a design decision.
const MAY_USE: [(&str, &[&str]); 10] = [
    ("model", &[]),
    ("proto", &[]),
    ("engine", &["model"]),
    ("store", &["model", "engine"]),
    ("replica", &["model", "engine", "store", "proto"]),
    ("router", &["model", "engine", "store", "replica", "proto"]),
    (
        "frontend",
        &["model", "engine", "store", "replica", "router", "proto"],
    ),
    (
        "node",
        &[
            "model", "engine", "store", "replica", "router", "frontend", "proto",
        ],
    ),
    (
        "sim",
        &[
            "model", "engine", "store", "replica", "router", "frontend", "node", "proto",
        ],
    ),
    ("xtask", &[]),
];

/// What the tests of a crate may use besides: the checkers of `sim` read what real processes did.
const TESTS_MAY_USE: [(&str, &str); 1] = [("node", "sim")];

/// What the engine may not use: it decides, and leaves time, chance, tasks and disks to others.
const IMPURE: [&str; 5] = ["tokio", "tonic", "openraft", "rocksdb", "rand"];

/// The tables of a manifest whose keys are dependencies.
const DEPENDENCY_TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Compares every manifest of the workspace's crates with the table.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.below("crates/")
        .filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, text)))
        .filter(|(name, _)| !name.contains('/'))
        .flat_map(|(name, text)| check_manifest(name, text))
        .collect()
}

fn check_manifest(name: &str, text: &str) -> Vec<Finding> {
    let path = format!("crates/{name}/Cargo.toml");
    let at_top = |what: String, next: &str| vec![Finding::new(&path, 1, what, next)];
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return at_top(error.to_string(), "mend the manifest"),
    };
    let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
        let next = "write a decision record, then name it in crates/xtask/src/tidy/direction.rs";
        return at_top(format!("crate {name} has no place yet"), next);
    };
    dependencies(&manifest)
        .into_iter()
        .filter_map(|(table, dependency)| {
            let line = line_of(text, &dependency);
            let (why, next) = refusal(name, allowed, table, &dependency)?;
            let what = format!("{name} may not use {dependency}: {why}");
            Some(Finding::new(&path, line, what, next))
        })
        .collect()
}

/// Why a crate may not have a dependency, and what to do instead; `None` if it may.
fn refusal(
    name: &str,
    allowed: &[&str],
    table: &str,
    dependency: &str,
) -> Option<(&'static str, &'static str)> {
    let is_ours = MAY_USE.iter().any(|(known, _)| *known == dependency);
    let is_for_tests = table == "dev-dependencies" && TESTS_MAY_USE.contains(&(name, dependency));
    if is_ours && !allowed.contains(&dependency) && !is_for_tests {
        return Some((
            "dependencies point one way",
            "move the code to the crate that may know it, or argue the edge in a decision record",
        ));
    }
    let is_pure = matches!(name, "model" | "engine") && table != "dev-dependencies";
    if is_pure && IMPURE.contains(&dependency) {
        return Some((
            "it decides and performs nothing",
            "take what you need as an argument, and let the caller perform it",
        ));
    }
    None
}

/// Every dependency of a manifest under its short name, with the kind of table that it stands in.
fn dependencies(manifest: &Table) -> Vec<(&'static str, String)> {
    let targets = manifest.get("target").and_then(|value| value.as_table());
    let per_target = targets
        .into_iter()
        .flat_map(|table| table.values())
        .filter_map(|value| value.as_table());
    let mut found = Vec::new();
    for place in std::iter::once(manifest).chain(per_target) {
        for table in DEPENDENCY_TABLES {
            let names = place.get(table).and_then(|value| value.as_table());
            let names = names.into_iter().flat_map(|names| names.keys());
            found.extend(names.map(|name| (table, short(name))));
        }
    }
    found
}

/// A crate of ours by its name in the workspace: `orderly-engine` is `engine`.
fn short(name: &str) -> String {
    name.strip_prefix("orderly-").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tree::Tree;

    fn faults(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        check(&Tree::of(&[(&path, manifest)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn accepts_edges_that_point_down() {
        assert!(
            faults(
                "store",
                "[dependencies]\nengine.workspace = true\nrocksdb = '1'\n"
            )
            .is_empty()
        );
    }

    #[test]
    fn refuses_an_edge_that_points_up() {
        let found = faults(
            "engine",
            "[dependencies]\nmodel.workspace = true\nstore.workspace = true\n",
        );
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/engine/Cargo.toml:3: engine may not use store"));
    }

    #[test]
    fn sees_through_kinds_targets_and_full_names() {
        for manifest in [
            "[dev-dependencies]\nnode.workspace = true\n",
            "[build-dependencies]\nnode.workspace = true\n",
            "[target.'cfg(unix)'.dependencies]\norderly-node = '1'\n",
        ] {
            assert_eq!(faults("router", manifest).len(), 1, "{manifest}");
        }
    }

    #[test]
    fn lets_only_the_tests_of_a_node_use_the_checkers() {
        assert!(faults("node", "[dev-dependencies]\nsim.workspace = true\n").is_empty());
        assert_eq!(
            faults("node", "[dependencies]\nsim.workspace = true\n").len(),
            1
        );
        assert_eq!(
            faults("engine", "[dev-dependencies]\nsim.workspace = true\n").len(),
            1
        );
    }

    #[test]
    fn keeps_the_engine_pure() {
        assert_eq!(
            faults("engine", "[dependencies]\ntokio.workspace = true\n").len(),
            1
        );
        assert!(faults("engine", "[dev-dependencies]\nrand.workspace = true\n").is_empty());
        assert!(faults("store", "[dependencies]\nrand.workspace = true\n").is_empty());
    }

    #[test]
    fn a_new_crate_needs_a_decision() {
        assert!(faults("gateway", "[package]\n")[0].contains("has no place yet"));
    }
}
