//! A device that takes a fixed time for any command, flushes too, and keeps what it was told.

use std::cell::RefCell;
use std::rc::Rc;

use paternoster::{Instant, Nanos, Sector, SectorCount};
use paternoster_model::{Command, Completion, Model, Op, Room, Servers};

/// The commands, each with its time since the start.
pub(crate) type Log = Rc<RefCell<Vec<(Nanos, Command)>>>;

/// The device.
#[derive(Debug)]
pub(crate) struct Recorder {
    servers: Servers,
    log: Log,
}

/// So many servers that take so long for a command and for a KiB.
pub(crate) fn recorder(servers: u32, fixed: Nanos, per_kib: Nanos) -> (Recorder, Log) {
    let room = Room { depth: 64, end: Sector(1 << 31) };
    let servers = Servers::constant(servers, room, fixed, per_kib);
    let log = Log::default();
    (Recorder { servers, log: Rc::clone(&log) }, log)
}

impl Model for Recorder {
    fn depth(&self) -> u32 {
        self.servers.depth()
    }

    fn end(&self) -> Sector {
        self.servers.end()
    }

    fn rotational(&self) -> bool {
        false
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.log.borrow_mut().push((now.since_start(), command));
        let timed = match command.op {
            Op::Flush => Command { op: Op::Write, sectors: SectorCount(0), ..command },
            _ => command,
        };
        self.servers.submit(now, timed);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.servers.poll_timeout()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.servers.poll(now)
    }
}
