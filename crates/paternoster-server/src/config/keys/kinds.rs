//! The kinds of values that keys have: each reads what was written, refuses what is not allowed
//! with what is, and shows a value as it may be written again.
//!
//! ```text
//!   Whole      8                    in a range, with a unit that errors name
//!   Size       65536, "64K"         bytes
//!   Span       "30s", "500us"       a duration, always with a unit
//!   Rate       1000, "10M", "max"   a limit of a group, in operations or bytes a second
//!   Words      "direct"             one of a few words
//!   Flag       true
//!   Text       "the first"          also a path, an address, a URI
//! ```

use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use paternoster::Nanos;
use serde_json::{Value, json};

use super::size;
use super::written::{Form, Table, Written};
use crate::config::error::Problem;
use crate::config::mistakes::Mistakes;

/// What is allowed in place of a number that is none of these.
pub(super) const WHOLE_UP_TO: &str = "a whole number up to 9223372036854775807";

/// A kind of values.
pub(crate) trait Kind {
    /// What a value of it is.
    type Value;

    /// Reads what was written. Notes what is wrong with it, and is none then.
    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Self::Value>;

    /// Returns a value as it may be written, in JSON.
    fn show(&self, value: &Self::Value) -> Value;

    /// Describes what may be written.
    fn about(&self) -> About;
}

/// What may be written for a key.
#[derive(Clone, Debug)]
pub struct About {
    /// The type, in a word or two.
    pub kind: String,
    /// Which values of that type; empty is all.
    pub range: String,
    /// The same as a JSON Schema.
    pub schema: Value,
}

impl About {
    pub(crate) fn new(kind: &str, range: impl Into<String>, schema: Value) -> Self {
        Self { kind: kind.to_owned(), range: range.into(), schema }
    }
}

/// A key, and what was written for it.
pub(crate) struct Entry<'a, 'w> {
    pub(super) key: &'a str,
    pub(super) found: &'w Written,
    pub(super) mistakes: &'a mut Mistakes,
}

impl<'a, 'w> Entry<'a, 'w> {
    pub(in crate::config) fn new(
        key: &'a str,
        found: &'w Written,
        mistakes: &'a mut Mistakes,
    ) -> Self {
        Self { key, found, mistakes }
    }

    /// Notes that something else is allowed.
    pub(in crate::config) fn refuse<T>(&mut self, allowed: impl Into<String>) -> Option<T> {
        let (key, found) = (self.key.to_owned(), self.found.shown.clone());
        self.note(Err(Problem::NotAllowed { key, found, allowed: allowed.into() }))
    }

    /// Notes what is wrong with the value; else the value.
    pub(super) fn note<T>(&mut self, read: Result<T, Problem>) -> Option<T> {
        let place = &self.found.place;
        self.mistakes.note(read.map_err(|problem| place.mistake(problem)))
    }

    /// The text, if it is one.
    pub(super) fn text(&mut self) -> Option<&'w str> {
        match &self.found.form {
            Form::Text(text) => Some(text),
            _ => self.refuse("a text in quotes"),
        }
    }

    /// The table, if it is one.
    pub(in crate::config) fn table(&mut self) -> Option<&'w Table> {
        match &self.found.form {
            Form::Table(table) => Some(table),
            _ => self.refuse("a table"),
        }
    }

    /// A value in that table, which errors call by this name.
    pub(super) fn inner<'i>(&'i mut self, key: &'i str, found: &'w Written) -> Entry<'i, 'w> {
        Entry::new(key, found, self.mistakes)
    }
}

/// A whole number within a range.
pub(crate) struct Whole<T> {
    min: i64,
    max: i64,
    /// Errors name it; empty where the key says enough.
    unit: &'static str,
    number: PhantomData<T>,
}

impl<T> Whole<T> {
    pub(crate) const fn new(range: RangeInclusive<i64>, unit: &'static str) -> Self {
        Self { min: *range.start(), max: *range.end(), unit, number: PhantomData }
    }
}

impl<T: TryFrom<i64> + Into<i64> + Copy> Kind for Whole<T> {
    type Value = T;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<T> {
        let value = match entry.found.form {
            Form::Whole(value) => Some(value),
            Form::TooLarge => None,
            _ => return entry.refuse("a whole number"),
        };
        let value = value.filter(|value| (self.min..=self.max).contains(value));
        let value = value.and_then(|value| T::try_from(value).ok());
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let allowed = || format!("{} to {}{unit}", self.min, self.max);
        value.or_else(|| entry.refuse(allowed()))
    }

    fn show(&self, value: &T) -> Value {
        (*value).into().into()
    }

    fn about(&self) -> About {
        let schema = json!({"type": "integer", "minimum": self.min, "maximum": self.max});
        About::new("whole number", format!("{} to {}", self.min, self.max), schema)
    }
}

/// Bytes, as a number or a text with a binary unit.
pub(crate) struct Size {
    range: RangeInclusive<u64>,
}

