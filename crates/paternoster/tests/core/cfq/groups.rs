//! Groups: which one is served next, by vdisktime, and what part of the device it gets.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// Two groups of these weights, each with a reader that always has a request waiting; the second
/// reader begins at `at`.
fn two_groups(rig: Rig, weights: [u32; 2], at: paternoster::Nanos) -> Served {
    let rig = rig.without_merging().group("/a", weights[0]).group("/b", weights[1]);
    let rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b");
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(16).depth(2));
    run.issues("b", Stream::reads(16).from(FAR).at(at).depth(2));
    run
}

/// An oddity of Linux. A lone reader of small requests that thinks for 5 ms loses its slice to the
/// idle timer each time (see `idling.rs`), and is charged 8 ms: (8000000 << 24) / 4096. When it
/// becomes busy again, it begins at the least vdisktime, which is 0: no group with more was chosen.
#[test]
fn group_that_runs_empty_forgets_what_it_was_charged() {
    let mut run = Rig::cfq().without_merging().task("a", "be/4", ROOT).served(1, ms(4));
    run.issues("a", Stream::reads(8).at(ms(5)).think(ms(5))).until(ms(40));
    let charged = "expired a: IdleTimer, used 8 ms, charged 8 ms, no residue, dispatched 2, \
                   vdisktime 32768000000, unaccounted 4 ms";
    let emitted = [17, 35].map(|at| format!("{at} ms: {charged}"));
    assert_eq!(run.emitted(&["expired"]), emitted);
}

/// Slices are 5 ms from the first completion, which is 1 ms after the activation. At the whole
/// device the first group is charged (5000000 << 24) / 4096 = 20480000000 for a slice. The other
/// group becomes busy at 8 ms, 200000000 behind that. From then on each has half of the device and
/// is charged 40960000000 for a slice; the first group's charge at 12 ms is still by the part that
/// it had when that slice began.
#[test]
fn group_that_joins_is_right_behind_the_last_one() {
    let mut run = two_groups(Rig::cfq().set("slice_sync", 5), [500, 500], ms(8));
    let emitted = [
        "6 ms: expired a: SliceUsed, used 5 ms, charged 5 ms, residue 0 ms, dispatched 6, \
         vdisktime 20480000000",
        "12 ms: expired a: SliceUsed, used 5 ms, charged 5 ms, residue 0 ms, dispatched 6, \
         vdisktime 40960000000",
        "18 ms: expired b: SliceUsed, used 5 ms, charged 5 ms, residue 0 ms, dispatched 6, \
         vdisktime 61640000000",
        "24 ms: expired a: SliceUsed, used 5 ms, charged 5 ms, residue 0 ms, dispatched 6, \
         vdisktime 81920000000",
    ];
    assert_eq!(run.until(ms(24)).emitted_up_to(6, &["expired"]), emitted);
}

/// The first group is alone when it begins, so its workload has 300 ms. At 101 ms it is charged and
/// has half of the device from then on. The other group's half is 150 ms. A slice takes 101 ms.
/// What is left of a workload when it ends is used in the next one: 199 and 98 ms of the first
/// group at 101 and 303, 49 of the other at 202. By vdisktime slices come in the order a b a b, and
/// then b a: a's first slice cost half of what its others do, and b began 200000000 behind.
#[test]
fn group_goes_on_with_its_workload_and_then_has_one_as_long_as_its_part_of_the_device() {
    let mut run = two_groups(Rig::cfq(), [500, 500], us(500));
    let emitted = [
        "0 ms: workload /a: Be Sync for 300 ms",
        "0 ms: active a",
        "101 ms: workload /b: Be Sync for 150 ms",
        "101 ms: active b",
        "202 ms: active a",
        "303 ms: active b",
        "404 ms: active a",
        "505 ms: workload /b: Be Sync for 150 ms",
        "505 ms: active b",
        "606 ms: workload /a: Be Sync for 150 ms",
        "606 ms: active a",
    ];
    assert_eq!(run.until(ms(606)).emitted(&["workload", "active"]), emitted);
}

/// A slice takes 11 ms; the first one is charged at the whole device. Of 6 s a group gets its part
/// by weight, give or take two slices.
#[test]
fn groups_have_the_device_by_weight() {
    for (weights, part) in [([500, 500], 500), ([1000, 500], 667), ([900, 100], 900)] {
        let mut run = two_groups(Rig::cfq().set("slice_sync", 10), weights, ms(0));
        run.until(ms(6000));
        let [a, b] = ["/a", "/b"].map(|group| run.rig.slice_stats(group).time.as_nanos());
        let found = 1000 * a / (a + b);
        assert!(found.abs_diff(part) <= 4, "{weights:?}: {found} thousandths");
    }
}

/// Without idle times the device never idles, and a group that runs empty leaves the tree.
#[test]
fn group_leaves_the_tree_with_its_last_queue() {
    let rig = Rig::cfq().set("slice_idle", 0).set("group_idle", 0).group("/a", 500);
    rig.task("a", "be/4", "/a").run(&[
        Submit("a", read(0..16).by("a")),
        Submit("b", read(FAR..FAR + 16)),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(NotEmitted("left")),
        Expect(dispatched("b")),
        Expect(Emitted("left /a")),
        Expect(Emitted("active main")),
    ]);
}

/// What was left of its workload when the group left the tree is lost.
#[test]
fn group_that_comes_back_has_a_whole_workload() {
    let mut run = Rig::cfq().without_merging().task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(16).think(ms(10))).until(ms(12));
    let workload = |at| format!("{at} ms: workload /: Be Sync for 300 ms");
    assert_eq!(run.emitted(&["workload"]), [0, 11].map(workload));
}
