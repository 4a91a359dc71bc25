//! What a file of parameters says of its values, and the same file with another value.

use toml::{Table, Value};

use super::{Mark, Note};

/// What is known of each value of a file that says so, in the order of their names.
///
/// # Panics
///
/// If the text is no file of parameters: it has been read before.
pub fn notes(text: &str) -> Vec<Note> {
    let mut notes = Vec::new();
    walk(&parsed(text), "", &mut notes);
    notes
}

/// The file with another number at `key`, as `mechanics.rpm`.
///
/// # Panics
///
/// If the file has no such number.
pub(crate) fn with_number(text: &str, key: &str, number: f64) -> String {
    let mut file = parsed(text);
    let parts: Vec<_> = key.split('.').collect();
    let (last, tables) = parts.split_last().expect("a key has a part");
    let table = tables
        .iter()
        .fold(&mut file, |table, part| table[*part].as_table_mut().expect("a table holds the key"));
    let place = match &mut table[*last] {
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

fn walk(table: &Table, prefix: &str, notes: &mut Vec<Note>) {
    for (key, value) in table {
        let Value::Table(inner) = value else { continue };
        let name = format!("{prefix}{key}");
        match inner.get("value") {
            Some(value) => notes.push(note(name, value, inner)),
            None => walk(inner, &format!("{name}."), notes),
        }
    }
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
}
