//! The peak rate of the device: sectors a microsecond × 2¹⁶, as the device shows it at its best.
//!
//! ```text
//!   dispatches ──▶ interval of a second ──▶ its rate ──▶ peak rate = (1 − 1/d) × old + 1/d × new
//!                  requests, sectors,       if it was mostly sequential, or faster than what is
//!                  sequential ones          known; d is 10 down to 2, the less the longer and the
//!                                           more sequential the interval was
//! ```
//!
//! An interval ends after a second, when the device has stood idle, or when a completion came so
//! late that something else must have held up the device. CFQ has no counterpart: it gives queues
//! time, not budgets.

use crate::bfq::io_pattern::is_seek;
use crate::request::{Extent, Sector, SectorCount};
use crate::time::{Instant, Nanos};

const RATE_SHIFT: u32 = 16;
/// An interval of fewer requests, or a shorter one, says nothing.
const MIN_SAMPLES: u32 = 32;
const MIN_INTERVAL: Nanos = Nanos::from_millis(300);
/// An interval is closed after this time.
const INTERVAL: Nanos = Nanos::from_millis(1000);
/// With nothing in the device for longer than this, an interval ends with its last request.
const LONG_IDLE: Nanos = Nanos::from_millis(100);
/// The device was busy in between if a request follows a completion by less than this; a
/// completion that follows another by no more is not late.
const SHORT: Nanos = Nanos::from_millis(2);
/// A rate beyond this, in sectors a microsecond, is an error.
const MAX_RATE: u32 = 20;
/// Below this part of a sector a microsecond × 2¹⁶, about 1000 sectors a second, something else
/// held up the device.
const SLOW_RATE: u64 = 1 << (RATE_SHIFT - 10);
/// The rates of the reference devices: rotational, and not.
const REFERENCE_RATE: [u32; 2] = [14_000, 33_000];

/// The estimate, and the interval that is being observed.
#[derive(Debug)]
pub(super) struct PeakRate {
    rate: u32,
    rotational: bool,
    /// Whether a device that has nothing is taken to be busy for a while, as in Linux. Then one who
    /// thinks for less has the device look as slow as he asks.
    counts_pauses: bool,
    /// An interval has counted.
    is_measured: bool,
    /// The requests of the interval; 0 while none is open.
    samples: u32,
    /// Those among them that followed the one before without a pause or a seek.
    sequential: u32,
    sectors: u64,
    /// The largest of the last requests: since the last sample whose number is a multiple of 32.
    largest: SectorCount,
    first_dispatch: Instant,
    last_dispatch: Instant,
    /// From the first dispatch to the last one.
    interval: Nanos,
}

/// A request on its way to the device, and what the device is doing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatched {
    pub(super) now: Instant,
    pub(super) extent: Extent,
    /// Where the request dispatched before it ended.
    pub(super) head: Sector,
    /// The requests in the device, without this one.
    pub(super) in_flight: u32,
    /// When a request last completed.
    pub(super) last_completion: Instant,
}

impl PeakRate {
    pub(super) fn new(rotational: bool) -> Self {
        Self {
            rate: reference_rate(rotational) * 2 / 3,
            rotational,
            counts_pauses: true,
            is_measured: false,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: SectorCount(0),
            first_dispatch: Instant::START,
            last_dispatch: Instant::START,
            interval: Nanos::ZERO,
        }
    }

    /// Sets whether a device that has nothing is taken to be busy for a while.
    pub(super) fn set_counts_pauses(&mut self, counts: bool) {
        self.counts_pauses = counts;
    }

    /// The estimate.
    #[inline]
    pub(super) fn rate(&self) -> u32 {
        self.rate
    }

    /// Whether it is of this device. Before, it is two thirds of that of a reference device.
    pub(super) fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Returns what the device serves in `span` at its peak.
    #[allow(clippy::cast_possible_truncation)] // bounded before
    pub(super) fn sectors_in(&self, span: Nanos) -> SectorCount {
        let micros = u128::from(span.as_nanos() / 1000);
        let sectors = (u128::from(self.rate) * micros) >> RATE_SHIFT;
        SectorCount(sectors.min(u128::from(u32::MAX)) as u32)
    }

