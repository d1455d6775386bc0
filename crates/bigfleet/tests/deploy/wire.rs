//! Versions beside one another: the program of today knows everything that earlier ones say, under the same numbers.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_types::field_descriptor_proto::Label;
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

use crate::reference::packages;
use crate::{read, root};

fn kind(field: &FieldDescriptorProto) -> String {
    let many = match field.label() {
        Label::Repeated => "repeated ",
        _ if field.proto3_optional() => "optional ",
        _ => "",
    };
    let of = field.type_name().trim_start_matches('.');
    format!("{many}{} {of}", format!("{:?}", field.r#type()).to_lowercase()).trim_end().to_owned()
}

fn enumeration(lines: &mut BTreeSet<String>, scope: &str, of: &EnumDescriptorProto) {
    lines.extend(
        of.value.iter().map(|value| format!("{scope}.{}.{} = {}", of.name(), value.name(), value.number())),
    );
}

fn message(lines: &mut BTreeSet<String>, scope: &str, of: &DescriptorProto) {
    let name = format!("{scope}.{}", of.name());
    lines.extend(
        of.field.iter().map(|field| format!("{name}.{} = {}: {}", field.name(), field.number(), kind(field))),
    );
    of.nested_type.iter().for_each(|nested| message(lines, &name, nested));
    of.enum_type.iter().for_each(|nested| enumeration(lines, &name, nested));
}

/// Everything that is said today, a line each.
fn today() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (_, bytes) in packages() {
        for file in FileDescriptorSet::decode(bytes).unwrap().file {
            let package = file.package().to_owned();
            file.message_type.iter().for_each(|one| message(&mut lines, &package, one));
            file.enum_type.iter().for_each(|one| enumeration(&mut lines, &package, one));
            for service in &file.service {
                lines.extend(service.method.iter().map(|call| {
                    let side = |name: &str, streams: bool| {
                        format!("{}{}", if streams { "stream " } else { "" }, name.trim_start_matches('.'))
                    };
                    let asks = side(call.input_type(), call.client_streaming());
                    let answers = side(call.output_type(), call.server_streaming());
                    format!("{package}.{}/{}: {asks} -> {answers}", service.name(), call.name())
                }));
            }
        }
    }
    lines
}

/// What of an earlier version nobody understands any more.
fn lost<'a>(earlier: &'a str, today: &BTreeSet<String>) -> Vec<&'a str> {
    earlier.lines().filter(|line| !line.starts_with('#') && !today.contains(*line)).collect()
}

#[test]
fn what_earlier_versions_say_is_understood() {
    let today = today();
    if let Ok(version) = std::env::var("WIRE") {
        let file = root().join(format!("tests/fixtures/wire-{version}.txt"));
        assert!(!file.exists(), "{} is kept as it was", file.display());
        let lines: Vec<&str> = today.iter().map(String::as_str).collect();
        std::fs::write(file, format!("# What {version} speaks. Kept as it was.\n{}\n", lines.join("\n")))
            .unwrap();
    }
    let mut kept = 0;
    for entry in std::fs::read_dir(root().join("tests/fixtures")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("wire-") {
            kept += 1;
            let earlier = read(&format!("tests/fixtures/{name}"));
            assert!(earlier.lines().count() > 300, "{name} has more lines than that");
            assert_eq!(lost(&earlier, &today), [""; 0], "{name}");
        }
    }
    assert!(kept > 0, "the wire of an earlier version is kept");
}

#[test]
fn a_field_with_another_number_or_type_is_noticed() {
    let today = BTreeSet::from(["a.M.x = 1: string".to_owned(), "a.M.new = 2: bool".to_owned()]);
    assert_eq!(lost("# kept\na.M.x = 1: string\n", &today), [""; 0]);
    assert_eq!(
        lost("a.M.x = 2: string\na.M.x = 1: bytes\n", &today),
        ["a.M.x = 2: string", "a.M.x = 1: bytes"]
    );
}
