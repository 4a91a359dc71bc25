//! The tunables that order the requests of a queue, which CFQ and BFQ share.

use crate::parts::seek_order::SeekOrder;
use crate::request::{Sector, SectorCount};
use crate::synchrony::Synchrony;
use crate::time::Nanos;
use crate::tunable::{number, span};

/// Their values as a table of tunables keeps them: times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OrderTunables {
    pub(crate) fifo_expire_sync: i64,
    pub(crate) fifo_expire_async: i64,
    pub(crate) back_seek_max: i64,
    pub(crate) back_seek_penalty: i64,
}

impl OrderTunables {
    /// Returns how long a request may wait before it goes first.
    #[inline]
    pub(crate) fn fifo_expire(&self, synchrony: Synchrony) -> Nanos {
        span(match synchrony {
            Synchrony::Async => self.fifo_expire_async,
            Synchrony::Sync => self.fifo_expire_sync,
        })
    }

    /// Returns the seek order from `from`. Linux doubles the KiB of `back_seek_max` in 32 bits,
    /// which wraps for the values that CFQ takes and BFQ does not.
    #[inline]
    pub(crate) fn seek_order(&self, from: Sector) -> SeekOrder {
        SeekOrder {
            from,
            back_max: SectorCount(number(self.back_seek_max).wrapping_mul(2)),
            back_penalty: number(self.back_seek_penalty),
        }
    }
}
