//! `--log`: every decision of a run, line by line. Post 1's third patch has such a trace: "it helps
//! me a lot during debugging".

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{report_of, sim};

/// Two groups, of which one reads neighbours that merge in its plug.
const JOB: &str = "\
[global]
size=64m
runtime=500ms
[direct]
; lab: group=/direct weight=100
ioengine=io_uring
direct=1
rw=read
bs=4k
iodepth=8
iodepth_batch=8
iodepth_batch_complete_min=8
[buffered]
; lab: group=/buffered weight=300
rw=randread
bs=16k
";

fn lines(folder: &Path, options: &[&str]) -> (Value, Vec<Value>) {
    let log = folder.join("log.jsonl");
    let path = log.to_str().expect("a plain name");
    let output = sim(folder, JOB, &[options, &["--json", "--log", path]].concat());
    let report = report_of(&output);
    let text = std::fs::read_to_string(&log).expect("it was written");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    (report, lines.collect())
}

fn of<'a>(lines: &'a [Value], kind: &str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["ev"] == kind)
}

/// What arrives completes, be it dispatched itself or merged into another, and what a job did is
/// what the report says that it did.
#[test]
fn log_has_every_request_from_its_arrival_to_its_completion() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = ["--device", "servers-16x80us", "--scheduler", "mq-deadline"];
    let (report, lines) = lines(folder.path(), &device);
    let mut stages: BTreeMap<&str, String> = BTreeMap::new();
    for line in &lines {
        if let (Some(rq), Some(kind)) = (line["rq"].as_str(), line["ev"].as_str()) {
            stages.entry(rq).or_default().push_str(kind);
        }
    }
    let [merged, dispatched] = ["QMC", "QDC"].map(|whole| {
        stages.iter().filter(|(_, stages)| *stages == whole).map(|(rq, _)| *rq).collect::<Vec<_>>()
    });
    assert_eq!(merged.len() + dispatched.len(), stages.len(), "{stages:?}");
    assert!(merged.iter().all(|rq| rq.starts_with("direct.")) && !merged.is_empty());
    let direct = stages.keys().filter(|rq| rq.starts_with("direct.")).count();
    assert_eq!(report["jobs"][0]["read"]["total_ios"], direct);
    let times: Vec<_> = lines.iter().map(|line| line["t"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted());
}

/// The patch's own fields, in ticks as its kernel has them, and the waits for a group.
#[test]
fn post_1_slices_and_waits_are_traced_as_its_third_patch_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let cfq = ["--device", "raid5-12-sata", "--scheduler", "cfq", "--kernel", "2.6.35-seed"];
    let set = ["--set", "group_isolation=1", "--set", "slice_idle=0"];
    let (_, lines) = lines(folder.path(), &[&cfq[..], &set].concat());
    let used: Vec<_> = of(&lines, "slice_used").collect();
    assert!(used.len() >= 5, "{used:?}");
    for field in ["sl_used", "disp", "charge", "iops", "sect"] {
        assert!(used.iter().all(|line| line[field].is_u64()), "no {field}: {used:?}");
    }
    let mut waits = of(&lines, "arm_idle").filter(|line| line["group"] == 1);
    assert!(waits.any(|line| line["q"] == "bufferedS" && line["ns"] == 8_000_000));
}

#[test]
fn log_takes_the_place_of_no_file_that_the_run_uses() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("job.fio");
    let job = job.to_str().expect("a plain name");
    let output = sim(folder.path(), JOB, &["--device", "hdd-7200", "--log", job]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && said.contains("--log "), "{said}");
    assert_eq!(std::fs::read_to_string(job).expect("it is there"), JOB);
}
