//! When a changed weight takes effect.
//!
//! The charge of a group for a slice of 5 ms shows its fraction, its part of the device in 4096ths:
//! (5000000 << 24) / fraction. Where queues are served by vdisktime it shows the weight:
//! 5000000 × 4096 × 500 / weight, which is 20.48 × 10⁹ for 500 and 10.24 × 10⁹ for 1000.

use crate::cfq::hierarchies::BY_VDISKTIME;
use crate::rig::*;
use paternoster::{CfqEvent, Event, Hierarchy};

const FAR: u64 = 1_000_000;

/// A device that takes 1 ms for a request, with slices of 5 ms. The tasks `a`, `b`, .. of the
/// groups always have a request waiting.
fn busy(rig: Rig, tasks: &[&'static str]) -> Served {
    let rig = rig.without_merging().set("slice_sync", 5);
    let mut run = rig.served(1, ms(1));
    for (at, task) in tasks.iter().enumerate() {
        run.issues(task, Stream::reads(16).from(at as u64 * FAR).depth(2));
    }
    run
}

/// The fractions at which a group was charged since the first charge after the last look, without
/// repetitions.
fn fractions(run: &mut Served, path: &str) -> Vec<u64> {
    let wanted = run.rig.group_id(path);
    let mut before = None;
    let mut found = vec![];
    for (_, event) in run.rig.timed_events() {
        let Event::Cfq(CfqEvent::SliceExpired { group, charge, vdisktime, .. }) = event else {
            continue;
        };
        if group == wanted {
            found.extend(before.map(|before| (charge << 24) / (vdisktime - before)));
            before = Some(vdisktime);
        }
    }
    found.dedup();
    found
}

fn siblings() -> Rig {
    let rig = Rig::cfq().group("/a", 500).group("/b", 500);
    rig.task("a", "be/4", "/a").task("b", "be/4", "/b")
}

/// Slices: a up to 6 ms, b to 12, a to 18, b to 24, a to 30. With 500 of 1000 a charge is
/// 40960000000, and so it is at 18 ms although the weight was changed at 14; from then on the
/// fraction is 4096 × 1000 / 1500 = 2730 and a charge (5000000 << 24) / 2730 = 30727501831.
/// (At 6 ms it is 20480000000, as /a was alone when it became busy.)
#[test]
fn weight_counts_from_the_charge_after_the_next_one() {
    let mut run = busy(siblings(), &["a", "b"]);
    run.until(ms(14)).rig.run(&[SetWeight("/a", 1000)]);
    let of_a = run.until(ms(30)).emitted_up_to(6, &["expired a"]);
    let vdisktimes: Vec<_> =
        of_a.iter().map(|line| line.rsplit(' ').next().expect("the last word")).collect();
    assert_eq!(vdisktimes, ["20480000000", "61440000000", "92167501831"]);
}

/// 4096 × 500 / 1000, 4096 × 1000 / 1500 and 4096 × 250 / 750.
#[test]
fn weight_of_one_device_hides_that_of_the_group() {
    let mut run = busy(siblings(), &["a", "b"]);
    run.until(ms(100));
    assert_eq!(fractions(&mut run, "/a"), [2048]);
    run.rig.run(&[SetDeviceWeights("/a", Some(1000), None)]);
    run.until(ms(200));
    assert_eq!(fractions(&mut run, "/a"), [2730]);
    // The weight of the device hides it.
    run.rig.run(&[SetWeight("/a", 250)]);
    run.until(ms(300));
    assert_eq!(fractions(&mut run, "/a"), [2730]);
    run.rig.run(&[SetDeviceWeights("/a", None, None)]);
    run.until(ms(400));
    assert_eq!(fractions(&mut run, "/a"), [1365]);
}

/// A group and one below it; beside it another.
fn nested() -> Rig {
    let rig = Rig::cfq().group("/p", 500).group("/p/c", 500).group("/q", 500);
    rig.task("p", "be/4", "/p").task("c", "be/4", "/p/c").task("q", "be/4", "/q")
}

/// The parent gets 500 / 1000; the parent and the child have 500 / 1000 each of that.
#[test]
fn group_shares_its_part_with_the_groups_below_it() {
    let mut run = busy(nested(), &["p", "c", "q"]);
    run.until(ms(200));
    assert_eq!(fractions(&mut run, "/q"), [2048]);
    // All became busy at once; when the parent did, the others were not busy yet.
    run.until(ms(400));
    assert_eq!(fractions(&mut run, "/p"), [1024]);
}

/// The leaf weight is that of the group's own queues against the groups below it: 4096 × 1000 /
/// 1500 = 2730, of which 500 / 1000; for the child 4096 × 500 / 1500 = 1365, of which half.
#[test]
fn leaf_weight_counts_among_the_group_and_those_below_it() {
    let mut run = busy(nested(), &["p", "c", "q"]);
    run.until(ms(200)).rig.run(&[SetWeights("/p", 500, 1000)]);
    run.until(ms(300)).emitted(&[]);
    run.until(ms(500));
    assert_eq!(fractions(&mut run, "/p"), [1365]);
    run.until(ms(1500));
    assert_eq!(fractions(&mut run, "/p/c"), [682]);
}

/// It is 1024 while either is active, whatever the parent's weight is now. Once both were inactive,
/// it is half of 4096 × 1000 / 1500: (4096 × 500 / 1000) × 1000 / 1500 = 1365.
#[test]
fn weight_of_a_group_with_active_groups_below_counts_once_all_of_them_were_inactive() {
    let rig = nested().without_merging().set("slice_sync", 5);
    let mut run = rig.served(1, ms(1));
    run.issues("q", Stream::reads(16).depth(2));
    run.issues("p", Stream::reads(16).from(FAR).depth(2).count(200));
    run.issues("c", Stream::reads(16).from(2 * FAR).depth(2).count(200));
    run.until(ms(100)).rig.run(&[SetWeights("/p", 1000, 500)]);
    run.until(ms(200)).emitted(&[]);
    run.until(ms(600));
    assert_eq!(fractions(&mut run, "/p"), [1024]);
    // The time of 400 requests of these at half of the device, and some more.
    run.until(ms(1200)).emitted(&[]);
    run.issues("p", Stream::reads(16).from(FAR).depth(2).at(ms(1201)));
    run.issues("c", Stream::reads(16).from(2 * FAR).depth(2).at(ms(1201)));
    run.until(ms(1300)).emitted(&[]);
    run.until(ms(1600));
    assert_eq!(fractions(&mut run, "/p"), [1365]);
}

/// The vdisktimes of the group that the slices of its own queues left, since the last look.
fn vdisktimes(run: &mut Served, path: &str) -> Vec<u64> {
    let wanted = run.rig.group_id(path);
    let of_group = |(_, event)| match event {
        Event::Cfq(CfqEvent::SliceExpired { group, vdisktime, .. }) if group == wanted => {
            Some(vdisktime)
        }
        _ => None,
    };
    run.rig.timed_events().into_iter().filter_map(of_group).collect()
}

/// In 10⁹: a begins at 0 and b at 0.2. Slices: a up to 6 ms, b 12, a 18, b 24, a 30, b 36, a 42 and
/// again a 48, as it is at 61.44 then and b at 61.64. The weight is changed at 14.
#[test]
fn weight_counts_from_the_charge_after_the_next_one_where_it_is_the_charge_that_it_scales() {
    for hierarchy in BY_VDISKTIME {
        let mut run = busy(siblings().in_hierarchy(hierarchy).set("low_latency", 0), &["a", "b"]);
        run.until(ms(14)).rig.run(&[SetWeight("/a", 1000)]);
        run.until(ms(48));
        let expected = [20_480, 40_960, 51_200, 61_440, 71_680].map(|at| at * 1_000_000);
        assert_eq!(vdisktimes(&mut run, "/a"), expected, "{hierarchy}");
    }
}

/// In 10⁹: a has the device until 6 ms, b until 12, and a until 24: its 10 requests are done at 16,
/// and the device idles for more in vain. 5 ms are charged for that, by the old weight, though it
/// is changed at 14: 20.48. Then b, which came at 0.2, has slices of 6 ms, so that at 96 it has had
/// 13 and stands at 0.2 + 13 × 20.48 = 266.44. At 100 a comes back behind that, at 266.64, with the
/// new weight: it has a slice at 102, and is at 276.88.
#[test]
fn weight_counts_at_once_when_the_group_comes_back() {
    for hierarchy in BY_VDISKTIME {
        let rig = siblings().in_hierarchy(hierarchy).set("low_latency", 0).without_merging();
        let mut run = rig.set("slice_sync", 5).served(1, ms(1));
        run.issues("a", Stream::reads(16).depth(2).count(10));
        run.issues("b", Stream::reads(16).from(FAR).depth(2));
        run.until(ms(14)).rig.run(&[SetWeight("/a", 1000)]);
        run.until(ms(99)).issues("a", Stream::reads(16).depth(2).at(ms(100))).until(ms(108));
        let expected = [20_480, 40_960, 276_880].map(|at| at * 1_000_000);
        assert_eq!(vdisktimes(&mut run, "/a"), expected, "{hierarchy}");
    }
}

/// Queue and group in /p, in 10⁹: p begins at 16.384, the jump of 4 ms, and moves by 21.157 each
/// slice; /p/c begins 0.2 behind it and moves by 20.48. So they have slices of 6 ms in the order p
/// c c p c p. Each moves /p by 20.48 on the root's tree, to 61.44 at 18 ms. The weight is changed
/// at 14, while c has the device; from 18 on a slice moves /p by 10.24. In Linux's own hierarchy
/// the weight would count only after nothing in /p or below it had been busy.
#[test]
fn weight_of_an_entity_counts_while_groups_below_it_are_busy() {
    let rig = nested().in_hierarchy(Hierarchy::Entities).set("low_latency", 0);
    let mut run = busy(rig, &["p", "c"]);
    run.until(ms(14)).rig.run(&[SetWeights("/p", 1000, 500)]);
    run.until(ms(36));
    let expected = [20_480, 71_680, 92_160].map(|at| at * 1_000_000);
    assert_eq!(vdisktimes(&mut run, "/p"), expected);
}
