//! The keys of one TOML table: each is asked for by its name and type, and what was not asked for
//! is unknown.

use std::ops::Range;
use std::path::{Path, PathBuf};

use paternoster_model::device_names;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue, Error};

use super::draft::{At, Key, NO_PATH, Number};
use super::error::{Place, Problem};
use super::mistakes::Mistakes;
use super::scheduler::AUTO;

const TEXT: &str = "a text in quotes";
const WHOLE: &str = "a whole number";
const WHOLE_UP_TO: &str = "a whole number up to 9223372036854775807";
const NUMBER: &str = "a whole number, or one in quotes,";
const FLAG: &str = "true or false";
const AUTO_OR_FLAG: &str = "\"auto\", true or false";
const TABLE: &str = "a table";
const TABLES: &str = "an array of tables";
const TEXTS: &str = "an array of texts in quotes";

/// The text, for turning offsets in it into lines.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl Source<'_> {
    /// Notes what the parser says. None if there is no table to go on with.
    pub(super) fn check_syntax(&self, errors: &[Error], mistakes: &mut Mistakes) -> Option<()> {
        let mut is_toml = true;
        let mut last = None;
        for error in errors {
            let place = match error.span() {
                Some(span) => self.place(&span),
                None => Place::File(self.path.to_owned()),
            };
            // What follows from an error is told in its line.
            if last.as_ref() == Some(&place) {
                continue;
            }
            let problem = match error.message() {
                "duplicate key" => {
                    let found = error.span().and_then(|span| self.text.get(span));
                    Problem::Twice { found: found.unwrap_or("a key").to_owned() }
                }
                message => {
                    is_toml = false;
                    Problem::Syntax { message: message.replace('\n', ", ") }
                }
            };
            mistakes.add(&place, problem);
            last = Some(place);
        }
        is_toml.then_some(())
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let before = self.text.as_bytes().iter().take(span.start);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        Place::Line { path: self.path.to_owned(), line }
    }

    /// The path, in the file's directory if it is relative.
    fn beside(self, path: &str) -> PathBuf {
        match self.path.parent() {
            // An empty one, joined, would be the directory.
            Some(directory) if !path.is_empty() => directory.join(path),
            _ => PathBuf::from(path),
        }
    }

    /// What stands there, as far as it fits into a message.
    fn shown(&self, value: &Spanned<DeValue<'_>>) -> String {
        const LONGEST: usize = 40;
        match value.get_ref() {
            DeValue::Table(_) => return TABLE.to_owned(),
            DeValue::Array(_) => return "an array".to_owned(),
            _ => {}
        }
        let text = self.text.get(value.span()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        if line.len() == text.len() && line.chars().count() <= LONGEST {
            return line.to_owned();
        }
        line.chars().take(LONGEST).chain("…".chars()).collect()
    }
}

/// The keys of a table that have not been asked for yet.
pub(super) struct Keys<'a, 'm> {
    source: Source<'a>,
    table: DeTable<'a>,
    known: Vec<&'static str>,
    mistakes: &'m mut Mistakes,
    /// Whether something else stands where a table should.
    lacks_table: bool,
}

/// A value, or what is allowed in its place.
type Read<T> = Result<T, &'static str>;

impl<'a, 'm> Keys<'a, 'm> {
    pub(super) fn new(source: Source<'a>, table: DeTable<'a>, mistakes: &'m mut Mistakes) -> Self {
        Self { source, table, known: Vec::new(), mistakes, lacks_table: false }
    }

    pub(super) fn text(&mut self, key: &'static str) -> Key<String> {
        self.read(key, |value| text(value).map(str::to_owned))
    }

    /// A path, which is relative to the file if it is relative.
    pub(super) fn path(&mut self, key: &'static str) -> Key<PathBuf> {
        let source = self.source;
        self.read(key, |value| text(value).map(|path| source.beside(path)))
    }

