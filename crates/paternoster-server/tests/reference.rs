//! docs/configuration.md says what the parser takes: every key, no other, and the ranges.
//!
//! `cargo xtask tidy` holds the tables of tunables; a test of config/difference.rs the column
//! `reload`.

use std::collections::BTreeSet;
use std::path::Path;

use paternoster_server::config::Config;

const REFERENCE: &str = include_str!("../../../docs/configuration.md");

/// A key that no table has.
const STRANGER: &str = "no_such_key";

/// The tables of a file: the heading in the reference, and a file with nothing but this table.
const TABLES: [(&str, &str); 5] = [
    ("## The file", ""),
    ("## `[[listen]]`", "[[listen]]\n"),
    ("## `[disks.NAME]`", "[disks.d]\n"),
    ("## `[groups.\"/PATH\"]`", "[groups.\"/g\"]\n"),
    ("## `[exports.NAME]`", "[exports.e]\n"),
];

/// A file that is valid, in which each number that has a range stands on a line of its own. The
/// comments are the headings again.
const VALID: &str = "
connections = 100
payload_timeout = 10
threads = 2
[disks.d]  ## `[disks.NAME]`
backend = \"modelled\"
size = \"1M\"
servers = 4
service_us = 200
cpu_dma_latency = 20
ns_per_kib = 0
depth = 8
poll = \"hybrid\"
io_poll_delay = 0
io_poll_part = 60
io_poll_hyb_use_min = 0
io_poll_hyb_adjust = 0
[disks.n]  ## `[disks.NAME]`
backend = \"nbd\"
uri = \"nbd+unix:///?socket=/no.sock\"
size = \"1M\"
connections = 4
resends = 10
[groups.\"/g\"]  ## `[groups.\"/PATH\"]`
weight = 100
leaf_weight = 100
connections = 100
[exports.e]  ## `[exports.NAME]`
disk = \"d\"
size = \"512K\"
weight = 100
[exports.f]
disk = \"d\"
offset = \"512K\"
group = \"/g\"
";

/// A row of the reference.
#[derive(Debug)]
struct Row {
    key: String,
    type_: String,
    range: String,
}

/// The rows below a heading.
fn rows(heading: &str) -> Vec<Row> {
    let section = REFERENCE.lines().skip_while(|line| *line != heading).skip(1);
    let section = section.take_while(|line| !line.starts_with('#'));
    let cells = section.filter(|line| line.starts_with("| `")).map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, key, type_, _, range, _, _, _] = cells[..] else {
            panic!("a row has key, type, default, range, reload and effect: {line}")
        };
        Row { key: key.replace('`', ""), type_: type_.to_owned(), range: range.to_owned() }
    });
    cells.collect()
}

fn refusal(text: &str) -> String {
    let refused = Config::from_toml(text, Path::new("c.toml"));
    refused.expect_err("the file has a mistake").to_string()
}

/// The keys that the parser says are allowed beside `before`.
fn allowed(before: &str) -> BTreeSet<String> {
    let message = refusal(&format!("{before}{STRANGER} = 1\n"));
    let line = message.lines().find(|line| line.contains(STRANGER));
    let line = line.unwrap_or_else(|| panic!("nothing of {STRANGER}: {message}"));
    let words = line.split('`').skip(1).step_by(2);
    words.filter(|word| *word != STRANGER).map(str::to_owned).collect()
}

#[test]
fn every_key_is_in_the_reference_and_no_other() {
    for (heading, before) in TABLES {
        let parsed = allowed(before);
        let written: BTreeSet<_> = rows(heading).into_iter().map(|row| row.key).collect();
        let missing: Vec<_> = parsed.difference(&written).collect();
        let extra: Vec<_> = written.difference(&parsed).collect();
        assert!(
            missing.is_empty() && extra.is_empty(),
            "docs/configuration.md, {heading}: add a row for {missing:?}; take out {extra:?}"
        );
    }
}

#[test]
fn ranges_in_the_reference_are_those_that_are_refused_beyond() {
    Config::from_toml(VALID, Path::new("c.toml")).expect("the file is valid");
    let mut checked = 0;
    for (heading, _) in &TABLES {
        for Row { key, range, .. } in rows(heading).iter().filter(|row| row.type_ == "whole number")
        {
            let (least, most) = range.split_once(" to ").expect("a range is LEAST to MOST");
            let [least, most] = [least, most].map(|end| end.parse::<i64>().expect("a number"));
            for value in [least - 1, most + 1] {
                let message = refusal(&valid_but(heading, key, value));
                let named = message.contains(key.as_str()) && message.contains(range.as_str());
                assert!(named, "{heading} `{key}` has {range}, but {value} gives: {message}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 7, "{checked} ranges are looked at");
}

/// The valid file with another value of a key.
fn valid_but(heading: &str, key: &str, value: i64) -> String {
    let mut is_here = heading == TABLES[0].0;
    let mut replaced = false;
    let mut text = String::new();
    for line in VALID.lines() {
        if line.starts_with('[') {
            is_here = line.ends_with(heading);
        }
        let is_it = is_here && line.split(" = ").next() == Some(key);
        replaced |= is_it;
        let line = if is_it { format!("{key} = {value}") } else { line.to_owned() };
        text.push_str(&line);
        text.push('\n');
    }
    assert!(replaced, "VALID in this test needs a line for `{key}` of {heading}");
    text
}
