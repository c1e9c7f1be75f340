//! Scripts of the catalogue: what a client asks, and what it gets.
//!
//! A line is a request. The indented lines below it are its outcome: the answer, and what the
//! shards are told. A name without a slash is in project `p`. `#7` is the incarnation that entry 7
//! of the log gave; each command is an entry of its own. Lines that begin with `#` are comments.

mod ask;
mod show;

use ask::Catalogue;

fn run(script: &str) {
    let mut catalogue = Catalogue::default();
    let mut lines = script.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut expected = Vec::new();
        while let Some((_, outcome)) = lines.next_if(|(_, line)| line.starts_with("  ")) {
            expected.push(outcome.trim().to_owned());
        }
        let outcome = catalogue.ask(line);
        assert_eq!(
            outcome,
            expected,
            "line {}: {line}\n  {}\n",
            number + 1,
            outcome.join("\n  ")
        );
    }
}

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(include_str!(concat!(stringify!($name), ".txt")));
        })*
    };
}

scripts!(
    topics,
    deleted_topics,
    subscriptions,
    subscription_values,
    updates,
    masks,
    pages,
    survival,
    awake
);
