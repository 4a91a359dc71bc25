//! Caps.

use std::num::NonZeroU64;

use paternoster::scheduler::Scheduler;
use paternoster::{GroupLimits, Nanos, SchedulerKind};

use crate::rig::*;
use crate::wfq::{groups, order, submit};

pub(crate) fn per_s(rate: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(rate)
}

fn reads_capped_at(rate: u64) -> GroupLimits {
    GroupLimits { riops: per_s(rate), ..GroupLimits::NONE }
}

pub(crate) fn set(rig: &mut Rig, group: &str, limits: GroupLimits) {
    let group = rig.group_id(group);
    rig.elevator.set_group_limits(rig.now, group, limits);
    rig.elevator.check();
}

/// Serves whatever may be served, and then at each timeout, until `end`: when each was dispatched,
/// in milliseconds, and whose it was.
fn serve_until(rig: &mut Rig, end: Nanos) -> Vec<(u64, String)> {
    let start = rig.now;
    let mut served = vec![];
    loop {
        let ms = rig.now.saturating_since(start).as_nanos() / 1_000_000;
        served.extend(rig.serve_all().into_iter().map(|name| (ms, name)));
        rig.elevator.check();
        match rig.elevator.poll_timeout() {
            Some(at) if at <= start + end => {
                assert!(at > rig.now, "what may be served was served");
                rig.now = at;
            }
            _ => return served,
        }
        rig.elevator.handle_timeout(rig.now);
    }
}

