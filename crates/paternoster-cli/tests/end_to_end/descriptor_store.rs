//! A service manager that keeps what a server leaves to it, for the server that it starts next.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix,
    SocketFlags, SocketType, bind, recvmsg, socket_with,
};
use tempfile::TempDir;

use crate::settings::ctl;
use crate::support::Served;
use crate::take_over::prepared;
use crate::wire::Wire;

/// A service manager with a descriptor store.
struct Manager {
    /// What it has been left, by name, in the order in which that came.
    store: Vec<(String, OwnedFd)>,
    socket: OwnedFd,
}

impl Manager {
    fn new(dir: &Path) -> Self {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None);
        let socket = socket.expect("a socket");
        let at = SocketAddrUnix::new(dir.join("notify.sock")).expect("a short path");
        bind(&socket, &at).expect("it is free");
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(10))).expect("a time");
        Self { store: Vec::new(), socket }
    }

    /// Starts a server with all that is in the store, in another order than it came in.
    fn start(&self, dir: TempDir, uris: usize) -> Served {
        let (mut kept, mut passed, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (name, descriptor)) in self.store.iter().rev().enumerate() {
            fcntl_setfd(descriptor, FdFlags::empty()).expect("a child gets it");
            kept.push(format!("{}>&{}", 150 + at, descriptor.as_raw_fd()));
            passed.push(format!("{}>&{}", 3 + at, 150 + at));
            names.push(name.as_str());
        }
        let moves = |moves: Vec<String>| {
            if moves.is_empty() { String::new() } else { format!("exec {};", moves.join(" ")) }
        };
        let (kept, passed) = (moves(kept), moves(passed));
        let listen =
            format!("LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES={}", names.len(), names.join(":"));
        let listen = if names.is_empty() { String::new() } else { format!("export {listen};") };
        let script = format!("{kept}{passed}{listen} exec \"$0\" serve c.toml");
        let mut command = Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_paternoster")]);
        command.current_dir(dir.path()).env("RUST_LOG", "info");
        command.env("NOTIFY_SOCKET", dir.path().join("notify.sock"));
        let served = Served::spawn(dir, command, uris);
        for (_, descriptor) in &self.store {
            fcntl_setfd(descriptor, FdFlags::CLOEXEC).expect("it is open");
        }
        served
    }

    /// Hears what a server says, until it says that.
    fn hear_until(&mut self, last: &str) {
        loop {
            let mut room = [0; 4096];
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut bytes = [IoSliceMut::new(&mut room)];
            let heard = recvmsg(&self.socket, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC);
            let len = heard.expect("it says something").bytes;
            let with: Vec<_> = control
                .drain()
                .filter_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(rights) => Some(rights),
                    _ => None,
                })
                .flatten()
                .collect();
            let said = String::from_utf8_lossy(&room[..len]).into_owned();
            let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
            let name = value("FDNAME=").unwrap_or_default().to_owned();
            if value("FDSTOREREMOVE=").is_some() {
                self.store.retain(|(known, _)| *known != name);
            } else if value("FDSTORE=").is_some() {
                assert_eq!(value("FDPOLL="), Some("0"), "one whose client hangs up is kept");
                self.store.extend(with.into_iter().map(|fd| (name.clone(), fd)));
            }
            // Whoever waits at the barrier sees that it is closed.
            if said.contains(last) {
                return;
            }
        }
    }
}

/// `systemctl restart`, for which `ctl handover --to-store` was said before.
#[test]
fn server_goes_on_with_what_the_one_before_has_left_to_the_service_manager() {
    let dir = prepared(1 << 20, "", "");
    let mut manager = Manager::new(dir.path());
    let mut served = manager.start(dir, 1);
    manager.hear_until("READY=1");
    let mut wires: Vec<_> =
        (0..3).map(|_| Wire::enter_at(&served.path("nbd.sock"), "disk")).collect();
    ctl(&served, &["weight", "/g", "300"]).expect("it is set");
    for round in 0..3 {
        for (number, wire) in wires.iter_mut().enumerate() {
            wire.begin_to_write(10 * round + number as u64);
        }
        let said = ctl(&served, &["handover", "--to-store"]).expect("there is a manager");
        assert!(said.contains("leaves all to the service manager"), "{said}");
        served.terminate();
        manager.hear_until("BARRIER=1");
        let dir = served.leave();
        assert!(dir.path().join("nbd.sock").exists(), "its sockets stay");
        served = manager.start(dir, 1);
        manager.hear_until("READY=1");
        for (number, wire) in wires.iter_mut().enumerate() {
            wire.take_written_and_read_back(10 * round + number as u64);
        }
        assert!(ctl(&served, &["get", "/g"]).expect("it answers").contains("weight=300"));
    }
    let left: Vec<_> = manager.store.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(left, [""; 0], "it forgets what was gone on with");
    // Without the word before, SIGTERM ends it as ever.
    served.terminate();
    assert!(wires[0].has_ended());
    assert!(!served.leave().path().join("nbd.sock").exists());
}
