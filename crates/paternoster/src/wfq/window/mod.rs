//! Windows: stretches of time over which the speed of the device is measured at one depth.
//!
//! ```text
//!   window i                                            window i + 1
//!   ├─ guard ────────────┼─ measured ─────────────────┤ ├─ guard …
//!   until all that was    until enough has completed
//!   dispatched before it
//!   has completed
//! ```
//!
//! Enough are four times the depth, the cost of 48 of the dearest requests, 2 ms and eight times
//! the longest gap between two completions; or, on a slow device, eight requests and half a second.
//!
//! On a device that serves in bursts windows begin and end between two of them (`cut.rs`).

mod cut;
#[cfg(test)]
mod tests;

use cut::{Cut, Gaps, LONGEST_GAPS};

use super::price::{Class, Prices, Tallies};
use super::service::Units;
use crate::request::SectorCount;
use crate::time::{Instant, Nanos};

/// The windows after which arms repeat (`depth/trial.rs`).
pub(super) const BLOCK: u64 = 8;

/// A window closes when it has lasted so long and has had [`LEAST_COMPLETIONS`].
const LONG: Nanos = Nanos::from_millis(500);
const LEAST_COMPLETIONS: u32 = 8;

/// How many times the dearest request a window costs at least.
const DEAREST_REQUESTS: u64 = 48;

/// What was measured in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) number: u64,
    /// Requests completed.
    pub(super) completions: u32,
    /// Units completed in a second, at the prices that hold.
    pub(super) speed: u64,
    /// What completed.
    pub(super) tallies: Tallies,
    /// Its requests differ in class or cost.
    pub(super) mixed: bool,
    /// The time from arrival to completion, on average.
    pub(super) latency: Nanos,
    /// Requests in the device on average, in thousandths.
    pub(super) in_device_milli: u64,
    /// For more than 5 % of it nothing waited, and the device had room.
    pub(super) starved: bool,
    /// It is long, and full of gaps.
    pub(super) bursty: bool,
    /// How long it was measured.
    pub(super) measured: Nanos,
    /// The longest time without a completion while the device had requests, its guard and the gap
    /// behind its last completion included; 0 in cut mode, where windows have gaps on purpose.
    pub(super) longest_gap: Nanos,
    /// How long it lasted, with its guard.
    pub(super) length: Nanos,
}

/// Beside a gap of more than this part of it a window is short: whether it has such a gap or not is
/// chance, and its speed is twice or half as high.
const LEAST_GAPS: u64 = 4;

impl Closed {
    /// Returns whether it is short beside a gap.
    pub(super) fn is_short_beside(&self, gap: Nanos) -> bool {
        self.measured < times(gap, LEAST_GAPS)
    }
}

/// How long a window is to be that is long beside such gaps.
pub(super) fn long_beside(gap: Nanos) -> Nanos {
    times(gap, LONGEST_GAPS)
}

fn times(gap: Nanos, times: u64) -> Nanos {
    Nanos::new(gap.as_nanos().saturating_mul(times))
}

/// A request that has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// What it was charged.
    pub(super) charge: Units,
    pub(super) class: Class,
    /// What it moved.
    pub(super) sectors: SectorCount,
    /// The window in which it was dispatched.
    pub(super) window: u64,
    /// From its arrival on.
    pub(super) latency: Nanos,
}

/// The windows, one after the other.
#[derive(Debug)]
pub(super) struct Windows {
    /// The number of the current one.
    number: u64,
    /// When its guard began.
    opened: Instant,
    /// The depth in force in this one.
    depth: u32,
    /// The prices by which its speed is told.
    prices: Prices,
    /// Requests in the device that were dispatched before it.
    older: u32,
    /// Requests that have completed in its guard.
    guarded: u32,
    /// The longest time without a completion since it opened, while the device had requests.
    busy_gap: Nanos,
    /// What was measured in it so far; none in its guard.
    measured: Option<Measured>,
    /// When a request last completed.
    last: Instant,
    cut: Cut,
    /// What the device has, and since when.
    load: Load,
    /// What the device did in the last one, of any verdict, in units a second; 0 before the first.
    last_speed: u64,
    /// Those in which nothing waited though the device had room.
    starved: u64,
}

