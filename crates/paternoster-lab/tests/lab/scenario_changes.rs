//! What a scenario changes in the course of its run, and which requests its device has requeued.

use crate::common::{log, scenario, task, with};
use serde_json::{Value, json};

/// The lines of that kind in the log, each with the time and the request.
fn of(kind: &str, scenario: &Value) -> Vec<(u64, String)> {
    let log = log(scenario).expect("it runs");
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("an object a line"));
    let lines = lines.filter(|line: &Value| line["ev"] == kind);
    let told = lines.map(|line| {
        let rq = line["rq"].as_str().expect("it is of a request").to_owned();
        (line["t"].as_u64().expect("a time"), rq)
    });
    told.collect()
}

/// Two reads that would merge, the second at 50 ns; the one that is in the device until 180 ns lets
/// them wait.
fn two_that_adjoin() -> Value {
    let busy = task(2, &json!([[0, "R", 0, 8]]));
    let two = task(1, &json!([[1, "R", 800, 8], [50, "R", 808, 8]]));
    let small = with(scenario(), "/groups", json!([{ "path": "/a" }]));
    with(small, "/tasks", json!([busy, two]))
}

#[test]
fn requests_that_follow_a_move_are_of_the_other_group() {
    assert_eq!(of("M", &two_that_adjoin()), [(50, "1.1".to_owned())], "they merge as they are");
    for (at, merges) in [(49, 0), (50, 1)] {
        let change = json!([{ "at_ns": at, "task": 1, "group": "/a" }]);
        let moved = with(two_that_adjoin(), "/changes", change);
        assert_eq!(of("M", &moved).len(), merges, "moved at {at} ns, behind what arrives then");
    }
}

#[test]
fn requests_that_follow_a_change_of_priority_have_the_new_one() {
    for (at, merges) in [(0, 1), (49, 0), (50, 1)] {
        let change = json!([{ "at_ns": at, "task": 1, "ioprio": "be/2" }]);
        let changed = with(two_that_adjoin(), "/changes", change);
        assert_eq!(of("M", &changed).len(), merges, "changed at {at} ns");
    }
}

#[test]
fn group_of_greater_weight_is_served_more_from_its_change_on() {
    let many = |id: u32, group: &str| {
        let requests: Vec<_> =
            (0..3000).map(|i| json!([0, "R", 16 * (i + 10_000 * id), 8])).collect();
        with(with(task(id, &json!(requests)), "/group", json!(group)), "/depth", json!(8))
    };
    let groups = json!([{ "path": "/a", "weight": 100 }, { "path": "/b", "weight": 100 }]);
    let two = with(with(scenario(), "/groups", groups), "/scheduler", json!("cfq"));
    let two = with(two, "/tasks", json!([many(1, "/a"), many(2, "/b")]));
    let two = with(two, "/device/base_ns", json!(1_000_000));
    let of_b = |scenario: &Value| {
        let first = of("D", scenario).into_iter().take(3000);
        first.filter(|(_, rq)| rq.starts_with("2.")).count()
    };
    let raised = json!([{ "at_ns": 10_000_000, "group": "/b", "weight": 1000 }]);
    let (equal, raised) = (of_b(&two), of_b(&with(two, "/changes", raised)));
    assert!(equal.abs_diff(1500) < 200, "equal weights, equal parts: {equal} of 3000");
    assert!(raised > 2400, "weights 1 : 10: {raised} of 3000");
}

#[test]
fn request_that_is_requeued_is_dispatched_again_and_completes_once() {
    let three = json!([[0, "R", 0, 8], [1, "R", 80, 8], [2, "R", 160, 8]]);
    let three = with(scenario(), "/tasks/0/requests", three);
    let handed = with(three, "/requeued", json!({ "1.0": 2 }));
    let names = |kind| of(kind, &handed).into_iter().map(|(_, rq)| rq).collect::<Vec<_>>();
    assert_eq!(names("R"), ["1.0", "1.0"]);
    assert_eq!(names("D"), ["1.0", "1.0", "1.0", "1.1", "1.2"], "it goes before the others");
    assert_eq!(names("C"), ["1.0", "1.1", "1.2"]);
}

#[test]
fn changes_of_a_task_that_has_exited_and_of_one_that_has_not_begun_are_no_harm() {
    let late = with(task(2, &json!([[0, "R", 800, 8]])), "/start_ns", json!(1_000_000));
    let small = with(scenario(), "/groups", json!([{ "path": "/a" }]));
    let small = with(small, "/tasks", json!([task(1, &json!([[0, "R", 0, 8]])), late]));
    let changes = json!([
        { "at_ns": 1, "task": 2, "group": "/a" },
        { "at_ns": 500_000, "task": 1, "group": "/a" },
        { "at_ns": 500_000, "task": 1, "ioprio": "rt/0" },
    ]);
    assert_eq!(of("C", &with(small, "/changes", changes)).len(), 2);
}
