//! The page of a run: its data are what was measured, and what happened in the window.

use paternoster::SchedulerKind;
use paternoster_lab::fio::{Jobs, Surroundings};
use paternoster_lab::report::{JobFile, ModelFile, Run, Watch, Window, observe_jobs};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{PageCacheParameters, Sinks, run_jobs};
use paternoster_model::{Model, open_device};
use serde_json::Value;

/// One command at a time, of 80 µs each.
const ONE_SERVER: &str = "\
kind = \"servers\"
name = \"one\"
about = \"a server\"
valid = \"always\"
servers = 1
depth = 4
sectors = 2147483648
service_us = 80
ns_per_kib = 0
";

/// A read of 80 µs, then 920 µs of thinking: one begins at each full millisecond.
const EACH_MILLISECOND: &str = "\
[ticker]
ioengine=psync
direct=1
rw=read
bs=4k
size=1m
number_ios=100
thinktime=920us
";

const TWO_GROUPS: &str = "\
[global]
ioengine=libaio
direct=1
rw=randread
bs=4k
size=64m
io_size=2m
iodepth=4
[light]
; lab: group=/light weight=100
[heavy]
; lab: group=/heavy weight=300
";

struct Made {
    page: String,
    data: Value,
    /// Bytes that each job read, watched and not.
    bytes: [Vec<u64>; 2],
}

/// Runs the jobs over the one server, watched and not.
fn made(job: &str, scheduler: SchedulerKind, window_us: [u64; 2]) -> Made {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("one.toml");
    std::fs::write(&path, ONE_SERVER).expect("a file in a folder of ours");
    let path = path.to_str().expect("a path in UTF-8");
    let device = || open_device(path, 1).expect("a device");
    let surroundings = Surroundings {
        file: &|path| std::fs::read(path),
        ..Surroundings::without_files(device().end().0 * 512, 1)
    };
    let jobs = Jobs::parse("job.fio", job.as_bytes(), &surroundings).expect("a job file");
    let setup = Setup::new(scheduler);
    let [from, to] = window_us.map(paternoster::Nanos::from_micros);
    let watch = Watch { window: Some(Window { from, to }), lines: None };
    let page_cache = PageCacheParameters::default();
    let (outcome, observed) =
        observe_jobs(Sinks::default(), &jobs, &setup, page_cache, device(), watch, |_| {})
            .expect("a run");
    let unwatched = run_jobs(&jobs, &setup, page_cache, device(), |_| {}).expect("a run");
    let bytes = [&outcome, &unwatched]
        .map(|outcome| outcome.results.iter().map(|job| job.directions[0].bytes).collect());
    let run = Run {
        command: "paternoster-lab sim".to_owned(),
        job: JobFile { path: "job.fio".to_owned(), text: job.to_owned() },
        device: vec![ModelFile { name: "one.toml".to_owned(), text: Some(ONE_SERVER.to_owned()) }],
        host: ModelFile { name: "free".to_owned(), text: None },
        settings: vec![],
        seed: 1,
        jobs: &jobs,
        setup: &setup,
        outcome: &outcome,
        observed: &observed,
    };
    let page = run.page();
    let (_, rest) = page.split_once("id=\"data\">").expect("the data are there");
    let (json, _) = rest.split_once("</script>").expect("their element ends");
    let data = serde_json::from_str(json).expect("they are JSON");
    Made { page, data, bytes }
}

/// The events of that kind: the time of each in µs since the beginning of the window.
fn times(data: &Value, role: &str) -> Vec<u64> {
    let events = data["window"]["events"].as_array().expect("events").iter();
    let of_role = events.filter(|event| event[1] == role);
    of_role.map(|event| event[0].as_u64().expect("a time") / 1000).collect()
}

#[test]
fn window_has_what_happened_in_it_and_nothing_else() {
    let Made { data, .. } = made(EACH_MILLISECOND, SchedulerKind::None, [10_500, 20_040]);
    let each = |first: u64, last: u64| (first..=last).step_by(1000).collect::<Vec<_>>();
    assert_eq!(times(&data, "Q"), each(500, 9500), "those of 11 to 20 ms");
    assert_eq!(times(&data, "D"), each(500, 9500));
    assert_eq!(times(&data, "C"), each(580, 8580), "that of 20 ms completes behind the window");
    let start = &data["window"]["start"];
    assert_eq!((&start["waiting"][0], &start["in_device"][0]), (&0.into(), &0.into()));
    let inside = made(EACH_MILLISECOND, SchedulerKind::None, [10_040, 10_060]).data;
    assert_eq!(inside["window"]["start"]["in_device"][0], 1, "that of 10 ms is under way");
}

/// 100 reads of 80 µs, and a pause of 920 µs behind each.
#[test]
fn device_was_busy_for_as_long_as_its_commands_took() {
    let Made { data, .. } = made(EACH_MILLISECOND, SchedulerKind::None, [0, 1]);
    let time = &data["device_time"];
    assert_eq!(time["busy_ns"], 100.0 * 80e3);
    assert_eq!(time["without_work_ns"], 100.0 * 920e3);
    assert_eq!(time["withheld_ns"], 0.0);
}

#[test]
fn series_add_up_to_what_was_measured_and_watching_changes_nothing() {
    let Made { data, page, bytes: [watched, unwatched] } =
        made(TWO_GROUPS, SchedulerKind::Cfq, [0, 100_000]);
    assert_eq!(watched, [2 << 20, 2 << 20]);
    assert_eq!(watched, unwatched);
    for level in data["levels"].as_array().expect("levels") {
        for (line, bytes) in level["lines"].as_array().expect("lines").iter().zip(&watched) {
            let windows = line["series"]["bytes"].as_array().expect("windows").iter();
            let sum: u64 = windows.map(|window| window.as_u64().expect("a number")).sum();
            assert_eq!(sum, *bytes, "{} {}", level["name"], line["name"]);
        }
    }
    let parts = [&data["levels"][0]["lines"][0], &data["levels"][0]["lines"][1]];
    let part = |key: &str| parts.map(|line| line[key].as_f64().expect("a part"));
    for (part, entitled) in part("entitled").iter().zip([0.25, 0.75]) {
        assert!((part - entitled).abs() < 1e-9, "{part}, not {entitled}");
    }
    for shares in ["device_share", "share", "share_of_all"] {
        assert!((part(shares).iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares}");
    }
    assert!(data["together_ns"].as_u64() > Some(0));
    assert_eq!(page, made(TWO_GROUPS, SchedulerKind::Cfq, [0, 100_000]).page);
}

/// A new loop has what is dirty written, which the flusher does.
#[test]
fn flusher_has_a_lane_of_its_own() {
    let job = "[writer]\nioengine=psync\nrw=write\nbs=4k\nsize=64k\nloops=20\n";
    let Made { data, .. } = made(job, SchedulerKind::Bfq, [0, 300]);
    assert_eq!(data["window"]["lanes"], serde_json::json!(["writer", "flusher"]));
    let events = data["window"]["events"].as_array().expect("events").iter();
    let asked: Vec<_> = events.filter(|event| event[1] == "Q").map(|event| &event[2]).collect();
    assert!(!asked.is_empty() && asked.iter().all(|lane| **lane == 1), "{asked:?}");
}
