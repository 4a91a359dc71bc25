//! `paternoster-lab trace info`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../paternoster-intake/tests/data").join(name)
}

fn trace(command: &str, file: &Path, options: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    program.args(["trace", command]).arg(file).args(options).output().expect("it runs")
}

fn info(file: &Path, options: &[&str]) -> Output {
    trace("info", file, options)
}

#[test]
fn object_has_what_is_known_of_the_trace() {
    let output = info(&data("nvme-readahead.blktrace.1.zst"), &["--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let counts = json!({
        "format": "blktrace", "requests": 963, "contexts": 1, "reads": 963, "writes": 0,
        "bytes": 3852 << 10, "completed": 963, "outstanding": 1,
    });
    for (name, expected) in counts.as_object().expect("an object") {
        assert_eq!(&found[name], expected, "{name}");
    }
    // Of all events it is 0.3455 s; the last request ends some 50 us before that.
    assert_eq!(found["span_ns"].as_u64().map(|ns| ns / 100_000), Some(3_454));
    assert_eq!(found["warnings"][0]["kind"], "lost-cpu");
    assert_eq!(found["first"].as_array().map(Vec::len), Some(5));
}

#[test]
fn exit_status_says_whether_the_trace_can_be_read_and_strictly_whether_it_is_sound() {
    let trace = data("emmc.tracefs.txt");
    assert_eq!(info(&trace, &[]).status.code(), Some(0));
    assert_eq!(info(&trace, &["--strict"]).status.code(), Some(1));
    assert_eq!(info(&data("example.alibaba.csv"), &["--strict"]).status.code(), Some(0));
    for (file, options, said) in [
        (data("README.md"), &[][..], "the format of the trace is not known: --format says it"),
        (data("example.spc"), &["--format", "alibaba"], "line 1: "),
        (data("nothing"), &[], "No such file or directory"),
        (trace, &["--device", "8"], "device \"8\": MAJOR,MINOR is allowed, for example 8,0"),
    ] {
        let output = info(&file, options);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(said) && text.contains(&*file.to_string_lossy()), "{text}");
    }
}

#[test]
fn converted_trace_goes_to_a_file_or_to_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("spc.blktrace.0");
    let name = out.to_str().expect("UTF-8");
    let spc = data("example.spc");
    let output = trace("convert", &spc, &["--to", "blktrace", "--out", name]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let csv = |file: &Path| trace("convert", file, &["--to", "csv"]).stdout;
    assert_eq!(csv(&out), csv(&spc));
    assert!(csv(&spc).starts_with(b"time:ns,context,rwbs,offset:bytes,size:bytes,"));
    // What cannot be done leaves what was there.
    let before = std::fs::read(&out).expect("a file");
    for (options, said) in [
        (&["--to", "csv", "--out", name, "--size", "100M"][..], "request 1 ends at byte"),
        (&["--to", "csv", "--out", name, "--unit", "ms"], "--unit is for other formats than spc"),
    ] {
        let output = trace("convert", &spc, options);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(said), "{text}");
        assert_eq!(std::fs::read(&out).expect("a file"), before);
    }
    let itself = trace("convert", &out, &["--to", "csv", "--out", name]);
    assert!(String::from_utf8_lossy(&itself.stderr).contains("that file is read"));
    let wrapped = trace("convert", &spc, &["--to", "csv", "--size", "100M", "--wrap", "--strict"]);
    assert_eq!(wrapped.status.code(), Some(1), "a warning");
    let wrap = trace("convert", &spc, &["--to", "csv", "--wrap"]);
    assert!(String::from_utf8_lossy(&wrap.stderr).contains("--wrap and --scale need --size"));
}
