//! What a task of the swarm asks for: operations, and places on the device.

use paternoster::{BioFlags, Op, Sector, SectorCount};

use crate::swarm::random::Random;

/// Sectors of the places that all share, in units of 8: few, so that much merges.
const UNITS: u64 = 150;
/// Sectors between the places of two tasks, or of two streams: far.
const FAR: u64 = 1 << 24;

/// What a task does, until it takes on another habit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    pub(crate) ops: Ops,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ops {
    /// Everything that there is.
    All,
    Reads,
    /// Asynchronous writes.
    Writes,
    /// Synchronous writes, such as direct ones.
    SyncWrites,
    /// What journals write.
    NoIdleWrites,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Where everybody is.
    Shared,
    /// On from where it was.
    Onward(u64),
    /// On from where those who read the same stream are.
    Stream(usize),
    /// Anywhere.
    Anywhere,
}

/// How far each of the streams is that several tasks read.
pub(crate) type Streams = [u64; 2];

impl Habit {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let ops = [
            Ops::All,
            Ops::All,
            Ops::Reads,
            Ops::Reads,
            Ops::Reads,
            Ops::Writes,
            Ops::SyncWrites,
            Ops::NoIdleWrites,
        ];
        let places = [
            Place::Shared,
            Place::Shared,
            Place::Shared,
            Place::Shared,
            Place::Onward(FAR * (3 + random.below(40))),
            Place::Onward(FAR * (3 + random.below(40))),
            Place::Stream(0),
            Place::Stream(0),
            Place::Stream(1),
            Place::Stream(1),
            Place::Anywhere,
        ];
        Self { ops: random.pick(&ops), place: random.pick(&places) }
    }

    pub(crate) fn op(self, random: &mut Random) -> Op {
        match self.ops {
            Ops::All => {
                random.pick(&[Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush])
            }
            Ops::Reads => Op::Read,
            Ops::Writes | Ops::SyncWrites | Ops::NoIdleWrites => Op::Write,
        }
    }

    pub(crate) fn flags(self, random: &mut Random) -> BioFlags {
        let prio = if random.one_in(16) { BioFlags::PRIO } else { BioFlags::empty() };
        let own = match self.ops {
            Ops::All => match random.below(20) {
                0 => BioFlags::FUA,
                1 => BioFlags::PREFLUSH,
                2 => BioFlags::NO_MERGE,
                3..8 => BioFlags::SYNC,
                8..10 => BioFlags::SYNC | BioFlags::IDLE,
                _ => BioFlags::empty(),
            },
            Ops::Reads | Ops::Writes => BioFlags::empty(),
            Ops::SyncWrites => BioFlags::SYNC | BioFlags::IDLE,
            Ops::NoIdleWrites => BioFlags::SYNC,
        };
        own | prio
    }

    /// Where its next bio is.
    pub(crate) fn range(
        &mut self,
        random: &mut Random,
        streams: &mut Streams,
    ) -> (Sector, SectorCount) {
        let units = match self.place {
            Place::Shared => 1 + random.below(3),
            _ => random.pick(&[1, 2, 2, 16]),
        };
        let sectors = 8 * units;
        let start = match &mut self.place {
            Place::Shared => 8 * random.below(UNITS),
            Place::Anywhere => 8 * random.below(FAR),
            Place::Onward(at) => step(at, sectors),
            Place::Stream(stream) => {
                FAR * (1 + *stream as u64) + step(&mut streams[*stream], sectors)
            }
        };
        (Sector(start), SectorCount(u32::try_from(sectors).expect("a few sectors")))
    }
}

/// Takes the next `sectors`.
fn step(at: &mut u64, sectors: u64) -> u64 {
    let start = *at;
    *at += sectors;
    start
}
