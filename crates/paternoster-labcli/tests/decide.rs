//! `paternoster-lab decide`: logs in a folder, tables on standard output.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"{
    "name": "small", "about": "two readers", "scheduler": "mq-deadline", "tunables": {},
    "hz": 1000, "merges": true, "groups": [{"path": "/a"}, {"path": "/b"}],
    "device": {"rotational": true, "queue_depth": 1, "channels": 1, "base_ns": 100000,
               "per_sector_ns": 100, "seek_base_ns": 4000000, "seek_ns_per_mi_sector": 1000},
    "tasks": [
        {"id": 1, "group": "/a", "ioprio": "be/4", "start_ns": 0, "depth": 1,
         "requests": [[0, "R", 0, 8], [0, "R", 16, 8], [0, "R", 32, 8]]},
        {"id": 2, "group": "/b", "ioprio": "be/4", "start_ns": 0, "depth": 1,
         "requests": [[0, "R", 90000, 8], [0, "R", 90016, 8], [0, "R", 90032, 8]]}
    ]
}"#;

fn decide(folder: &Path, options: &[&str]) -> Output {
    fs::write(folder.join("small.scenario.json"), SCENARIO).expect("a file in a folder of ours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.arg("decide").arg(folder).arg("--out").arg(folder.join("out")).args(options);
    command.output().expect("the binary runs")
}

fn logs(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("out")).expect("the folder of the logs");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn each_scheduler_has_a_log_and_a_table_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = decide(folder.path(), &["--scheduler", "cfq", "--scheduler", "bfq"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(logs(folder.path()), ["small.bfq.log.jsonl", "small.cfq.log.jsonl"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let tables: Vec<&str> = text.split("\n\n").filter(|table| !table.is_empty()).collect();
    assert_eq!(tables.len(), 2, "{text}");
    assert!(tables[0].starts_with("small: cfq\n") && tables[1].starts_with("small: bfq\n"));
    for table in tables {
        for word in ["SHARE", "/a", "/b", "read"] {
            assert!(table.contains(word), "no {word} in:\n{table}");
        }
    }
}

#[test]
fn log_is_named_by_the_scenario_alone_where_no_scheduler_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = decide(folder.path(), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(logs(folder.path()), ["small.log.jsonl"]);
    assert!(output.stdout.starts_with(b"small: mq-deadline\n"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "1 of 1 scenarios decided\n");
}

#[test]
fn tunable_is_set_by_name_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let cfq = |options: &[&str]| {
        let output = decide(folder.path(), &[&["--scheduler", "cfq"], options].concat());
        let [told, errors] = [output.stdout, output.stderr].map(String::from_utf8);
        (output.status.code(), told.expect("text"), errors.expect("text"))
    };
    let (code, idling, _) = cfq(&[]);
    assert_eq!(code, Some(0));
    let (_, never_idle, _) = cfq(&["--set", "slice_idle=0", "--set", "group_idle=0"]);
    assert_ne!(idling, never_idle, "idling keeps the head with one reader");
    let (code, _, told) = cfq(&["--set", "low_latency_us=1"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("cfq has no tunable \"low_latency_us\"; it has: quantum"), "{told}");
}

#[test]
fn scenario_that_is_no_json_is_told_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.scenario.json");
    fs::write(&path, "{\n  \"name\": }").expect("a file");
    let output = decide(folder.path(), &["--only", "bad"]);
    let told = String::from_utf8(output.stderr).expect("text");
    let wanted = format!("paternoster-lab: {}:2:11: expected value\n", path.display());
    assert!(told.starts_with(&wanted), "{told}");
}

/// Of two values of a tunable only one could hold, whatever their units.
#[test]
fn what_is_said_twice_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |options: &[&str]| {
        let output = decide(folder.path(), options);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("text")
    };
    let twice = refused(&["--scheduler", "kyber", "--scheduler", "bfq", "--scheduler", "kyber"]);
    assert_eq!(twice, "paternoster-lab: --scheduler kyber twice: once is allowed\n");
    let set = ["--scheduler", "cfq", "--set", "slice_idle=0", "--set"];
    for second in ["slice_idle=8", "slice_idle_us=8000"] {
        let told = refused(&[&set[..], &[second]].concat());
        let wanted = format!("--set {second} beside --set slice_idle=0: one of them is allowed");
        assert_eq!(told, format!("paternoster-lab: {wanted}\n"));
    }
}
