//! Standard error, as far as somebody reads it: a full pipe must not hold the threads that log.
//!
//! A line waits for a moment to be taken. Then it is left out, and so are others until the pipe has
//! room; how many were is said then.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a pipe that has room takes without waiting: `PIPE_BUF`.
const AT_ONCE: usize = 4096;

/// How long a line waits for a reader that was there for the last one, in nanoseconds.
const PATIENCE_NS: i64 = 200_000_000;

/// Writes whole lines to a file that may be a pipe that nobody reads.
#[derive(Debug)]
pub(super) struct Patient<F> {
    file: F,
    /// Lines that were left out since the last one that was written.
    left_out: Mutex<u64>,
}

impl<F> Patient<F> {
    pub(super) const fn new(file: F) -> Self {
        Self { file, left_out: Mutex::new(0) }
    }
}

impl<F> Patient<F>
where
    for<'a> &'a F: Write + AsFd,
{
    /// Writes a line, or leaves it out.
    fn line(&self, line: &[u8]) -> io::Result<()> {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = if *left_out > 0 { 0 } else { PATIENCE_NS };
        if !self.has_room(patience) {
            *left_out += 1;
            return Ok(());
        }
        if *left_out > 0 {
            let said = format!("{left_out} lines of the log were left out, as nobody read them\n");
            (&self.file).write_all(said.as_bytes())?;
            *left_out = 0;
        }
        for part in line.chunks(AT_ONCE) {
            if !self.has_room(PATIENCE_NS) {
                *left_out += 1;
                break;
            }
            (&self.file).write_all(part)?;
        }
        Ok(())
    }

    /// Whether it takes something within so many nanoseconds.
    fn has_room(&self, patience_ns: i64) -> bool {
        let file = &self.file;
        let mut polled = [PollFd::new(&file, PollFlags::OUT)];
        let patience = Timespec { tv_sec: 0, tv_nsec: patience_ns };
        // An error is the write's to tell.
        poll(&mut polled, Some(&patience)).is_ok_and(|ready| ready == 1)
    }
}

impl<F> Write for &Patient<F>
where
    for<'a> &'a F: Write + AsFd,
{
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.line(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn lines_that_nobody_reads_are_left_out_and_counted_and_hold_nobody() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let patient = Patient::new(writer);
        let line = [&[b'x'; 5000][..], b"\n"].concat();
        let begun = Instant::now();
        for _ in 0..1000 {
            (&patient).write_all(&line).expect("it is taken, or left out");
        }
        // Not 1000 times the patience, which is a fifth of a second.
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        let left_out = *patient.left_out.lock().expect("nobody panicked");
        assert!((900..1000).contains(&left_out), "{left_out}");
        let lines = std::thread::spawn(move || {
            let mut lines: Vec<String> =
                BufReader::new(reader).lines().map_while(Result::ok).collect();
            lines.reverse();
            lines
        });
        // There is somebody again.
        std::thread::sleep(Duration::from_millis(50));
        while *patient.left_out.lock().expect("nobody panicked") > 0 {
            (&patient).write_all(b"last\n").expect("it is taken, or left out");
        }
        drop(patient);
        let lines = lines.join().expect("it reads all");
        assert_eq!(lines[0], "last");
        assert!(lines[1].ends_with(" lines of the log were left out, as nobody read them"));
    }
}
