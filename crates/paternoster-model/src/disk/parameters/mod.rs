//! All that is known of a disk, whatever file it was read from.

mod from_toml;

use super::cache::Segmentation;
use super::head::Begin;
use super::layout::Layout;
use super::link::Link;
use super::ncq::QueueParameters;
use super::read_ahead::ReadAheadPolicy;
use super::seek::SeekCurve;
use super::units::Millis;
use super::write_back::WriteBackPolicy;
use crate::Op;

/// A disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Its name.
    pub name: String,
    /// Where its sectors are.
    pub layout: Layout,
    /// What moves.
    pub mechanics: Mechanics,
    /// To and from the host.
    pub link: Link,
    /// What commands take beside positioning and data.
    pub overheads: Overheads,
    /// The buffer.
    pub buffer: Buffer,
    /// How it queues commands.
    pub queue: QueueParameters,
}

/// What moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanics {
    /// Revolutions a minute.
    pub rpm: f64,
    /// The arm.
    pub seek: SeekCurve,
    /// From one surface to another of the same cylinder.
    pub head_switch: Millis,
    /// What seeks and switches take longer before a write; less than nothing if they are shorter.
    pub write_settle: Millis,
}

/// What commands take beside positioning and data. The pairs are for a command behind a read and
/// behind a write.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overheads {
    /// Every command, first of all.
    pub command: Millis,
    /// A read whose data are in the buffer, before they leave.
    pub read_hit: Behind,
    /// Another read, before the head moves.
    pub read_miss: Behind,
    /// A write that ends when it is in the buffer, before its data arrive.
    pub write_hit: Behind,
    /// Another write, before its data arrive and the head moves.
    pub write_miss: Behind,
    /// A read that misses, before its data leave, while the head moves.
    pub read_disconnect: Behind,
    /// A command whose data were not at hand, before they leave, while the head moves.
    pub reselect: Millis,
    /// Any command, before its data leave or arrive, while the head moves.
    pub data_preparation: Millis,
    /// A write that ends on the medium: what its data arrive later, while the head moves.
    pub write_disconnect: Millis,
    /// The same, what the head moves later.
    pub write_seek: Millis,
    /// A read, when its data have left.
    pub read_completion: Millis,
    /// A write that ends on the medium, when it is there.
    pub write_completion: Millis,
}

/// A time that depends on the command before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Behind {
    /// Behind a read.
    pub read: Millis,
    /// Behind a write.
    pub write: Millis,
}

impl Behind {
    /// The time behind a command of this kind.
    pub(super) fn after(self, last: Op) -> Millis {
        if last == Op::Write { self.write } else { self.read }
    }
}

/// The buffer, and what the disk does with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    /// How it is divided.
    pub segmentation: Segmentation,
    /// Data in it answer reads.
    pub answers_reads: bool,
    /// Data that were written answer reads, too.
    pub answers_reads_of_written: bool,
    /// Where on the track a read begins.
    pub read_begin: Begin,
    /// Where on the track a write begins.
    pub write_begin: Begin,
    /// What part of a read has to be in the buffer before its data leave.
    pub read_mark: f64,
    /// What part of a write has to be in the buffer before it goes to the medium.
    pub write_mark: f64,
    /// The parts are of the command; otherwise of a segment.
    pub marks_of_command: bool,
    /// Reading ahead.
    pub read_ahead: ReadAheadPolicy,
    /// Writing back.
    pub write_back: WriteBackPolicy,
}
