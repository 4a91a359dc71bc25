//! The log of dm-log-writes: what reached a device below a server, in the order of durability.
//!
//! The kernel's documentation of dm-log-writes says what is logged and when: a write that completed
//! before a flush was sent, where that flush completes, and before it; a write with FUA where it
//! completes. How that lies on the log's device it does not say; that is as read off logs of known
//! writes, flushes, discards and marks, and of ext4's commits, which have FUA:
//!
//! ```text
//!   a block each   │ head │ entry │ data of it │ entry │ entry │ data … │ entry (mark) │
//!   head           magic, version, entries: 8 bytes each; bytes of a block: 4
//!   entry          sector, sectors, flags, bytes of the text: 8 bytes each; the text of a mark
//! ```
//!
//! All numbers are little-endian, and sectors are as large as the log's blocks. A write's data is
//! in the blocks behind its entry; a flush has none, and neither has a discard of any length.

use anyhow::{Context as _, Result, bail, ensure};

/// Bytes of a sector. Logs of devices with larger blocks are refused.
pub(super) const SECTOR: usize = 512;
/// The head's first eight bytes.
const MAGIC: u64 = 0x006a_7366_7773_6872;
/// The only version there is.
const VERSION: u64 = 1;
/// Bytes before the text of a mark.
const ENTRY: usize = 32;

/// What came before it is durable.
const FLUSH: u64 = 1;
/// It is durable itself.
const FUA: u64 = 2;
/// The sectors were given up.
const DISCARD: u64 = 4;
/// A mark that was set from outside.
const MARK: u64 = 8;
/// Data of a file system's own; says nothing of durability.
const METADATA: u64 = 16;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// What was sent to the device.
    Sent(Sent),
    /// A mark with this text.
    Mark(String),
}

/// What was sent to the device: a flush, a write, both or a discard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Whether what the device had completed before is durable.
    pub(super) flush: bool,
    /// Whether its own data is durable at once.
    pub(super) fua: bool,
    /// Whether the sectors were given up.
    pub(super) discard: bool,
    /// The first sector.
    pub(super) sector: u64,
    /// How many.
    pub(super) sectors: u64,
    /// The data of a write.
    pub(super) data: Vec<u8>,
}

/// Reads all entries of a log.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Entry>> {
    let number = |at| number(bytes, at);
    ensure!(number(0)? == MAGIC, "the log begins with {:#x}, not with {MAGIC:#x}", number(0)?);
    ensure!(number(8)? == VERSION, "the log is of version {}, not {VERSION}", number(8)?);
    let block = number(24)? & u64::from(u32::MAX);
    ensure!(block == SECTOR as u64, "the log has blocks of {block} bytes, not {SECTOR}");
    let mut entries = Vec::new();
    let mut at = SECTOR;
    for index in 0..number(16)? {
        let (entry, len) =
            read_entry(bytes, at).with_context(|| format!("entry {index} of the log"))?;
        entries.push(entry);
        at += len;
    }
    Ok(entries)
}

/// Reads the entry at `at`, and says how many bytes it takes with its data.
fn read_entry(bytes: &[u8], at: usize) -> Result<(Entry, usize)> {
    let [sector, sectors, flags, text] = [0, 8, 16, 24].map(|field| number(bytes, at + field).ok());
    let (Some(sector), Some(sectors), Some(flags), Some(text)) = (sector, sectors, flags, text)
    else {
        bail!("the log ends before it");
    };
    let unknown = flags & !(FLUSH | FUA | DISCARD | MARK | METADATA);
    ensure!(unknown == 0, "its flags are {flags:#x}, of which {unknown:#x} mean nothing");
    if flags & MARK != 0 {
        let text = take(bytes, at + ENTRY, usize::try_from(text)?)?;
        return Ok((Entry::Mark(String::from_utf8(text.to_vec())?), SECTOR));
    }
    let discard = flags & DISCARD != 0;
    let len = if discard { 0 } else { usize::try_from(sectors)?.saturating_mul(SECTOR) };
    let data = take(bytes, at + SECTOR, len)?.to_vec();
    let (flush, fua) = (flags & FLUSH != 0, flags & FUA != 0);
    Ok((Entry::Sent(Sent { flush, fua, discard, sector, sectors, data }), SECTOR + len))
}

/// The number of eight bytes at `at`.
fn number(bytes: &[u8], at: usize) -> Result<u64> {
    let bytes = take(bytes, at, 8)?;
    Ok(u64::from_le_bytes(bytes.try_into().context("eight bytes")?))
}

/// `len` bytes at `at`.
fn take(bytes: &[u8], at: usize, len: usize) -> Result<&[u8]> {
    let taken = bytes.get(at..).and_then(|rest| rest.get(..len));
    taken.with_context(|| format!("the log ends before byte {at} and {len} more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block that begins with these numbers and then this text.
    fn block(numbers: &[u64], text: &str) -> Vec<u8> {
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(text.bytes());
        bytes.resize(SECTOR, 0);
        bytes
    }

    /// The start of a log with so many entries.
    fn head(entries: u64) -> Vec<u8> {
        block(&[MAGIC, 1, entries, 512], "")
    }

    #[test]
    fn entries_are_read_as_a_log_of_the_kernel_has_them() {
        let data = [b'A'; 2 * SECTOR];
        let log = [
            head(5),
            block(&[8, 2, 0, 0], ""),
            data.to_vec(),
            block(&[0, 0, FLUSH, 0], ""),
            block(&[0, 0, MARK, 5], "first"),
            block(&[16, 8, DISCARD, 0], ""),
            block(&[24, 1, FLUSH | FUA, 0], ""),
            vec![b'B'; SECTOR],
            vec![0xee; SECTOR],
        ];
        let nothing = Sent::default();
        let expected = [
            Entry::Sent(Sent { sector: 8, sectors: 2, data: data.to_vec(), ..nothing.clone() }),
            Entry::Sent(Sent { flush: true, ..nothing.clone() }),
            Entry::Mark("first".to_owned()),
            Entry::Sent(Sent { discard: true, sector: 16, sectors: 8, ..nothing }),
            Entry::Sent(Sent {
                flush: true,
                fua: true,
                discard: false,
                sector: 24,
                sectors: 1,
                data: vec![b'B'; SECTOR],
            }),
        ];
        assert_eq!(read(&log.concat()).expect("it is well-formed"), expected);
    }

    #[test]
    fn log_that_is_another_or_cut_off_is_refused() {
        let refused = |bytes: &[u8]| format!("{:#}", read(bytes).expect_err("it is refused"));
        assert!(refused(&[0; SECTOR]).contains("begins with 0x0"));
        assert!(refused(&block(&[MAGIC, 2, 0, 512], "")).contains("version 2"));
        assert!(refused(&block(&[MAGIC, 1, 0, 4096], "")).contains("4096 bytes"));
        assert!(refused(&head(1)).contains("entry 0"));
        let odd = [head(1), block(&[0, 0, 64, 0], "")].concat();
        assert!(refused(&odd).contains("0x40 mean nothing"));
        let cut = [head(1), block(&[0, 2, 0, 0], ""), vec![0; SECTOR]].concat();
        assert!(refused(&cut).contains("ends before"));
    }
}
