//! When the depths are adjusted.

use paternoster::{Device, Hz, SchedulerKind};

use crate::kyber::deep;
use crate::rig::*;

/// Scenario 10.
#[test]
fn timer_runs_from_the_first_completion_on_and_not_without() {
    deep().run(&[
        Submit("a", read(0..8)),
        Submit("b", read(100..108)),
        Expect(dispatched("a")),
        Expect(dispatched("b")),
        Advance(ms(60_000)),
        Advance(us(500)),
        Expect(Timeout(None)),
        Complete("a"),
        Expect(Timeout(Some(ms(60_100)))),
        // A later completion leaves it as it is.
        Advance(ms(50)),
        Complete("b"),
        Expect(Timeout(Some(ms(60_100)))),
        // And so does a call before its time.
        TimerFires,
        Expect(Timeout(Some(ms(60_100)))),
        Advance(us(49_500)),
        TimerFires,
        Expect(Timeout(None)),
        Advance(ms(60_000)),
        Submit("c", read(0..8)),
        Expect(dispatched("c")),
        Expect(Timeout(None)),
        Complete("c"),
        Expect(Timeout(Some(ms(120_200)))),
    ]);
}

/// With ticks of 4 ms a tenth of a second is 25 of them. 7 ms are in the tick of 4 ms.
#[test]
fn timer_counts_whole_ticks() {
    let device = Device::solid_state(1).with_hz(Hz::new(250).expect("a clock"));
    Rig::on(device, SchedulerKind::Kyber).run(&[
        Submit("a", read(0..8)),
        Expect(dispatched("a")),
        Advance(ms(7)),
        Complete("a"),
        Expect(Timeout(Some(ms(104)))),
    ]);
}

#[test]
fn what_is_not_measured_arms_no_timer() {
    deep().run(&[Submit("zeroes", zeroes(0..8)), Serve(&["zeroes"]), Expect(Timeout(None))]);
}