    /// Counts a request that is being dispatched. Returns the new rate if that closes an interval
    /// that counts.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn observe_dispatch(&mut self, dispatched: &Dispatched) -> Option<u32> {
        let &Dispatched { now, extent, in_flight, last_completion, .. } = dispatched;
        let mut changed = None;
        if self.samples == 0 {
            self.restart(now, extent.sectors);
        } else if now.wrapping_since(self.last_dispatch) > LONG_IDLE && in_flight == 0 {
            changed = self.close(last_completion);
            self.restart(now, extent.sectors);
        } else {
            self.add(dispatched);
            if self.interval >= INTERVAL {
                changed = self.close(last_completion);
                self.restart(now, extent.sectors);
            }
        }
        self.last_dispatch = now;
        changed
    }

    /// Counts a completion at `now`, after one at `last_completion`. If that was slower than any
    /// device, something else held it up, and the interval ends; the next dispatch begins a new
    /// one. Returns the new rate if the interval counts.
    #[inline]
    pub(super) fn observe_completion(
        &mut self,
        now: Instant,
        last_completion: Instant,
    ) -> Option<u32> {
        let micros = now.wrapping_since(last_completion).as_nanos() / 1000;
        // Linux keeps it in 32 bits.
        let micros = micros & u64::from(u32::MAX);
        let short = SHORT.as_nanos() / 1000;
        let largest = u64::from(self.largest.0);
        if micros <= short || (largest << RATE_SHIFT) / micros >= SLOW_RATE {
            return None;
        }
        let changed = self.close(last_completion);
        self.samples = 0;
        changed
    }

    /// Begins a new interval with a request.
    #[inline]
    fn restart(&mut self, now: Instant, sectors: SectorCount) {
        self.first_dispatch = now;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = sectors.0.into();
        self.largest = sectors;
    }

    #[inline]
    fn add(&mut self, dispatched: &Dispatched) {
        let &Dispatched { now, extent, head, in_flight, last_completion } = dispatched;
        let pauses = || self.counts_pauses && now.wrapping_since(last_completion) < SHORT;
        let busy = in_flight > 0 || pauses();
        let sequential = busy && !is_seek(head, extent, self.rotational);
        self.samples += 1;
        self.sequential += u32::from(sequential);
        self.sectors += u64::from(extent.sectors.0);
        self.largest = if self.samples.is_multiple_of(MIN_SAMPLES) {
            extent.sectors
        } else {
            self.largest.max(extent.sectors)
        };
        self.interval = now.wrapping_since(self.first_dispatch);
    }

    /// Ends the interval and adapts the rate to it. Returns the new rate if the interval counts.
    ///
    /// If nothing has completed since the interval began, its end lies before its beginning and
    /// its length wraps: the device seems to stand still, as in Linux.
    #[allow(clippy::cast_possible_truncation)] // as in Linux
    fn close(&mut self, last_completion: Instant) -> Option<u32> {
        if self.samples < MIN_SAMPLES || self.interval < MIN_INTERVAL {
            return None;
        }
        self.interval = self.interval.max(last_completion.wrapping_since(self.first_dispatch));
        let interval = self.interval.as_nanos();
        let rate = ((self.sectors << RATE_SHIFT) / (interval / 1000)) as u32;
        let mostly_sequential = self.sequential >= (3 * self.samples) >> 2;
        if (!mostly_sequential && rate <= self.rate) || rate > MAX_RATE << RATE_SHIFT {
            return None;
        }
        let by_sequence = u64::from((9 * self.sequential) / self.samples);
        let by_length = by_sequence.wrapping_mul(interval) / 1_000_000_000;
        // How much of what was known stays: from 9/10 down to 1/2.
        let parts = 10 - by_length.min(8) as u32;
        self.rate = (self.rate * (parts - 1) / parts + rate / parts).max(1);
        self.is_measured = true;
        Some(self.rate)
    }
}

