//! The first reading of a log: every line is looked at, and nothing is kept but the files' names
//! and how far they reach.

use std::sync::Arc;

use indexmap::IndexMap;
use paternoster::Nanos;
use paternoster_intake::iolog::{Line, Said, Version, Wrong, parse};

use super::rules::Rules;
use super::source::{Lines, NoLine, PIECE, ReadAt};
use crate::fio::IoOp;
use crate::fio::error::{Mistake, Place};
use crate::fio::files::MAX_FILES;
use crate::fio::value::LONGEST;

/// How many mistakes of a log are told.
const MISTAKES: usize = 20;

/// A log that can be replayed.
#[derive(Clone, Debug)]
pub(in crate::fio) struct Checked {
    pub(super) source: Arc<dyn ReadAt>,
    pub(super) path: Arc<str>,
    pub(super) version: Version,
    /// How many lines are read until its end is found.
    pub(super) lines: u32,
    /// How long it is.
    pub(super) bytes: u64,
    /// Whether it reads, writes and trims.
    pub(super) directions: [bool; 3],
    /// The first wait, in version 2, that is longer than nothing.
    pub(super) first_wait: Option<Place>,
    /// Its files by their names.
    pub(in crate::fio) files: IndexMap<String, Named>,
}

/// A file of a log.
#[derive(Clone, Debug)]
pub(in crate::fio) struct Named {
    is_open: bool,
    /// Where the I/O ends that goes farthest, in bytes.
    pub(in crate::fio) end: u64,
    /// Which that is, or what added the file.
    pub(in crate::fio) place: Place,
}

/// Reads the log of that path to its end.
pub(in crate::fio) fn check(
    source: Arc<dyn ReadAt>,
    path: &str,
    rules: &Rules,
    device_bytes: u64,
) -> Result<Checked, Vec<Mistake>> {
    let path: Arc<str> = Arc::from(path);
    let mut lines = Lines::new(Arc::clone(&source));
    let version = first_line(&mut lines).map_err(|what| {
        let place = Place { file: Arc::clone(&path), line: 1, column: 1, argument: None };
        vec![Mistake { place, what }]
    })?;
    let checked = Checked {
        source,
        path,
        version,
        lines: 1,
        bytes: 0,
        directions: [false; 3],
        first_wait: None,
        files: IndexMap::new(),
    };
    let mut reader =
        Reader { rules, device_bytes, checked, stamp: 0, has_io: false, mistakes: Vec::new() };
    reader.read(&mut lines);
    if reader.mistakes.is_empty() { Ok(reader.checked) } else { Err(reader.mistakes) }
}

/// The version that the first line names, or what is wrong with it.
fn first_line(lines: &mut Lines) -> Result<Version, String> {
    let wanted = "\"fio version 2 iolog\" or \"fio version 3 iolog\" is expected";
    let line = match lines.next() {
        Ok(Some(line)) => line,
        Ok(None) => return Err(format!("an empty file: {wanted}")),
        Err(no_line) => return Err(no_line.what()),
    };
    match line {
        // Its magic and its version, in either order of bytes.
        [0x07 | 0x08, b't', b'a', b'e', ..] | [b'e', b'a', b't', 0x07 | 0x08, ..] => {
            let what = "a trace of blktrace: a log of fio is expected, as `paternoster-lab trace \
                        convert --to iolog3` makes it";
            Err(what.to_owned())
        }
        line => Version::read(line).ok_or_else(|| {
            let start: String = String::from_utf8_lossy(line).chars().take(40).collect();
            format!("{start:?}: {wanted}")
        }),
    }
}

impl NoLine {
    pub(super) fn what(&self) -> String {
        match self {
            Self::Unreadable(error) => error.to_string(),
            Self::Long => format!("a line of more than {PIECE} bytes"),
        }
    }
}

