//! The pages of reference: calls and messages out of the protos, resources out of the definitions, commands out of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bigfleet_crds::{ServerVersion, definitions};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};
use serde_json::Value;

use crate::flags::LISTED;
use crate::is_made_of;

/// The packages, what they are for, and the files that describe them.
pub(crate) fn packages() -> [(&'static str, &'static [u8]); 4] {
    [
        (
            "Providers, operators, coordinators: the wire that others speak as well.",
            bigfleet_proto::FILE_DESCRIPTOR_SET,
        ),
        ("Listings that stream.", bigfleet_proto::STREAM_FILE_DESCRIPTOR_SET),
        ("What people see of a shard, and what they tell it.", bigfleet_view::FILE_DESCRIPTOR_SET),
        ("What people tell a coordinator.", bigfleet_proto::FLEET_FILE_DESCRIPTOR_SET),
    ]
}

/// What is said above something in a file, by its path there.
struct Comments(BTreeMap<Vec<i32>, String>);

impl Comments {
    fn of(file: &FileDescriptorProto) -> Self {
        let locations = file.source_code_info.iter().flat_map(|info| &info.location);
        let said = locations.filter_map(|one| {
            let text = one.leading_comments.as_deref()?.split_whitespace().collect::<Vec<_>>().join(" ");
            // A cell of a table.
            Some((one.path.clone(), text.replace('|', "\\|").replace('<', "&lt;")))
        });
        Self(said.collect())
    }

    fn at(&self, path: &[i32]) -> &str {
        self.0.get(path).map_or("", String::as_str)
    }
}

/// A place in a list, as paths of comments have it.
fn place(at: usize) -> i32 {
    i32::try_from(at).expect("lists are short")
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn type_of(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let base = match field.r#type() {
        Type::Message | Type::Enum => {
            let entry = message.nested_type.iter().find(|nested| {
                nested.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry)
                    && nested.name() == short(field.type_name())
            });
            if let Some(entry) = entry {
                let [key, value] = [0, 1].map(|at| type_of(&entry.field[at], entry));
                return format!("map of {key} to {value}");
            }
            short(field.type_name()).to_owned()
        }
        other => format!("{other:?}").to_lowercase(),
    };
    match field.label() {
        Label::Repeated => format!("list of {base}"),
        _ if field.proto3_optional() => format!("{base}, optional"),
        _ => base,
    }
}

fn message(page: &mut String, of: &DescriptorProto, comments: &Comments, path: &[i32]) {
    let about = comments.at(path);
    writeln!(page, "\n#### {}\n\n{about}", of.name()).unwrap();
    if !of.field.is_empty() {
        page.push_str("\n| field | number | type | what |\n|---|---:|---|---|\n");
    }
    for (at, field) in of.field.iter().enumerate() {
        let said = comments.at(&[path, &[2, place(at)]].concat());
        writeln!(page, "| `{}` | {} | {} | {said} |", field.name(), field.number(), type_of(field, of))
            .unwrap();
    }
    for (at, nested) in of.nested_type.iter().enumerate() {
        if !nested.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry) {
            message(page, nested, comments, &[path, &[3, place(at)]].concat());
        }
    }
    for (at, nested) in of.enum_type.iter().enumerate() {
        enumeration(page, nested, comments, &[path, &[4, place(at)]].concat());
    }
}

fn enumeration(page: &mut String, of: &EnumDescriptorProto, comments: &Comments, path: &[i32]) {
    writeln!(
        page,
        "\n#### {}\n\n{}\n\n| value | number | what |\n|---|---:|---|",
        of.name(),
        comments.at(path)
    )
    .unwrap();
    for (at, value) in of.value.iter().enumerate() {
        let said = comments.at(&[path, &[2, place(at)]].concat());
        writeln!(page, "| `{}` | {} | {said} |", value.name(), value.number()).unwrap();
    }
}

