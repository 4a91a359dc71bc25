//! Traces with a request a line, in columns: each format says what its columns hold.
//!
//! | format | columns |
//! |---|---|
//! | MSR Cambridge | time in 100 ns, host, disk, `Read` or `Write`, byte, bytes, response time |
//! | Alibaba 2020 | device, `R` or `W`, byte, bytes, time in µs |
//! | Tencent CBS | time in s, sector, sectors, 0 of a read or 1 of a write, volume |
//! | SPC | unit, block, bytes, `r` or `w`, time in s |
//! | DiskSim | time in ms, device, block, blocks, flags: bit 0 of a read; MQSim has ns |
//! | CSV | as its first line names them, or the user does |

use std::collections::VecDeque;
use std::io::BufRead;

use paternoster::{BioFlags, Op};

use crate::error::Error;
use crate::event::Kind;
use crate::findings::{Findings, Warning};
use crate::lines::{Lines, scaled, shown, whole};
use crate::request::Request;
use crate::trace::Requests;

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;
const SECTOR: u64 = 512;

/// What the columns of a format hold. Columns are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The column, and what its unit is in ns.
    pub(crate) time: (usize, u64),
    /// Together they name the context.
    pub(crate) context: Vec<usize>,
    pub(crate) op: (usize, Ops),
    /// The column, and what its unit is in bytes.
    pub(crate) offset: (usize, u64),
    pub(crate) len: (usize, u64),
    /// How long the request took, in a unit of so many ns.
    pub(crate) response: Option<(usize, u64)>,
    /// When it was dispatched and when it had completed, in such units.
    dispatched: Option<(usize, u64)>,
    completed: Option<(usize, u64)>,
    /// The errno with which it failed.
    error: Option<usize>,
}

/// How an operation is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ops {
    /// By a word that begins with r or w, or is of a trim or flush.
    #[default]
    Words,
    /// By the letters of blkparse: with flags.
    Rwbs,
    /// By one of these words of a read; any other is of a write.
    Reads(Vec<String>),
    /// By 0 of a read, and 1 of a write.
    Numbers,
    /// By bit 0 of a read.
    Flags,
}

impl Ops {
    fn read(&self, word: &[u8], len: u64) -> Option<Kind> {
        let op = match self {
            Self::Rwbs => return Kind::of_rwbs(word, len),
            Self::Reads(reads) => {
                let is_read = reads.iter().any(|read| read.as_bytes() == word);
                Some(if is_read { Op::Read } else { Op::Write })
            }
            Self::Words => match word.to_ascii_lowercase().as_slice() {
                b"r" | b"read" => Some(Op::Read),
                b"w" | b"write" => Some(Op::Write),
                b"d" | b"t" | b"trim" | b"discard" | b"unmap" => Some(Op::Discard),
                b"f" | b"flush" | b"sync" => Some(Op::Flush),
                _ => None,
            },
            Self::Numbers => match word {
                b"0" => Some(Op::Read),
                b"1" => Some(Op::Write),
                _ => None,
            },
            // DiskSim's are hexadecimal.
            Self::Flags => std::str::from_utf8(word)
                .ok()
                .and_then(|flags| u64::from_str_radix(flags, 16).ok())
                .map(|flags| if flags & 1 == 1 { Op::Read } else { Op::Write }),
        };
        Some(Kind { op: op?, flags: BioFlags::empty(), ahead: false })
    }

    fn allowed(&self) -> &'static str {
        match self {
            Self::Rwbs => "R, W, D or F with F, S, M, A, E beside it",
            Self::Reads(_) => "any word",
            Self::Words => "R, W, read, write, trim or flush in either case",
            Self::Numbers => "0 of a read or 1 of a write",
            Self::Flags => "a number whose bit 0 is of a read",
        }
    }
}

impl Layout {
    pub(crate) fn msr() -> Self {
        Self {
            time: (0, 100),
            context: vec![1, 2],
            op: (3, Ops::Words),
            offset: (4, 1),
            len: (5, 1),
            response: Some((6, 100)),
            ..Self::default()
        }
    }

    pub(crate) fn alibaba() -> Self {
        Self {
            time: (4, US),
            context: vec![0],
            op: (1, Ops::Words),
            offset: (2, 1),
            len: (3, 1),
            ..Self::default()
        }
    }

    pub(crate) fn tencent() -> Self {
        Self {
            time: (0, S),
            context: vec![4],
            op: (3, Ops::Numbers),
            offset: (1, SECTOR),
            len: (2, SECTOR),
            ..Self::default()
        }
    }

