//! The keys of an object, such as a disk: each is one row of a table, from which everything else
//! comes.
//!
//! ```text
//!                              ┌─▶ reading a file, a body, options; errors
//!   keys! { struct DiskKeys ───┼─▶ what a reload changes, and what needs a restart
//!             depth: …       } ├─▶ ctl get, ctl set
//!                              ├─▶ the rows of docs/configuration.md, --help
//!                              └─▶ the JSON Schema of the file
//! ```
//!
//! A row gives the field, its default, the [`Kind`] of values, whether a change holds while clients
//! are served (`live`) or needs a `restart`, and what the key does. `default` and `range` say in
//! words what their values do not, and `of` which kinds of objects take the key. What keys mean
//! beside one another is checked by hand, by the object's own file. serde and schemars would read a
//! file into such structs too; but the first mistake would be the only one that is told, and
//! ranges, defaults and whether a change needs a restart would still be said elsewhere.

mod disk;
mod export;
mod group;
pub(crate) mod kinds;
mod listen;
mod request;
mod server;
mod size;
mod tls;
pub(super) mod written;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Map, Value};

pub(crate) use disk::DEPTH_MAX;
pub use disk::{BackendKind, DiskKeys, PoolKind, SameDevice, SchedulerWord};
pub(in crate::config) use disk::{DISK, DISKS, POOL, POOLS};
pub(crate) use export::{EXPORT, VOLUME};
pub use export::{ExportKeys, VhostMemory};
pub(in crate::config) use export::{OF_SOCKET, VOLUMES};
pub use group::{GroupKeys, limit_names};
pub(crate) use group::{IDENTITIES, ROOT, caps, group_kind, limits_in_numbers};
pub use kinds::About;
pub use listen::ListenTls;
pub(in crate::config) use listen::{ListenKeys, ListenStates, Mode};
pub(crate) use request::{LEAST, MULTIPLE};
pub use request::{RequestKeys, Source};
pub use server::{AtStop, EngineChoice, Sandbox, ServerKeys};
pub use size::parse as parse_size;
pub use tls::TlsKeys;
pub use written::At;

use super::error::{Mistake, Place, Problem};
use super::mistakes::Mistakes;
use kinds::{Entry, Kind, Text};
use written::{Table, Written, beside};

/// What a key of the configuration is.
#[derive(Clone, Debug)]
pub struct KeyInfo {
    /// Its name.
    pub name: &'static str,
    /// What may be written.
    pub about: About,
    /// What holds where nothing is written.
    pub default: String,
    /// Whether a change holds at once, or needs a restart.
    pub live: bool,
    /// What it does.
    pub effect: &'static str,
}

/// A key of the objects `O`.
pub(crate) struct Key<O: Keys> {
    pub(crate) name: &'static str,
    /// The field that holds this key and others, such as `limits`.
    pub(crate) part: Option<&'static str>,
    pub(crate) live: bool,
    /// Default and range in words, where their values say too little.
    pub(crate) default: Option<&'static str>,
    pub(crate) range: Option<&'static str>,
    /// The kinds of objects that take it, if not all do.
    pub(crate) of: Option<&'static str>,
    pub(crate) effect: &'static str,
    pub(crate) about: fn() -> About,
    /// Reads a value into the object, unless it is wrong.
    pub(crate) read: fn(&mut O, &mut Entry<'_, '_>) -> Option<()>,
    /// The object's value, as it may be written; null is none.
    pub(crate) show: fn(&O) -> Value,
    /// Takes the value that another object has.
    pub(crate) take: fn(&mut O, &O),
    pub(crate) state: fn(&mut O::States) -> &mut State,
}

impl<O: Keys> Key<O> {
    /// Describes the key.
    pub(crate) fn info(&self) -> KeyInfo {
        let Self { name, live, effect, .. } = *self;
        let mut about = (self.about)();
        if let Some(range) = self.range {
            range.clone_into(&mut about.range);
        }
        let default = match (self.default, (self.show)(&O::default())) {
            (Some(words), _) => words.to_owned(),
            (None, Value::Null) => "none".to_owned(),
            (None, Value::String(text)) => format!("`{text:?}`"),
            (None, value) => value.to_string(),
        };
        KeyInfo { name, about, default, live, effect }
    }
}

impl<O: Keys> Key<O> {
    /// Whether objects of that kind take it.
    pub(crate) fn is_of(&self, kind: &str) -> bool {
        self.of.is_none_or(|kinds| kinds.split(' ').any(|of| of == kind))
    }

    /// Whether objects that are of one of those kinds take it.
    pub(crate) fn is_of_any(&self, kinds: &[&str]) -> bool {
        kinds.iter().any(|kind| self.is_of(kind))
    }

