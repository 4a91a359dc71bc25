//! A solid-state drive from a TOML file, such as `devices/nvme-980pro.toml`.

use paternoster::{Nanos, Sector, SectorCount};

use super::{QueueParameters, SsdParameters, Varying};
use crate::parameter_file::{Keys, ParameterError, micros};

type Read<T> = Result<T, ParameterError>;

/// Times in µs, more than any drive takes for anything.
const MICROS: std::ops::RangeInclusive<f64> = 0.0..=1e7;
/// 2³².
const ALL: f64 = 4_294_967_296.0;

impl SsdParameters {
    /// Reads the keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Read<Self> {
        let depth = keys.small("depth", 1..=65_536)?;
        let end = Sector(keys.whole("sectors", 8..=1 << 50)?);
        let (queue, streams) = if keys.has("queue") {
            keys.table("queue", queue)?
        } else {
            (QueueParameters { active: depth, longest_wait: Nanos::ZERO }, 0)
        };
        let (controller, fixed) = keys.table("controller", |keys| {
            Ok((micros(keys.number("busy_us", MICROS)?), micros(keys.number("fixed_us", MICROS)?)))
        })?;
        let dies = keys.table("dies", Dies::read)?;
        let (buffer, buffered, flush) = keys.table("write_buffer", |keys| {
            let chunks = keys.small("chunks", 1..=1 << 30)?;
            let flush = micros(keys.number_or("flush_us", 0.0, MICROS)?);
            Ok((chunks, micros(keys.number("write_us", MICROS)?), flush))
        })?;
        let link = keys.table("link", |keys| keys.whole("mb_per_s", 1..=1_000_000))?;
        Ok(Self {
            depth,
            queue,
            streams,
            end,
            controller,
            fixed,
            dies: dies.count,
            chunk: dies.chunk,
            read: dies.read,
            joined_read: dies.joined_read,
            idle_hits: dies.idle_hits,
            idle_hit: dies.idle_hit,
            rare_reads: dies.rare_reads,
            rare_read: dies.rare_read,
            program: dies.program,
            suspends: dies.suspends,
            buffer,
            buffered,
            flush,
            link_bytes_per_s: link * 1_000_000,
        })
    }
}

/// The drive's own queue, and how many streams it remembers.
fn queue(keys: &mut Keys<'_>) -> Read<(QueueParameters, u32)> {
    let parameters = QueueParameters {
        active: keys.small("active", 1..=65_536)?,
        longest_wait: micros(keys.number("longest_wait_ms", 0.0..=1e5)? * 1000.0),
    };
    Ok((parameters, keys.small("streams", 0..=4096)?))
}

/// The table of the dies.
struct Dies {
    count: u32,
    chunk: SectorCount,
    read: Varying,
    joined_read: Varying,
    idle_hits: u32,
    idle_hit: Nanos,
    rare_reads: u32,
    rare_read: Nanos,
    program: Nanos,
    suspends: bool,
}

impl Dies {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a part of 2³²
    fn read(keys: &mut Keys<'_>) -> Read<Self> {
        let rare = keys.number("rare_reads", 0.0..=0.5)?;
        let idle_hits = keys.number_or("idle_hits", 0.0, 0.0..=0.9)?;
        let read_us = keys.number("read_us", MICROS)?;
        let deviation = micros(keys.number("read_deviation_us", MICROS)?);
        let joined_us = keys.number_or("joined_read_us", read_us, MICROS)?;
        Ok(Self {
            count: keys.small("count", 1..=100_000)?,
            chunk: SectorCount(keys.small("chunk_sectors", 1..=65_536)?),
            read: Varying { mean: micros(read_us), deviation },
            joined_read: Varying { mean: micros(joined_us), deviation },
            idle_hits: (idle_hits * ALL) as u32,
            idle_hit: micros(keys.number_or("idle_hit_us", 0.0, MICROS)?),
            rare_reads: (rare * ALL) as u32,
            rare_read: micros(keys.number("rare_read_us", MICROS)?),
            program: micros(keys.number("program_us", MICROS)?),
            suspends: keys.flag("suspends_programs")?,
        })
    }
}
