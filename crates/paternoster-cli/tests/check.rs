//! `paternoster serve --check` and `--check=start`: what each finds, and that `serve` finds it too.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

const EXPORT: &str = "[disks.image]\npath = \"d.img\"\n[exports.x]\ndisk = \"image\"\n";

fn dir_with(toml: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = File::create(dir.path().join("d.img")).expect("a disk");
    disk.set_len(1 << 20).expect("room for it");
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    dir
}

fn serve(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["20", env!("CARGO_BIN_EXE_paternoster"), "serve"]).args(args);
    command.env_remove("RUST_LOG").env("PATERNOSTER_CTL", "ctl.sock").current_dir(dir);
    command.output().expect("timeout, of the package coreutils, runs")
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// What is in the directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

/// A check said that such a file was valid, and `serve` refused it without a line.
#[test]
fn border_inside_a_block_is_a_mistake_of_its_line() {
    let toml = "unix = \"borders.sock\"\nctl = \"none\"\n[disks.image]\npath = \"d.img\"\n\
                cache = \"direct\"\n[exports.x]\ndisk = \"image\"\noffset = 1000\n\
                [exports.y]\ndisk = \"image\"\nsize = 999\n";
    let dir = dir_with(toml);
    let begins = "c.toml:8: export \"x\" begins at byte 1000 of disk \"image\", inside a block of ";
    let ends = "c.toml:11: export \"y\" ends at byte 999 of disk \"image\", inside a block of ";
    let nearest = "the nearest borders that are allowed under direct I/O; cache = \"page\" allows";
    for args in [&["c.toml"][..], &["--check", "c.toml"], &["--check=start", "c.toml"]] {
        let output = serve(dir.path(), args);
        let lines = said(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {lines}");
        let [first, second] = lines.lines().collect::<Vec<_>>()[..] else { panic!("{lines}") };
        assert!(first.starts_with(&format!("paternoster: {begins}")), "{lines}");
        assert!(second.starts_with(&format!("paternoster: {ends}")), "{lines}");
        assert!(first.contains(nearest) && second.contains(nearest), "{lines}");
    }
    fs::write(dir.path().join("c.toml"), toml.replace("\"direct\"", "\"page\"")).expect("a file");
    let output = serve(dir.path(), &["--check", "c.toml"]);
    assert_eq!(output.status.code(), Some(0), "any byte will do there: {}", said(&output));
}

/// Takes something that the file wants, and says what a check has to say then.
type Take = fn(&Path) -> (Box<dyn std::any::Any>, String);

/// All that somebody else can have, in the form in which a file asks for it.
const TAKEN: [(&str, Take); 5] = [
    ("unix = \"nbd.sock\"", |dir| {
        let listener = UnixListener::bind(dir.join("nbd.sock")).expect("a socket");
        (Box::new(listener), "nbd.sock\" is in use: ME accepts connections on it".to_owned())
    }),
    ("ctl = \"mine.sock\"", |dir| {
        let listener = UnixListener::bind(dir.join("mine.sock")).expect("a socket");
        (Box::new(listener), "mine.sock\" is in use: ME accepts connections on it".to_owned())
    }),
    ("tcp = \"127.0.0.1:PORT\"", |_| port()),
    ("metrics = \"127.0.0.1:PORT\"", |_| port()),
    ("", |dir| {
        let image = File::open(dir.join("d.img")).expect("a disk");
        flock(&image, FlockOperation::LockExclusive).expect("nobody has it");
        (Box::new(image), "d.img: ME has locked it".to_owned())
    }),
];

fn port() -> (Box<dyn std::any::Any>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (Box::new(listener), format!("{address} is in use: ME listens on it"))
}

#[test]
fn what_others_have_is_told_with_its_holder_and_fails_only_a_check_for_the_start() {
    // Beside each other, as each waits for a while whether it becomes free.
    thread::scope(|scope| {
        for (key, take) in TAKEN {
            scope.spawn(move || taken_is_told(key, take));
        }
    });
}

fn taken_is_told(key: &str, take: Take) {
    let own = fs::read_to_string("/proc/self/comm").expect("a name");
    let me = format!("{} (pid {})", own.trim_end(), std::process::id());
    let dir = dir_with("");
    let (taken, words) = take(dir.path());
    let words = words.replace("ME", &me);
    let port = words.split(' ').next().and_then(|address| address.rsplit(':').next());
    let key = key.replace("PORT", port.unwrap_or_default());
    fs::write(dir.path().join("c.toml"), format!("{key}\n{EXPORT}")).expect("a file");
    let before = names(dir.path());

    let plain = serve(dir.path(), &["--check", "c.toml"]);
    let lines = said(&plain);
    assert_eq!(plain.status.code(), Some(0), "{key}: {lines}");
    assert!(lines.contains("paternoster: a server could not start now: "), "{key}: {lines}");
    assert!(lines.contains(&words), "{words} is not in {lines}");
    assert!(lines.ends_with("paternoster: the configuration is valid\n"), "{lines}");

    for args in [&["--check=start", "c.toml"][..], &["c.toml"]] {
        let output = serve(dir.path(), args);
        let lines = said(&output);
        assert_eq!(output.status.code(), Some(1), "{key}, {args:?}: {lines}");
        assert!(lines.contains(&words), "{words} is not in {lines}");
    }
    assert_eq!(names(dir.path()), before, "{key}: nothing is left behind");

    drop(taken);
    for socket in ["nbd.sock", "mine.sock"] {
        // What listened there has gone.
        let _ = fs::remove_file(dir.path().join(socket));
    }
    let free = serve(dir.path(), &["--check=start", "c.toml"]);
    assert_eq!(free.status.code(), Some(0), "{key}: {}", said(&free));
    assert_eq!(said(&free), "paternoster: the configuration is valid\n");
    assert_eq!(names(dir.path()), ["c.toml", "d.img"], "{key}: nothing is left behind");
}

/// A killed server has its locks until its last write has ended: some disks take seconds for that.
#[test]
fn locks_are_waited_for_and_all_of_them_together() {
    let disk = |name: &str| format!("[disks.{name}]\npath = \"{name}.img\"\n");
    let disks: String = ["a", "b", "c"].map(disk).concat();
    let dir = dir_with(&format!("{disks}[exports.x]\ndisk = \"a\"\n"));
    let locked = ["a", "b", "c"].map(|name| {
        let image = File::create(dir.path().join(format!("{name}.img"))).expect("a disk");
        image.set_len(1 << 20).expect("room for it");
        flock(&image, FlockOperation::LockExclusive).expect("nobody has it");
        image
    });
    let output = serve(dir.path(), &["--check=start", "c.toml"]);
    let lines = said(&output);
    assert_eq!(output.status.code(), Some(1), "5 s are over before `timeout`'s 20 are: {lines}");
    assert_eq!(lines.matches("has locked it").count(), 3, "{lines}");
    let output = thread::scope(|scope| {
        let starting = scope.spawn(|| serve(dir.path(), &["--check=start", "c.toml"]));
        thread::sleep(Duration::from_secs(2));
        drop(locked);
        starting.join().expect("it does not panic")
    });
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// A reload is checked while the server has the sockets and the image.
#[test]
fn mistakes_are_found_though_the_image_is_locked() {
    let dir = dir_with(
        &format!("{EXPORT}offset = 7\n").replace("d.img\"", "d.img\"\ncache = \"direct\""),
    );
    let image = File::open(dir.path().join("d.img")).expect("a disk");
    flock(&image, FlockOperation::LockExclusive).expect("nobody has it");
    let output = serve(dir.path(), &["--check", "c.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("c.toml:6: export \"x\" begins at byte 7 "), "{output:?}");
}