    /// A device of the laboratory: its name, or the path of its file.
    pub(super) fn model(&mut self, key: &'static str) -> Key<String> {
        let source = self.source;
        self.read(key, |value| {
            let name = text(value)?;
            let is_named = device_names().contains(&name);
            let file = || source.beside(name).display().to_string();
            Ok(if is_named { name.to_owned() } else { file() })
        })
    }

    /// The same, or none if it is `none`.
    pub(super) fn path_or_none(&mut self, key: &'static str) -> Key<Option<PathBuf>> {
        let source = self.source;
        self.read(key, |value| match text(value)? {
            NO_PATH => Ok(None),
            path => Ok(Some(source.beside(path))),
        })
    }

    pub(super) fn whole(&mut self, key: &'static str) -> Key<i64> {
        self.read(key, whole)
    }

    pub(super) fn number(&mut self, key: &'static str) -> Key<Number> {
        self.read(key, |value| match value {
            DeValue::Integer(value) => in_range(value).map(Number::Plain),
            DeValue::String(text) => Ok(Number::Text(text.to_string())),
            _ => Err(NUMBER),
        })
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Key<bool> {
        self.read(key, |value| value.as_bool().ok_or(FLAG))
    }

    /// The same, or none if it is `auto`.
    pub(super) fn flag_or_auto(&mut self, key: &'static str) -> Key<Option<bool>> {
        self.read(key, |value| match value {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            DeValue::String(text) if text == AUTO => Ok(None),
            _ => Err(AUTO_OR_FLAG),
        })
    }

    /// A table of whole numbers, in the order of the file.
    pub(super) fn wholes(&mut self, key: &'static str) -> Vec<(At<String>, At<i64>)> {
        let mut values = Vec::new();
        for (name, value) in self.entries(key) {
            let place = self.source.place(&value.span());
            if let Some(value) = self.accept(&name.value, &value, whole(value.get_ref())) {
                values.push((name, At { value, place }));
            }
        }
        values
    }

    /// A table of tunables, whose values are whole numbers or words; in the order of the file.
    pub(super) fn tunables(&mut self, key: &'static str) -> Vec<(At<String>, At<i64>)> {
        let mut values = Vec::new();
        for (name, value) in self.entries(key) {
            let place = self.source.place(&value.span());
            let read = match value.get_ref() {
                // A number in quotes is no word.
                DeValue::String(text) if text.parse::<i64>().is_err() => {
                    match paternoster::parse_tunable(&name.value, text) {
                        Ok(value) => Ok(value),
                        Err(error) => {
                            self.mistakes.add(&place, Problem::BadTunable(error));
                            continue;
                        }
                    }
                }
                value => whole(value),
            };
            if let Some(value) = self.accept(&name.value, &value, read) {
                values.push((name, At { value, place }));
            }
        }
        values
    }

    /// A table of tables, in the order of the file.
    pub(super) fn tables<D>(
        &mut self,
        key: &'static str,
        draft: impl Fn(At<String>, &mut Keys<'a, '_>) -> D,
    ) -> Vec<D> {
        let mut drafts = Vec::new();
        for (name, value) in self.entries(key) {
            if let Some(table) = self.table(&format!("{key}.{}", name.value), value) {
                drafts.push(draft(name, &mut Keys::new(self.source, table, self.mistakes)));
            }
        }
        drafts
    }

    /// An array of tables, in the order of the file; each knows where it begins.
    pub(super) fn array_of_tables<D>(
        &mut self,
        key: &'static str,
        draft: impl Fn(Place, &mut Keys<'a, '_>) -> D,
    ) -> Vec<D> {
        let Some(found) = self.take(key) else { return Vec::new() };
        let elements = found.get_ref().as_array().map(|_| ()).ok_or(TABLES);
        self.lacks_table |= self.accept(key, &found, elements).is_none();
        let DeValue::Array(elements) = found.into_inner() else { return Vec::new() };
        let mut drafts = Vec::new();
        for element in elements {
            let place = self.source.place(&element.span());
            if let Some(table) = self.table(&format!("[[{key}]]"), element) {
                drafts.push(draft(place, &mut Keys::new(self.source, table, self.mistakes)));
            }
        }
        drafts
    }

    /// An array of texts.
    pub(super) fn texts(&mut self, key: &'static str) -> Key<Vec<At<String>>> {
        let source = self.source;
        self.read(key, |value| {
            let elements = value.as_array().ok_or(TEXTS)?;
            let read = elements.iter().map(|element| {
                let value = element.get_ref().as_str().ok_or(TEXTS)?.to_owned();
                Ok(At { value, place: source.place(&element.span()) })
            });
            read.collect()
        })
    }

    /// Notes what nobody has asked for. Returns whether there is something: it may be, misspelt,
    /// what else is missed.
    pub(super) fn end(&mut self) -> bool {
        for key in self.table.keys() {
            let place = self.source.place(&key.span());
            let known: Vec<_> = self.known.iter().map(|known| format!("`{known}`")).collect();
            let (key, known) = (key.get_ref().to_string(), known.join(", "));
            self.mistakes.add(&place, Problem::UnknownKey { key, known });
        }
        !self.table.is_empty()
    }

    /// The same of the whole file, in which only tables are missed. Whether one may be.
    pub(super) fn end_of_file(&mut self) -> bool {
        self.end();
        self.lacks_table || self.table.values().any(|value| value.get_ref().is_table())
    }

    fn take(&mut self, key: &'static str) -> Option<Spanned<DeValue<'a>>> {
        self.known.push(key);
        self.table.remove(key)
    }

    fn read<T>(&mut self, key: &'static str, read: impl FnOnce(&DeValue<'_>) -> Read<T>) -> Key<T> {
        let Some(found) = self.take(key) else { return Key::Missing };
        let place = self.source.place(&found.span());
        match self.accept(key, &found, read(found.get_ref())) {
            Some(value) => Key::Written(At { value, place }),
            None => Key::Unreadable,
        }
    }

    /// The value of `key`, where it was `found` to be one.
    fn accept<T>(&mut self, key: &str, found: &Spanned<DeValue<'_>>, read: Read<T>) -> Option<T> {
        let allowed = match read {
            Ok(value) => return Some(value),
            Err(allowed) => allowed,
        };
        let (key, shown) = (key.to_owned(), self.source.shown(found));
        let place = self.source.place(&found.span());
        self.mistakes.add(&place, Problem::WrongType { key, found: shown, allowed });
        None
    }

    fn table(&mut self, key: &str, value: Spanned<DeValue<'a>>) -> Option<DeTable<'a>> {
        let is_table = value.get_ref().as_table().map(|_| ()).ok_or(TABLE);
        self.lacks_table |= self.accept(key, &value, is_table).is_none();
        match value.into_inner() {
            DeValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// What is in the table of this key, in the order of the file.
    fn entries(&mut self, key: &'static str) -> Vec<(At<String>, Spanned<DeValue<'a>>)> {
        let table = self.take(key).and_then(|value| self.table(key, value)).unwrap_or_default();
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let place_in = |name: Spanned<DeString<'_>>| {
            let place = self.source.place(&name.span());
            At { value: name.into_inner().into_owned(), place }
        };
        entries.into_iter().map(|(name, value)| (place_in(name), value)).collect()
    }
}

fn text<'v>(value: &'v DeValue<'_>) -> Read<&'v str> {
    value.as_str().ok_or(TEXT)
}

fn whole(value: &DeValue<'_>) -> Read<i64> {
    match value {
        DeValue::Integer(value) => in_range(value),
        _ => Err(WHOLE),
    }
}

fn in_range(value: &DeInteger<'_>) -> Read<i64> {
    i64::from_str_radix(value.as_str(), value.radix()).map_err(|_| WHOLE_UP_TO)
}
