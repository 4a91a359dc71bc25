//! A scenario that cannot be run is refused with what is wrong and what is allowed.

use crate::common::{log, parse, scenario, task, with};
use serde_json::{Value, json};

/// What is said of the scenario with that value, before it is run or as it is set up.
fn error_with(pointer: &str, value: Value) -> String {
    log(&with(scenario(), pointer, value)).expect_err("it cannot be run").to_string()
}

#[test]
fn small_scenario_is_fine_as_it_is() {
    parse(&scenario()).expect("the base of the tests below");
}

#[test]
fn text_that_is_no_json_is_refused_with_line_and_column() {
    let error = "{\"name\": }".parse::<paternoster_lab::Scenario>().expect_err("no JSON");
    let told = "not of the scenario format: expected value at line 1 column 10";
    assert_eq!(error.to_string(), told);
}

#[test]
fn unknown_and_missing_fields_are_named() {
    let unknown = error_with("/speed", json!(1));
    assert!(unknown.contains("unknown field `speed`, expected one of `name`"), "{unknown}");
    let unknown = error_with("/device/heads", json!(1));
    assert!(unknown.contains("unknown field `heads`, expected one of `rotational`"), "{unknown}");
    let mut without = scenario();
    without.as_object_mut().expect("an object").remove("hz");
    let missing = parse(&without).expect_err("a field is missing").to_string();
    assert!(missing.contains("missing field `hz`"), "{missing}");
}

#[test]
fn clock_without_whole_nanoseconds_a_tick_is_refused() {
    let told = |hz| format!("hz {hz}: 1 to 1000 is allowed, and only divisors of 1000000000");
    for hz in [0, 300, 2000] {
        assert_eq!(error_with("/hz", json!(hz)), told(hz));
    }
}

#[test]
fn device_without_room_is_refused_by_its_field() {
    let told = |field| format!("device.{field} is 0: at least 1 is allowed");
    for field in ["queue_depth", "channels"] {
        assert_eq!(error_with(&format!("/device/{field}"), json!(0)), told(field));
    }
}

#[test]
fn groups_come_once_after_their_parents_by_path() {
    let groups = |paths: &[&str]| {
        let groups: Vec<_> = paths.iter().map(|path| json!({ "path": path })).collect();
        error_with("/groups", Value::Array(groups))
    };
    assert_eq!(groups(&["/a/b"]), "group \"/a/b\" comes before its parent");
    assert_eq!(groups(&["/a", "/a"]), "group \"/a\" is there twice");
    for path in ["a", "/", "/a/", ""] {
        let told = format!("group {path:?} is no path from the root, such as /a");
        assert_eq!(groups(&[path]), told);
    }
}

#[test]
fn group_that_is_too_deep_is_refused() {
    let path = |depth| "/a".repeat(depth);
    let groups: Vec<_> = (1..=257).map(|depth| json!({ "path": path(depth) })).collect();
    let told = error_with("/groups", Value::Array(groups));
    assert_eq!(told, "a group is 257 deep: 1 to 256 is allowed");
}

#[test]
fn weight_out_of_range_is_refused_by_its_group() {
    for field in ["weight", "leaf_weight"] {
        for weight in [0, 1001] {
            let group = json!([{ "path": "/a", field: weight }]);
            let told = format!("group \"/a\": weight {weight}: 1 to 1000 is allowed");
            assert_eq!(error_with("/groups", group), told);
        }
    }
}

#[test]
fn task_is_refused_by_its_number() {
    let twice = json!([task(7, &json!([])), task(7, &json!([]))]);
    assert_eq!(error_with("/tasks", twice), "task 7: is there twice");
    let group = error_with("/tasks/0/group", json!("/none"));
    assert_eq!(group, "task 1: there is no group \"/none\"");
    assert_eq!(error_with("/tasks/0/depth", json!(0)), "task 1: depth 0: at least 1 is allowed");
    let told = "task 1: \"be/8\" is no I/O priority; rt/0 to rt/7, be/0 to be/7, idle and none are";
    assert_eq!(error_with("/tasks/0/ioprio", json!("be/8")), told);
}

/// 3650 days are 3650 × 86,400 s.
const LONGEST_NS: u64 = 315_360_000_000_000_000;

#[test]
fn times_above_3650_days_are_refused_where_they_stand() {
    let allowed = "0 to 315360000000000000 is allowed, 3650 days";
    let long = LONGEST_NS + 1;
    for field in ["base_ns", "per_sector_ns", "seek_base_ns", "seek_ns_per_mi_sector"] {
        let told = error_with(&format!("/device/{field}"), json!(long));
        assert_eq!(told, format!("device.{field} is {long}: {allowed}"));
    }
    let told = error_with("/tasks/0/start_ns", json!(long));
    assert_eq!(told, format!("task 1: start_ns {long}: {allowed}"));
    let told = error_with("/tasks/0/requests", json!([[u64::MAX, "R", 0, 8]]));
    let think = "request 0: think_ns is 18446744073709551615: a whole number, 0 to \
                 315360000000000000, is allowed";
    assert_eq!(told, format!("task 1: {think}"));
}

