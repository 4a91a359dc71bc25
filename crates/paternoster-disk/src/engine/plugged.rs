//! Commands that a front holds back in a plug, on another thread: what may, and how they arrive.
//!
//! ```text
//!   command ──▶ its one bio ──▶ plug ──batch──▶ the same bio under its piece's name ──▶ elevator
//!      └──────────────────── with the batch ────▲
//! ```
//!
//! What is one bio for the front is one piece here, unless a volume has come meanwhile that takes
//! less in one request: then it is cut anew.

use bytes::Bytes;
use paternoster::scheduler::Scheduler;
use paternoster::{Batch, Bio, Chain, Instant, IocId, Limits, SectorCount};

use super::kind::Kind;
use super::volumes::{Volume, VolumePlace};
use super::{Command, CommandOp, Engine};

impl CommandOp {
    /// Returns the bio that this is on a volume there, under the elevator's limits, if it is one
    /// that may wait in a plug: a read, or a write without FUA, of whole blocks, that needs no
    /// cutting. Everything else is submitted as it is, after what is in the plug.
    pub fn plug_bio(&self, ioc: IocId, place: VolumePlace, limits: &Limits) -> Option<Bio> {
        let (kind, offset, len) = match self {
            Self::Read { offset, len } => (Kind::Read, *offset, *len),
            Self::Write { offset, data, fua: false } => {
                let len = u32::try_from(data.len()).ok()?;
                (Kind::Write { data: Bytes::new(), fua: false }, *offset, len)
            }
            _ => return None,
        };
        let bio = kind.whole_blocks(SectorCount(place.block), ioc, offset, len)?;
        let is_short = place.limits(limits).split(bio).1.is_none();
        is_short.then(|| place.for_elevator(bio))
    }
}

impl<S: Scheduler> Engine<S> {
    /// Takes a batch of a plug, each of whose bios is one of [`CommandOp::plug_bio`] and has the
    /// index of its command among `commands` as user data. Else as [`submit`](Self::submit).
    ///
    /// # Panics
    ///
    /// Where a bio has no command, or two have the same.
    pub fn submit_batch(&mut self, now: Instant, mut batch: Batch, commands: Vec<Command>) {
        let (volumes, limits) = (&self.pieces.volumes, self.driver.elevator().limits());
        let takes =
            |command: &Command| volumes.open(command.volume).is_some_and(Volume::takes_bios);
        let mut bios = batch.chains.iter().flat_map(Chain::bios);
        let are_short = bios.all(|bio| limits.split(*bio).1.is_none());
        if !are_short || !commands.iter().all(takes) {
            // Some of them may have to wait: each is cut anew, and merges in the elevator.
            for command in commands {
                self.submit(now, command);
            }
            return;
        }
        let mut commands: Vec<_> = commands.into_iter().map(Some).collect();
        let Self { driver, pieces, to_submit, .. } = self;
        for chain in &mut batch.chains {
            chain.rename(|index| {
                let of_bio = usize::try_from(index).ok().and_then(|index| commands.get_mut(index));
                let command =
                    of_bio.and_then(Option::take).expect("a bio has a command of its own");
                let (command, uncut) = pieces.add(command);
                let uncut = uncut.expect("a bio is of bytes");
                pieces.cut(command, uncut, driver.elevator().limits(), to_submit);
                let bio = to_submit.pop_front().expect("a command has a piece");
                assert!(to_submit.is_empty(), "it needs no cutting");
                (bio.ioc, bio.user_data)
            });
        }
        driver.submit_batch(now, batch);
    }
}
