//! What Kyber says of itself is what Linux's Kyber said: every percentile and every change of a
//! depth in the recordings, in its place among the decisions. `cargo xtask oracle` compares the
//! decisions alone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use paternoster_lab::{Scenario, run};

const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracle/kyber.tar.zst");

/// The files of the archive by their names.
fn recordings() -> BTreeMap<String, String> {
    let unpacked = zstd::Decoder::new(File::open(RECORDINGS).expect("the recordings"));
    let mut archive = tar::Archive::new(unpacked.expect("they are compressed"));
    let entries = archive.entries().expect("an archive").map(|entry| {
        let mut entry = entry.expect("a file");
        let name = entry.path().expect("its name").to_string_lossy().into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        (name, text)
    });
    entries.collect()
}

/// Without the lines that are the laboratory's own.
fn lines(log: &str) -> Vec<&str> {
    log.lines().filter(|line| !line.contains(r#""ev":"exit""#)).collect()
}

#[test]
fn every_line_of_every_recording_is_reproduced() {
    let files = recordings();
    let mut depths = 0;
    for (name, scenario) in &files {
        let Some(name) = name.strip_suffix(".scenario.json") else { continue };
        let scenario: Scenario = scenario.parse().expect("a scenario");
        let log = run(&scenario).expect("it comes to its end");
        let (ours, linux) = (lines(log.as_str()), lines(&files[&format!("{name}.log.jsonl")]));
        let differs = ours.iter().zip(&linux).find(|(ours, linux)| ours != linux);
        assert_eq!(differs, None, "{name}: ours, Linux's");
        assert_eq!(ours.len(), linux.len(), "{name}");
        depths += linux.iter().filter(|line| line.contains(r#""ev":"depth""#)).count();
    }
    assert!(depths > 5, "the recordings have changes of depth");
}
