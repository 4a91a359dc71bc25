//! `oracle/FORMAT.md` explains every field of every line: of those that are in the recordings, and
//! of those that the laboratory can write.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;

use serde_json::Value;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracle");
const SCHEDULERS: [&str; 4] = ["mq-deadline", "cfq", "bfq", "kyber"];
/// What no Linux has, so that nothing of it is recorded.
const OURS: [&str; 1] = ["wfq"];
const EVERY: &str = "### Lines of every scheduler";

/// What a line has: its `ev` alone, or with a field.
type Explained = BTreeSet<(String, String)>;

fn heading(scheduler: &str) -> String {
    format!("### Lines of `{scheduler}`")
}

/// The lines and fields in the tables under these headings, each row ``| `ev` | `field` | … |``
/// with one of the two, where a field belongs to the line above it.
fn explained(headings: &[&str]) -> Explained {
    let text = fs::read_to_string(format!("{ORACLE}/FORMAT.md")).expect("FORMAT.md is there");
    let mut explained = Explained::new();
    for heading in headings {
        let (_, section) = text.split_once(&format!("{heading}\n")).expect(heading);
        let section = section.split("\n#").next().expect("text up to the next heading");
        let mut line = String::new();
        for row in section.lines().filter(|row| row.starts_with('|')) {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let name = |cell: &str| cell.strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
            let (event, field) = (name(cells[1]), name(cells[2]));
            assert!(event.is_none() || field.is_none(), "one of the two: {row}");
            assert!(!cells[3].is_empty(), "it says what it is: {row}");
            line = event.unwrap_or(line);
            explained.insert((line.clone(), field.unwrap_or_default()));
        }
    }
    explained
}

/// Of a line the names by which it is explained; the text says of all what `t` and `ev` are.
fn names(line: &Value) -> Explained {
    let event = line["ev"].as_str().expect("a line says what happened").to_owned();
    let fields = line.as_object().expect("a line is an object").keys();
    let fields = fields.filter(|field| !["t", "ev"].contains(&field.as_str()));
    let with_field = fields.map(|field| (event.clone(), field.clone()));
    with_field.chain([(event.clone(), String::new())]).collect()
}

#[test]
fn every_field_of_every_recorded_line_is_explained() {
    for scheduler in SCHEDULERS {
        let mut recorded = Explained::new();
        let archive = File::open(format!("{ORACLE}/{scheduler}.tar.zst")).expect("its recordings");
        let unpacked = zstd::Decoder::new(archive).expect("they are compressed");
        for entry in tar::Archive::new(unpacked).entries().expect("an archive") {
            let mut entry = entry.expect("a file");
            if !entry.path().expect("its name").to_string_lossy().ends_with(".log.jsonl") {
                continue;
            }
            let mut log = String::new();
            entry.read_to_string(&mut log).expect("text");
            for line in log.lines() {
                recorded.extend(names(&serde_json::from_str(line).expect("an object a line")));
            }
        }
        assert!(recorded.len() > 8, "{scheduler} has logs: {recorded:?}");
        let explained = explained(&[EVERY, &heading(scheduler)]);
        let missing: Vec<_> = recorded.difference(&explained).collect();
        assert!(missing.is_empty(), "FORMAT.md does not explain of {scheduler}: {missing:?}");
    }
}

/// The lines that an enum of the log writer makes, read off its source: a variant is a line, by its
/// name in lower case or by that of `rename`.
fn written(source: &str, name: &str) -> Explained {
    let (_, body) = source.split_once(&format!("enum {name}<'a> {{\n")).expect(name);
    let (body, _) = body.split_once("\n}\n").expect("it ends");
    let mut written = Explained::new();
    let mut renamed: Option<&str> = None;
    let mut event = String::new();
    for line in body.lines().map(str::trim) {
        if line.starts_with("#[") {
            let name = line.split_once("rename = \"").and_then(|(_, rest)| rest.split_once('"'));
            renamed = name.map(|(name, _)| name).or(renamed);
            continue;
        }
        let mut fields = line;
        if line.starts_with(char::is_uppercase) {
            let end = line.find(|c: char| !c.is_alphanumeric()).unwrap_or(line.len());
            event = renamed.take().map_or_else(|| snake_case(&line[..end]), str::to_owned);
            written.insert((event.clone(), String::new()));
            fields = line[end..].trim_start_matches([' ', '{']);
        }
        for (field, _) in fields.split(',').filter_map(|field| field.split_once(':')) {
            let field = renamed.take().unwrap_or(field.trim());
            written.insert((event.clone(), field.to_owned()));
        }
    }
    written
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[test]
fn every_field_that_the_laboratory_can_write_is_explained() {
    let mut written_lines = written(include_str!("../../paternoster-trace/src/line.rs"), "What");
    // Holds the lines of the other enum, and makes none of its own.
    assert!(written_lines.remove(&("scheduler".to_owned(), String::new())));
    written_lines.extend(written(
        include_str!("../../paternoster-trace/src/scheduler_line.rs"),
        "SchedulerLine",
    ));
    for known in [("M", "into"), ("expire", "resid"), ("inject", "for"), ("hw_tag", "from")] {
        let known = (known.0.to_owned(), known.1.to_owned());
        assert!(written_lines.contains(&known), "{known:?} is read off the source");
    }
    let headings: Vec<_> = SCHEDULERS.into_iter().chain(OURS).map(heading).collect();
    let mut headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    headings.push(EVERY);
    let explained = explained(&headings);
    let missing: Vec<_> = written_lines.difference(&explained).collect();
    assert!(missing.is_empty(), "FORMAT.md does not explain: {missing:?}");
}