/// Returns the rate that a device of that kind is taken to have.
pub(super) fn reference_rate(rotational: bool) -> u32 {
    REFERENCE_RATE[usize::from(!rotational)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// Two thirds of 33 000, where a device that does not rotate begins.
    const FIRST_RATE: u32 = 22_000;

    /// A device that does not rotate, at whose requests a peak rate looks.
    struct Bench {
        peak_rate: PeakRate,
        head: Sector,
        last_completion: Instant,
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(Instant::START.as_nanos() + nanos)
    }

    impl Bench {
        fn new() -> Self {
            Self { peak_rate: PeakRate::new(false), head: Sector(0), last_completion: at(0) }
        }

        /// Dispatches the request that follows the one before, with another in the device.
        fn sequential(&mut self, nanos: u64, sectors: u32) -> Option<u32> {
            self.dispatch(nanos, sectors, 0, 1)
        }

        /// Dispatches a request `gap` sectors on, with `in_flight` others in the device.
        fn dispatch(&mut self, nanos: u64, sectors: u32, gap: u64, in_flight: u32) -> Option<u32> {
            let start = Sector(self.head.0 + gap);
            let extent = Extent { start, sectors: SectorCount(sectors) };
            let dispatched = Dispatched {
                now: at(nanos),
                extent,
                head: self.head,
                in_flight,
                last_completion: self.last_completion,
            };
            self.head = extent.end();
            self.peak_rate.observe_dispatch(&dispatched)
        }

        fn complete(&mut self, nanos: u64) -> Option<u32> {
            let before = std::mem::replace(&mut self.last_completion, at(nanos));
            self.peak_rate.observe_completion(at(nanos), before)
        }

        /// Dispatches 1024 sectors every 10 ms and completes them 1 ms later, but for the last one,
        /// which is dispatched a second after the first: 101 of them, the first `near` after that
        /// without a seek.
        fn second(&mut self, near: u64) -> Option<u32> {
            for number in 0..100 {
                let gap = if number <= near { 0 } else { 801 };
                // So small that far is a seek.
                assert_eq!(self.dispatch(number * 10 * MS, 63, gap, 1), None, "{number}");
                assert_eq!(self.complete((number * 10 + 1) * MS), None);
            }
            self.dispatch(1000 * MS, 63, if near < 100 { 801 } else { 0 }, 1)
        }
    }

    /// The reference rates are 14 000 and 33 000. In 125 ms, 22 000 × 125 000 / 2¹⁶ = 41 961.7.
    #[test]
    fn rate_begins_at_two_thirds_of_the_reference() {
        assert_eq!(PeakRate::new(true).rate(), 9333);
        let fast = PeakRate::new(false);
        assert_eq!(fast.rate(), FIRST_RATE);
        assert_eq!(fast.sectors_in(Nanos::from_millis(125)), SectorCount(41_961));
    }

    /// 101 requests of 63 sectors in a second are 6363 × 2¹⁶ / 10⁶ = 417. All but the first are
    /// sequential: ⌊900 / 101⌋ = 8, so half of the old rate stays: 11 000 + 208. With 75, the least
    /// that 3/4 of 101 needs, it is ⌊675 / 101⌋ = 6 and three parts of four: 16 500 + 104. With 74
    /// it does not count, being slower than what is known.
    #[test]
    fn slower_interval_counts_if_three_quarters_are_sequential() {
        for (near, expected) in [(100, Some(11_208)), (75, Some(16_604)), (74, None)] {
            let mut bench = Bench::new();
            assert_eq!(bench.second(near), expected, "{near} sequential");
            assert_eq!(bench.peak_rate.rate(), expected.unwrap_or(FIRST_RATE));
        }
    }

    /// One who thinks for a millisecond after each completion shows nothing of the device, unless
    /// his pauses are taken for its time, as in Linux: 101 requests of 63 sectors, as above.
    #[test]
    fn who_thinks_does_not_make_the_device_slow_where_pauses_do_not_count() {
        for (counts, expected) in [(true, Some(11_208)), (false, None)] {
            let mut bench = Bench::new();
            bench.peak_rate.set_counts_pauses(counts);
            for number in 0..100 {
                assert_eq!(bench.dispatch(number * 10 * MS, 63, 0, 0), None);
                assert_eq!(bench.complete((number * 10 + 9) * MS), None);
            }
            assert_eq!(bench.dispatch(1000 * MS, 63, 0, 0), expected, "{counts}");
        }
    }

    /// Nothing is sequential, so 9/10 of 22 000 stay, 19 800, and a tenth of the new rate comes on
    /// top. 20 × 10⁶ sectors in a second are the limit, 20 × 2¹⁶ = 1 310 720; 15 sectors more are
    /// less than one more of that unit, 16 are more.
    #[test]
    fn faster_interval_counts_up_to_twenty_sectors_a_microsecond() {
        let limit = 19_800 + 131_072;
        for (more, expected) in [(0, Some(limit)), (15, Some(limit)), (16, None)] {
            let mut bench = Bench::new();
            bench.dispatch(0, 20_000_000 - 100 + more, 0, 1);
            for number in 1..100 {
                // The device has stood idle: no request is sequential.
                bench.dispatch(number * 10 * MS, 1, 0, 0);
            }
            assert_eq!(bench.dispatch(1000 * MS, 1, 0, 0), expected, "{more} more");
        }
    }

    /// The device idles for more than 100 ms after the last request. What counts ends with the last
    /// completion, 1 ms after it: at 621 ms 32 × 1024 × 2¹⁶ / 621 000 = 3458. 31 of 32 are
    /// sequential: ⌊279 / 32⌋ = 8 × 0.621 = 4, so 5/6 of 22 000 and 1/6 of 3458 are 18 333 + 576.
    #[test]
    fn interval_of_fewer_than_32_requests_says_nothing() {
        for (requests, expected) in [(31, None), (32, Some(18_909))] {
            let mut bench = Bench::new();
            for number in 0..requests {
                bench.sequential(number * 20 * MS, 1024);
            }
            bench.complete(((requests - 1) * 20 + 1) * MS);
            assert_eq!(bench.dispatch(5000 * MS, 1024, 0, 0), expected, "{requests}");
        }
    }

    /// 32 requests, the last at 300 ms: 32 × 1024 × 2¹⁶ / 300 000 = 7158, and 8 × 0.3 = 2: 7/8 of
    /// 22 000 and 1/8 of 7158 are 19 250 + 894.
    #[test]
    fn interval_of_less_than_300_ms_says_nothing() {
        for (last, expected) in [(300 * MS - 1, None), (300 * MS, Some(20_144))] {
            let mut bench = Bench::new();
            bench.last_completion = at(1);
            for number in 0..31 {
                bench.sequential(number * 9 * MS, 1024);
            }
            bench.sequential(last, 1024);
            assert_eq!(bench.dispatch(5000 * MS, 1024, 0, 0), expected, "{last}");
        }
    }

    /// 32 requests in 310 ms, then one after a pause. A pause of 100 ms, or one with a request in
    /// the device, is part of the interval, which goes on.
    #[test]
    fn interval_ends_when_the_device_has_idled_for_more_than_100_ms() {
        let rows = [(100 * MS, 0, false), (100 * MS + 1, 0, true), (100 * MS + 1, 1, false)];
        for (pause, in_flight, ends) in rows {
            let mut bench = Bench::new();
            for number in 0..32 {
                bench.sequential(number * 10 * MS, 1024);
            }
            bench.last_completion = at(310 * MS);
            let rate = bench.dispatch(310 * MS + pause, 1024, 0, in_flight);
            assert_eq!(rate.is_some(), ends, "{pause} {in_flight}");
        }
    }

    /// The device is empty at each dispatch. Less than 2 ms after a completion it counts as busy
    /// and the interval as sequential, which lets a slow one count.
    #[test]
    fn request_less_than_2_ms_after_a_completion_follows_it() {
        for (pause, counts) in [(2 * MS - 1, true), (2 * MS, false)] {
            let mut bench = Bench::new();
            let mut rate = None;
            for number in 0..101 {
                rate = bench.dispatch(number * 10 * MS, 8, 0, 0);
                bench.last_completion = at((number + 1) * 10 * MS - pause);
            }
            assert_eq!(rate.is_some(), counts, "{pause}");
        }
    }

    /// Nothing completes: the end lies before the beginning, the length wraps, and the rate is 0.
    /// The weight of the interval is at its greatest, so half of 22 000 stays, then half of that.
    /// A rate of 1 stays 1.
    #[test]
    fn interval_without_a_completion_halves_the_rate() {
        let mut bench = Bench::new();
        bench.last_completion = at(0);
        let mut rates = vec![];
        for number in 1..4000 {
            rates.extend(bench.sequential(number * 10 * MS, 1024));
        }
        assert_eq!(rates[..3], [11_000, 5500, 2750]);
        assert_eq!(rates.last(), Some(&1));
    }

    /// 8 sectors are slower than 2⁻¹⁰ sectors a microsecond after 8192 µs: 8 × 2¹⁶ / 8192 = 64 is
    /// not less than 64, and 8 × 2¹⁶ / 8193 is. 2 ms are never late, however small the requests.
    /// After 2³² µs the time wraps.
    #[test]
    fn late_completion_ends_the_interval() {
        let wrap = 1 << 32;
        let rows = [(8, 8192, false), (8, 8193, true), (8, wrap + 8193, true)];
        let small = [(1, 2000, false), (1, 2001, true), (1, wrap + 2000, false)];
        for (sectors, micros, ends) in rows.into_iter().chain(small) {
            let mut bench = Bench::new();
            for number in 0..32 {
                bench.sequential(number * 10 * MS, sectors);
            }
            bench.last_completion = at(310 * MS);
            let rate = bench.complete(310 * MS + micros * 1000);
            assert_eq!(rate.is_some(), ends, "{micros} µs for {sectors}");
        }
    }

    /// 31 requests say nothing as a late completion ends their interval, and are forgotten: the
    /// next request is the first of another, not the 32nd.
    #[test]
    fn next_dispatch_after_a_late_completion_begins_an_interval() {
        let mut bench = Bench::new();
        for number in 0..31 {
            bench.sequential(number * 10 * MS, 8);
        }
        bench.last_completion = at(300 * MS);
        assert_eq!(bench.complete(309 * MS), None);
        bench.sequential(320 * MS, 8);
        assert_eq!(bench.dispatch(5000 * MS, 8, 0, 0), None);
    }

    /// The second is as slow as the first, and all of it seeks: it does not count.
    #[test]
    fn each_interval_counts_its_own_requests() {
        let mut bench = Bench::new();
        assert!(bench.second(100).is_some());
        for number in 101..=200 {
            bench.last_completion = at((number * 10 - 5) * MS);
            assert_eq!(bench.dispatch(number * 10 * MS, 63, 801, 1), None, "{number}");
        }
    }

    /// 8192 sectors may take 8 s. The 32nd request ends their memory: from then on 8 count.
    #[test]
    fn late_is_judged_by_the_largest_of_the_last_requests() {
        for (requests, ends) in [(31 + 32, false), (32 + 32, true)] {
            let mut bench = Bench::new();
            for number in 0..requests {
                bench.sequential(number * 10 * MS, if number == 32 { 8192 } else { 8 });
            }
            let last = (requests - 1) * 10 * MS;
            bench.last_completion = at(last);
            let rate = bench.complete(last + 1000 * MS);
            assert_eq!(rate.is_some(), ends, "{requests}");
        }
    }
}
