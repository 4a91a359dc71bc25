//! Shares on a device that serves many at once.

use crate::rig::*;
use crate::wfq::groups;

/// A device of 16 channels of 80 µs, and tasks that each keep 32 reads outstanding.
fn served(groups_: &[(&'static str, u32)]) -> Served {
    let mut run = groups(20, groups_).served(16, us(80));
    for (at, &(task, _)) in groups_.iter().enumerate() {
        run.issues(task, Stream::reads(8).stride(16).from(at as u64 * 10_000_000).depth(32));
    }
    run
}

/// Over the last half of the run the parts are by weight, and the device is never short of work:
/// 16 of 80 µs are 200,000 a second, 10,000 in 50 ms.
#[test]
fn weights_hold_while_all_channels_are_busy() {
    let mut run = served(&[("A", 100), ("B", 200), ("C", 400)]);
    run.until(ms(100));
    let late = |task| run.dispatch_times(task).iter().filter(|&&at| at >= ms(50)).count();
    let [a, b, c] = ["A", "B", "C"].map(late);
    let all = a + b + c;
    assert!(all >= 9_900, "{all} dispatched");
    for (got, weight) in [(a, 100), (b, 200), (c, 400)] {
        let due = all * weight / 700;
        // Bound: (D + 1) requests of each at most.
        assert!(got.abs_diff(due) <= 21 * 2, "{got} of {due}");
    }
}

/// It waits for a free place, never behind a queue: on 16 channels of 80 µs one is free within
/// 5 µs, and 4 others are in the device before it (20 − 16).
#[test]
fn who_has_one_outstanding_waits_for_a_free_place_alone() {
    let mut run = served(&[("deep", 100)]);
    let rig = std::mem::replace(&mut run.rig, Rig::wfq());
    run.rig = rig.group("/light", 100).task("light", "be/4", "/light");
    run.issues("light", Stream::reads(8).stride(16).from(500_000_000).at(ms(5)));
    run.until(ms(30));
    let times = run.dispatch_times("light");
    let gaps = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
    // Its service, and before it that of one of those that were in the device.
    assert!(gaps.expect("it is served") <= us(2 * 80), "{gaps:?}");
    assert!(times.len() >= 25 * 1000 / 160, "{}", times.len());
}

/// It has its share from when it wakes on: 20 requests on a slow device, 10 ms on a fast one. Of
/// those at its first moment some are the other's: they took the places of what was done just then,
/// at most as many as there are channels.
#[test]
fn who_wakes_has_its_share_at_once() {
    for (channels, service, depth, span) in
        [(16, us(80), 20, ms(10)), (4, us(200), 6, ms(10)), (1, ms(5), 2, ms(200))]
    {
        let rig = groups(depth, &[("A", 100), ("B", 100)]).set("keep_slots", 0);
        let mut run = rig.served(channels, service);
        let wakes = ms(500);
        run.issues("A", Stream::reads(8).stride(16).depth(32));
        run.issues("B", Stream::reads(8).stride(16).from(10_000_000).depth(32).at(wakes));
        run.until(wakes + span);
        let dispatched = |task| {
            let times = run.dispatch_times(task);
            times.iter().filter(|&&at| at >= wakes && at < wakes + span).count()
        };
        let [a, b] = ["A", "B"].map(dispatched);
        let ahead = channels + 1;
        assert!(b <= a + 1 && a <= b + ahead, "of the next {} B has {b}", a + b);
    }
}
