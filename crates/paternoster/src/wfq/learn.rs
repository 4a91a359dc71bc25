//! What is learned of the device, window by window: the depth, and what requests cost.
//!
//! ```text
//!   dispatch ──▶ number of the window ──▶ completion ──▶ the window closes? ──▶ the next depth
//!                                                              and prices
//! ```
//!
//! Trials of the depth and of prices take turns by blocks of windows.

use super::Wfq;
use super::depth::Bounds;
use super::price::{Moved, Pricing};
use super::service::Units;
use super::siblings::Siblings;
use super::tunables::Tunables;
use super::window::{BLOCK, Closed, Done};
use crate::device::Device;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, Trace, WfqEvent, WindowVerdict};

/// The learned depth at most on a rotational device: with more it serves by position, and starves.
const ROTATIONAL_DEPTH: u32 = 8;

impl<T: Trace> Wfq<T> {
    /// Opens the first window. The first trial follows it.
    pub(super) fn begin_learning(&mut self, cx: &Cx) {
        let (least, most) = self.tunable_bounds(&cx.device);
        self.depth.clamp(cx.now, least, most);
        self.open_window(cx, BLOCK - 1);
    }

    fn open_window(&mut self, cx: &Cx, number: u64) {
        self.depth.note_device(cx.device.queue_depth);
        self.put_depth_in_force(&cx.device, number);
        self.pricing.put_in_force(number);
        let depth = self.depth.reachable();
        self.contest.note_depth(depth);
        self.windows.open(cx.now, number, depth, self.in_device);
    }

    /// Puts the depth of window `number` in force, which is more where prices are to be learned.
    fn put_depth_in_force(&mut self, device: &Device, number: u64) {
        let (_, most) = self.tunable_bounds(device);
        self.depth.put_in_force(number, self.pricing.wants_depth().then_some(most));
    }

    /// Follows tunables that were set. What they do not concern stays as it was learned.
    pub(super) fn follow_tunables(&mut self, cx: &Cx, before: &Tunables) {
        if self.tunables.depth_start() != before.depth_start() {
            self.depth.begin_anew(self.tunables.depth_start());
        }
        if !self.tunables.has_prices_of(before) {
            self.reprice();
        }
        if self.tunables.grace() != before.grace() {
            self.tree.siblings.values_mut().for_each(Siblings::forget_history);
        }
        if self.tunables.depth().is_none() {
            let (least, most) = self.tunable_bounds(&cx.device);
            self.depth.clamp(cx.now, least, most);
        }
        self.depth.fix(self.tunables.depth());
        self.put_depth_in_force(&cx.device, self.windows.number());
        self.set_burst(cx.now);
    }

    /// Learns the depth from there on, if it is learned.
    pub(super) fn take_depth(&mut self, cx: &Cx, depth: u32) {
        if self.tunables.depth().is_none() {
            let (least, most) = self.tunable_bounds(&cx.device);
            self.depth.begin_anew(depth);
            self.depth.clamp(cx.now, least, most);
            self.put_depth_in_force(&cx.device, self.windows.number());
        }
    }

    /// Takes over prices that were set, or begins to learn them anew.
    fn reprice(&mut self) {
        self.pricing = Pricing::set_by(&self.tunables);
        self.windows.price_by(self.pricing.base());
        self.depth.restart();
    }

