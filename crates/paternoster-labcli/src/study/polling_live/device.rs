//! A thread that plays a device: it takes an I/O, spins or reads until it is done, and stamps the
//! moment.
//!
//! ```text
//!   modelled   T = t × (0.85 + 0.075 × Gamma(2)), of mean t; done at the submission and T
//!   file       a read of 4 KiB at a random place
//! ```
//!
//! The device keeps a processor to itself, as hardware would. It counts T from the submission, so
//! that the way of the submission to it is in T. As each moment is stamped, the latency that
//! waiting adds is known of each I/O: when it was reaped less that.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use paternoster::Nanos;
use rustix::fs::OFlags;

use super::clock::Clock;
use super::entry::Entry;

/// Bytes of a read.
const BLOCK: usize = 4096;

/// What serves I/Os.
#[derive(Clone, Debug)]
pub(super) enum Device {
    /// Times of that mean.
    Modelled(Nanos),
    /// Reads of that file.
    File(Arc<Blocks>),
}

/// A file in blocks of 4 KiB.
#[derive(Debug)]
pub(super) struct Blocks {
    file: File,
    count: u64,
    /// Past the page cache.
    pub(super) is_direct: bool,
}

impl Blocks {
    /// Opens it, past the page cache where its file system allows that, and reads from it once.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let direct = i32::try_from(OFlags::DIRECT.bits()).expect("a flag of open");
        let open = |flags| File::options().read(true).custom_flags(flags).open(path);
        let first = |file: File, is_direct| -> io::Result<Self> {
            let blocks = Self { count: file.metadata()?.len() / BLOCK as u64, file, is_direct };
            if blocks.count == 0 {
                let problem = "shorter than 4 KiB; a regular file of that size is allowed";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            blocks.read(&mut Buffer::new(), 0)?;
            Ok(blocks)
        };
        match open(direct).and_then(|file| first(file, true)) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                first(open(0)?, false)
            }
            other => other,
        }
    }

    fn read(&self, buffer: &mut Buffer, block: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer.block(), block * BLOCK as u64)
    }
}

/// Room for a block, at an address that direct I/O takes.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new() -> Self {
        Self(vec![0; 2 * BLOCK])
    }

    fn block(&mut self) -> &mut [u8] {
        let begin = self.0.as_ptr().align_offset(BLOCK);
        &mut self.0[begin..begin + BLOCK]
    }
}

impl Device {
    /// The seed of a run: each policy has the same times in a round, but no block that another one
    /// has just brought into a cache.
    pub(super) fn seed(&self, round: u32, way: usize) -> u64 {
        match self {
            Self::Modelled(_) => round.into(),
            Self::File(_) => (u64::from(round) << 32) + way as u64,
        }
    }

    /// Serves the entry's I/Os until no more come or one fails. `seed` decides their times and
    /// places.
    pub(super) fn serve(&self, entry: &Entry, clock: Clock, seed: u64) -> io::Result<()> {
        let mut random = Rng::with_seed(seed);
        let mut buffer = Buffer::new();
        while let Some(submitted) = entry.take() {
            match self {
                Self::Modelled(mean) => {
                    let done = submitted + time(*mean, &mut random);
                    while clock.now() < done {
                        std::hint::spin_loop();
                    }
                }
                Self::File(blocks) => {
                    blocks.read(&mut buffer, random.u64(..blocks.count))?;
                }
            }
            entry.publish(clock.now());
        }
        Ok(())
    }
}

/// A time of that mean.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn time(mean: Nanos, random: &mut Rng) -> Nanos {
    // 1 − u is more than 0, of which there is a logarithm.
    let gamma = -((1.0 - random.f64()) * (1.0 - random.f64())).ln();
    Nanos::new((mean.as_nanos() as f64 * (0.85 + 0.075 * gamma)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gamma(2) has mean and variance 2: of 10,000 the mean is within 0.4 % of t, with four
    /// standard deviations.
    #[test]
    fn times_have_their_mean_and_none_is_shorter_than_their_base() {
        let mut random = Rng::with_seed(1);
        let times: Vec<_> =
            (0..10_000).map(|_| time(Nanos::from_micros(100), &mut random).as_nanos()).collect();
        let mean = times.iter().sum::<u64>() / 10_000;
        assert!((99_600..=100_400).contains(&mean), "{mean}");
        assert!(times.iter().all(|&time| time >= 85_000));
    }

    #[test]
    fn file_without_a_block_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let message = Blocks::open(file.path()).expect_err("it is empty").to_string();
        assert!(message.contains("shorter than 4 KiB"), "{message}");
    }
}