/// Tasks of those groups on 16 channels of 80 µs, each with 32 reads of 4 KiB outstanding.
pub(crate) fn busy(tasks: &[(&'static str, u32)], limits: &[(&str, GroupLimits)]) -> Served {
    keeping(32, tasks, limits)
}

/// The same with that many outstanding.
pub(crate) fn keeping(
    outstanding: u64,
    tasks: &[(&'static str, u32)],
    limits: &[(&str, GroupLimits)],
) -> Served {
    let mut rig = groups(20, tasks);
    for (group, limits) in limits {
        set(&mut rig, group, *limits);
    }
    let mut run = rig.served(16, us(80));
    for (at, &(task, _)) in tasks.iter().enumerate() {
        let stream = Stream::reads(8).stride(16).from(at as u64 * 10_000_000);
        run.issues(task, stream.depth(outstanding));
    }
    run
}

/// How many were dispatched a second, from `from` on, for `span`.
pub(crate) fn rate(run: &Served, task: &str, from: Nanos, span: Nanos) -> u64 {
    let within = |at: &&Nanos| **at >= from && **at < from + span;
    let times = run.dispatch_times(task);
    let count = times.iter().filter(within).count() as u64;
    count * 1_000_000_000 / span.as_nanos()
}

pub(crate) fn assert_near(got: u64, expected: u64, percent: u64, whose: &str) {
    let off = got.abs_diff(expected);
    assert!(off * 100 <= expected * percent, "{whose}: {got} for {expected}");
}

/// Groups share by weight what a cap of the root leaves them; the other direction goes on.
#[test]
fn cap_of_the_root_holds_all_groups_together() {
    let tasks = [("A", 100), ("B", 300), ("C", 100)];
    let mut run = busy(&tasks, &[(ROOT, reads_capped_at(20_000))]);
    run.issues("C", Stream::writes(8).stride(16).from(30_000_000).depth(1));
    run.until(ms(150));
    // Its burst is over by then, as above.
    for (task, expected) in [("A", 5_000), ("B", 15_000), ("C", 180_000)] {
        assert_near(rate(&run, task, ms(100), ms(50)), expected, 2, task);
    }
}

/// Scenario 16: 16 channels of 80 µs serve 200 000 a second; what A may not have the others share.
#[test]
fn others_get_what_a_cap_keeps_from_one() {
    let mut run = busy(&[("A", 100), ("B", 100), ("C", 100)], &[("/A", reads_capped_at(20_000))]);
    run.until(ms(150));
    // Its burst is over by then: at 66 667 a second 2000 are gone in 43 ms.
    for (task, expected) in [("A", 20_000), ("B", 90_000), ("C", 90_000)] {
        assert_near(rate(&run, task, ms(100), ms(50)), expected, 1, task);
    }
}

/// Scenario 17. The clock of the cap: 0, 10, … 100 ms for the first 11; then each 10 ms there is
/// room for one.
#[test]
fn burst_passes_at_once_and_then_one_at_a_time() {
    let mut rig = groups(1, &[("A", 100)]);
    set(&mut rig, "/A", reads_capped_at(100));
    submit(&mut rig, "A", 1000);
    rig.run(&[Expect(Timeout(None))]);
    let served = serve_until(&mut rig, ms(55));
    let times: Vec<_> = served.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [&[0; 11][..], &[10, 20, 30, 40, 50]].concat());
    rig.run(&[
        Expect(Emitted("fair held /A: Cap")),
        Expect(Emitted("waiting: Capped")),
        Expect(Timeout(Some(ms(60)))),
    ]);
}

/// Scenario 18: 10 MB a second are 2441 reads of 4 KiB.
#[test]
fn groups_below_a_capped_one_share_what_it_may_have() {
    for (idle, expected) in [(false, [1220, 1220]), (true, [2441, 0])] {
        let rig = Rig::wfq().set("depth", 4).group("/p", 100);
        let rig = rig.group("/p/a", 100).group("/p/b", 100).task("a", "be/4", "/p/a");
        let mut rig = rig.task("b", "be/4", "/p/b");
        set(&mut rig, "/p", GroupLimits { rbps: per_s(10_000_000), ..GroupLimits::NONE });
        let mut run = rig.served(4, us(80));
        run.issues("a", Stream::reads(8).stride(16).depth(8));
        if !idle {
            run.issues("b", Stream::reads(8).stride(16).from(1_000_000).depth(8));
        }
        run.until(ms(1200));
        for (task, expected) in ["a", "b"].into_iter().zip(expected) {
            let got = rate(&run, task, ms(200), ms(1000));
            assert!(got.abs_diff(expected) <= 2, "{task}: {got} for {expected}");
        }
    }
}

#[test]
fn cap_of_one_direction_holds_that_direction_alone() {
    let rig = groups(1, &[("A", 100), ("B", 100)]).task("W", "be/4", "/A");
    let mut rig = rig.set("burst", 1);
    set(&mut rig, "/A", reads_capped_at(10));
    submit(&mut rig, "A", 5);
    rig.enter("B", read(0..8).by("B"));
    // The burst has room for one read.
    assert_eq!(order(&mut rig, 10), "AB");
    rig.enter("W", write(0..8).by("W"));
    rig.enter("W", write(100..108).by("W"));
    assert_eq!(order(&mut rig, 10), "WW");
    // A write of the context whose read is held comes after that.
    rig.enter("Behind", write(5000..5008).by("A"));
    assert_eq!(order(&mut rig, 10), "");
    rig.run(&[Expect(Timeout(Some(ms(99))))]);
}

#[test]
fn writes_and_bytes_have_caps_of_their_own() {
    for (limits, expected) in [
        // The first passes at once; 4 KiB are 1 s, which may be there 50 ms early.
        (GroupLimits { wbps: per_s(4096), ..GroupLimits::NONE }, [0, 950, 1950]),
        (GroupLimits { wiops: per_s(2), ..GroupLimits::NONE }, [0, 450, 950]),
        (GroupLimits { wiops: per_s(2), wbps: per_s(4096), ..GroupLimits::NONE }, [0, 950, 1950]),
        (GroupLimits { rbps: per_s(1), riops: per_s(1), ..GroupLimits::NONE }, [0, 0, 0]),
    ] {
        let mut rig = groups(4, &[("A", 100)]).set("burst", 50);
        set(&mut rig, "/A", limits);
        for at in [0, 1000, 2000] {
            rig.enter("A", write(at..at + 8).by("A"));
        }
        let times: Vec<_> = serve_until(&mut rig, ms(3000)).into_iter().map(|(at, _)| at).collect();
        assert_eq!(times, expected, "{limits:?}");
    }
}

/// Two a second, and 4 KiB a second: the first passes at once, the second when it has its place,
/// 50 ms early, whichever direction it has. Beside a cap of one direction the stricter holds.
#[test]
fn cap_of_both_directions_counts_reads_and_writes_together() {
    for (limits, expected) in [
        (GroupLimits { iops: per_s(2), ..GroupLimits::NONE }, [0, 450, 950, 1450]),
        (GroupLimits { bps: per_s(4096), ..GroupLimits::NONE }, [0, 950, 1950, 2950]),
        (GroupLimits { iops: per_s(2), wiops: per_s(1), ..GroupLimits::NONE }, [0, 450, 950, 1450]),
        // The first write is the second to go, at 200: its like may go 950 later.
        (GroupLimits { iops: per_s(4), wiops: per_s(1), ..GroupLimits::NONE }, [0, 200, 450, 1150]),
    ] {
        let rig = groups(4, &[("A", 100)]).task("W", "be/4", "/A");
        let mut rig = rig.set("burst", 50);
        set(&mut rig, "/A", limits);
        for at in [0, 1000] {
            rig.enter("R", read(at..at + 8).by("A"));
            rig.enter("W", write(at + 5000..at + 5008).by("W"));
        }
        let times: Vec<_> = serve_until(&mut rig, ms(4000)).into_iter().map(|(at, _)| at).collect();
        assert_eq!(times, expected, "{limits:?}");
    }
}

/// A trim moves nothing: 512 bytes of the cap, whatever its size.
#[test]
fn trim_counts_as_512_bytes_written() {
    let mut rig = groups(4, &[("A", 100)]).set("burst", 1);
    set(&mut rig, "/A", GroupLimits { wbps: per_s(5120), ..GroupLimits::NONE });
    for at in [0, 10_000] {
        rig.enter("A", discard(at..at + 2048).by("A"));
    }
    let times: Vec<_> = serve_until(&mut rig, ms(500)).into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, [0, 99]);
}

/// Who was capped has no claim on what the others had in the meantime.
#[test]
fn who_was_held_comes_back_where_the_others_are() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]).set("burst", 1);
    set(&mut rig, "/A", reads_capped_at(10));
    submit(&mut rig, "A", 100);
    submit(&mut rig, "B", 1000);
    assert_eq!(order(&mut rig, 201), format!("A{}", "B".repeat(200)));
    set(&mut rig, "/A", GroupLimits::NONE);
    assert_eq!(order(&mut rig, 8), "ABABABAB");
}

