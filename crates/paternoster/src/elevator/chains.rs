//! How a chain of bios that merged in a plug enters: as one bio of its whole range would. It may
//! merge into a queued request, which then has all of its bios; else one request is made of it.

use super::merge::merged;
use super::{Elevator, Submitted};
use crate::arena::RequestId;
use crate::plug::{Chain, FlushReason};
use crate::request::{Bio, BioFlags};
use crate::scheduler::Scheduler;
use crate::stats::{Counted, Stats};
use crate::time::{Instant, Nanos};
use crate::trace::{ElevatorEvent, Event, MergeKind, MergeSite};

impl<S: Scheduler> Elevator<S> {
    /// Notes that a plug was flushed, whose chains of this device come now.
    pub(crate) fn unplugged(
        &mut self,
        now: Instant,
        chains: usize,
        reason: FlushReason,
        age: Nanos,
    ) {
        self.advance(now);
        let depth = u32::try_from(chains).unwrap_or(u32::MAX);
        self.emit(Event::Elevator(ElevatorEvent::Unplugged { depth, reason, age }));
    }

    /// Submits a chain, as [`submit`](Self::submit) does a bio: for the first time, or again after
    /// it was turned away.
    ///
    /// # Errors
    ///
    /// Returns the chain where it may not enter now. The caller keeps it, and submits it again when
    /// a completion says so ([`Completed::wake_waiters`](crate::Completed::wake_waiters)).
    ///
    /// # Panics
    ///
    /// As [`submit`](Self::submit).
    pub fn submit_chain(&mut self, now: Instant, chain: Chain) -> Result<(), Chain> {
        self.advance(now);
        for &Bio { ioc, flags, op, sector, sectors, user_data, .. } in chain.bios() {
            if !flags.contains(BioFlags::RETRIED) {
                self.emit(Event::Elevator(ElevatorEvent::Queued {
                    bio: user_data,
                    ioc,
                    op,
                    sector,
                    sectors,
                }));
            }
        }
        let arrived = |stats: &mut Stats, group| {
            for bio in chain.bios() {
                stats.bio_arrived(bio, group);
            }
        };
        let (rq, at_end) = match self.enter(chain.whole(), arrived) {
            Submitted::Queued(rq) => (rq, None),
            Submitted::Merged { into, kind } => (into, Some(kind)),
            Submitted::Later(_) => return Err(chain.turned_away()),
        };
        for (bio, kind) in chain.merged() {
            self.take_plugged(rq, bio, at_end.unwrap_or(kind));
        }
        Ok(())
    }

    /// The request has the range of a whole chain, and takes a bio of it that merged in the plug.
    fn take_plugged(&mut self, rq: RequestId, bio: &Bio, kind: MergeKind) {
        let request = self.cx.requests.get_mut(rq);
        request.bios.push(bio.user_data);
        let counted = Counted::bio(bio, request.group);
        let merged = merged(bio, request, kind, MergeSite::Plug);
        self.stats.merged(counted);
        self.emit(merged);
    }
}