    /// Sets the key of an object to a value of a request's body; else what is wrong with it.
    pub(crate) fn read_one(&self, object: &mut O, value: &Value) -> Result<(), String> {
        let mut mistakes = Mistakes::default();
        let written = Written::json(value);
        (self.read)(object, &mut Entry::new(self.name, &written, &mut mistakes));
        mistakes.problems()
    }
}

/// An object that is a table of keys, with their defaults.
pub(crate) trait Keys: Clone + Default + 'static {
    /// What became of each key.
    type States: Clone + Default;

    /// All keys, in the order of the reference.
    const KEYS: &'static [Key<Self>];

    /// The keys of a part.
    fn part(part: &str) -> impl Iterator<Item = &'static Key<Self>> {
        Self::KEYS.iter().filter(move |key| key.part == Some(part))
    }

    /// The key of that name.
    fn key(name: &str) -> Option<&'static Key<Self>> {
        Self::KEYS.iter().find(|key| key.name == name)
    }
}

/// The keys of an object whose values are not those of another, as they may be written.
pub(crate) fn differing<O: Keys>(object: &O, other: &O) -> Map<String, Value> {
    let values = |of| O::KEYS.iter().map(move |key| (key.name, (key.show)(of)));
    let both = values(object).zip(values(other));
    let differing = both.filter(|(one, other)| one.1 != other.1 && !one.1.is_null());
    differing.map(|((name, value), _)| (name.to_owned(), value)).collect()
}

/// What became of a key.
#[derive(Clone, Debug, Default)]
pub(crate) enum State {
    /// It is not written.
    #[default]
    Missing,
    /// The value that is written there is wrong, which is a mistake already.
    Wrong(Place),
    /// It has the value that is written there.
    Written(Place),
}

impl State {
    /// Where the value is written, if it is right.
    pub(super) fn place(&self) -> Option<&Place> {
        match self {
            Self::Written(place) => Some(place),
            Self::Missing | Self::Wrong(_) => None,
        }
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }

    /// Refuses what is written, right or wrong; nothing is refused where nothing is.
    pub(super) fn refuse(&self, problem: Problem) -> Result<(), Mistake> {
        match self {
            Self::Missing => Ok(()),
            Self::Wrong(place) | Self::Written(place) => Err(place.mistake(problem)),
        }
    }
}

/// An object as it was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object<O: Keys> {
    /// What it is called, and where it begins.
    pub(super) name: At<String>,
    /// What kind of object it is, where a table of keys is of several.
    pub(super) kind: &'static str,
    /// Its values, with defaults where nothing is written.
    pub(super) keys: O,
    pub(super) states: O::States,
    /// Whether there is an unknown key, which may be what else is missed, and misspelt.
    pub(super) has_gaps: bool,
}

impl<O: Keys> Object<O> {
    pub(super) fn new(name: At<String>) -> Self {
        let (keys, states) = (O::default(), O::States::default());
        Self { name, kind: "", keys, states, has_gaps: false }
    }

    /// Reads the keys of a table. Notes what is wrong with them.
    pub(super) fn read(
        name: At<String>,
        kind: &'static str,
        table: &Table,
        mistakes: &mut Mistakes,
    ) -> Self {
        let mut object = Self { kind, ..Self::new(name) };
        for (key, value) in table {
            if object.set(&key.value, value, mistakes).is_none() {
                object.has_gaps = true;
                mistakes.add(&key.place, unknown_key(&key.value, known::<O>()));
            }
        }
        object
    }

    /// What became of a key of the table.
    pub(super) fn state(&self, key: &str) -> State {
        let key = O::key(key).expect("the key is a row");
        (key.state)(&mut self.states.clone()).clone()
    }

    /// Sets a key to what is written for it, or notes what is wrong. None if there is no such key.
    pub(super) fn set(
        &mut self,
        key: &str,
        value: &Written,
        mistakes: &mut Mistakes,
    ) -> Option<()> {
        let key = O::key(key)?;
        let read = (key.read)(&mut self.keys, &mut Entry::new(key.name, value, mistakes));
        *(key.state)(&mut self.states) = match read {
            Some(()) => State::Written(value.place.clone()),
            None => State::Wrong(value.place.clone()),
        };
        Some(())
    }
}

/// The names of all keys.
pub(super) fn known<O: Keys>() -> impl Iterator<Item = &'static str> {
    O::KEYS.iter().map(|key| key.name)
}

pub(super) fn unknown_key(key: &str, known: impl Iterator<Item = &'static str>) -> Problem {
    let known: Vec<_> = known.map(|known| format!("`{known}`")).collect();
    Problem::UnknownKey { key: key.to_owned(), known: known.join(", ") }
}

