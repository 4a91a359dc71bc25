//! Small scenarios, as JSON to be changed.

#![allow(unreachable_pub)]

pub(crate) mod jobs;
pub(crate) mod recorder;

use paternoster_lab::{RunError, Scenario, ScenarioError, run};
use serde_json::{Value, json};

/// One task with one read under mq-deadline, on a device that needs 100 ns a request, 10 a sector,
/// and 1000 and 1 a sector of distance for a seek.
pub fn scenario() -> Value {
    json!({
        "name": "small",
        "about": "one read",
        "scheduler": "mq-deadline",
        "tunables": {},
        "hz": 1000,
        "merges": true,
        "device": {
            "rotational": true,
            "queue_depth": 1,
            "channels": 1,
            "base_ns": 100,
            "per_sector_ns": 10,
            "seek_base_ns": 1000,
            "seek_ns_per_mi_sector": 1_048_576,
        },
        "groups": [],
        "tasks": [task(1, &json!([[0, "R", 0, 8]]))],
    })
}

/// A task that makes all its requests at once.
pub fn task(id: u32, requests: &Value) -> Value {
    json!({
        "id": id,
        "group": "/",
        "ioprio": "be/4",
        "start_ns": 0,
        "depth": 16,
        "requests": requests,
    })
}

/// `scenario` with the value at the JSON pointer replaced, or added to its object.
pub fn with(mut scenario: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = scenario.pointer_mut(parent).expect("the parent is there");
    match parent {
        Value::Array(list) => list[key.parse::<usize>().expect("an index")] = value,
        object => object[key] = value,
    }
    scenario
}

pub fn parse(scenario: &Value) -> Result<Scenario, ScenarioError> {
    scenario.to_string().parse()
}

pub fn log(scenario: &Value) -> Result<String, RunError> {
    run(&parse(scenario)?).map(|log| log.as_str().to_owned())
}

/// The lines that are told of every scheduler, as `t event request`.
pub fn decisions(scenario: &Value) -> Vec<String> {
    let log = log(scenario).expect("a scenario that runs");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let told = lines.filter(|line| ["Q", "M", "D", "C"].contains(&text(&line["ev"])));
    told.map(|line| {
        let (t, ev, rq) = (&line["t"], text(&line["ev"]), text(&line["rq"]));
        match text(&line["into"]) {
            "" => format!("{t} {ev} {rq}"),
            into => format!("{t} {ev} {rq} {} {into}", text(&line["kind"])),
        }
    })
    .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
