//! The parameters of a file in TOML, with what it says of each, as texts for a page.

use serde::Serialize;
use toml::{Table, Value};

use paternoster_model::parameter_file::{FoundValue, values};

/// A parameter, in the words of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Parameter {
    key: String,
    value: String,
    mark: Option<String>,
    source: Option<String>,
    bounds: Option<String>,
}

/// What a file says of all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Described {
    pub(super) about: Option<String>,
    pub(super) valid: Option<String>,
    pub(super) held_against: Option<String>,
    pub(super) parameters: Vec<Parameter>,
}

/// Returns what the text of a file says; nothing where it is not TOML.
pub(super) fn described(text: &str) -> Described {
    let Ok(mut table) = text.parse::<Table>() else { return Described::default() };
    let mut take = |key: &str| match table.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let [about, valid, held_against] = ["about", "valid", "held_against"].map(&mut take);
    let parameters = values(&table).into_iter().map(Parameter::new).collect();
    Described { about, valid, held_against, parameters }
}

impl Parameter {
    fn new(found: FoundValue<'_>) -> Self {
        let FoundValue { key, value, known } = found;
        let known = |what: &str| known.and_then(|known| known.get(what));
        Self {
            key,
            value: shown(value),
            mark: known("mark").map(shown),
            source: known("source").map(shown),
            bounds: known("bounds").map(bounds),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let between = if values.iter().any(Value::is_array) { "; " } else { ", " };
            values.iter().map(shown).collect::<Vec<_>>().join(between)
        }
        other => other.to_string(),
    }
}

fn bounds(value: &Value) -> String {
    match value.as_array().map(Vec::as_slice) {
        Some([least, most]) => format!("{} to {}", shown(least), shown(most)),
        _ => shown(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_told_with_what_is_known_of_it() {
        let text = "kind = \"disk\"\nvalid = \"always\"\n[m]\nrpm = { value = 7200, mark = \
                    \"stated\", source = \"a sheet\", bounds = [5400, 7200] }\nrows = [[1, 2], \
                    [3, 4]]\n";
        let found = described(text);
        assert_eq!((found.valid.as_deref(), found.held_against), (Some("always"), None));
        let parameter = |key: &str, value: &str| Parameter {
            key: key.to_owned(),
            value: value.to_owned(),
            mark: None,
            source: None,
            bounds: None,
        };
        let rpm = Parameter {
            mark: Some("stated".to_owned()),
            source: Some("a sheet".to_owned()),
            bounds: Some("5400 to 7200".to_owned()),
            ..parameter("m.rpm", "7200")
        };
        assert_eq!(
            found.parameters,
            [parameter("kind", "disk"), rpm, parameter("m.rows", "1, 2; 3, 4")]
        );
        assert_eq!(described("no TOML"), Described::default());
    }

    #[test]
    fn every_device_that_comes_along_says_where_it_holds() {
        for name in ["hdd-7200", "nvme-980pro", "optane-p4800x", "servers-16x80us"] {
            let (_, texts) = paternoster_model::read_device(name, 1).expect("it comes along");
            let found = described(texts[0].1.as_deref().expect("a text"));
            assert!(found.about.is_some() && found.valid.is_some(), "{name}");
            assert!(found.parameters.len() > 3, "{name}");
        }
    }
}
