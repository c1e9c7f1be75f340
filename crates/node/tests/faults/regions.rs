//! Regions with networks of their own, joined by a router that can be told to drop what goes from
//! one to another. Needs root, `unshare`, `nsenter` and `ip`.
//!
//! A test runs itself again inside a network name space of its own, which is the router; each
//! region is a further one. All of it is gone when that process ends.

use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Tells a test that it is the process inside.
const INSIDE: &str = "ORDERLY_TEST_INSIDE";

/// Runs the test of this name again inside, and answers whether this is that process. Where it
/// can't be, says that the test is skipped, and why.
pub(crate) fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if let Err(reason) = works() {
        // Past the capture of output, so that the skip is counted.
        let mut out = io::stdout();
        writeln!(out, "skipped: {test}: {reason}").expect("an output");
        return false;
    }
    let this = std::env::current_exe().expect("a test is a program");
    let status = Command::new("unshare")
        .args(["--mount", "--net"])
        .arg(this)
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(INSIDE, "yes")
        .status();
    assert!(status.expect("unshare is there").success(), "see above");
    false
}

/// Makes the network of each of these regions. Only for the process inside.
pub(crate) fn build(regions: &[&str]) {
    let build = || {
        ip("link set lo up")?;
        // What `ip netns` keeps there is of this test alone.
        run("mount", "-t tmpfs tmpfs /run")?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").map_err(|error| error.to_string())?;
        for (number, region) in regions.iter().enumerate() {
            ip(&format!("netns add {region}"))?;
            ip(&format!(
                "link add {region} type veth peer name eth0 netns {region}"
            ))?;
            ip(&format!("address add {}/24 dev {region}", router(number)))?;
            ip(&format!("link set {region} up"))?;
            ip(&format!("-n {region} link set lo up"))?;
            let node = host(number);
            ip(&format!("-n {region} address add {node}/24 dev eth0"))?;
            ip(&format!("-n {region} link set eth0 up"))?;
            let router = router(number);
            ip(&format!("-n {region} route add default via {router}"))?;
        }
        Ok::<(), String>(())
    };
    build().expect("a name space of one's own takes networks");
}

/// The command that runs a node inside a region.
pub(crate) fn runner(region: &str) -> Vec<String> {
    let space = format!("--net=/run/netns/{region}");
    vec!["nsenter".to_owned(), space]
}

/// The address of the node of a region.
pub(crate) fn host(number: usize) -> String {
    format!("10.80.{number}.1")
}

/// From now on nothing passes from one region to another; the way back stays open.
pub(crate) fn cut(from: usize, to: usize) {
    rule("add", from, to);
}

/// Takes a cut back.
pub(crate) fn mend(from: usize, to: usize) {
    rule("del", from, to);
}

fn rule(verb: &str, from: usize, to: usize) {
    let rule = format!("rule {verb} from 10.80.{from}.0/24 to 10.80.{to}.0/24 blackhole");
    ip(&rule).expect("the router has rules");
}

/// The router's address in a region.
fn router(number: usize) -> String {
    format!("10.80.{number}.254")
}

fn works() -> Result<(), String> {
    run("nsenter", "--version")?;
    run("unshare", "--mount --net ip link set lo up")
}

fn ip(arguments: &str) -> Result<(), String> {
    run("ip", arguments)
}

/// Runs a command to its end, or says why it did not succeed.
fn run(command: &str, arguments: &str) -> Result<(), String> {
    let output = Command::new(command)
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command} {arguments}: {}", said.trim()))
        }
    }
}
