//! `paternoster-lab trace info`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../paternoster-intake/tests/data").join(name)
}

fn info(file: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.args(["trace", "info"]).arg(file).args(options).output().expect("it runs")
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