    pub(crate) fn spc() -> Self {
        Self {
            time: (4, S),
            context: vec![0],
            op: (3, Ops::Words),
            offset: (1, SECTOR),
            len: (2, 1),
            ..Self::default()
        }
    }

    /// Times are in units of so many ns.
    pub(crate) fn disksim(unit: u64) -> Self {
        Self {
            time: (0, unit),
            context: vec![1],
            op: (4, Ops::Flags),
            offset: (2, SECTOR),
            len: (3, SECTOR),
            ..Self::default()
        }
    }

    /// What a first line of names says, or the option that has the same words: `time:us`.
    pub(crate) fn named(names: &str) -> Result<Self, String> {
        let mut columns = [const { None }; CONTEXT];
        let mut context = Vec::new();
        let mut ops = Ops::Words;
        for (at, column) in names.split(',').enumerate() {
            let column = column.trim().to_ascii_lowercase();
            let (name, unit) = column.split_once(':').unwrap_or((&column, ""));
            let Some(what) = NAMES.iter().position(|names| names.contains(&name)) else { continue };
            let unit = match (what, unit) {
                (TIME | RESPONSE | DISPATCHED | COMPLETED, "us") => US,
                (TIME | RESPONSE | DISPATCHED | COMPLETED, "ms") => MS,
                (TIME | RESPONSE | DISPATCHED | COMPLETED, "s") => S,
                (TIME, "") => UNKNOWN,
                (RESPONSE | DISPATCHED | COMPLETED, "") => AS_TIME,
                (OFFSET | LEN, "sectors") => SECTOR,
                (OFFSET, "") if name != "offset" => SECTOR,
                (TIME | RESPONSE | DISPATCHED | COMPLETED, "ns")
                | (OFFSET | LEN, "bytes" | "")
                | (OP | CONTEXT | ERROR, "") => 1,
                _ => return Err(format!("column {column:?}: {UNITS} are allowed")),
            };
            if name == "rwbs" {
                ops = Ops::Rwbs;
            }
            if what == CONTEXT {
                context.push(at);
            } else if columns[what].replace((at, unit)).is_some() {
                return Err(format!("column {column:?}: there is another one of that"));
            }
        }
        let column = |what: usize| {
            let missing = || format!("there is no column of {:?}: {names:?}", NAMES[what][0]);
            columns[what].ok_or_else(missing)
        };
        Ok(Self {
            time: column(TIME)?,
            context,
            op: (column(OP)?.0, ops),
            offset: column(OFFSET)?,
            len: column(LEN)?,
            response: columns[RESPONSE],
            dispatched: columns[DISPATCHED],
            completed: columns[COMPLETED],
            error: columns[ERROR].map(|(at, _)| at),
        })
    }

    /// How many columns a line has at least.
    fn columns(&self) -> usize {
        let last = [self.time.0, self.op.0, self.offset.0, self.len.0];
        let last = last.into_iter().chain(self.context.iter().copied());
        let times = [self.response, self.dispatched, self.completed];
        let last = last.chain(times.into_iter().flatten().map(|(at, _)| at));
        let last = last.chain(self.error).max();
        last.map_or(0, |last| last + 1)
    }

    /// What a line holds; its time is the format's own, in ns.
    fn request(&self, fields: &[&[u8]], findings: &mut Findings) -> Result<Request, String> {
        let columns = self.columns();
        if fields.len() < columns {
            return Err(format!("{} columns: at least {columns} are expected", fields.len()));
        }
        let number = |(at, unit): (usize, u64), what: &str| {
            let found = scaled(fields[at], unit);
            found.ok_or_else(|| format!("{}: {what} is expected", shown(fields[at])))
        };
        let arrived = number(self.time, "a time")?;
        let len = number(self.len, "a length")?;
        let (op_at, ops) = &self.op;
        let kind = ops.read(fields[*op_at], len);
        let kind =
            kind.ok_or_else(|| format!("{}: {} is allowed", shown(fields[*op_at]), ops.allowed()))?;
        let name: Vec<_> = self.context.iter().map(|&at| fields[at]).collect();
        // What has not happened is empty.
        let time = |column: Option<(usize, u64)>, what: &str| {
            let column = column.filter(|&(at, _)| !fields[at].is_empty());
            column.map(|column| number(column, what)).transpose()
        };
        let response = time(self.response, "a response time")?;
        let completed = time(self.completed, "the time of a completion")?;
        let error = self.error.map_or(&b""[..], |at| fields[at]);
        let error = match whole(error).map(u16::try_from) {
            None if error.is_empty() => None,
            Some(Ok(errno)) => Some(errno),
            _ => return Err(format!("{}: an errno is expected", shown(error))),
        };
        let context = findings.context(&name.join(&b'.'));
        let offset = number(self.offset, "an offset")?;
        Ok(Request {
            flags: kind.flags,
            ahead: kind.ahead,
            dispatched: time(self.dispatched, "the time of a dispatch")?,
            completed: completed.or(response.map(|response| arrived.saturating_add(response))),
            error: error.filter(|&errno| errno != 0),
            ..Request::new(arrived, context, kind.op, offset, len)
        })
    }

