//! Values as they were written, in TOML, in JSON or on the command line, and where.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue, Error};

use crate::config::error::{Mistake, Place, Problem};
use crate::config::mistakes::Mistakes;

/// A value and where it was written. Two of them are equal if their values are.
#[derive(Clone, Debug, Default)]
pub struct At<T> {
    /// What was written.
    pub value: T,
    /// Where.
    pub place: Place,
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for At<T> {}

/// A value that stands nowhere.
impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self { value, place: Place::default() }
    }
}

impl<T> At<T> {
    /// The mistake that is `problem` in this value.
    pub(crate) fn refuse<R>(&self, problem: Problem) -> Result<R, Mistake> {
        Err(self.place.mistake(problem))
    }
}

/// A value that nobody has read yet.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(in crate::config) form: Form,
    pub(in crate::config) place: Place,
    /// What stands there, as far as it fits into a message.
    pub(in crate::config) shown: String,
}

/// What a value is before its key says what it should be.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Text(String),
    Whole(i64),
    Flag(bool),
    List(Vec<Written>),
    Table(Table),
    /// A whole number beyond an `i64`.
    TooLarge,
    /// A fraction, a date, null.
    Other,
}

/// The keys of a table and their values, in the order in which they were written.
pub(crate) type Table = Vec<(At<String>, Written)>;

impl Written {
    /// A value of an option of the command line.
    pub(in crate::config) fn option(option: &'static str, form: Form) -> Self {
        let shown = match &form {
            Form::Text(text) => format!("{text:?}"),
            Form::Whole(value) => value.to_string(),
            form => format!("{form:?}"),
        };
        Self { form, place: Place::Option(option), shown }
    }

    /// A value of the body of a request.
    pub(crate) fn json(value: &Value) -> Self {
        let form = match value {
            Value::String(text) => Form::Text(text.clone()),
            Value::Bool(flag) => Form::Flag(*flag),
            Value::Number(number) if number.is_i64() => {
                Form::Whole(number.as_i64().unwrap_or_default())
            }
            Value::Number(number) if number.is_u64() => Form::TooLarge,
            Value::Array(values) => Form::List(values.iter().map(Self::json).collect()),
            Value::Object(values) => {
                let entries = values.iter().map(|(name, value)| {
                    let name = At { value: name.clone(), place: Place::Body };
                    (name, Self::json(value))
                });
                Form::Table(entries.collect())
            }
            Value::Null | Value::Number(_) => Form::Other,
        };
        Self { form, place: Place::Body, shown: value.to_string() }
    }
}

/// The text of a TOML file, for turning offsets in it into lines.
pub(in crate::config) struct Source<'a> {
    text: &'a str,
    path: &'a Path,
    /// Where lines end, in order.
    ends: Vec<usize>,
}

/// The text of a file. None, and a note of each line that is not, if it is not in UTF-8.
pub(in crate::config) fn decode<'b>(
    bytes: &'b [u8],
    path: &Path,
    mistakes: &mut Mistakes,
) -> Option<&'b str> {
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if let Err(error) = str::from_utf8(line) {
            let place = Place::Line { path: path.to_owned(), line: index + 1 };
            mistakes.add(&place, Problem::NotUtf8 { byte: line[error.valid_up_to()] });
        }
    }
    str::from_utf8(bytes).ok()
}

impl<'a> Source<'a> {
    pub(in crate::config) fn new(text: &'a str, path: &'a Path) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self { text, path, ends: ends.map(|(at, _)| at).collect() }
    }

    /// The file as a table. Notes what the parser says; none if there is no table to go on with.
    pub(in crate::config) fn parse(&self, mistakes: &mut Mistakes) -> Option<Table> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        let mut is_toml = true;
        let mut last = None;
        for error in errors {
            let place = match error.span() {
                Some(span) => self.place(span.start),
                None => Place::File(self.path.to_owned()),
            };
            // What follows from an error is told in its line.
            if last.as_ref() != Some(&place) {
                let problem = self.problem(&error);
                is_toml &= matches!(problem, Problem::Twice { .. });
                mistakes.add(&place, problem);
                last = Some(place);
            }
        }
        is_toml.then(|| self.table(table.into_inner()))
    }

    fn problem(&self, error: &Error) -> Problem {
        match error.message() {
            "duplicate key" => {
                let found = error.span().and_then(|span| self.text.get(span));
                Problem::Twice { found: found.unwrap_or("a key").to_owned() }
            }
            message => Problem::Syntax { message: message.replace('\n', ", ") },
        }
    }

    fn place(&self, offset: usize) -> Place {
        let line = 1 + self.ends.partition_point(|&end| end < offset);
        Place::Line { path: self.path.to_owned(), line }
    }

    fn table(&self, table: DeTable<'_>) -> Table {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let entries = entries.into_iter().map(|(name, value)| {
            let place = self.place(name.span().start);
            (At { value: name.into_inner().into_owned(), place }, self.written(value))
        });
        entries.collect()
    }

    fn written(&self, value: Spanned<DeValue<'_>>) -> Written {
        let (place, shown) = (self.place(value.span().start), self.shown(&value));
        let form = match value.into_inner() {
            DeValue::String(text) => Form::Text(text.into_owned()),
            DeValue::Integer(value) => whole(&value),
            DeValue::Boolean(flag) => Form::Flag(flag),
            DeValue::Array(values) => {
                Form::List(values.into_iter().map(|value| self.written(value)).collect())
            }
            DeValue::Table(table) => Form::Table(self.table(table)),
            DeValue::Float(_) | DeValue::Datetime(_) => Form::Other,
        };
        Written { form, place, shown }
    }

    fn shown(&self, value: &Spanned<DeValue<'_>>) -> String {
        const LONGEST: usize = 40;
        match value.get_ref() {
            DeValue::Table(_) => return "a table".to_owned(),
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

fn whole(value: &DeInteger<'_>) -> Form {
    i64::from_str_radix(value.as_str(), value.radix()).map_or(Form::TooLarge, Form::Whole)
}

/// A path as it is meant: relative to the file that it was written in, if it is relative.
pub(in crate::config) fn beside(place: &Place, path: &str) -> PathBuf {
    let file = match place {
        Place::Line { path, .. } => path.parent(),
        _ => None,
    };
    match file {
        // An empty one, joined, would be the directory.
        Some(directory) if !path.is_empty() => directory.join(path),
        _ => PathBuf::from(path),
    }
}
