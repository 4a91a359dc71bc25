//! What a request says of a volume or an export: the body of a `PUT`, and of a `PATCH` what it
//! makes of one.
//!
//! ```text
//!   {"pool": "fast", "size": "10G", "weight": 200}
//!      │ as in [volumes.NAME]   │ as only a request says it
//!      ▼                        ▼
//!   ExportKeys               RequestKeys             by the same tables, with the same errors
//! ```

use std::path::{Path, PathBuf};

use paternoster::Weight;
use paternoster_disk::NbdUri;
use serde_json::{Map, Value, json};

use super::error::{Place, Problem};
use super::export::ExportConfig;
use super::group::check_group_path;
use super::keys::written::Written;
use super::keys::{
    At, ExportKeys, GroupKeys, Key, Keys as _, OF_SOCKET, Object, RequestKeys, Source, VOLUME,
    unknown_key,
};
use super::mistakes::Mistakes;
use super::pool::check_volume_name;
use super::reference::object;

/// A volume that is asked for, or an export of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `volume` or `export`.
    kind: &'static str,
    pub(crate) name: String,
    /// What a file says of it too; the path of a volume is its source's.
    pub(crate) keys: ExportKeys,
    /// What a request alone says.
    pub(crate) more: RequestKeys,
}

/// The keys of a file that a request does not have: an export is a volume's, whether a volume is no
/// export is for the file, and the path of a socket is the server's.
const NOT_OF_REQUESTS: [&str; 3] = ["disk", "export", "vhost_user"];

/// The keys that a request has of those of a file; the source of a volume says what path and uri
/// do.
fn of_file(kind: &str) -> impl Iterator<Item = &'static Key<ExportKeys>> {
    let is_of =
        move |key: &&Key<ExportKeys>| key.is_of(kind) && !NOT_OF_REQUESTS.contains(&key.name);
    ExportKeys::KEYS.iter().filter(is_of)
}

/// The keys that a request alone has.
fn of_request(kind: &str) -> impl Iterator<Item = &'static Key<RequestKeys>> {
    RequestKeys::KEYS.iter().filter(move |key| key.is_of(kind))
}

/// The key that has to be there.
fn required(kind: &str) -> &'static str {
    if kind == VOLUME { "pool" } else { "volume" }
}

/// Returns the JSON Schemas of what is asked for, and of a merge patch of one.
pub(crate) fn schemas(kind: &str) -> [Value; 2] {
    let keys: Vec<_> =
        of_file(kind).map(Key::info).chain(of_request(kind).map(Key::info)).collect();
    let mut new = object(&keys);
    new["required"] = json!([required(kind)]);
    let patch = patch_of(&new);
    [new, patch]
}

/// The JSON Schema of a merge patch of an object of that schema: null has the default again.
pub(super) fn patch_of(schema: &Value) -> Value {
    let mut patch = schema.clone();
    if let Some(patch) = patch.as_object_mut() {
        patch.remove("required");
    }
    for property in patch["properties"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        let description = property.as_object_mut().and_then(|one| one.remove("description"));
        *property = json!({"anyOf": [property.take(), {"type": "null"}]});
        property["description"] = description.unwrap_or_default();
    }
    patch
}

/// Returns what is wrong with a name of a volume.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let name = At { value: name.to_owned(), place: Place::Body };
    check_volume_name(&name).map_err(|mistake| mistake.problem.to_string())
}

