//! When two pieces of I/O become one request.
//!
//! A bio looks for a request in this order, and stops at the first success:
//!
//! ```text
//!   last merge ──▶ table of ends (back) ──▶ the scheduler's front lookup      BlkMq, Legacy
//!   the newest 8 requests of a list                                           ListScan
//! ```
//!
//! A request that grew may touch its neighbour in sector order and joins with it, and a request
//! that is made after all may be swallowed whole by the one before it, again and again. There is
//! no merging once a request was dispatched.
//!
//! Linux's oddities are kept: of several requests with one end only the newest is looked at; a
//! request that refused a bio for its size never merges again; two discards never join, though
//! discard bios merge. A device takes one range a discard here, so bios that are not adjacent
//! never merge.

use super::Elevator;
use super::ends::Ends;
use super::limits::{Limits, Refusal};
use crate::arena::RequestId;
use crate::request::{Bio, Place, Request, Sector};
use crate::scheduler::{MergeRules, Scheduler, Side};
use crate::stats::Counted;
use crate::time::Instant;
use crate::trace::{Event, MergeKind, MergeSite, Trace};

/// Requests looked at by a list scan.
pub(super) const SCAN_DEPTH: u32 = 8;

/// How much is looked for: `queue/nomerges`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoMerges {
    /// 0: everything.
    #[default]
    Off,
    /// 1: only the request of the last merge (and a list scan), no tables.
    SimpleOnly,
    /// 2: nothing.
    All,
}

/// What merging remembers of the queued requests.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) limits: Limits,
    pub(super) nomerges: NoMerges,
    pub(super) scan_depth: u32,
    /// The request that took the last merge, or the first that could.
    last: Option<RequestId>,
    ends: Ends,
}

impl Merging {
    pub(super) fn new() -> Self {
        Self {
            limits: Limits::default(),
            nomerges: NoMerges::Off,
            scan_depth: SCAN_DEPTH,
            last: None,
            ends: Ends::new(),
        }
    }
}

/// A request that a bio may become part of.
#[derive(Clone, Copy)]
struct Candidate {
    rq: RequestId,
    kind: MergeKind,
    site: MergeSite,
}

impl<S: Scheduler> Elevator<S> {
    /// Makes `bio` part of a queued request, if it may be.
    pub(super) fn merge_bio(&mut self, now: Instant, bio: &Bio) -> Option<(RequestId, MergeKind)> {
        if self.merging.nomerges == NoMerges::All || !bio.is_mergeable() {
            return None;
        }
        self.ask(now, |scheduler, cx| scheduler.offer(cx, bio));
        if self.scheduler.merge_rules() == MergeRules::ListScan {
            return self.merge_by_scan(now, bio);
        }
        let found = self.find_candidate(now, bio)?;
        if !self.may_merge(now, found.rq, bio) {
            return None;
        }
        let rq = self.merge_into(now, bio, found).ok()?;
        Some((rq, found.kind))
    }

    /// The lookups, in their order. Only one candidate a step is tried.
    fn find_candidate(&mut self, now: Instant, bio: &Bio) -> Option<Candidate> {
        if let Some(last) = self.merging.last
            && self.may_merge(now, last, bio)
            && let Some(kind) = adjacency(&self.requests[last], bio)
        {
            return Some(Candidate { rq: last, kind, site: MergeSite::Cache });
        }
        if self.merging.nomerges == NoMerges::SimpleOnly {
            return None;
        }
        if let Some(rq) = self.merging.ends.find(&self.requests, bio.sector)
            && self.may_merge(now, rq, bio)
        {
            return Some(Candidate { rq, kind: MergeKind::Back, site: MergeSite::Hash });
        }
        let rq = self.ask(now, |scheduler, cx| scheduler.find_front_merge(cx, bio))?;
        let front = Candidate { rq, kind: MergeKind::Front, site: MergeSite::Tree };
        self.may_merge(now, rq, bio).then_some(front)
    }

