//! When two pieces of I/O become one request.
//!
//! A bio looks for a request in this order, and stops at the first success:
//!
//! ```text
//!   last merge ──▶ merge hash (back) ──▶ the scheduler's front lookup         BlkMq, Legacy
//!   the newest 8 requests of a list                                           ListScan
//! ```
//!
//! When a request grows, it may touch its neighbour in sector order; then one absorbs the other.
//! When a bio merges nowhere, its request may be absorbed by the one before it as it is inserted,
//! and that one again by the one before. A dispatched request merges no more.
//!
//! Linux's oddities are kept. Of several requests that end at one sector only the newest is looked
//! at. A request that refused a bio for its size never merges again. Discard bios merge with
//! discard requests, but discard requests never with each other. Here a device takes one range a
//! discard, so that bios which are not adjacent never merge.

use super::Elevator;
use super::limits::{Limits, Refusal, adjacency};
use super::merge_hash::MergeHash;
use crate::arena::{GroupId, RequestId};
use crate::io_context::IoPrio;
use crate::parts::sort_list::SortList;
use crate::request::{Bio, Place, Request};
use crate::scheduler::{MergeRules, Scheduler};
use crate::stats::Counted;
use crate::trace::{ElevatorEvent, Event, MergeKind, MergeSite};

/// Requests looked at by a list scan.
pub(super) const SCAN_DEPTH: u32 = 8;

/// How much merging is turned off: `queue/nomerges`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoMerges {
    /// 0: nothing is turned off.
    #[default]
    Off,
    /// 1: the lookups in tables; the request of the last merge and a list scan remain.
    SimpleOnly,
    /// 2: all merging.
    All,
}

/// What merging remembers of the queued requests.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) limits: Limits,
    pub(super) nomerges: NoMerges,
    pub(super) scan_depth: u32,
    /// The request of the last merge, or the first that may merge.
    last: Option<RequestId>,
    hash: MergeHash,
}

impl Merging {
    pub(super) fn new() -> Self {
        Self {
            limits: Limits::default(),
            nomerges: NoMerges::Off,
            scan_depth: SCAN_DEPTH,
            last: None,
            hash: MergeHash::new(),
        }
    }
}

/// A request that a bio may merge into.
#[derive(Clone, Copy)]
struct Candidate {
    rq: RequestId,
    kind: MergeKind,
    site: MergeSite,
}

/// A bio merged with no request. If a request is made of it, that looks for one to absorb it.
#[derive(Clone, Copy)]
pub(super) struct Unmerged {
    /// The hash was searched, and no request in it ends where the bio starts.
    none_before: bool,
}

impl Unmerged {
    /// The hash may have a request that ends where the bio starts.
    const SOME_MAY_END_THERE: Self = Self { none_before: false };
}

