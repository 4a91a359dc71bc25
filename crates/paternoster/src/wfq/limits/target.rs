//! Latency targets: while requests of a group take too long, others have fewer in the device.
//!
//! ```text
//!   depth 20   │ ●●●●●●●●●●●● others: 12 are held at │ ●●●·····│ for groups with such a target
//!
//!   each 100 ms, with 20 requests of the group or more:
//!     more than a tenth took longer than T        held − 1/8, down to a quarter of the depth
//!     less than a tenth took longer than 0.8 T    held + 1/16, up to the depth: none is held;
//!                                                 but for 5 s not to where it was missed
//!     missed for ten periods at the quarter       it cannot be met: none is held for 5 s
//!   with fewer requests: after 10 s by what there is; none is held for who asks for nothing
//! ```
//!
//! A request in the device is behind all that is there. Its latency is what the device makes of
//! that, and only fewer in the device make it shorter. So groups *with a later target or none* are
//! held to fewer; the rest of the depth is left to the group, whose turn comes by its tags as
//! before: it gets no more than its weight. A request that a reservation brings forward is
//! not held.
//!
//! A request costs a look at the targets of its group and those above it, and at one other, each in
//! turn: of n targets each is looked at once in n completions at least.
//!
//! One more in the device may be what makes nearly all of them late, where service is constant: so
//! that number is not tried again at once, or half of the periods would be missed.

use super::levels::Levels;
use crate::arena::{GroupId, SideTable};
use crate::scheduler::Cx;
use crate::stats::TargetStats;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, TargetVerdict, WfqEvent};
use crate::wfq::node::{NodeId, Tree};

/// A period lasts so long at least,
const PERIOD: Nanos = Nanos::from_millis(100);
/// and has as many requests.
const LEAST_REQUESTS: u32 = 20;
/// With fewer it lasts so long, and is judged by those that there were.
const LONGEST_PERIOD: Nanos = Nanos::from_secs(10);
/// Nobody is held for a group of which nothing is served or waits in this time.
const IDLE: Nanos = Nanos::from_secs(1);
/// A target that is missed so often though others are held as far as may be cannot be met.
const MOST_MISSED: u32 = 10;
/// For so long nobody is held then. For so long, too, others do not get as many again as they had
/// when it was missed.
const PAUSE: Nanos = Nanos::from_secs(5);
/// The target of a group that has none: later than any.
pub(in crate::wfq) const NO_TARGET: Nanos = Nanos::new(u64::MAX);

/// The latency targets.
#[derive(Debug, Default)]
pub(in crate::wfq) struct Targets {
    /// All of them, in no particular order.
    of: Vec<Target>,
    /// Where the target of a group is among them.
    places: SideTable<GroupId, usize>,
    /// Which is looked at next in turn.
    next: usize,
    /// What is in the device, and how many of it are held, by target.
    levels: Levels,
}

/// The latency target of a group, for its requests and those of all below it.
#[derive(Debug)]
struct Target {
    group: GroupId,
    /// The node of the group.
    node: NodeId,
    /// The time within which nine of ten shall be served.
    within: Nanos,
    /// When this period began, and what was served in it.
    since: Instant,
    period: Period,
    /// When a request of it was served or seen waiting last.
    last: Instant,
    /// How many requests others may have in the device; none where they are not held.
    held: Option<u32>,
    /// How many they might have when it was missed last, and until when that counts.
    missed_at: Option<(u32, Instant)>,
    /// Periods in a row in which it was missed though others were held as far as may be.
    missed: u32,
    /// All such periods, in a row or not.
    unmet: u64,
    /// Until when it is given up.
    given_up_until: Instant,
}

/// Requests that were served in a period.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    /// All of them.
    requests: u32,
    /// Those that took longer than the target.
    late: u32,
    /// Those that took longer than 0.8 of it.
    nearly_late: u32,
}

impl Period {
    /// Whether more than a tenth is late.
    fn is_missed(self) -> bool {
        u64::from(self.late) * 10 > u64::from(self.requests)
    }

    /// Whether less than a tenth is nearly late.
    fn is_reached_with_room(self) -> bool {
        u64::from(self.nearly_late) * 10 < u64::from(self.requests)
    }
}

impl Target {
    fn new(group: GroupId, node: NodeId, within: Nanos, now: Instant) -> Self {
        Self {
            group,
            node,
            within,
            since: now,
            period: Period::default(),
            last: now,
            held: None,
            missed_at: None,
            missed: 0,
            unmet: 0,
            given_up_until: Instant::START,
        }
    }

    fn count(&mut self, now: Instant, latency: Nanos) {
        // 0.8 of it, without an overflow.
        let nearly = self.within.saturating_sub(Nanos::new(self.within.as_nanos() / 5));
        self.last = now;
        self.period.requests = self.period.requests.saturating_add(1);
        self.period.late += u32::from(latency > self.within);
        self.period.nearly_late += u32::from(latency > nearly);
    }

    /// Notes that something of it waits, and not for a cap of its own.
    fn note_waiting(&mut self, now: Instant) {
        self.last = now;
    }

