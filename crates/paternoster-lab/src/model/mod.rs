//! Models of devices: they take commands, and say when each completes and where its time went.
//!
//! ```text
//!   submit(now, command) ──▶ ┌───────┐ ──▶ poll_timeout: when to ask next
//!                            │ Model │
//!   poll(now)            ──▶ └───────┘ ──▶ a command that completed, until there is none
//! ```
//!
//! A model reads no clock and draws no random number but from its own stream, whose seed is an
//! argument: the same commands at the same times complete at the same times.

mod array;
mod devices;
pub mod disk;
pub mod parameter_file;
mod servers;
mod ssd;
mod table;

use paternoster::{Instant, Nanos, Sector, SectorCount};

pub use array::{
    Array, ArrayParameters, Prefetch, Segmentation, Striping, WriteBack as ArrayWriteBack,
};
pub use devices::{DeviceError, DeviceTexts, device_names, open_device, read_device};
pub(crate) use devices::{open_device_text, whole_device_file};
pub use servers::{Servers, ServersParameters};
pub use ssd::{QueueParameters, Ssd, SsdParameters, Varying};
pub use table::{Table, TableParameters, Times};

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
}

/// A command that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the command.
    pub tag: u32,
    /// Where its time in the device went.
    pub spent: Spent,
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

/// A model of a device.
pub trait Model {
    /// How many commands it takes at once.
    fn depth(&self) -> u32;

    /// Its end: the sector behind its last one.
    fn end(&self) -> Sector;

    /// Whether it has moving parts, as `queue/rotational` says.
    fn rotational(&self) -> bool;

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

impl Model for Box<dyn Model> {
    fn depth(&self) -> u32 {
        self.as_ref().depth()
    }

    fn end(&self) -> Sector {
        self.as_ref().end()
    }

    fn rotational(&self) -> bool {
        self.as_ref().rotational()
    }

    fn takes(&self, op: Op) -> bool {
        self.as_ref().takes(op)
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.as_mut().submit(now, command);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.as_ref().poll_timeout()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.as_mut().poll(now)
    }
}
