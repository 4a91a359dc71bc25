//! `paternoster-lab replay`.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../paternoster-intake/tests/data").join(name)
}

fn replay(file: &Path, options: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    program.args(["replay"]).arg(file).args(options).output().expect("it runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A device with so many sectors, which takes one command at a time, for 54.3 us.
fn one_server(sectors: u64) -> String {
    format!(
        "kind = \"servers\"\nname = \"one\"\nabout = \"one server\"\nvalid = \"A test.\"\n\
         servers = 1\ndepth = 1\nsectors = {sectors}\nservice_us = 54.3\nns_per_kib = 0\n"
    )
}

#[test]
fn prediction_has_what_was_recorded_its_own_replay_and_others_with_their_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = folder.path().join("twice.toml");
    std::fs::write(&device, one_server(1 << 32)).expect("a file");
    let groups = folder.path().join("groups");
    std::fs::write(&groups, "2127* /reader 300\nnobody /x\n").expect("a file");
    let [device, groups] = [&device, &groups].map(|path| path.to_str().expect("UTF-8"));
    let trace = data("nvme-readahead.blktrace.1.zst");
    let options = ["--device", device, "--groups", groups, "--scheduler", "wfq", "--json"];
    let output = replay(&trace, &options);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("no context is called nobody"), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["contexts"][0]["nature"], "closed");
    assert_eq!(found["recorded"][0]["group"], "/reader");
    assert_eq!(found["fits"], true, "54.3 us is the median of the trace");
    let iops = |of: &Value| of["groups"][0]["iops"].as_f64().expect("a number");
    let (own, wfq) = (iops(&found["self"]), iops(&found["predicted"][0]));
    assert!((own / wfq - 1.0).abs() < 0.01, "one at a time, whoever decides: {own} {wfq}");
    let plus_minus = &found["predicted"][0]["plus_minus"][0]["throughput"];
    let error = found["self"]["errors"][0]["throughput"].as_f64().expect("a number").abs();
    assert!(plus_minus.as_f64().expect("a number") >= error);
    let table = replay(&trace, &["--device", device, "--scheduler", "wfq"]);
    let table = String::from_utf8(table.stdout).expect("UTF-8");
    assert!(table.contains("recorded") && table.contains("none (self)"), "{table}");
    assert!(table.contains("1 contexts wait for replies, 0 have a timer"), "{table}");
}

#[test]
fn trace_without_completions_is_inferred_twice() {
    let options = ["--device", "nvme-980pro", "--scheduler", "bfq", "--as", "both"];
    let output = replay(&data("example.spc"), &options);
    let table = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(table.contains("inferred twice: the trace has no completions"), "{table}");
    assert!(table.contains("bfq, open"), "{table}");
    assert!(table.contains("as is said; of themselves, 3 contexts wait"), "{table}");
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let spc = data("example.spc");
    let device = ["--device", "nvme-980pro", "--scheduler", "none"];
    for (options, said_of_it, status) in [
        (&["--dependency", "none", "--as", "closed"][..], "--as open is allowed", 1),
        (&["--groups", "/nowhere"], "/nowhere: No such file", 1),
        (&["--dependency", "export"], "--groups gives them some", 1),
        (&["--as", "neither"], "invalid value 'neither'", 2),
        (&["--traced-device", "8,0"], "--device is for other formats than spc", 1),
    ] {
        let output = replay(&spc, &[&device[..], options].concat());
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert!(said(&output).contains(said_of_it), "{}", said(&output));
    }
    // It reaches behind a smaller device.
    let folder = tempfile::tempdir().expect("a folder");
    let small = folder.path().join("small.toml");
    std::fs::write(&small, one_server(1 << 20)).expect("a file");
    let small = ["--device", small.to_str().expect("UTF-8"), "--scheduler", "none"];
    let output = replay(&spc, &small);
    assert!(said(&output).contains("--wrap and --scale move requests"), "{}", said(&output));
    let output = replay(&spc, &[&small[..], &["--wrap"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}
