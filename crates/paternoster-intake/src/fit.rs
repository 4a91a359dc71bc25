//! Requests that reach behind the end of a device: refused, or moved onto it.
//!
//! ```text
//!   the trace's device   ├──────────┬──────────┬──────────┬─────┤
//!   wrapped                 as it is   from 0 on  from 0 on  …      neighbours stay neighbours
//!   scaled               blocks of 1 MiB move closer together       near stays near, far stays far
//! ```

use crate::error::{Error, Place};
use crate::findings::{Findings, Warning};
use crate::request::Request;

/// What is scaled moves in blocks of so many bytes, so that sequences inside a block stay.
const BLOCK: u64 = 1 << 20;
const SECTOR: u64 = 512;

/// What becomes of requests that reach behind the end of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// They are an error.
    #[default]
    Refuse,
    /// They begin again at the first byte.
    Wrap,
    /// All requests move, so that the one that reaches farthest ends with the device.
    Scale,
}

/// Fits requests to a device.
#[derive(Debug)]
pub(crate) struct Fit {
    size: u64,
    beyond: Beyond,
    /// Where the request ends that reaches farthest; known if all are scaled.
    farthest: u64,
    read: u64,
    moved: u64,
}

impl Fit {
    pub(crate) fn new(size: u64, beyond: Beyond, farthest: u64) -> Self {
        Self { size, beyond, farthest, read: 0, moved: 0 }
    }

    pub(crate) fn apply(&mut self, request: &mut Request) -> Result<(), Error> {
        self.read += 1;
        let end = request.offset.saturating_add(request.len);
        let all_move = self.beyond == Beyond::Scale && self.farthest > self.size;
        if end <= self.size && !all_move {
            return Ok(());
        }
        let (size, number) = (self.size, self.read);
        if request.len > size || self.beyond == Beyond::Refuse {
            let what = format!(
                "request {number} ends at byte {end}: the device has {size} bytes; --wrap and \
                 --scale move requests onto it that are no longer than that"
            );
            return Err(Error::at(Place::File, what));
        }
        let offset = if all_move {
            let (block, inside) = (request.offset / BLOCK, request.offset % BLOCK);
            let scaled = u128::from(block) * u128::from(size) / u128::from(self.farthest);
            u64::try_from(scaled).expect("it is no farther than before") * BLOCK + inside
        } else {
            request.offset % size
        };
        // The last one may not fit as a whole; its first sector stays one.
        let last = (size - request.len) / SECTOR * SECTOR;
        let moved_to = offset.min(last);
        self.moved += u64::from(moved_to != request.offset);
        request.offset = moved_to;
        Ok(())
    }

    pub(crate) fn tell(&self, findings: &mut Findings) {
        if self.moved > 0 {
            let (count, size) = (self.moved, self.size);
            findings.warn(Warning::Moved { count, size });
        }
    }
}
