//! `paternoster-lab compare`, run as a program.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

/// Two groups of which both always have something to do.
const JOBS: &str = "\
[global]
ioengine=libaio
direct=1
rw=randread
bs=4k
size=1g
runtime=100ms
time_based
[light]
iodepth=16
; lab: group=/light weight=100
[heavy]
iodepth=16
; lab: group=/heavy weight=400
";

fn compare(job: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("job.fio");
    fs::write(&path, job).expect("a job");
    Command::new(env!("CARGO_BIN_EXE_paternoster-lab"))
        .arg("compare")
        .arg(path)
        .args(["--device", "servers-16x80us"])
        .args(more)
        .output()
        .expect("it runs")
}

fn json(more: &[&str]) -> Value {
    let output = compare(JOBS, &[more, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn row<'a>(found: &'a Value, of: &str, measure: &str) -> &'a Value {
    let rows = found["rows"].as_array().expect("an array");
    let row = rows.iter().find(|row| row["of"] == of && row["measure"] == measure);
    row.unwrap_or_else(|| panic!("{of} has {measure}: {found}"))
}

/// 16 is what `fifo_batch` is anyway.
#[test]
fn what_is_the_same_is_not_told_apart() {
    let same = ["--scheduler", "mq-deadline", "--scheduler", "mq-deadline:fifo_batch=16"];
    let found = json(&same);
    assert_eq!((&found["pairs"], &found["planned"]), (&10.into(), &10.into()));
    for row in found["rows"].as_array().expect("an array") {
        assert_eq!(row["told_apart"], false, "{row}");
        // In 100 ms there are about 10,000 I/Os of each: too few for some 99.9th percentile.
        if row["measure"] != "p999" {
            assert_eq!(row["difference"]["mean"], 0.0, "{row}");
        }
    }
    let text = String::from_utf8(compare(JOBS, &same).stdout).expect("text");
    assert!(text.contains("\n10 runs under each; 0 of 10 figures are told apart"), "{text}");
}

/// With `none` each has half of the 16 servers, though weights entitle to 1/5 and 4/5: both are 0.3
/// off. `wfq` holds them with 8 requests in the device: the heavy one has 4/5 of 8 servers, of 8
/// that it had.
#[test]
fn weights_that_hold_are_told_apart_from_none() {
    let found = json(&["--scheduler", "none", "--scheduler", "wfq:depth=8"]);
    let share = row(&found, "/light", "share_error");
    let [low, high] = ["low", "high"].map(|it| share["difference"][it].as_f64().expect("one"));
    assert!(share["told_apart"] == true && low > -0.31 && high < -0.27, "{share}");
    let bytes = row(&found, "/heavy", "throughput");
    let mean = bytes["difference"]["mean"].as_f64().expect("one");
    assert!(bytes["told_apart"] == true && (mean + 0.2).abs() < 0.02, "{bytes}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_is_allowed() {
    let both = ["--scheduler", "none", "--scheduler", "cfq"];
    for (job, more, why) in [
        (JOBS, &["--scheduler", "cfq"][..], "--scheduler cfq alone: two or more are allowed"),
        (JOBS, &["--scheduler", "cfq", "--scheduler", "cfq"], "--scheduler cfq is there twice"),
        (JOBS, &[&both[..], &["--pairs", "1"]].concat(), "2..=10000"),
        (JOBS, &[&both[..], &["--set", "slice_idle=8"]].concat(), "slice_idle"),
        (&format!("{JOBS}write_bw_log=a\n"), &both, "each run would empty"),
        (&JOBS.replace("1g", "9999p"), &both, "does not fit"),
    ] {
        let output = compare(job, more);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(why), "{error}");
        assert_eq!(output.stdout, b"", "nothing is printed");
    }
}
