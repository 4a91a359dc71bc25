//! What a file of parameters says of its values, and the same file with another value.
//!
//! ```text
//!   [mechanics]
//!   rpm = { value = 7200, mark = "stated" }       mechanics.rpm, 7200, stated
//!   head_switch_ms = 1.46                         mechanics.head_switch_ms, 1.46
//!   [[times]]
//!   us = { value = 55.25, mark = "measured" }     times.0.us, 55.25, measured
//! ```

use toml::{Table, Value};

use super::{Mark, Note};

/// What is known of each value of a file that says so, in the order of the file.
///
/// # Panics
///
/// If the text is no file of parameters: it has been read before.
pub fn notes(text: &str) -> Vec<Note> {
    let file = parsed(text);
    let noted = values(&file).into_iter().filter_map(|found| {
        let FoundValue { key, value, known } = found;
        known.map(|known| note(key, value, known))
    });
    noted.collect()
}

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundValue<'t> {
    /// Its name, as `mechanics.rpm`.
    pub key: String,
    /// The value itself.
    pub value: &'t Value,
    /// The table that says what is known of it, if it stands in one.
    pub known: Option<&'t Table>,
}

/// All values of a file.
pub fn values(file: &Table) -> Vec<FoundValue<'_>> {
    let mut found = Vec::new();
    file.iter().for_each(|(key, value)| find_values(key.clone(), value, &mut found));
    found
}

fn find_values<'t>(key: String, value: &'t Value, found: &mut Vec<FoundValue<'t>>) {
    match value {
        Value::Table(table) => match table.get("value") {
            Some(value) => found.push(FoundValue { key, value, known: Some(table) }),
            None => {
                table.iter().for_each(|(name, value)| {
                    find_values(format!("{key}.{name}"), value, found);
                });
            }
        },
        Value::Array(tables) if tables.iter().any(Value::is_table) => {
            tables.iter().enumerate().for_each(|(index, value)| {
                find_values(format!("{key}.{index}"), value, found);
            });
        }
        plain => found.push(FoundValue { key, value: plain, known: None }),
    }
}

/// The file with another number at `key`, as `mechanics.rpm`.
///
/// # Panics
///
/// If the file has no such number.
pub fn with_number(text: &str, key: &str, number: f64) -> String {
    let mut file = parsed(text);
    let mut parts = key.split('.');
    let first = parts.next().expect("a key has a part");
    let place = parts.fold(&mut file[first], |value, part| match part.parse::<usize>() {
        Ok(index) if value.is_array() => &mut value[index],
        _ => &mut value[part],
    });
    let place = match place {
        Value::Table(noted) => &mut noted["value"],
        value => value,
    };
    *place = match place {
        Value::Integer(_) if number.fract() == 0.0 => Value::Integer(whole(number)),
        Value::Integer(_) | Value::Float(_) => Value::Float(number),
        other => panic!("{key} is {other}, and no number"),
    };
    file.to_string()
}

#[allow(clippy::cast_possible_truncation)] // it saturates
fn whole(number: f64) -> i64 {
    number as i64
}

fn parsed(text: &str) -> Table {
    text.parse().expect("the file has been read before")
}

fn note(key: String, value: &Value, noted: &Table) -> Note {
    let text = |key| noted.get(key).and_then(Value::as_str);
    let mark = text("mark").and_then(Mark::named);
    let bounds = noted.get("bounds").and_then(Value::as_array).and_then(|bounds| {
        let [least, most] = bounds.as_slice() else { return None };
        Some((number(least)?, number(most)?))
    });
    Note { key, value: value.to_string(), mark, source: text("source").map(str::to_owned), bounds }
}

#[allow(clippy::cast_precision_loss)] // parameters are small
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[a]\nb = { value = 3, mark = \"guess\", bounds = [1, 4] }\n\
                        [a.c]\nvalue = 0.5\nmark = \"stated\"\nsource = \"a book\"\n";

    #[test]
    fn file_tells_what_is_known_of_its_values() {
        let [b, c] = notes(FILE).try_into().expect("two values are noted");
        assert_eq!((b.key.as_str(), b.value.as_str()), ("a.b", "3"));
        assert_eq!((b.mark, b.bounds), (Some(Mark::Guess), Some((1.0, 4.0))));
        assert_eq!((c.key.as_str(), c.value.as_str()), ("a.c", "0.5"));
        assert_eq!((c.mark, c.source.as_deref()), (Some(Mark::Stated), Some("a book")));
    }

    /// A value that happens to be whole may become one that is not.
    #[test]
    fn whole_number_is_replaced_by_a_fraction() {
        let other = with_number(FILE, "a.b", 1.5);
        assert_eq!(notes(&other)[0].value, "1.5");
    }

    #[test]
    fn other_number_stands_where_the_old_one_stood() {
        let other = with_number(&with_number(FILE, "a.b", 4.0), "a.c", 0.25);
        let values: Vec<_> = notes(&other).into_iter().map(|note| note.value).collect();
        assert_eq!(values, ["4", "0.25"]);
    }

    #[test]
    fn values_of_a_list_of_tables_are_numbered() {
        const LIST: &str = "[[a]]\nb = 1\n[[a]]\nb = { value = 2, mark = \"measured\" }\n";
        let file = parsed(LIST);
        let keys = values(&file).into_iter().map(|found| (found.key, found.known.is_some()));
        let keys: Vec<_> = keys.collect();
        assert_eq!(keys, [("a.0.b".to_owned(), false), ("a.1.b".to_owned(), true)]);
        let other = with_number(&with_number(LIST, "a.0.b", 3.0), "a.1.b", 4.0);
        let file = parsed(&other);
        let values: Vec<_> = values(&file).into_iter().map(|it| it.value.as_integer()).collect();
        assert_eq!(values, [Some(3), Some(4)]);
    }
}