impl Wanted {
    /// Reads a body, or returns all that is wrong with it.
    pub(crate) fn read(kind: &'static str, name: &str, body: &Value) -> Result<Self, String> {
        let mut mistakes = Mistakes::default();
        let at = || At { value: name.to_owned(), place: Place::Body };
        let mut keys = Object::<ExportKeys>::new(at());
        let mut more = Object::<RequestKeys>::new(at());
        let Value::Object(body) = body else {
            let required = required(kind);
            return Err(format!("{body}: an object with {required} and size is allowed"));
        };
        for (key, value) in body {
            let written = Written::json(value);
            let set = match () {
                () if of_file(kind).any(|known| known.name == key) => {
                    keys.set(key, &written, &mut mistakes)
                }
                () if of_request(kind).any(|known| known.name == key) => {
                    more.set(key, &written, &mut mistakes)
                }
                () => None,
            };
            if set.is_none() {
                let of_request = of_request(kind).map(|key| key.name);
                let all = of_file(kind).map(|key| key.name).chain(of_request);
                mistakes.add(&Place::Body, unknown_key(key, all));
            }
        }
        if keys.state(required(kind)).is_missing() {
            mistakes.add(&Place::Body, Problem::Missing { key: required(kind) });
        }
        if more.keys.copy && !matches!(more.keys.source, Source::Template(_)) {
            mistakes.note(more.states.copy.refuse(Problem::NothingToCopy));
        }
        if more.states.vhost_user.is_missing() {
            keys.refuse_keys_of_socket(&mut mistakes);
        }
        if let Some(group) = &keys.keys.group {
            let path = At { value: group.clone(), place: Place::Body };
            mistakes.note(check_group_path(&path));
            let of_own_group = [
                ("weight", &keys.states.weight),
                ("limits", &more.states.limits),
                ("identities", &more.states.identities),
            ];
            for (key, state) in of_own_group {
                let (name, group) = (name.to_owned(), group.clone());
                mistakes.note(state.refuse(Problem::BesideGroup { key, kind, name, group }));
            }
        }
        mistakes.problems()?;
        Ok(Self { kind, name: name.to_owned(), keys: keys.keys, more: more.keys })
    }

    /// One that the file declares, with the keys that hold of it.
    pub(crate) fn of_file(export: &ExportConfig) -> Self {
        let ExportConfig { name, keys, .. } = export;
        let (kind, more) = (export.what(), RequestKeys::default());
        Self { kind, name: name.clone(), keys: keys.clone(), more }
    }

    /// The same with a merge patch (RFC 7396) applied, or all that is wrong then.
    pub(crate) fn patched(&self, patch: &Value) -> Result<Self, String> {
        Self::read(self.kind, &self.name, &merged(self.body(), patch)?)
    }

    /// What it would be read from.
    pub(crate) fn body(&self) -> Map<String, Value> {
        let unset = ExportKeys::default();
        let is_said = |key: &&Key<ExportKeys>| {
            !OF_SOCKET.contains(&key.name) || (key.show)(&self.keys) != (key.show)(&unset)
        };
        let of_file = of_file(self.kind).filter(is_said);
        let of_file = of_file.map(|key| (key.name, (key.show)(&self.keys)));
        let more = of_request(self.kind).map(|key| (key.name, (key.show)(&self.more)));
        let nothing = [Value::Null, json!({}), json!([])];
        let shown = of_file.chain(more).filter(|one| !nothing.contains(&one.1));
        shown.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What it is, as messages say it.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// The path of its group.
    pub(crate) fn group(&self) -> String {
        self.keys.group.clone().unwrap_or_else(|| format!("/{}", self.name))
    }

    /// What is set of its own group.
    pub(crate) fn group_keys(&self) -> GroupKeys {
        let weight: Option<Weight> = self.keys.weight;
        let RequestKeys { limits, identities, .. } = self.more.clone();
        GroupKeys { weight, identities, limits, ..GroupKeys::default() }
    }

    /// Whether both begin with the same bytes, in the same pool.
    pub(crate) fn is_made_as(&self, other: &Self) -> bool {
        let made = |volume: &Self| {
            let RequestKeys { source, copy, durable, .. } = volume.more.clone();
            let source = (source, copy);
            (volume.keys.pool.clone(), source, durable)
        };
        made(self) == made(other)
    }

    /// Whether it is there again after a restart.
    pub(crate) fn is_durable(&self) -> bool {
        self.more.durable == Some(true)
    }

    /// The socket of virtual machines and how it is, where requests' are in that directory; or what
    /// is wrong where there is none.
    pub(crate) fn socket(&self, dir: Option<&Path>) -> Result<Option<PathBuf>, String> {
        let Some(name) = &self.more.vhost_user else { return Ok(self.keys.vhost_user.clone()) };
        let missing = || format!("vhost_user = {name:?}: the server has no vhost_user_dir");
        Ok(Some(dir.ok_or_else(missing)?.join(name)))
    }

    /// Whether both have the same socket of virtual machines, or none.
    pub(crate) fn has_same_socket(&self, other: &Self) -> bool {
        let of = |one: &Self| {
            let ExportKeys { vhost_user_mode, vhost_user_memory, .. } = one.keys;
            (one.more.vhost_user.clone(), vhost_user_mode, vhost_user_memory)
        };
        of(self) == of(other)
    }

    /// The path of the image that it takes as it is, if it takes one.
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        match &self.more.source {
            Source::Path(path) => Some(path),
            Source::New { .. } | Source::Template(_) | Source::Far(_) => None,
        }
    }

