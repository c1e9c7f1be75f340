//! A node is started on a folder that is not its own, by a slip of whoever writes configurations.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Output, Stdio};

use crate::cluster::Cluster;
use crate::process::wait;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_served_as_the_node_that_it_is() {
    let mut cluster = Cluster::of_regions().await;
    let member = &mut cluster.members()[0];
    // What it knew of the cluster is in its log only.
    member.kill();
    let (name, config) = (member.name().to_owned(), member.config());
    let written = fs::read_to_string(&config).expect("it has a configuration");

    let data = member.data();
    let alone = [
        OsStr::new("--data-dir"),
        data.as_os_str(),
        OsStr::new("--listen"),
        OsStr::new("127.0.0.1:0"),
    ];
    let said = refusal(&alone);
    assert!(said.contains("orderly serve --config"), "{said}");

    for (ours, other) in [(name.as_str(), "north-9"), ("\"north\"", "\"south\"")] {
        fs::write(&config, written.replacen(ours, other, 1)).expect("it can be written");
        let said = refusal(&[OsStr::new("--config"), config.as_os_str()]);
        assert!(
            said.contains(&name) && said.contains("say so in the file"),
            "{said}"
        );
    }

    fs::write(&config, written).expect("it can be written");
    member.start();
    cluster.ready().await;
}

/// What a node says that does not start.
fn refusal(words: &[&OsStr]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_orderly"))
        .arg("serve")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    wait(&mut child);
    let Output { status, stderr, .. } = child.wait_with_output().expect("it is our child");
    assert_eq!(status.code(), Some(1));
    String::from_utf8_lossy(&stderr).into_owned()
}
