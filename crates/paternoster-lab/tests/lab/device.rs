//! The device and the order of events, as oracle/FORMAT.md lays them down; every time is worked
//! out by hand.

use crate::common::{decisions, log, scenario, task, with};
use paternoster::SchedulerKind;
use serde_json::json;

/// Two servers and room for three requests. 1.0 starts where server 0's head is: 100 + 8 × 10.
/// 1.1 is 1000 sectors from server 1's head: 1000 + 1000 more. 1.2 waits in the device for server
/// 0 and needs no seek there: from 180 on, 100 + 4 × 10. 1.3 finds the device full, is dispatched
/// at 180, and starts at 320 from sector 12: 100 + 2 × 10 + 1000 + 488.
#[test]
fn servers_seek_from_their_own_heads_and_take_what_waited_longest() {
    let requests = json!([[0, "R", 0, 8], [0, "R", 1000, 8], [0, "R", 8, 4], [0, "R", 500, 2]]);
    let mut scenario = with(scenario(), "/tasks/0", task(1, &requests));
    scenario = with(scenario, "/device/channels", json!(2));
    scenario = with(scenario, "/device/queue_depth", json!(3));
    scenario = with(scenario, "/merges", json!(false));
    let expected = [
        "0 Q 1.0",
        "0 D 1.0",
        "0 Q 1.1",
        "0 D 1.1",
        "0 Q 1.2",
        "0 D 1.2",
        "0 Q 1.3",
        "180 C 1.0",
        "180 D 1.3",
        "320 C 1.2",
        "1928 C 1.3",
        "2180 C 1.1",
    ];
    assert_eq!(decisions(&scenario), expected);
}

/// Half of a sector's seek time is lost in the division: 3 × 524 287 / 1 048 576 is 1.
#[test]
fn seek_time_is_divided_last_and_truncated() {
    let requests = json!([[0, "R", 3, 1]]);
    let mut scenario = with(scenario(), "/tasks/0", task(1, &requests));
    scenario = with(scenario, "/device/seek_ns_per_mi_sector", json!(524_287));
    assert_eq!(decisions(&scenario), ["0 Q 1.0", "0 D 1.0", "1111 C 1.0"]);
}

/// At 180 the completion of 1.0 comes first, then the arrivals: 2.0's was scheduled as the run
/// began, 1.1's at that completion.
#[test]
fn completions_come_before_arrivals_and_arrivals_as_they_were_scheduled() {
    let mut scenario = scenario();
    scenario["tasks"] = json!([
        with(task(1, &json!([[0, "R", 0, 8], [0, "R", 8, 8]])), "/depth", json!(1)),
        with(task(2, &json!([[0, "R", 16, 8]])), "/start_ns", json!(180)),
    ]);
    scenario["merges"] = json!(false);
    let expected = [
        "0 Q 1.0",
        "0 D 1.0",
        "180 C 1.0",
        "180 Q 2.0",
        "180 D 2.0",
        "180 Q 1.1",
        // 2.0 starts 8 sectors behind the head, 1.1 16 before it.
        "1368 C 2.0",
        "1368 D 1.1",
        "2564 C 1.1",
    ];
    assert_eq!(decisions(&scenario), expected);
}

/// 2.0 arrives 50 after the completion of 1.0, whatever its index; 1.1 at once.
#[test]
fn request_may_wait_for_another_task() {
    let mut scenario = scenario();
    scenario["device"]["queue_depth"] = json!(2);
    scenario["tasks"] =
        json!([task(1, &json!([[0, "R", 0, 8]])), task(2, &json!([[50, "R", 8, 8, "1.0"]]))]);
    let expected = ["0 Q 1.0", "0 D 1.0", "180 C 1.0", "230 Q 2.0", "230 D 2.0", "410 C 2.0"];
    assert_eq!(decisions(&scenario), expected);
}

/// A merged request is served as one, 24 sectors from 8 on, and completes bio by bio in the order
/// of merging. The flush holds the device, and is handed out before what waits.
#[test]
fn merged_requests_complete_in_the_order_of_merging() {
    let requests = json!([[0, "F", 0, 0], [0, "R", 16, 8], [0, "R", 8, 8], [0, "R", 24, 8]]);
    let mut scenario = with(scenario(), "/tasks/0", task(1, &requests));
    let expected = [
        "0 Q 1.0",
        "0 D 1.0",
        "0 Q 1.1",
        "0 Q 1.2",
        "0 M 1.2 front 1.1",
        "0 Q 1.3",
        "0 M 1.3 back 1.1",
        "100 C 1.0",
        "100 D 1.1",
        // 100 + 240 + 1000 + 8.
        "1448 C 1.1",
        "1448 C 1.2",
        "1448 C 1.3",
    ];
    assert_eq!(decisions(&scenario), expected);
    scenario["merges"] = json!(false);
    assert!(decisions(&scenario).iter().all(|line| !line.contains('M')), "nothing merges");
}

/// FORMAT.md's limit: 2560 sectors. The second bio would make 2561.
#[test]
fn request_never_grows_beyond_2560_sectors() {
    let requests = json!([[0, "F", 0, 0], [0, "R", 0, 2553], [0, "R", 2553, 8]]);
    let scenario = with(scenario(), "/tasks/0", task(1, &requests));
    assert!(decisions(&scenario).iter().all(|line| !line.contains('M')), "it is refused");
}

#[test]
fn every_scheduler_that_there_is_runs_a_scenario() {
    for scheduler in SchedulerKind::ALL {
        let scenario = with(scenario(), "/scheduler", json!(scheduler.name()));
        assert_eq!(decisions(&scenario), ["0 Q 1.0", "0 D 1.0", "180 C 1.0"], "{scheduler}");
    }
}

/// Two requests that wait for each other never arrive; the third is served.
#[test]
fn run_with_requests_left_and_nothing_to_come_is_stuck() {
    let requests = json!([[0, "R", 0, 8], [0, "R", 8, 8, "1.2"], [0, "R", 16, 8, "1.1"]]);
    let scenario = with(scenario(), "/tasks/0", task(1, &requests));
    let error = log(&scenario).expect_err("it cannot end");
    assert_eq!(error.to_string(), "stuck at 180 ns with 2 requests left: 1.1, 1.2");
}
