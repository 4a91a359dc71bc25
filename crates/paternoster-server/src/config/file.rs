//! The TOML file: its keys, and where in it each value stands.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Spanned, Value};

use super::draft::{At, Draft, DraftDisk, DraftExport, DraftGroup, Number};
use super::error::{ConfigError, Place};

/// Reads a file into a draft. Refuses keys that there are not, and values of a wrong type.
pub(super) fn read(text: &str, path: &Path) -> Result<Draft, ConfigError> {
    let source = Source { text, path };
    let file: File = toml::from_str(text).map_err(|error| source.refuse(&error))?;
    Ok(Draft {
        whole: Place::File(path.to_owned()),
        unix: source.at(file.unix),
        unix_mode: source.number(file.unix_mode)?,
        tcp: source.at(file.tcp),
        ctl: source.at(file.ctl),
        disks: source.each(file.disks, Source::disk)?,
        groups: source.each(file.groups, Source::group)?,
        exports: source.each(file.exports, Source::export)?,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    unix: Option<Spanned<PathBuf>>,
    unix_mode: Option<Spanned<Value>>,
    tcp: Option<Spanned<String>>,
    ctl: Option<Spanned<PathBuf>>,
    #[serde(default)]
    disks: Table<Disk>,
    #[serde(default)]
    groups: Table<Group>,
    #[serde(default)]
    exports: Table<Export>,
}

type Table<T> = BTreeMap<Spanned<String>, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    path: Option<Spanned<PathBuf>>,
    backend: Option<Spanned<String>>,
    size: Option<Spanned<Value>>,
    servers: Option<Spanned<i64>>,
    service_us: Option<Spanned<i64>>,
    ns_per_kib: Option<Spanned<i64>>,
    scheduler: Option<Spanned<String>>,
    depth: Option<Spanned<i64>>,
    #[serde(default)]
    tunables: Table<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    weight: Option<Spanned<i64>>,
    leaf_weight: Option<Spanned<i64>>,
    #[serde(default)]
    weight_device: Table<Spanned<i64>>,
    #[serde(default)]
    leaf_weight_device: Table<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Export {
    disk: Spanned<String>,
    offset: Option<Spanned<Value>>,
    size: Option<Spanned<Value>>,
    group: Option<Spanned<String>>,
    weight: Option<Spanned<i64>>,
    ioprio: Option<Spanned<String>>,
    #[serde(default)]
    read_only: bool,
    description: Option<Spanned<String>>,
}

/// The text, for turning offsets in it into lines.
struct Source<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Source<'_> {
    fn disk(&self, name: At<String>, disk: Disk) -> Result<DraftDisk, ConfigError> {
        Ok(DraftDisk {
            name,
            path: self.at(disk.path),
            backend: self.at(disk.backend),
            size: self.number(disk.size)?,
            servers: self.at(disk.servers),
            service_us: self.at(disk.service_us),
            ns_per_kib: self.at(disk.ns_per_kib),
            scheduler: self.at(disk.scheduler),
            depth: self.at(disk.depth),
            tunables: self.numbers(disk.tunables),
        })
    }

    #[expect(clippy::unnecessary_wraps, reason = "alike for `each`")]
    fn group(&self, path: At<String>, group: Group) -> Result<DraftGroup, ConfigError> {
        Ok(DraftGroup {
            path,
            weight: self.at(group.weight),
            leaf_weight: self.at(group.leaf_weight),
            weight_device: self.numbers(group.weight_device),
            leaf_weight_device: self.numbers(group.leaf_weight_device),
        })
    }

    fn export(&self, name: At<String>, export: Export) -> Result<DraftExport, ConfigError> {
        Ok(DraftExport {
            name,
            disk: self.place_in(export.disk),
            offset: self.number(export.offset)?,
            size: self.number(export.size)?,
            group: self.at(export.group),
            weight: self.at(export.weight),
            io_prio: self.at(export.ioprio),
            read_only: export.read_only,
            description: self.at(export.description),
        })
    }

    /// Each entry of a table, in the order of the file.
    fn each<T, D>(
        &self,
        table: Table<T>,
        draft: impl Fn(&Self, At<String>, T) -> Result<D, ConfigError>,
    ) -> Result<Vec<D>, ConfigError> {
        let entries = in_order(table).into_iter();
        entries.map(|(name, entry)| draft(self, self.place_in(name), entry)).collect()
    }

    /// A table of numbers, in the order of the file.
    fn numbers(&self, table: Table<Spanned<i64>>) -> Vec<(At<String>, At<i64>)> {
        let entries = in_order(table).into_iter();
        entries.map(|(name, value)| (self.place_in(name), self.place_in(value))).collect()
    }

    fn at<T>(&self, found: Option<Spanned<T>>) -> Option<At<T>> {
        found.map(|found| self.place_in(found))
    }

    fn place_in<T>(&self, found: Spanned<T>) -> At<T> {
        let place = self.place(&found.span());
        At { value: found.into_inner(), place }
    }

    fn number(&self, found: Option<Spanned<Value>>) -> Result<Option<At<Number>>, ConfigError> {
        let Some(found) = found else { return Ok(None) };
        let place = self.place(&found.span());
        let value = match found.into_inner() {
            Value::Integer(value) => Number::Plain(value),
            Value::String(text) => Number::Text(text),
            other => {
                let message = format!(
                    "invalid type: {}, expected a number, or one in quotes",
                    other.type_str()
                );
                return Err(ConfigError::Syntax { place, message });
            }
        };
        Ok(Some(At { value, place }))
    }

    fn refuse(&self, error: &toml::de::Error) -> ConfigError {
        let place = match error.span() {
            Some(span) => self.place(&span),
            None => Place::File(self.path.to_owned()),
        };
        let found = error.span().and_then(|span| self.text.get(span)).unwrap_or_default();
        let message = match error.message() {
            "duplicate key" => format!("{found} is written twice; once is allowed"),
            message => in_users_words(message),
        };
        ConfigError::Syntax { place, message }
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let before = self.text.as_bytes().iter().take(span.start);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        Place::Line { path: self.path.to_owned(), line }
    }
}

/// The parser's message in the words of TOML, on one line.
fn in_users_words(message: &str) -> String {
    const WORDS: [(&str, &str); 7] = [
        ("\n", ", "),
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
        (" as i128", ""),
        (" as u128", ""),
        ("expected i64", "expected a whole number up to 9223372036854775807"),
        ("expected a map", "expected a table"),
    ];
    WORDS.into_iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn in_order<T>(table: Table<T>) -> Vec<(Spanned<String>, T)> {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}
