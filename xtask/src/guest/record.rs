//! What the clients in the guest did: written by them, line by line, and read by the judge.
//!
//! One thread has all clients, so the lines are in one order: a request's line is there before a
//! byte of it is sent, that of an answer after the answer has come.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};

use super::log::SECTOR;

/// The last line: without it the record is not whole.
const END: &str = "end";

/// Something that a client did or saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The request of this number, from 1, is about to be sent.
    Asked(u64, Ask),
    /// It was answered, without an error.
    Answered(u64),
    /// This mark is about to be set.
    Mark(u64),
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Everything that was answered is to be durable.
    Flush,
    /// Sectors are to be changed.
    Change {
        /// How.
        how: Change,
        /// The first.
        sector: u64,
        /// How many.
        sectors: u64,
        /// Whether they are to be durable when it is answered.
        fua: bool,
    },
}

/// What becomes of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// They hold what [`fill`] makes of the request's number.
    Write,
    /// They hold zeroes.
    Zero,
    /// They hold anything.
    Trim,
}

/// The content of a sector that the write of that number has written: number and sector, repeated.
pub(super) fn fill(number: u64, sector: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    for chunk in bytes.chunks_exact_mut(16) {
        chunk[..8].copy_from_slice(&number.to_le_bytes());
        chunk[8..].copy_from_slice(&sector.to_le_bytes());
    }
    bytes
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked(number, Ask::Flush) => write!(f, "ask {number} flush"),
            Self::Asked(number, Ask::Change { how, sector, sectors, fua }) => {
                let how = match how {
                    Change::Write => "write",
                    Change::Zero => "zero",
                    Change::Trim => "trim",
                };
                let fua = if *fua { " fua" } else { "" };
                write!(f, "ask {number} {how} {sector} {sectors}{fua}")
            }
            Self::Answered(number) => write!(f, "answered {number}"),
            Self::Mark(number) => write!(f, "mark {number}"),
        }
    }
}

impl FromStr for Event {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let (ask, how, place, fua) = match words[..] {
            ["answered", number] => return Ok(Self::Answered(number.parse()?)),
            ["mark", number] => return Ok(Self::Mark(number.parse()?)),
            ["ask", number, "flush"] => return Ok(Self::Asked(number.parse()?, Ask::Flush)),
            ["ask", number, how, sector, sectors] => (number, how, (sector, sectors), false),
            ["ask", number, how, sector, sectors, "fua"] => (number, how, (sector, sectors), true),
            _ => bail!("{line:?} is no line of a record"),
        };
        let how = match how {
            "write" => Change::Write,
            "zero" => Change::Zero,
            "trim" => Change::Trim,
            _ => bail!("{how:?} is no change"),
        };
        let (sector, sectors) = (place.0.parse()?, place.1.parse()?);
        Ok(Self::Asked(ask.parse()?, Ask::Change { how, sector, sectors, fua }))
    }
}

/// The record as text, with its end.
pub(super) fn to_text(events: &[Event]) -> String {
    let lines = events.iter().map(Event::to_string).chain([END.to_owned(), String::new()]);
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads a record; what follows its end is nothing of it.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line == END.as_bytes() {
            return Ok(events);
        }
        ensure!(line.len() < 100, "line {} of the record is far too long", index + 1);
        let line = String::from_utf8_lossy(line);
        events.push(line.parse().with_context(|| format!("line {} of the record", index + 1))?);
    }
    bail!("the record has no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let place = |how, fua| Ask::Change { how, sector: 7, sectors: 3, fua };
        let events = [
            Event::Asked(1, place(Change::Write, true)),
            Event::Asked(2, place(Change::Zero, false)),
            Event::Asked(3, place(Change::Trim, false)),
            Event::Answered(1),
            Event::Asked(4, Ask::Flush),
            Event::Mark(1),
        ];
        let mut text = to_text(&events).into_bytes();
        text.extend([0; 40]);
        assert_eq!(read(&text).expect("it is whole"), events);
        assert!(read(b"mark 1\n").is_err(), "it has no end");
        assert!(read(b"mark one\nend\n").is_err());
    }
}
