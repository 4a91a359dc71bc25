//! When two I/Os become one request: the scenarios of the description it was written from, by their
//! numbers there, under mq-deadline and none, then the limits and `nomerges`.
//!
//! Left out: 9 (requests that Kyber has moved to another list), which is in `kyber/merging.rs`, and
//! 13 (a bad sector in a merged read, which is the disk engine's). 8 and 14 are shown with the list
//! scan of `none`, which has no domains, and there with Kyber's.

use crate::rig::*;
use paternoster::{BioFlags, Limits, MergeSite, NoMerges, Op};

/// A request far from all others: as the first one it is the last merge, until another merges.
const ELSEWHERE: Step = Submit("elsewhere", Io::new(Op::Read, 90_000, 8));

/// Scenario 1.
#[test]
fn bio_behind_the_last_merge_becomes_part_of_it() {
    let mut rig = Rig::mq_deadline();
    rig.run(&[
        Submit("a", read(100..108)),
        BackMerge("b", read(108..116), "a"),
        Expect(sectors("a", 100..116)),
        Expect(Waiting(1)),
        // It is the last merge still: with simple merges alone the next one finds it.
        SetNoMerges(NoMerges::SimpleOnly),
        BackMerge("c", read(116..124), "a"),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(Done(&["a", "b", "c"])),
    ]);
    assert_eq!(rig.merge_sites(), [MergeSite::Cache, MergeSite::Cache]);
}

/// Scenario 2.
#[test]
fn bio_before_a_request_is_found_in_the_sort_list_or_as_the_last_merge() {
    let first = [ELSEWHERE, Submit("a", read(100..108))];
    let mut tree = Rig::mq_deadline();
    tree.run(&first).run(&[FrontMerge("b", read(92..100), "a"), Expect(sectors("a", 92..108))]);
    assert_eq!(tree.merge_sites(), [MergeSite::Tree]);

    let without = [Set("front_merges", 0), Submit("b", read(92..100)), Expect(apart("a", "b"))];
    Rig::mq_deadline().run(&first).run(&without);

    let mut cache = Rig::mq_deadline();
    cache.run(&[
        Set("front_merges", 0),
        Submit("a", read(100..108)),
        FrontMerge("b", read(92..100), "a"),
    ]);
    assert_eq!(cache.merge_sites(), [MergeSite::Cache]);
}

/// Scenario 3: the first request takes the bio, then the second request.
#[test]
fn request_that_grew_absorbs_the_one_behind_it() {
    let mut rig = Rig::mq_deadline();
    rig.run(&[
        ELSEWHERE,
        Submit("a", read(100..108)),
        Advance(ms(5)),
        Submit("b", read(116..124)),
        BackMerge("c", read(108..116), "a"),
        Expect(together("a", "b")),
        Expect(sectors("a", 100..124)),
        Expect(Deadline("a", ms(500))),
        Expect(Waiting(2)),
        Serve(&["elsewhere", "a"]),
        Expect(Done(&["a", "c", "b"])),
    ]);
    assert_eq!(rig.merge_sites(), [MergeSite::Hash, MergeSite::Neighbour]);
    assert_eq!(rig.stats(ROOT).op(Op::Read).merged, 2);
}

/// Scenario 4: the same as 3, but the second request is the last merge, and is tried first.
#[test]
fn request_that_grew_downward_is_absorbed_by_the_one_before_it() {
    let mut rig = Rig::mq_deadline();
    rig.run(&[
        Submit("b", read(116..124)),
        Submit("a", read(100..108)),
        FrontMerge("c", read(108..116), "b"),
        Expect(together("a", "b")),
        Expect(sectors("a", 100..124)),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(Done(&["a", "b", "c"])),
    ]);
    assert_eq!(rig.merge_sites(), [MergeSite::Cache, MergeSite::Neighbour]);
}

