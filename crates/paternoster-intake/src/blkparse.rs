//! What blkparse(1) prints, and what tracefs, `perf script` and trace-cmd print of the block
//! layer's tracepoints: a line an event.
//!
//! ```text
//!   259,0    1        2     0.000000184 21279  Q  RA 2348060440 + 8 [fio]
//!   device cpu number        s.ns         pid  action RWBS sector + sectors [command]
//!
//!   kworker/0:1-81 [000] d..2 154578.668390: block_rq_issue: 179,0 WS 0 () 3427120 + 16 [kworker]
//!   command-pid  [cpu] flags s.us: tracepoint: device RWBS [bytes] (command) sector + sectors
//! ```

use crate::error::Error;
use crate::event::{Event, Events, Kind, Point, Tally};
use crate::findings::{Findings, Warning};
use crate::lines::{Lines, scaled, shown, whole};

const S: u64 = 1_000_000_000;
const SECTOR: u64 = 512;

/// The tracepoints, and what they tell.
const TRACEPOINTS: [(&[u8], Point); 4] = [
    (b"block_bio_queue:", Point::Queued),
    (b"block_rq_insert:", Point::Inserted),
    (b"block_rq_issue:", Point::Issued),
    (b"block_rq_complete:", Point::Completed),
];

/// Which program has printed the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    ByBlkparse,
    ByTracefs,
}

impl Printed {
    /// Whether a line that begins a trace is one of its.
    pub(crate) fn matches(self, line: &[u8]) -> bool {
        match self {
            Self::ByBlkparse => blkparse_line(line).is_ok_and(|event| event.is_some()),
            Self::ByTracefs => tracefs_line(line).is_ok_and(|event| event.is_some()),
        }
    }
}

/// The events of a text.
pub(crate) struct Text {
    lines: Lines,
    printed: Printed,
    /// Lines that hold none.
    left_out: u64,
    tally: Tally,
    has_ended: bool,
}

impl Text {
    pub(crate) fn new(lines: Lines, printed: Printed) -> Self {
        Self { lines, printed, left_out: 0, tally: Tally::new(), has_ended: false }
    }
}

impl Events for Text {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        while !self.has_ended && self.lines.advance()? {
            let line = self.lines.line();
            // blkparse ends with what it has counted.
            if self.printed == Printed::ByBlkparse && is_summary(line) {
                self.has_ended = true;
                break;
            }
            let event = match self.printed {
                Printed::ByBlkparse => blkparse_line(line),
                Printed::ByTracefs => tracefs_line(line),
            };
            match event.map_err(|what| self.lines.wrong(what))? {
                Some(Told { time, number, event }) => {
                    self.tally.add(time, number);
                    if event.is_some() {
                        return Ok(event);
                    }
                }
                None => self.left_out += 1,
            }
        }
        if self.left_out > 0 {
            findings.warn(Warning::LinesLeftOut { count: std::mem::take(&mut self.left_out) });
        }
        Ok(None)
    }

    fn tally(&self) -> Tally {
        self.tally.clone()
    }
}

/// The first line of the summary names a processor and the program that ran there.
fn is_summary(line: &[u8]) -> bool {
    (line.starts_with(b"CPU") || line.starts_with(b"Total (")) && line.ends_with(b":")
}

/// What a line tells: its time, its processor and number, and the event of a request, if it is one.
struct Told {
    time: u64,
    number: Option<(u32, u64)>,
    event: Option<Event>,
}

type Parsed = Result<Option<Told>, String>;

/// A line of blkparse. None where it is a note or has no I/O.
fn blkparse_line(line: &[u8]) -> Parsed {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = |what: &str| {
        words.next().ok_or_else(|| format!("it ends where {what} is expected: {FORM} is allowed"))
    };
    let device = word("a device")?;
    let device = Event::device_of(device).ok_or_else(|| no(device, "MAJOR,MINOR of a device"))?;
    let cpu = number(word("a CPU")?, "the number of a CPU")?;
    let sequence = number(word("a number")?, "the number of an event")?;
    let time = word("a time")?;
    let time = scaled(time, S).ok_or_else(|| no(time, "a time in seconds"))?;
    let process = number(word("a process")?, "the number of a process")?;
    let point = match word("an action")? {
        b"Q" => Some(Point::Queued),
        b"I" => Some(Point::Inserted),
        b"D" => Some(Point::Issued),
        b"C" => Some(Point::Completed),
        // Notes have text of any kind behind them.
        b"m" => return Ok(None),
        _ => None,
    };
    let rwbs = word("RWBS").unwrap_or_default();
    let cpu = u32::try_from(cpu).map_err(|_| format!("CPU {cpu}: at most 2^32 are allowed"))?;
    let process = u32::try_from(process).unwrap_or(u32::MAX);
    let event = point.and_then(|point| event(time, point, device, process, rwbs, words));
    Ok(Some(Told { time, number: Some((cpu, sequence)), event }))
}

