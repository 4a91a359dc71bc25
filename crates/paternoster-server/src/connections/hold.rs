//! A disk that another server is about to serve: what is in the device finishes, all else is given
//! up, and nothing comes in or goes out until it is known whether the other one goes on.
//!
//! ```text
//!   hold ──▶ the device is done, clients are at rest ──▶ what is far away is flushed ──▶ held
//!     └────────────────────────────── go on ◀────────────────────────────────────────────┘
//! ```
//!
//! An image is not flushed: the other server has the same file open, and hears of what has failed.
//! A connection to another server is its own, so what it has taken is made durable first.

use std::sync::mpsc;

use paternoster_disk::{Command, CommandOp, Fd, Outcome, VolumeId};

use super::removal::{Flusher, own_io_context};
use super::stat::learned_depth;
use super::{Connections, DiskOwner};
use crate::clients::HeldConnection;
use crate::messages::{HandOverStep, LeftDisk};

/// What another server needs of a disk, beside what the configuration says.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldDisk {
    pub(crate) connections: Vec<HeldConnection>,
    pub(crate) left: LeftDisk,
}

/// A disk that is held, or about to be.
#[derive(Debug)]
pub(super) struct Holding {
    /// Where it is told that all is at rest, or why that cannot be; none when it was.
    answer: Option<mpsc::Sender<Result<HeldDisk, String>>>,
    /// Whether far volumes have been asked to flush.
    has_flushed: bool,
    failure: Option<String>,
}

impl Connections {
    /// Does a step of one server taking over from another.
    pub(super) fn hand_over(&mut self, owner: &mut DiskOwner, step: HandOverStep) {
        match step {
            HandOverStep::Files(sender) => {
                // Whoever asked may have gone.
                let _ = sender.send(self.files(owner));
            }
            HandOverStep::Hold(sender) => self.hold(owner, sender),
            HandOverStep::GoOn => self.stop_holding(owner),
            HandOverStep::TakeOver(left) => self.take_over(owner, &left),
        }
    }

    fn hold(&mut self, owner: &mut DiskOwner, answer: mpsc::Sender<Result<HeldDisk, String>>) {
        if self.shutting_down.is_some() {
            let _ = answer.send(Err("the disk ends".to_owned()));
            return;
        }
        self.doors.hold();
        owner.hold();
        self.holding = Some(Holding { answer: Some(answer), has_flushed: false, failure: None });
    }

    /// No other server goes on with the disk.
    pub(super) fn stop_holding(&mut self, owner: &mut DiskOwner) {
        if self.holding.take().is_some() {
            owner.go_on();
            let (doors, mut site) = self.doors(owner);
            doors.go_on(&mut site);
        }
    }

    /// The files of all volumes, or why another server cannot go on with one.
    fn files(&self, owner: &DiskOwner) -> Result<Vec<Fd>, String> {
        let file = |volume| match (owner.backend(volume).file(), owner.backend(volume).far()) {
            (Some(file), _) => Some(Ok(file)),
            // The other one connects to it by itself.
            (None, Some(_)) => None,
            (None, None) => {
                let (what, name) = ("is in this server's memory", self.label.volumes.named(volume));
                Some(Err(format!("{name:?} {what}")))
            }
        };
        owner.engine().volumes().filter_map(file).collect()
    }

    /// Goes on with the disk as the server before has known it.
    fn take_over(&self, owner: &mut DiskOwner, left: &LeftDisk) {
        let volumes: Vec<_> = owner.engine().volumes().collect();
        for volume in volumes {
            if left.failed_syncs.iter().any(|name| *name == self.label.volumes.named(volume)) {
                owner.sync_has_failed(volume);
            }
        }
        if let Some(depth) = left.learned_depth {
            owner.administer(|elevator, now| elevator.begin_at_depth(now, depth));
        }
    }

    fn failed_syncs(&self, owner: &DiskOwner) -> Vec<String> {
        let engine = owner.engine();
        let failed = engine.volumes().filter(|&volume| engine.sync_stats(volume).failed);
        failed.map(|volume| self.label.volumes.named(volume).to_owned()).collect()
    }

    /// Looks whether all is at rest.
    pub(super) fn go_on_holding(&mut self, owner: &mut DiskOwner) {
        let waits = |holding: &Holding| holding.answer.is_some();
        if !self.holding.as_ref().is_some_and(waits) || !owner.engine().is_idle() {
            return;
        }
        let Some(connections) = self.doors.held() else { return };
        let Some(holding) = &mut self.holding else { return };
        if !std::mem::replace(&mut holding.has_flushed, true) && flush_far(owner) > 0 {
            return;
        }
        let (answer, failure) = (holding.answer.take(), holding.failure.take());
        let held = match failure {
            Some(failure) => Err(failure),
            None => Ok(HeldDisk {
                connections,
                left: LeftDisk {
                    failed_syncs: self.failed_syncs(owner),
                    learned_depth: learned_depth(owner).map(|learned| learned.depth),
                },
            }),
        };
        if let Some(answer) = answer {
            // Whoever asked may have given up, and says so.
            let _ = answer.send(held);
        }
    }

    /// Takes the outcome of a flush of a far volume.
    pub(super) fn far_flushed(&mut self, outcome: &Outcome) {
        let Some(holding) = &mut self.holding else { return };
        if let Err(errno) = outcome.result {
            holding.failure = Some(format!("a far server cannot be flushed: {errno}"));
        }
    }
}

/// Has what far servers have taken made durable. Returns how many those are.
fn flush_far(owner: &mut DiskOwner) -> usize {
    let volumes: Vec<_> = owner.engine().volumes().collect();
    let is_far = |volume: &VolumeId| owner.backend(*volume).far().is_some();
    let far: Vec<_> = volumes.into_iter().filter(is_far).collect();
    if far.is_empty() {
        return 0;
    }
    let (tag, ioc) = (Flusher::HandOver.tag(), own_io_context(owner));
    for &volume in &far {
        owner.submit(Command { tag, volume, ioc, op: CommandOp::Flush });
    }
    far.len()
}
