//! The keys of a volume or an export that is made by request, beside those that a file has for one
//! too.

use std::path::PathBuf;

use paternoster::GroupLimits;
use paternoster_disk::NbdUri;
use serde_json::{Map, Value, json};

use super::disk::URI;
use super::group::OfCertificates;
use super::kinds::{About, Entry, Flag, Kind, Size, Text};
use super::written::Form;
use super::{GroupKeys, Keys as _, NAME, keys};
use crate::config::pool::check_file_name;
use crate::tls::Identity;

/// The least volume that is made, in bytes, and that of which each is a multiple.
pub(crate) const LEAST: u64 = 1 << 20;
pub(crate) const MULTIPLE: u64 = 4096;

/// The name of a file, and never a path.
const SOCKET: Text<String> = Text {
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*$",
    read: |text, _| check_file_name("socket", text).map(|()| text.to_owned()),
    ..NAME
};

const SIZE: Size = Size::within(LEAST..=1 << 52);

keys! {
    /// What only a request says.
    pub struct RequestKeys, states RequestStates {
        size: Option<u64> = None, SIZE, live, of "volume", default "that of its source",
            range "whole blocks of 4096 bytes, 1 MiB or more";
            "Its size. It can grow while clients are connected, but for one on another server; new \
             sessions see that, and machines that are attached by shared memory.";
        source: Source = Source::New { allocated: false }, Sources, restart, of "volume",
            default "`{\"new\": \"sparse\"}`";
            "Where its bytes come from: a new image that is sparse or allocated, a copy of a \
             template, which is a read-only volume of the pool or an image below its path that \
             nobody has open, or an image below its path that is there already. In a pool of \
             `backend = \"nbd\"` it is the export of another server, in one of `\"modelled\"` \
             new and sparse.";
        copy: bool = false, Flag, restart, of "volume";
            "Whether a template is copied where its file system cannot share blocks.";
        durable: Option<bool> = None, Flag, restart,
            default "whether there is a `state_dir`; of an export, and its volume lasts";
            "Whether it is there again after a restart, recorded in the \
             [`state_dir`](#the-file).";
        vhost_user: Option<String> = None, SOCKET, restart,
            range "letters, digits, `.`, `_` and `-`";
            "Unix socket to which one virtual machine attaches: its name in the \
             [`vhost_user_dir`](#the-file).";
        limits: GroupLimits = GroupLimits::NONE, Limits, live, default "none";
            "Caps, reservations and latency target of its own group.";
        identities: Vec<Identity> = Vec::new(), OfCertificates, live, default "none";
            "Whose certificates enter it over TLS: those of its own group.";
    }
}

/// Where the bytes of a volume come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A new image, which reads as zeroes.
    New {
        /// Whether the file system sets its blocks aside.
        allocated: bool,
    },
    /// A copy of a volume or an image of that name.
    Template(String),
    /// An image that is there already, relative to the pool's path.
    Path(PathBuf),
    /// The export of another server.
    Far(NbdUri),
}

struct Sources;

const ALLOWED: &str = "{\"new\": \"sparse\"}, {\"new\": \"allocated\"}, {\"template\": NAME}, \
                       {\"path\": PATH} or {\"uri\": URI}";

impl Kind for Sources {
    type Value = Source;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Source> {
        let Form::Table(table) = &entry.found.form else { return entry.refuse(ALLOWED) };
        let [(key, value)] = &table[..] else { return entry.refuse(ALLOWED) };
        match (key.value.as_str(), &value.form) {
            ("new", Form::Text(text)) if text == "sparse" => Some(Source::New { allocated: false }),
            ("new", Form::Text(text)) if text == "allocated" => {
                Some(Source::New { allocated: true })
            }
            ("template", Form::Text(name)) => Some(Source::Template(name.clone())),
            ("path", Form::Text(path)) => Some(Source::Path(path.into())),
            ("uri", _) => {
                let uri = URI.read(&mut entry.inner("uri", value))?;
                Some(Source::Far(uri))
            }
            _ => entry.refuse(ALLOWED),
        }
    }

    fn show(&self, source: &Source) -> Value {
        match source {
            Source::New { allocated } => {
                json!({"new": if *allocated { "allocated" } else { "sparse" }})
            }
            Source::Template(name) => json!({ "template": name }),
            Source::Path(path) => json!({ "path": path }),
            Source::Far(uri) => json!({ "uri": uri.to_string() }),
        }
    }

    fn about(&self) -> About {
        let one = |key: &str, value: Value| {
            json!({"type": "object", "properties": {key: value}, "required": [key],
                   "additionalProperties": false})
        };
        let ways = [
            one("new", json!({"enum": ["sparse", "allocated"]})),
            one("template", json!({"type": "string"})),
            one("path", json!({"type": "string"})),
            one("uri", json!({"type": "string"})),
        ];
        About::new("object", format!("`{ALLOWED}`"), json!({ "oneOf": ways }))
    }
}

/// Limits of a group, by their keys.
struct Limits;

impl Kind for Limits {
    type Value = GroupLimits;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<GroupLimits> {
        let Form::Table(table) = &entry.found.form else { return entry.refuse("an object") };
        let mut keys = GroupKeys::default();
        let mut are_all = true;
        for (name, value) in table {
            let known = || GroupKeys::part("limits");
            let key = known().find(|key| key.name == name.value);
            let read = if let Some(key) = key {
                (key.read)(&mut keys, &mut entry.inner(key.name, value))
            } else {
                let names: Vec<_> = known().map(|key| key.name).collect();
                entry.refuse(format!("an object of {}", names.join(", ")))
            };
            are_all &= read.is_some();
        }
        are_all.then_some(keys.limits)
    }

    /// Those that there are.
    fn show(&self, limits: &GroupLimits) -> Value {
        let shown = |limits| {
            let keys = GroupKeys { limits, ..GroupKeys::default() };
            GroupKeys::part("limits").map(move |key| (key.name.to_owned(), (key.show)(&keys)))
        };
        let all = shown(*limits).zip(shown(GroupLimits::NONE));
        let set = all.filter(|(one, none)| one != none).map(|(one, _)| one);
        Value::Object(set.collect::<Map<_, _>>())
    }

    fn about(&self) -> About {
        let keys = GroupKeys::part("limits");
        let properties = keys.map(|key| (key.name.to_owned(), (key.about)().schema));
        let properties = Value::Object(properties.collect());
        let schema =
            json!({"type": "object", "properties": properties, "additionalProperties": false});
        About::new("object", "the limits of [a group](#groupspath)", schema)
    }
}
