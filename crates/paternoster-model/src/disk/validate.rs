//! How near a disk's modelled service times are to measured ones.
//!
//! A trace has one request outstanding at a time: the next one arrives when a measured gap has
//! passed since the last one completed. The error is that of the two distributions of service
//! times: the root of the mean square of the horizontal distance between them.

use paternoster::{Instant, Nanos, Sector, SectorCount};
use thiserror::Error;

use super::super::{Chance, Command, Model, Op};
use super::layout::LayoutError;
use super::parameters::Parameters;
use super::units::{Millis, real};
use super::{Disk, range};

/// A request whose service time was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// A read or a write.
    pub op: Op,
    /// Its first sector.
    pub sector: Sector,
    /// How many it has.
    pub sectors: SectorCount,
    /// What the disk took.
    pub service: Nanos,
    /// From its completion to the next one's arrival.
    pub gap: Nanos,
}

/// How near a model is to the measured disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Validation {
    /// How many requests there were.
    pub requests: usize,
    /// The distance of the distributions of service times, in ms.
    pub rms_ms: f64,
    /// The mean service time of the model, in ms.
    pub mean_ms: f64,
    /// The mean service time of the disk, in ms.
    pub measured_mean_ms: f64,
}

/// Why a trace does not fit a disk.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ValidationError {
    /// There is nothing to compare.
    #[error("the trace has no requests")]
    Empty,
    /// A request is not on the disk.
    #[error("request {number} ends at sector {end}, the disk at {disk_end}")]
    BeyondEnd {
        /// The request, from 1.
        number: usize,
        /// Its end.
        end: u64,
        /// The disk's end.
        disk_end: u64,
    },
    /// The disk's layout is impossible.
    #[error("{0}")]
    Layout(#[from] LayoutError),
}

/// Runs `trace` on a disk of these parameters, and compares the service times.
pub fn validate(
    trace: &[Measured],
    parameters: &Parameters,
) -> Result<Validation, ValidationError> {
    if trace.is_empty() {
        return Err(ValidationError::Empty);
    }
    let mut disk = Disk::new(parameters.clone())?;
    let mut now = Instant::START;
    let mut modelled = Vec::with_capacity(trace.len());
    for (index, request) in trace.iter().enumerate() {
        let command = Command {
            tag: 0,
            op: request.op,
            durable: false,
            sector: request.sector,
            sectors: request.sectors,
            chance: Chance::default(),
        };
        let (end, disk_end) = (range(&command).map_or(0, |range| range.end.0), disk.end().0);
        if end > disk_end {
            return Err(ValidationError::BeyondEnd { number: index + 1, end, disk_end });
        }
        disk.submit(now, command);
        let done = disk.poll_timeout().expect("a command is being served");
        disk.poll(done).expect("it has completed by then");
        modelled.push(millis(done.saturating_since(now)));
        now = done + request.gap;
    }
    let measured = trace.iter().map(|request| millis(request.service)).collect();
    Ok(compare(modelled, measured))
}

fn compare(mut modelled: Vec<f64>, mut measured: Vec<f64>) -> Validation {
    modelled.sort_by(f64::total_cmp);
    measured.sort_by(f64::total_cmp);
    let requests = modelled.len();
    let mean = |sum: f64| sum / real(requests as u64);
    let squares = modelled.iter().zip(&measured).map(|(a, b)| (a - b) * (a - b));
    Validation {
        requests,
        rms_ms: mean(squares.sum()).sqrt(),
        mean_ms: mean(modelled.iter().sum()),
        measured_mean_ms: mean(measured.iter().sum()),
    }
}

fn millis(span: Nanos) -> f64 {
    real(span.as_nanos()) / 1e6
}

/// A line that is no request of a trace.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {field} is {found}, which must be {allowed}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// Which field of the line.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
    /// What may.
    pub allowed: &'static str,
}

/// Reads a trace: a line `R|W Hit|Miss BLOCK SECTORS SERVICE_us GAP_us` for each request. The
/// second word is not used, and empty lines are left out.
pub fn read_trace(text: &str) -> Result<Vec<Measured>, TraceError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| Line { number: index + 1, words: line }.measured()).collect()
}

/// A line of a trace.
#[derive(Clone, Copy)]
struct Line<'t> {
    number: usize,
    words: &'t str,
}

impl Line<'_> {
    fn measured(self) -> Result<Measured, TraceError> {
        const NOTHING: &str = "nothing";
        let mut words = self.words.split_ascii_whitespace();
        let mut next = || words.next().unwrap_or(NOTHING);
        let op = match next() {
            "R" => Op::Read,
            "W" => Op::Write,
            found => return Err(self.wrong("the operation", found, "R or W")),
        };
        next();
        let (sector, sectors) = (next(), next());
        let (service, gap) = (next(), next());
        match next() {
            NOTHING => {}
            more => return Err(self.wrong("what follows the gap", more, NOTHING)),
        }
        Ok(Measured {
            op,
            sector: match sector.parse() {
                Ok(number) if number <= u64::MAX / 2 => Sector(number),
                _ => return Err(self.wrong("the block", sector, "a whole number below 2^63")),
            },
            sectors: match sectors.parse() {
                Ok(count) if count > 0 => SectorCount(count),
                _ => {
                    let allowed = "a whole number from 1 to 4294967295";
                    return Err(self.wrong("the count of sectors", sectors, allowed));
                }
            },
            service: self.time("the service time", service)?,
            gap: self.time("the gap", gap)?,
        })
    }

    fn time(self, field: &'static str, text: &str) -> Result<Nanos, TraceError> {
        match text.parse::<f64>() {
            Ok(micros) if (0.0..1e12).contains(&micros) => Ok(Millis(micros / 1e3).to_nanos()),
            _ => Err(self.wrong(field, text, "microseconds, at least 0 and less than 1e12")),
        }
    }

    fn wrong(self, field: &'static str, found: &str, allowed: &'static str) -> TraceError {
        TraceError { line: self.number, field, found: found.to_owned(), allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_between_distributions_and_not_between_requests() {
        let same = compare(vec![1.0, 2.0, 3.0], vec![3.0, 1.0, 2.0]);
        assert_eq!((same.rms_ms, same.mean_ms), (0.0, 2.0));
        // The distances are 3, 0 and 0: the mean square is 3.
        let apart = compare(vec![5.0, 2.0, 3.0], vec![3.0, 8.0, 2.0]);
        assert_eq!((apart.rms_ms, apart.measured_mean_ms), (3.0_f64.sqrt(), 13.0 / 3.0));
    }

    #[test]
    fn line_of_a_trace_is_read() {
        let line = "W Hit    4583176   4    663.50000  45422.00000";
        let expected = Measured {
            op: Op::Write,
            sector: Sector(4583176),
            sectors: SectorCount(4),
            service: Nanos::new(663_500),
            gap: Nanos::from_micros(45_422),
        };
        assert_eq!(read_trace(&format!("\n{line}\n")), Ok(vec![expected]));
    }

    #[test]
    fn line_that_is_no_request_is_refused_by_its_field() {
        for (line, field) in [
            ("X Hit 1 2 3 4", "the operation"),
            ("R Hit -1 2 3 4", "the block"),
            ("R Hit 1 0 3 4", "the count of sectors"),
            ("R Hit 1 2 NaN 4", "the service time"),
            ("R Hit 1 2 3", "the gap"),
            ("R Hit 1 2 3 4 5", "what follows the gap"),
        ] {
            let refused = read_trace(&format!("\n{line}")).expect_err(line);
            assert_eq!((refused.line, refused.field), (2, field), "{line}");
        }
    }
}
