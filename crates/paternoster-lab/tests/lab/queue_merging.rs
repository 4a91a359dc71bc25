//! Why BFQ merges no queues for their positions on a device that does not rotate and queues: the
//! two loads for which that was turned off, each as Linux serves it and with merging on every
//! device.
//!
//! In both, a task that just begins, and whose weight is raised for that, asks for little, next to
//! a busy one that works on the same part of the device. Merged, the two share a queue that is
//! raised *and* always busy. Its share is held by keeping the device free whenever it is empty for
//! a moment (plugging), which it is after each request, and the device stands idle.

use paternoster_lab::{Scenario, run};
use serde_json::{Value, json};

/// A device that serves so many requests a second, one after the other.
const IOPS: u64 = 2000;
/// Queues of tasks that begin no farther apart than 600 ms would merge at their birth.
const APART_NS: u64 = 650_000_000;
/// The tasks beside the two, enough to keep the device busy.
const OTHERS: u64 = 3;
/// When the task begins whose weight is raised; the others are raised no more by then.
const LATE_NS: u64 = 7_000_000_000;
/// What is measured: a second.
const WINDOW_NS: std::ops::Range<u64> = LATE_NS + 200_000_000..LATE_NS + 1_200_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// What happened.
struct Outcome {
    /// Requests that completed in the window.
    completed: usize,
    /// Times that the device was kept free in the window.
    plugged: usize,
    queues_merged: usize,
}

fn outcome(scenario: &Scenario) -> Outcome {
    let log = run(scenario).expect("it runs to its end");
    let line = |line: &str| -> Value { serde_json::from_str(line).expect("a line is JSON") };
    let lines: Vec<Value> = log.as_str().lines().map(line).collect();
    let in_window = |line: &&Value| WINDOW_NS.contains(&line["t"].as_u64().expect("a time"));
    let count =
        |event: &str| lines.iter().filter(in_window).filter(|line| line["ev"] == event).count();
    let queues_merged = lines.iter().filter(|line| line["ev"] == "merge_queues").count();
    Outcome { completed: count("C"), plugged: count("idle"), queues_merged }
}

/// A task that keeps `depth` requests of 4 KiB outstanding.
fn task(id: u64, start_ns: u64, depth: u64, request: &dyn Fn(u64) -> Value) -> Value {
    // No task gets more than half of the device, or asks for more.
    let requests = IOPS / 2 * WINDOW_NS.end.div_ceil(NS_PER_S);
    let requests: Vec<Value> = (0..requests).map(request).collect();
    json!({
        "id": id, "group": "/", "ioprio": "be/4", "start_ns": start_ns, "depth": depth,
        "requests": requests,
    })
}

/// The two, whose requests are of that kind, and others that read all over the device. `merging` is
/// the tunable: 0 linux, 1 never, 2 everywhere.
fn scenario(op: &str, merging: u8) -> Scenario {
    let others = (0..OTHERS).map(|other| {
        let scattered = |i: u64| ((i * 7919 + other * 104_729) % 65_536 + 4096) * 16_384;
        task(other, other * APART_NS, 4, &|i| json!([0, "R", scattered(i), 8]))
    });
    // Within 256 KiB, so that their order is no seek.
    let near = |offset: u64, i: u64| 1_000_000 + offset + 16 * i % 512;
    let busy = |i| json!([1_000_000, op, near(8, i), 8]);
    let raised = |i| json!([200_000_000, op, near(0, i), 8]);
    let tasks: Vec<Value> = others
        .chain([
            task(OTHERS, OTHERS * APART_NS, 1, &busy),
            json!({
                "id": OTHERS + 1, "group": "/", "ioprio": "be/4", "start_ns": LATE_NS, "depth": 1,
                "requests": (0..8).map(raised).collect::<Vec<_>>(),
            }),
        ])
        .collect();
    let scenario = json!({
        "name": "near", "about": "two tasks near each other", "scheduler": "bfq",
        "tunables": { "merging": merging }, "hz": 1000, "merges": false,
        "device": {
            "rotational": false, "queue_depth": 32, "channels": 1,
            "base_ns": NS_PER_S / IOPS, "per_sector_ns": 0,
            "seek_base_ns": 0, "seek_ns_per_mi_sector": 0,
        },
        "groups": [], "tasks": tasks,
    });
    scenario.to_string().parse().expect("a scenario")
}

/// Merged, the busy task thinks for 1 ms after each of its requests, which take 0.5 ms, and the
/// device waits for that: it does hardly more than 1000 / 1.5 of its 2000 requests a second.
/// Apart, only the task that asks five times a second is waited for, 20 ms each time, and the
/// requests of the other four go on.
fn merging_costs_throughput(op: &str) {
    let [apart, merged] = [0, 2].map(|merging| outcome(&scenario(op, merging)));
    assert_eq!(
        (apart.queues_merged, merged.queues_merged),
        (0, 1),
        "merged only where that is the policy"
    );
    assert!(apart.completed >= 1400, "{} requests apart", apart.completed);
    assert!(merged.completed <= 800, "{} requests merged", merged.completed);
    assert!(merged.plugged >= 600, "the device was kept free {} times", merged.plugged);
    assert!(apart.plugged <= 250, "apart it was {} times", apart.plugged);
}

#[test]
fn interleaved_readers_on_a_fast_device_lose_throughput_if_their_queues_merge() {
    merging_costs_throughput("R");
}

#[test]
fn clients_of_a_journal_on_a_fast_device_lose_throughput_if_their_queues_merge() {
    merging_costs_throughput("WS");
}

/// Post 5: on a device that does not seek and queues, queues of a group that are created within a
/// tenth of a second merge at once, wherever they read: a tenant's three connections are one queue.
#[test]
fn queues_that_are_created_together_merge_at_once_unless_merging_is_never() {
    let merged = |merging: u8| {
        let reads =
            |task: u64| (0..8).map(move |i| json!([20_000_000, "R", (task * 100 + i) * 65_536, 8]));
        let tasks = (0..3).map(|task| {
            json!({
                "id": task, "group": "/", "ioprio": "be/4", "start_ns": task * 30_000_000,
                "depth": 1, "requests": reads(task).collect::<Vec<_>>(),
            })
        });
        let scenario = json!({
            "name": "together", "about": "three connections", "scheduler": "bfq",
            "tunables": { "merging": merging }, "hz": 1000, "merges": false,
            "device": {
                "rotational": false, "queue_depth": 32, "channels": 4,
                "base_ns": 100_000, "per_sector_ns": 0,
                "seek_base_ns": 0, "seek_ns_per_mi_sector": 0,
            },
            "groups": [], "tasks": tasks.collect::<Vec<_>>(),
        });
        let log = run(&scenario.to_string().parse().expect("a scenario")).expect("it ends");
        log.as_str().lines().filter(|line| line.contains("\"merge_queues\"")).count()
    };
    assert_eq!([0, 1].map(merged), [2, 0]);
}
