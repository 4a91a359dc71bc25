//! The schemas of bodies and answers of the control plane, for its document.
//!
//! What bodies of volumes take is the table of keys' to say; what answers have is written here, and
//! a test has a validator compare it with what a server answers.

use serde_json::{Value, json};

use super::record::RecordQuestion;
use crate::config::{self, new_group, wanted_schemas};
use crate::stat::Stat;

/// Where that schema is in the document.
pub(super) fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// The schemas of bodies and answers.
pub(super) fn schemas() -> Value {
    let [new, patch] = wanted_schemas(config::VOLUME);
    let [new_export, export_patch] = wanted_schemas(config::EXPORT);
    let [new_group, group_patch] = new_group::schemas();
    let text = json!({"type": "string"});
    let version = json!({"const": Stat::VERSION});
    let list = |of: Value| json!({"type": "array", "items": of});
    let volumes = [
        ("version", version.clone(), true),
        ("volumes", list(reference("Volume")), true),
        ("next", text.clone(), false),
    ];
    let exports = [
        ("version", version.clone(), true),
        ("exports", list(reference("Export")), true),
        ("next", text.clone(), false),
    ];
    let groups = [("version", version.clone(), true), ("groups", list(reference("Group")), true)];
    let pools = [("version", version.clone(), true), ("pools", list(reference("Pool")), true)];
    json!({
        "Any": {"type": "object"},
        "Export": export(),
        "ExportPatch": export_patch,
        "Exports": object(&exports),
        "NewExport": new_export,
        "Group": group(&new_group),
        "GroupPatch": group_patch,
        "Groups": object(&groups),
        "NewGroup": new_group,
        "NewVolume": new,
        "Operation": operation(),
        "Pool": pool(),
        "Pools": object(&pools),
        "Problem": problem(),
        "NewRecording": new_recording(),
        "Recordings": recordings(),
        "Removed": object(&[("version", version, true), ("removed", text.clone(), true)]),
        "Text": text,
        "Volume": volume(),
        "VolumePatch": patch,
        "Volumes": object(&volumes),
    })
}

/// The schema of a pool.
fn pool() -> Value {
    let [text, number] = ["string", "integer"].map(|kind| json!({"type": kind}));
    let list = |of: Value| json!({"type": "array", "items": of});
    object(&[
        ("version", json!({"const": Stat::VERSION}), true),
        ("name", text.clone(), true),
        ("path", text.clone(), false),
        ("devices", list(text.clone()), true),
        ("capacity", number.clone(), false),
        ("backend", json!({"enum": ["file", "nbd", "modelled"]}), true),
        ("used", number.clone(), true),
        ("free", number.clone(), false),
        ("volumes", number.clone(), true),
        ("volumes_max", number.clone(), true),
        ("depth", number.clone(), false),
    ])
}

/// The schema of a volume.
fn volume() -> Value {
    let states =
        json!({"enum": ["creating", "ready", "poisoned", "quiesced", "draining", "missing"]});
    with_shared(&[
        ("pool", json!({"type": "string"}), true),
        ("source", json!({"type": "object"}), false),
        ("path", json!({"type": "string"}), false),
        ("uri", json!({"type": "string"}), false),
        ("far", json!({"type": "object"}), false),
        ("export", json!({"type": "string"}), false),
        ("state", states, true),
    ])
}

/// The schema of an export that is not a volume's own.
fn export() -> Value {
    with_shared(&[
        ("disk", json!({"type": "string"}), true),
        ("volume", json!({"type": "string"}), false),
        ("offset", json!({"type": "integer"}), true),
        ("state", json!({"enum": ["ready", "draining", "missing"]}), true),
    ])
}

