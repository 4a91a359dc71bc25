//! Models of devices: they take commands, and say when each completes and where its time went.
//!
//! ```text
//!   submit(now, command) ──▶ ┌───────┐ ──▶ poll_timeout: when to ask next
//!                            │ Model │
//!   poll(now)            ──▶ └───────┘ ──▶ a command that completed, until there is none
//! ```
//!
//! A model reads no clock and draws no random number but from its own seed and the [`Chance`] of
//! each command: the same commands at the same times complete at the same times.

mod array;
mod batch;
mod channels;
mod devices;
pub mod disk;
mod ends;
mod flash;
mod input;
mod kind;
pub mod parameter_file;
mod random;
mod servers;
mod service;
mod slices;
mod ssd;
mod stages;
mod table;
mod timed;
mod volume;

use paternoster::{Instant, Nanos, Sector, SectorCount};

use parameter_file::{Keys, ParameterError};

pub use array::{
    Array, ArrayParameters, Prefetch, Segmentation, Striping, WriteBack as ArrayWriteBack,
};
pub use batch::BatchParameters;
pub use channels::ChannelsParameters;
pub use devices::{
    DeviceError, DeviceTexts, describe_device, describe_text, device_names, open_device,
    open_device_text, read_device, whole_device_file,
};
pub use flash::FlashParameters;
pub use input::{read_input, read_input_text};
pub use kind::{Described, Kind, Stages};
pub use random::{Chance, Draws, Who};
pub use servers::{Crowd, LinearSeek, Pace, Servers, ServersParameters};
pub use service::{Service, Spread};
pub use slices::SlicesParameters;
pub use ssd::{QueueParameters, Ssd, SsdParameters, Varying};
pub use stages::{Behind, Latency, Lateness, Pauses, PausesParameters, Stage};
pub use table::{Table, TableParameters, Times};
pub use volume::VolumeParameters;

/// The example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads its sectors.
    Read,
    /// Writes its sectors.
    Write,
    /// Discards its sectors.
    Discard,
    /// Makes all writes that have completed durable. It has no sectors.
    Flush,
}

/// A command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Names it in its completion. No two commands in the device have the same.
    pub tag: u32,
    /// What it does.
    pub op: Op,
    /// It completes only when what it wrote is durable (FUA).
    pub durable: bool,
    /// Its first sector.
    pub sector: Sector,
    /// How many it has.
    pub sectors: SectorCount,
    /// What the device draws for it.
    pub chance: Chance,
}

/// A command that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the command.
    pub tag: u32,
    /// Where its time in the device went.
    pub spent: Spent,
}

impl Completion {
    /// One whose time is not told apart.
    fn of(tag: u32) -> Self {
        Self { tag, spent: Spent::default() }
    }
}

/// Where the time of a command in the device went. The sum is all of it, but for what it waited in
/// the device behind other commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Moving the head to another cylinder or another surface.
    pub seek: Nanos,
    /// Waiting for the sector to come under the head.
    pub rotation: Nanos,
    /// Moving data: from or to the medium, and over the link.
    pub transfer: Nanos,
    /// Everything else that the device does for it.
    pub overhead: Nanos,
}

/// What a device has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Commands taken at once, those that wait included.
    pub depth: u32,
    /// The sector behind the last one.
    pub end: Sector,
}

/// More commands than any scheduler should give it, and so many sectors that requests do not merge
/// by chance.
impl Default for Room {
    fn default() -> Self {
        Self { depth: 1024, end: Sector(1 << 40) }
    }
}

impl Room {
    /// Reads `depth` and `sectors`.
    fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let depth = keys.small("depth", 1..=65_536)?;
        Ok(Self { depth, end: Sector(keys.whole("sectors", 8..=1 << 50)?) })
    }
}

/// The operation by which a device writes zeroes: a discard where it takes those, else a write.
pub fn op_of_zeroes(model: &(impl Model + ?Sized)) -> Op {
    if model.takes(Op::Discard) { Op::Discard } else { Op::Write }
}

/// A model of a device.
pub trait Model {
    /// How many commands it takes at once: unless it says so, more than it is given.
    fn depth(&self) -> u32 {
        Room::default().depth
    }

    /// Its end: the sector behind its last one.
    fn end(&self) -> Sector {
        Room::default().end
    }

    /// Whether it has moving parts, as `queue/rotational` says. Few have.
    fn rotational(&self) -> bool {
        false
    }

    /// Whether it takes commands of that operation.
    fn takes(&self, op: Op) -> bool {
        let _ = op;
        true
    }

    /// Gives it a command.
    ///
    /// # Panics
    ///
    /// If it has [`depth`](Self::depth) commands, the command ends beyond [`end`](Self::end), or it
    /// does not [take](Self::takes) the operation.
    fn submit(&mut self, now: Instant, command: Command);

    /// When [`poll`](Self::poll) wants to be called, if nothing else happens before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Lets it do what is due by `now`. Returns a command that has completed, until there is none.
    fn poll(&mut self, now: Instant) -> Option<Completion>;
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn depth(&self) -> u32 {
        (**self).depth()
    }

    fn end(&self) -> Sector {
        (**self).end()
    }

    fn rotational(&self) -> bool {
        (**self).rotational()
    }

    fn takes(&self, op: Op) -> bool {
        (**self).takes(op)
    }

    fn submit(&mut self, now: Instant, command: Command) {
        (**self).submit(now, command);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        (**self).poll(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many microseconds after the start.
    pub(crate) fn at(us: u64) -> Instant {
        Instant::START + Nanos::from_micros(us)
    }

    pub(crate) fn read(tag: u32) -> Command {
        command(tag, Op::Read)
    }

    pub(crate) fn write(tag: u32) -> Command {
        command(tag, Op::Write)
    }

    fn command(tag: u32, op: Op) -> Command {
        let (sector, sectors) = (Sector(0), SectorCount(8));
        Command { tag, op, durable: false, sector, sectors, chance: Chance::of(0, tag.into()) }
    }

    /// All completions that are to come, by tag, with their times in microseconds.
    pub(crate) fn ends(device: &mut impl Model) -> Vec<(u32, u64)> {
        let mut ends = Vec::new();
        while let Some(now) = device.poll_timeout() {
            while let Some(done) = device.poll(now) {
                ends.push((done.tag, now.since_start().as_nanos() / 1000));
            }
        }
        ends
    }
}
