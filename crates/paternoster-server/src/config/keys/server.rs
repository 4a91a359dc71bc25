//! The keys of the server itself, at the top of the file.

use std::net::SocketAddr;
use std::path::PathBuf;

use paternoster::Nanos;
use paternoster_disk::IoEngine;

use super::kinds::{Flag, Size, Span, Whole, Word, Words, words};
use super::listen::{Mode, Texts};
use super::written::{At, beside};
use super::{ADDRESS, PATH, PATH_OR_PASSED, keys};
use crate::config::Listen;
use crate::config::scheduler::AUTO;

/// Bytes that a tenant may be allowed to hold: from the largest request to a tebibyte.
pub(super) const MEMORY: Size = Size::within(32 << 20..=1 << 40);

/// Clients that a tenant may be allowed to have.
pub(super) const CONNECTIONS: Whole<u32> = Whole::new(1..=1_000_000, "connections");

const PAYLOAD_TIMEOUT: Span = Span::new(Nanos::from_millis(1_000), DAY, "s");

/// The longest duration of the server's own.
pub(super) const DAY: Nanos = Nanos::from_millis(86_400_000);

const THREADS: Whole<u32> = Whole::new(1..=64, "threads");

keys! {
    /// What is set of the server itself.
    pub struct ServerKeys, states ServerStates {
        unix: Option<PathBuf> = None, PATH, restart,
            default "`paternoster.sock`, if there is no `tcp` and no `[[listen]]`",
            range "1 to 107 bytes";
            "Unix socket for clients, which offers every export. A socket that a dead server left \
             is replaced; anything else at the path stays, and the server does not start.";
        unix_mode: u32 = Listen::DEFAULT_MODE, Mode, restart;
            "Permission bits of `unix`: whoever may write to it may use every export.";
        tcp: Option<SocketAddr> = None, ADDRESS, restart;
            "TCP address for clients, without TLS; it offers every export. `[[listen]]` has \
             sockets with [TLS](operations.md#tls).";
        ctl: Option<PathBuf> = None, PATH_OR_PASSED, restart,
            default "[below](#the-control-socket)",
            range "1 to 107 bytes, not that of clients";
            "Control socket of `paternoster ctl`, mode 0600. `\"fd:NAME\"`: the service manager \
             [passes](operations.md#socket-activation) it. `\"none\"`: no such socket.";
        metrics: Option<SocketAddr> = None, ADDRESS, restart,
            range "an IP address and a port that no client socket has; port 0 is any free one";
            "TCP address that serves `GET /metrics` for Prometheus, without TLS or \
             authentication: whoever reaches it reads the tenants' names and counts. The control \
             socket serves it too.";
        metrics_volumes: bool = false, Flag, restart;
            "Whether `GET /metrics` has the volumes of pools too, each with seven samples. \
             `GET /v1/stat?volumes=true` always has them.";
        page: bool = true, Flag, restart;
            "Whether `GET /` at `metrics` is a page for people, with what `/metrics` says.";
        state_dir: Option<PathBuf> = None, PATH, restart,
            range "a directory that no other server has";
            "Where volumes, exports and groups that are made by request are recorded, so that they \
             are there again after a restart. It is made if it is not there. Without it they go \
             with the server, and images stay.";
        vhost_user_dir: Option<PathBuf> = None, PATH, restart,
            range "a directory";
            "Where virtual machines attach to volumes and exports that are made by request: \
             `vhost_user` of such a one is the name of a socket in it. Without it none can have \
             a socket, and a server whose `state_dir` records one with a socket does not start.";
        memory: u64 = 64 << 20, MEMORY, restart, default "`\"64M\"`";
            "What the clients of one tenant may hold on one disk: commands in flight, payloads, \
             unsent replies, and their buffers. The server stops reading from a client whose \
             tenant has reached its limit, and resumes when memory is released. Large requests \
             take at most three quarters; a quarter is kept for short ones. On top of that: 4 KiB \
             per connection, within TLS up to 100 KiB, and up to 1.25 MiB per disk for each unit \
             of `depth`.";
        connections: u32 = 1024, CONNECTIONS, restart;
            "Connected clients of one tenant, on all disks. All tenants together may have what \
             the hard limit on descriptors (`ulimit -Hn`) leaves. One more is refused with that \
             reason.";
        payload_timeout: Nanos = Nanos::from_millis(30_000), PAYLOAD_TIMEOUT, restart;
            "How long a client may hold memory without progress (a payload that does not come, \
             replies that are not read) before it is closed, if another client of its tenant waits \
             for memory.";
        threads: u32 = 1, THREADS, restart;
            "[Connection threads](#threads), which have the clients' sockets. With 1 there are \
             none: the thread of each disk, its owner, serves its clients itself.";
        engine: EngineChoice = EngineChoice::Auto, Words::<EngineChoice>::ALL, restart;
            "How disks and sockets are read and written: by io_uring, or by a pool of threads and \
             epoll, which need no permission and are slower. `\"auto\"` takes io_uring where the \
             machine permits it, else threads, with a warning that says why.";
        at_stop: AtStop = AtStop::Close, Words::<AtStop>::ALL, restart;
            "What requests get that wait when the server is stopped; those in a device finish and \
             are answered. `\"close\"`: no answer, so that clients that reconnect repeat them to \
             the next server ([more](operations.md#restart-under-clients)). `\"refuse\"`: \
             ESHUTDOWN, an error to most clients.";
        sandbox: Sandbox = Sandbox::Auto, Words::<Sandbox>::ALL, restart;
            "Whether the server may use nothing but what the file says, whatever becomes of it \
             ([more](operations.md#what-a-break-in-reaches)): where the kernel has Landlock; \
             never; or always, so that it does not start without.";
        sandbox_paths: Option<Vec<At<String>>> = None, Texts("folders, images and devices"),
            restart, default "all, if a local pool has no `path`; else none";
            "What a reload or a request may use within the sandbox, beyond what the file says.";
    }
}

