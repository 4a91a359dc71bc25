//! Windows of a device that does what the test says.

use super::*;
use crate::wfq::price::Pricing;
use crate::wfq::tunables::Tunables;

/// 2 ms, as `window_us` is by default.
const LEAST: Nanos = Nanos::from_millis(2);

fn at(micros: u64) -> Instant {
    Instant::START + Nanos::from_micros(micros)
}

fn prices() -> Prices {
    Pricing::set_by(&Tunables::with_defaults()).base()
}

/// A device, and the windows that are measured of it.
struct Measuring {
    windows: Windows,
    closed: Vec<Closed>,
}

impl Measuring {
    /// At a depth of 4, with so many requests in the device that were dispatched before.
    fn with(older: u32) -> Self {
        let mut windows = Windows::new(prices());
        windows.open(at(0), 0, 4, older);
        windows.note_load(at(0), 4, true);
        Self { windows, closed: vec![] }
    }

    /// A read of 4 KiB that was dispatched in the current window completes; the device then has
    /// `in_device`, and something waits or not.
    fn complete(&mut self, micros: u64, in_device: u32, waits: bool) {
        self.complete_of(self.windows.number(), micros, in_device, waits);
    }

    fn complete_of(&mut self, window: u64, micros: u64, in_device: u32, waits: bool) {
        let done = Done {
            charge: Units::OP,
            class: Class::Read,
            sectors: SectorCount(8),
            window,
            latency: Nanos::from_micros(100),
        };
        self.windows.note_load(at(micros), in_device, waits);
        if let Some(closed) = self.windows.complete(at(micros), done, LEAST) {
            self.closed.push(closed);
            self.windows.open(at(micros), closed.number + 1, 4, 0);
        }
    }
}

#[test]
fn guard_ends_as_all_that_was_dispatched_before_has_completed() {
    let mut device = Measuring::with(2);
    device.windows.number = 1;
    for micros in [100, 200] {
        device.complete_of(0, micros, 4, true);
        assert_eq!(device.windows.measured.is_some(), micros == 200);
    }
    // One of those before it that never completes may not keep it open for ever: 16 × 4 + 512.
    let mut device = Measuring::with(1);
    for micros in 1..=576 {
        assert!(device.windows.measured.is_none(), "{micros}");
        device.complete(micros, 4, true);
    }
    assert!(device.windows.measured.is_some());
}

/// Arrivals between completions, of which some find a device that is short of work.
#[test]
fn load_that_an_arrival_does_not_change_need_not_be_noted() {
    let [mut all, mut some] = [(); 2].map(|()| Measuring::with(0));
    let mut skipped = 0;
    for micros in 1..20_000 {
        // As requests are completed, dispatched, and taken back by a requeue.
        let (in_device, waits) = (2 + micros % 3, micros % 7 > 0);
        if micros % 2 == 0 {
            all.complete(micros, u32::try_from(in_device).expect("small"), waits);
            some.complete(micros, u32::try_from(in_device).expect("small"), waits);
            continue;
        }
        let in_device =
            u32::try_from(if micros % 5 == 0 { in_device } else { 2 + (micros - 1) % 3 });
        let in_device = in_device.expect("small");
        all.windows.note_load(at(micros), in_device, waits);
        if some.windows.changes_load(in_device, waits) {
            some.windows.note_load(at(micros), in_device, waits);
        } else {
            skipped += 1;
        }
    }
    assert_eq!(all.closed, some.closed);
    assert!(skipped > 500 && all.closed.len() > 1, "{skipped} of {}", all.closed.len());
}

#[test]
fn request_that_is_requeued_does_not_keep_the_guard_open() {
    let mut device = Measuring::with(2);
    device.windows.number = 1;
    device.windows.count_out(0);
    device.complete_of(0, 100, 4, true);
    assert!(device.windows.measured.is_some());
}

