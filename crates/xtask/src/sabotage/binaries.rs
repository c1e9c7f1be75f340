//! The test binaries, built once with every sabotage in them, and one test of them run alone.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::list::{List, Sabotage};
use crate::child;

/// Builds all sabotages in; a package that depends on the model gets the same build of it.
const FEATURE: &str = "orderly-model/sabotage";
/// The environment variable that switches one on.
const SWITCH: &str = "ORDERLY_SABOTAGE";
/// The longest of these tests takes a few seconds on an idle machine. One that hangs because of a
/// sabotage has not said that it noticed.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// Between two looks whether a test has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The exit code of a test binary of which a test has failed.
const TEST_FAILED: i32 = 101;

/// What a test said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ran, and passed.
    Passed,
    /// It ran, and failed.
    Failed,
    /// There is no such test, or it did not end, or not by itself.
    None(String),
}

/// Where each test binary is, by name.
pub(super) struct Binaries(BTreeMap<String, Binary>);

struct Binary {
    executable: PathBuf,
    /// Tests run in the folder of their package, as they do with `cargo test`.
    folder: PathBuf,
}

/// A line of cargo's output that tells of something built; other lines have none of this.
#[derive(Debug, Deserialize)]
struct Built {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Target {
    /// The name in the list: that of the library, or of a test file in its folder. A package may
    /// have both by the same name.
    fn binary(&self) -> String {
        match self.kind.iter().any(|kind| kind == "test") {
            true => format!("tests/{}", self.name),
            false => self.name.clone(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

impl Binaries {
    /// Builds the tests of the list's packages.
    pub(super) fn build(root: &Path, list: &List) -> anyhow::Result<Self> {
        let mut arguments = vec!["test", "--no-run", "--package", "orderly-model"];
        for package in &list.packages {
            arguments.extend(["--package", package]);
        }
        arguments.extend(["--features", FEATURE]);
        arguments.push("--message-format=json-render-diagnostics");
        let mut build = child::cargo(root, &arguments)?;
        eprintln!("xtask: tests with every sabotage built in (a minute cold)");
        let output = build.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("the tests do not build: see above");
        }
        Self::read(&String::from_utf8(output.stdout)?)
    }

    fn read(messages: &str) -> anyhow::Result<Self> {
        let built = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Built>(line).ok())
            .filter(|built| built.profile.test);
        let mut binaries = BTreeMap::new();
        for built in built {
            let Some(executable) = built.executable else {
                continue;
            };
            let folder = built.manifest_path.parent();
            let folder = folder.context("a manifest is in a folder")?.to_owned();
            let binary = Binary { executable, folder };
            let name = built.target.binary();
            if binaries.insert(name.clone(), binary).is_some() {
                bail!("two test binaries have the name {name}");
            }
        }
        Ok(Self(binaries))
    }

    /// Runs the test of a sabotage, with the sabotage on or off.
    pub(super) fn run(&self, sabotage: &Sabotage, on: bool) -> anyhow::Result<Verdict> {
        let Some(binary) = self.0.get(&sabotage.binary) else {
            let what = format!("there is no test binary {}", sabotage.binary);
            return Ok(Verdict::None(what));
        };
        let mut test = Command::new(&binary.executable);
        test.args(["--exact", &sabotage.test])
            .current_dir(&binary.folder)
            // A failure that is wanted is no regression to be kept.
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .env_remove(SWITCH)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if on {
            test.env(SWITCH, &sabotage.name);
        }
        let mut running = test.spawn().context("the test does not start")?;
        let output = running.stdout.take().context("its output is piped")?;
        // Read beside the wait: a test that says much would stop at a full pipe.
        let reader = std::thread::spawn(move || read_all(output));
        let status = wait(&mut running)?;
        let output = reader.join().expect("reading does not panic")?;
        Ok(verdict(status, &output))
    }
}

fn read_all(mut output: impl Read) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// How the test ended; none if it was ended because it took too long.
fn wait(running: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = running.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() >= TIME_LIMIT {
            running.kill()?;
            running.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn verdict(status: Option<ExitStatus>, output: &str) -> Verdict {
    let Some(status) = status else {
        return Verdict::None(format!("it did not end within {} s", TIME_LIMIT.as_secs()));
    };
    if !output.contains("running 1 test") {
        return Verdict::None("there is no such test".into());
    }
    match status.code() {
        Some(0) if output.contains(" 1 passed") => Verdict::Passed,
        Some(TEST_FAILED) => Verdict::Failed,
        _ => Verdict::None(format!("it ended with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const BUILT: &str = r#"{"reason":"compiler-artifact","manifest_path":"/c/engine/Cargo.toml","target":{"name":"script","kind":["test"]},"profile":{"test":true},"executable":"/t/script-1"}
{"reason":"compiler-artifact","manifest_path":"/c/model/Cargo.toml","target":{"name":"model","kind":["lib"]},"profile":{"test":false},"executable":null}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn finds_test_binaries_in_the_output_of_cargo() {
        let binaries = Binaries::read(BUILT).unwrap();
        let names: Vec<_> = binaries.0.keys().collect();
        assert_eq!(names, ["tests/script"]);
        assert_eq!(binaries.0["tests/script"].folder, Path::new("/c/engine"));
    }

    #[test]
    fn only_a_test_that_ran_has_a_verdict() {
        let exit = |code: i32| Some(ExitStatus::from_raw(code << 8));
        let passed = "running 1 test\ntest result: ok. 1 passed; 0 failed";
        assert_eq!(verdict(exit(0), passed), Verdict::Passed);
        let failed = "running 1 test\ntest result: FAILED. 0 passed; 1 failed";
        assert_eq!(verdict(exit(101), failed), Verdict::Failed);
        let no_test = "running 0 tests\ntest result: ok. 0 passed; 0 failed";
        assert!(matches!(verdict(exit(0), no_test), Verdict::None(_)));
        let skipped = "running 1 test\ntest result: ok. 0 passed; 0 failed; 1 ignored";
        assert!(matches!(verdict(exit(0), skipped), Verdict::None(_)));
        let crashed = Some(ExitStatus::from_raw(6));
        assert!(matches!(verdict(crashed, failed), Verdict::None(_)));
        assert!(matches!(verdict(None, failed), Verdict::None(_)));
    }
}