impl Size {
    pub(crate) const ANY: Self = Self::within(0..=i64::MAX.cast_unsigned());

    pub(crate) const fn within(range: RangeInclusive<u64>) -> Self {
        Self { range }
    }
}

impl Kind for Size {
    type Value = u64;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<u64> {
        let bytes = match &entry.found.form {
            Form::Whole(value) => u64::try_from(*value).ok(),
            Form::Text(text) => size::parse(text),
            Form::TooLarge => Some(u64::MAX),
            _ => return entry.refuse("a whole number, or one in quotes,"),
        };
        let (min, max) = (self.range.start(), self.range.end());
        let Some(bytes) = bytes else { return entry.refuse(size::ALLOWED) };
        if self.range.contains(&bytes) {
            return Some(bytes);
        }
        entry.refuse(format!("{min} to {max} bytes"))
    }

    fn show(&self, bytes: &u64) -> Value {
        (*bytes).into()
    }

    fn about(&self) -> About {
        let (min, max) = (self.range.start(), self.range.end());
        let number = json!({"type": "integer", "minimum": min, "maximum": max});
        let text = json!({"type": "string", "pattern": size::PATTERN});
        About::new("size", format!("{min} to {max} bytes"), json!({"anyOf": [number, text]}))
    }
}

/// The units of durations, in nanoseconds; the greatest first.
const UNITS: [(&str, u64); 4] =
    [("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];

/// A duration: a whole number and its unit.
pub(crate) struct Span {
    min: Nanos,
    max: Nanos,
    /// The unit of the example that a number without a unit is answered with.
    example: &'static str,
}

impl Span {
    /// From `min` to `max`; a number without a unit was most likely meant in `example`.
    pub(crate) const fn new(min: Nanos, max: Nanos, example: &'static str) -> Self {
        Self { min, max, example }
    }

    pub(super) fn parse(text: &str) -> Option<Nanos> {
        parse_span(text)
    }
}

/// The duration that a text says, with its unit; none if it is no duration.
pub fn parse_span(text: &str) -> Option<Nanos> {
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let digits = text.strip_suffix(unit)?;
    let (_, nanos) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(nanos).map(Nanos::new)
}

/// A duration in the greatest unit in which it is whole.
pub(crate) fn shown_span(span: Nanos) -> String {
    let nanos = span.as_nanos();
    let whole = UNITS.into_iter().find(|(_, unit)| nanos > 0 && nanos.is_multiple_of(*unit));
    match whole {
        Some((name, unit)) => format!("{}{name}", nanos / unit),
        None => format!("{}us", nanos / 1_000),
    }
}

impl Kind for Span {
    type Value = Nanos;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Nanos> {
        let is_allowed = |span: &Nanos| (self.min..=self.max).contains(span);
        let example = self.example;
        let parsed = |text: &str| Self::parse(text).filter(is_allowed);
        match &entry.found.form {
            Form::Text(text) => {
                if let Some(span) = parsed(text) {
                    return Some(span);
                }
            }
            Form::Whole(value) => {
                let meant = format!("{value}{example}");
                if parsed(&meant).is_some() {
                    return entry.refuse(format!("a duration with its unit, {meant:?},"));
                }
            }
            _ => {}
        }
        let (least, most) = (shown_span(self.min), shown_span(self.max));
        entry.refuse(format!(
            "a duration from {least} to {most} (a whole number and us, ms, s or m), such as \
             \"30{example}\","
        ))
    }

    fn show(&self, span: &Nanos) -> Value {
        shown_span(*span).into()
    }

    fn about(&self) -> About {
        let range = format!("`\"{}\"` to `\"{}\"`", shown_span(self.min), shown_span(self.max));
        About::new("duration", range, json!({"type": "string", "pattern": "^[0-9]+(us|ms|s|m)$"}))
    }
}

/// A duration that may be none, which is 0 of any unit.
pub(crate) struct SpanOrNone(pub(crate) Span);

impl Kind for SpanOrNone {
    type Value = Option<Nanos>;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Option<Nanos>> {
        let span = self.0.read(entry)?;
        Some(Some(span).filter(|span| *span > Nanos::ZERO))
    }

    fn show(&self, span: &Option<Nanos>) -> Value {
        shown_span(span.unwrap_or(Nanos::ZERO)).into()
    }

    fn about(&self) -> About {
        self.0.about()
    }
}

/// What is written in place of a cap to have none.
const NO_CAP: &str = "max";

/// So many a second: a cap, or a reservation.
pub(crate) struct Rate {
    is_cap: bool,
    is_of_bytes: bool,
}

impl Rate {
    /// Operations a second at most; `"max"` is no cap.
    pub(crate) const CAP: Self = Self { is_cap: true, is_of_bytes: false };
    /// Bytes a second at most; `"max"` is no cap.
    pub(crate) const CAP_OF_BYTES: Self = Self { is_cap: true, is_of_bytes: true };
    /// Operations a second at least; 0 is none.
    pub(crate) const RESERVED: Self = Self { is_cap: false, is_of_bytes: false };
    /// Bytes a second at least; 0 is none.
    pub(crate) const RESERVED_BYTES: Self = Self { is_cap: false, is_of_bytes: true };

    const fn allowed(&self) -> &'static str {
        match (self.is_cap, self.is_of_bytes) {
            (true, false) => "1 or more a second, or \"max\"",
            (true, true) => "1 byte a second or more, such as \"10M\", or \"max\"",
            (false, false) => "0 or more a second",
            (false, true) => "0 bytes a second or more, such as \"10M\",",
        }
    }
}

impl Kind for Rate {
    type Value = Option<NonZeroU64>;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Option<NonZeroU64>> {
        let value = match &entry.found.form {
            Form::Text(text) if text == NO_CAP && self.is_cap => return Some(None),
            Form::Whole(value) => u64::try_from(*value).ok(),
            Form::Text(text) if self.is_of_bytes => size::parse(text),
            Form::TooLarge => return entry.refuse(WHOLE_UP_TO),
            _ => None,
        };
        let value = value.filter(|&value| i64::try_from(value).is_ok()).map(NonZeroU64::new);
        value
            .filter(|value| value.is_some() || !self.is_cap)
            .or_else(|| entry.refuse(self.allowed()))
    }

    fn show(&self, value: &Option<NonZeroU64>) -> Value {
        match value {
            Some(value) => value.get().into(),
            None if self.is_cap => NO_CAP.into(),
            None => 0.into(),
        }
    }

    fn about(&self) -> About {
        let kind = if self.is_of_bytes { "size" } else { "count" };
        let range = if self.is_cap { "1 or more, `\"max\"`" } else { "0 or more" };
        let number = json!({"type": "integer", "minimum": u32::from(self.is_cap)});
        let mut ways = vec![number];
        if self.is_cap {
            ways.push(json!({"const": NO_CAP}));
        }
        if self.is_of_bytes {
            ways.push(json!({"type": "string", "pattern": size::PATTERN}));
        }
        About::new(kind, range, json!({ "anyOf": ways }))
    }
}

/// A word of a few.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// All of them.
    const ALL: &'static [Self];

    /// What is written to choose it.
    fn word(self) -> &'static str;
}

