//! Scripts of a shard: commands and what they answer, readable without the code.
//!
//! Each file beside this one is a promise in words and a script that shows it. A line is a command;
//! the lines after it that begin with `=` are its whole answer. `#` begins a comment.
//!
//! ```text
//! attach SUBSCRIPTION [ordered] [exactly-once]   takes part from here on
//! detach SUBSCRIPTION                            takes no part any more
//! close                                          the topic is deleted
//! publish KEY COUNT [epoch N]                    KEY is a word, or - for none
//! acknowledge SUBSCRIPTION KEY MESSAGE@DELIVERY ...   a MESSAGE alone: the leader settles it
//! rewind SUBSCRIPTION KEY MESSAGE@DELIVERY       sent again from there on, first by that delivery
//! grant SUBSCRIPTION KEY MESSAGE@DELIVERY ...    leases of an exactly-once subscription
//! extend SUBSCRIPTION MESSAGE@DELIVERY ...       for a minute
//! fail SUBSCRIPTION KEY nack|expiry|returned MESSAGE@DELIVERY ...
//! sweep detached SUBSCRIPTION | strands | settled     until nothing is left
//! wait SECONDS                                   the leader's clock goes on
//! next SUBSCRIPTION KEY                          the message that the lane waits for
//! backlog SUBSCRIPTION                           all messages that are neither settled nor marked
//! stored                                         how many messages and lanes the shard keeps
//! ```

mod shard;
mod words;

use std::path::Path;

use shard::Shard;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its scripts from files"
)]
fn scripts_answer_as_they_say() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/script");
    let files = std::fs::read_dir(directory).unwrap();
    let mut scripts: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    scripts.sort();
    assert!(!scripts.is_empty(), "there are scripts");
    let run = |path: &Path| run(&std::fs::read_to_string(path).unwrap());
    let failures: Vec<_> = scripts
        .iter()
        .filter_map(|path| Some((path, run(path).err()?)))
        .map(|(path, failure)| format!("{}: {failure}", path.display()))
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn a_wrong_answer_a_missing_one_and_a_surplus_one_are_found() {
    assert_eq!(run("attach s\n= done\nnext s a\n= none\n"), Ok(()));
    let expected = "line 1: attach s: expected [\"no\"], got [\"done\"]";
    assert_eq!(run("attach s\n= no\n").unwrap_err(), expected);
    assert!(run("attach s\n").is_err());
    assert!(run("attach s\n= done\n= done\n").is_err());
}

/// Runs a script up to the first answer that differs.
fn run(script: &str) -> Result<(), String> {
    let lines = script.lines().map(str::trim).enumerate();
    let mut lines = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    let mut shard = Shard::default();
    let mut commands = 0;
    while let Some((number, command)) = lines.next() {
        let mut expected = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with('=')) {
            expected.push(line.trim_start_matches('=').trim().to_owned());
        }
        let got = shard.run(command);
        if got != expected {
            let line = number + 1;
            return Err(format!(
                "line {line}: {command}: expected {expected:?}, got {got:?}"
            ));
        }
        commands += 1;
    }
    match commands {
        0 => Err("no command".into()),
        _ => Ok(()),
    }
}
