//! A disk with moving parts.
//!
//! ```text
//!   submit ─▶ waiting ─▶ ncq: which next ─▶ serve ──▶ overhead
//!                                            │  in the buffer? cache
//!                                            │  head: seek, rotation, transfer
//!                                            │  link: to the host, meanwhile
//!                                            ▼
//!                                          completes        idle: read_ahead, write_back
//! ```
//!
//! Rotation is by the clock: where a sector is at any time follows from `geometry` and `rotation`,
//! nothing is drawn. The disk serves one command at a time; reading ahead and writing back happen
//! between commands, and are computed when the next command comes.

mod cache;
pub mod disksim;
mod geometry;
mod head;
mod layout;
mod link;
mod ncq;
mod parameters;
mod read_ahead;
mod rotation;
mod seek;
mod serve;
mod serve_write;
pub(crate) mod units;
mod validate;
mod write_back;

use paternoster::{Instant, Sector};

use super::{Command, Completion, Model, Op};
use geometry::Geometry;
use head::{Head, Range};
use ncq::Waiting;
use read_ahead::ReadAhead;
use rotation::Spindle;

pub use cache::Segmentation;
pub use head::Begin;
pub use layout::{Layout, LayoutError, Sparing, TrackOrder, Zone};
pub use link::Link;
pub use ncq::QueueParameters;
pub use parameters::{Behind, Buffer, Mechanics, Overheads, Parameters};
pub use read_ahead::{ReadAheadPolicy, Until};
pub use seek::{Lee, RootThenLine, SeekCurve};
pub use units::Millis;
pub use validate::{Measured, TraceError, Validation, ValidationError, read_trace, validate};
pub use write_back::{WriteBack, WriteBackPolicy};

/// A disk.
#[derive(Clone, Debug)]
pub struct Disk {
    parameters: Parameters,
    geometry: Geometry,
    head: Head,
    segments: cache::Segments,
    read_ahead: Option<ReadAhead>,
    dirty: write_back::Dirty,
    /// When the head is free of all that was asked and written back.
    free_at: Millis,
    /// When the disk last had a command.
    idle_since: Millis,
    /// What the command before was.
    last: Op,
    /// In the order of arrival.
    waiting: Vec<Waiting>,
    active: Option<Active>,
}

/// The command that is being served.
#[derive(Clone, Copy, Debug)]
struct Active {
    done: Millis,
    completion: Completion,
}

impl Disk {
    /// A disk at rest, its head on the first track. Fails if the layout is impossible.
    pub fn new(parameters: Parameters) -> Result<Self, LayoutError> {
        let mechanics = &parameters.mechanics;
        Ok(Self {
            geometry: Geometry::new(parameters.layout.clone())?,
            head: Head {
                spindle: Spindle::from_rpm(mechanics.rpm),
                seek: mechanics.seek.clone(),
                switch: mechanics.head_switch,
                write_settle: mechanics.write_settle,
                cylinder: 0,
                surface: 0,
            },
            segments: cache::Segments::new(parameters.buffer.segmentation),
            read_ahead: None,
            dirty: write_back::Dirty::default(),
            free_at: Millis::ZERO,
            idle_since: Millis::ZERO,
            last: Op::Read,
            waiting: Vec::new(),
            active: None,
            parameters,
        })
    }

    /// What it was made of.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Serves the next command, if there is one and none is being served. The disk is free from
    /// `free` on.
    fn start(&mut self, free: Millis) {
        let Some(oldest) = self.waiting.first().filter(|_| self.active.is_none()) else { return };
        let now = free.max(oldest.arrived);
        self.be_idle_until(now);
        let mut waiting = std::mem::take(&mut self.waiting);
        let next = ncq::take_next(&mut waiting, &self.parameters.queue, now, |command| {
            self.positioning(command, now)
        });
        self.waiting = waiting;
        if let Some(next) = next {
            let served = self.serve(&next.command, now.max(next.arrived));
            let completion = Completion { tag: next.command.tag, spent: served.spent };
            self.active = Some(Active { done: served.done, completion });
        }
    }
}

/// The sectors of a command; none if it has none.
fn range(command: &Command) -> Option<Range> {
    let range = Range { first: command.sector, end: command.sector + command.sectors };
    (command.op != Op::Flush && range.first < range.end).then_some(range)
}

impl Model for Disk {
    fn depth(&self) -> u32 {
        self.parameters.queue.depth
    }

    fn end(&self) -> Sector {
        self.geometry.end()
    }

    fn rotational(&self) -> bool {
        true
    }

    /// No discards: a disk of this kind has nothing to do for one, and does not know the command.
    fn takes(&self, op: Op) -> bool {
        op != Op::Discard
    }

    fn submit(&mut self, now: Instant, command: Command) {
        assert!(self.takes(command.op), "a disk takes no {:?}", command.op);
        let in_device = self.waiting.len() + usize::from(self.active.is_some());
        assert!(in_device < self.depth() as usize, "the device takes {} commands", self.depth());
        let end = range(&command).map_or(Sector(0), |range| range.end);
        assert!(end <= self.end(), "the command ends at {end:?}, the device at {:?}", self.end());
        let now = Millis::from_instant(now);
        self.waiting.push(Waiting { command, arrived: now });
        self.start(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.active.map(|active| active.done.to_instant())
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        let active = self.active.filter(|active| active.done.to_instant() <= now)?;
        self.active = None;
        self.start(active.done);
        Some(active.completion)
    }
}
