//! Logs of fio, as `write_iolog` writes and `read_iolog` replays them: what a line says.
//!
//! ```text
//!   fio version 3 iolog                 the first line says of which version the log is
//!
//!   version 2         FILE add|open|close
//!                     FILE read|write|trim|sync|datasync OFFSET LENGTH
//!                     FILE wait MS 0
//!   version 3   STAMP FILE ...         the same without wait; STAMP in µs
//! ```

use paternoster::Op;

use crate::error::Error;
use crate::findings::Findings;
use crate::lines::Lines;
use crate::request::Request;
use crate::trace::Requests;

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
    /// Makes the file durable, `fsync`.
    Sync,
    /// The same without metadata that is not needed, `fdatasync`.
    DataSync,
}

impl IoOp {
    /// All of them.
    const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Trim, Self::Sync, Self::DataSync];

    /// As a log has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
            Self::DataSync => "datasync",
        }
    }
}

/// How large a read or a write may be, and a trim: as large as a block of a job.
pub(crate) const MAX_BYTES: u64 = 1 << 30;
pub(crate) const MAX_TRIM: u64 = 1 << 40;

/// A version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The lines have no times, but may be waits.
    Two,
    /// Each line has its time.
    Three,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// When, in µs; of version 3.
    pub stamp: Option<u64>,
    /// The column of its stamp, or of the time of its wait; else that of the name.
    pub time_column: u32,
    /// The column of the file's name, from 1.
    pub column: u32,
    /// The file's name.
    pub name: &'a str,
    /// What is done with it.
    pub said: Said,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The file will be used.
    Add,
    /// The file is opened.
    Open,
    /// The file is closed.
    Close,
    /// Until so many ms after the start.
    Wait(u64),
    /// This is issued.
    Io {
        /// What it does.
        op: IoOp,
        /// In bytes.
        offset: u64,
        /// None of a sync.
        bytes: u64,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// In characters, from 1.
    pub column: u32,
    /// What was found, and what is expected.
    pub what: String,
}

impl Version {
    /// The version that the first line names.
    pub fn read(line: &[u8]) -> Option<Self> {
        match line.trim_ascii() {
            b"fio version 2 iolog" => Some(Self::Two),
            b"fio version 3 iolog" => Some(Self::Three),
            _ => None,
        }
    }

    /// What a line may be.
    fn forms(self) -> &'static str {
        match self {
            Self::Two => "FILE ACTION or FILE ACTION OFFSET LENGTH",
            Self::Three => "STAMP FILE ACTION or STAMP FILE ACTION OFFSET LENGTH",
        }
    }
}

/// A word of a line.
#[derive(Clone, Copy)]
struct Word<'a> {
    line: &'a str,
    text: &'a str,
}

impl<'a> Word<'a> {
    fn column(self) -> u32 {
        // Both lie in the same line.
        let start = self.text.as_ptr() as usize - self.line.as_ptr() as usize;
        column(&self.line[..start])
    }

    fn wrong(self, what: String) -> Wrong {
        Wrong { column: self.column(), what }
    }

    fn number(self, of: &str) -> Result<u64, Wrong> {
        let is_number = self.text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| self.text.parse().ok()).flatten();
        number.ok_or_else(|| self.wrong(format!("{:?}: a number of {of} is expected", self.text)))
    }

    fn all(line: &'a str) -> impl Iterator<Item = Self> {
        line.split_ascii_whitespace().map(move |text| Word { line, text })
    }
}

/// The column behind `before`.
fn column(before: &str) -> u32 {
    u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX)
}

/// Reads a line behind the first.
pub fn parse(line: &[u8], version: Version) -> Result<Line<'_>, Wrong> {
    let line = std::str::from_utf8(line).map_err(|error| {
        let valid = String::from_utf8_lossy(&line[..error.valid_up_to()]);
        Wrong { column: column(&valid), what: "a byte that is no UTF-8".to_owned() }
    })?;
    let mut words = Word::all(line);
    let missing = || Wrong {
        column: column(line.trim_ascii_end()),
        what: format!("the line ends here: {} is expected", version.forms()),
    };
    let mut time = match version {
        Version::Two => None,
        Version::Three => Some(words.next().ok_or_else(missing)?),
    };
    let stamp = time.map(|word| word.number("microseconds")).transpose()?;
    let name = words.next().ok_or_else(missing)?;
    let action = words.next().ok_or_else(missing)?;
    let said = match action.text {
        "add" => Said::Add,
        "open" => Said::Open,
        "close" => Said::Close,
        "wait" if version == Version::Three => {
            let what = "version 3 has no wait: stamps say when".to_owned();
            return Err(action.wrong(what));
        }
        other => {
            let op = match IoOp::ALL.into_iter().find(|op| op.name() == other) {
                None if other == "wait" => None,
                op @ Some(_) => op,
                None => {
                    let what = format!(
                        "{other:?}: add, open, close, read, write, trim, sync, datasync{} is \
                         expected",
                        if version == Version::Two { ", wait" } else { "" }
                    );
                    return Err(action.wrong(what));
                }
            };
            let offset = words.next().ok_or_else(missing)?;
            let length = words.next().ok_or_else(missing)?;
            match op {
                None => {
                    let wait = Said::Wait(offset.number("milliseconds")?);
                    length.number("bytes")?;
                    time = Some(offset);
                    wait
                }
                Some(op) => io(op, offset, length)?,
            }
        }
    };
    if let Some(more) = words.next() {
        let what = format!("{:?} behind the end: {} is expected", more.text, version.forms());
        return Err(more.wrong(what));
    }
    let time_column = time.unwrap_or(name).column();
    Ok(Line { stamp, time_column, column: name.column(), name: name.text, said })
}

