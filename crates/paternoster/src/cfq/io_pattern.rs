//! Learns whether a queue is seeky. The device does not idle for a seeky queue unless it is deep,
//! and a seeky queue is not merged with another.
//!
//! ```text
//!   rotational:      start more than 800 sectors from the last end  ─┐   a seek;
//!   non-rotational:  less than 64 sectors long                      ─┴▶  > 4 of the last 32: seeky
//! ```
//!
//! BFQ differs (`bfq/io_pattern.rs`): on a non-rotational device a seek is small *and* far, and it
//! takes 20 seeks to make a queue seeky. Think times are kept by `parts/think_time.rs` for each I/O
//! context, service tree and group. There is no counterpart to BFQ's "I/O-bound".

use crate::parts::seek_history::SeekHistory;
use crate::request::{Extent, Sector, SectorCount};

/// On a rotational device, a request farther than this from the end of the last one is a seek.
const SEEK_FAR: u64 = 8 * 100;
/// On a non-rotational device, a request shorter than this is a seek: 32 KiB.
const SEEK_SMALL: SectorCount = SectorCount(64);
/// More seeks than this among the last 32 requests make a queue seeky.
const MANY_SEEKS: u32 = 4;

/// Which of a queue's last requests were seeks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seekiness {
    history: SeekHistory,
    /// The end of the last request; none before the first one.
    last_end: Option<Sector>,
}

impl Seekiness {
    /// Learns from a request that arrives.
    #[inline]
    pub(super) fn observe(&mut self, request: Extent, rotational: bool) {
        let seek = if rotational {
            self.last_end.is_some_and(|last| request.start.0.abs_diff(last.0) > SEEK_FAR)
        } else {
            request.sectors < SEEK_SMALL
        };
        self.history.push(seek);
        self.last_end = Some(request.end());
    }

    /// Returns whether many of the last requests were seeks.
    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.history.seeks() > MANY_SEEKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a queue is seeky after so many such requests, that far apart.
    fn is_seeky(requests: u64, apart: u64, sectors: u32, rotational: bool) -> bool {
        let mut seekiness = Seekiness::default();
        for request in 0..requests {
            let start = Sector(request * (apart + u64::from(sectors)));
            seekiness.observe(Extent { start, sectors: SectorCount(sectors) }, rotational);
        }
        seekiness.is_seeky()
    }

    /// The first request is no seek, and the fifth seek is one too many. 800 sectors are near.
    #[test]
    fn request_more_than_800_sectors_away_is_a_seek_on_a_rotational_device() {
        for (requests, apart, seeky) in [(5, 801, false), (6, 801, true), (6, 800, false)] {
            assert_eq!(is_seeky(requests, apart, 8, true), seeky, "{requests} {apart}");
        }
    }

    /// Each ends 8 sectors behind its start, and the next one starts that far before its end.
    #[test]
    fn distance_backwards_counts_alike() {
        for (apart, seeky) in [(800, false), (801, true)] {
            let mut seekiness = Seekiness::default();
            let mut end = Sector(1_000_000);
            for _ in 0..6 {
                let start = Sector(end.0 - apart);
                let request = Extent { start, sectors: SectorCount(8) };
                seekiness.observe(request, true);
                end = request.end();
            }
            assert_eq!(seekiness.is_seeky(), seeky, "{apart}");
        }
    }

    /// A request shorter than 32 KiB is a seek, however near it is, and so is the first one.
    #[test]
    fn small_request_is_a_seek_on_a_non_rotational_device() {
        for (requests, sectors, seeky) in [(4, 63, false), (5, 63, true), (32, 64, false)] {
            assert_eq!(is_seeky(requests, 0, sectors, false), seeky, "{requests} {sectors}");
        }
        assert!(!is_seeky(32, 1_000_000, 64, false), "far is no seek");
    }
}
