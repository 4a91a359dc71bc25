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
use crate::event::{Counter, Event, Events, Kind, Point, Tally, errno};
use crate::findings::{Findings, Warning};
use crate::lines::{Lines, scaled, shown, whole};

const S: u64 = 1_000_000_000;
const SECTOR: u64 = 512;

/// The tracepoints, and what they tell.
const TRACEPOINTS: [(&[u8], Point); 7] = [
    (b"block_bio_queue:", Point::Queued),
    (b"block_io_start:", Point::Started),
    (b"block_rq_insert:", Point::Inserted),
    (b"block_rq_issue:", Point::Issued),
    (b"block_rq_requeue:", Point::Requeued),
    (b"block_rq_complete:", Point::Completed),
    (b"block_io_done:", Point::Done),
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
            Self::ByBlkparse => matches!(blkparse_line(line), Ok(Told::Event { .. })),
            Self::ByTracefs => matches!(tracefs_line(line), Ok(Told::Event { .. })),
        }
    }
}

/// The events of a text.
pub(crate) struct Text {
    lines: Lines,
    printed: Printed,
    /// Lines that hold none, and requests whose operation is not known.
    left_out: u64,
    unknown: u64,
    /// Events that the tracer says that it has lost.
    lost: u64,
    tally: Tally,
    has_ended: bool,
}

impl Text {
    pub(crate) fn new(lines: Lines, printed: Printed) -> Self {
        let (left_out, unknown, lost) = (0, 0, 0);
        Self { lines, printed, left_out, unknown, lost, tally: Tally::new(), has_ended: false }
    }

    /// What the next line tells; none at the end, and where blkparse ends with what it has counted.
    fn next_told(&mut self, findings: &mut Findings) -> Result<Option<Told>, Error> {
        if !self.lines.advance()? {
            return Ok(None);
        }
        let told = match self.printed {
            Printed::ByBlkparse if is_summary(self.lines.line()) => return self.summary(),
            Printed::ByBlkparse => blkparse_line(self.lines.line()),
            Printed::ByTracefs => {
                // Some pages wrap their lines behind the command.
                if self.lines.line().ends_with(b"()") {
                    self.lines.join()?;
                }
                tracefs_line(self.lines.line())
            }
        };
        match told {
            Ok(told) => Ok(Some(told)),
            Err(_) if self.lines.is_cut() => {
                findings.warn(Warning::CutRecord { bytes: self.lines.line().len() as u64 });
                Ok(None)
            }
            Err(what) => Err(self.lines.wrong(what)),
        }
    }

    /// Reads what blkparse has counted to its end.
    fn summary(&mut self) -> Result<Option<Told>, Error> {
        while self.lines.advance()? {
            self.lost += skipped(self.lines.line()).unwrap_or(0);
        }
        Ok(None)
    }
}

impl Events for Text {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        while !self.has_ended {
            match self.next_told(findings)? {
                Some(Told::Event { time, number, event }) => {
                    self.tally.add(time, number);
                    match event {
                        Some(Ok(event)) => return Ok(Some(event)),
                        Some(Err(Unknown)) => self.unknown += 1,
                        None => {}
                    }
                }
                Some(Told::Lost(count)) => self.lost += count,
                Some(Told::Nothing) => {}
                Some(Told::LeftOut) => self.left_out += 1,
                None => self.has_ended = true,
            }
        }
        if self.left_out > 0 {
            findings.warn(Warning::LinesLeftOut { count: std::mem::take(&mut self.left_out) });
        }
        if self.unknown > 0 {
            let count = std::mem::take(&mut self.unknown);
            findings.warn(Warning::UnknownOperations { count });
        }
        Ok(None)
    }

    fn tally(&self) -> Tally {
        let mut tally = self.tally.clone();
        tally.lost += self.lost;
        tally
    }
}

/// The first line of the summary names a processor and the program that ran there; before these, a
/// process with its number.
fn is_summary(line: &[u8]) -> bool {
    let names = (line.starts_with(b"CPU") || line.starts_with(b"Total (")) && line.ends_with(b":");
    let process = || {
        let digits = line.strip_suffix(b")")?.rsplit(|&byte| byte == b'(').next()?;
        whole(digits)
    };
    let begins = line.first().is_some_and(|byte| !byte.is_ascii_whitespace());
    names || begins && !line.starts_with(b"#") && process().is_some()
}

/// `Skips: 7 forward (23 -   0.1%)`: events that are missing in the trace.
fn skipped(line: &[u8]) -> Option<u64> {
    let rest = line.trim_ascii().strip_prefix(b"Skips:")?.trim_ascii();
    let inner = rest.split(|&byte| byte == b'(').nth(1)?;
    whole(inner.split(|&byte| byte == b'-').next()?.trim_ascii())
}

/// What a line tells.
enum Told {
    /// An event at that time, with its number and who counts; if it is one of a request, that.
    Event { time: u64, number: Option<(Counter, u64)>, event: Option<Result<Event, Unknown>> },
    /// That so many events were lost.
    Lost(u64),
    /// Nothing of requests, as notes and comments.
    Nothing,
    /// It is not of the format.
    LeftOut,
}

/// It is an event of a request with an operation that is not known.
struct Unknown;

type Parsed = Result<Told, String>;

