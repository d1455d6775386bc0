//! What the proto file says about each message, made ready for walking.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

/// All messages.
pub(super) struct Schema {
    by_name: BTreeMap<String, usize>,
    shapes: Vec<Vec<Field>>,
}

/// One field of a message.
pub(super) struct Field {
    pub(super) number: u32,
    /// As it is shown.
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) kind: Kind,
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    One,
    /// Known not to be there.
    Optional,
    /// One of several.
    Choice,
    Many,
    Map,
}

/// What a value means.
pub(super) enum Kind {
    Text,
    Bool,
    Signed,
    Unsigned,
    Double,
    Time,
    Span,
    /// Names by number.
    Enum(BTreeMap<u64, String>),
    /// Another shape.
    Message(usize),
}

impl Schema {
    /// Reads a compiled proto file with what it imports.
    pub(super) fn read(descriptors: &[u8]) -> Self {
        let files = FileDescriptorSet::decode(descriptors).expect("compiled into this program");
        let mut messages: Vec<(String, &DescriptorProto)> = Vec::new();
        let mut enums: BTreeMap<String, &EnumDescriptorProto> = BTreeMap::new();
        for file in &files.file {
            let package = format!(".{}", file.package());
            for found in &file.enum_type {
                enums.insert(format!("{package}.{}", found.name()), found);
            }
            for found in &file.message_type {
                collect(&package, found, &mut messages, &mut enums);
            }
        }
        let by_name: BTreeMap<String, usize> =
            messages.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        let shape = |message: &DescriptorProto| {
            let fields = message.field.iter();
            fields.filter_map(|field| Field::read(field, message, &by_name, &messages, &enums)).collect()
        };
        let shapes = messages.iter().map(|(_, message)| shape(message)).collect();
        Self { by_name, shapes }
    }

    /// The shape of a message of the view.
    pub(super) fn shape(&self, name: &str) -> usize {
        self.by_name[&format!(".bigfleet.view.v1.{name}")]
    }

    /// How many messages there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Its fields, in the order of the proto file.
    pub(super) fn fields(&self, shape: usize) -> &[Field] {
        &self.shapes[shape]
    }
}

fn collect<'a>(
    package: &str,
    message: &'a DescriptorProto,
    messages: &mut Vec<(String, &'a DescriptorProto)>,
    enums: &mut BTreeMap<String, &'a EnumDescriptorProto>,
) {
    let name = format!("{package}.{}", message.name());
    for found in &message.enum_type {
        enums.insert(format!("{name}.{}", found.name()), found);
    }
    for found in &message.nested_type {
        collect(&name, found, messages, enums);
    }
    messages.push((name, message));
}

impl Field {
    /// `None` for what is never shown: bytes.
    fn read(
        field: &FieldDescriptorProto,
        message: &DescriptorProto,
        by_name: &BTreeMap<String, usize>,
        messages: &[(String, &DescriptorProto)],
        enums: &BTreeMap<String, &EnumDescriptorProto>,
    ) -> Option<Self> {
        let mut name = field.name().to_owned();
        let mut form = match (field.label(), field.proto3_optional(), field.oneof_index) {
            (Label::Repeated, _, _) => Form::Many,
            (_, true, _) => Form::Optional,
            (_, false, Some(_)) => Form::Choice,
            _ => Form::One,
        };
        let kind = match field.r#type() {
            Type::String => Kind::Text,
            Type::Bytes => return None,
            Type::Bool => Kind::Bool,
            Type::Double => Kind::Double,
            Type::Int64 if name == "unix_nanos" && message.name() != "Moment" => {
                name = "time".into();
                Kind::Time
            }
            Type::Int64 if name.ends_with("_unix_nanos") => {
                name.truncate(name.len() - "_unix_nanos".len());
                // The time of a cycle beside its number.
                if message.field.iter().any(|other| other.name() == name) {
                    name.push_str("_time");
                }
                Kind::Time
            }
            Type::Int64 if name.ends_with("_nanos") => {
                name.truncate(name.len() - "nanos".len());
                name.push_str("secs");
                Kind::Span
            }
            Type::Int32 | Type::Int64 => Kind::Signed,
            Type::Uint32 | Type::Uint64 => Kind::Unsigned,
            Type::Enum => Kind::Enum(names(enums[field.type_name()])),
            Type::Message => {
                let at = by_name[field.type_name()];
                if messages[at].1.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry) {
                    form = Form::Map;
                    Kind::Text
                } else {
                    Kind::Message(at)
                }
            }
            other => panic!("{}.{name} has the type {other:?}, which the view does not use", message.name()),
        };
        Some(Self { number: field.number().cast_unsigned(), name, form, kind })
    }
}

/// The names of an enumeration without the prefix they share with its type: `ACTION_KIND_RECLAIM` is `reclaim`.
fn names(found: &EnumDescriptorProto) -> BTreeMap<u64, String> {
    let first = found.value.first().map_or("", |value| value.name());
    let prefix = first.strip_suffix("UNSPECIFIED").unwrap_or_default();
    let shown = |name: &str| name.strip_prefix(prefix).unwrap_or(name).to_lowercase();
    found.value.iter().map(|value| (u64::from(value.number().cast_unsigned()), shown(value.name()))).collect()
}