/// How far a log was read.
struct Reader<'a> {
    rules: &'a Rules,
    device_bytes: u64,
    checked: Checked,
    /// The stamp of the last line, in µs.
    stamp: u64,
    has_io: bool,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn read(&mut self, lines: &mut Lines) {
        while self.mistakes.len() < MISTAKES && self.checked.files.len() <= MAX_FILES {
            self.checked.lines = lines.number().saturating_add(1);
            let taken = match lines.next() {
                Ok(Some(line)) => {
                    parse(line, self.checked.version).and_then(|line| self.take(line))
                }
                Ok(None) => {
                    self.checked.bytes = lines.bytes();
                    return self.end();
                }
                Err(no_line) => {
                    let what = no_line.what();
                    return self.add(self.checked.lines, Wrong { column: 1, what });
                }
            };
            if let Err(wrong) = taken {
                self.add(self.checked.lines, wrong);
            }
        }
    }

    fn add(&mut self, line: u32, Wrong { column, what }: Wrong) {
        let place = self.place(line, column);
        self.mistakes.push(Mistake { place, what });
    }

    fn place(&self, line: u32, column: u32) -> Place {
        Place { file: Arc::clone(&self.checked.path), line, column, argument: None }
    }

    fn end(&mut self) {
        if !self.has_io && self.mistakes.is_empty() {
            let what = "the log has no I/O".to_owned();
            self.add(1, Wrong { column: 1, what });
        }
    }

    fn take(&mut self, line: Line<'_>) -> Result<(), Wrong> {
        let wrong = |what| Err(Wrong { column: line.column, what });
        if let Some(stamp) = line.stamp {
            if stamp < self.stamp {
                let what = format!(
                    "a stamp of {stamp} after one of {}: stamps do not go back",
                    self.stamp
                );
                return Err(Wrong { column: line.time_column, what });
            }
            self.stamp = stamp;
            self.in_time(stamp, "us", 1, line.time_column)?;
        }
        let number = self.checked.lines;
        let name = line.name;
        match line.said {
            Said::Wait(ms) => {
                if ms > 0 && self.checked.first_wait.is_none() {
                    self.checked.first_wait = Some(self.place(number, line.time_column));
                }
                return self.in_time(ms, "ms", 1000, line.time_column);
            }
            Said::Add => {
                let is_known = self.checked.files.contains_key(name);
                return if is_known { Ok(()) } else { self.know(number, &line, false) };
            }
            _ => {}
        }
        let Some(file) = self.checked.files.get_mut(name) else {
            // It is told once.
            self.know(number, &line, true)?;
            return wrong(format!("{name} was not added: a line \"{name} add\" comes before"));
        };
        match line.said {
            Said::Open if file.is_open => return wrong(format!("{name} is open already")),
            Said::Open => file.is_open = true,
            _ if !file.is_open => {
                file.is_open = true;
                return wrong(format!("{name} is not open: a line \"{name} open\" comes before"));
            }
            Said::Close => file.is_open = false,
            Said::Io { op, offset, bytes } => {
                return self.transfer(number, &line, op, offset, bytes);
            }
            Said::Add | Said::Wait(_) => unreachable!("they were taken before"),
        }
        Ok(())
    }

    /// One more file. Names are kept until the log is replayed: it is read no further where they
    /// are too many.
    fn know(&mut self, number: u32, line: &Line<'_>, is_open: bool) -> Result<(), Wrong> {
        let place = self.place(number, line.column);
        self.checked.files.insert(line.name.to_owned(), Named { is_open, end: 0, place });
        if self.checked.files.len() > MAX_FILES {
            let what = format!("{MAX_FILES} files in all: no more are allowed");
            return Err(Wrong { column: line.column, what });
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        number: u32,
        line: &Line<'_>,
        op: IoOp,
        offset: u64,
        bytes: u64,
    ) -> Result<(), Wrong> {
        self.has_io = true;
        if self.rules.skips(op) {
            return Ok(());
        }
        let end = self.rules.position(offset).saturating_add(bytes);
        if end > self.device_bytes {
            let what = format!(
                "the I/O ends {end} bytes from the start of {}: the device has {}",
                line.name, self.device_bytes
            );
            return Err(Wrong { column: line.column, what });
        }
        if let IoOp::Read | IoOp::Write | IoOp::Trim = op {
            self.checked.directions[op as usize] = true;
        }
        let file = &mut self.checked.files[line.name];
        if end > file.end {
            file.end = end;
            let path = Arc::clone(&self.checked.path);
            file.place = Place { file: path, line: number, column: line.column, argument: None };
        }
        Ok(())
    }

    /// Checks that a time in that unit, which is so many µs, can be waited for.
    fn in_time(&self, time: u64, unit: &str, unit_us: u64, column: u32) -> Result<(), Wrong> {
        if self.rules.time(time.saturating_mul(unit_us)) > Nanos::new(LONGEST) {
            let what = format!("{time} {unit} at {} %: 3650d are allowed", self.rules.time_scale);
            return Err(Wrong { column, what });
        }
        Ok(())
    }
}