/// It has what the cap gives from then on, whatever it had before: no burst, and no old debt.
#[test]
fn cap_that_changes_holds_at_once() {
    let mut run = busy(&[("A", 100), ("B", 100)], &[]);
    run.until(ms(50));
    set(&mut run.rig, "/A", reads_capped_at(1000));
    run.until(ms(150));
    // What completed at 50 ms was followed by dispatches before.
    assert_near(rate(&run, "A", us(50_001), ms(100)), 1000, 5, "capped");
    set(&mut run.rig, "/A", reads_capped_at(20_000));
    run.until(ms(250));
    assert_near(rate(&run, "A", us(150_001), ms(100)), 20_000, 5, "raised");
    set(&mut run.rig, "/A", reads_capped_at(100));
    run.until(ms(350));
    assert_near(rate(&run, "A", us(250_001), ms(100)), 100, 20, "lowered");
    set(&mut run.rig, "/A", GroupLimits::NONE);
    run.until(ms(450));
    assert_near(rate(&run, "A", ms(400), ms(50)), 100_000, 1, "removed");
    // 100 ms at 32 outstanding or less: nobody starved meanwhile.
    assert_near(rate(&run, "B", ms(300), ms(50)), 200_000, 1, "the other");
}

#[test]
fn limits_go_with_the_group_to_the_next_scheduler_and_end_with_it() {
    let rig = groups(1, &[("A", 100), ("B", 100)]).set("burst", 1);
    let mut rig = rig;
    set(&mut rig, "/A", reads_capped_at(10));
    submit(&mut rig, "A", 3);
    assert_eq!(order(&mut rig, 10), "A");
    rig.run(&[SwitchTo(SchedulerKind::MqDeadline)]);
    assert_eq!(order(&mut rig, 1), "A");
    rig.run(&[SwitchTo(SchedulerKind::Wfq)]);
    assert_eq!(order(&mut rig, 10), "A");
    submit(&mut rig, "A", 1);
    assert_eq!(order(&mut rig, 10), "");
    let cancelled = rig.elevator.cancel_queued(rig.now);
    assert_eq!(cancelled.len(), 1);
    rig.run(&[Expect(Timeout(None)), Exit("A"), RemoveGroup("/A")]);
    submit(&mut rig, "B", 2);
    assert_eq!(order(&mut rig, 10), "BB");
}

#[test]
fn burst_that_is_set_holds_for_those_that_wait() {
    let mut rig = groups(1, &[("A", 100)]);
    set(&mut rig, "/A", reads_capped_at(100));
    submit(&mut rig, "A", 50);
    assert_eq!(order(&mut rig, 50).len(), 11);
    rig.run(&[Set("burst", 200)]);
    assert_eq!(order(&mut rig, 50).len(), 10);
    rig.run(&[Expect(Timeout(Some(ms(10))))]);
}

/// The count is of the time that the cap alone held it.
#[test]
fn time_that_a_cap_holds_is_counted() {
    let mut rig = groups(1, &[("A", 100)]).set("burst", 1);
    set(&mut rig, "/A", reads_capped_at(100));
    submit(&mut rig, "A", 3);
    assert_eq!(serve_until(&mut rig, ms(30)).len(), 3);
    let group = rig.group_id("/A");
    let stats = rig.elevator.scheduler().own_stats(rig.now, group).share.expect("wfq counts");
    // To 9 ms for the second, 10 more for the third.
    assert_eq!(stats.capped(rig.now), ms(19));
}
