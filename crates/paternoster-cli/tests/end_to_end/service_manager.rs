//! What a service manager is told by the socket that it names in `NOTIFY_SOCKET`.

use std::fs;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use crate::support::{Served, paternoster, temp_dir};

/// How long the server may take to tell something.
const PATIENCE: Duration = Duration::from_secs(20);

const FILE: &str = r#"
unix = "nbd.sock"
[disks.d]
backend = "memory"
size = "1M"
scheduler = "wfq"
[exports.a]
disk = "d"
[exports.b]
disk = "d"
read_only = true
"#;

/// A manager of services that starts one.
struct Manager(UnixDatagram);

impl Manager {
    fn listen(at: &Path) -> Self {
        let socket = UnixDatagram::bind(at).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self(socket)
    }

    /// The lines of the next that it is told.
    fn told(&self) -> Vec<String> {
        let mut message = [0; 4096];
        let len = self.0.recv(&mut message).expect("it is told");
        let text = String::from_utf8_lossy(&message[..len]).into_owned();
        text.lines().map(str::to_owned).collect()
    }
}

/// Microseconds of the clock that the manager goes by.
fn monotonic_usec() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

#[test]
fn manager_is_told_when_clients_can_connect_of_reloads_and_of_the_end() {
    let dir = temp_dir();
    let file = dir.path().join("c.toml");
    fs::write(&file, FILE).expect("a file");
    let manager = Manager::listen(&dir.path().join("manager"));
    let mut command = paternoster(dir.path());
    command.args(["serve", "c.toml"]).env("NOTIFY_SOCKET", dir.path().join("manager"));
    let mut served = Served::spawn(dir, command, 0);
    assert_eq!(manager.told(), ["READY=1", "STATUS=serves 2 exports"]);
    UnixStream::connect(served.path("nbd.sock")).expect("clients can connect");

    // The weight of its group, and the one against groups below that.
    let changed = FILE.replace("[exports.b]", "weight = 300\n[exports.b]");
    let wrong = FILE.replace("wfq", "wfg");
    let refused = "has refused its file, and serves as before: see its log";
    for (text, status) in [(&changed, "has read its file again: 2 changed"), (&wrong, refused)] {
        fs::write(&file, text).expect("a file");
        let before = monotonic_usec();
        served.signal(Signal::HUP);
        let [reloading, at, status_before] = &manager.told()[..] else { panic!("three lines") };
        assert_eq!(
            (&**reloading, &**status_before),
            ("RELOADING=1", "STATUS=reads its file again")
        );
        let at = at.strip_prefix("MONOTONIC_USEC=").expect("when it was");
        assert!((before..=monotonic_usec()).contains(&at.parse().expect("a number")), "{at}");
        assert_eq!(manager.told(), ["READY=1".to_owned(), format!("STATUS={status}")]);
    }

    served.signal(Signal::TERM);
    assert_eq!(manager.told(), ["STOPPING=1", "STATUS=SIGTERM: shutting down"]);
    assert!(served.wait(PATIENCE).0.success(), "{}", served.log());
}

#[test]
fn manager_that_does_not_hear_is_a_warning() {
    let dir = temp_dir();
    fs::write(dir.path().join("c.toml"), FILE).expect("a file");
    let mut command = paternoster(dir.path());
    command.args(["serve", "c.toml"]).env("NOTIFY_SOCKET", dir.path().join("nobody"));
    let served = Served::spawn(dir, command, 2);
    let warning = "the service manager at NOTIFY_SOCKET was not told: No such file or directory";
    assert!(served.log().contains(warning), "{}", served.log());
    UnixStream::connect(served.path("nbd.sock")).expect("it serves all the same");
    served.end();
}
