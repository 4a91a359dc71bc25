//! The same jobs under several schedulers, side by side.

use std::process::Output;

use serde_json::Value;

use crate::{TENANTS, sim};

const DEVICE: [&str; 2] = ["--device", "servers-16x80us"];
const BOTH: [&str; 4] = ["--scheduler", "none", "--scheduler", "cfq:slice_idle=0"];

fn output(more: &[&str]) -> (tempfile::TempDir, Output) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = sim(folder.path(), TENANTS, &[&DEVICE[..], more].concat());
    (folder, output)
}

fn text(more: &[&str]) -> String {
    let (_folder, output) = output(more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Each row is that of a run of its own, with the scheduler behind the first three columns.
#[test]
fn each_job_has_a_row_a_scheduler_with_what_it_gets_alone() {
    let both = text(&BOTH);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<_> = both.lines().map(words).collect();
    for (number, scheduler) in [(0, "none"), (1, "cfq:slice_idle=0")] {
        let alone = text(&["--scheduler", scheduler]);
        let alone: Vec<_> = alone.lines().map(words).collect();
        for job in 0..2 {
            let row = &alone[1 + job];
            let expected = [&row[..3], &[scheduler.to_owned()], &row[3..]].concat();
            assert_eq!(rows[1 + 2 * job + number], expected, "{both}");
        }
        assert!(both.contains(&format!("\n{scheduler}: device: ")), "{both}");
    }
    let reports: Value =
        serde_json::from_str(&text(&[&BOTH[..], &["--json"]].concat())).expect("an array");
    let names = reports.as_array().expect("an array").iter();
    let names: Vec<_> = names.map(|report| &report["paternoster"]["scheduler"]).collect();
    assert_eq!(names, ["none", "cfq"]);
}

#[test]
fn what_is_of_one_run_is_refused_beside_several() {
    for (more, why) in [
        (&["--html", "out.html"][..], "--html is of one run: one --scheduler is allowed beside it"),
        (&["--log", "out.log"], "--log is of one run"),
        (&["--scheduler", "none"], "--scheduler none is there twice"),
        (&["--set", "slice_idle=8"], "slice_idle"),
        (&["--", "--write_bw_log=all"], "_bw.1.log, which each run would empty: one --scheduler"),
    ] {
        let (folder, output) = output(&[&BOTH[..], more].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(why), "{error}");
        let files = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(files, 1, "the job's alone");
    }
}
