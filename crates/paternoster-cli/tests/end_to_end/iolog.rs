//! Logs of I/O that the laboratory writes, as fio reads them.

use crate::support::{laboratory, tool};

/// 32 I/Os of 64 KiB on two files in two passes each, with pauses, and syncs: fio takes every line,
/// and issues the same. (Its report leaves out the datasyncs that it replays.)
#[test]
fn fio_replays_a_log_that_a_simulated_job_wrote() {
    let work = tempfile::tempdir().expect("a folder");
    let job = "[j]\nrw=randrw\nrwmixread=50\nbs=64k\nsize=1m\nnrfiles=2\nloops=2\nfdatasync=5\n\
               direct=1\nioengine=libaio\niodepth=4\nthinktime=1ms\nthinktime_blocks=12\n\
               write_iolog=j.log\n";
    std::fs::write(work.path().join("j.fio"), job).expect("a file");
    let binary = &laboratory();
    let args = ["sim", "j.fio", "--device", "servers-16x80us"];
    let output = tool("coreutils", binary, args, work.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let log = std::fs::read_to_string(work.path().join("j.log")).expect("it was written");
    let count = |action: &str| log.lines().filter(|line| line.contains(action)).count();
    assert_eq!((count(" read ") + count(" write "), count(" open")), (32, 4));
    let args = ["--name=r", "--ioengine=null", "--read_iolog=j.log", "--output-format=json"];
    let output = tool("fio", "fio", args, work.path());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    assert!(!said.contains("bad ") && !complained.contains("bad "), "{said}{complained}");
    let start = said.find('{').expect("the report is JSON");
    let report: serde_json::Value = serde_json::from_str(&said[start..]).expect("it is JSON");
    let job = &report["jobs"][0];
    let total = |direction: &str| job[direction]["total_ios"].as_u64().expect("a number");
    assert_eq!([total("read"), total("write")], [" read ", " write "].map(|its| count(its) as u64));
}