    /// The list scan: every request looked at counts, whatever came of it.
    fn merge_by_scan(&mut self, now: Instant, bio: &Bio) -> Option<(RequestId, MergeKind)> {
        let mut newer = None;
        for _ in 0..self.merging.scan_depth {
            let rq = self.ask(now, |scheduler, cx| scheduler.scan(cx, bio, newer))?;
            newer = Some(rq);
            if !self.rules_allow(rq, bio) {
                continue;
            }
            let Some(kind) = adjacency(&self.requests[rq], bio) else { continue };
            if !self.ask(now, |scheduler, cx| scheduler.allow_merge(cx, rq, bio)) {
                return None;
            }
            let found = Candidate { rq, kind, site: MergeSite::Scan };
            return self.merge_into(now, bio, found).ok().map(|rq| (rq, kind));
        }
        None
    }

    fn may_merge(&mut self, now: Instant, rq: RequestId, bio: &Bio) -> bool {
        self.rules_allow(rq, bio)
            && self.ask(now, |scheduler, cx| scheduler.allow_merge(cx, rq, bio))
    }

    /// The general rules. Under the legacy rules group and priority are the
    /// scheduler's to compare, by the queue.
    fn rules_allow(&self, rq: RequestId, bio: &Bio) -> bool {
        let request = &self.requests[rq];
        if !request.is_mergeable() || request.op != bio.op {
            return false;
        }
        let context = &self.contexts[bio.ioc];
        self.scheduler.merge_rules() == MergeRules::Legacy
            || (request.group == context.group && request.io_prio == context.io_prio)
    }

    /// Adds `bio` to the request, which may join with a neighbour at once: the request in which
    /// the bio is now.
    fn merge_into(
        &mut self,
        now: Instant,
        bio: &Bio,
        Candidate { rq, kind, site }: Candidate,
    ) -> Result<RequestId, Refusal> {
        let joint = Limits::joint_with_bio(&self.requests[rq], bio, kind == MergeKind::Front);
        if let Err(refusal) = self.merging.limits.fits(&joint) {
            self.note_refusal(rq, refusal);
            return Err(refusal);
        }
        let old_end = self.requests[rq].end();
        self.take_bio(rq, bio, kind);
        self.stats.merged(Counted::bio(bio, self.requests[rq].group));
        let event =
            Event::Merged { bio: bio.user_data, into: self.requests[rq].name(), kind, site };
        self.scheduler.trace().event(now, event);
        if self.scheduler.merge_rules() == MergeRules::ListScan {
            return Ok(rq);
        }
        if kind == MergeKind::Back {
            self.merging.ends.remove(&mut self.requests, rq, old_end);
            self.merging.ends.insert(&mut self.requests, rq);
        }
        Ok(self.join_with_neighbour(now, rq, kind))
    }

    fn take_bio(&mut self, rq: RequestId, bio: &Bio, kind: MergeKind) {
        let request = &mut self.requests[rq];
        request.bios.push(bio.user_data);
        request.sectors = request.sectors + bio.sectors;
        request.segments = request.segments.saturating_add(bio.segments);
        if kind == MergeKind::Front {
            request.sector = bio.sector;
        }
    }

    /// One refused attempt for size ends a request's merging for good.
    fn note_refusal(&mut self, rq: RequestId, refusal: Refusal) {
        if refusal == Refusal::Gap {
            return;
        }
        self.requests[rq].never_merge = true;
        if self.merging.last == Some(rq) {
            self.merging.last = None;
        }
    }

    /// After a back merge the next request may be swallowed; after a front merge the previous
    /// one, at the old place in the tree, may swallow. One attempt.
    fn join_with_neighbour(&mut self, now: Instant, rq: RequestId, kind: MergeKind) -> RequestId {
        let side = if kind == MergeKind::Back { Side::After } else { Side::Before };
        let neighbour = self.ask(now, |scheduler, cx| scheduler.neighbour(cx, rq, side));
        if let Some(neighbour) = neighbour {
            let (before, after) =
                if kind == MergeKind::Back { (rq, neighbour) } else { (neighbour, rq) };
            if self.may_join(before, after) {
                self.join(now, before, after, MergeSite::Neighbour);
                return before;
            }
        }
        self.ask(now, |scheduler, cx| scheduler.request_merged(cx, rq, kind));
        self.merging.last = Some(rq);
        rq
    }

