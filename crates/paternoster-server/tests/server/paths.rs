//! What the paths of a configuration are relative to.

use std::fs::{self, File};

use paternoster_disk::CacheChoice;
use paternoster_server::config::{BackendConfig, Config, Listen, Options};

const TOML: &str = "unix = \"nbd.sock\"\nctl = \"run/ctl.sock\"\n\
                    [disks.d]\npath = \"disk.img\"\n[exports.e]\ndisk = \"d\"\n";

/// A directory with a file, its disk, and a directory for a socket.
fn dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = File::create(dir.path().join("disk.img")).expect("a disk");
    disk.set_len(4096).expect("room");
    fs::create_dir(dir.path().join("run")).expect("a directory");
    fs::write(dir.path().join("c.toml"), TOML).expect("a file");
    dir
}

#[test]
fn paths_in_a_file_are_relative_to_the_file() {
    let dir = dir();
    let config = Config::from_file(&dir.path().join("c.toml")).expect("valid");
    assert_eq!(config.listen, [Listen::unix(dir.path().join("nbd.sock"))]);
    assert_eq!(config.ctl, Some(Listen::unix(dir.path().join("run/ctl.sock")).address));
    let path = dir.path().join("disk.img");
    let file = BackendConfig::File { path, cache: CacheChoice::Auto };
    assert_eq!(config.disks[0].backend, file);
}

#[test]
fn absolute_paths_in_a_file_are_left_as_they_are() {
    let dir = dir();
    let disk = dir.path().join("disk.img");
    let toml = TOML.replace("disk.img", disk.to_str().expect("UTF-8")).replace("run/", "");
    let other = tempfile::tempdir().expect("a directory");
    let config = Config::from_toml(&toml, &other.path().join("c.toml")).expect("valid");
    assert_eq!(
        config.disks[0].backend,
        BackendConfig::File { path: disk, cache: CacheChoice::Auto }
    );
    assert_eq!(config.ctl, Some(Listen::unix(other.path().join("ctl.sock")).address));
}

#[test]
fn empty_path_is_not_the_files_directory() {
    let dir = dir();
    let toml = TOML.replace("disk.img", "").replace("nbd.sock", "");
    let refused = Config::from_toml(&toml, &dir.path().join("c.toml")).expect_err("no paths");
    let refused = refused.to_string();
    assert!(refused.contains("socket \"\" has 0 bytes"), "{refused}");
    assert!(refused.contains("disk file \"\": No such file"), "{refused}");
}

#[test]
fn options_and_what_is_not_written_are_relative_to_the_current_directory() {
    let dir = dir();
    let disk = dir.path().join("disk.img");
    let options = Options {
        disk: disk.clone(),
        exports: vec!["e".to_owned()],
        unix: Some("nbd.sock".into()),
        ..Options::default()
    };
    let config = Config::from_options(&options).expect("valid");
    assert_eq!(config.listen, [Listen::unix("nbd.sock".into())]);
    let toml = TOML.replace("unix = \"nbd.sock\"\n", "");
    let config = Config::from_toml(&toml, &dir.path().join("c.toml")).expect("valid");
    assert_eq!(config.listen, [Listen::unix("paternoster.sock".into())]);
    let toml = TOML.replace("ctl = \"run/ctl.sock\"\n", "");
    let config = Config::from_toml(&toml, &dir.path().join("c.toml")).expect("valid");
    assert_eq!(config.ctl, Some(Listen::unix(paternoster_server::ctl::default_path()).address));
}

#[test]
fn none_is_no_control_socket() {
    let dir = dir();
    let toml = TOML.replace("run/ctl.sock", "none");
    let config = Config::from_toml(&toml, &dir.path().join("c.toml")).expect("valid");
    assert_eq!(config.ctl, None);
    let options = Options {
        disk: dir.path().join("disk.img"),
        exports: vec!["e".to_owned()],
        ctl: Some("none".into()),
        ..Options::default()
    };
    assert_eq!(Config::from_options(&options).expect("valid").ctl, None);
}

#[test]
fn metrics_need_an_address_of_their_own() {
    let dir = dir();
    let refusal = |metrics: &str, tcp: &str| {
        let options = Options {
            disk: dir.path().join("disk.img"),
            exports: vec!["e".to_owned()],
            metrics: Some(metrics.to_owned()),
            tcp: Some(tcp.to_owned()),
            ctl: Some("none".into()),
            ..Options::default()
        };
        Config::from_options(&options).err().map(|error| error.to_string())
    };
    let no_address = "--metrics: \"here\": an IP address and a port is allowed, such as \
                      127.0.0.1:10809 or [::1]:10809";
    assert_eq!(refusal("here", "[::1]:7").as_deref(), Some(no_address));
    let taken = "--metrics: [::1]:7 is one of clients too; metrics need an address of their own";
    assert_eq!(refusal("[::1]:7", "[::1]:7").as_deref(), Some(taken));
    assert_eq!(refusal("[::1]:8", "[::1]:7"), None);
    assert_eq!(refusal("[::1]:0", "[::1]:0"), None, "any free one, twice");
}