    /// Brings the statistics up to date.
    fn update(&self, now: Instant, stats: &mut TargetStats) {
        stats.held = self.held;
        stats.unmet = self.unmet;
        stats.given_up = now < self.given_up_until;
    }

    /// Judges the period, if it is over, with that depth in force. Returns what has changed.
    fn judge(&mut self, now: Instant, depth: u32) -> Option<Event> {
        let length = now.saturating_since(self.since);
        let requests = self.period.requests;
        let is_idle = now.saturating_since(self.last) >= IDLE && requests < LEAST_REQUESTS;
        let is_enough = requests >= LEAST_REQUESTS || (length >= LONGEST_PERIOD && requests > 0);
        if length < PERIOD || !(is_enough || is_idle) {
            return None;
        }
        let period = std::mem::take(&mut self.period);
        self.since = now;
        let before = self.held;
        let verdict = if is_idle {
            (self.held, self.missed) = (None, 0);
            TargetVerdict::Idle
        } else if now < self.given_up_until {
            return None;
        } else if period.is_missed() {
            self.tighten(now, depth)
        } else {
            self.missed = 0;
            if period.is_reached_with_room() {
                self.loosen(now, depth);
            }
            TargetVerdict::Reached
        };
        let Period { requests, late, .. } = period;
        let event = Event::Wfq(WfqEvent::TargetJudged {
            group: self.group,
            late,
            requests,
            verdict,
            held: self.held,
        });
        (before != self.held || verdict == TargetVerdict::Unmet).then_some(event)
    }

    /// Holds others to fewer. After some periods with the fewest the target is given up.
    fn tighten(&mut self, now: Instant, depth: u32) -> TargetVerdict {
        let fewest = depth.div_ceil(4).max(1);
        let held = self.held.unwrap_or(depth).min(depth).max(fewest);
        self.missed_at = Some((held, now + PAUSE));
        if held > fewest {
            self.held = Some((held - (held / 8).max(1)).max(fewest));
            self.missed = 0;
            return TargetVerdict::Missed;
        }
        self.held = Some(held);
        self.missed += 1;
        self.unmet += 1;
        if self.missed < MOST_MISSED {
            return TargetVerdict::Missed;
        }
        (self.held, self.missed) = (None, 0);
        self.given_up_until = now + PAUSE;
        TargetVerdict::Unmet
    }

    /// Lets others have more, but not as many as when it was missed a moment ago.
    fn loosen(&mut self, now: Instant, depth: u32) {
        let Some(held) = self.held else { return };
        let more = held + held / 16 + 1;
        let at_most = match self.missed_at {
            Some((missed_at, until)) if now < until => missed_at.saturating_sub(1),
            _ => depth,
        };
        let held = more.min(at_most.max(held));
        self.held = (held < depth).then_some(held);
    }
}

impl Targets {
    #[inline]
    pub(in crate::wfq) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether others are held for some group.
    #[inline]
    pub(in crate::wfq) fn hold_some(&self) -> bool {
        self.levels.hold_some()
    }

    /// Counts a request in the device whose group has to be served `within` that time. There are
    /// targets.
    #[inline]
    pub(in crate::wfq) fn enter(&mut self, within: Nanos) {
        self.levels.enter(within);
    }

    /// The same of one that has left it.
    #[inline]
    pub(in crate::wfq) fn leave(&mut self, within: Nanos) {
        self.levels.leave(within);
    }

    /// Returns whether a request whose group has to be served `within` that time has to wait.
    #[inline]
    pub(in crate::wfq) fn must_wait(&self, within: Nanos) -> bool {
        self.hold_some() && self.levels.must_wait(within)
    }

    /// Sets the target of a group, whose node that is, or removes it. Returns whether that is
    /// another one: what is in the device has to be counted anew.
    pub(super) fn set(
        &mut self,
        group: GroupId,
        node: NodeId,
        within: Option<Nanos>,
        now: Instant,
    ) -> bool {
        if self.places.get(group).map(|&at| self.of[at].within) == within {
            return false;
        }
        self.of.retain(|target| target.group != group);
        self.of.extend(within.map(|within| Target::new(group, node, within, now)));
        self.places = self.of.iter().enumerate().map(|(at, target)| (target.group, at)).collect();
        self.levels = Levels::of(self.of.iter().map(|target| (target.within, target.held)));
        true
    }

    /// Takes the latency of a request that has completed, and judges what is to be judged; that
    /// depth holds outside of trials.
    pub(super) fn judge(
        &mut self,
        tree: &mut Tree,
        cx: &Cx,
        group: GroupId,
        latency: Nanos,
        depth: u32,
        tell: &mut dyn FnMut(Event),
    ) {
        let mut at = Some(group);
        while let Some(group) = at {
            if let Some(&place) = self.places.get(group) {
                let target = &mut self.of[place];
                target.count(cx.now, latency);
                tree.share_mut(target.node).target.count(latency > target.within);
                self.judge_one(tree, place, cx.now, depth, tell);
            }
            at = cx.groups[group].parent;
        }
        let place = self.turn();
        self.judge_one(tree, place, cx.now, depth, tell);
    }

