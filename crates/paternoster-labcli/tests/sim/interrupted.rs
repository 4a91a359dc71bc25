//! Ctrl-C while `paternoster-lab sim` runs.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// For ten years: 16 servers of 80 µs do 200,000 reads a second.
const ENDLESS: &str = "\
[global]
ioengine=libaio
direct=1
rw=randread
bs=4k
size=1g
runtime=3650d
time_based
iodepth=16
write_iops_log=log
log_avg_msec=100000
[job]
";

/// A run that has begun: it makes its log then, and not before it takes signals.
fn begun(folder: &Path, job: &str, options: &[&str]) -> Child {
    std::fs::write(folder.join("job.fio"), job).expect("a file in a folder of ours");
    let child = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"))
        .args(["sim", "job.fio", "--device", "servers-16x80us"])
        .args(options)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let began = Instant::now();
    while !folder.join("log_iops.1.log").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it is not waited for yet");
}

#[test]
fn ctrl_c_ends_the_counted_time_and_prints_what_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = begun(folder.path(), ENDLESS, &["--html", "page.html"]);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let [told, errors] = [output.stdout, output.stderr].map(String::from_utf8);
    let [told, errors] = [told.expect("text"), errors.expect("text")];
    // As fio does.
    assert_eq!(output.status.code(), Some(128), "{errors}");
    assert!(told.contains("job") && told.contains("interrupted at"), "{told}");
    assert!(errors.contains("paternoster-lab: interrupted at"), "{errors}");
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("interrupted at"));
}

#[test]
fn json_of_an_interrupted_run_has_the_rates_of_the_time_until_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = begun(folder.path(), ENDLESS, &["--json"]);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    assert_eq!(report["paternoster"]["interrupted"], true);
    let iops = report["jobs"][0]["read"]["iops"].as_f64().expect("a number");
    assert!((iops / 200_000.0 - 1.0).abs() < 0.01, "{iops}");
}

/// What the first one has printed fills the pipe, which nobody reads; the second one ends it.
#[test]
fn second_ctrl_c_ends_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let many = ENDLESS.replace("[job]", "[job]\nnumjobs=100").replace("iodepth=16", "iodepth=1");
    let mut child = begun(folder.path(), &many, &["--json"]);
    interrupt(&child);
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0]).expect("the report has begun");
    interrupt(&child);
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(2), "{status:?}");
}