    /// The export of another server that it is, if it is one.
    pub(crate) fn uri(&self) -> Option<&NbdUri> {
        match &self.more.source {
            Source::Far(uri) => Some(uri),
            _ => None,
        }
    }

    /// Whether its bytes are to be its own, and new.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.more.source, Source::New { .. } | Source::Template(_))
    }
}

/// A body with a merge patch applied, or what is wrong with the patch.
pub(super) fn merged(mut body: Map<String, Value>, patch: &Value) -> Result<Value, String> {
    let Value::Object(patch) = patch else {
        return Err(format!("{patch}: an object of what is to change is allowed"));
    };
    merge(&mut body, patch);
    Ok(Value::Object(body))
}

/// Applies a merge patch: null removes, objects merge, all else replaces.
fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match (value, target.get_mut(key)) {
            (Value::Null, _) => {
                target.remove(key);
            }
            // A source is one thing or another.
            (Value::Object(patch), Some(Value::Object(target))) if key != "source" => {
                merge(target, patch);
            }
            (value, _) => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EXPORT;

    fn read(body: &Value) -> Wanted {
        Wanted::read(VOLUME, "vm7", body).expect("it is right")
    }

    #[test]
    fn body_is_read_and_shown_again() {
        let body = json!({
            "pool": "fast", "size": "10G", "weight": 200, "limits": {"riops": 1000, "wbps": "1M"},
            "source": {"template": "golden"}, "copy": true, "ioprio": "idle", "description": "x",
        });
        let volume = read(&body);
        assert_eq!(volume.group(), "/vm7");
        assert_eq!(read(&Value::Object(volume.body())), volume);
        assert_eq!(volume.body()["size"], 10_u64 << 30);
        assert_eq!(volume.body()["limits"], json!({"riops": 1000, "wbps": 1 << 20}));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let wrong = |body: Value| Wanted::read(VOLUME, "vm7", &body).expect_err("it is wrong");
        let body = json!({"size": 7, "weigth": 1, "group": "gold", "weight": 5, "source": {}});
        let said = wrong(body);
        for part in [
            "size = 7: 1048576 to 4503599627370496 bytes is allowed",
            "unknown key `weigth`; there are: `pool`, `group`",
            "missing key `pool`",
            "group \"gold\"",
            "volume \"vm7\" has weight and a group",
            "source = {}: {\"new\": \"sparse\"}",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        let said = wrong(json!({"pool": "fast", "limits": {"iopz": 1, "riops": 0}}));
        assert!(said.contains("riops = 0") && said.contains("an object of riops, wiops"), "{said}");
        assert!(wrong(json!([])).starts_with("[]: an object"));
        assert!(wrong(json!({"pool": "fast", "path": "x.img"})).contains("unknown key `path`"));
    }

    #[test]
    fn export_is_read_by_its_own_keys() {
        let read = |body: &Value| Wanted::read(EXPORT, "backup", body);
        let body = json!({"volume": "vm7", "offset": 4096, "size": "1M", "read_only": true});
        let export = read(&body).expect("it is right");
        assert_eq!((export.keys.offset, export.keys.size), (4096, Some(1 << 20)));
        assert_eq!(read(&Value::Object(export.body())), Ok(export));
        for (body, said) in [
            (json!({"size": 7}), "missing key `volume`"),
            (json!({"volume": "vm7", "pool": "fast"}), "unknown key `pool`; there are: `volume`"),
            (json!({"volume": "vm7", "source": {"new": "sparse"}}), "unknown key `source`"),
            (json!({"disk": "d"}), "unknown key `disk`"),
            (json!({"volume": "vm7", "group": "/g", "limits": {}}), "export \"backup\" has limits"),
        ] {
            let refused = read(&body).expect_err(said);
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn patch_is_merged_and_null_removes() {
        let volume =
            read(&json!({"pool": "fast", "weight": 7, "limits": {"riops": 5, "wiops": 6}}));
        let patch = json!({"weight": null, "limits": {"riops": null}, "description": "y"});
        let patched = volume.patched(&patch).expect("it is right");
        assert_eq!(patched.keys.weight, None);
        assert_eq!(patched.body()["limits"], json!({"wiops": 6}));
        assert!(patched.is_made_as(&volume) && patched != volume);
        let moved = volume.patched(&json!({"source": {"path": "a.img"}})).expect("it is right");
        assert!(!moved.is_made_as(&volume));
        assert!(volume.patched(&json!("x")).is_err());
    }
}