fn io(op: IoOp, offset: Word<'_>, length: Word<'_>) -> Result<Said, Wrong> {
    let (at, bytes) = (offset.number("bytes")?, length.number("bytes")?);
    if matches!(op, IoOp::Sync | IoOp::DataSync) {
        return Ok(Said::Io { op, offset: 0, bytes: 0 });
    }
    let most = if op == IoOp::Trim { MAX_TRIM } else { MAX_BYTES };
    if !(1..=most).contains(&bytes) {
        return Err(length.wrong(format!("{bytes} bytes: 1 to {most} are allowed")));
    }
    Ok(Said::Io { op, offset: at, bytes })
}

/// The requests of a log; their contexts are its files.
pub(crate) struct Entries {
    lines: Lines,
    version: Version,
    /// Until when the last wait of version 2 is, in ns.
    waited: u64,
}

impl Entries {
    pub(crate) fn new(mut lines: Lines) -> Result<Self, Error> {
        lines.advance()?;
        let version = Version::read(lines.line());
        let what = "\"fio version 2 iolog\" or \"fio version 3 iolog\" is expected";
        let version = version.ok_or_else(|| lines.wrong(what))?;
        Ok(Self { lines, version, waited: 0 })
    }
}

impl Requests for Entries {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Request>, Error> {
        while self.lines.advance()? {
            let line = parse(self.lines.line(), self.version);
            let line = line.map_err(|Wrong { column, what }| {
                self.lines.wrong(format!("column {column}: {what}"))
            })?;
            let (op, offset, len) = match line.said {
                Said::Io { op, offset, bytes } => (op, offset, bytes),
                Said::Wait(ms) => {
                    self.waited = self.waited.max(ms.saturating_mul(1_000_000));
                    continue;
                }
                Said::Add | Said::Open | Said::Close => continue,
            };
            let op = match op {
                IoOp::Read => Op::Read,
                IoOp::Write => Op::Write,
                IoOp::Trim => Op::Discard,
                IoOp::Sync | IoOp::DataSync => Op::Flush,
            };
            let arrived = line.stamp.map_or(self.waited, |us| us.saturating_mul(1_000));
            let context = findings.context(line.name.as_bytes());
            return Ok(Some(Request::new(arrived, context, op, offset, len)));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str, version: Version) -> String {
        let Wrong { column, what } = parse(line.as_bytes(), version).expect_err(line);
        format!("{column}: {what}")
    }

    #[test]
    fn line_says_what_the_howto_has() {
        let said = |line, version| parse(line, version).expect("it is right").said;
        let (offset, bytes) = (4096, 512);
        let read = Said::Io { op: IoOp::Read, offset, bytes };
        assert_eq!(said(b"/a read 4096 512", Version::Two), read);
        assert_eq!(said(b" 7\t/a  read 4096 512\r", Version::Three), read);
        assert_eq!(said(b"/a wait 250 0", Version::Two), Said::Wait(250));
        // fio writes the position of an I/O before.
        let sync = Said::Io { op: IoOp::Sync, offset: 0, bytes: 0 };
        assert_eq!(said(b"7 /a sync 4096 0", Version::Three), sync);
        let line = parse(b"7 \xc3\xa9/a open", Version::Three).expect("it is right");
        assert_eq!((line.stamp, line.column, line.name), (Some(7), 3, "\u{e9}/a"));
    }

    #[test]
    fn line_that_is_wrong_is_pointed_at() {
        let [two, three] = [Version::Two, Version::Three];
        let ends = "the line ends here: FILE ACTION or FILE ACTION OFFSET LENGTH is expected";
        assert_eq!(told("", two), format!("1: {ends}"));
        assert_eq!(told("/a", two), format!("3: {ends}"));
        assert_eq!(told("\u{e9} read 0", two), format!("9: {ends}"));
        assert_eq!(told("/a wait 100", two), format!("12: {ends}"));
        let ends = ends.replace("FILE ACTION", "STAMP FILE ACTION");
        assert_eq!(told("5 /a", three), format!("5: {ends}"));
        assert_eq!(told("/a open", three), "1: \"/a\": a number of microseconds is expected");
        assert_eq!(told("5 /a wait 1 0", three), "6: version 3 has no wait: stamps say when");
        let actions = "add, open, close, read, write, trim, sync, datasync";
        assert_eq!(told("/a frob", two), format!("4: \"frob\": {actions}, wait is expected"));
        assert_eq!(told("5 a frob", three), format!("5: \"frob\": {actions} is expected"));
        assert_eq!(told("a read 4k 1", two), "8: \"4k\": a number of bytes is expected");
        assert_eq!(told("a read -1 1", two), "8: \"-1\": a number of bytes is expected");
        assert_eq!(told("a read 0 +1", two), "10: \"+1\": a number of bytes is expected");
        let large = "99999999999999999999";
        let what = format!("8: \"{large}\": a number of bytes is expected");
        assert_eq!(told(&format!("a read {large} 1"), two), what);
        assert_eq!(told("a write 0 0", two), "11: 0 bytes: 1 to 1073741824 are allowed");
        let behind = "\"7\" behind the end: FILE ACTION or FILE ACTION OFFSET LENGTH is expected";
        assert_eq!(told("a read 0 1 7", two), format!("12: {behind}"));
        assert_eq!(told("a open 7", two), format!("8: {behind}"));
        let Wrong { column, what } = parse(b"\xc3\xa9\xff read 0 1", two).expect_err("no UTF-8");
        assert_eq!((column, what.as_str()), (2, "a byte that is no UTF-8"));
    }
}
