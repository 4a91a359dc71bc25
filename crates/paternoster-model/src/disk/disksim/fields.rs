//! The values of a DiskSim block: each is asked for by its name and what it may be.

use std::ops::RangeInclusive;
use std::path::Path;

use super::super::units::{Millis, real, whole};
use super::parser::{Block, Value};
use crate::parameter_file::{ParameterError, Problem, Spot};

/// A file that was read.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: std::path::PathBuf,
    pub(super) text: String,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, ParameterError> {
        let text = crate::input::read_input_text(path)
            .map_err(|error| ParameterError { at: Spot::whole(path), problem: error.into() })?;
        Ok(Self { path: path.to_owned(), text })
    }

    pub(super) fn error(&self, at: usize, problem: Problem) -> ParameterError {
        ParameterError { at: Spot::of(&self.path, &self.text, at), problem }
    }

    pub(super) fn unexpected(
        &self,
        at: usize,
        what: &str,
        found: &str,
        allowed: &str,
    ) -> ParameterError {
        let (what, found) = (format!("`{what}`"), format!("`{found}`"));
        self.error(at, Problem::Unexpected { what, found, allowed: allowed.to_owned() })
    }
}

/// A block and the file that it stands in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'b> {
    pub(super) source: &'b Source,
    pub(super) block: &'b Block,
}

/// Times in milliseconds, more than any disk takes for anything.
const TIME: RangeInclusive<f64> = 0.0..=1e5;

impl<'b> Fields<'b> {
    /// The value of `key`, if it is there.
    pub(super) fn value(&self, key: &str) -> Option<&'b Value> {
        let mut entries = self.block.entries.iter();
        entries.find(|(own, _)| own.text == key).map(|(_, value)| value)
    }

    fn required(&self, key: &str, allowed: &str) -> Result<&'b Value, ParameterError> {
        self.value(key).ok_or_else(|| {
            let what = format!("`{key}` of {} {}", self.block.kind.text, self.block.name);
            let problem = Problem::Missing { what, allowed: allowed.to_owned() };
            self.source.error(self.block.kind.at, problem)
        })
    }

    /// Words.
    pub(super) fn text(
        &self,
        key: &str,
        allowed: &str,
    ) -> Result<(&'b str, usize), ParameterError> {
        match self.required(key, allowed)? {
            Value::Words(words) => Ok((&words.text, words.at)),
            other => Err(self.wrong(key, other, allowed)),
        }
    }

    /// A number.
    pub(super) fn number(
        &self,
        key: &str,
        allowed: RangeInclusive<f64>,
    ) -> Result<f64, ParameterError> {
        let said = said(&allowed);
        let value = self.required(key, &said)?;
        number_of(value, &allowed).ok_or_else(|| self.wrong(key, value, &said))
    }

    /// A whole number.
    pub(super) fn whole(
        &self,
        key: &str,
        allowed: RangeInclusive<u32>,
    ) -> Result<u32, ParameterError> {
        let (least, most) = (real((*allowed.start()).into()), real((*allowed.end()).into()));
        let said = format!("a whole number from {least} to {most}");
        let value = self.required(key, &said)?;
        let number = number_of(value, &(least..=most)).filter(|number| number.fract() == 0.0);
        let whole = number.and_then(|number| u32::try_from(whole(number)).ok());
        whole.ok_or_else(|| self.wrong(key, value, &said))
    }

    /// The same, or `default` if it is not there.
    pub(super) fn whole_or(
        &self,
        key: &str,
        default: u32,
        allowed: RangeInclusive<u32>,
    ) -> Result<u32, ParameterError> {
        if self.value(key).is_none() { Ok(default) } else { self.whole(key, allowed) }
    }

    /// 0 or 1; 0 if it is not there.
    pub(super) fn flag(&self, key: &str) -> Result<bool, ParameterError> {
        Ok(self.whole_or(key, 0, 0..=1)? == 1)
    }

    /// A number, or 0 if it is not there.
    pub(super) fn number_or_0(
        &self,
        key: &str,
        allowed: RangeInclusive<f64>,
    ) -> Result<f64, ParameterError> {
        if self.value(key).is_none() { Ok(0.0) } else { self.number(key, allowed) }
    }

    /// A time in milliseconds, or none if it is not there.
    pub(super) fn time(&self, key: &str) -> Result<Millis, ParameterError> {
        Ok(Millis(self.number_or_0(key, TIME)?))
    }

    /// A list of numbers, in lists or not.
    pub(super) fn numbers(
        &self,
        key: &str,
        allowed: RangeInclusive<f64>,
    ) -> Result<Vec<f64>, ParameterError> {
        let mut numbers = Vec::new();
        let mut values = vec![self.required(key, "a list of numbers in `[` and `]`")?];
        while let Some(value) = values.pop() {
            match value {
                Value::List { values: inner, .. } => values.extend(inner.iter().rev()),
                value => {
                    let number = number_of(value, &allowed);
                    numbers.push(number.ok_or_else(|| self.wrong(key, value, &said(&allowed)))?);
                }
            }
        }
        Ok(numbers)
    }

    /// A block.
    pub(super) fn block(&self, key: &str, kind: &str) -> Result<Fields<'b>, ParameterError> {
        let allowed = format!("a block `{kind} {{ … }}`");
        match self.required(key, &allowed)? {
            Value::Block(block) if block.kind.text == kind => {
                Ok(Fields { source: self.source, block })
            }
            other => Err(self.wrong(key, other, &allowed)),
        }
    }

    /// A list of blocks.
    pub(super) fn blocks(&self, key: &str, kind: &str) -> Result<Vec<Fields<'b>>, ParameterError> {
        let allowed = format!("a list of blocks `{kind} {{ … }}` in `[` and `]`");
        let values = match self.required(key, &allowed)? {
            Value::List { values, .. } => values,
            other => return Err(self.wrong(key, other, &allowed)),
        };
        let block = |value: &'b Value| match value {
            Value::Block(block) if block.kind.text == kind => {
                Ok(Fields { source: self.source, block })
            }
            other => Err(self.wrong(key, other, &allowed)),
        };
        values.iter().map(block).collect()
    }

    /// Says that the value of `key`, which is there, may not be.
    pub(super) fn refuse(&self, key: &str, allowed: &str) -> ParameterError {
        match self.required(key, allowed) {
            Ok(value) => self.wrong(key, value, allowed),
            Err(missing) => missing,
        }
    }

    fn wrong(&self, key: &str, value: &Value, allowed: &str) -> ParameterError {
        let (at, found) = match value {
            Value::Words(words) => (words.at, words.text.as_str()),
            Value::List { at, .. } => (*at, "[ … ]"),
            Value::Block(block) => (block.kind.at, block.kind.text.as_str()),
        };
        self.source.unexpected(at, key, found, allowed)
    }
}

fn number_of(value: &Value, allowed: &RangeInclusive<f64>) -> Option<f64> {
    match value {
        Value::Words(words) => words.text.parse().ok().filter(|number| allowed.contains(number)),
        _ => None,
    }
}

fn said(allowed: &RangeInclusive<f64>) -> String {
    format!("a number from {} to {}", allowed.start(), allowed.end())
}