    /// Takes a completion.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn learn(&mut self, cx: &Cx, done: Done) {
        self.note_load(cx.now, cx.in_device);
        let least = self.tunables.window().max(self.depth.least_window());
        if let Some(closed) = self.windows.complete(cx.now, done, least) {
            self.window_closed(cx, &closed);
        }
    }

    /// Notes what the device has from now on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_load(&mut self, now: Instant, in_device: u32) {
        let waits = self.waits_for_device();
        self.windows.note_load(now, in_device, waits);
    }

    /// A request has begun to wait, mostly behind others: the device has what it had.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_arrival(&mut self, now: Instant, in_device: u32) {
        let waits = self.waits_for_device();
        if self.windows.changes_load(in_device, waits) {
            self.note_changed_load(now, in_device, waits);
        }
    }

    #[inline(never)]
    fn note_changed_load(&mut self, now: Instant, in_device: u32, waits: bool) {
        self.windows.note_load(now, in_device, waits);
    }

    /// Returns whether something waits for the device. What a cap holds does not.
    #[inline]
    fn waits_for_device(&self) -> bool {
        self.queued > 0 && (!self.tree.limits.hold_some() || self.tree.held_until().is_none())
    }

    /// Takes what was measured in a window, and opens the next.
    #[cold]
    #[inline(never)]
    fn window_closed(&mut self, cx: &Cx, closed: &Closed) {
        let now = cx.now;
        self.trace.event(now, closed.event());
        // While some are held the device is not as deep as it could be: its speed says nothing.
        let is_held = self.targets.hold_some();
        let in_trial = self.depth.in_trial().is_some();
        let mut next = closed.number + 1;
        if !is_held {
            next = self.learn_depth(now, closed);
            self.learn_prices(now, closed);
        }
        if next.is_multiple_of(BLOCK) {
            let (depth, among_gaps) = (self.depth.reachable(), self.depth.is_among_gaps());
            self.contest.measure(&mut self.tree, &self.groups, now, depth, among_gaps);
            if !is_held && !self.pricing.goes_first(in_trial) {
                self.begin_trial(cx, closed);
            }
            self.pricing.begin_block(!is_held && self.depth.in_trial().is_none());
        }
        self.open_window(cx, next);
    }

    /// Returns the number of the next window.
    fn learn_depth(&mut self, now: Instant, closed: &Closed) -> u64 {
        let rules = self.tunables.rules();
        let Self { depth, trace, .. } = self;
        depth.window_closed(now, closed, rules, &mut |event| trace.event(now, event))
    }

    fn begin_trial(&mut self, cx: &Cx, closed: &Closed) {
        let (now, bounds) = (cx.now, self.bounds(&cx.device));
        let Self { depth, trace, .. } = self;
        depth.begin_trial(now, closed, &bounds, &mut |event| trace.event(now, event));
    }

    /// Lets a price move if this window says so: the unit of speeds is another one then.
    fn learn_prices(&mut self, now: Instant, closed: &Closed) {
        if let Some(Moved { which, from, to }) = self.pricing.window_closed(closed) {
            self.trace.event(now, Event::Wfq(WfqEvent::PriceMoved { which, from, to }));
            self.windows.price_by(self.pricing.base());
            self.depth.restart();
        }
    }

    /// Returns the least and the greatest depth that may be learned.
    fn tunable_bounds(&self, device: &Device) -> (u32, u32) {
        let rotational = if device.rotational { ROTATIONAL_DEPTH } else { u32::MAX };
        let most = self.tunables.max_depth().min(rotational);
        (self.tunables.min_depth().min(most), most)
    }

    /// Returns what may be tried now: no more than the device may have.
    fn bounds(&self, device: &Device) -> Bounds {
        let (least, most) = self.tunable_bounds(device);
        let most = most.min(device.queue_depth).max(1);
        Bounds { least: least.min(most), most, contested_above: self.contest.above() }
    }

    /// Returns what a sync costs each of those who waited for it: the part of the device that they
    /// had meanwhile. Before the first window, one op.
    pub(super) fn charge_of_sync(&self, took: Nanos, waiters: u32) -> Units {
        let speed = self.depth.usual_speed().unwrap_or(self.windows.last_speed());
        if speed == 0 {
            return Units::OP;
        }
        let whole = u128::from(took.as_nanos()) * u128::from(speed) / 1_000_000_000;
        let parts = u128::from(self.depth.reachable().max(1)) * u128::from(waiters.max(1));
        Units::new(u64::try_from(whole / parts).unwrap_or(u64::MAX >> 20).max(1))
    }
}

impl Closed {
    fn event(&self) -> Event {
        let why = match (self.bursty, self.starved) {
            (true, _) => WindowVerdict::Bursty,
            (false, true) => WindowVerdict::Starved,
            (false, false) => WindowVerdict::Valid,
        };
        let speed = super::depth::ops(self.speed);
        Event::Wfq(WfqEvent::WindowClosed { completions: self.completions, speed, why })
    }
}
