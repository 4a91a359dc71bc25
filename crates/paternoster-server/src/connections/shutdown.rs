//! The end of a disk: what is in the device finishes, what waits is refused, replies are sent,
//! the disk is flushed.
//!
//! ```text
//!   refuse ──▶ drain: until every reply is sent, 5 s at most ──▶ flush ──▶ stop
//!     └──────────────────────── 9 s at most, whatever the device does ──────▶ stop, as failed
//! ```

use std::collections::BTreeMap;
use std::io;

use paternoster::{Instant, Nanos};
use paternoster_disk::{Command as DiskCommand, CommandOp, DiskOp, InDevice, Outcome, Turn};

use super::{Connections, DiskOwner};

/// The engine's tag of the last flush; connections' commands have keys, which are never this.
const FLUSH_TAG: u64 = u64::MAX;

/// How long parts of the end may take, each from its beginning on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For clients to take their last replies.
    drain: Nanos,
    /// For all of it: what the device has not done then is left behind.
    all: Nanos,
}

impl Default for Patience {
    fn default() -> Self {
        Self { drain: Nanos::from_millis(5_000), all: Nanos::from_millis(9_000) }
    }
}

/// How far the end is.
#[derive(Debug)]
pub(super) struct ShuttingDown {
    /// When it goes on, whether or not every reply was sent; none once that is past.
    drained_by: Option<Instant>,
    /// When it stops, whatever the device still has.
    gives_up: Instant,
    stage: Stage,
    /// Why it was not a good end.
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Replies are being sent.
    Draining,
    /// The last flush is under way.
    Flushing,
    /// It has ended.
    Flushed,
}

impl ShuttingDown {
    /// When it wants to go on at the latest.
    pub(super) fn deadline(&self) -> Instant {
        self.drained_by.map_or(self.gives_up, |drained_by| drained_by.min(self.gives_up))
    }
}

impl Connections {
    pub(super) fn begin_shutdown(&mut self, owner: &mut DiskOwner) {
        if self.shutting_down.is_some() {
            return;
        }
        for connection in self.clients.values_mut() {
            connection.transmission.begin_shutdown();
        }
        let now = owner.now();
        owner.engine_mut().cancel_queued(now);
        owner.settle();
        self.shutting_down = Some(ShuttingDown {
            drained_by: Some(now + self.patience.drain),
            gives_up: now + self.patience.all,
            stage: Stage::Draining,
            failure: None,
        });
    }

    pub(super) fn go_on_shutting_down(&mut self, owner: &mut DiskOwner) -> Turn {
        let Some(ending) = &mut self.shutting_down else { return Turn::GoOn };
        if ending.stage == Stage::Flushed {
            return Turn::Stop;
        }
        let now = owner.now();
        if ending.gives_up <= now {
            let stuck = stuck(owner);
            tracing::error!(disk = self.label.name, "given up at the end: {stuck}");
            ending.failure = Some(format!("given up: {stuck}"));
            return Turn::Stop;
        }
        if ending.stage == Stage::Draining {
            let drained = self.clients.values().all(super::Connection::is_drained);
            let served = owner.engine().is_idle();
            // What the device still has wakes the owner when it is done.
            ending.drained_by = ending.drained_by.filter(|&at| now < at);
            if served && (drained || ending.drained_by.is_none()) {
                ending.drained_by = None;
                ending.stage = Stage::Flushing;
                flush(owner);
            }
        }
        Turn::GoOn
    }

    /// Whether this was the outcome of the last flush.
    pub(super) fn shutdown_flushed(&mut self, outcome: &Outcome) -> bool {
        if outcome.tag != FLUSH_TAG {
            return false;
        }
        if let Some(ending) = &mut self.shutting_down {
            ending.stage = Stage::Flushed;
            let failed = |errno| format!("the last flush failed: {errno}");
            ending.failure = outcome.result.as_ref().err().map(failed);
        }
        true
    }

    /// How the disk's end was, once it has come.
    pub(crate) fn ended(mut self) -> io::Result<()> {
        self.limits.tell_rest();
        let failure = self.shutting_down.and_then(|ending| ending.failure);
        failure.map_or(Ok(()), |failure| Err(io::Error::other(failure)))
    }
}

fn flush(owner: &mut DiskOwner) {
    let now = owner.now();
    let elevator = owner.engine_mut().elevator_mut();
    let root = elevator.groups().root();
    let ioc = elevator.io_context(now, paternoster::IoPrio::default(), root);
    owner.submit(DiskCommand { tag: FLUSH_TAG, ioc, op: CommandOp::Flush });
}

