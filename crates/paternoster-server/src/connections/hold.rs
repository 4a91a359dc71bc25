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

use paternoster::IocId;
use paternoster_disk::{Command, CommandOp, Fd, Outcome, VolumeId};

use super::quiesce::far;
use super::removal::{Flusher, own_io_context};
use super::stat::learned_depth;
use super::{Connections, DiskOwner};
use crate::clients::{Export, HeldConnection};
use crate::messages::{HandOverStep, LeftDisk};

/// What another server needs of a disk, beside what the configuration says.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldDisk {
    pub(crate) connections: Vec<HeldConnection>,
    /// The bytes that the export of each is: of which image, and from where on.
    pub(crate) bytes: Vec<Option<(String, u64)>>,
    pub(crate) left: LeftDisk,
}

/// A disk that is held, or about to be.
#[derive(Debug)]
pub(super) struct Holding {
    /// Where it is told that all is at rest, or why that cannot be; none when it was.
    answer: Option<mpsc::Sender<Result<HeldDisk, String>>>,
    /// Who has asked far volumes to flush, once that is asked for.
    flusher: Option<IocId>,
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
            HandOverStep::TakeOver(left) => take_over(owner, &left),
        }
    }

    fn hold(&mut self, owner: &mut DiskOwner, answer: mpsc::Sender<Result<HeldDisk, String>>) {
        if self.shutting_down.is_some() {
            let _ = answer.send(Err("the disk ends".to_owned()));
            return;
        }
        self.doors.hold();
        owner.hold();
        self.holding = Some(Holding { answer: Some(answer), flusher: None, failure: None });
    }

    /// No other server goes on with the disk.
    pub(super) fn stop_holding(&mut self, owner: &mut DiskOwner) {
        if let Some(holding) = self.holding.take() {
            owner.go_on();
            if let Some(ioc) = holding.flusher.filter(|_| holding.answer.is_none()) {
                owner.administer(|elevator, now| elevator.exit_io_context(now, ioc));
            }
            let (doors, mut site) = self.doors(owner);
            doors.go_on(&mut site);
        }
    }

    /// The files of all volumes, or why another server cannot go on with one.
    fn files(&self, owner: &DiskOwner) -> Result<Vec<Fd>, String> {
        let file = |volume| match (owner.backend(volume).file(), far(owner, volume)) {
            (Some(file), _) => Some(Ok(file)),
            (None, Some(far)) if far.is_quiesced() => {
                let name = self.label.volumes.named(volume);
                Some(Err(format!("volume {name:?} is quiesced: resume it first")))
            }
            // The other one connects to it by itself.
            (None, Some(_)) => None,
            (None, None) => {
                let (what, name) = ("is in this server's memory", self.label.volumes.named(volume));
                Some(Err(format!("{name:?} {what}")))
            }
        };
        owner.engine().volumes().filter_map(file).collect()
    }

    /// Looks whether all is at rest.
    pub(super) fn go_on_holding(&mut self, owner: &mut DiskOwner) {
        let waits = |holding: &Holding| holding.answer.is_some();
        if !self.holding.as_ref().is_some_and(waits) || !owner.engine().is_idle() {
            return;
        }
        if !self.doors.are_held() {
            return;
        }
        let Some(holding) = &mut self.holding else { return };
        if holding.flusher.is_none() {
            let ioc = own_io_context(owner);
            holding.flusher = Some(ioc);
            if flush_far(owner, ioc) > 0 {
                return;
            }
        }
        let (answer, failure) = (holding.answer.take(), holding.failure.take());
        let connections = self.doors.held();
        let bytes = connections.iter().map(|held| bytes_of(owner, &held.export)).collect();
        let held = match failure {
            Some(failure) => Err(failure),
            None => Ok(HeldDisk {
                connections,
                bytes,
                left: LeftDisk {
                    not_durable: not_durable(owner),
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

/// Goes on with the disk as the server before has known it.
fn take_over(owner: &mut DiskOwner, left: &LeftDisk) {
    let volumes: Vec<_> = owner.engine().volumes().collect();
    for volume in volumes {
        let identity = owner.backend(volume).identity();
        if identity.is_some_and(|identity| left.not_durable.contains(&identity)) {
            owner.sync_has_failed(volume);
        }
    }
    if let Some(depth) = left.learned_depth {
        owner.administer(|elevator, now| elevator.begin_at_depth(now, depth));
    }
}

/// The bytes that an export is: of which image, and from where on.
pub(super) fn bytes_of(owner: &DiskOwner, export: &Export) -> Option<(String, u64)> {
    let identity = owner.backend(export.volume).identity()?;
    Some((identity, export.offset))
}

/// The images of which nothing may be called durable.
fn not_durable(owner: &DiskOwner) -> Vec<String> {
    let engine = owner.engine();
    let is_not = |volume: &VolumeId| is_not_durable(owner, *volume);
    engine.volumes().filter(is_not).filter_map(|one| owner.backend(one).identity()).collect()
}

/// Whether a sync of a volume has failed, or what its far server had may be lost.
fn is_not_durable(owner: &DiskOwner, volume: VolumeId) -> bool {
    let is_in_doubt = far(owner, volume).is_some_and(|far| far.in_doubt);
    is_in_doubt || owner.engine().sync_stats(volume).failed
}

/// Has what far servers have taken made durable, as far as that can be. Returns how many those are.
fn flush_far(owner: &mut DiskOwner, ioc: IocId) -> usize {
    let is_far = |volume: &VolumeId| far(owner, *volume).is_some();
    let far = owner.engine().volumes().filter(is_far);
    let far: Vec<_> = far.filter(|volume| !is_not_durable(owner, *volume)).collect();
    let tag = Flusher::HandOver.tag();
    for &volume in &far {
        owner.submit(Command { tag, volume, ioc, op: CommandOp::Flush });
    }
    far.len()
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use crate::config::AtStop;
    use crate::connections::faulty::Faulty;
    use crate::connections::shutdown::{Patience, flush};
    use crate::stat::Detail;

    fn hold(disk: &Faulty) -> HeldDisk {
        disk.handle.hold().recv().expect("it answers").expect("nothing is in the way")
    }

    /// Whatever the disk is called there: by what its bytes are.
    #[test]
    fn failed_sync_is_known_to_whoever_goes_on() {
        for (sync, failed) in [(Ok(0), &[][..]), (Err(Errno::IO), &["the medium"])] {
            let before = Faulty::serve(sync, Patience::default(), |owner| _ = flush(owner));
            let left = hold(&before).left;
            assert_eq!(left.not_durable, failed);
            let after = Faulty::serve(Ok(0), Patience::default(), |_| {});
            after.handle.take_over(left);
            let stat = after.handle.stat(Detail::Groups).recv().expect("it answers");
            assert_eq!(stat.sync_failed, !failed.is_empty());
            assert_eq!(after.end().is_err(), !failed.is_empty(), "the last flush gets EIO");
            before.handle.go_on();
            before.handle.shut_down(AtStop::Close);
        }
    }

    #[test]
    fn disk_that_is_in_memory_has_no_file_and_says_its_name() {
        let disk = Faulty::serve(Ok(0), Patience::default(), |_| {});
        let refused = disk.handle.files().recv().expect("it answers").expect_err("it has none");
        assert_eq!(refused, "\"d\" is in this server's memory");
        disk.end().expect("a good end");
    }

    #[test]
    fn disk_that_ends_while_it_is_held_ends_well() {
        let disk = Faulty::serve(Ok(0), Patience::default(), |_| {});
        hold(&disk);
        disk.end().expect("a good end");
    }
}