/// Scenario 5: only the newest request of an end is looked at.
#[test]
fn write_that_ends_at_the_same_sector_hides_an_older_read() {
    Rig::mq_deadline().run(&[
        ELSEWHERE,
        Submit("read", read(100..108)),
        Submit("write", write(100..108)),
        Submit("bio", read(108..116)),
        Expect(apart("read", "bio")),
    ]);
    // The other way round the read is the newest.
    Rig::mq_deadline().run(&[
        ELSEWHERE,
        Submit("write", write(100..108)),
        Submit("read", read(100..108)),
        BackMerge("bio", read(108..116), "read"),
    ]);
}

/// Scenario 6, and the effect of `max_sectors`.
#[test]
fn request_that_refused_a_bio_for_its_length_never_merges_again() {
    Rig::mq_deadline().run(&[
        Submit("big", read(0..2552)),
        Submit("16", read(2552..2568)),
        Submit("8", read(2552..2560)),
        Expect(apart("big", "8")),
    ]);
    // Unrefused, it takes the 8 sectors up to 2560, and no more.
    Rig::mq_deadline().run(&[
        Submit("big", read(0..2552)),
        BackMerge("8", read(2552..2560), "big"),
        Submit("1", read(2560..2561)),
    ]);
}

/// Scenario 7.
#[test]
fn only_bios_of_one_priority_and_group_merge() {
    let rig = || {
        let rig = Rig::mq_deadline().group("/a", 100).group("/b", 100);
        rig.task("be4", "be/4", "/a").task("also be4", "be/4", "/a").task("be5", "be/5", "/a")
    };
    rig().run(&[
        Submit("a", read(100..108).by("be4")),
        Submit("level", read(108..116).by("be5")),
        BackMerge("same", read(108..116).by("also be4"), "a"),
    ]);
    rig().task("other group", "be/4", "/b").run(&[
        Submit("a", read(100..108).by("be4")),
        Submit("group", read(108..116).by("other group")),
        Expect(apart("a", "group")),
    ]);
    // Nor do requests absorb each other at insert, nor as neighbours.
    rig().run(&[
        Submit("a", read(100..108).by("be4")),
        Submit("c", read(116..124).by("be5")),
        BackMerge("b", read(108..116).by("be4"), "a"),
        Expect(apart("a", "c")),
    ]);
}

/// Scenario 8 with the list scan of `none`, and the effect of the scan's depth.
#[test]
fn list_scan_looks_at_the_newest_eight_requests() {
    let ten = |rig: &mut Rig| {
        for i in 0..10_u64 {
            rig.enter(&format!("r{i}"), read(1000 * i..1000 * i + 8));
        }
    };
    let mut rig = Rig::none();
    ten(&mut rig);
    // r9 is the newest, so that r2 is the eighth; the new request makes r3 the eighth.
    rig.run(&[
        BackMerge("to the third oldest", read(2008..2016), "r2"),
        Submit("to the second oldest", read(1008..1016)),
        Submit("to the third oldest again", read(2016..2024)),
    ]);

    let mut deeper = Rig::none();
    ten(&mut deeper);
    deeper.run(&[SetScanDepth(10), BackMerge("to the oldest", read(8..16), "r0")]);
}

/// Scenario 10, and the effect of `nomerges` = 1.
#[test]
fn simple_merges_find_the_last_merge_alone() {
    let first =
        [Submit("X", read(500..508)), Submit("Y", read(100..108)), Submit("Z", read(116..124))];
    let mut rig = Rig::mq_deadline();
    rig.run(&first).run(&[
        SetNoMerges(NoMerges::SimpleOnly),
        Submit("behind Y", read(108..112)),
        Submit("before Y", read(92..100)),
        BackMerge("behind X", read(508..516), "X"),
    ]);
    // A neighbour is still absorbed after a hit.
    Rig::mq_deadline().run(&[
        Submit("X", read(500..508)),
        Submit("Y", read(516..524)),
        SetNoMerges(NoMerges::SimpleOnly),
        BackMerge("between", read(508..516), "X"),
        Expect(together("X", "Y")),
    ]);
}

