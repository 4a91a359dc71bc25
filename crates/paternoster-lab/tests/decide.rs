//! A folder of scenarios: each gets its log, or is named with what is wrong with it.

mod common;

use std::fs;
use std::path::Path;

use common::{log, scenario, with};
use paternoster_lab::{DecideError, RunError, ScenarioError, decide, decide_folder};
use serde_json::{Value, json};

fn put(dir: &Path, name: &str, scenario: &Value) {
    let path = dir.join(format!("{name}.scenario.json"));
    fs::write(path, scenario.to_string()).expect("a folder to write in");
}

#[test]
fn scenario_that_cannot_be_run_does_not_keep_the_others_from_it() {
    let dir = tempfile::tempdir().expect("a folder");
    put(dir.path(), "a", &scenario());
    put(dir.path(), "b", &with(scenario(), "/scheduler", json!("anticipatory")));
    put(dir.path(), "c", &with(scenario(), "/scheduler", json!("none")));
    fs::write(dir.path().join("notes.txt"), "no scenario").expect("a folder to write in");

    let out = dir.path().join("out/deep");
    let decided = decide_folder(dir.path(), &out, None).expect("it has scenarios");
    let names: Vec<_> = decided.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for name in ["a", "c"] {
        let written = fs::read_to_string(out.join(format!("{name}.log.jsonl"))).expect("a log");
        assert!(written.contains("\"ev\":\"C\""), "{name}: {written}");
    }
    let error = decided[1].log.as_ref().expect_err("we lack it");
    assert!(matches!(
        error,
        DecideError::Run { why: RunError::Scenario(ScenarioError::Scheduler(_)), .. }
    ));
    let told = error.to_string();
    assert!(
        told.ends_with(
            "b.scenario.json: there is no scheduler \"anticipatory\"; there are: \
                            none, mq-deadline, kyber, cfq, bfq"
        ),
        "{told}"
    );
    assert!(!out.join("b.log.jsonl").exists(), "no log of it");
}

#[test]
fn one_scenario_of_a_folder_may_be_run_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    put(dir.path(), "a", &scenario());
    put(dir.path(), "b", &scenario());
    let out = dir.path().join("out");
    let decided = decide_folder(dir.path(), &out, Some("b")).expect("b is there");
    assert_eq!(decided.len(), 1);
    assert!(!out.join("a.log.jsonl").exists() && out.join("b.log.jsonl").exists());

    let error = decide_folder(dir.path(), &out, Some("c")).expect_err("c is not");
    assert!(error.to_string().ends_with(" holds no c.scenario.json"), "{error}");
}

#[test]
fn folder_without_scenarios_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let error = decide_folder(dir.path(), dir.path(), None).expect_err("it is empty");
    assert!(error.to_string().ends_with(" holds no *.scenario.json"), "{error}");
    let nowhere = dir.path().join("nowhere");
    let error = decide_folder(&nowhere, dir.path(), None).expect_err("it does not exist");
    assert!(matches!(error, DecideError::File { .. }), "{error}");
    assert!(error.to_string().contains("nowhere: "), "{error}");
}

#[test]
fn file_gives_the_log_that_its_scenario_gives() {
    let dir = tempfile::tempdir().expect("a folder");
    put(dir.path(), "a", &scenario());
    let path = dir.path().join("a.scenario.json");
    assert_eq!(decide(&path).expect("a log"), log(&scenario()).expect("a log"));
}

/// The oracle's runs have no admission: `async_depth` is stored and turns nobody away.
#[test]
fn scenario_that_sets_async_depth_runs_as_without_it() {
    let writes = common::task(1, &json!([[0, "W", 0, 8], [0, "W", 800, 8], [0, "W", 1600, 8]]));
    let plain = with(scenario(), "/tasks/0", writes);
    let bounded = with(plain.clone(), "/tunables", json!({ "async_depth": 1 }));
    assert_eq!(log(&bounded).expect("it runs"), log(&plain).expect("it runs"));
}