#[test]
fn the_page_of_calls_is_made_of_the_protos() {
    let mut page = String::from(
        "# Calls and messages\n\nThe gRPC interfaces, made from the proto files in `crates/proto/proto` and `crates/view/proto`; do \
         not edit this\npage. What a provider must do beyond the shape of its messages is in [the contract](provider-contract.md).\n",
    );
    let mut seen = BTreeSet::new();
    for (about, bytes) in packages() {
        let mut package = "";
        let files = FileDescriptorSet::decode(bytes).unwrap().file;
        for file in files.iter().filter(|file| file.package().starts_with("bigfleet.")) {
            if !seen.insert(file.name().to_owned()) {
                continue;
            }
            if package != file.package() {
                package = file.package();
                writeln!(page, "\n## {package}\n\n{about}").unwrap();
            }
            writeln!(page, "\n### {}", file.name()).unwrap();
            let comments = Comments::of(file);
            for (at, service) in file.service.iter().enumerate() {
                let about = comments.at(&[6, place(at)]);
                writeln!(page, "\n#### {} (service)\n\n{about}\n", service.name()).unwrap();
                page.push_str("| call | asks | answers | what |\n|---|---|---|---|\n");
                for (number, call) in service.method.iter().enumerate() {
                    let said = comments.at(&[6, place(at), 2, place(number)]);
                    let side = |name: &str, streams: bool| {
                        format!("{}{}", if streams { "stream of " } else { "" }, short(name))
                    };
                    let asks = side(call.input_type(), call.client_streaming());
                    let answers = side(call.output_type(), call.server_streaming());
                    writeln!(page, "| `{}` | {asks} | {answers} | {said} |", call.name()).unwrap();
                }
            }
            for (at, one) in file.message_type.iter().enumerate() {
                message(&mut page, one, &comments, &[4, place(at)]);
            }
            for (at, one) in file.enum_type.iter().enumerate() {
                enumeration(&mut page, one, &comments, &[5, place(at)]);
            }
        }
    }
    assert!(
        page.contains("`GetVersion`")
            && page.contains("CapacityProvider")
            && page.matches("####").count() > 60
    );
    is_made_of("docs/reference-calls.md", &page);
}

fn fields(page: &mut String, schema: &Value, path: &str) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let kind = field["type"].as_str().unwrap_or("number or text");
        let kind = match kind {
            "array" => format!("list of {}", field["items"]["type"].as_str().unwrap_or("anything")),
            "object" if field["additionalProperties"].is_object() => "map".to_owned(),
            other => other.to_owned(),
        };
        let must = if required.contains(&name.as_str()) { ", required" } else { "" };
        let said = field["description"].as_str().unwrap_or_default();
        let said =
            said.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;");
        writeln!(page, "| `{path}` | {kind}{must} | {said} |").unwrap();
        if field["type"] == "array" {
            fields(page, &field["items"], &format!("{path}[]"));
        } else {
            fields(page, field, &path);
        }
    }
}

#[test]
fn the_page_of_resources_is_made_of_the_definitions() {
    let mut page = String::from(
        "# Custom resources\n\nMade from the definitions that `bigfleet crds` prints; do not edit this page. What the programs do \
         with them is in\n[connecting a cluster](kubernetes.md).\n",
    );
    for definition in definitions(ServerVersion::CURRENT) {
        let definition = serde_json::to_value(definition).unwrap();
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().unwrap() {
            let schema = &version["schema"]["openAPIV3Schema"];
            write!(
                page,
                "\n## {}\n\n`{}/{}`, {}. {}\n\n| field | type | what |\n|---|---|---|\n",
                spec["names"]["kind"].as_str().unwrap(),
                spec["group"].as_str().unwrap(),
                version["name"].as_str().unwrap(),
                spec["scope"].as_str().unwrap().to_lowercase(),
                schema["description"].as_str().unwrap_or_default(),
            )
            .unwrap();
            for part in ["spec", "status"] {
                fields(&mut page, &schema["properties"][part], part);
            }
        }
    }
    is_made_of("docs/reference-resources.md", &page);
}

#[test]
fn the_page_of_commands_is_made_of_the_program() {
    let mut page = String::from(
        "# Commands\n\nEvery command of `bigfleet` and its flags, made from the program; do not edit this page. `bigfleet COMMAND \
         --help` says more.\n",
    );
    let text = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ");
    for one in LISTED.iter() {
        writeln!(page, "\n## bigfleet {}\n\n{}", one.command, text(&one.about)).unwrap();
        if !one.flags.is_empty() {
            page.push_str("\n| flag | default | what |\n|---|---|---|\n");
        }
        for flag in &one.flags {
            let value = flag.value.as_ref().map(|value| format!(" {}", text(value))).unwrap_or_default();
            let many = if flag.repeats { " …" } else { "" };
            // A switch has no default worth saying.
            let default = if flag.value.is_some() { flag.default.join(", ") } else { String::new() };
            writeln!(page, "| `--{}{value}`{many} | {} | {} |", flag.name, text(&default), text(&flag.help))
                .unwrap();
        }
    }
    is_made_of("docs/reference-commands.md", &page);
}