impl<S: Scheduler> Elevator<S> {
    /// Merges `bio` into a queued request, or says what it has found out where none takes it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn merge_bio(&mut self, bio: &Bio) -> Result<(RequestId, MergeKind), Unmerged> {
        if self.merging.nomerges == NoMerges::All || !bio.is_mergeable() {
            return Err(Unmerged::SOME_MAY_END_THERE);
        }
        self.scheduler.offer(&mut self.cx, bio);
        if self.scheduler.rules().merging == MergeRules::ListScan {
            return self.merge_by_scan(bio).ok_or(Unmerged::SOME_MAY_END_THERE);
        }
        let found = self.find_candidate(bio)?;
        if !self.may_merge(found.rq, bio) {
            return Err(Unmerged::SOME_MAY_END_THERE);
        }
        self.merge_into(bio, found).map_err(|_| Unmerged::SOME_MAY_END_THERE)?;
        Ok((self.after_merge(bio, found), found.kind))
    }

    /// Looks for a request in the order of the module's head. Each step tries one candidate.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find_candidate(&mut self, bio: &Bio) -> Result<Candidate, Unmerged> {
        if let Some(last) = self.merging.last
            && let Some(kind) = self.touches_last(last, bio)
        {
            return Ok(Candidate { rq: last, kind, site: MergeSite::Cache });
        }
        if self.merging.nomerges == NoMerges::SimpleOnly {
            return Err(Unmerged::SOME_MAY_END_THERE);
        }
        let ends_before = self.merging.hash.find(&self.cx.requests, bio.sector);
        if let Some(rq) = ends_before
            && self.may_merge(rq, bio)
        {
            return Ok(Candidate { rq, kind: MergeKind::Back, site: MergeSite::Hash });
        }
        let unmerged = Unmerged { none_before: ends_before.is_none() };
        let rq = self.scheduler.find_front_merge(&self.cx, bio).ok_or(unmerged)?;
        let front = Candidate { rq, kind: MergeKind::Front, site: MergeSite::Tree };
        if self.may_merge(rq, bio) { Ok(front) } else { Err(unmerged) }
    }

    /// Returns the end of `last` at which the bio merges, if it may. The ends are compared first
    /// where the scheduler need not be asked.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn touches_last(&mut self, last: RequestId, bio: &Bio) -> Option<MergeKind> {
        let is_pure = self.scheduler.rules().pure_merging;
        if is_pure && self.adjacency(last, bio).is_none() || !self.may_merge(last, bio) {
            return None;
        }
        self.adjacency(last, bio)
    }

    /// Scans a list. Every request that it looks at counts, whether it matches or not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn merge_by_scan(&mut self, bio: &Bio) -> Option<(RequestId, MergeKind)> {
        let mut newer = None;
        for _ in 0..self.merging.scan_depth {
            let rq = self.scheduler.scan(&self.cx, bio, newer)?;
            newer = Some(rq);
            let Some(kind) = self.adjacency(rq, bio) else { continue };
            if !self.rules_allow(rq, bio) {
                continue;
            }
            if !self.scheduler.allow_merge(&mut self.cx, rq, bio) {
                return None;
            }
            let found = Candidate { rq, kind, site: MergeSite::Scan };
            return self.merge_into(bio, found).ok().map(|()| (rq, kind));
        }
        None
    }

    /// Returns the end of `rq` at which the bio would merge.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn adjacency(&self, rq: RequestId, bio: &Bio) -> Option<MergeKind> {
        let request = &self.cx.requests[rq];
        debug_assert_ne!(request.place, Place::InFlight, "a request in flight does not merge");
        adjacency(request.extent(), bio)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_merge(&mut self, rq: RequestId, bio: &Bio) -> bool {
        self.rules_allow(rq, bio) && self.scheduler.allow_merge(&mut self.cx, rq, bio)
    }

    /// Returns whether the general rules allow it: the same operation, group and priority.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn rules_allow(&self, rq: RequestId, bio: &Bio) -> bool {
        let request = &self.cx.requests[rq];
        if !request.is_mergeable() || request.op != bio.op {
            return false;
        }
        let context = &self.cx.contexts[bio.ioc];
        self.owners_allow((request.group, request.io_prio), (context.group, context.io_prio))
    }

    /// Returns whether I/O of these groups and priorities may be one request. Under the legacy
    /// rules the scheduler decides that, by the queue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn owners_allow(&self, one: (GroupId, IoPrio), other: (GroupId, IoPrio)) -> bool {
        self.scheduler.rules().merging == MergeRules::Legacy || one == other
    }

    /// Adds `bio` to the request. Where it does not fit, the request is marked by the reason.
    #[cold]
    #[inline(never)]
    fn merge_into(
        &mut self,
        bio: &Bio,
        Candidate { rq, kind, site }: Candidate,
    ) -> Result<(), Refusal> {
        let Request { segments, .. } = self.cx.requests[rq];
        let joint = Limits::joint_with_bio(self.cx.requests[rq].extent(), segments, bio, kind);
        if let Err(refusal) = self.merging.limits.fits(&joint) {
            self.note_refusal(rq, refusal);
            return Err(refusal);
        }
        self.take_bio(rq, bio, kind);
        self.stats.merged(Counted::bio(bio, self.cx.requests[rq].group));
        self.emit(merged(bio, &self.cx.requests[rq], kind, site));
        Ok(())
    }

    /// Hashes the request that has taken `bio` by its new end, and merges it with a neighbour if it
    /// may. Returns the request that holds the bio now. A list scan needs none of this.
    #[cold]
    #[inline(never)]
    fn after_merge(&mut self, bio: &Bio, Candidate { rq, kind, .. }: Candidate) -> RequestId {
        if kind == MergeKind::Back {
            self.merging.hash.remove(&mut self.cx.requests, rq, bio.sector);
            self.merging.hash.insert(&mut self.cx.requests, rq);
        }
        self.merge_with_neighbour(rq, kind)
    }

    #[cold]
    #[inline(never)]
    fn take_bio(&mut self, rq: RequestId, bio: &Bio, kind: MergeKind) {
        let request = self.cx.requests.get_mut(rq);
        request.bios.push(bio.user_data);
        request.sectors = request.sectors + bio.sectors;
        request.segments = request.segments.saturating_add(bio.segments);
        if kind == MergeKind::Front {
            request.sector = bio.sector;
        }
    }

    /// A request that refused a bio for its size or its segments never merges again.
    #[cold]
    #[inline(never)]
    fn note_refusal(&mut self, rq: RequestId, refusal: Refusal) {
        if !refusal.is_for_good() {
            return;
        }
        self.cx.requests.get_mut(rq).never_merge = true;
        if self.merging.last == Some(rq) {
            self.merging.last = None;
        }
    }

    /// After a back merge `rq` may absorb the next request; after a front merge the previous one,
    /// by its old place in the tree, may absorb `rq`. One attempt. Returns the request that
    /// remains.
    #[cold]
    #[inline(never)]
    fn merge_with_neighbour(&mut self, rq: RequestId, kind: MergeKind) -> RequestId {
        let pair = match kind {
            MergeKind::Back => SortList::after(&self.cx.requests, rq).map(|after| (rq, after)),
            MergeKind::Front => SortList::before(&self.cx.requests, rq).map(|before| (before, rq)),
        };
        if let Some((before, after)) = pair
            && self.may_absorb(before, after)
        {
            self.absorb(before, after, MergeSite::Neighbour);
            return before;
        }
        self.scheduler.request_merged(&mut self.cx, rq, kind);
        self.merging.last = Some(rq);
        rq
    }

    /// Lets the request before `rq`, which was just made, absorb it; that one may be absorbed by
    /// the one before itself, and so on. Returns the request that holds the bio of `rq` now, if
    /// any.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn merge_at_insert(
        &mut self,
        rq: RequestId,
        unmerged: Unmerged,
    ) -> Option<RequestId> {
        if self.scheduler.rules().merging != MergeRules::BlkMq {
            return None;
        }
        if self.merging.nomerges == NoMerges::All || !self.cx.requests[rq].is_mergeable() {
            return None;
        }
        if let Some(last) = self.merging.last
            && self.may_absorb(last, rq)
        {
            self.absorb(last, rq, MergeSite::Insert);
            return Some(last);
        }
        if self.merging.nomerges == NoMerges::SimpleOnly || unmerged.none_before {
            return None;
        }
        let mut into = None;
        let mut rq = rq;
        while let Some(before) =
            self.merging.hash.find(&self.cx.requests, self.cx.requests[rq].sector)
            && before != rq
            && self.may_absorb(before, rq)
        {
            self.absorb(before, rq, MergeSite::Insert);
            rq = before;
            into = Some(before);
        }
        into
    }

    /// Returns whether `before` may absorb `after`. A refusal marks neither of them.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_absorb(&self, before: RequestId, after: RequestId) -> bool {
        let (before, after) = (&self.cx.requests[before], &self.cx.requests[after]);
        before.end() == after.sector
            && before.is_mergeable()
            && after.is_mergeable()
            && before.op == after.op
            && self.owners_allow((before.group, before.io_prio), (after.group, after.io_prio))
            && self.merging.limits.fits(&Limits::joint_of_requests(before, after)).is_ok()
    }

    /// Has `rq` absorb `absorbed`, which starts where `rq` ends.
    #[cold]
    #[inline(never)]
    fn absorb(&mut self, rq: RequestId, absorbed: RequestId, site: MergeSite) {
        let event = Event::Elevator(ElevatorEvent::Absorbed {
            absorbed: self.cx.requests[absorbed].name(),
            into: self.cx.requests[rq].name(),
            site,
        });
        self.emit(event);
        let was_queued = self.cx.requests[absorbed].is_queued();
        if was_queued {
            self.unhash(absorbed);
        }
        let old_end = self.cx.requests[rq].end();
        self.take_request(rq, absorbed);
        self.scheduler.requests_merged(&mut self.cx, rq, absorbed);
        self.merging.hash.remove(&mut self.cx.requests, rq, old_end);
        self.merging.hash.insert(&mut self.cx.requests, rq);
        self.merging.last = Some(rq);
        self.stats.merged(Counted::request(&self.cx.requests[absorbed]));
        if was_queued {
            self.waits_no_more(absorbed);
        }
        self.free(absorbed);
    }

    #[cold]
    #[inline(never)]
    fn take_request(&mut self, rq: RequestId, absorbed: RequestId) {
        let Request { sectors, segments, start, .. } = self.cx.requests[absorbed];
        let bios = std::mem::take(&mut self.cx.requests.get_mut(absorbed).bios);
        let request = self.cx.requests.get_mut(rq);
        request.bios.extend(bios);
        request.sectors = request.sectors + sectors;
        request.segments = request.segments.saturating_add(segments);
        request.start = request.start.min(start);
    }

    /// Lets later bios find `rq`, which was just inserted in sector order.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn make_candidate(&mut self, rq: RequestId) {
        let hashed = self.scheduler.rules().merging != MergeRules::ListScan;
        if hashed && self.cx.requests[rq].is_mergeable() {
            self.merging.hash.insert(&mut self.cx.requests, rq);
            self.merging.last.get_or_insert(rq);
        }
    }

    /// Keeps later bios from finding `rq`, which leaves the scheduler.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn drop_candidate(&mut self, rq: RequestId) {
        self.unhash(rq);
        if self.merging.last == Some(rq) {
            self.merging.last = None;
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unhash(&mut self, rq: RequestId) {
        let request = &self.cx.requests[rq];
        if request.hashed {
            let end = request.end();
            self.merging.hash.remove(&mut self.cx.requests, rq, end);
        }
    }
}

/// The event of a bio that has become a part of `into`.
pub(super) fn merged(bio: &Bio, into: &Request, kind: MergeKind, site: MergeSite) -> Event {
    let &Bio { user_data, ioc, op, sector, sectors, .. } = bio;
    let into = into.name();
    let bio = user_data;
    Event::Elevator(ElevatorEvent::Merged { bio, into, kind, site, ioc, op, sector, sectors })
}
