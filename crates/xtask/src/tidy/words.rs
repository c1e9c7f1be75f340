//! Words that no file of the project may hold: places on one machine, promises without an address,
//! and sleeping in tests.

use crate::finding::Finding;
use crate::tree::Tree;

/// A word, and what its finder does about it. Written in two halves, so that this file holds none.
const NOWHERE: [(&str, &str); 10] = [
    (
        concat!("/wo", "rk/"),
        "name the place relative to the checkout",
    ),
    (
        concat!("/ro", "ot/"),
        "use $HOME, or a folder next to the checkout",
    ),
    (concat!("../sh", "ared"), "say it here in your own words"),
    (
        concat!("crates", ".io"),
        "say \"the Rust registry\"; no host is named here",
    ),
    (
        concat!("py", "pi.org"),
        "say \"the Python registry\"; no host is named here",
    ),
    (
        concat!("files.python", "hosted.org"),
        "leave the host out: the client knows it",
    ),
    (
        concat!("registry.npm", "js.org"),
        "leave the host out: the client knows it",
    ),
    (
        concat!("proxy.go", "lang.org"),
        "leave the host out: the client knows it",
    ),
    (
        concat!("repo.maven.", "apache.org"),
        "leave the host out: the client knows it",
    ),
    (
        concat!("deb.", "debian.org"),
        "leave the host out: the client knows it",
    ),
];

/// Marks of unfinished work.
const UNFINISHED: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
];

/// The comment that explains why a test sleeps, on its line or the one above.
const SLEEP_REASON: &str = "sleep: ";

/// Reads every line of every file except lock files, which tools write.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter(|(path, _)| !path.ends_with(".lock") && !path.ends_with("LICENSE"))
        .flat_map(|(path, text)| check_file(path, text))
        .collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_tests = is_test_file(path);
    let mut previous = "";
    for (index, line) in text.lines().enumerate() {
        in_tests |= line.trim() == "#[cfg(test)]";
        for (word, next) in NOWHERE.iter().filter(|(word, _)| line.contains(word)) {
            findings.push(Finding::new(
                path,
                index + 1,
                format!("\"{word}\" stands here"),
                *next,
            ));
        }
        if UNFINISHED.iter().any(|mark| has_word(line, mark)) && !line.contains("http") {
            let next = "do it, or add the address of the issue that will";
            findings.push(Finding::new(
                path,
                index + 1,
                "unfinished work without an address",
                next,
            ));
        }
        let explained = line.contains(SLEEP_REASON) || previous.contains(SLEEP_REASON);
        if in_tests && !explained && line.contains(concat!("sle", "ep(")) {
            let next =
                format!("wait for a state with a deadline, or say \"{SLEEP_REASON}why\" above");
            findings.push(Finding::new(path, index + 1, "a test sleeps", next));
        }
        previous = line;
    }
    findings
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.starts_with("crates/compat/")
}

/// Whether a mark stands in the line as a word of its own.
fn has_word(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + mark.len()..].chars().next();
        let apart = |next: Option<char>| !next.is_some_and(|c| c.is_alphanumeric() || c == '_');
        apart(before) && apart(after)
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tree::Tree;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn refuses_places_on_one_machine() {
        let text = concat!(
            "fine\nsee /wo",
            "rk/main\nin /ro",
            "ot/.cache\nat py",
            "pi.org\n"
        );
        assert_eq!(lines("README.md", text), [2, 3, 4]);
    }

    #[test]
    fn unfinished_work_needs_an_address() {
        let text = concat!(
            "// TO",
            "DO later\n// TO",
            "DO https://example.org/1\nlet MYTO",
            "DOS = 1;\n"
        );
        assert_eq!(lines("a.rs", text), [1]);
    }

    #[test]
    fn tests_wait_for_states() {
        let asleep = concat!("thread::sle", "ep(x);\n");
        assert_eq!(lines("crates/node/tests/kill.rs", asleep), [1]);
        assert_eq!(lines("crates/node/src/a.rs", asleep), Vec::<usize>::new());
        assert_eq!(
            lines("crates/node/src/a.rs", &format!("#[cfg(test)]\n{asleep}")),
            [2]
        );
        let explained = format!("// sleep: the pause is what is tested\n{asleep}");
        assert_eq!(
            lines("crates/node/tests/kill.rs", &explained),
            Vec::<usize>::new()
        );
    }
}