    /// Has `rq`, just made, swallowed whole by the one before it; that one may be swallowed in
    /// turn. The request in which it is now.
    pub(super) fn join_at_insert(&mut self, now: Instant, rq: RequestId) -> Option<RequestId> {
        if self.merging.nomerges == NoMerges::All || !self.requests[rq].is_mergeable() {
            return None;
        }
        if let Some(last) = self.merging.last
            && self.may_join(last, rq)
        {
            self.join(now, last, rq, MergeSite::Insert);
            return Some(last);
        }
        if self.merging.nomerges == NoMerges::SimpleOnly {
            return None;
        }
        let mut swallowed = None;
        let mut rq = rq;
        while let Some(before) = self.merging.ends.find(&self.requests, self.requests[rq].sector)
            && before != rq
            && self.may_join(before, rq)
        {
            self.join(now, before, rq, MergeSite::Insert);
            rq = before;
            swallowed = Some(before);
        }
        swallowed
    }

    /// Whether `after` may become part of `before`. A refusal marks nothing.
    fn may_join(&self, before: RequestId, after: RequestId) -> bool {
        let (before, after) = (&self.requests[before], &self.requests[after]);
        before.is_mergeable()
            && after.is_mergeable()
            && before.op == after.op
            && (self.scheduler.merge_rules() == MergeRules::Legacy
                || (before.io_prio == after.io_prio && before.group == after.group))
            && before.end() == after.sector
            && self.merging.limits.fits(&Limits::joint_of_requests(before, after)).is_ok()
    }

    /// Makes `gone` part of `rq`, which it follows.
    fn join(&mut self, now: Instant, rq: RequestId, gone: RequestId, site: MergeSite) {
        let event = Event::Joined {
            gone: self.requests[gone].name(),
            into: self.requests[rq].name(),
            site,
        };
        self.scheduler.trace().event(now, event);
        let was_queued = self.requests[gone].is_queued();
        if was_queued {
            self.forget_end(gone);
        }
        let old_end = self.requests[rq].end();
        self.take_request(rq, gone);
        self.ask(now, |scheduler, cx| scheduler.requests_merged(cx, rq, gone));
        self.merging.ends.remove(&mut self.requests, rq, old_end);
        self.merging.ends.insert(&mut self.requests, rq);
        self.merging.last = Some(rq);
        let counted = Counted::request(&self.requests[gone]);
        self.stats.merged(counted);
        if was_queued {
            self.queued -= 1;
            self.stats.request_gone(now, counted);
        }
        self.free(gone);
    }

    fn take_request(&mut self, rq: RequestId, gone: RequestId) {
        let Request { sectors, segments, start, .. } = self.requests[gone];
        let bios = std::mem::take(&mut self.requests[gone].bios);
        let request = &mut self.requests[rq];
        request.bios.extend(bios);
        request.sectors = request.sectors + sectors;
        request.segments = request.segments.saturating_add(segments);
        request.start = request.start.min(start);
    }

    /// Lets later bios find `rq`, which was just inserted in sector order.
    pub(super) fn remember(&mut self, rq: RequestId) {
        let listed = self.scheduler.merge_rules() != MergeRules::ListScan;
        if listed && self.requests[rq].is_mergeable() {
            self.merging.ends.insert(&mut self.requests, rq);
            self.requests[rq].hashed = true;
            self.merging.last.get_or_insert(rq);
        }
    }

    /// Later bios do not find `rq`, which leaves the scheduler.
    pub(super) fn forget(&mut self, rq: RequestId) {
        self.forget_end(rq);
        if self.merging.last == Some(rq) {
            self.merging.last = None;
        }
    }

    fn forget_end(&mut self, rq: RequestId) {
        if std::mem::take(&mut self.requests[rq].hashed) {
            let end: Sector = self.requests[rq].end();
            self.merging.ends.remove(&mut self.requests, rq, end);
        }
    }
}

/// At which end of `rq` the bio would go. Back is tested before front.
#[inline]
fn adjacency(rq: &Request, bio: &Bio) -> Option<MergeKind> {
    debug_assert_ne!(rq.place, Place::InDevice, "what is in the device does not merge");
    if rq.end() == bio.sector {
        Some(MergeKind::Back)
    } else if bio.end() == rq.sector {
        Some(MergeKind::Front)
    } else {
        None
    }
}