/// An object of these properties, and of those that volumes and exports have in common.
fn with_shared(own: &[(&str, Value, bool)]) -> Value {
    let [text, number, flag] = ["string", "integer", "boolean"].map(|kind| json!({"type": kind}));
    let shared = [
        ("version", json!({"const": Stat::VERSION}), true),
        ("name", text.clone(), true),
        ("size", number.clone(), true),
        ("group", text.clone(), true),
        ("weight", number.clone(), false),
        ("limits", json!({"type": "object"}), false),
        ("ioprio", text.clone(), true),
        ("read_only", flag.clone(), true),
        ("description", text.clone(), false),
        ("durable", flag.clone(), true),
        ("of_file", flag, true),
        ("why", text.clone(), false),
        ("clients", number, true),
        ("vhost_user", text.clone(), false),
        ("uris", json!({"type": "array", "items": text}), true),
    ];
    object(&[&shared[..], own].concat())
}

/// The schema of what is to be recorded.
fn new_recording() -> Value {
    let [text, flag] = ["string", "boolean"].map(|kind| json!({"type": kind}));
    let (fewest, seconds) = (RecordQuestion::FEWEST, RecordQuestion::SECONDS);
    let bytes = json!({"type": "integer", "minimum": fewest});
    let (shortest, longest) = (seconds.start(), seconds.end());
    let seconds = json!({"type": "number", "minimum": shortest, "maximum": longest});
    object(&[
        ("disk", text, true),
        ("out", json!({"type": "string", "pattern": "^/.*[^/]$"}), true),
        ("max_bytes", bytes, false),
        ("seconds", seconds, false),
        ("anonymous", flag.clone(), false),
        ("last", flag, false),
    ])
}

/// The schema of recordings.
fn recordings() -> Value {
    let [text, number, flag] = ["string", "integer", "boolean"].map(|kind| json!({"type": kind}));
    let recording = object(&[
        ("disk", text.clone(), true),
        ("out", text.clone(), true),
        ("runs", flag.clone(), true),
        ("ended", text, true),
        ("failed", flag, true),
        ("requests", number.clone(), true),
        ("lost", number.clone(), true),
        ("bytes", number.clone(), true),
        ("span_ns", number, true),
    ]);
    let all = json!({"type": "array", "items": recording});
    object(&[("version", json!({"const": Stat::VERSION}), true), ("disks", all, true)])
}

/// The schema of an operation.
fn operation() -> Value {
    let [text, number] = ["string", "integer"].map(|kind| json!({"type": kind}));
    let words = |words: &[&str]| json!({ "enum": words });
    object(&[
        ("version", json!({"const": Stat::VERSION}), true),
        ("id", number.clone(), true),
        ("clients", number.clone(), false),
        ("until", number, false),
        ("kind", words(&["create", "change", "remove", "reopen", "quiesce", "resume"]), true),
        ("volume", text.clone(), false),
        ("export", text, false),
        ("state", words(&["running", "done", "failed"]), true),
        ("problem", reference("Problem"), false),
    ])
}

/// The schema of an error.
fn problem() -> Value {
    let text = |name| (name, json!({"type": "string"}), true);
    let [kind, title, detail, error] = ["type", "title", "detail", "error"].map(text);
    let status = ("status", json!({"type": "integer"}), true);
    let version = ("version", json!({"const": Stat::VERSION}), true);
    object(&[kind, title, status, detail, version, error])
}

/// The schema of a group: what may be asked for, and what there is beside.
fn group(new: &Value) -> Value {
    let number = || json!({"type": "integer"});
    let mut group = object(&[
        ("version", json!({"const": Stat::VERSION}), true),
        ("path", json!({"type": "string"}), true),
        ("of_file", json!({"type": "boolean"}), true),
        ("exports", number(), true),
        ("volumes_used", number(), true),
        ("used", number(), true),
    ]);
    if let (Some(all), Some(settings)) =
        (group["properties"].as_object_mut(), new["properties"].as_object())
    {
        all.extend(settings.clone());
    }
    group
}

/// An object of these properties, some of which are always there.
fn object(properties: &[(&str, Value, bool)]) -> Value {
    let required = properties.iter().filter(|(_, _, required)| *required);
    let required: Vec<_> = required.map(|(name, ..)| *name).collect();
    let properties =
        properties.iter().map(|(name, schema, _)| ((*name).to_owned(), schema.clone()));
    let properties = Value::Object(properties.collect());
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}
