//! Jobs of the posts that patches came with, as a user of today runs them, against the posts' own
//! figures. Posts are numbered by their age: 1 is `group_idle` (2010), 3 `use_hierarchy` (2010).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{report_of, sim};

/// The figures of all rows of a post's tables.
const GROUP_IDLE: &str = include_str!("../../../paternoster-lab/posts/group-idle.csv");
const HIERARCHY: &str = include_str!("../../../paternoster-lab/posts/hierarchy.csv");

/// The parts of the groups in percent.
fn parts(amounts: &[f64]) -> Vec<f64> {
    let all: f64 = amounts.iter().sum();
    amounts.iter().map(|amount| 100.0 * amount / all).collect()
}

/// What the first row of that kind of a post says of its groups, of their order.
fn posted(post: &str, row: &str) -> Vec<f64> {
    let cells = post.lines().filter_map(|line| line.split_once(row)?.1.rsplit(',').next());
    parts(&cells.map(|cell| cell.parse().expect("kB/s")).collect::<Vec<_>>())
}

/// What each group did of a run; the root, which has no jobs, left out.
fn simulated(report: &Value) -> Vec<f64> {
    let groups = report["paternoster"]["groups"].as_array().expect("groups").iter();
    let bytes: Vec<_> = groups.filter_map(|group| group["io_bytes"].as_f64()).collect();
    parts(&bytes)
}

/// The job of so many groups of weights 100, 200 and so on, each of that many readers.
fn job(groups: u32, readers: u32, options: &str) -> String {
    let mut text = format!(
        "[global]\nsize=512m\nnumjobs={readers}\nruntime=11\nramp_time=1\ngroup_reporting\n\
         {options}"
    );
    for group in 1..=groups {
        let weight = 100 * group;
        let _ = write!(text, "[test{group}]\n; lab: group=/test{group} weight={weight}\n");
    }
    text
}

fn assert_within(points: f64, found: &[f64], posted: &[f64]) {
    let far = found.iter().zip(posted).any(|(found, posted)| (found - posted).abs() > points);
    assert!(found.len() == posted.len() && !far, "{found:.1?}, posted: {posted:.1?}");
}

/// Post 1, table 2, eight readers a group: without an idle window for a queue, groups keep their
/// weights by `group_idle`. With `group_isolation=0`, which that kernel has unless told, readers
/// compete in the root, and a note says so.
#[test]
fn post_1_groups_keep_their_weights_by_group_idle() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |isolation: &[&str]| {
        let array = ["--device", "raid5-12-sata", "--nr-requests", "128", "--json"];
        let cfq = ["--scheduler", "cfq", "--kernel", "2.6.35-seed", "--set", "slice_idle=0"];
        let job = job(8, 8, "rw=read\nbs=4k\n");
        sim(folder.path(), &job, &[&array[..], &cfq, isolation].concat())
    };
    let isolated = run(&["--set", "group_isolation=1"]);
    let posted = posted(GROUP_IDLE, "2,bsr,4,0,8,yes,");
    assert_within(3.0, &simulated(&report_of(&isolated)), &posted);
    assert!(isolated.stderr.is_empty(), "{}", String::from_utf8_lossy(&isolated.stderr));

    let note = String::from_utf8(run(&[]).stderr).expect("text");
    assert!(note.contains("cfq of 2.6.35-seed has group_isolation=0: "), "{note}");
}

/// Post 3, table 6, one random reader a group.
#[test]
fn post_3_random_readers_have_their_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = ["--device", "sata-7200-2010", "--nr-requests", "128", "--json"];
    let cfq = ["--scheduler", "cfq", "--kernel", "2.6.37", "--set", "group_isolation=1"];
    let job = job(4, 1, "rw=randread\nbs=32k\ndirect=1\n");
    let report = report_of(&sim(folder.path(), &job, &[&disk[..], &cfq].concat()));
    assert_within(3.0, &simulated(&report), &posted(HIERARCHY, "6,drr,32,8,1,yes,"));
}

/// Post 1: its jobs are reported together, as `group_reporting` has them, and its table has a line
/// for each group all the same.
#[test]
fn post_1_groups_have_rows_where_jobs_are_reported_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = job(2, 2, "rw=randread\nbs=4k\ndirect=1\nruntime=100ms\nramp_time=0\n");
    let output = sim(folder.path(), &job, &["--device", "servers-16x80us"]);
    let table = String::from_utf8(output.stdout).expect("text");
    let words: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[1][..6], ["test1", "x", "4", "2", "groups", "read"], "{table}");
    let [one, other] = [2, 3].map(|row| words[row].as_slice());
    assert_eq!([one[..2].join(" "), other[..2].join(" ")], ["/test1 all", "/test2 all"], "{table}");
    let ios = |text: &str| text.parse::<u64>().expect("I/Os");
    assert_eq!(ios(one[2]) + ios(other[2]), ios(words[1][6]), "{table}");
}

/// Linux 4.20 has no `group_isolation`; who sets it hears which kernels do.
#[test]
fn post_1_kernel_without_group_isolation_names_those_that_have_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let cfq = ["--device", "hdd-7200", "--scheduler", "cfq", "--set", "group_isolation=1"];
    let output = sim(folder.path(), &job(2, 1, "rw=read\n"), &cfq);
    let said = String::from_utf8(output.stderr).expect("text");
    let wanted = "kernel 4.20 decides as with 1; these have it: 2.6.35-seed, 2.6.36, 2.6.37";
    assert!(!output.status.success() && said.contains(wanted), "{said}");
}

/// Post 5: its loads, as files that users run. Every option of them counts, and readers and writers
/// are as many as their names say.
#[test]
fn post_5_loads_have_the_readers_and_writers_of_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let jobs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../paternoster-lab/jobs"));
    let loads = [("1r-seq", 1, 0), ("10r-seq", 10, 0), ("10r-rand", 10, 0)];
    for (name, readers, writers) in
        [&loads[..], &[("5r5w-seq", 5, 5), ("5r5w-rand", 5, 5)]].concat()
    {
        let file = jobs.join(format!("throughput-sync/{name}.fio"));
        let job = fs::read_to_string(&file).expect(name);
        let short = job.replace("runtime=30\nramp_time=2\n", "runtime=1\n");
        assert_ne!(short, job, "{name} runs for half a minute");
        let options = ["--device", "ssd-plextor-m5s", "--scheduler", "bfq", "--json"];
        let output = sim(folder.path(), &short.replace("group_reporting\n", ""), &options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("job.fio"), "{name}: {said}");
        let report = report_of(&output);
        let of = |way: &str| {
            let jobs = report["jobs"].as_array().expect("jobs").iter();
            jobs.filter(|job| job[way]["total_ios"].as_u64() > Some(0)).count()
        };
        assert_eq!((of("read"), of("write")), (readers, writers), "{name}");
    }
}
