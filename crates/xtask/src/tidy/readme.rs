//! Every command that a README tells its reader to type exists.

use std::fmt;

use crate::CHORES;
use crate::finding::Finding;
use crate::tree::Tree;

/// Looks up each `make TARGET` and `cargo xtask CHORE` of the Markdown files.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let makefile = tree.text("Makefile").unwrap_or_default();
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (index, command) in commands(text) {
            let exists = match command {
                Command::Make(target) => has_target(makefile, target),
                Command::Xtask(chore) => CHORES.iter().any(|known| known.name == chore),
            };
            if !exists {
                let what = format!("there is no `{command}`");
                let next = "add it to the Makefile or to xtask, or mend the text";
                findings.push(Finding::new(path, index + 1, what, next));
            }
        }
    }
    findings
}

enum Command<'a> {
    Make(&'a str),
    Xtask(&'a str),
}

impl fmt::Display for Command<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make(target) => write!(out, "make {target}"),
            Self::Xtask(chore) => write!(out, "cargo xtask {chore}"),
        }
    }
}

/// The commands in a text's code blocks and code spans, each with the index of its line.
fn commands(text: &str) -> Vec<(usize, Command<'_>)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            found.extend(command(line).map(|command| (index, command)));
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter_map(command).map(|command| (index, command)));
        }
    }
    found
}

fn command(code: &str) -> Option<Command<'_>> {
    let mut words = code.split_whitespace();
    match (words.next()?, words.next()?, words.next()) {
        ("make", target, _) => Some(Command::Make(target)),
        ("cargo", "xtask", Some(chore)) => Some(Command::Xtask(chore)),
        _ => None,
    }
}

fn has_target(makefile: &str, target: &str) -> bool {
    makefile
        .lines()
        .any(|line| line.split_once(':').is_some_and(|(name, _)| name == target))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tree::Tree;

    #[test]
    fn names_commands_that_do_not_exist() {
        let readme = "Type `make run`, not `make walk`.\n```\nmake test\nmake peace # now\n\
            cargo xtask verify\ncargo xtask dance\n```\nmake no mistake\n";
        let found = check(&Tree::of(&[
            ("Makefile", "run: setup\ntest:\n"),
            ("README.md", readme),
        ]));
        let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 4, 6]);
        assert_eq!(found[0].what, "there is no `make walk`");
    }
}
