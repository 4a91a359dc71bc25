//! A folder of scenarios: each gets its log, or is named with what is wrong with it.

use std::fs;
use std::path::Path;

use crate::common::{log, scenario, with};
use paternoster::SchedulerKind;
use paternoster_lab::{DecideError, Decided, Plan, RunError, ScenarioError, decide, decide_all};
use serde_json::{Value, json};

fn put(dir: &Path, name: &str, scenario: &Value) {
    let path = dir.join(format!("{name}.scenario.json"));
    fs::write(path, scenario.to_string()).expect("a folder to write in");
}

/// Decides all scenarios of a folder, or one.
fn decide_folder(dir: &Path, out: &Path, only: Option<&str>) -> Result<Vec<Decided>, DecideError> {
    let (scenarios, only) = (vec![dir.to_owned()], only.map(str::to_owned));
    let plan = Plan { scenarios, only, ..Plan::default() };
    decide_all(&plan, out).map(Iterator::collect)
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
    let error = decided[1].outcome.as_ref().expect_err("we lack it");
    assert!(matches!(
        error,
        DecideError::Run { why: RunError::Scenario(ScenarioError::Scheduler(_)), .. }
    ));
    let told = error.to_string();
    assert!(
        told.ends_with(
            "b.scenario.json: there is no scheduler \"anticipatory\"; there are: \
                            none, mq-deadline, kyber, cfq, bfq, wfq"
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
    let writes =
        crate::common::task(1, &json!([[0, "W", 0, 8], [0, "W", 800, 8], [0, "W", 1600, 8]]));
    let plain = with(scenario(), "/tasks/0", writes);
    let bounded = with(plain.clone(), "/tunables", json!({ "async_depth": 1 }));
    assert_eq!(log(&bounded).expect("it runs"), log(&plain).expect("it runs"));
}

/// What became of each scheduler's run, by the file of its log.
fn decide_under(dir: &Path, plan: &Plan) -> Vec<Result<(String, String), String>> {
    let out = dir.join("out");
    let decided = decide_all(plan, &out).expect("it can be planned");
    let outcomes = decided.map(|one| match one.outcome {
        Ok(outcome) => {
            let name = outcome.log.file_name().expect("a file").to_string_lossy().into_owned();
            Ok((name, fs::read_to_string(outcome.log).expect("a log")))
        }
        Err(error) => Err(error.to_string()),
    });
    outcomes.collect()
}

#[test]
fn scenario_is_run_under_each_scheduler_without_what_is_set_of_its_own() {
    let dir = tempfile::tempdir().expect("a folder");
    let requests: Vec<_> = (0..8).map(|i| json!([0, "R", (i * 7 % 8) * 1000, 8])).collect();
    let own = with(scenario(), "/tasks/0", crate::common::task(1, &json!(requests)));
    let own = with(own, "/tunables", json!({ "fifo_batch": 1 }));
    put(dir.path(), "a", &own);
    let schedulers = vec![SchedulerKind::MqDeadline, SchedulerKind::None];
    let scenarios = vec![dir.path().join("a.scenario.json")];
    let plan = Plan { scenarios, schedulers, ..Plan::default() };
    let none = with(with(own.clone(), "/scheduler", json!("none")), "/tunables", json!({}));
    let expected = [("mq-deadline", &own), ("none", &none)]
        .map(|(name, scenario)| Ok((format!("a.{name}.log.jsonl"), log(scenario).expect("a log"))));
    assert_ne!(expected[0], expected[1], "they decide otherwise");
    assert_eq!(decide_under(dir.path(), &plan), expected);
}

#[test]
fn tunable_that_is_set_counts_as_if_the_scenario_set_it_last() {
    let dir = tempfile::tempdir().expect("a folder");
    let requests: Vec<_> = (0..40).map(|i| json!([0, "R", (i * 7 % 40) * 1000, 8])).collect();
    let untuned = with(scenario(), "/tasks/0", crate::common::task(1, &json!(requests)));
    let tuned = |batch: i64| {
        let tunables = json!({ "fifo_batch": batch, "read_expire": 0 });
        with(untuned.clone(), "/tunables", tunables)
    };
    put(dir.path(), "a", &tuned(16));
    let scenarios = vec![dir.path().to_owned()];
    let tunables = vec![("fifo_batch".to_owned(), 1)];
    let plan = Plan { scenarios, tunables, ..Plan::default() };
    let set = log(&tuned(1)).expect("a log");
    assert_ne!(set, log(&tuned(16)).expect("a log"));
    assert_eq!(decide_under(dir.path(), &plan), [Ok(("a.log.jsonl".to_owned(), set))]);
}

#[test]
fn tunable_that_a_scheduler_lacks_is_refused_with_those_that_it_has() {
    let dir = tempfile::tempdir().expect("a folder");
    put(dir.path(), "a", &scenario());
    let plan = |schedulers, name: &str, value| Plan {
        scenarios: vec![dir.path().to_owned()],
        schedulers,
        tunables: vec![(name.to_owned(), value)],
        ..Plan::default()
    };
    let before =
        |plan: &Plan| decide_all(plan, dir.path()).err().expect("it is refused").to_string();
    let both = plan(vec![SchedulerKind::Bfq, SchedulerKind::Kyber], "slice_idle", 0);
    assert_eq!(
        before(&both),
        "kyber has no tunable \"slice_idle\"; it has: read_lat_nsec, write_lat_nsec"
    );
    let many = plan(vec![SchedulerKind::MqDeadline], "fifo_batch", -1);
    assert!(before(&many).starts_with("fifo_batch = -1: 0 to "), "{}", before(&many));
    let own = decide_under(dir.path(), &plan(vec![], "slice_idle", 0));
    let [Err(error)] = own.as_slice() else { panic!("{own:?}") };
    assert!(error.contains("a.scenario.json: mq-deadline has no tunable"), "{error}");
}

/// Post 1: `group_isolation` is of the kernel that a scenario names.
#[test]
fn tunable_of_a_kernel_is_set_where_the_scenario_names_that_kernel() {
    let dir = tempfile::tempdir().expect("a folder");
    let cfq = with(with(scenario(), "/scheduler", json!("cfq")), "/tunables", json!({}));
    put(dir.path(), "new", &cfq);
    put(dir.path(), "old", &with(cfq, "/kernel", json!("2.6.36")));
    let scenarios = vec![dir.path().to_owned()];
    let tunables = vec![("group_isolation".to_owned(), 1)];
    let plan = Plan { scenarios, tunables, ..Plan::default() };
    let named = Plan { schedulers: vec![SchedulerKind::Cfq], ..plan.clone() };
    assert!(matches!(decide_under(dir.path(), &named)[..], [Err(_), Ok(_)]));
    let decided = decide_under(dir.path(), &plan);
    let [Err(new), Ok(_)] = decided.as_slice() else { panic!("{decided:?}") };
    assert!(new.contains("kernel 4.20 decides as with 1; these have it: 2.6.35-seed"), "{new}");
}

#[test]
fn logs_of_one_name_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    for folder in ["x", "y"] {
        fs::create_dir(dir.path().join(folder)).expect("a folder");
        put(&dir.path().join(folder), "a", &scenario());
    }
    let scenarios = ["x", "y/a.scenario.json"].map(|path| dir.path().join(path)).to_vec();
    let refused = |scenarios| {
        let plan = Plan { scenarios, ..Plan::default() };
        decide_all(&plan, dir.path()).err().expect("it is refused").to_string()
    };
    let error = refused(scenarios);
    assert!(error.ends_with("y/a.scenario.json would have the same log"), "{error}");
    let notes = vec![dir.path().join("notes.txt")];
    fs::write(&notes[0], "no scenario").expect("a file");
    let error = refused(notes);
    assert!(error.ends_with("NAME.scenario.json is allowed, or a folder of such files"), "{error}");
}

/// Two readers with one read each on a device that takes 100 µs for one. They alternate: the
/// first's end at 100, 300, … 1900 µs, the second's at 200, 400, … 2000. So the first has 10 in
/// 1.9 ms, 20.6 MiB a second of 40.1, each in 200 µs but its first, which took 100. In these 1.9 ms
/// both had a read outstanding, and the second's first 9 ended: 10 and 9 of 19.
#[test]
fn table_tells_of_each_task_from_its_start_to_its_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let reader = |id: u32, group: &str, start: u32| {
        let reads: Vec<_> = (0..10).map(|i| json!([0, "R", start + 16 * i, 8])).collect();
        let task = with(crate::common::task(id, &json!(reads)), "/group", json!(group));
        with(task, "/depth", json!(1))
    };
    let two = with(scenario(), "/tasks", json!([reader(1, "/a", 0), reader(2, "/b", 10_000)]));
    let two = with(two, "/scheduler", json!("none"));
    let two = with(two, "/groups", json!([{"path": "/a"}, {"path": "/b"}]));
    let device = json!({
        "rotational": false, "queue_depth": 1, "channels": 1, "base_ns": 96_000,
        "per_sector_ns": 500, "seek_base_ns": 0, "seek_ns_per_mi_sector": 0,
    });
    put(dir.path(), "a", &with(two, "/device", device));
    let plan = Plan { scenarios: vec![dir.path().to_owned()], ..Plan::default() };
    let out = dir.path().join("out");
    let decided = decide_all(&plan, &out).expect("a plan").next().expect("one run");
    let table = decided.outcome.expect("it runs").table;
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows[0], row("TASK GROUP OP I/OS IOPS MiB/S SHARE OF ALL MEAN P50 P99 MAX"));
    assert_eq!(rows[1], row("1 /a read 10 5263 20.6 52.6 % 51.3 % 190 us 200 us 200 us 200 us"));
    assert_eq!(rows[2], row("2 /b read 10 5000 19.5 47.4 % 48.7 % 200 us 200 us 200 us 200 us"));
    assert_eq!(rows[3][..4], ["/a", "all", "10", "5263"]);
    let note = "SHARE is of the 1.90 ms in which all tasks had something to do; OF ALL is of the \
                whole time";
    assert_eq!(table.lines().last(), Some(note));
}
