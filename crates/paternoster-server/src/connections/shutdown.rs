//! The shutdown of a disk: what is in the device finishes, what waits is cancelled, replies are
//! sent, the disk is flushed, and then its clients are closed.
//!
//! ```text
//!   cancel ──▶ drain: until every reply is sent, 5 s at most ──▶ flush ──▶ close
//!     └──────────────────────── 9 s at most, whatever the device does ──────▶ close, as failed
//! ```
//!
//! What is cancelled gets no answer ([`AtStop::Close`]): a client that reconnects sends it again,
//! to the next server, where an answer would be an I/O error. A FLUSH or FUA command whose sync has
//! not begun is cancelled too; but the sync is carried out, and its failure is answered: the next
//! server would not hear of it. With [`AtStop::Refuse`] what is cancelled gets ESHUTDOWN. Clients
//! stay connected until the disk is flushed, so that they do not ask for the next server too early.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use paternoster::{Instant, Nanos};
use paternoster_disk::{Command as DiskCommand, CommandOp, DiskOp, InDevice, Outcome};

use super::removal::{Flusher, own_io_context};
use super::{Connections, DiskOwner};
use crate::config::AtStop;

/// How long the parts of a shutdown may take, each from the beginning on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For clients to take their last replies.
    drain: Nanos,
    /// For all of it: what the device has not completed then is left behind.
    all: Nanos,
}

impl Default for Patience {
    fn default() -> Self {
        Self { drain: Nanos::from_millis(5_000), all: Nanos::from_millis(9_000) }
    }
}

/// A shutdown that has begun.
#[derive(Debug)]
pub(super) struct ShuttingDown {
    /// When it goes on, whether or not every reply was sent; none once that is past.
    drained_by: Option<Instant>,
    /// When it stops, whatever the device still has.
    gives_up: Instant,
    stage: Stage,
    /// Last flushes in flight.
    flushes: usize,
    /// Why the shutdown failed.
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Replies are being sent.
    Draining,
    /// The last flush of each volume is in flight.
    Flushing,
    /// They have ended.
    Flushed,
}

impl ShuttingDown {
    /// Returns when it wants to go on at the latest.
    pub(super) fn deadline(&self) -> Instant {
        self.drained_by.map_or(self.gives_up, |drained_by| drained_by.min(self.gives_up))
    }
}

impl Connections {
    pub(super) fn begin_shutdown(&mut self, owner: &mut DiskOwner, at_stop: AtStop) {
        if self.shutting_down.is_some() {
            return;
        }
        self.stop_holding(owner);
        self.doors.begin_shutdown(at_stop);
        let now = owner.now();
        owner.cancel_queued();
        if at_stop == AtStop::Close {
            owner.cancel_syncs();
        }
        self.shutting_down = Some(ShuttingDown {
            drained_by: Some(now + self.patience.drain),
            gives_up: now + self.patience.all,
            stage: Stage::Draining,
            flushes: 0,
            failure: None,
        });
    }