/// How the I/O engine is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// `auto`, also where nothing was written: io_uring where the machine permits it, else threads.
    #[default]
    Auto,
    /// It was named.
    Named(IoEngine),
}

impl Word for EngineChoice {
    const ALL: &'static [Self] =
        &[Self::Auto, Self::Named(IoEngine::IoUring), Self::Named(IoEngine::Threads)];

    fn word(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::Named(engine) => engine.name(),
        }
    }
}

/// What becomes of requests that wait when the server is stopped. What is in a device finishes and
/// is answered, whichever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtStop {
    /// `close`: they get no answer. Clients that reconnect send them again, to the next server.
    #[default]
    Close,
    /// `refuse`: they get ESHUTDOWN.
    Refuse,
}

impl AtStop {
    const ALL: [Self; 2] = [Self::Close, Self::Refuse];

    /// Returns what is written to choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Refuse => "refuse",
        }
    }
}

words!(AtStop);

/// Whether a server may use nothing but what its configuration says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// `auto`: where the kernel has Landlock.
    #[default]
    Auto,
    /// `off`: it may use whatever its user may.
    Off,
    /// `require`: it does not start without.
    Require,
}

impl Sandbox {
    const ALL: [Self; 3] = [Self::Auto, Self::Off, Self::Require];

    /// Returns what is written to choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::Off => "off",
            Self::Require => "require",
        }
    }
}

words!(Sandbox);

impl ServerKeys {
    /// Returns what may be used beyond what the file says, if that is written.
    pub(crate) fn sandbox_paths(&self) -> Option<Vec<PathBuf>> {
        let paths = self.sandbox_paths.as_ref()?;
        Some(paths.iter().map(|path| beside(&path.place, &path.value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn with(line: &str) -> Result<ServerKeys, String> {
        let disk = "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n[exports.e]\ndisk = \"d\"\n";
        let config = Config::from_toml(&format!("{line}\n{disk}"), Path::new("c.toml"));
        config.map(|config| config.keys).map_err(|error| error.to_string())
    }

    #[test]
    fn words_choose_the_engine_and_what_becomes_of_waiting_requests() {
        let chosen = |line| with(line).map(|keys| (keys.engine, keys.at_stop)).expect("allowed");
        assert_eq!(chosen(""), (EngineChoice::Auto, AtStop::Close));
        assert_eq!(chosen("at_stop = \"refuse\""), (EngineChoice::Auto, AtStop::Refuse));
        let threads = EngineChoice::Named(IoEngine::Threads);
        assert_eq!(chosen("engine = \"threads\""), (threads, AtStop::Close));
        for (line, said) in [
            ("at_stop = \"wait\"", "c.toml:1: at_stop = \"wait\": \"close\" or \"refuse\" is"),
            ("engine = \"libaio\"", "\"libaio\": \"auto\", \"io_uring\" or \"threads\" is allowed"),
        ] {
            let refused = with(line).expect_err(line);
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn number_without_a_unit_is_answered_with_the_duration_that_was_meant() {
        let timeout = |line| with(line).map(|keys| keys.payload_timeout);
        assert_eq!(timeout("payload_timeout = \"2m\""), Ok(Nanos::from_millis(120_000)));
        assert_eq!(
            timeout("payload_timeout = 30"),
            Err("c.toml:1: payload_timeout = 30: a duration with its unit, \"30s\", is allowed"
                .to_owned())
        );
        let refused = timeout("payload_timeout = \"2d\"").expect_err("no unit");
        assert!(
            refused.contains("a duration from 1s to 1440m (a whole number and us"),
            "{refused}"
        );
    }
}
