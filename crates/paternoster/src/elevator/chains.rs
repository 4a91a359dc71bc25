//! How a chain of bios that merged in a plug enters: as one bio of its whole range would. It may
//! merge into a queued request, which then has all of its bios; else one request is made of it.

use super::{Elevator, Submitted};
use crate::plug::{Chain, FlushReason};
use crate::request::{Bio, BioFlags};
use crate::scheduler::Scheduler;
use crate::stats::Counted;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, MergeSite};

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
        self.emit(Event::Unplugged { depth, reason, age });
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
        for &Bio { flags, op, sector, sectors, user_data, .. } in chain.bios() {
            if !flags.contains(BioFlags::RETRIED) {
                self.emit(Event::Queued { bio: user_data, op, sector, sectors });
            }
        }
        let rq = match self.enter(chain.whole()) {
            Submitted::Queued(rq) | Submitted::Merged { into: rq, .. } => rq,
            Submitted::Later(_) => return Err(chain.turned_away()),
        };
        for (bio, kind) in chain.merged() {
            let request = self.requests.get_mut(rq);
            request.bios.push(bio.user_data);
            let counted = Counted::bio(bio, request.group);
            let event = Event::Merged {
                bio: bio.user_data,
                into: request.name(),
                kind,
                site: MergeSite::Plug,
            };
            self.stats.merged_in_plug(counted);
            self.emit(event);
        }
        Ok(())
    }
}