/// What the device has not done, in words; one range of each kind of operation.
fn stuck(owner: &DiskOwner) -> String {
    let mut kinds = BTreeMap::<DiskOp, (u32, InDevice)>::new();
    for request in owner.engine().in_device() {
        kinds.entry(request.op).or_insert((0, request)).0 += 1;
    }
    let told = |(op, (count, one)): (&DiskOp, &(u32, InDevice))| {
        format!("{count} × {op} (one of {} bytes at {})", one.len, one.offset)
    };
    let mut all: Vec<String> = kinds.iter().map(told).collect();
    if owner.engine().is_syncing() {
        all.push("a sync".to_owned());
    }
    if all.is_empty() { "nothing is known to be in the device".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc;
    use std::thread;

    use bytes::Bytes;
    use paternoster::{AnyScheduler, Device, Elevator, IoPrio, NoTrace, SchedulerKind};
    use paternoster_disk::{
        Backend, Buffers, Capabilities, Engine, Extent, MonotonicClock, Owner, Ring, Token,
        Transfer, TransferDone, TransferId, Transferred, Waker,
    };
    use rustix::io::Errno;

    use super::*;
    use crate::connections::DiskLabel;
    use crate::messages::OwnerHandle;

    /// A device that keeps every write for ever, and whose syncs end as they are told to.
    #[derive(Debug)]
    struct Bad {
        sync: Result<u64, Errno>,
        done: Option<TransferDone>,
    }

    impl Backend for Bad {
        fn capabilities(&self) -> Capabilities {
            Capabilities { size: 1 << 20, rotational: false, fast_zero: true, depth: 4 }
        }

        fn start(&mut self, _: &mut Ring<Token>, _: Instant, id: TransferId, transfer: Transfer) {
            if matches!(transfer, Transfer::Sync { .. }) {
                let transferred = Transferred { result: self.sync, filled: Buffers::new() };
                self.done = Some(TransferDone { id, transferred });
            }
        }

        fn take_done(&mut self, _: Instant) -> Option<TransferDone> {
            self.done.take()
        }

        fn poll_timeout(&self) -> Option<Instant> {
            self.done.as_ref().map(|_| Instant::START)
        }

        fn extents(&self, _: u64, len: u64) -> io::Result<Vec<Extent>> {
            Ok(vec![Extent { len, hole: false }])
        }
    }

    /// How the end of a disk is, whose device was given so many writes before.
    fn end_of(sync: Result<u64, Errno>, writes: u64, patience: Patience) -> io::Result<()> {
        let device = Device::solid_state(4);
        let elevator = Elevator::new(AnyScheduler::new(SchedulerKind::None, NoTrace), device);
        let engine = Engine::new(elevator, true);
        let label = DiskLabel { name: "d".to_owned(), backend: "bad", weights_apply: false };
        let (sender, inbox) = mpsc::channel();
        let waker = Waker::new().expect("an event");
        let handle = OwnerHandle::new(sender, waker.clone());
        let mut connections = Connections::new(label, Vec::new(), Vec::new(), inbox, Nanos::ZERO);
        connections.patience = patience;
        let disk = thread::spawn(move || {
            let backend = Box::new(Bad { sync, done: None });
            let mut owner = Owner::new(engine, backend, MonotonicClock::start(), waker)?;
            let now = owner.now();
            let root = owner.engine().elevator().groups().root();
            let ioc = owner.engine_mut().elevator_mut().io_context(now, IoPrio::default(), root);
            for tag in 0..writes {
                let data = Bytes::from_static(&[7; 512]);
                let op = CommandOp::Write { offset: 4096 * (tag + 1), data, fua: false };
                owner.submit(DiskCommand { tag, ioc, op });
            }
            owner.run(&mut connections)?;
            connections.ended()
        });
        handle.shut_down();
        disk.join().expect("the owner does not panic")
    }

    #[test]
    fn an_end_whose_last_flush_failed_is_a_failure_that_says_so() {
        end_of(Ok(0), 0, Patience::default()).expect("a good end");
        let error = end_of(Err(Errno::IO), 0, Patience::default()).expect_err("no good end");
        let told = "the last flush failed: Input/output error (os error 5)";
        assert_eq!(error.to_string(), told);
    }

    #[test]
    fn what_is_stuck_in_the_device_does_not_hold_the_end_and_is_named() {
        let soon = Patience { drain: Nanos::from_millis(10), all: Nanos::from_millis(50) };
        let error = end_of(Ok(0), 2, soon).expect_err("no good end");
        let told = error.to_string();
        assert!(told.starts_with("given up: 2 × write (one of 512 bytes at "), "{told}");
        assert!(!told.contains("sync"), "{told}");
    }
}
