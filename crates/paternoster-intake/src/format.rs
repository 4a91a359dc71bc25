//! The formats of traces, and how a trace's first bytes say which one it has.

use std::str::FromStr;

use crate::blkparse::Printed;
use crate::columns::Layout;
use crate::iolog::Version;
use crate::lines::whole;
use crate::{blktrace, vscsi};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// blktrace's binary files.
    Blktrace,
    /// What blkparse prints.
    Blkparse,
    /// What tracefs, `perf script` or trace-cmd print of the block layer's tracepoints.
    Tracefs,
    /// MSR Cambridge's CSV.
    Msr,
    /// Alibaba's CSV of 2020.
    Alibaba,
    /// Tencent CBS' CSV.
    Tencent,
    /// The SPC's.
    Spc,
    /// `VMware`'s vscsi, of either version.
    Vscsi,
    /// DiskSim's ASCII, `MQSim`'s too.
    Disksim,
    /// fio's `write_iolog`, version 2 or 3.
    Iolog,
    /// CSV with names in its first line, or columns that are said.
    Csv,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Blktrace,
        Self::Blkparse,
        Self::Tracefs,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Spc,
        Self::Vscsi,
        Self::Disksim,
        Self::Iolog,
        Self::Csv,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Tracefs => "tracefs",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Spc => "spc",
            Self::Vscsi => "vscsi",
            Self::Disksim => "disksim",
            Self::Iolog => "iolog",
            Self::Csv => "csv",
        }
    }

    /// The format of a trace that begins so; or the names of those that it may have.
    pub(crate) fn find(head: &[u8]) -> Result<Self, Vec<&'static str>> {
        let first = lines(head).next().unwrap_or_default();
        let known = HEADERS.iter().find(|(names, _)| first.eq_ignore_ascii_case(names.as_bytes()));
        if let Some(&(_, format)) = known {
            return Ok(format);
        }
        let found: Vec<_> = Self::ALL.into_iter().filter(|format| format.matches(head)).collect();
        match found[..] {
            [format] => Ok(format),
            _ => Err(found.into_iter().map(Self::name).collect()),
        }
    }

    /// Whether a trace that begins so may have it.
    fn matches(self, head: &[u8]) -> bool {
        match self {
            Self::Blktrace => blktrace::matches(head),
            Self::Vscsi => vscsi::version(head).is_some(),
            Self::Blkparse => some_line(head, |line| Printed::ByBlkparse.matches(line)),
            Self::Tracefs => some_line(head, |line| Printed::ByTracefs.matches(line)),
            // Seven columns, or a response time that is missing.
            Self::Msr => first_rows(head, |row| Layout::msr().matches(row, 7..=7)),
            Self::Alibaba => first_rows(head, |row| Layout::alibaba().matches(row, 5..=5)),
            Self::Tencent => first_rows(head, |row| {
                Layout::tencent().matches(row, 5..=5)
                    && row[3].len() == 1
                    && whole(row[0]).is_some()
            }),
            Self::Spc => first_rows(head, |row| Layout::spc().matches(row, 5..=64)),
            Self::Disksim => {
                let is_row = |row: &[&[u8]]| Layout::disksim(1).matches(row, 5..=5);
                let rows = lines(head).take(FIRST).filter(|line| !line.is_empty());
                let mut rows = rows.map(|line| {
                    let words = line.split(u8::is_ascii_whitespace);
                    is_row(&words.filter(|word| !word.is_empty()).collect::<Vec<_>>())
                });
                rows.next() == Some(true) && rows.all(|is_row| is_row)
            }
            Self::Iolog => lines(head).next().is_some_and(|line| Version::read(line).is_some()),
            Self::Csv => lines(head).next().is_some_and(|line| {
                std::str::from_utf8(line).is_ok_and(|line| Layout::named(line).is_ok())
            }),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names: Vec<_> = Self::ALL.into_iter().map(Self::name).collect();
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| format!("one of {} is allowed", names.join(", ")))
    }
}

/// The names of columns with which copies of some traces begin, as their descriptions have them.
const HEADERS: [(&str, Format); 3] = [
    ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", Format::Msr),
    ("device_id,opcode,offset,length,timestamp", Format::Alibaba),
    ("Timestamp,Offset,Size,IOType,VolumeID", Format::Tencent),
];

/// How many lines a text's format is found from, where each has to be one of its.
const FIRST: usize = 8;

/// The lines of a head; the last one may be cut.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end)
}

fn some_line(head: &[u8], is_one: impl FnMut(&[u8]) -> bool) -> bool {
    lines(head).any(is_one)
}

/// Whether the first lines are rows of those, whose columns commas separate.
fn first_rows(head: &[u8], is_row: impl Fn(&[&[u8]]) -> bool) -> bool {
    let rows: Vec<_> = lines(head).take(FIRST).filter(|line| !line.is_empty()).collect();
    let is_one = |line: &&[u8]| {
        let row: Vec<_> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
        is_row(&row)
    };
    !rows.is_empty() && rows.iter().all(is_one)
}
