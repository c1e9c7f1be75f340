//! Our files say the same as Google's own Python package: every message,
//! field, number, type, oneof, enum value, method and REST binding.
//!
//! Both sides are written as facts, a line each, and compared. The package's
//! side comes from official_descriptors.py.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use prost_reflect::prost_types::field_descriptor_proto::Label;
use prost_reflect::prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto};
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value};

#[test]
fn files_say_what_the_official_package_says() {
    let official = match official_facts() {
        Ok(facts) => facts,
        Err(reason) => {
            // Written to the handle, since the harness hides what macros print.
            let _ = writeln!(io::stderr(), "skipped: no official package: {reason}");
            return;
        }
    };
    let ours = our_facts();
    let missing: Vec<_> = official.difference(&ours).collect();
    let additional: Vec<_> = ours.difference(&official).collect();
    assert!(
        missing.is_empty() && additional.is_empty(),
        "our files differ from the official package\nmissing: {missing:#?}\nadditional: {additional:#?}"
    );
}

/// The facts of the package, or why there are none. The script's own failures
/// are failures of the test, not reasons to skip it.
fn official_facts() -> Result<BTreeSet<String>, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let venv = Command::new(here.join("../compat/python/venv"))
        .output()
        .map_err(|error| error.to_string())?;
    if !venv.status.success() {
        return Err(String::from_utf8_lossy(&venv.stderr).into_owned());
    }
    let environment = String::from_utf8(venv.stdout).expect("the path is text");
    let output = Command::new(Path::new(environment.trim()).join("bin/python"))
        .arg(here.join("tests/official_descriptors.py"))
        .output()
        .expect("the environment has a Python");
    assert!(
        output.status.success(),
        "official_descriptors.py failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let facts = String::from_utf8(output.stdout).expect("the script prints text");
    Ok(facts.lines().map(str::to_owned).collect())
}

fn our_facts() -> BTreeSet<String> {
    let pool = DescriptorPool::decode(proto::FILE_DESCRIPTOR_SET).expect("our own descriptor set");
    let mut facts = BTreeSet::new();
    for file in pool.file_descriptor_protos() {
        // The others are imports: REST bindings and well-known types.
        if ["google.pubsub.v1", "google.iam.v1", "google.type"].contains(&file.package()) {
            for message in &file.message_type {
                add_message(message, file.package(), &mut facts);
            }
            for enumeration in &file.enum_type {
                add_enum(enumeration, file.package(), &mut facts);
            }
        }
    }
    for method in pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
    {
        add_method(&method, &mut facts);
    }
    facts
}

fn add_message(message: &DescriptorProto, scope: &str, facts: &mut BTreeSet<String>) {
    let name = format!("{scope}.{}", message.name());
    facts.insert(format!("message {name}"));
    for field in &message.field {
        facts.insert(field_fact(field, message, &name));
    }
    for nested in &message.nested_type {
        add_message(nested, &name, facts);
    }
    for enumeration in &message.enum_type {
        add_enum(enumeration, &name, facts);
    }
}

fn field_fact(field: &FieldDescriptorProto, message: &DescriptorProto, scope: &str) -> String {
    let oneof = match field.oneof_index {
        // `optional` is a oneof of the compiler's making.
        Some(index) if !field.proto3_optional() => message.oneof_decl[index as usize].name(),
        _ => "-",
    };
    let type_name = field.type_name().trim_start_matches('.');
    format!(
        "field {scope}.{} {} {} {} {} {oneof} {}",
        field.name(),
        field.number(),
        Label::as_str_name(&field.label()),
        field.r#type().as_str_name(),
        if type_name.is_empty() { "-" } else { type_name },
        if field.proto3_optional() {
            "presence"
        } else {
            "-"
        },
    )
}

fn add_enum(enumeration: &EnumDescriptorProto, scope: &str, facts: &mut BTreeSet<String>) {
    let name = format!("{scope}.{}", enumeration.name());
    facts.insert(format!("enum {name}"));
    for value in &enumeration.value {
        facts.insert(format!("value {name}.{} {}", value.name(), value.number()));
    }
}

fn add_method(method: &MethodDescriptor, facts: &mut BTreeSet<String>) {
    let path = format!("{}/{}", method.parent_service().full_name(), method.name());
    let kind = |streams| if streams { "stream" } else { "unary" };
    facts.insert(format!(
        "method {path} {} {} {} {}",
        kind(method.is_client_streaming()),
        method.input().full_name(),
        kind(method.is_server_streaming()),
        method.output().full_name(),
    ));

    let http = method
        .parent_pool()
        .get_extension_by_name("google.api.http")
        .expect("annotations.proto is in the set");
    if let Value::Message(rule) = method.options().get_extension(&http).as_ref() {
        add_binding(&path, rule, facts);
    }
}

/// Adds one `google.api.HttpRule` and the ones inside it. A method without
/// binding has the empty rule, which has no pattern.
fn add_binding(path: &str, rule: &DynamicMessage, facts: &mut BTreeSet<String>) {
    let body = text(rule, "body");
    for verb in ["get", "put", "post", "delete", "patch"] {
        if rule.has_field_by_name(verb) {
            let body = if body.is_empty() { "-" } else { &body };
            facts.insert(format!("http {path} {verb} {} {body}", text(rule, verb)));
        }
    }
    let more = rule
        .get_field_by_name("additional_bindings")
        .expect("a field of HttpRule");
    for rule in more.as_list().expect("a repeated field") {
        add_binding(path, rule.as_message().expect("a list of rules"), facts);
    }
}

fn text(rule: &DynamicMessage, field: &str) -> String {
    let value = rule.get_field_by_name(field).expect("a field of HttpRule");
    value.as_str().expect("a string field").to_owned()
}
