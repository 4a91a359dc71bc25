//! `paternoster-lab scene`: tenants of a file on a device, in virtual time and live.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const SCENE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../paternoster-scene/scenes/web-and-backup.toml");

/// Two tenants of weights 100 and 300 on the device of these keys.
fn two(device: &str) -> String {
    format!(
        "name = \"two\"\nschedulers = [\"wfq\"]\nwarm_up = \"500ms\"\ncounted = \"1s\"\n\
         [device]\nname = \"d\"\nabout = \"a\"\nvalid = \"v\"\n{device}\n\
         [[tenants]]\nname = \"a\"\nweight = 100\nconnections = 4\ndepth = 16\n\
         [[tenants]]\nname = \"b\"\nweight = 300\nconnections = 4\ndepth = 16\n"
    )
}

const SERVERS: &str =
    "kind = \"servers\"\nservers = 4\ndepth = 256\nsectors = 1048576\nservice_us = 200\n";

fn scene(text: &str, options: &[&str]) -> (TempDir, Output) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("scene.toml");
    fs::write(&file, text).expect("a file");
    let output = run(&file, options);
    (dir, output)
}

fn run(file: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.arg("scene").arg(file).args(options).output().expect("the binary runs")
}

/// The columns of each row behind the header.
fn rows(output: &Output) -> Vec<Vec<String>> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout.clone()).expect("text");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    table.lines().skip(1).map(words).collect()
}

/// Four servers of 200 µs do 20,000 a second; a quarter and three quarters of them by weight.
#[test]
fn tenants_get_the_device_by_their_weights() {
    let (_dir, output) = scene(&two(SERVERS), &[]);
    let rows = rows(&output);
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().expect("a number");
    for (row, share) in [(0, 25.0), (1, 75.0)] {
        assert!((number(row, 5) - share).abs() < 1.0, "{rows:?}");
        assert!((number(row, 3) - 200.0 * share).abs() < 200.0, "{rows:?}");
        assert!((number(row, 7) - share).abs() < 0.05, "{rows:?}");
    }
}

#[test]
fn device_that_takes_everything_at_once_says_so() {
    let device = SERVERS.replace("servers = 4", "servers = 200");
    let (_dir, output) = scene(&two(&device), &["--scheduler", "none"]);
    let said = String::from_utf8(output.stderr).expect("text");
    let note = "note: none: the device took every request at once: no scheduler has anything";
    assert!(said.starts_with(note), "{said}");
}

#[test]
fn every_mistake_of_a_file_is_a_line_and_status_1() {
    let text = two(SERVERS).replace("depth = 16", "depth = 0").replace("\"1s\"", "\"1 week\"");
    let (_dir, output) = scene(&text, &[]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines.iter().all(|line| line.starts_with("paternoster-lab: ")), "{said}");
    assert!(
        lines[0].contains("scene.toml:4:11: `counted`") && lines[2].contains(":24:9:"),
        "{said}"
    );
}

/// The scene that comes along, shortened: three tenants under three schedulers.
#[test]
fn scene_that_comes_along_is_played_under_each_of_its_schedulers() {
    let text = fs::read_to_string(SCENE).expect("it comes along");
    let (_dir, output) = scene(&text.replace("\"2s\"", "\"100ms\""), &[]);
    let rows = rows(&output);
    let names: Vec<_> = rows.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
    let each = ["none", "cfq", "wfq"]
        .map(|scheduler| ["web", "backup", "monitor"].map(|tenant| (scheduler, tenant)));
    assert_eq!(names, each.concat());
}

/// Served in real time, the same file has the same rows; how fast this machine is, it does not say.
#[test]
fn scene_is_played_live_too() {
    let text = two(SERVERS).replace("\"1s\"", "\"200ms\"").replace("\"500ms\"", "\"100ms\"");
    let (_dir, output) = scene(&text, &["--live"]);
    let rows = rows(&output);
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row[3].parse::<u32>().is_ok_and(|iops| iops > 0)), "{rows:?}");
}

#[test]
fn what_cannot_be_served_is_refused_with_what_can() {
    let device = "kind = \"slices\"\ncommands = 9\nslice_ms = 1\nservice_us = 1\n";
    let (_dir, output) = scene(&two(device), &["--live"]);
    let said = String::from_utf8(output.stderr).expect("text");
    let wanted = "a server takes a device by its name or its file, or servers whose times do not";
    assert!(!output.status.success() && said.contains(wanted), "{said}");
}
