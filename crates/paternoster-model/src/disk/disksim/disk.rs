//! A `disksim_disk` block: the buffer, the overheads, and what the disk does with them.
//!
//! `Buffer continuous read` is, by number: 0 no reading ahead, 1 to the end of the track, 2 to the
//! end of the cylinder, 3 until the segment is full, 4 to the end of the track. The measured disks
//! show that 3 goes on beyond a cylinder, and that a 4 which did so would answer too many reads.
//!
//! `Fast write level`: 0 no write ends before it is on the medium; 1 one does where nothing else
//! waits to be written, or that goes on where that ends; 2 every one does, others' data first.

use super::super::cache::Segmentation;
use super::super::head::Begin;
use super::super::link::Link;
use super::super::ncq::QueueParameters;
use super::super::parameters::{Behind, Buffer, Overheads, Parameters};
use super::super::read_ahead::{ReadAheadPolicy, Until};
use super::super::units::{Millis, whole};
use super::super::write_back::{WriteBack, WriteBackPolicy};
use super::fields::Fields;
use super::model;
use crate::parameter_file::ParameterError;

/// Reads a disk, whose mechanics and layout are `model`, and which has `bus` on its way to the
/// host.
pub(super) fn disk(
    fields: Fields<'_>,
    model: Fields<'_>,
    bus: Link,
) -> Result<Parameters, ParameterError> {
    let own = fields.time("Bulk sector transfer time")?;
    Ok(Parameters {
        name: fields.block.name.clone(),
        layout: model::layout(model)?,
        mechanics: model::mechanics(model)?,
        // Whatever is slowest sets the pace.
        link: Link {
            read_sector: bus.read_sector.max(own),
            write_sector: bus.write_sector.max(own),
        },
        overheads: overheads(fields)?,
        buffer: buffer(fields)?,
        // DiskSim's disks serve what they queue in the order of arrival by default.
        queue: QueueParameters {
            depth: fields.whole_or("Max queue length", 1, 0..=65_536)?.max(1),
            longest_wait: Millis::ZERO,
        },
    })
}

fn overheads(fields: Fields<'_>) -> Result<Overheads, ParameterError> {
    let scale = match fields.value("Time scale for overheads") {
        Some(_) => fields.number("Time scale for overheads", 0.0..=1e5)?,
        None => 1.0,
    };
    let time = |key: &str| Ok::<_, ParameterError>(fields.time(key)? * scale);
    let behind = |read: &str, write: &str| {
        Ok::<_, ParameterError>(Behind { read: time(read)?, write: time(write)? })
    };
    let (mut write_disconnect, mut write_seek) = (Millis::ZERO, Millis::ZERO);
    if fields.flag("Extra write disconnect")? {
        let command = time("Extradisc command overhead")?;
        write_seek = command + time("Extradisc seek delta")?;
        write_disconnect = command
            + time("Extradisc disconnect overhead")?
            + time("Extradisc inter-disconnect delay")?;
    }
    Ok(Overheads {
        command: time("Per-request overhead time")?,
        read_hit: behind("Read hit over. after read", "Read hit over. after write")?,
        read_miss: behind("Read miss over. after read", "Read miss over. after write")?,
        write_hit: behind("Write hit over. after read", "Write hit over. after write")?,
        write_miss: behind("Write miss over. after read", "Write miss over. after write")?,
        read_disconnect: behind("Read disconnect afterread", "Read disconnect afterwrite")?,
        reselect: time("First reselect overhead")?,
        data_preparation: time("Data preparation overhead")?,
        write_disconnect,
        write_seek,
        read_completion: time("Read completion overhead")?,
        write_completion: time("Write completion overhead")?,
    })
}

fn buffer(fields: Fields<'_>) -> Result<Buffer, ParameterError> {
    let begin = |key: &str| {
        Ok::<_, ParameterError>(if fields.flag(key)? { Begin::Anywhere } else { Begin::AtFirst })
    };
    Ok(Buffer {
        segmentation: Segmentation {
            segments: fields.whole("Number of buffer segments", 1..=1_000_000)? as usize,
            sectors: fields.whole("Segment size (in blks)", 1..=1_000_000_000)?.into(),
            write_segments: fields
                .whole_or("Maximum number of write segments", 1, 0..=1_000_000)?
                .max(1) as usize,
            writes_apart: fields.flag("Use separate write segment")?,
        },
        answers_reads: fields.whole_or("Enable caching in buffer", 1, 0..=2)? > 0,
        answers_reads_of_written: fields.flag("Allow read hits on write data")?,
        read_begin: begin("Immediate buffer read")?,
        write_begin: begin("Immediate buffer write")?,
        read_mark: fields.number_or_0("High (read) water mark", 0.0..=1.0)?,
        write_mark: fields.number_or_0("Low (write) water mark", 0.0..=1.0)?,
        marks_of_command: fields.flag("Set watermark by reqsize")?,
        read_ahead: read_ahead(fields)?,
        write_back: WriteBackPolicy {
            mode: match fields.whole_or("Fast write level", 0, 0..=2)? {
                0 => WriteBack::Off,
                1 => WriteBack::Appending,
                _ => WriteBack::OneRun,
            },
            idle: Millis::ZERO,
            runs: 1,
            joins: fields.flag("Combine seq writes")?,
        },
    })
}

fn read_ahead(fields: Fields<'_>) -> Result<ReadAheadPolicy, ParameterError> {
    const BLOCKS: std::ops::RangeInclusive<f64> = -1.0..=1e9;
    let most = fields.number_or_0("Maximum read-ahead (blks)", BLOCKS)?;
    Ok(ReadAheadPolicy {
        until: match fields.whole_or("Buffer continuous read", 0, 0..=4)? {
            0 => Until::Nothing,
            2 => Until::Cylinder,
            3 => Until::Segment,
            _ => Until::Track,
        },
        most: if most < 0.0 { u64::MAX } else { whole(most) },
        least: whole(fields.number_or_0("Minimum read-ahead (blks)", BLOCKS)?),
        over_requested: fields.flag("Read-ahead over requested")?,
        after_hit: fields.flag("Read-ahead on idle hit")?,
        keeps_passed: fields.flag("Read any free blocks")?,
        stops_in_sector: fields.flag("Stop prefetch in sector")?,
        write_stops: fields.flag("Write hit stop prefetch")?,
    })
}