/// A line of blkparse.
fn blkparse_line(line: &[u8]) -> Parsed {
    if line.starts_with(b"#") {
        return Ok(Told::Nothing);
    }
    // It says what it reads, too.
    if !line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) {
        return Ok(Told::LeftOut);
    }
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
        b"R" => Some(Point::Requeued),
        b"C" => Some(Point::Completed),
        // Notes have text of any kind behind them.
        b"m" => return Ok(Told::Nothing),
        _ => None,
    };
    let rwbs = word("RWBS").unwrap_or_default();
    let cpu = u32::try_from(cpu).map_err(|_| format!("CPU {cpu}: at most 2^32 are allowed"))?;
    let process = u32::try_from(process).unwrap_or(u32::MAX);
    let event = point.and_then(|point| event(time, point, device, process, rwbs, words));
    Ok(Told::Event { time, number: Some(((device, cpu), sequence)), event })
}

/// A line of blkparse in its own form.
const FORM: &str = "MAJOR,MINOR CPU NUMBER SECONDS PID ACTION RWBS SECTOR + SECTORS";

/// A line of tracefs.
fn tracefs_line(line: &[u8]) -> Parsed {
    if line.starts_with(b"#") {
        return Ok(lost_in_comment(line).map_or(Told::Nothing, Told::Lost));
    }
    if let Some(count) = lost_events(line) {
        return Ok(Told::Lost(count));
    }
    let words: Vec<_> = line.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty()).collect();
    let is_tracepoint = |word: &&[u8]| {
        let name = word.strip_prefix(b"block:").unwrap_or(word);
        TRACEPOINTS.iter().find(|(known, _)| *known == name).map(|(_, point)| *point)
    };
    let found = words.iter().enumerate().find_map(|(at, word)| Some((at, is_tracepoint(word)?)));
    let Some((at, point)) = found else { return Ok(Told::LeftOut) };
    // Before it: COMMAND-PID [CPU] FLAGS TIME:, or of perf COMMAND PID [CPU] TIME:.
    let time = at.checked_sub(1).map_or(&b""[..], |at| words[at]);
    let time = time.strip_suffix(b":").unwrap_or(time);
    let time = scaled(time, S).ok_or_else(|| no(time, "a time in seconds"))?;
    let process = process(&words[..at]).ok_or_else(|| {
        "no process is found before the tracepoint: COMMAND-PID [CPU] or COMMAND PID [CPU] is \
         allowed"
            .to_owned()
    })?;
    let mut words = words[at + 1..].iter().copied();
    let mut word =
        |what: &str| words.next().ok_or_else(|| format!("it ends where {what} is expected"));
    let device = word("a device")?;
    let device = Event::device_of(device).ok_or_else(|| no(device, "MAJOR,MINOR of a device"))?;
    let rwbs = word("RWBS")?;
    let event = event(time, point, device, process, rwbs, words);
    Ok(Told::Event { time, number: None, event })
}

/// The process in `COMMAND-PID (TGID) [CPU] FLAGS`, or in perf's `COMMAND PID/TID [CPU]`.
fn process(words: &[&[u8]]) -> Option<u32> {
    let cpu = words.iter().rposition(|word| word.starts_with(b"["))?;
    let mut before = &words[..cpu];
    if before.last()?.ends_with(b")") {
        let begins = before.iter().rposition(|word| word.starts_with(b"("))?;
        before = &before[..begins];
    }
    let digits = before.last()?.rsplit(|byte| b"-/".contains(byte)).next()?;
    u32::try_from(whole(digits)?).ok()
}

/// `# entries-in-buffer/entries-written: 140080/250280   #P:4`
fn lost_in_comment(line: &[u8]) -> Option<u64> {
    let rest = line.split(|&byte| byte == b':').nth(1)?;
    if !line.trim_ascii_start().starts_with(b"# entries-in-buffer/entries-written") {
        return None;
    }
    let mut numbers = rest.trim_ascii().split(|byte| b"/ ".contains(byte));
    let (kept, written) = (whole(numbers.next()?)?, whole(numbers.next()?)?);
    written.checked_sub(kept).filter(|lost| *lost > 0)
}

/// `CPU:1 [LOST 110200 EVENTS]`
fn lost_events(line: &[u8]) -> Option<u64> {
    let rest = line.trim_ascii().strip_prefix(b"CPU:")?;
    let inner = rest.split(|&byte| byte == b'[').nth(1)?.strip_suffix(b" EVENTS]")?;
    whole(inner.strip_prefix(b"LOST ")?)
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
) -> Option<Result<Event, Unknown>> {
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
    match Kind::of_rwbs(rwbs, len) {
        Some(kind) => {
            Some(Ok(Event { time, sequence: 0, point, device, sector, len, kind, process, error }))
        }
        None if len > 0 => Some(Err(Unknown)),
        None => None,
    }
}

/// The errno in `[5]` or `[-5]`.
fn error_in(word: &[u8]) -> u16 {
    let inner = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]"));
    let inner = inner.unwrap_or_default();
    let digits = inner.strip_prefix(b"-").unwrap_or(inner);
    whole(digits).and_then(|number| u16::try_from(number).ok()).map_or(0, errno)
}

fn number(word: &[u8], what: &str) -> Result<u64, String> {
    whole(word).ok_or_else(|| no(word, what))
}

fn no(word: &[u8], what: &str) -> String {
    format!("{}: {what} is expected", shown(word))
}
