//! What a start prints, what it refuses, and that a refusal leaves nothing behind.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Place, Served, paternoster, run, temp_dir};
use crate::wire::Wire;

fn dir_with_disk() -> TempDir {
    let dir = temp_dir();
    File::create(dir.path().join("disk.img")).and_then(|f| f.set_len(1 << 20)).expect("a disk");
    dir
}

/// Starts a server, which must not run: what it says.
fn refused(dir: &Path, args: &[&str]) -> String {
    let mut command = paternoster(dir);
    let output = command.arg("serve").args(args).output().expect("the binary runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    assert_eq!(output.stdout, b"", "{args:?}");
    said
}

/// The names in a folder, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const DISK: [&str; 4] = ["--disk", "disk.img", "--export", "disk"];

#[test]
fn standard_output_is_a_uri_a_line_and_nothing_else() {
    let dir = dir_with_disk();
    let socket = dir.path().join("paternoster.sock");
    let more = ["--export", "a b,offset=512K", "--ctl", "ctl.sock"];
    let disk = ["--disk", "disk.img", "--export", "disk,size=512K"];
    let served = Served::start(dir, &[&disk[..], &more].concat(), 2);
    let socket = socket.display();
    assert_eq!(served.uris[0], format!("nbd+unix:///disk?socket={socket}"));
    assert_eq!(served.uris[1], format!("nbd+unix:///a%20b?socket={socket}"));
    for uri in &served.uris {
        let size = run("libnbd-bin", "nbdinfo", &["--size", uri], served.dir.path());
        assert_eq!(size, "524288\n");
    }
    served.end();
}

/// The kernel holds to it for as long as the file is open. It is root's, mostly.
#[test]
fn cpu_dma_latency_is_held_while_the_server_runs_or_it_does_not_start() {
    const PATH: &str = "/dev/cpu_dma_latency";
    let dir = temp_dir();
    let text = "unix = \"nbd.sock\"\nctl = \"none\"\n[disks.d]\nbackend = \"memory\"\n\
                size = \"1M\"\ncpu_dma_latency = \"20us\"\n[exports.disk]\ndisk = \"d\"\n";
    fs::write(dir.path().join("c.toml"), text).expect("a file");
    if File::options().write(true).open(PATH).is_err() {
        let said = refused(dir.path(), &["c.toml"]);
        let words = format!("disk \"d\": cpu_dma_latency = \"20us\": cannot write to {PATH}");
        assert!(said.contains(&words), "{said}");
        return;
    }
    let served = Served::start(dir, &["c.toml"], 1);
    let files = fs::read_dir(format!("/proc/{}/fd", served.id())).expect("it runs");
    let open = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    assert_eq!(open.filter(|path| path == Path::new(PATH)).count(), 1);
    served.end();
}

#[test]
fn export_of_the_empty_name_is_the_default_one() {
    let served = Served::start(dir_with_disk(), &["--disk", "disk.img", "--export", ""], 1);
    assert!(served.uri().starts_with("nbd+unix:///?socket="), "{}", served.uri());
    let size = run("libnbd-bin", "nbdinfo", &["--size", served.uri()], served.dir.path());
    assert_eq!(size, "1048576\n");
    served.end();
}

/// A client's write to the block at the border would read and write the neighbour's bytes.
#[test]
fn border_inside_a_block_is_refused_under_direct_io_and_taken_through_the_page_cache() {
    let dir = dir_with_disk();
    let exports = ["--disk", "disk.img", "--export", "a,offset=4K,size=5000"];
    let said = refused(dir.path(), &[&exports[..], &["--cache", "direct"]].concat());
    let expected = "export \"a\" ends at byte 9096 of disk \"disk0\", inside a block of ";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("are the nearest borders that are allowed under direct I/O"), "{said}");
    let said = refused(dir.path(), &[&exports[..], &["--cache", "both"]].concat());
    assert!(
        said.contains("--cache: cache = \"both\": \"direct\" or \"page\" is allowed"),
        "{said}"
    );
    Served::start(dir, &[&exports[..], &["--cache", "page"]].concat(), 1).end();
}

#[test]
fn socket_in_use_is_refused_and_stays_in_use() {
    let dir = dir_with_disk();
    let path = dir.path().join("nbd.sock");
    let _other = UnixListener::bind(&path).expect("a socket");
    let said = refused(dir.path(), &[&DISK[..], &["--unix", "nbd.sock"]].concat());
    assert!(said.contains("\"nbd.sock\" is in use"), "{said}");
    let said = refused(dir.path(), &[&DISK[..], &["--ctl", "nbd.sock"]].concat());
    assert!(said.contains("\"nbd.sock\" is in use"), "{said}");
    assert_eq!(names(dir.path()), ["disk.img", "nbd.sock"]);
}

#[test]
fn port_in_use_is_refused_and_leaves_no_socket_behind() {
    let dir = dir_with_disk();
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let listen = ["--tcp", &address, "--unix", "nbd.sock", "--ctl", "ctl.sock"];
    let said = refused(dir.path(), &[&DISK[..], &listen].concat());
    assert!(said.contains(&format!("{address} is in use")), "{said}");
    assert_eq!(names(dir.path()), ["disk.img"]);
}

#[test]
fn disk_that_is_missing_is_refused_before_anything_is_bound() {
    let dir = temp_dir();
    let said = refused(dir.path(), &[&DISK[..], &["--unix", "nbd.sock"]].concat());
    assert!(said.contains("--disk: disk file \"disk.img\": No such file"), "{said}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn configuration_is_refused_with_file_and_line() {
    let dir = dir_with_disk();
    let disk = "[disks.d]\npath = \"disk.img\"\n";
    let cases = [
        (
            "depth = 0\n[exports.e]\ndisk = \"d\"\n",
            3,
            "1 to 1024 requests, or \"learned\" under wfq, is allowed",
        ),
        (
            "tunables = { quantum = -1 }\nscheduler = \"cfq\"\n[exports.e]\ndisk = \"d\"\n",
            3,
            "quantum = -1: ",
        ),
        ("tunables = { magic = 1 }\n[exports.e]\ndisk = \"d\"\n", 3, "magic"),
        ("[exports.e]\ndisk = \"x\"\n", 4, "there is no disk \"x\"; there are: \"d\""),
        ("[exports.e]\ndisk = \"d\"\nsize = \"2M\"\n", 5, "1048576 bytes past the end"),
        ("[exports.e]\ndisk = \"d\"\nweight = 1001\n", 5, "1 to 1000"),
        ("[exports.e]\ndisk = \"d\"\n[exports.f]\ndisk = \"d\"\n", 5, "share the bytes"),
        ("[exports.e]\ndisk = \"d\"\ncolour = 1\n", 5, "colour"),
    ];
    for (rest, line, words) in cases {
        fs::write(dir.path().join("c.toml"), format!("{disk}{rest}")).expect("a file");
        for args in [&["c.toml"][..], &["--check", "c.toml"]] {
            let said = refused(dir.path(), args);
            assert!(said.starts_with(&format!("paternoster: c.toml:{line}: ")), "{said}");
            assert!(said.contains(words), "{words} not in {said}");
        }
    }
    assert_eq!(names(dir.path()), ["c.toml", "disk.img"]);
}

#[test]
fn socket_left_by_a_killed_server_is_taken_over() {
    let served = Served::file(dir_with_disk(), Place::Unix, &[]);
    served.signal(Signal::KILL);
    let dir = served.leave();
    assert!(dir.path().join("nbd.sock").exists());
    let served = Served::file(dir, Place::Unix, &[]);
    Wire::enter(&served, Place::Unix);
    served.end();
}