    /// Judges the target at that place, if its period is over.
    fn judge_one(
        &mut self,
        tree: &mut Tree,
        place: usize,
        now: Instant,
        depth: u32,
        tell: &mut dyn FnMut(Event),
    ) {
        let target = &mut self.of[place];
        if tree.nodes[target.node].is_active() {
            target.note_waiting(now);
        }
        let before = target.held;
        if let Some(event) = target.judge(now, depth) {
            tell(event);
        }
        target.update(now, &mut tree.share_mut(target.node).target);
        if target.held != before {
            let within = target.within;
            self.follow_held(within);
        }
    }

    /// Returns the place of the one that is looked at now, in turn.
    fn turn(&mut self) -> usize {
        self.next = if self.next + 1 < self.of.len() { self.next + 1 } else { 0 };
        self.next
    }

    /// Has as many of the others in the device as the targets at the level of that one allow.
    fn follow_held(&mut self, within: Nanos) {
        let of_it = self.of.iter().filter(|target| target.within == within);
        let held = of_it.filter_map(|target| target.held).min();
        self.levels.hold(within, held);
    }

    /// Asserts that what is in the device is counted, where requests of groups with these targets
    /// are, and that the least that targets allow is what holds.
    pub(in crate::wfq) fn check(&self, in_device: &[Nanos]) {
        let held = self.of.iter().map(|target| (target.within, target.held));
        let mut expected = Levels::of(held);
        if !self.is_empty() {
            for &within in in_device {
                expected.enter(within);
            }
        }
        assert_eq!(self.levels, expected, "what is in the device by target");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::GroupId;

    const DEPTH: u32 = 16;

    /// Periods of 100 requests, of which so many take that long, and the rest nothing.
    fn held_after(periods: &[(u32, Nanos)]) -> Vec<Option<u32>> {
        let mut target = Target::new(
            GroupId::default(),
            NodeId::default(),
            Nanos::from_micros(1000),
            Instant::START,
        );
        let mut now = Instant::START;
        let mut held = vec![];
        for &(late, latency) in periods {
            for at in 0..100 {
                target.count(now, if at < late { latency } else { Nanos::ZERO });
            }
            now = now + PERIOD;
            target.judge(now, DEPTH);
            held.push(target.held);
        }
        held
    }

    #[test]
    fn more_than_a_tenth_later_than_the_target_holds_others_to_an_eighth_less() {
        let (late, in_time) = (Nanos::from_micros(1001), Nanos::from_micros(1000));
        assert_eq!(held_after(&[(10, late), (100, in_time)]), [None, None]);
        assert_eq!(held_after(&[(11, late); 3]), [Some(14), Some(13), Some(12)]);
    }

    #[test]
    fn less_than_a_tenth_within_a_fifth_of_it_lets_others_have_more_after_a_while() {
        let (late, near, far) =
            (Nanos::from_micros(2000), Nanos::from_micros(801), Nanos::from_micros(800));
        let held =
            held_after(&[&[(50, late), (50, late), (50, near)], &[(50, far); 53][..]].concat());
        assert_eq!(held[..4], [Some(14), Some(13), Some(13), Some(13)], "14 was missed");
        // The second period was missed; 5 s are over with the 52nd. The depth itself holds nobody.
        assert_eq!(held[50..54], [Some(13), Some(14), Some(15), None]);
    }

    #[test]
    fn others_keep_a_quarter_of_the_depth_and_get_all_of_it_when_that_does_not_help() {
        let late = (100, Nanos::from_micros(2000));
        // 14 13 12 11 10 9 8 7 6 5 4, and nine more periods with 4.
        let held = held_after(&[late; 22]);
        assert_eq!((held[9], held[10], held[19]), (Some(5), Some(4), Some(4)));
        assert_eq!(held[20], None, "the tenth missed with 4");
        assert_eq!(held[21], None, "and it is not tried again at once");
    }

    /// Else a request would wait with nothing in the device, for no completion.
    #[test]
    fn device_that_takes_none_leaves_one_to_others() {
        let (group, node) = (GroupId::default(), NodeId::default());
        let mut target = Target::new(group, node, Nanos::from_micros(1), Instant::START);
        for _ in 0..LEAST_REQUESTS {
            target.count(Instant::START, Nanos::from_millis(1));
        }
        assert!(target.judge(Instant::START + PERIOD, 0).is_some());
        assert_eq!(target.held, Some(1));
    }

    #[test]
    fn period_with_few_requests_goes_on() {
        let mut target = Target::new(
            GroupId::default(),
            NodeId::default(),
            Nanos::from_micros(1),
            Instant::START,
        );
        for _ in 0..LEAST_REQUESTS - 1 {
            target.count(Instant::START, Nanos::from_millis(1));
        }
        assert!(target.judge(Instant::START + PERIOD, DEPTH).is_none());
        target.count(Instant::START, Nanos::from_millis(1));
        assert!(target.judge(Instant::START + PERIOD, DEPTH).is_some());
        assert_eq!(target.held, Some(14));
    }
}
