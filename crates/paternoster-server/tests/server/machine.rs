//! What a configuration needs of the machine is looked at before anything is started.

use std::fs::{self, File};
use std::path::Path;

use paternoster_server::config::Config;

const REST: &str = "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n[exports.e]\ndisk = \"d\"\n";

/// What is said of a file in which `@` stands for a directory with a file in it, or nothing.
fn said(toml: &str) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    File::create(dir.path().join("file")).expect("a file");
    let toml = toml.replace('@', dir.path().to_str().expect("UTF-8"));
    let config = Config::from_toml(&toml, Path::new("c"));
    let names: Vec<_> = fs::read_dir(dir.path()).expect("a directory").collect();
    assert_eq!(names.len(), 1, "nothing is made");
    config.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn sockets_need_a_directory() {
    for key in ["unix", "ctl"] {
        let with = |path: &str| said(&format!("{key} = \"{path}\"\n{REST}"));
        assert_eq!(with("@/new"), "");
        let missing = with("@/none/new");
        assert!(missing.starts_with("c:1: socket \"/"), "{missing}");
        assert!(missing.contains("/none/new\" needs directory \"/"), "{missing}");
        assert!(missing.contains("/none\": No such file"), "{missing}");
        let file = with("@/file/new");
        assert!(file.contains("/file\", which is not a directory"), "{file}");
    }
}

#[test]
fn sockets_take_no_other_files_place() {
    for key in ["unix", "ctl"] {
        let taken = said(&format!("{key} = \"@/file\"\n{REST}"));
        assert!(taken.starts_with("c:1: ") && taken.contains("/file\" exists and is not a socket"));
    }
}

#[test]
fn disks_in_memory_have_to_fit_together() {
    let info = fs::read_to_string("/proc/meminfo").expect("Linux tells its memory");
    let bytes = |key: &str| {
        let line = info.lines().find(|line| line.starts_with(key)).expect("it is there");
        let kib = line.split_whitespace().nth(1).expect("a number");
        kib.parse::<u64>().expect("a number") << 10
    };
    let all = bytes("MemTotal:") + bytes("SwapTotal:");
    let two = |size: u64| {
        said(&format!(
            "[disks.a]\nbackend = \"memory\"\nsize = {size}\n\
             [disks.b]\nbackend = \"modelled\"\nservers = 1\nservice_us = 1\nsize = {size}\n\
             [exports.a]\ndisk = \"a\"\n[exports.b]\ndisk = \"b\"\n"
        ))
    };
    assert_eq!(two(1 << 20), "");
    let much = two(all / 3 * 2);
    assert!(much.starts_with("c:8: with disk \"b\" the disks in memory have"), "{much}");
    assert!(much.contains(&format!("have {} bytes", all / 3 * 2 * 2)), "{much}");
    assert!(!much.contains('\n'), "{much}");
    assert!(two(all + 1).starts_with("c:3: with disk \"a\""), "{much}");
}