    /// Assumes a unit of times where none is known, by the first of them.
    pub(crate) fn assume_unit(&mut self, head: &[u8], has_names: bool, findings: &mut Findings) {
        let column = self.time.0;
        if self.time.1 == UNKNOWN {
            let lines = head.split(|&byte| byte == b'\n').skip(usize::from(has_names));
            let times = lines.filter_map(|line| {
                let field = line.split(|&byte| byte == b',').nth(column)?.trim_ascii();
                whole(field.split(|&byte| byte == b'.').next()?)
            });
            let first = times.into_iter().next().unwrap_or(0);
            let known = SINCE_1970.iter().find(|(from, ..)| first >= *from);
            let &(_, unit, name, because) = known.expect("the last one is from 0 on");
            self.time.1 = unit;
            findings.warn(Warning::UnitAssumed { unit: name, because });
        }
        let own = self.time.1;
        for column in [&mut self.response, &mut self.dispatched, &mut self.completed] {
            if let Some((_, unit)) = column.as_mut().filter(|(_, unit)| *unit == AS_TIME) {
                *unit = own;
            }
        }
    }

    /// Operations are told by one of these words of a read; any other is of a write.
    pub(crate) fn with_reads(mut self, words: Option<&str>) -> Self {
        if let Some(words) = words {
            let words = words.split(',').map(|word| word.trim().to_owned());
            self.op.1 = Ops::Reads(words.collect());
        }
        self
    }

    /// Whether a line that begins a trace is one of this layout's, with so many columns.
    pub(crate) fn matches(
        &self,
        fields: &[&[u8]],
        columns: std::ops::RangeInclusive<usize>,
    ) -> bool {
        let request = self.request(fields, &mut Findings::default());
        columns.contains(&fields.len()) && request.is_ok_and(|it| it.len > 0)
    }
}

/// The unit of times is to be assumed; or is the one of arrivals.
const UNKNOWN: u64 = 0;
const AS_TIME: u64 = u64::MAX;

/// From so much on times are of that unit, whose length is in ns.
const SINCE_1970: [(u64, u64, &str, &str); 5] = [
    (1_000_000_000_000_000_000, 1, "ns", "they are as large as those since 1970"),
    (10_000_000_000_000_000, 100, "100 ns", "they are as large as those since 1601"),
    (100_000_000_000_000, US, "us", "they are as large as those since 1970"),
    (100_000_000_000, MS, "ms", "they are as large as those since 1970"),
    (0, S, "s", "their column names none"),
];

/// Places in [`NAMES`].
const TIME: usize = 0;
const OP: usize = 1;
const OFFSET: usize = 2;
const LEN: usize = 3;
const RESPONSE: usize = 4;
const DISPATCHED: usize = 5;
const COMPLETED: usize = 6;
const ERROR: usize = 7;
const CONTEXT: usize = 8;

/// What columns may be called.
const NAMES: [&[&str]; 9] = [
    &["time", "timestamp", "arrival", "ts"],
    &["op", "opcode", "type", "iotype", "rw", "rwbs"],
    &["offset", "lba", "sector"],
    &["size", "length", "len", "bytes"],
    &["response", "responsetime", "latency"],
    &["dispatched"],
    &["completed"],
    &["error"],
    &["context", "device", "device_id", "volume", "volumeid", "pid", "tenant"],
];
const UNITS: &str = "ns, us, ms and s of times, bytes and sectors of offsets and sizes";

/// How the columns of a line are separated.
struct Rows {
    lines: Lines,
    by_commas: bool,
    /// Whether the next row may be names instead of a request.
    may_be_names: bool,
    /// Whether it is.
    has_names: bool,
}

