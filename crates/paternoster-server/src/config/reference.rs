//! What the tables of keys say of themselves: the reference, and the JSON Schema of a file.

use serde_json::{Map, Value, json};

use super::keys::{
    About, DISKS, DiskKeys, EXPORT, ExportKeys, GroupKeys, Key, KeyInfo, Keys, ListenKeys, POOLS,
    ServerKeys, TlsKeys, VOLUMES,
};

/// A kind of tables of the file.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// How one begins, in the reference.
    pub heading: &'static str,
    /// Its keys, in the order of the reference.
    pub keys: Vec<KeyInfo>,
}

/// Returns all kinds of tables that a file has, the file itself first.
pub fn reference() -> [TableInfo; 8] {
    let [tls, listen, groups] = [keys::<TlsKeys>(), keys::<ListenKeys>(), keys::<GroupKeys>()];
    let disks = keys_of::<DiskKeys>(|key| key.is_of_any(&DISKS));
    let pools = keys_of::<DiskKeys>(|key| key.is_of_any(&POOLS));
    let [volumes, exports] =
        [&VOLUMES[..], &[EXPORT]].map(|kinds| keys_of::<ExportKeys>(|key| key.is_of_any(kinds)));
    let named = |keys| json!({"type": "object", "additionalProperties": object(keys)});
    let several = json!({"type": "array", "items": object(&listen)});
    let see = "See below.";
    let of_listen = "Further sockets, each with the exports that it offers: [below](#listen).";
    let mut file = keys::<ServerKeys>();
    file.extend([
        tls_table(object(&tls)),
        tables("listen", "", "none", of_listen, several),
        tables("disks", "at least one, or a pool", "–", see, named(&disks)),
        tables("pools", "", "none", see, named(&pools)),
        tables("groups", "", "none", see, named(&groups)),
        tables("volumes", "of a pool without a path at least one", "none", see, named(&volumes)),
        tables(
            "exports",
            "at least one, or a volume, or a pool with a path",
            "–",
            see,
            named(&exports),
        ),
    ]);
    [
        TableInfo { heading: "## The file", keys: file },
        TableInfo { heading: "## `[tls]`", keys: tls },
        TableInfo { heading: "## `[[listen]]`", keys: listen },
        TableInfo { heading: "## `[disks.NAME]`", keys: disks },
        TableInfo { heading: "## `[pools.NAME]`", keys: pools },
        TableInfo { heading: "## `[groups.\"/PATH\"]`", keys: groups },
        TableInfo { heading: "## `[volumes.NAME]`", keys: volumes },
        TableInfo { heading: "## `[exports.NAME]`", keys: exports },
    ]
}

/// Returns the help of an option that stands for a key of the file or of a disk: the key's first
/// sentence, its range and its default.
///
/// # Panics
///
/// If there is no such key.
pub fn help(key: &str) -> String {
    let [file, _, _, disk, ..] = reference();
    let known = file.keys.iter().chain(&disk.keys).find(|known| known.name == key);
    let KeyInfo { about, default, effect, .. } = known.expect("a key of the file or of a disk");
    let effect = plain(effect);
    let sentence = effect.split_inclusive(". ").next().unwrap_or_default();
    let sentence = sentence.trim_end().trim_end_matches('.');
    format!("{sentence}; {} [default: {}]", plain(&about.range), plain(default))
}

/// The text without links and quotes of code.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once('[') {
        let (name, after) = after.split_once("](").unwrap_or((after, ""));
        let (_, after) = after.split_once(')').unwrap_or(("", after));
        // A link in parentheses says where there is more.
        let aside = before.strip_suffix(" (").zip(after.strip_prefix(')'));
        let (before, name, after) = match aside {
            Some((before, after)) => (before, "", after),
            None => (before, name, after),
        };
        text.extend([before, name]);
        rest = after;
    }
    text.push_str(rest);
    text.replace('`', "")
}

/// Returns the JSON Schema of a file, for editors: what each key takes by itself.
pub fn schema() -> Value {
    let [file, ..] = reference();
    let mut schema = object(&file.keys);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "The configuration of paternoster serve".into();
    let any_of = |names: &[&str]| {
        let ways: Vec<_> = names.iter().map(|name| json!({"required": [name]})).collect();
        json!({ "anyOf": ways })
    };
    schema["allOf"] =
        json!([any_of(&["disks", "pools"]), any_of(&["pools", "volumes", "exports"])]);
    schema
}

fn keys<O: Keys>() -> Vec<KeyInfo> {
    keys_of::<O>(|_| true)
}

/// Those keys that are of a kind of objects.
fn keys_of<O: Keys>(is_of: impl Fn(&&Key<O>) -> bool) -> Vec<KeyInfo> {
    O::KEYS.iter().filter(is_of).map(Key::info).collect()
}

fn tls_table(schema: Value) -> KeyInfo {
    let about = About::new("table", "", schema);
    let (default, effect) = ("none".to_owned(), "The files of TLS: [below](#tls).");
    KeyInfo { name: "tls", about, default, live: true, effect }
}

fn tables(
    name: &'static str,
    range: &str,
    default: &str,
    effect: &'static str,
    schema: Value,
) -> KeyInfo {
    let about = About::new("tables", range, schema);
    KeyInfo { name, about, default: default.to_owned(), live: false, effect }
}

/// The schema of an object with these keys.
pub(super) fn object(keys: &[KeyInfo]) -> Value {
    let properties: Map<_, _> = keys.iter().map(property).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn property(key: &KeyInfo) -> (String, Value) {
    let mut schema = key.about.schema.clone();
    schema["description"] = plain(key.effect).into();
    (key.name.to_owned(), schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_plain_text() {
        assert_eq!(
            help("threads").split(';').next(),
            Some("Connection threads, which have the clients' sockets")
        );
        assert!(help("threads").ends_with("; 1 to 64 [default: 1]"));
        let cache = help("cache");
        assert!(
            cache.starts_with("Past the page cache, or through it; \"direct\", \"page\" ["),
            "{cache}"
        );
        assert_eq!(plain("a [b `c`](d#e) f"), "a b c f");
        assert_eq!(plain("a ([b](d)); c ([e](f)), g"), "a; c, g");
    }
}