/// What the device has at a time.
#[derive(Clone, Copy, Debug)]
struct Load {
    since: Instant,
    in_device: u32,
    /// Since when it has some; valid while it does, and as its last one completes.
    busy_since: Instant,
    /// Nothing waits, and there is room.
    starved: bool,
}

/// What was measured so far.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// When its guard was over.
    since: Instant,
    /// Requests completed, by class in `tallies`.
    completions: u32,
    tallies: Tallies,
    /// Of what was charged: the sum, and the greatest.
    charge: Units,
    dearest: Units,
    /// The sum of their times from arrival to completion.
    latency: Nanos,
    /// Between two completions.
    longest_gap: Nanos,
    /// In cut mode, long gaps.
    gaps: u32,
    /// How long nothing waited though there was room.
    starved: Nanos,
    /// Requests in the device × ns.
    in_device: u128,
}

impl Measured {
    fn new(since: Instant) -> Self {
        let zero = Nanos::ZERO;
        Self {
            since,
            completions: 0,
            tallies: Tallies::default(),
            charge: Units::ZERO,
            dearest: Units::ZERO,
            latency: zero,
            longest_gap: zero,
            gaps: 0,
            starved: zero,
            in_device: 0,
        }
    }
}

impl Windows {
    pub(super) fn new(prices: Prices) -> Self {
        Self {
            number: 0,
            opened: Instant::START,
            depth: 1,
            prices,
            older: 0,
            guarded: 0,
            busy_gap: Nanos::ZERO,
            measured: None,
            last: Instant::START,
            cut: Cut::default(),
            load: Load {
                since: Instant::START,
                in_device: 0,
                busy_since: Instant::START,
                starved: false,
            },
            last_speed: 0,
            starved: 0,
        }
    }

    /// The number of the current window, which a request that is dispatched now gets.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What the device did in the last window, of any verdict, in units a second; 0 before the
    /// first.
    pub(super) fn last_speed(&self) -> u64 {
        self.last_speed
    }

    /// In how many windows nothing waited though the device had room.
    pub(super) fn starved(&self) -> u64 {
        self.starved
    }

    /// Tells speeds by other prices from now on.
    pub(super) fn price_by(&mut self, prices: Prices) {
        self.prices = prices;
    }

    /// Opens window `number`, with that depth in force and so many dispatched requests in the
    /// device.
    pub(super) fn open(&mut self, now: Instant, number: u64, depth: u32, dispatched: u32) {
        self.number = number;
        self.opened = now;
        self.depth = depth;
        self.older = dispatched;
        self.guarded = 0;
        self.busy_gap = Nanos::ZERO;
        self.measured = None;
        if dispatched == 0 && !self.cut.is_on() {
            self.measured = Some(Measured::new(now));
        }
    }

    /// Returns whether the device has something else from now on than it had.
    #[inline]
    pub(super) fn changes_load(&self, in_device: u32, waits: bool) -> bool {
        self.is_starved(in_device, waits) != self.load.starved || in_device != self.load.in_device
    }

    #[inline]
    fn is_starved(&self, in_device: u32, waits: bool) -> bool {
        !waits && in_device < self.depth
    }

