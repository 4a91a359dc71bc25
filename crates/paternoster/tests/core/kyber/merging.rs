//! Which requests a bio may merge into: the newest that have arrived in its domain and have not
//! become ready.

use paternoster::{MergeSite, NoMerges};

use crate::kyber::{DEEP, dispatch_all, submit};
use crate::rig::*;

fn merging() -> Rig {
    Rig::kyber().depth(DEEP)
}

/// Scenario 11; of merging, 9.
#[test]
fn domain_without_tokens_goes_on_merging_until_its_requests_are_ready() {
    let mut rig = merging();
    submit(&mut rig, read, "R", 256);
    assert_eq!(dispatch_all(&mut rig).len(), 256);
    rig.run(&[
        Submit("a", read(50_000..50_008)),
        Submit("b", read(60_000..60_008)),
        Submit("c", read(70_000..70_008)),
        Expect(Nothing),
        Expect(Number("read_rqs", 0)),
        BackMerge("b2", read(60_008..60_016), "b"),
        FrontMerge("c2", read(69_992..70_000), "c"),
        Complete("R"),
        Expect(dispatched("a")),
        Expect(Number("read_rqs", 2)),
        Submit("b3", read(60_016..60_024)),
        Expect(apart("b", "b3")),
        Expect(Number("read_waiting", 0)),
    ]);
    assert_eq!(rig.merge_sites(), [MergeSite::Scan, MergeSite::Scan]);
}

/// Scenario 8 of merging: the 10 are looked at from the newest on, up to the 8th.
#[test]
fn bio_looks_at_the_newest_eight_requests_of_its_domain() {
    let mut rig = merging();
    for (at, name) in (0..).zip(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]) {
        rig.enter(name, read(100 * at..100 * at + 8));
    }
    submit(&mut rig, write, "W", 10);
    rig.run(&[
        BackMerge("behind the 8th", read(208..216), "c"),
        Submit("behind the 9th", read(108..116)),
        // There are 11 now, so that the 8th is another.
        Submit("behind the 9th again", read(216..224)),
    ]);
}

/// Scenario 14 of merging.
#[test]
fn priority_keeps_bios_apart_and_a_request_that_refused_one_merges_no_more() {
    let rig = merging().task("lower", "be/5", ROOT);
    rig.depth(1).run(&[
        Submit("older", read(9000..9008)),
        Submit("newer", read(9000..9008).by("lower")),
        BackMerge("a", read(9008..9016), "older"),
    ]);
    merging().run(&[
        Submit("older", read(9000..9008)),
        Submit("long", read(6452..9008)),
        // 2556 sectors and 8 are more than 2560, and no older request is looked at.
        Submit("a", read(9008..9016)),
        BackMerge("b", read(9008..9016), "older"),
    ]);
}

#[test]
fn synchronous_and_asynchronous_writes_are_of_one_domain() {
    merging().run(&[
        Submit("async", write(100..108)),
        BackMerge("sync", write(108..116).sync(), "async"),
        Submit("read", read(116..124)),
        Submit("discard", discard(116..124)),
    ]);
}

#[test]
fn discard_bios_merge_and_zeroes_do_not() {
    merging().run(&[
        Submit("d", discard(100..108)),
        BackMerge("d2", discard(108..116), "d"),
        Submit("z", zeroes(100..108)),
        Submit("z2", zeroes(108..116)),
    ]);
}

#[test]
fn requests_that_touch_are_not_joined() {
    merging().run(&[
        Submit("a", read(100..108)),
        Submit("c", read(116..124)),
        FrontMerge("b", read(108..116), "c"),
        Expect(apart("a", "c")),
        Serve(&["a", "c"]),
        Expect(Done(&["c", "b"])),
    ]);
}

#[test]
fn scan_stays_with_simple_merges_alone_and_goes_with_all() {
    merging().run(&[
        Submit("a", read(100..108)),
        SetNoMerges(NoMerges::SimpleOnly),
        BackMerge("b", read(108..116), "a"),
        SetNoMerges(NoMerges::All),
        Submit("c", read(116..124)),
    ]);
}
