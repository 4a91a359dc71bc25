//! How many requests may exist: as tags are given out, BFQ leaves room for what is to be fast.
//!
//! ```text
//!                        while no queue is raised     while one is
//!   async                        1/2                      3/16
//!   sync writes                  3/4                      6/16        of nr_requests
//!   sync reads                   all                      all
//! ```
//!
//! Of that, each level of the tree has its share by weight, from the top group down to the queue.
//! Linux gives one who holds its share a single tag more if that happens to be free; here it waits.

use smallvec::SmallVec;

use crate::bfq::Bfq;
use crate::bfq::wf2q::EntityId;
use crate::io_context::IoClass;
use crate::request::{Bio, Direction};
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    /// How many requests like `bio` may exist where `nr_requests` may in all; none is no limit.
    pub(super) fn depth_of(&self, bio: &Bio, nr_requests: u32) -> Option<u32> {
        let sixteenths = match (bio.is_sync(), self.symmetry.raised_busy != 0) {
            (true, _) if bio.op.direction() == Direction::Read => return None,
            (true, false) => 12,
            (true, true) => 6,
            (false, false) => 8,
            (false, true) => 3,
        };
        let depth = u64::from(nr_requests) * sixteenths / 16;
        Some(u32::try_from(depth).unwrap_or(u32::MAX).max(1))
    }

    /// Whether the queue of `bio`, or a group above it, has its share of `nr_requests`.
    pub(super) fn is_share_used(&self, bio: &Bio, nr_requests: u32) -> bool {
        let Some(queue) = self.existing_queue(bio.ioc, bio.is_sync()) else { return false };
        let mut limit = u64::from(self.depth_of(bio, nr_requests).unwrap_or(nr_requests));
        let above = |&id: &EntityId| self.wf2q.above(id);
        let path: SmallVec<[EntityId; 8]> = std::iter::successors(Some(queue), above).collect();
        for &id in path.iter().rev() {
            let entity = &self.wf2q.entities[id];
            if !entity.known {
                return false;
            }
            let sum = self.weight_beside(id);
            // To the nearest.
            let share = (limit * u64::from(entity.weight) + sum / 2).checked_div(sum);
            limit = share.unwrap_or(limit);
            if u64::from(entity.requests) >= limit.max(1) {
                return true;
            }
        }
        false
    }

    /// The weights among which an entity has its share: those of its class; for a queue those of
    /// the more urgent classes as well, each eight times as much as the next.
    fn weight_beside(&self, id: EntityId) -> u64 {
        let entity = &self.wf2q.entities[id];
        if entity.group.is_some() {
            return self.wf2q.weight_sum(entity.above, entity.class);
        }
        let classes = IoClass::ALL.into_iter().filter(|&class| class <= entity.class);
        classes.fold(0, |sum, class| sum * 8 + self.wf2q.weight_sum(entity.above, class))
    }
}