#[test]
fn window_has_48_of_the_dearest_requests_and_two_milliseconds() {
    let mut device = Measuring::with(0);
    for request in 1..=60 {
        device.complete(100 * request, 4, true);
    }
    let [closed] = device.closed[..] else { panic!("{:?}", device.closed) };
    assert_eq!(closed.completions, 48, "4.8 ms");
    assert_eq!(closed.speed / Units::OP.count(), 12_500, "10,000, at 1 + 4/16 op each");
    assert_eq!(closed.in_device_milli, 4000);
    assert!(!closed.starved && !closed.bursty && !closed.mixed);
}

#[test]
fn window_is_starved_with_more_than_a_twentieth_of_it_without_enough_to_do() {
    for (idle_of_60, starved) in [(2, false), (6, true)] {
        let mut device = Measuring::with(0);
        for request in 1..=60 {
            // For 100 µs each.
            let is_idle = request % 20 < idle_of_60 / 2 && request < 40;
            device.complete(100 * request, 3, !is_idle);
        }
        assert_eq!(device.closed[0].starved, starved, "{idle_of_60} of 60");
    }
}

/// A device throttled to ten bursts of 20 requests a second: four windows begin cut mode. A device
/// that then serves a request each 10 µs has no gap to wait for.
#[test]
fn windows_go_on_as_bursts_end_in_a_guard() {
    let mut device = Measuring::with(0);
    let mut micros = 0;
    while !device.windows.cut.is_on() {
        micros += 100_000;
        for request in 0..20 {
            device.complete(micros + request, 4, true);
        }
        assert!(micros < 10_000_000, "cut mode begins");
    }
    let (before, opened) = (device.closed.len(), micros);
    assert!(device.closed.iter().all(|closed| closed.bursty), "{:?}", device.closed);
    while device.closed.len() == before {
        micros += 10;
        device.complete(micros, 4, true);
        assert!(micros < opened + 3_000_000, "a window closes within 3 s");
    }
    assert!(!device.windows.cut.is_on());
}

#[test]
fn device_that_has_too_little_to_do_is_not_taken_for_one_that_is_throttled() {
    let mut device = Measuring::with(0);
    // Some 15 requests a second, one by one, with pauses of 100 ms.
    for burst in 1..200 {
        let begins = 200_000 * burst;
        for micros in [0, 50_000, 100_000] {
            device.complete(begins + micros, 0, false);
        }
    }
    assert!(device.closed.len() > 4, "{}", device.closed.len());
    assert!(device.closed.iter().all(|closed| closed.starved && !closed.bursty));
    assert!(!device.windows.cut.is_on());
}

/// Whoever drives the scheduler has no core for 3 ms in the guard, or for 5 ms behind the last
/// completion that is counted: neither is measured, and the window is not what it would be without.
#[test]
fn window_tells_of_gaps_before_and_behind_what_is_measured() {
    let mut device = Measuring::with(1);
    device.windows.number = 1;
    device.complete_of(0, 3000, 4, true);
    for request in 1..=60 {
        device.complete(3000 + 100 * request, 4, true);
    }
    let closed = device.closed[0];
    assert_eq!(closed.longest_gap, Nanos::from_millis(3));
    assert_eq!(closed.measured, Nanos::from_micros(4800));

    let mut device = Measuring::with(0);
    for request in 1..=48 {
        device.complete(100 * request, 4, true);
    }
    device.complete(4800 + 5000, 4, true);
    let closed = device.closed[0];
    assert_eq!(closed.longest_gap, Nanos::from_millis(5));
    assert_eq!(closed.measured, Nanos::from_micros(4800));
}

/// A device that had nothing to do for a second had no gap: only for 100 µs of it a request was in
/// it.
#[test]
fn time_in_which_the_device_has_nothing_is_no_gap() {
    let mut device = Measuring::with(0);
    for request in 1..=60 {
        let pause = if request > 20 { 1_000_000 } else { 0 };
        let micros = 100 * request + pause;
        device.windows.note_load(at(micros - 100), 1, false);
        device.complete(micros, 0, false);
    }
    for closed in &device.closed {
        assert_eq!(closed.longest_gap, Nanos::from_micros(100), "{closed:?}");
    }
    assert!(!device.closed.is_empty());
}
