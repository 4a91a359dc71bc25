//! The keys of `[[listen]]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::kinds::{About, Entry, Kind, Text, Words, words};
use super::written::{At, Form, Written};
use super::{ADDRESS, PATH, keys};
use crate::config::error::Problem;
use crate::config::{Listen, is_fd_name};

/// Permission bits, in octal.
pub(crate) struct Mode;

const MODE_MAX: u32 = 0o777;

impl Kind for Mode {
    type Value = u32;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<u32> {
        let bits = match &entry.found.form {
            Form::Whole(value) => u32::try_from(*value).ok(),
            Form::Text(text) => parse_octal(text),
            Form::TooLarge => None,
            _ => return entry.refuse("a whole number, or one in quotes,"),
        };
        let bits = bits.filter(|&bits| bits <= MODE_MAX);
        bits.or_else(|| entry.refuse("\"0000\" to \"0777\" in quotes or 0o000 to 0o777"))
    }

    fn show(&self, mode: &u32) -> Value {
        format!("{mode:04o}").into()
    }

    fn about(&self) -> About {
        let text = json!({"type": "string", "pattern": "^(0o)?[0-7]{1,4}$"});
        let number = json!({"type": "integer", "minimum": 0, "maximum": MODE_MAX});
        let schema = json!({"anyOf": [text, number]});
        About::new("mode: `\"0660\"` or `0o660`", "`\"0000\"` to `\"0777\"`", schema)
    }
}

/// Texts, of which the reference says that.
pub(super) struct Texts(pub(super) &'static str);

impl Kind for Texts {
    type Value = Vec<At<String>>;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Self::Value> {
        let name = |element: &Written| match &element.form {
            Form::Text(text) => Some(At { value: text.clone(), place: element.place.clone() }),
            _ => None,
        };
        let names = match &entry.found.form {
            Form::List(elements) => elements.iter().map(name).collect(),
            _ => None,
        };
        names.or_else(|| entry.refuse("an array of texts in quotes"))
    }

    fn show(&self, names: &Self::Value) -> Value {
        names.iter().map(|name| name.value.as_str()).collect()
    }

    fn about(&self) -> About {
        let schema = json!({
            "type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true,
        });
        About::new("list of texts", self.0, schema)
    }
}

/// What a service manager calls a socket.
const FD_NAME: Text<String> = Text {
    kind: "text",
    range: "the `FileDescriptorName=` of a socket unit",
    pattern: "^[ -9;-~]{1,255}$",
    read: |text, _| {
        let (is_allowed, found) = (is_fd_name(text), text.to_owned());
        if is_allowed { Ok(found) } else { Err(Problem::BadFdName { found }) }
    },
    show: Clone::clone,
};

keys! {
    /// What is set of a `[[listen]]`.
    pub(crate) struct ListenKeys, states ListenStates {
        unix: Option<PathBuf> = None, PATH, restart, default "–", range "1 to 107 bytes";
            "A unix socket; this, `tcp` or `fd` is needed.";
        unix_mode: u32 = Listen::DEFAULT_MODE, Mode, restart;
            "Permission bits of `unix`: whoever may write to it may use what it offers.";
        tcp: Option<SocketAddr> = None, ADDRESS, restart, default "–";
            "A TCP address.";
        fd: Option<String> = None, FD_NAME, restart, default "–";
            "A socket that the service manager [passes](operations.md#socket-activation).";
        tls: ListenTls = ListenTls::Off, Words::<ListenTls>::ALL, restart;
            "Whether clients have to begin [TLS](operations.md#tls) before anything else, by the \
             files of [`[tls]`](#tls). Without it whoever reaches the socket may use what it \
             offers.";
        exports: Option<Vec<At<String>>> = None, Texts("names of exports, none twice"), live,
            default "all of them";
            "The exports that it offers. A single one is also the default export of this socket.";
    }
}

/// Whether clients of a socket use TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListenTls {
    /// `off`: they cannot.
    #[default]
    Off,
    /// `require`: they have to.
    Require,
}

impl ListenTls {
    const ALL: [Self; 2] = [Self::Off, Self::Require];

    /// Returns what is written to choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Require => "require",
        }
    }
}

words!(ListenTls);

fn parse_octal(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, 8).ok() }
}