    /// Notes what the device has from now on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_load(&mut self, now: Instant, in_device: u32, waits: bool) {
        let starved = self.is_starved(in_device, waits);
        if now > self.load.since
            && let Some(measured) = &mut self.measured
        {
            let span = now.saturating_since(self.load.since);
            measured.in_device += u128::from(self.load.in_device) * u128::from(span.as_nanos());
            if self.load.starved {
                measured.starved += span;
            }
        }
        let busy_since = if self.load.in_device == 0 { now } else { self.load.busy_since };
        self.load = Load { since: now, in_device, busy_since, starved };
    }

    /// Takes a completion; returns the window if that closes it. The load was noted.
    ///
    /// Requests that complete at one instant belong together. A window counts those after its
    /// first instant up to its last: what closes it is the first completion of a later instant.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn complete(&mut self, now: Instant, done: Done, least: Nanos) -> Option<Closed> {
        let before = std::mem::replace(&mut self.last, now);
        let gap = now.saturating_since(before);
        let is_long_gap = self.cut.is_long_gap(gap);
        let busy_gap = now.saturating_since(before.max(self.load.busy_since).max(self.opened));
        self.busy_gap = self.busy_gap.max(busy_gap);
        let Some(measured) = &self.measured else {
            self.pass_guard(now, done, is_long_gap);
            return None;
        };
        let end = if self.cut.is_on() { now } else { before };
        if now > before && self.is_enough(end, measured, is_long_gap, least) {
            let measured = *measured;
            return Some(self.close(now, end, &measured));
        }
        if now > measured.since || self.cut.is_on() {
            self.count(done, gap, is_long_gap);
        }
        None
    }

    #[inline]
    fn count(&mut self, done: Done, gap: Nanos, is_long_gap: bool) {
        let Some(measured) = &mut self.measured else { return };
        measured.completions += 1;
        measured.tallies.count(done.class, done.sectors);
        measured.charge += done.charge;
        measured.dearest = measured.dearest.max(done.charge);
        measured.latency += done.latency;
        measured.longest_gap = measured.longest_gap.max(gap);
        measured.gaps += u32::from(is_long_gap);
    }

    /// A request that was dispatched in that window has left the device.
    pub(super) fn count_out(&mut self, window: u64) {
        self.older -= u32::from(window < self.number && self.older > 0);
    }

    fn pass_guard(&mut self, now: Instant, done: Done, is_long_gap: bool) {
        self.guarded += 1;
        self.count_out(done.window);
        let over = self.older == 0 || self.guarded >= 16 * self.depth + 512;
        if over {
            self.cut.give_up(self.opened, now);
        }
        if over && !self.cut.is_on() {
            self.measured = Some(Measured::new(now));
        } else if over && is_long_gap {
            // The first of a burst: the window has all of it.
            self.measured = Some(Measured::new(now));
            self.count(done, Nanos::ZERO, false);
        }
    }

    fn is_enough(&self, end: Instant, so_far: &Measured, is_long_gap: bool, least: Nanos) -> bool {
        let span = end.saturating_since(so_far.since);
        if self.cut.is_on() {
            return cut::is_enough(is_long_gap, so_far.gaps + 1, span);
        }
        let many = so_far.completions >= 4 * self.depth
            && so_far.charge.count() >= DEAREST_REQUESTS * so_far.dearest.count()
            && span >= least
            && span.as_nanos() >= LONGEST_GAPS * so_far.longest_gap.as_nanos();
        many || is_long(so_far.completions, span)
    }

    /// Closes the window, which ends at `end`; its load was noted up to now.
    fn close(&mut self, now: Instant, end: Instant, measured: &Measured) -> Closed {
        let span = end.saturating_since(measured.since);
        let noted = now.saturating_since(measured.since);
        let per = |sum: u128, span: Nanos| {
            u64::try_from(sum / u128::from(span.as_nanos().max(1))).unwrap_or(u64::MAX)
        };
        let starved = measured.starved.as_nanos() * 20 > noted.as_nanos();
        let (completions, longest) = (measured.completions, measured.longest_gap);
        let longest_gap = if self.cut.is_on() { Nanos::ZERO } else { self.busy_gap };
        let bursty = self.cut.judge(Gaps { completions, span, longest, starved });
        self.last_speed = per(self.prices.cost(&measured.tallies) * 1_000_000_000, span);
        self.starved += u64::from(starved);
        Closed {
            number: self.number,
            completions: measured.completions,
            speed: self.last_speed,
            tallies: measured.tallies,
            mixed: is_mixed(measured),
            latency: Nanos::new(
                measured.latency.as_nanos() / u64::from(measured.completions.max(1)),
            ),
            in_device_milli: per(measured.in_device * 1000, noted),
            starved,
            bursty,
            measured: span,
            longest_gap,
            length: now.saturating_since(self.opened),
        }
    }
}

/// Returns whether requests were of several classes, or the dearest cost a twentieth more than the
/// average.
fn is_mixed(measured: &Measured) -> bool {
    let all = u128::from(measured.dearest.count()) * u128::from(measured.completions);
    measured.tallies.is_mixed() || all * 20 > u128::from(measured.charge.count()) * 21
}

fn is_long(completions: u32, span: Nanos) -> bool {
    completions >= LEAST_COMPLETIONS && span >= LONG
}