/// The effect of `nomerges` = 2, on the list scan too.
#[test]
fn without_merges_nothing_merges() {
    for mut rig in [Rig::mq_deadline(), Rig::none(), Rig::cfq()] {
        rig.run(&[
            SetNoMerges(NoMerges::All),
            Submit("a", read(100..108)),
            Submit("b", read(108..116)),
            Submit("c", read(92..100)),
            SetNoMerges(NoMerges::SimpleOnly),
        ]);
    }
    // A list scan is simple enough for `nomerges` = 1.
    Rig::none().run(&[
        SetNoMerges(NoMerges::SimpleOnly),
        Submit("a", read(100..108)),
        Submit("far", read(9000..9008)),
        BackMerge("b", read(108..116), "a"),
    ]);
}

/// Scenario 11. There is no plug here, so C comes whole because the last merge, B, refuses the bio
/// for its length (8 + 2556 sectors), which ends the search. A absorbs it as it is inserted. B is
/// adjacent now and stays.
#[test]
fn request_is_absorbed_at_insert_by_the_one_before_it() {
    let mut rig = Rig::mq_deadline();
    rig.run(&[
        Submit("B", read(16..2572)),
        Submit("A", read(0..8)),
        BackMerge("C", read(8..16), "A"),
        Expect(sectors("A", 0..16)),
        Expect(apart("A", "B")),
        Expect(Waiting(2)),
    ]);
    assert_eq!(rig.merge_sites(), [MergeSite::Insert]);
}

/// As in 11, but the request that absorbed is absorbed as well: A by its predecessor, which was
/// inserted while nothing merged.
#[test]
fn request_that_absorbed_at_insert_is_absorbed_as_well() {
    let mut rig = Rig::mq_deadline();
    rig.run(&[
        SetNoMerges(NoMerges::All),
        Submit("B", read(24..2580)),
        Submit("A1", read(0..8)),
        Submit("A2", read(8..16)),
        SetNoMerges(NoMerges::Off),
        BackMerge("C", read(16..24), "A1"),
        Expect(together("A1", "A2")),
        Expect(sectors("A1", 0..24)),
        Expect(Waiting(2)),
        Serve(&["B", "A1"]),
        Expect(Done(&["A1", "A2", "C"])),
        Expect(Number("queued_be", 0)),
    ]);
    assert_eq!(rig.merge_sites(), [MergeSite::Insert, MergeSite::Insert]);
}

/// Scenario 12.
#[test]
fn nothing_merges_with_a_request_in_flight() {
    for mut rig in [Rig::mq_deadline(), Rig::none(), Rig::cfq()] {
        rig.run(&[
            Submit("a", read(100..108)),
            Expect(dispatched("a")),
            Submit("b", read(108..116)),
            Submit("c", read(92..100)),
        ]);
    }
}

/// Scenario 14, first part, with `none`.
#[test]
fn list_scan_passes_over_what_the_rules_exclude() {
    let mut rig = Rig::none().group("/a", 100).task("be5", "be/5", ROOT).task("a", "be/4", "/a");
    rig.run(&[
        Submit("older", read(9000..9008)),
        Submit("level", read(9000..9008).by("be5")),
        Submit("group", read(9000..9008).by("a")),
        Submit("write", write(9000..9008)),
        BackMerge("bio", read(9008..9016), "older"),
    ]);
}

/// Scenario 14, second part: 2556 + 8 sectors are more than 2560.
#[test]
fn list_scan_stops_at_a_request_that_refuses_for_its_length() {
    Rig::none().run(&[
        Submit("older", read(9000..9008)),
        Submit("long", read(6452..9008)),
        Submit("bio", read(9008..9016)),
        // The long one never merges now, and hides nothing; the bio before is not adjacent.
        BackMerge("second", read(9008..9016), "older"),
    ]);
}

/// The effect of `max_segments`, for bios and for neighbours.
#[test]
fn request_takes_no_more_segments_than_the_device() {
    let limits = Limits::default().with_max_segments(4);
    Rig::mq_deadline().run(&[
        SetLimits(limits),
        Submit("a", read(100..108).segments(2)),
        Submit("three", read(108..116).segments(3)),
        // Refused once, it never merges again.
        Submit("two", read(108..116).segments(2)),
    ]);
    Rig::mq_deadline().run(&[
        SetLimits(limits),
        Submit("a", read(100..108).segments(2)),
        BackMerge("b", read(108..116).segments(2), "a"),
    ]);
    // 1 + 1 segments of the bio's merge, and 3 of the neighbour's are 5.
    Rig::mq_deadline().run(&[
        SetLimits(limits),
        Submit("a", read(100..108)),
        Submit("c", read(116..124).segments(3)),
        BackMerge("b", read(108..116), "a"),
        Expect(apart("a", "c")),
    ]);
}

