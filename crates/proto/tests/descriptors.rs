//! Every message, field, number, enum and method of the wire, held against a table written from the
//! description of the wire, not from the proto files.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

/// One line per message: name, then `field type number`, then `reserved numbers`.
const MESSAGES: &str = include_str!("wire/messages.txt");
/// One line per enum: name, then `value number`.
const ENUMS: &str = include_str!("wire/enums.txt");
/// One line per method: path, request, response, each with `stream` where it streams.
const METHODS: &str = include_str!("wire/methods.txt");

fn files() -> FileDescriptorSet {
    FileDescriptorSet::decode(bigfleet_proto::FILE_DESCRIPTOR_SET).expect("our own descriptor set")
}

fn lines(table: &str) -> Vec<String> {
    let mut lines: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    lines.sort();
    lines
}

fn short(type_name: &str) -> &str {
    type_name.trim_start_matches(".bigfleet.v1alpha1.")
}

fn kind(field: &FieldDescriptorProto, entries: &BTreeMap<String, String>) -> String {
    let base = match field.r#type() {
        Type::String => "string".into(),
        Type::Bytes => "bytes".into(),
        Type::Int32 => "int32".into(),
        Type::Int64 => "int64".into(),
        Type::Bool => "bool".into(),
        Type::Double => "double".into(),
        Type::Message | Type::Enum => short(field.type_name()).to_string(),
        other => panic!("the wire has no {other:?}"),
    };
    match (entries.get(&base), field.label()) {
        (Some(entry), _) => entry.clone(),
        (None, Label::Repeated) => format!("repeated:{base}"),
        (None, _) => base,
    }
}

/// Map entries of a message by their full name, as `map:key:value`.
fn map_entries(message: &DescriptorProto) -> BTreeMap<String, String> {
    let entry = |nested: &DescriptorProto| {
        let none = BTreeMap::new();
        let kinds: Vec<_> = nested.field.iter().map(|field| kind(field, &none)).collect();
        (format!("{}.{}", message.name(), nested.name()), format!("map:{}", kinds.join(":")))
    };
    message.nested_type.iter().map(entry).collect()
}

fn message_line(message: &DescriptorProto) -> String {
    let entries = map_entries(message);
    let mut line = message.name().to_string();
    for field in &message.field {
        let oneof = field.oneof_index.map(|at| format!("{}/", message.oneof_decl[at as usize].name()));
        let oneof = oneof.unwrap_or_default();
        line.extend([
            " | ",
            &oneof,
            field.name(),
            " ",
            &kind(field, &entries),
            " ",
            &field.number().to_string(),
        ]);
    }
    let reserved: Vec<_> =
        message.reserved_range.iter().flat_map(|range| range.start()..range.end()).collect();
    if !reserved.is_empty() {
        line.extend([" | reserved ", &reserved.iter().map(i32::to_string).collect::<Vec<_>>().join(" ")]);
    }
    line
}

fn enum_line(prefix: &str, definition: &EnumDescriptorProto) -> String {
    let values = definition.value.iter().map(|v| format!("{} {}", v.name(), v.number()));
    let parts: Vec<_> = std::iter::once(format!("{prefix}{}", definition.name())).chain(values).collect();
    parts.join(" | ")
}

#[test]
fn the_package_is_the_one_everybody_speaks() {
    for file in files().file {
        assert_eq!(file.package(), "bigfleet.v1alpha1", "{}", file.name());
        assert_eq!(file.syntax(), "proto3", "{}", file.name());
        assert!(
            file.options.is_some_and(|o| o.go_package().ends_with("/bigfleet/v1alpha1;bigfleetv1alpha1"))
        );
    }
}

#[test]
fn messages_and_fields_are_those_of_the_wire() {
    let mut ours: Vec<_> = files().file.iter().flat_map(|f| &f.message_type).map(message_line).collect();
    ours.sort();
    assert_eq!(ours, lines(MESSAGES));
}

#[test]
fn enums_are_those_of_the_wire() {
    let mut ours = Vec::new();
    for file in files().file {
        ours.extend(file.enum_type.iter().map(|e| enum_line("", e)));
        for message in &file.message_type {
            ours.extend(message.enum_type.iter().map(|e| enum_line(&format!("{}.", message.name()), e)));
        }
    }
    ours.sort();
    assert_eq!(ours, lines(ENUMS));
}

#[test]
fn methods_are_those_of_the_wire() {
    let mut ours = Vec::new();
    for file in files().file {
        for service in &file.service {
            for method in &service.method {
                let side = |streams, name| format!("{}{}", if streams { "stream:" } else { "" }, short(name));
                ours.push(format!(
                    "/{}.{}/{} {} {}",
                    file.package(),
                    service.name(),
                    method.name(),
                    side(method.client_streaming(), method.input_type()),
                    side(method.server_streaming(), method.output_type()),
                ));
            }
        }
    }
    ours.sort();
    assert_eq!(ours, lines(METHODS));
}