/// Each time is allowed, and their sums are not: the second read arrives 180 ns too late. A read
/// of 8 sectors takes 100 + 80 ns.
#[test]
fn run_of_more_than_3650_days_is_refused_by_its_request() {
    let reads = |think: u64| json!([[0, "R", 0, 8], [think, "R", 8, 8], [think, "R", 16, 8]]);
    let one_by_one = with(scenario(), "/tasks/0/depth", json!(1));
    let told = |scenario| log(&scenario).expect_err("it is too long").to_string();
    let late = "more than 3650 days after the begin: the longest run";
    let long = with(one_by_one.clone(), "/tasks/0/requests", reads(LONGEST_NS));
    assert_eq!(told(long), format!("request 1.1 would arrive {late}"));
    let fits = LONGEST_NS / 2 - 270;
    log(&with(one_by_one.clone(), "/tasks/0/requests", reads(fits))).expect("it ends in time");
    let longer = with(one_by_one, "/tasks/0/requests", reads(fits + 1));
    assert_eq!(told(longer), format!("request 1.2 would complete {late}"));
    let slow = with(scenario(), "/device/per_sector_ns", json!(LONGEST_NS));
    assert_eq!(told(slow), format!("request 1.0 would complete {late}"));
}

#[test]
fn request_is_refused_by_its_task_and_index() {
    let request = |request: Value| error_with("/tasks/0/requests/0", request);
    let flush = "task 1: request 0: a flush has 0 sectors, and nothing else has";
    assert_eq!(request(json!([0, "F", 0, 8])), flush);
    assert_eq!(request(json!([0, "R", 0, 0])), flush);
    let end = request(json!([0, "R", u64::MAX, 1]));
    assert_eq!(end, "task 1: request 0 ends beyond sector 2⁶⁴");
}

/// It was told that the data did not match any variant of an untagged enum.
#[test]
fn request_that_is_none_is_refused_with_what_was_found_and_what_is_allowed() {
    let request = |request: Value| error_with("/tasks/0/requests/0", request);
    let number = |max: u64| format!("a whole number, 0 to {max}, is allowed");
    let sectors = number(u32::MAX.into());
    let list = "[think_ns, op, sector, sectors], or with the name of a request as the fifth";
    let ops = "one of \"R\", \"W\", \"WS\", \"F\", \"D\", \"WF\", \"Z\" is allowed";
    for (bad, told) in [
        (json!("R"), format!("it is \"R\": {list} is allowed")),
        (json!({ "op": "R" }), format!("it is {{\"op\":\"R\"}}: {list} is allowed")),
        (json!([0, "R", 0]), format!("a list of 3 is [0,\"R\",0]: {list} is allowed")),
        (json!([-1, "R", 0, 8]), format!("think_ns is -1: {}", number(LONGEST_NS))),
        (json!([0.5, "R", 0, 8]), format!("think_ns is 0.5: {}", number(LONGEST_NS))),
        (json!([0, "X", 0, 8]), format!("op is \"X\": {ops}")),
        (json!([0, 1, 0, 8]), format!("op is 1: {ops}")),
        (json!([0, "R", "0", 8]), format!("sector is \"0\": {}", number(u64::MAX))),
        (json!([0, "R", 0, null]), format!("sectors is null: {sectors}")),
        (
            json!([0, "R", 0, 1_u64 << 32]),
            format!("sectors is 4294967296: {}", number(u32::MAX.into())),
        ),
        (
            json!([0, "R", 0, 8, 2.7]),
            "the request to wait for is 2.7: a name such as \"2.7\" is allowed".to_owned(),
        ),
    ] {
        assert_eq!(request(bad), format!("task 1: request 0: {told}"));
    }
}

#[test]
fn bad_request_is_told_by_its_own_number_and_cut_where_it_is_long() {
    let requests = json!([[0, "R", 0, 8], ["é".repeat(100), "R", 0, 8]]);
    let told = error_with("/tasks/0/requests", requests);
    let begin = format!("task 1: request 1: think_ns is \"{}…: a whole", "é".repeat(59));
    assert!(told.starts_with(&begin), "{told}");
}

#[test]
fn request_that_waits_for_none_of_the_scenario_is_refused() {
    let told = "request 1.0 waits for \"3.0\", which is no request of the scenario";
    assert_eq!(error_with("/tasks/0/requests/0", json!([0, "R", 0, 8, "3.0"])), told);
}

