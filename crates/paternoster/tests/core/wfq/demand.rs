//! What a tenant has outstanding, and how much its weight needs.

use paternoster::Weight;
use paternoster::scheduler::{DemandStats, Scheduler as _};

use crate::rig::*;
use crate::wfq::groups;

/// A device of 16 channels of 80 µs at depth 20, after 100 ms of tasks that each keep so many reads
/// outstanding.
fn served(tasks: &[(&'static str, u32, u64)]) -> Served {
    let weights: Vec<_> = tasks.iter().map(|&(task, weight, _)| (task, weight)).collect();
    let mut run = groups(20, &weights).served(16, us(80));
    for (at, &(task, _, depth)) in tasks.iter().enumerate().filter(|(_, (.., depth))| *depth > 0) {
        run.issues(task, Stream::reads(8).stride(16).from(at as u64 * 10_000_000).depth(depth));
    }
    run.until(ms(100));
    run
}

fn demand(run: &Served, group: &str) -> Option<DemandStats> {
    let id = run.rig.group_id(group);
    run.rig.elevator.scheduler().own_stats(run.rig.now, id).demand
}

/// A seventh of 20 is 2.9, two are 5.7, four 11.4.
#[test]
fn tenant_needs_its_part_of_the_depth_outstanding() {
    let run = served(&[("A", 100, 32), ("B", 200, 32), ("C", 400, 32)]);
    let needs = ["/A", "/B", "/C"].map(|group| demand(&run, group).expect("it asks").needs);
    assert_eq!(needs, [Some(3), Some(6), Some(12)]);
}

/// What its weight needs does not shrink with what it has: that is what it is told for.
#[test]
fn tenant_with_too_little_outstanding_needs_no_less() {
    let run = served(&[("A", 100, 32), ("B", 200, 32), ("C", 400, 3), ("D", 900, 0)]);
    let [a, c] = ["/A", "/C"].map(|group| demand(&run, group).expect("it asks"));
    assert_eq!([a.needs, c.needs], [Some(3), Some(12)], "who asks for nothing does not count");
    assert_eq!(demand(&run, "/D"), None, "it has never asked");
    // Each asks again as it is answered: 32 and 3 for 100 ms.
    for (stats, millis) in [(a, 3_200), (c, 300)] {
        let off = stats.outstanding.as_nanos().abs_diff(ms(millis).as_nanos());
        assert!(off <= ms(millis).as_nanos() / 100, "{:?}, not {millis} ms", stats.outstanding);
    }
}

/// Half of 20 for A and what is below it, and of that a quarter for its own requests.
#[test]
fn parts_are_those_of_all_levels() {
    let mut run = groups(20, &[("A", 100), ("B", 100)]).served(16, us(80));
    let rig = std::mem::replace(&mut run.rig, Rig::wfq());
    run.rig = rig.group("/A/below", 300).task("below", "be/4", "/A/below");
    for (at, task) in ["A", "B", "below"].into_iter().enumerate() {
        run.issues(task, Stream::reads(8).stride(16).from(at as u64 * 10_000_000).depth(32));
    }
    run.until(ms(100));
    let needs = ["/A", "/B", "/A/below"].map(|group| demand(&run, group).expect("it asks").needs);
    assert_eq!(needs, [Some(3), Some(10), Some(8)], "2.5, 10 and 7.5");
}

/// Weights are those of now, and who is present was found before they grew: nobody needs more than
/// all.
#[test]
fn needs_are_bounded_by_the_depth_as_weights_grow() {
    let rig = groups(20, &[]).group("/a", 1).group("/a/b", 1).group("/a/b/c", 1);
    let mut run = rig.task("deep", "be/4", "/a/b/c").served(16, us(80));
    run.issues("deep", Stream::reads(8).stride(16).depth(32));
    run.until(ms(100));
    for path in ["/a", "/a/b", "/a/b/c"] {
        let id = run.rig.group_id(path);
        let weight = Weight::new(1000).expect("in its range");
        run.rig.elevator.set_weight(run.rig.now, id, weight.into());
    }
    assert_eq!(demand(&run, "/a/b/c").expect("it asks").needs, Some(20));
}