/// The effect of `max_discard_sectors`; other requests are not held to it, nor discards to
/// `max_sectors`.
#[test]
fn discards_have_a_limit_of_their_own() {
    let limits = Limits::default().with_max_sectors(16).with_max_discard_sectors(24);
    Rig::mq_deadline().run(&[
        SetLimits(limits),
        Submit("discard", discard(0..8)),
        BackMerge("discard 2", discard(8..16), "discard"),
        BackMerge("discard 3", discard(16..24), "discard"),
        Submit("discard 4", discard(24..32)),
        Submit("write", write(1000..1008)),
        BackMerge("write 2", write(1008..1016), "write"),
        Submit("write 3", write(1016..1024)),
    ]);
}

/// A discard bio adds no range of its own; a discard request is a range, and two are too many for
/// the device.
#[test]
fn discard_bios_merge_but_discard_requests_never_do() {
    let limits = Limits::default().with_max_segments(1);
    Rig::mq_deadline().run(&[
        SetLimits(limits),
        ELSEWHERE,
        Submit("a", discard(100..108)),
        Submit("c", discard(116..124)),
        BackMerge("b", discard(108..116), "a"),
        Expect(apart("a", "c")),
        FrontMerge("before a", discard(92..100), "a"),
        Expect(sectors("a", 92..116)),
    ]);
}

/// The effect of `chunk_sectors`: from the start of what would be merged, at most to the chunk's
/// end.
#[test]
fn no_request_crosses_a_chunk() {
    let limits = Limits::default().with_chunk_sectors(64);
    Rig::mq_deadline().run(&[
        SetLimits(limits),
        Submit("a", read(48..56)),
        BackMerge("to the end", read(56..64), "a"),
        Submit("over it", read(64..72)),
    ]);
    Rig::mq_deadline().run(&[
        SetLimits(limits),
        Submit("a", read(64..72)),
        // 8 sectors are left of the chunk in which the bio starts.
        Submit("from before", read(56..64)),
    ]);
}

/// The effect of `virt_boundary`: pages of 8 sectors. A gap ends no request's merging.
#[test]
fn pieces_meet_on_the_virtual_boundary_only() {
    Rig::mq_deadline().run(&[
        SetLimits(Limits::default().with_virt_boundary(4095)),
        Submit("a", read(100..108)),
        BackMerge("b", read(108..112), "a"),
        // The request is 12 sectors long now.
        Submit("c", read(112..120)),
        // In front a piece of 4 sectors would leave a gap, one of 8 does not.
        Submit("d", read(96..100)),
        FrontMerge("e", read(92..100), "a"),
    ]);
}

#[test]
fn write_zeroes_and_bios_marked_so_never_merge() {
    for mut rig in [Rig::mq_deadline(), Rig::none(), Rig::cfq()] {
        rig.run(&[
            Submit("zeroes", zeroes(100..108)),
            Submit("zeroes 2", zeroes(108..116)),
            Submit("marked", read(200..208).flag(BioFlags::NO_MERGE)),
            Submit("behind", read(208..216)),
            Submit("marked too", read(216..224).flag(BioFlags::NO_MERGE)),
            BackMerge("unmarked", read(216..224), "behind"),
        ]);
    }
}

/// Sync-ness is not compared by the block layer; CFQ keeps async requests apart by queue.
#[test]
fn synchronous_write_merges_with_an_asynchronous_one_but_not_under_cfq() {
    for mut rig in [Rig::mq_deadline(), Rig::none()] {
        rig.run(&[
            Submit("async", write(100..108)),
            BackMerge("sync", write(108..116).sync(), "async"),
        ]);
    }
    Rig::cfq().run(&[
        Submit("async", write(100..108)),
        Submit("sync", write(108..116).sync()),
        BackMerge("async 2", write(108..116), "async"),
    ]);
}
