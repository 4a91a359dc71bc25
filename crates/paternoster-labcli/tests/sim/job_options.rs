//! Job options on the command line, as fio takes them. What fio 3.33 does with the same arguments
//! was seen by running it with `--ioengine=null`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::{report_of, sim};

const DEVICE: [&str; 2] = ["--device", "servers-16x80us"];

/// `sim` without a job file.
fn options(options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.arg("sim").args(DEVICE).arg("--json").arg("--").args(options);
    command.output().expect("the binary runs")
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The name, and the reads and the writes of each job.
fn ios(report: &Value) -> Vec<(&str, u64, u64)> {
    let jobs = report["jobs"].as_array().expect("jobs").iter();
    let number = |value: &Value| value["total_ios"].as_u64().expect("a number");
    jobs.map(|job| {
        let name = job["jobname"].as_str().expect("a name");
        (name, number(&job["read"]), number(&job["write"]))
    })
    .collect()
}

/// As fio has it: 256 reads of 4 KiB, 128 writes of 8 KiB, 16 reads of 64 KiB.
#[test]
fn options_before_the_first_name_hold_for_all_jobs_and_each_name_begins_one() {
    let output = options(&[
        "--ioengine=libaio",
        "--direct=1",
        "--size=1m",
        "--name=a",
        "--rw=randread",
        "--norandommap",
        "--name",
        "b",
        "--rw",
        "write",
        "--bs",
        "8k",
        "-name=c",
        "-bs=64k",
        "-thread",
    ]);
    assert_eq!(ios(&report_of(&output)), [("a", 256, 0), ("b", 0, 128), ("c", 16, 0)]);
    let report = report_of(&output);
    assert_eq!(report["global options"]["size"], "1m");
    assert_eq!(report["jobs"][1]["job options"]["rw"], "write");
    let global = options(&["--name=global", "--size=64k", "--name=a", "--name=b", "--numjobs=2"]);
    assert_eq!(ios(&report_of(&global)), [("a", 16, 0), ("b", 16, 0), ("b", 16, 0)]);
}

#[test]
fn table_is_that_of_the_same_jobs_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = "[global]\nioengine=libaio\ndirect=1\nsize=1g\nruntime=100ms\ntime_based\n\
                [a]\nrw=randread\nbs=4k\niodepth=24\n[b]\nrw=randrw\nbssplit=4k/50:8k/50\n";
    let from_file = sim(folder.path(), file, &DEVICE);
    let arguments = "--ioengine=libaio --direct=1 --size=1g --runtime=100ms --time_based --name=a \
                     --rw=randread --bs=4k --iodepth=24 --name=b --rw=randrw \
                     --bssplit=4k/50:8k/50";
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.arg("sim").args(DEVICE).arg("--").args(arguments.split_whitespace());
    let from_arguments = command.output().expect("the binary runs");
    assert!(from_arguments.status.success(), "{}", told(&from_arguments));
    assert_eq!(from_arguments.stdout, from_file.stdout);
}

/// As fio has it: the job of the file writes, as its own section does not say otherwise, and the
/// jobs of the command line come first.
#[test]
fn options_beside_a_file_hold_for_its_jobs_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let beside = |options: &[&str]| {
        let ours = [&DEVICE[..], &["--json", "--"], options].concat();
        report_of(&sim(folder.path(), "[j]\nsize=64k\ndirect=1\n", &ours))
    };
    assert_eq!(ios(&beside(&["--rw=write"])), [("j", 0, 16)]);
    let named = beside(&["--name=c", "--rw=write", "--size=8k", "--direct=1"]);
    assert_eq!(ios(&named), [("c", 0, 2), ("j", 16, 0)]);
}

/// The message behind the place is the one that a job file gets.
#[test]
fn mistake_is_that_of_a_file_and_names_the_argument() {
    let folder = tempfile::tempdir().expect("a folder");
    for option in ["rw=sideways", "bogus=1", "bs=4q", "verify=md5", "iodepth=0"] {
        let file = sim(folder.path(), &format!("[a]\nsize=1m\n{option}\n"), &DEVICE);
        let of_file = told(&file);
        let at = of_file.find("job.fio:3:").expect("the place in the file");
        let place = &of_file[at + "job.fio:3:".len()..];
        let (column, message) = place.split_once(": ").expect("a message");
        // Behind the two dashes.
        let column = column.parse::<u32>().expect("a column") + 2;
        let output = options(&["--name=a", "--size=1m", &format!("--{option}")]);
        let wanted = format!("paternoster-lab: argument 3, --{option}, column {column}: {message}");
        assert_eq!(told(&output), wanted);
        assert!(output.status.code() == Some(1) && output.stdout.is_empty());
    }
}

#[test]
fn argument_that_is_none_of_a_job_is_refused_with_what_is_allowed() {
    let refused = |arguments: &[&str]| {
        let output = options(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}");
        told(&output)
    };
    let bare = refused(&["--name=a", "--size=1m", "rw=write"]);
    let wanted = "argument 3, rw=write, column 1: job options begin with \"--\", such as --rw=read";
    assert!(bare.contains(wanted), "{bare}");
    // fio takes the next argument for the value, and refuses that.
    let no_value = refused(&["--name=a", "--size=1m", "--direct", "--time_based"]);
    let wanted = "argument 3, --direct, column 1: --direct has a value on a command line";
    assert!(no_value.contains(wanted), "{no_value}");
    let no_name = refused(&["--size=1m", "--name"]);
    assert!(no_name.contains("--name has a value on a command line, such as"), "{no_name}");
    let no_job = refused(&["--size=1m", "--rw=read"]);
    assert!(no_job.contains("argument 2, --rw=read, column 1: job options need a --name"));
    let client = refused(&["--name=a", "--size=1m", "--client=host"]);
    assert!(client.contains("--client is an option of the program fio"), "{client}");
    let two = refused(&["--name=a", "--size=1x", "--rw=sideways"]);
    assert_eq!(two.lines().count(), 2, "all mistakes are told at once: {two}");
}

/// Options of the program fio that public command lines have, each with a note.
#[test]
fn options_of_the_program_fio_change_nothing_and_are_noted() {
    let output = options(&[
        "--name=a",
        "--size=64k",
        "--output-format=json",
        "--output",
        "x.json",
        "--eta=never",
        "--readonly",
        "--minimal",
    ]);
    assert_eq!(ios(&report_of(&output)), [("a", 16, 0)]);
    let notes = told(&output);
    assert_eq!(notes.lines().count(), 5, "{notes}");
    let first = "paternoster-lab: argument 3, --output-format=json, column 1: --output-format \
                 changes nothing: ";
    assert!(notes.starts_with(first), "{notes}");
    assert!(!Path::new("x.json").exists());
}

#[test]
fn command_line_without_jobs_or_without_the_dashes_is_refused() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
        let output = command.arg("sim").args(DEVICE).args(arguments).output();
        let output = output.expect("the binary runs");
        assert_eq!(output.status.code(), Some(2));
        told(&output)
    };
    let none = run(&[]);
    assert!(none.contains("JOB"), "{none}");
    let without = run(&["--name=a", "--rw=read"]);
    assert!(without.contains("-- --name"), "{without}");
}
