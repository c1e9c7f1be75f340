//! Generates the messages, clients and servers from `proto/`, without protoc,
//! and writes the descriptor set that reflection and REST read.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost_types::FileDescriptorSet;
use prost_types::field_descriptor_proto::Type;

/// The files that hold the services for clients; they import all others.
const FILES: [&str; 2] = [
    "google/pubsub/v1/pubsub.proto",
    "google/iam/v1/iam_policy.proto",
];

/// The files that hold the services between nodes and for operators. Nothing of them is published
/// to clients.
const CLUSTER_FILES: [&str; 5] = [
    "orderly/admin/v1/admin.proto",
    "orderly/cluster/v1/control.proto",
    "orderly/cluster/v1/forward.proto",
    "orderly/cluster/v1/raft.proto",
    "orderly/cluster/v1/registry.proto",
];

/// The fields of `google.pubsub.v1` that our code carries encoded: see the
/// crate's module `wire`.
const CARRIED_ENCODED: [(&str, &str); 3] = [
    ("PublishRequest", "messages"),
    ("PullResponse", "received_messages"),
    ("StreamingPullResponse", "received_messages"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());

    let mut compiler = protox::Compiler::new([&root])?;
    compiler.open_files(FILES)?;
    let mut between_nodes = protox::Compiler::new([&root])?;
    between_nodes.open_files(CLUSTER_FILES)?;

    // The published set is exactly what the files say, without their comments.
    compiler.include_imports(true).include_source_info(false);
    let out = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    fs::write(out, compiler.encode_file_descriptor_set())?;

    let mut files = compiler.include_source_info(true).file_descriptor_set();
    // REST bindings are read from the published set; no code needs their types.
    files.file.retain(|file| file.package() != "google.api");
    carry_encoded(&mut files);
    files.file.extend(between_nodes.file_descriptor_set().file);
    tonic_prost_build::configure()
        .build_transport(false)
        .btree_map(".")
        .bytes(".")
        .include_file("generated.rs")
        .compile_fds(files)?;
    Ok(())
}

/// Declares the fields in [`CARRIED_ENCODED`] as bytes, for generated code
/// only. Nobody sees it on the wire, where a message in a field has the same
/// form as bytes.
fn carry_encoded(files: &mut FileDescriptorSet) {
    for (message, field) in CARRIED_ENCODED {
        let field = files
            .file
            .iter_mut()
            .filter(|file| file.package() == "google.pubsub.v1")
            .flat_map(|file| &mut file.message_type)
            .filter(|candidate| candidate.name() == message)
            .flat_map(|message| &mut message.field)
            .find(|candidate| candidate.name() == field)
            .unwrap_or_else(|| panic!("{message}.{field} is not in pubsub.proto"));
        field.set_type(Type::Bytes);
        field.type_name = None;
    }
}
