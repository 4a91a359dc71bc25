//! Tasks with a plug: what they submit at one time merges and enters together. The times and lines
//! are worked out by hand.

use crate::common::{log, parse, scenario, task, with};
use serde_json::{Value, json};

/// The log in short: each line's time, kind, and what it is of.
fn told(scenario: &Value) -> Vec<String> {
    let log = log(scenario).expect("it runs");
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("an object a line"));
    let short = |line: Value| {
        let of = |field: &str| line[field].as_str().map_or(String::new(), |it| format!(" {it}"));
        let depth = line["depth"].as_u64().map_or(String::new(), |depth| format!(" {depth}"));
        let [ev, rq, kind, into, why] = ["ev", "rq", "kind", "into", "why"].map(of);
        format!("{}{ev}{depth}{rq}{kind}{into}{why}", line["t"])
    };
    lines.map(short).filter(|line| !line.contains(" exit") && !line.contains("batch")).collect()
}

/// Four reads at one time, of which the first two adjoin, and the last adjoins those.
fn four(plug: bool) -> Value {
    let four = json!([[0, "R", 0, 8], [0, "R", 8, 8], [0, "R", 800, 8], [0, "R", 16, 8]]);
    let four = with(with(task(1, &four), "/depth", json!(4)), "/plug", json!(plug));
    let device = with(scenario(), "/device/base_ns", json!(100));
    let device = with(device, "/device/per_sector_ns", json!(0));
    let device = with(device, "/device/seek_base_ns", json!(0));
    let device = with(device, "/device/seek_ns_per_mi_sector", json!(0));
    with(device, "/tasks", json!([four]))
}

#[test]
fn without_a_plug_the_first_is_dispatched_before_the_next_arrives() {
    let told = told(&four(false));
    assert_eq!(told[..2], ["0 Q 1.0", "0 D 1.0"]);
    assert_eq!(told.iter().filter(|line| line.contains(" M ")).count(), 1, "1.3 into 1.1");
}

#[test]
fn with_a_plug_all_of_one_time_merge_and_then_one_dispatch_chooses() {
    assert_eq!(
        told(&four(true)),
        [
            "0 U 3 wait",
            "0 Q 1.0",
            "0 Q 1.1",
            "0 M 1.1 back 1.0",
            "0 Q 1.2",
            // It is not next to the newest in the plug; the scheduler finds the older one.
            "0 Q 1.3",
            "0 M 1.3 back 1.0",
            "0 D 1.0",
            "100 C 1.0",
            "100 C 1.1",
            "100 C 1.3",
            "100 D 1.2",
            "200 C 1.2",
        ]
    );
}

#[test]
fn read_before_the_newest_in_the_plug_merges_at_its_front() {
    let two = json!([[0, "R", 808, 8], [0, "R", 800, 8]]);
    let two = with(with(task(1, &two), "/depth", json!(2)), "/plug", json!(true));
    let told = told(&with(four(true), "/tasks", json!([two])));
    assert_eq!(told[3..], ["0 M 1.1 front 1.0", "0 D 1.0", "100 C 1.0", "100 C 1.1"]);
}

#[test]
fn what_arrives_later_is_in_a_plug_of_its_own() {
    let two = json!([[0, "R", 800, 8], [1, "R", 808, 8]]);
    let two = with(with(task(1, &two), "/depth", json!(2)), "/plug", json!(true));
    let told = told(&with(four(true), "/tasks", json!([two])));
    assert_eq!(told[..5], ["0 U 1 wait", "0 Q 1.0", "0 D 1.0", "1 U 1 wait", "1 Q 1.1"]);
}

#[test]
fn thirty_third_read_has_the_first_32_enter_and_a_flush_does_not_wait() {
    let reads: Vec<_> = (0..33).map(|nth| json!([0, "R", nth * 100, 8])).collect();
    let reads = with(with(task(1, &json!(reads)), "/depth", json!(33)), "/plug", json!(true));
    let unplugged = |tasks: Value| {
        let told = told(&with(four(true), "/tasks", tasks));
        told.into_iter().filter(|line| line.contains(" U ")).collect::<Vec<_>>()
    };
    assert_eq!(unplugged(json!([reads])), ["0 U 32 full", "0 U 1 wait"]);
    let flush = json!([[0, "R", 0, 8], [0, "F", 0, 0], [0, "R", 100, 8]]);
    let flush = with(with(task(1, &flush), "/depth", json!(3)), "/plug", json!(true));
    assert_eq!(unplugged(json!([flush])), ["0 U 2 explicit", "0 U 1 wait"]);
}

#[test]
fn plug_that_is_neither_true_nor_false_is_an_error_with_its_place() {
    let error = parse(&with(scenario(), "/tasks/0/plug", json!("on"))).expect_err("a word");
    let told = error.to_string();
    assert!(told.contains("invalid type: string \"on\", expected a boolean"), "{told}");
}
