//! What a server may use that runs: what its file says at the start, and nothing else.

use std::fs::{self, File};
use std::path::Path;

use crate::support::{Served, temp_dir, tool};

/// A disk in a folder, with keys of the server before.
fn file(keys: &str, more: &str) -> String {
    format!(
        "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n{keys}\n[disks.d]\npath = \"images/a.img\"\n\
         [exports.a]\ndisk = \"d\"\n[pools.p]\npath = \"pool\"\n{more}"
    )
}

/// A disk more, of the image of that path.
fn another(path: &str) -> String {
    format!("[disks.e]\npath = {path:?}\n[exports.b]\ndisk = \"e\"\n")
}

fn start(keys: &str, uris: usize) -> Served {
    let dir = temp_dir();
    for image in ["images/a.img", "images/b.img", "images/e.img", "elsewhere/c.img", "pool/d.img"] {
        let path = dir.path().join(image);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        File::create(path).and_then(|file| file.set_len(1 << 20)).expect("an image");
    }
    let keys = keys.replace("DIR", &dir.path().display().to_string());
    fs::write(dir.path().join("c.toml"), file(&keys, "")).expect("a file");
    Served::start(dir, &["c.toml"], uris)
}

/// What comes of a request; what it says where it is refused.
fn ctl(dir: &Path, args: &[&str]) -> Result<(), String> {
    let args = [&["ctl", "--ctl", "ctl.sock"], args].concat();
    let output = tool("paternoster", env!("CARGO_BIN_EXE_paternoster"), args, dir);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

/// Has the server read its file with a disk more.
fn reload(served: &Served, keys: &str, image: &str) -> Result<(), String> {
    fs::write(served.path("c.toml"), file(keys, &another(image))).expect("a file");
    ctl(served.dir.path(), &["reload"])
}

const WHY: &str = "Permission denied (os error 13); this server may use what it was started with \
                   and nothing else (sandbox, sandbox_paths)";

#[test]
fn reload_and_request_use_what_the_server_was_started_with_and_nothing_else() {
    let served = start("", 1);
    assert!(served.log().contains("sandbox: Landlock ABI "), "{}", served.log());
    let refused = reload(&served, "", "elsewhere/c.img").expect_err("it is elsewhere");
    assert!(refused.contains(WHY), "{refused}");

    reload(&served, "", "images/b.img").expect("it lies beside another");
    let create = ["volume", "create", "v", "--pool", "p", "--size", "1M"];
    ctl(served.dir.path(), &create).expect("it is made where the pool is");
    served.end();
}

/// A pool without a folder takes images from anywhere, unless the file says from where.
#[test]
fn image_of_a_pool_without_a_folder_lies_where_the_file_allows_it() {
    let pool = "[pools.q]\n[volumes.u]\npool = \"q\"\npath = \"DIR/images/b.img\"";
    for paths in ["", "sandbox_paths = [\"images\"]\n"] {
        let keys = format!("{paths}{pool}");
        let served = start(&keys, 2);
        let is_restricted = keys.contains("paths");
        let says = served.log().contains(", but for files, as pool \"q\" has no path");
        assert_eq!(says, !is_restricted, "{}", served.log());
        let create = |name: &str, image: &str| {
            let path = served.path(image).display().to_string();
            ctl(served.dir.path(), &["volume", "create", name, "--pool", "q", "--path", &path])
        };
        create("v", "images/e.img").expect("it is allowed");
        match create("w", "elsewhere/c.img") {
            Ok(()) => assert!(!is_restricted),
            Err(refused) => assert!(is_restricted && refused.contains(WHY), "{refused}"),
        }
        served.end();
    }
}

#[test]
fn what_the_file_allows_beyond_that_is_used() {
    for keys in ["sandbox = \"off\"", "sandbox_paths = [\"elsewhere\"]"] {
        let served = start(keys, 1);
        assert_eq!(served.log().contains("sandbox: Landlock"), !keys.contains("off"));
        reload(&served, keys, "elsewhere/c.img").expect(keys);
        served.end();
    }
}
