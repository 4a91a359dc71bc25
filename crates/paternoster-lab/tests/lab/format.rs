//! `oracle/FORMAT.md` explains every field of every line: of those that are in the recordings, and
//! of those that the laboratory can write.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;

use paternoster::{ElevatorEvent, SchedulerKind};
use serde_json::Value;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracle");
const SCHEDULERS: [&str; 4] = ["mq-deadline", "cfq", "bfq", "kyber"];
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

#[test]
fn every_field_that_the_laboratory_can_write_is_explained() {
    for scheduler in SchedulerKind::ALL.into_iter().filter(|kind| !kind.events().is_empty()) {
        let explained = explained(&[EVERY, &heading(scheduler.name())]);
        let mut missing = Explained::from([exit("task"), exit("")]);
        for event in scheduler.events().iter().copied().flatten().chain(ElevatorEvent::TABLE) {
            let fields = event.fields.iter().map(|field| field.key).filter(|key| !key.is_empty());
            let of_line = fields.chain([""]).map(|key| (event.line.to_owned(), key.to_owned()));
            missing.extend(of_line.filter(|(line, _)| !line.is_empty()));
        }
        assert!(missing.len() > 12, "{scheduler} writes lines: {missing:?}");
        missing.retain(|known| !explained.contains(known));
        assert!(missing.is_empty(), "FORMAT.md does not explain of {scheduler}: {missing:?}");
    }
}

/// A field of the line of a process that has exited, which is no event.
fn exit(field: &str) -> (String, String) {
    ("exit".to_owned(), field.to_owned())
}