/// The requests of a trace in columns.
pub(crate) struct Table {
    rows: Rows,
    layout: Layout,
    /// Where times are whole seconds: the requests of the last second, and the first of the next.
    spread: Option<Spread>,
}

#[derive(Default)]
struct Spread {
    ready: VecDeque<Request>,
    second: Vec<Request>,
}

impl Table {
    /// Without names a first row of names is left out, too.
    pub(crate) fn by_commas(
        bytes: Box<dyn BufRead + Send>,
        layout: Layout,
        has_names: bool,
    ) -> Self {
        let lines = Lines::new(bytes);
        let rows = Rows { lines, by_commas: true, may_be_names: true, has_names };
        Self { rows, layout, spread: None }
    }

    pub(crate) fn by_spaces(bytes: Box<dyn BufRead + Send>, layout: Layout) -> Self {
        let lines = Lines::new(bytes);
        let rows = Rows { lines, by_commas: false, may_be_names: false, has_names: false };
        Self { rows, layout, spread: None }
    }

    /// Times are whole seconds: requests are spread evenly in each.
    pub(crate) fn spread(self) -> Self {
        Self { spread: Some(Spread::default()), ..self }
    }
}

impl Requests for Table {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Request>, Error> {
        let Some(mut spread) = self.spread.take() else {
            return self.rows.next(&self.layout, findings);
        };
        while spread.ready.is_empty() {
            let next = self.rows.next(&self.layout, findings)?;
            let last = spread.second.last().map(|last| last.arrived);
            if next.is_none_or(|next| last.is_some_and(|last| last != next.arrived)) {
                let each = S / u64::try_from(spread.second.len()).expect("a count").max(1);
                let spaced = spread.second.drain(..).zip(0..);
                let spaced = spaced.map(|(it, at)| Request {
                    arrived: it.arrived.saturating_add(at * each),
                    ..it
                });
                spread.ready.extend(spaced);
            }
            match next {
                Some(next) => spread.second.push(next),
                None => break,
            }
        }
        let next = spread.ready.pop_front();
        self.spread = Some(spread);
        Ok(next)
    }
}

impl Rows {
    fn next(&mut self, layout: &Layout, findings: &mut Findings) -> Result<Option<Request>, Error> {
        if std::mem::take(&mut self.has_names) {
            self.may_be_names = false;
            self.lines.advance()?;
        }
        while self.lines.advance()? {
            let may_be_names = std::mem::take(&mut self.may_be_names);
            let line = self.lines.line();
            let quoted;
            let fields: Vec<&[u8]> = if !self.by_commas {
                line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
            } else if line.contains(&b'"') {
                quoted = unquoted(line).map_err(|what| self.lines.wrong(what))?;
                quoted.iter().map(<[u8]>::trim_ascii).collect()
            } else {
                line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect()
            };
            let time = fields.get(layout.time.0);
            if may_be_names && time.is_some_and(|time| scaled(time, 1).is_none()) {
                continue;
            }
            return match layout.request(&fields, findings) {
                Ok(request) => Ok(Some(request)),
                Err(_) if self.lines.is_cut() => {
                    findings.warn(Warning::CutRecord { bytes: self.lines.line().len() as u64 });
                    Ok(None)
                }
                Err(what) => Err(self.lines.wrong(what)),
            };
        }
        Ok(None)
    }
}

/// The fields of a line of CSV of which some are in quotes.
fn unquoted(line: &[u8]) -> Result<csv::ByteRecord, String> {
    if line.split(|&byte| byte == b'"').count() % 2 == 0 {
        return Err("a quote is not closed in its line".to_owned());
    }
    let mut record = csv::ByteRecord::new();
    let mut reader = csv::ReaderBuilder::new();
    let read = reader.has_headers(false).from_reader(line).read_byte_record(&mut record);
    read.map_err(|error| error.to_string())?;
    Ok(record)
}

/// The unit of DiskSim's times where none is given: by how the first ones are written.
pub(crate) fn unit_of_disksim(head: &[u8], findings: &mut Findings) -> u64 {
    let lines = head.split(|&byte| byte == b'\n');
    let time = |line: &[u8]| {
        line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).map(<[u8]>::to_vec)
    };
    let has_fractions = lines.filter_map(time).any(|time| time.contains(&b'.'));
    let (unit, name, because) = if has_fractions {
        (MS, "ms", "they have fractions, as DiskSim's")
    } else {
        (1, "ns", "they are whole numbers, as MQSim's")
    };
    findings.warn(Warning::UnitAssumed { unit: name, because });
    unit
}