/// One of a few words.
pub(crate) struct Words<T>(PhantomData<T>);

impl<T: Word> Words<T> {
    pub(crate) const ALL: Self = Self(PhantomData);

    /// The words in quotes, the last behind an "or".
    pub(in crate::config) fn allowed() -> String {
        let words: Vec<_> = T::ALL.iter().map(|known| format!("{:?}", known.word())).collect();
        match words.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} or {last}", others.join(", "))
            }
            _ => words.concat(),
        }
    }
}

impl<T: Word> Kind for Words<T> {
    type Value = T;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<T> {
        let known = match &entry.found.form {
            Form::Text(text) => T::ALL.iter().copied().find(|known| known.word() == text),
            _ => None,
        };
        known.or_else(|| entry.refuse(Self::allowed()))
    }

    fn show(&self, value: &T) -> Value {
        value.word().into()
    }

    fn about(&self) -> About {
        let words: Vec<_> = T::ALL.iter().map(|known| known.word()).collect();
        let quoted: Vec<_> = words.iter().map(|word| format!("`{word:?}`")).collect();
        About::new("text", quoted.join(", "), json!({ "enum": words }))
    }
}

/// Implements [`Word`] for a type with an array `ALL` and a method `name`.
macro_rules! words {
    ($($Type:ty),*) => {$(
        impl $crate::config::keys::kinds::Word for $Type {
            const ALL: &'static [Self] = &<$Type>::ALL;

            fn word(self) -> &'static str {
                self.name()
            }
        }
    )*};
}
pub(crate) use words;

/// True or false.
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<bool> {
        match entry.found.form {
            Form::Flag(flag) => Some(flag),
            _ => entry.refuse("true or false"),
        }
    }

    fn show(&self, flag: &bool) -> Value {
        (*flag).into()
    }

    fn about(&self) -> About {
        About::new("true or false", "", json!({"type": "boolean"}))
    }
}

/// A text that a function reads, and what the reference says of it.
pub(crate) struct Text<T> {
    pub(crate) kind: &'static str,
    pub(crate) range: &'static str,
    /// A regular expression that all allowed texts match; empty is none.
    pub(crate) pattern: &'static str,
    pub(crate) read: fn(&str, &Written) -> Result<T, Problem>,
    pub(crate) show: fn(&T) -> String,
}

impl<T> Kind for Text<T> {
    type Value = T;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<T> {
        let text = entry.text()?;
        entry.note((self.read)(text, entry.found))
    }

    fn show(&self, value: &T) -> Value {
        (self.show)(value).into()
    }

    fn about(&self) -> About {
        let schema = match self.pattern {
            "" => json!({"type": "string"}),
            pattern => json!({"type": "string", "pattern": pattern}),
        };
        About::new(self.kind, self.range, schema)
    }
}
