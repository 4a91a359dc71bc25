//! Sockets that a service manager listens on and passes to the server that it starts.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;

use crate::support::{CONTROL, Served, eventually, run, temp_dir, tool, tool_command};

/// How many bytes the disk has.
const SIZE: &str = "1048576";

fn write_file(dir: &Path, ctl: &str, listen: &str) {
    let text = format!(
        "ctl = {ctl:?}\n[disks.d]\nbackend = \"memory\"\nsize = {SIZE}\n[exports.e]\n\
         disk = \"d\"\n{listen}"
    );
    fs::write(dir.join("c.toml"), text).expect("a file");
}

/// A manager that listens on sockets of its own, by their names, whatever server there is.
struct Manager {
    sockets: Vec<(&'static str, UnixListener)>,
}

impl Manager {
    fn listen(dir: &Path, names: &[&'static str]) -> Self {
        let listen = |name: &&'static str| {
            let socket = UnixListener::bind(dir.join(format!("{name}.sock"))).expect("a socket");
            fcntl_setfd(&socket, FdFlags::empty()).expect("a child gets it");
            (*name, socket)
        };
        Self { sockets: names.iter().map(listen).collect() }
    }

    /// Starts a server with them, which prints so many URIs.
    fn start(&self, dir: TempDir, uris: usize) -> Served {
        // They get numbers from 3 on, by way of high ones, so that none is lost.
        let (mut kept, mut passed, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (name, socket)) in self.sockets.iter().enumerate() {
            kept.push(format!("{}>&{}", 50 + at, socket.as_raw_fd()));
            passed.push(format!("{}>&{}", 3 + at, 50 + at));
            names.push(*name);
        }
        let [kept, passed] = [kept, passed].map(|moves| moves.join(" "));
        let script = format!(
            "exec {kept}; exec {passed}; export LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES={}; \
             exec \"$0\" serve c.toml",
            names.len(),
            names.join(":"),
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_paternoster")]);
        command.current_dir(dir.path()).env("RUST_LOG", "info").env(CONTROL.0, CONTROL.1);
        Served::spawn(dir, command, uris)
    }
}

fn size(dir: &Path, socket: &str) -> String {
    run("libnbd-bin", "nbdinfo", &["--size", &format!("nbd+unix:///e?socket={socket}")], dir)
}

#[test]
fn client_that_comes_between_two_servers_waits_for_the_next_one() {
    let dir = temp_dir();
    write_file(dir.path(), "fd:ctl", "[[listen]]\nfd = \"nbd\"\n");
    let manager = Manager::listen(dir.path(), &["ctl", "nbd"]);
    let served = manager.start(dir, 1);
    let at = |served: &Served, name: &str| served.path(name).display().to_string();
    let uri = format!("nbd+unix:///e?socket={}", at(&served, "nbd.sock"));
    assert_eq!(served.uri(), uri, "where the manager listens");
    assert_eq!(size(served.dir.path(), "nbd.sock"), format!("{SIZE}\n"));
    let program = env!("CARGO_BIN_EXE_paternoster");
    let asked =
        run("paternoster", program, &["ctl", "--ctl", "ctl.sock", "stat"], served.dir.path());
    assert!(asked.contains("/e"), "{asked}");

    served.terminate();
    let dir = served.leave();
    assert!(dir.path().join("nbd.sock").exists() && dir.path().join("ctl.sock").exists());
    thread::scope(|scope| {
        let path = dir.path().to_owned();
        let waiting = scope.spawn(move || size(&path, "nbd.sock"));
        UnixStream::connect(dir.path().join("ctl.sock")).expect("it may wait there too");
        let served = manager.start(dir, 1);
        assert_eq!(waiting.join().expect("it is served"), format!("{SIZE}\n"));
        served.end();
    });
}

#[test]
fn socket_that_nothing_names_is_a_warning_and_one_that_is_missing_ends_the_start() {
    let dir = temp_dir();
    write_file(dir.path(), "none", "[[listen]]\nfd = \"nbd\"\n");
    let manager = Manager::listen(dir.path(), &["nbd", "other"]);
    let served = manager.start(dir, 1);
    let warning = "socket \"other\" was passed, and neither `ctl` nor a [[listen]] has it";
    assert!(served.log().contains(warning), "{}", served.log());
    served.terminate();
    let dir = served.leave();

    write_file(dir.path(), "fd:ctl", "[[listen]]\nfd = \"gold\"\n");
    let mut served = manager.start(dir, 0);
    let (status, _) = served.wait(Duration::from_secs(10));
    assert_eq!(status.code(), Some(1));
    let log = served.log();
    for name in ["gold", "ctl"] {
        let passed = "was passed to this server; passed: \"nbd\", \"other\"";
        assert!(log.contains(&format!("no socket {name:?} {passed}")), "{log}");
    }
}

/// systemd passes them as `NonBlocking=` says: others may have them so, and nothing is changed.
#[test]
fn socket_on_which_nothing_waits_is_served_and_no_disk_is_behind_it() {
    let dir = temp_dir();
    let listen = "[[listen]]\nfd = \"nbd\"\n";
    write_file(dir.path(), "fd:ctl", listen);
    let manager = Manager::listen(dir.path(), &["nbd", "ctl"]);
    for (_, socket) in &manager.sockets {
        socket.set_nonblocking(true).expect("a socket");
    }
    let served = manager.start(dir, 1);
    for _ in 0..3 {
        assert_eq!(size(served.dir.path(), "nbd.sock"), format!("{SIZE}\n"));
    }
    // Its own socket, which no key of the file says.
    let far = format!(
        "{listen}[disks.far]\nbackend = \"nbd\"\nuri = \"nbd+unix:///e?socket={}\"\n",
        served.path("nbd.sock").display()
    );
    write_file(served.dir.path(), "fd:ctl", &far);
    let program = env!("CARGO_BIN_EXE_paternoster");
    let args = ["ctl", "--ctl", "ctl.sock", "reload"];
    let refused = tool("paternoster", program, args, served.dir.path());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("this server"), "{said}");
    served.end();
}

#[test]
fn systemd_socket_activate_starts_the_server_for_the_first_client() {
    let dir = temp_dir();
    write_file(dir.path(), "none", "[[listen]]\nfd = \"nbd\"\n");
    let check = ["serve", "--check=start", "c.toml"];
    let program = env!("CARGO_BIN_EXE_paternoster");
    // No socket is passed to a check.
    run("paternoster", program, &check, dir.path());
    let at = dir.path().join("nbd.sock").display().to_string();
    let mut activate = tool_command("systemd-socket-activate", dir.path());
    activate.args(["--listen", &at, "--fdname=nbd", program, "serve", "c.toml"]);
    let mut activate =
        activate.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("a tool");
    eventually("it listens", || dir.path().join("nbd.sock").exists());
    assert_eq!(size(dir.path(), "nbd.sock"), format!("{SIZE}\n"));
    activate.kill().expect("it runs");
    activate.wait().expect("a child");
}
