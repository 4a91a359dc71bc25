//! The lines of a text, each at most so long.

use std::io::{BufRead, Read as _};

use crate::error::{Error, Place};

/// How long a line may be, in bytes.
const LONGEST: u64 = 64 << 10;

pub(crate) struct Lines {
    bytes: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    /// Of the last line, from 1.
    number: u64,
}

impl Lines {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>) -> Self {
        Self { bytes, line: Vec::new(), number: 0 }
    }

    /// Reads the next line that is not empty. False at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            self.line.clear();
            let read = self.bytes.by_ref().take(LONGEST + 1).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            if read as u64 > LONGEST {
                return Err(self.wrong(format!("it is longer than {LONGEST} bytes")));
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The line that was read last, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        self.line.trim_ascii_end()
    }

    /// Whether that line has no end: the file was cut there.
    pub(crate) fn is_cut(&self) -> bool {
        !self.line.ends_with(b"\n")
    }

    /// Joins it with the next one, of which it was a part.
    pub(crate) fn join(&mut self) -> Result<(), Error> {
        let first = self.line().to_owned();
        if self.advance()? {
            self.line.splice(..0, [&first[..], b" "].concat());
        } else {
            self.line = first;
        }
        Ok(())
    }

    /// An error in that line.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> Error {
        Error::at(Place::Line(self.number), what)
    }
}

/// A word, as a message shows it.
pub(crate) fn shown(word: &[u8]) -> String {
    const MOST: usize = 60;
    let cut = word.len().min(MOST);
    let more = if cut < word.len() { "…" } else { "" };
    format!("{:?}{more}", String::from_utf8_lossy(&word[..cut]))
}

/// The word as a whole number.
pub(crate) fn whole(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The word as a number of units, of which each is `unit` of the result's: `1.5` of 1000 is 1500.
/// What is left below one is cut off.
pub(crate) fn scaled(word: &[u8], unit: u64) -> Option<u64> {
    let mut parts = word.splitn(2, |&byte| byte == b'.');
    let whole_part = whole(parts.next()?)?.checked_mul(unit)?;
    let Some(fraction) = parts.next() else { return Some(whole_part) };
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (mut part, mut place) = (0, unit);
    for digit in fraction {
        place /= 10;
        part += u64::from(digit - b'0') * place;
    }
    whole_part.checked_add(part)
}