/// Shows a field of the kind's values, or of those that may be missing.
pub(crate) fn shown<'v, K: Kind>(kind: &K, field: impl Into<Option<&'v K::Value>>) -> Value
where
    K::Value: 'v,
{
    field.into().map_or(Value::Null, |value| kind.show(value))
}

/// A path, which is relative to the file if it is relative.
pub(super) const PATH: Text<PathBuf> = Text {
    kind: "path",
    range: "",
    pattern: "",
    read: |text, found| Ok(beside(&found.place, text)),
    show: |path| path.display().to_string(),
};

/// A name.
const NAME: Text<String> = Text {
    kind: "text",
    range: "",
    pattern: "",
    read: |text, _| Ok(text.to_owned()),
    show: Clone::clone,
};

/// What is written in place of a path to have none.
pub(super) const NO_PATH: &str = "none";

/// What stands before the name of a socket that is passed, in place of a path.
pub(super) const PASSED: &str = "fd:";

/// A path, what is passed, or none.
pub(super) const PATH_OR_PASSED: Text<PathBuf> = Text {
    kind: "path, `\"fd:NAME\"` or `\"none\"`",
    read: |text, found| {
        let is_path = text != NO_PATH && !text.starts_with(PASSED);
        if is_path { (PATH.read)(text, found) } else { Ok(text.into()) }
    },
    ..PATH
};

pub(super) const ADDRESS: Text<SocketAddr> = Text {
    kind: "text, `ADDRESS:PORT`",
    range: "an IP address; port 0 is any free one",
    pattern: "^[0-9.]+:[0-9]+$|^\\[[0-9A-Fa-f:.%]+\\]:[0-9]+$",
    read: |text, _| text.parse().map_err(|_| Problem::BadAddress { found: text.to_owned() }),
    show: ToString::to_string,
};

/// Declares an object by its keys: a struct of their values, another of their states, and the
/// table. The keys of a `part` are fields of one field.
macro_rules! keys {
    (
        $(#[$doc:meta])*
        $vis:vis struct $Object:ident, states $States:ident {
            $($key:ident: $Type:ty = $default:expr, $kind:expr, $change:ident
                $(, $words:ident $text:literal)* ; $effect:literal;)*
        }
        $(part $(#[$of_part:meta])* $part:ident: $Part:ty = $from:expr, {
            $($inner:ident: $inner_kind:expr, $inner_change:ident
                $(, $inner_words:ident $inner_text:literal)* ; $inner_effect:literal;)*
        })*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $Object {
            $(#[doc = $effect] pub $key: $Type,)*
            $($(#[$of_part])* pub $part: $Part,)*
        }

        impl Default for $Object {
            fn default() -> Self {
                Self { $($key: $default,)* $($part: $from,)* }
            }
        }

        /// What became of each key.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $States {
            $(pub(in crate::config) $key: $crate::config::keys::State,)*
            $($(pub(in crate::config) $inner: $crate::config::keys::State,)*)*
        }

        impl $crate::config::keys::Keys for $Object {
            type States = $States;

            const KEYS: &'static [$crate::config::keys::Key<Self>] = &[
                $($crate::config::keys::key!(
                    $key, [$key], $kind, $change, $effect $(, $words $text)*
                ),)*
                $($($crate::config::keys::key!(
                    $inner, [$part.$inner], $inner_kind, $inner_change, $inner_effect
                    $(, $inner_words $inner_text)*
                ),)*)*
            ];
        }
    };
}
pub(crate) use keys;

/// A row of [`keys!`]: its name, and the field that has the value.
macro_rules! key {
    (
        $key:ident, [$($field:ident).+], $kind:expr, $change:ident, $effect:literal
        $(, $words:ident $text:literal)*
    ) => {{
        #[allow(unused_mut, reason = "most rows say nothing in words")]
        let mut key = $crate::config::keys::Key {
            name: stringify!($key),
            part: $crate::config::keys::key!(@part $($field).+),
            live: $crate::config::keys::key!(@$change),
            default: None,
            range: None,
            of: None,
            effect: $effect,
            about: || $crate::config::keys::kinds::Kind::about(&$kind),
            read: |object: &mut Self, entry| {
                object.$($field).+ = $crate::config::keys::kinds::Kind::read(&$kind, entry)?.into();
                Some(())
            },
            show: |object: &Self| $crate::config::keys::shown(&$kind, &object.$($field).+),
            take: |object: &mut Self, other| {
                object.$($field).+ = Clone::clone(&other.$($field).+);
            },
            state: |states| &mut states.$key,
        };
        $(key.$words = Some($text);)*
        key
    }};
    (@part $field:ident) => { None };
    (@part $part:ident.$field:ident) => { Some(stringify!($part)) };
    (@live) => { true };
    (@restart) => { false };
}
pub(crate) use key;