/// A line of blkparse in its own form.
const FORM: &str = "MAJOR,MINOR CPU NUMBER SECONDS PID ACTION RWBS SECTOR + SECTORS";

/// A line of tracefs. None where it is of no tracepoint of requests.
fn tracefs_line(line: &[u8]) -> Parsed {
    if line.starts_with(b"#") {
        return Ok(None);
    }
    let words: Vec<_> = line.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty()).collect();
    let is_tracepoint = |word: &&[u8]| {
        let name = word.strip_prefix(b"block:").unwrap_or(word);
        TRACEPOINTS.iter().find(|(known, _)| *known == name).map(|(_, point)| *point)
    };
    let found = words.iter().enumerate().find_map(|(at, word)| Some((at, is_tracepoint(word)?)));
    let Some((at, point)) = found else { return Ok(None) };
    // Before it: COMMAND-PID [CPU] FLAGS TIME:, or of perf COMMAND PID [CPU] TIME:.
    let time = at.checked_sub(1).map_or(&b""[..], |at| words[at]);
    let time = time.strip_suffix(b":").unwrap_or(time);
    let time = scaled(time, S).ok_or_else(|| no(time, "a time in seconds"))?;
    let cpu_at = words[..at].iter().rposition(|word| word.starts_with(b"["));
    let process = cpu_at.and_then(|at| at.checked_sub(1)).map_or(&b""[..], |at| words[at]);
    let digits = process.rsplit(|&byte| byte == b'-').next().unwrap_or_default();
    let process = whole(digits).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let mut words = words[at + 1..].iter().copied();
    let mut word =
        |what: &str| words.next().ok_or_else(|| format!("it ends where {what} is expected"));
    let device = word("a device")?;
    let device = Event::device_of(device).ok_or_else(|| no(device, "MAJOR,MINOR of a device"))?;
    let rwbs = word("RWBS")?;
    let event = event(time, point, device, process, rwbs, words);
    Ok(Some(Told { time, number: None, event }))
}

/// The event of a request with that RWBS, and with `SECTOR + SECTORS` and perhaps an errno among
/// the words behind. None where it moves no data.
fn event<'a>(
    time: u64,
    point: Point,
    device: u64,
    process: u32,
    rwbs: &[u8],
    words: impl Iterator<Item = &'a [u8]>,
) -> Option<Event> {
    let (mut before, mut range, mut last) = (None, None, &b""[..]);
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        if word == b"+" && range.is_none() {
            range = before.zip(words.peek().and_then(|word| whole(word)));
        }
        before = whole(word);
        last = word;
    }
    // A flush of blkparse has no range, and that of tracefs is at the last sector of all.
    let (sector, sectors) = range.filter(|&(_, sectors)| sectors > 0).unwrap_or((0, 0));
    let len = sectors.saturating_mul(SECTOR);
    let error = if point == Point::Completed { error_in(last) } else { 0 };
    let kind = Kind::of_rwbs(rwbs, len)?;
    Some(Event { time, point, device, sector, len, kind, process, error })
}

/// The errno in `[5]` or `[-5]`.
fn error_in(word: &[u8]) -> u16 {
    let inner = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]"));
    let inner = inner.unwrap_or_default();
    let digits = inner.strip_prefix(b"-").unwrap_or(inner);
    whole(digits).and_then(|errno| u16::try_from(errno).ok()).unwrap_or(0)
}

fn number(word: &[u8], what: &str) -> Result<u64, String> {
    whole(word).ok_or_else(|| no(word, what))
}

fn no(word: &[u8], what: &str) -> String {
    format!("{}: {what} is expected", shown(word))
}
