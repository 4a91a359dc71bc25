//! The end of a disk: what is in the device finishes, what waits is refused, replies are sent,
//! the disk is flushed.
//!
//! ```text
//!   refuse ──▶ drain: until every reply is sent, 5 s at most ──▶ flush ──▶ stop
//! ```

use paternoster::{Instant, Nanos};
use paternoster_disk::{Command as DiskCommand, CommandOp, Outcome, Turn};

use super::{Connections, DiskOwner};

/// How long clients have to take their last replies.
const DRAIN: Nanos = Nanos::from_millis(5_000);

/// The engine's tag of the last flush; connections' commands have keys, which are never this.
const FLUSH_TAG: u64 = u64::MAX;

/// How far the end is.
#[derive(Debug)]
pub(super) struct ShuttingDown {
    /// When it goes on, whether or not every reply was sent; none once that is past.
    deadline: Option<Instant>,
    stage: Stage,
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
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
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
        let deadline = Some(now + DRAIN);
        self.shutting_down = Some(ShuttingDown { deadline, stage: Stage::Draining });
    }

    pub(super) fn go_on_shutting_down(&mut self, owner: &mut DiskOwner) -> Turn {
        let Some(ending) = &mut self.shutting_down else { return Turn::GoOn };
        match ending.stage {
            Stage::Draining => {
                let drained = self.clients.values().all(super::Connection::is_drained);
                let served = owner.engine().is_idle();
                // What the device still has wakes the owner when it is done.
                ending.deadline = ending.deadline.filter(|&at| owner.now() < at);
                if served && (drained || ending.deadline.is_none()) {
                    ending.deadline = None;
                    ending.stage = Stage::Flushing;
                    flush(owner);
                }
                Turn::GoOn
            }
            Stage::Flushing => Turn::GoOn,
            Stage::Flushed => Turn::Stop,
        }
    }

    /// Whether this was the outcome of the last flush.
    pub(super) fn shutdown_flushed(&mut self, outcome: &Outcome) -> bool {
        if outcome.tag != FLUSH_TAG {
            return false;
        }
        if let Err(errno) = outcome.result {
            tracing::error!("disk {:?}: the last flush failed: {errno}", self.label.name);
        }
        if let Some(ending) = &mut self.shutting_down {
            ending.stage = Stage::Flushed;
        }
        true
    }
}

fn flush(owner: &mut DiskOwner) {
    let now = owner.now();
    let elevator = owner.engine_mut().elevator_mut();
    let root = elevator.groups().root();
    let ioc = elevator.io_context(now, paternoster::IoPrio::default(), root);
    owner.submit(DiskCommand { tag: FLUSH_TAG, ioc, op: CommandOp::Flush });
}
