//! `paternoster serve`: exit status and streams.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

fn serve(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster"));
    command.current_dir(dir).env("PATERNOSTER_CTL", "ctl.sock");
    command.arg("serve").args(args).output().expect("the binary runs")
}

fn dir_with_disk() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    File::create(dir.path().join("d.img")).and_then(|disk| disk.set_len(4096)).expect("a disk");
    dir
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

#[test]
fn check_accepts_a_valid_configuration_and_opens_nothing() {
    let dir = dir_with_disk();
    let toml = "[disks.d]\npath = \"d.img\"\n[exports.e]\ndisk = \"d\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let options = ["--check", "--disk", "d.img", "--export", "e,weight=300", "--scheduler", "cfq"];
    let options = [&options[..], &["--set", "quantum=4"]].concat();
    for args in [&["--check", "c.toml"][..], &options] {
        let output = serve(dir.path(), args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(output.stdout, b"");
        assert_eq!(stderr(&output), "paternoster: the configuration is valid\n");
    }
    assert!(!dir.path().join("paternoster.sock").exists());
}

#[test]
fn check_says_that_weights_have_no_effect() {
    let dir = dir_with_disk();
    let args = ["--check", "--disk", "d.img", "--export", "e,weight=3", "--scheduler", "none"];
    let output = serve(dir.path(), &args);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("weights have no effect under none"), "{output:?}");
}

#[test]
fn bad_values_are_exit_status_1_with_their_place() {
    let dir = dir_with_disk();
    fs::write(dir.path().join("c.toml"), "\nport = 1\n").expect("a file");
    for (args, words) in [
        (&["c.toml"][..], "paternoster: c.toml:2: unknown key `port`"),
        (&["--check", "none.toml"], "paternoster: cannot read none.toml: No such file"),
        (&["--disk", "none.img", "--export", "e"], "paternoster: --disk: disk file \"none.img\""),
        (
            &["--disk", "d.img", "--export", "e", "--depth", "-1"],
            "paternoster: --depth: depth = -1: 1 to 1024 requests, or \"learned\" under wfq, is ",
        ),
    ] {
        let output = serve(dir.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert_eq!(output.stdout, b"");
        assert!(stderr(&output).starts_with(words), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn every_mistake_is_a_line() {
    let dir = dir_with_disk();
    let toml = "tcp = 1\n[disks.d]\npath = \"d.img\"\ndepth = 0\n[exports.e]\ndisk = \"x\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let expected = "\
paternoster: c.toml:1: tcp = 1: a text in quotes is allowed
paternoster: c.toml:4: depth = 0: 1 to 1024 requests, or \"learned\" under wfq, is allowed
paternoster: c.toml:6: there is no disk \"x\"; there are: \"d\"
";
    for args in [&["c.toml"][..], &["--check", "c.toml"]] {
        let output = serve(dir.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert_eq!(stderr(&output), expected);
    }
}

#[test]
fn wrong_usage_is_exit_status_2() {
    let dir = dir_with_disk();
    for args in [
        &[][..],
        &["--disk", "d.img"],
        &["--export", "e"],
        &["--check"],
        &["c.toml", "--disk", "d.img", "--export", "e"],
        &["c.toml", "--scheduler", "none"],
        &["c.toml", "--tcp", "127.0.0.1:0"],
        &["--disk", "d.img", "--export", "e", "--threads", "many"],
    ] {
        let output = serve(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}

/// Editors read it: `taplo` by `#:schema`, others by their settings.
#[test]
fn schema_of_the_file_is_printed_without_a_file() {
    let dir = dir_with_disk();
    let output = serve(dir.path(), &["--schema"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let keys = &schema["properties"]["disks"]["additionalProperties"]["properties"];
    assert_eq!(keys["depth"]["anyOf"][0]["maximum"], 1024);
    let both = serve(dir.path(), &["--schema", "c.toml"]);
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}
