//! How many requests may exist: BFQ keeps room for those that are to be fast.
//!
//! ```text
//!                        while no queue is raised     while one is
//!   async                        1/2                      3/16
//!   sync writes                  3/4                      6/16        of nr_requests
//!   sync reads                   all                      all
//! ```
//!
//! Of that, each level of the tree has its share by weight, from the top group down to the queue.
//! In Linux a task that has used up its share gets one more tag if that happens to be free; here it
//! waits. CFQ bounds only the requests in flight (`cfq/dispatch.rs`).

use crate::bfq::Bfq;
use crate::request::{Bio, Direction};
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    /// Returns how many requests like `bio` may exist, of `nr_requests` in all.
    pub(super) fn depth_of(&self, bio: &Bio, nr_requests: u32) -> u32 {
        let sixteenths = match (bio.is_sync(), self.busy.any_raised()) {
            (true, _) if bio.op.direction() == Direction::Read => return nr_requests,
            (true, false) => 12,
            (true, true) => 6,
            (false, false) => 8,
            (false, true) => 3,
        };
        let depth = u64::from(nr_requests) * sixteenths / 16;
        u32::try_from(depth).unwrap_or(u32::MAX).max(1)
    }

    /// Returns whether the queue of `bio`, or a parent of it, has used up its share of `limit`.
    pub(super) fn is_share_used(&self, bio: &Bio, limit: u32) -> bool {
        let Some(queue) = self.existing_queue(bio.ioc, bio.synchrony()) else { return false };
        self.wf2q.is_share_used(queue, limit.into())
    }
}
