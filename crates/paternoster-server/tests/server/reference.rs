//! docs/configuration.md says what the parser takes.
//!
//! The rows of the reference are those of the tables of keys; `UPDATE_EXPECT=1 cargo test --test
//! server reference` writes them. `cargo xtask tidy` holds the tables of tunables.

use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use paternoster_server::config::{KeyInfo, reference};

/// The lines of a table of the reference.
fn rows(keys: &[KeyInfo]) -> String {
    let mut rows = "| key | type | default | range | reload | effect |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for KeyInfo { name, about, default, live, effect } in keys {
        let (kind, range) = (&about.kind, &about.range);
        let reload = if *live { "yes" } else { "no" };
        let line = format!("| `{name}` | {kind} | {default} | {range} | {reload} | {effect} |");
        let _ = writeln!(rows, "{}", line.replace("|  |", "| |"));
    }
    rows
}

#[test]
fn rows_of_the_reference_are_those_of_the_tables_of_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let mut text = std::fs::read_to_string(&path).expect("the reference");
    for table in reference() {
        let heading = format!("{}\n", table.heading);
        let begin = text.find(&heading).expect("a heading for each table") + heading.len();
        let first = begin + text[begin..].find("| key |").expect("a table below the heading");
        let len = text[first..].find("\n\n").map_or(text.len() - first, |len| len + 1);
        text.replace_range(first..first + len, &rows(&table.keys));
    }
    expect_file![path].assert_eq(&text);
}