#[test]
fn change_of_what_is_not_there_and_change_that_is_none_are_refused_by_their_number() {
    let task = |change: Value| error_with("/changes", json!([change]));
    let allowed = "change 0: \"group\" with \"weight\", \"leaf_weight\" or both, or \"task\" with \
                   \"group\" or with \"ioprio\", is allowed";
    for none in [
        json!({ "at_ns": 0 }),
        json!({ "at_ns": 0, "group": "/" }),
        json!({ "at_ns": 0, "task": 1 }),
        json!({ "at_ns": 0, "task": 1, "weight": 5 }),
        json!({ "at_ns": 0, "task": 1, "group": "/", "ioprio": "be/1" }),
    ] {
        assert_eq!(task(none), allowed);
    }
    for (change, told) in [
        (json!({ "task": 2, "ioprio": "be/1" }), "there is no task 2"),
        (json!({ "task": 1, "group": "/a" }), "there is no group \"/a\""),
        (json!({ "group": "/a", "weight": 5 }), "there is no group \"/a\""),
        (json!({ "group": "/", "weight": 0 }), "weight 0: 1 to 1000 is allowed"),
        (json!({ "group": "/", "leaf_weight": 1001 }), "weight 1001: 1 to 1000 is allowed"),
        (
            json!({ "task": 1, "ioprio": "be/8" }),
            "\"be/8\" is no I/O priority; rt/0 to rt/7, be/0 to be/7, idle and none are",
        ),
    ] {
        assert_eq!(task(with(change, "/at_ns", json!(0))), format!("change 0: {told}"));
    }
    let late = task(json!({ "at_ns": LONGEST_NS + 1, "task": 1, "group": "/" }));
    let allowed = format!("0 to {LONGEST_NS} is allowed, 3650 days");
    assert_eq!(late, format!("change 0: at_ns {}: {allowed}", LONGEST_NS + 1));
}

#[test]
fn request_that_is_not_there_or_too_often_is_not_requeued() {
    let told = error_with("/requeued", json!({ "1.1": 1 }));
    assert_eq!(told, "requeued \"1.1\": there is no such request");
    let told = error_with("/requeued", json!({ "1.0": 1001 }));
    assert_eq!(told, "requeued \"1.0\": 1001 times: 0 to 1000 is allowed");
}

#[test]
fn scheduler_that_we_lack_is_refused_with_those_that_there_are() {
    let told = "there is no scheduler \"anticipatory\"; \
                there are: none, mq-deadline, kyber, cfq, bfq, wfq";
    assert_eq!(error_with("/scheduler", json!("anticipatory")), told);
}

#[test]
fn tunable_that_the_scheduler_lacks_is_refused_with_those_that_it_has() {
    let told = error_with("/tunables", json!({ "quantum": 8 }));
    assert!(told.starts_with("mq-deadline has no tunable \"quantum\"; it has: read_expire, "));
}

#[test]
fn hierarchy_is_one_of_those_of_cfq() {
    let told = "there is no hierarchy \"deep\"; there are: leaf-weight, flat, entities";
    assert_eq!(error_with("/hierarchy", json!("deep")), told);
    let told = "mq-deadline has no hierarchy to choose; cfq has: leaf-weight, flat, entities";
    assert_eq!(error_with("/hierarchy", json!("flat")), told);
}

#[test]
fn kernel_is_one_of_those_of_cfq_and_has_a_hierarchy_of_its_own() {
    let told = "there is no kernel \"2.6.38\"; there are: 2.6.35-seed, 2.6.36, 2.6.37, 4.20";
    assert_eq!(error_with("/kernel", json!("2.6.38")), told);
    let told = "mq-deadline has no kernel to choose; cfq has: 2.6.35-seed, 2.6.36, 2.6.37, 4.20";
    assert_eq!(error_with("/kernel", json!("2.6.36")), told);
    let of_cfq = with(with(scenario(), "/scheduler", json!("cfq")), "/tunables", json!({}));
    let both = with(with(of_cfq, "/kernel", json!("2.6.36")), "/hierarchy", json!("flat"));
    let told = "kernel 2.6.36 has no hierarchy to choose; cfq of kernel 4.20 has: leaf-weight, \
                flat, entities";
    assert_eq!(log(&both).expect_err("it cannot be run").to_string(), told);
}

/// The servers of a device were all made at once, whatever their number.
#[test]
fn device_of_very_many_channels_runs() {
    let many = with(scenario(), "/device/channels", json!(u32::MAX));
    log(&with(many, "/device/queue_depth", json!(u32::MAX))).expect("only some are used");
}
