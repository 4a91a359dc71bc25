//! The keys of one table of a TOML file: each is asked for by its name and what it may be, and what
//! was not asked for is unknown.
//!
//! A value stands alone, or in a table with what is known of it:
//!
//! ```toml
//! rpm = 7200
//! rpm = { value = 7200, mark = "stated", source = "data sheet", bounds = [5400, 7200] }
//! ```

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use paternoster::Nanos;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Mark, ParameterError, Problem, Spot};
use crate::disk::units::{real, whole};

type Read<T> = Result<T, ParameterError>;
type Found<'t> = Spanned<DeValue<'t>>;

/// The file.
#[derive(Clone, Copy)]
struct File<'t> {
    path: &'t Path,
    text: &'t str,
}

impl File<'_> {
    fn error(&self, span: &Range<usize>, problem: Problem) -> ParameterError {
        ParameterError { at: Spot::of(self.path, self.text, span.start), problem }
    }

    /// What stands at `span`, as far as it fits into a message.
    fn shown(&self, span: &Range<usize>) -> String {
        const LONGEST: usize = 40;
        let line =
            self.text.get(span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
        let shown: String = line.chars().take(LONGEST).collect();
        if shown.len() < line.len() { format!("{shown}…") } else { shown }
    }
}

/// The keys of a table that have not been asked for yet.
pub struct Keys<'t> {
    file: File<'t>,
    /// The table's name and a dot, or nothing.
    prefix: String,
    table: DeTable<'t>,
    /// Where the table stands.
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'t> Keys<'t> {
    /// The keys of a file's own table.
    pub fn open(path: &'t Path, text: &'t str) -> Read<Self> {
        let file = File { path, text };
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            file.error(&span, Problem::Syntax(error.message().replace('\n', ", ")))
        })?;
        Ok(Self::new(file, table))
    }

    fn new(file: File<'t>, table: Spanned<DeTable<'t>>) -> Self {
        let span = table.span();
        let (prefix, known) = (String::new(), Vec::new());
        Self { file, prefix, table: table.into_inner(), span, known }
    }

    /// A number.
    pub fn number(&mut self, key: &'static str, allowed: RangeInclusive<f64>) -> Read<f64> {
        let said = format!("a number from {} to {}", allowed.start(), allowed.end());
        self.read(key, &said, |value| number(value).filter(|number| allowed.contains(number)))
    }

    /// A number, or `default` if it is not there.
    pub fn number_or(
        &mut self,
        key: &'static str,
        default: f64,
        allowed: RangeInclusive<f64>,
    ) -> Read<f64> {
        if self.has(key) { self.number(key, allowed) } else { Ok(default) }
    }

    /// A whole number.
    pub fn whole(&mut self, key: &'static str, allowed: RangeInclusive<u64>) -> Read<u64> {
        let said = format!("a whole number from {} to {}", allowed.start(), allowed.end());
        self.read(key, &said, |value| whole_number(value).filter(|number| allowed.contains(number)))
    }

    /// The same, small.
    pub fn small(&mut self, key: &'static str, allowed: RangeInclusive<u32>) -> Read<u32> {
        let (least, most) = allowed.into_inner();
        let number = self.whole(key, least.into()..=most.into())?;
        Ok(u32::try_from(number).expect("the range is of 32 bits"))
    }

    /// A whole number, or `default` if it is not there.
    pub fn whole_or(
        &mut self,
        key: &'static str,
        default: u64,
        allowed: RangeInclusive<u64>,
    ) -> Read<u64> {
        if self.has(key) { self.whole(key, allowed) } else { Ok(default) }
    }

    /// A small whole number, or several in a list.
    pub fn small_or_smalls(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<u32>,
    ) -> Read<Vec<u32>> {
        let (least, most) = (allowed.start(), allowed.end());
        let said = format!("a whole number from {least} to {most}, or a list of them");
        self.read(key, &said, |value| match value.as_array() {
            Some(list) if list.is_empty() => None,
            Some(_) => small_numbers(value, &allowed),
            None => Some(vec![small_number(value, &allowed)?]),
        })
    }

    /// True or false.
    pub fn flag(&mut self, key: &'static str) -> Read<bool> {
        self.read(key, "true or false", DeValue::as_bool)
    }

    /// A text.
    pub fn text(&mut self, key: &'static str) -> Read<String> {
        self.read(key, "a text in quotes", |value| value.as_str().map(str::to_owned))
    }

    /// A text, and where it stands.
    pub fn text_at(&mut self, key: &'static str, allowed: &str) -> Read<(String, Range<usize>)> {
        let found = self.take(key, allowed)?;
        let text = found.get_ref().as_str().map(str::to_owned);
        let text = text.ok_or_else(|| self.unexpected(key, &found.span(), allowed))?;
        Ok((text, found.span()))
    }

    /// Texts, at least one, and where each stands.
    pub fn texts_at(&mut self, key: &'static str) -> Read<Vec<(String, Range<usize>)>> {
        const ALLOWED: &str = "a list of texts in quotes, at least one";
        let found = self.take(key, ALLOWED)?;
        let list = found.get_ref().as_array().filter(|list| !list.is_empty());
        let texts = list.and_then(|list| {
            let text = |text: &Found<'t>| Some((text.get_ref().as_str()?.to_owned(), text.span()));
            list.iter().map(text).collect()
        });
        texts.ok_or_else(|| self.unexpected(key, &found.span(), ALLOWED))
    }

    /// A text that `read` makes something of; `allowed` says what it may be.
    pub fn word<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Read<T> {
        self.read(key, allowed, |value| read(value.as_str()?))
    }

    /// A duration: a number with its unit in a text, at most a day.
    pub fn duration(&mut self, key: &'static str, least: Nanos) -> Read<Nanos> {
        const DAY: Nanos = Nanos::from_secs(86_400);
        let from = match least {
            Nanos::ZERO => String::new(),
            least => format!("from {} us ", least.as_nanos() / 1000),
        };
        let said = format!("a duration {from}to a day, for example \"500us\", \"2ms\" or \"30s\"");
        self.word(key, &said, |text| duration(text).filter(|span| (least..=DAY).contains(span)))
    }

    /// Texts.
    pub fn texts(&mut self, key: &'static str) -> Read<Vec<String>> {
        self.read(key, "a list of texts in quotes", |value| {
            let texts = value.as_array()?.iter();
            texts.map(|text| text.get_ref().as_str().map(str::to_owned)).collect()
        })
    }

    /// Small whole numbers.
    pub fn smalls(&mut self, key: &'static str, allowed: RangeInclusive<u32>) -> Read<Vec<u32>> {
        let said = format!("a list of whole numbers from {} to {}", allowed.start(), allowed.end());
        self.read(key, &said, |value| small_numbers(value, &allowed))
    }

    /// What a file says of all that it describes: its name, what it is, where that holds and, if it
    /// says so, what it was held against. Returns the name.
    pub fn description(&mut self) -> Read<String> {
        let name = self.text("name")?;
        self.text("about")?;
        self.text("valid")?;
        if self.has("held_against") {
            self.text("held_against")?;
        }
        Ok(name)
    }

    /// One of several words.
    pub fn one_of<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Read<T> {
        let names: Vec<_> = words.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let said = format!("one of {}", names.join(", "));
        self.read(key, &said, |value| {
            let word = value.as_str()?;
            words.iter().find(|(name, _)| *name == word).map(|&(_, meaning)| meaning)
        })
    }

    /// Lists of `N` numbers each, at least one.
    pub fn rows<const N: usize>(&mut self, key: &'static str) -> Read<Vec<[f64; N]>> {
        let said = format!("a list of lists of {N} numbers, not negative and less than 1e12");
        self.read(key, &said, |value| {
            let rows = value.as_array()?.iter().map(|row| row_of(row.get_ref()));
            rows.collect::<Option<Vec<_>>>().filter(|rows| !rows.is_empty())
        })
    }

    /// A list of `N` numbers.
    pub fn row<const N: usize>(&mut self, key: &'static str) -> Read<[f64; N]> {
        let said = format!("a list of {N} numbers, not negative and less than 1e12");
        self.read(key, &said, row_of)
    }

    /// Whether `key` is there.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.known.push(key);
        self.table.contains_key(key)
    }

    /// Whether `key` is a table.
    pub fn is_table(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(|value| value.get_ref().is_table())
    }

    /// The tables of the list `key`, at least one, each to be read and [ended](Self::ends).
    pub fn each_table(&mut self, key: &'static str) -> Read<Vec<Keys<'t>>> {
        const ALLOWED: &str = "a list of tables, at least one";
        let found = self.take(key, ALLOWED)?;
        let span = found.span();
        let tables = match found.into_inner() {
            DeValue::Array(tables) if !tables.is_empty() => tables,
            _ => return Err(self.unexpected(key, &span, ALLOWED)),
        };
        let each = tables.into_iter().map(|table| {
            let span = table.span();
            match table.into_inner() {
                DeValue::Table(table) => Ok(self.below(key, table, span)),
                _ => Err(self.unexpected(key, &span, ALLOWED)),
            }
        });
        each.collect()
    }

    /// The keys of a table below `key`.
    fn below(&self, key: &str, table: DeTable<'t>, span: Range<usize>) -> Keys<'t> {
        let prefix = format!("{}{key}.", self.prefix);
        Keys { file: self.file, prefix, table, span, known: Vec::new() }
    }

    /// Reads the table `key`, all of it.
    pub fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Keys<'t>) -> Read<T>,
    ) -> Read<T> {
        let found = self.take(key, "a table")?;
        self.all_of(key, found, "a table", read)
    }

    /// Reads a table below `key`, all of it.
    fn all_of<T>(
        &mut self,
        key: &'static str,
        found: Found<'t>,
        allowed: &str,
        read: impl FnOnce(&mut Keys<'t>) -> Read<T>,
    ) -> Read<T> {
        let span = found.span();
        let DeValue::Table(table) = found.into_inner() else {
            return Err(self.unexpected(key, &span, allowed));
        };
        let mut keys = self.below(key, table, span);
        let value = read(&mut keys)?;
        keys.end()?;
        Ok(value)
    }

    /// Reads the list of tables `key`, each all of it; at least one.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut Keys<'t>) -> Read<T>,
    ) -> Read<Vec<T>> {
        let each = self.each_table(key)?.into_iter().map(|mut keys| {
            let value = read(&mut keys)?;
            keys.end()?;
            Ok(value)
        });
        each.collect()
    }

    /// What errors call the file.
    pub fn path(&self) -> &'t Path {
        self.file.path
    }

    /// Where the table stands.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Fails if there is a key that nobody has asked for.
    pub fn end(self) -> Read<()> {
        self.ends().into_iter().next().map_or(Ok(()), Err)
    }

    /// A mistake for each key that nobody has asked for, in the order of the file.
    pub fn ends(self) -> Vec<ParameterError> {
        let known: Vec<_> = self.known.iter().map(|known| format!("`{known}`")).collect();
        let mut left: Vec<_> = self.table.keys().collect();
        left.sort_by_key(|key| key.span().start);
        let unknown = left.into_iter().map(|key| {
            let name = format!("`{}{}`", self.prefix, key.get_ref());
            let problem = Problem::UnknownKey { key: name, known: known.join(", ") };
            self.file.error(&key.span(), problem)
        });
        unknown.collect()
    }

    /// Says that the value at the table's own place may not be.
    pub fn refuse(&self, problem: Problem) -> ParameterError {
        self.refuse_at(&self.span, problem)
    }

    /// Says that what stands at `span` may not be.
    pub fn refuse_at(&self, span: &Range<usize>, problem: Problem) -> ParameterError {
        self.file.error(span, problem)
    }

    fn take(&mut self, key: &'static str, allowed: &str) -> Read<Found<'t>> {
        self.known.push(key);
        self.table.remove(key).ok_or_else(|| {
            let what = format!("`{}{key}`", self.prefix);
            self.refuse(Problem::Missing { what, allowed: allowed.to_owned() })
        })
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&DeValue<'t>) -> Option<T>,
    ) -> Read<T> {
        let mut found = self.take(key, allowed)?;
        if let DeValue::Table(_) = found.get_ref() {
            found = self.noted(key, found)?;
        }
        read(found.get_ref()).ok_or_else(|| self.unexpected(key, &found.span(), allowed))
    }

    /// The value in a table with what is known of it, which is checked here and told by
    /// [`notes`](super::notes()).
    fn noted(&mut self, key: &'static str, found: Found<'t>) -> Read<Found<'t>> {
        let span = found.span();
        let DeValue::Table(table) = found.into_inner() else { unreachable!("it is a table") };
        let name = format!("{}{key}", self.prefix);
        let mut keys =
            Keys { file: self.file, prefix: format!("{name}."), table, span, known: Vec::new() };
        let value = keys.take("value", "the value itself")?;
        if keys.has("mark") {
            keys.one_of("mark", &Mark::NAMED)?;
        }
        if keys.has("source") {
            keys.text("source")?;
        }
        if keys.has("bounds") {
            keys.check_bounds(&value)?;
        }
        keys.end()?;
        Ok(value)
    }

    /// Checks that `value` is within its bounds.
    fn check_bounds(&mut self, value: &Found<'t>) -> Read<()> {
        let [least, most] = self.row("bounds")?;
        if number(value.get_ref()).is_some_and(|number| (least..=most).contains(&number)) {
            return Ok(());
        }
        let allowed = format!("within its bounds, {least} to {most}");
        Err(self.unexpected("value", &value.span(), &allowed))
    }

    fn unexpected(&self, key: &str, span: &Range<usize>, allowed: &str) -> ParameterError {
        let what = format!("`{}{key}`", self.prefix);
        let (found, allowed) = (self.file.shown(span), allowed.to_owned());
        self.file.error(span, Problem::Unexpected { what, found, allowed })
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(_) => {
            let (negative, size) = integer(value)?;
            Some(if negative { -real(size) } else { real(size) })
        }
        DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
        _ => None,
    }
}

fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    match integer(value)? {
        (false, size) => Some(size),
        (true, size) => (size == 0).then_some(0),
    }
}

fn small_number(value: &DeValue<'_>, allowed: &RangeInclusive<u32>) -> Option<u32> {
    let number = u32::try_from(whole_number(value)?).ok()?;
    allowed.contains(&number).then_some(number)
}

fn small_numbers(value: &DeValue<'_>, allowed: &RangeInclusive<u32>) -> Option<Vec<u32>> {
    value.as_array()?.iter().map(|number| small_number(number.get_ref(), allowed)).collect()
}

/// Whether an integer is negative, and its size.
fn integer(value: &DeValue<'_>) -> Option<(bool, u64)> {
    let integer = value.as_integer()?;
    let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
    Some((number < 0, number.unsigned_abs()))
}

fn row_of<const N: usize>(value: &DeValue<'_>) -> Option<[f64; N]> {
    let numbers = value.as_array()?.iter().map(|value| number(value.get_ref()));
    let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    let row: [f64; N] = numbers.try_into().ok()?;
    row.iter().all(|number| (0.0..1e12).contains(number)).then_some(row)
}

/// The time that a text such as `2ms` says.
fn duration(text: &str) -> Option<Nanos> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim_start() {
        "ns" => 1,
        "us" | "µs" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    Some(Nanos::new(number.parse::<u64>().ok()?.checked_mul(unit)?))
}

/// The whole number that `number` is.
pub fn exactly(number: f64) -> Option<u32> {
    u32::try_from(whole(number)).ok().filter(|_| number.fract() == 0.0)
}