    pub(super) fn go_on_shutting_down(&mut self, owner: &mut DiskOwner) -> ControlFlow<()> {
        let Some(ending) = &mut self.shutting_down else { return ControlFlow::Continue(()) };
        if ending.stage == Stage::Flushed {
            return ControlFlow::Break(());
        }
        let now = owner.now();
        if ending.gives_up <= now {
            let stuck = stuck(owner);
            tracing::error!(disk = self.label.config.name, "the shutdown gives up: {stuck}");
            let gave_up = format!("the shutdown gave up: {stuck}");
            ending.failure = Some(match ending.failure.take() {
                Some(before) => format!("{before}; {gave_up}"),
                None => gave_up,
            });
            return ControlFlow::Break(());
        }
        if ending.stage == Stage::Draining {
            let drained = self.doors.is_drained();
            let served = owner.engine().is_idle();
            // What the device still has wakes the owner when it is done.
            ending.drained_by = ending.drained_by.filter(|&at| now < at);
            if served && (drained || ending.drained_by.is_none()) {
                ending.drained_by = None;
                ending.stage = Stage::Flushing;
                ending.flushes = flush(owner);
                if ending.flushes == 0 {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Takes the outcome of a last flush of the disk.
    pub(super) fn shutdown_flushed(&mut self, outcome: Outcome) {
        if let Some(ending) = &mut self.shutting_down {
            ending.flushes -= 1;
            if ending.flushes == 0 {
                ending.stage = Stage::Flushed;
            }
            let failed = |errno| format!("the last flush failed: {errno}");
            ending.failure = ending.failure.take().or(outcome.result.err().map(failed));
        }
    }

    /// Returns how the shutdown of the disk ended.
    pub(crate) fn ended(mut self) -> io::Result<()> {
        self.limits.report_rest();
        let failure = self.shutting_down.and_then(|ending| ending.failure);
        failure.map_or(Ok(()), |failure| Err(io::Error::other(failure)))
    }
}

/// Puts the last flush of each volume. Returns how many those are.
pub(super) fn flush(owner: &mut DiskOwner) -> usize {
    let (tag, ioc) = (Flusher::Shutdown.tag(), own_io_context(owner));
    let volumes: Vec<_> = owner.engine().volumes().collect();
    for &volume in &volumes {
        owner.submit(DiskCommand { tag, volume, ioc, op: CommandOp::Flush });
    }
    volumes.len()
}

/// Says what the device has not done, with one range of each kind of operation.
fn stuck(owner: &DiskOwner) -> String {
    let mut kinds = BTreeMap::<DiskOp, (u32, InDevice)>::new();
    for request in owner.engine().in_device() {
        kinds.entry(request.op).or_insert((0, request)).0 += 1;
    }
    let in_words = |(op, (count, one)): (&DiskOp, &(u32, InDevice))| {
        format!("{count} × {op} (one of {} bytes at {})", one.len, one.offset)
    };
    let mut all: Vec<String> = kinds.iter().map(in_words).collect();
    if owner.engine().is_syncing() {
        all.push("a sync".to_owned());
    }
    if all.is_empty() { "nothing is known to be in the device".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::io;

    use bytes::Bytes;
    use paternoster::IoPrio;
    use rustix::io::Errno;

    use super::*;
    use crate::connections::faulty::Faulty;

    /// How the end of a disk is, whose device was given so many writes before.
    fn end_of(sync: Result<u64, Errno>, writes: u64, patience: Patience) -> io::Result<()> {
        let disk = Faulty::serve(sync, patience, move |owner| {
            let ioc = owner.administer(|elevator, now| {
                let root = elevator.groups().root();
                elevator.add_io_context(now, IoPrio::default(), root)
            });
            for tag in 0..writes {
                let data = Bytes::from_static(&[7; 512]);
                let op = CommandOp::Write { offset: 4096 * (tag + 1), data, fua: false };
                let volume = owner.engine().open_volumes().next().expect("it has one");
                owner.submit(DiskCommand { tag: tag.into(), volume, ioc, op });
            }
        });
        disk.end()
    }

    #[test]
    fn end_whose_last_flush_failed_is_a_failure_that_says_so() {
        end_of(Ok(0), 0, Patience::default()).expect("a good end");
        let error = end_of(Err(Errno::IO), 0, Patience::default()).expect_err("no good end");
        let expected = "the last flush failed: Input/output error (os error 5)";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn what_is_stuck_in_the_device_does_not_hold_the_end_and_is_named() {
        let soon = Patience { drain: Nanos::from_millis(10), all: Nanos::from_millis(50) };
        let error = end_of(Ok(0), 2, soon).expect_err("no good end");
        let message = error.to_string();
        assert!(
            message.starts_with("the shutdown gave up: 2 × write (one of 512 bytes at "),
            "{message}"
        );
        assert!(!message.contains("sync"), "{message}");
    }
}
