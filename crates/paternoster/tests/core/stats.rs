//! What the elevator counts, by group and operation; every number is worked out by hand.

use crate::rig::*;
use paternoster::{BlkioValue, Nanos, Op, OpStats, SchedulerKind};

/// Two reads merge and wait 2 ms, then take 3; a read of 4 KiB comes 1 ms after them, waits until
/// they are done at 5 and takes 1.
#[test]
fn bios_and_requests_are_counted_with_their_times() {
    for kind in SchedulerKind::ALL {
        let mut rig = Rig::new(kind);
        rig.run(&[
            Submit("a", read(100..108)),
            BackMerge("b", read(108..124), "a"),
            Advance(ms(1)),
            Submit("c", read(9000..9008)),
            Advance(ms(1)),
            Expect(dispatched("a")),
            Advance(ms(3)),
            Complete("a"),
            Expect(dispatched("c")),
            Advance(ms(1)),
            Complete("c"),
        ]);
        let reads = rig.stats(ROOT).op(Op::Read);
        assert_eq!((reads.bios, reads.bytes), (3, (8 + 16 + 8) * 512), "{kind}");
        assert_eq!((reads.merged, reads.queued), (1, 0), "{kind}");
        assert_eq!((reads.dispatched, reads.completed), (2, 2), "{kind}");
        assert_eq!((reads.wait, reads.service), (ms(2 + 4), ms(3 + 1)), "{kind}");
        assert_eq!(rig.stats(ROOT).op(Op::Write), OpStats::default(), "{kind}");
    }
}

#[test]
fn each_group_and_operation_has_counts_of_its_own() {
    let mut rig = Rig::none().group("/a", 100).group("/a/b", 100);
    rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/a/b");
    rig.run(&[
        Submit("write", write(0..8).by("a")),
        Submit("discard", discard(100..200).by("a")),
        Submit("zeroes", zeroes(300..301).by("b")),
        Submit("flush", flush().by("b")),
        Serve(&["flush", "write"]),
    ]);
    let bios = |group: &str| Op::ALL.map(|op| rig.stats(group).op(op).bios);
    assert_eq!(bios("/a"), [0, 1, 1, 0, 0]);
    assert_eq!(bios("/a/b"), [0, 0, 0, 1, 1]);
    assert_eq!(bios(ROOT), [0; 5]);
    assert_eq!(rig.stats("/a").op(Op::Discard).bytes, 51_200);
    assert_eq!(rig.stats("/a").op(Op::Write).completed, 1);
    assert_eq!(rig.stats("/a/b").op(Op::Flush).bytes, 0);
    assert_eq!((rig.stats("/a").queued, rig.stats("/a/b").queued), (1, 1));
}

/// A bio that is turned away has not arrived yet; it arrives once.
#[test]
fn bio_is_counted_when_it_enters() {
    let mut rig = Rig::none().without_merging();
    rig.run(&[
        SetNrRequests(Some(1)),
        Submit("a", read(0..8)),
        TurnAway("b", read(100..108)),
        Serve(&["a"]),
    ]);
    assert_eq!(rig.stats(ROOT).op(Op::Read).bios, 1);
    rig.run(&[Retry("b", read(100..108))]);
    assert_eq!(rig.stats(ROOT).op(Op::Read).bios, 2);
}

/// Requests wait from 1 to 3 (a), from 4 to 9 (b and c, overlapping), and from 10 on.
#[test]
fn backlogged_time_is_that_with_a_request_waiting() {
    let mut rig = Rig::none().without_merging().depth(8);
    rig.run(&[
        Advance(ms(1)),
        Submit("a", read(0..8)),
        Advance(ms(2)),
        Expect(dispatched("a")),
        Advance(ms(1)),
        Submit("b", read(100..108)),
        Advance(ms(2)),
        Submit("c", read(200..208)),
        Expect(dispatched("b")),
        Advance(ms(3)),
        Expect(dispatched("c")),
        Advance(ms(1)),
    ]);
    assert_eq!(rig.stats(ROOT).backlogged(rig.now), ms(2 + 5));
    rig.run(&[Submit("d", read(300..308)), Advance(ms(7))]);
    assert_eq!(rig.stats(ROOT).backlogged(rig.now), ms(2 + 5 + 7));
    assert_eq!((rig.stats(ROOT).queued, rig.stats(ROOT).in_flight), (1, 3));
    rig.run(&[Cancel(&["d"]), Advance(ms(1))]);
    assert_eq!(rig.stats(ROOT).backlogged(rig.now), ms(2 + 5 + 7));
}

/// A request that joins another waits no more on its own account.
#[test]
fn joined_request_is_not_waiting() {
    let mut rig = Rig::mq_deadline();
    rig.run(&[
        Submit("a", read(100..108)),
        Submit("far", read(9000..9008)),
        Submit("b", read(116..124)),
        BackMerge("between", read(108..116), "a"),
        Expect(together("a", "b")),
        Expect(Waiting(2)),
    ]);
    assert_eq!(rig.stats(ROOT).queued, 2);
    assert_eq!(rig.stats(ROOT).op(Op::Read).merged, 2);
    rig.run(&[Serve(&["a", "far"])]);
    assert_eq!(rig.stats(ROOT).queued, 0);
    assert_eq!(rig.stats(ROOT).backlogged(rig.now), Nanos::ZERO);
}

/// The wait of a request that was requeued was counted at each dispatch, from its creation:
/// 1 ms and then 4. It waited until 4, and was served from 4 to 6.
#[test]
fn requeued_request_waits_until_its_last_dispatch() {
    for kind in SchedulerKind::ALL {
        let mut rig = Rig::new(kind);
        rig.run(&[
            Submit("a", read(0..8)),
            Advance(ms(1)),
            Expect(dispatched("a")),
            Advance(ms(2)),
            Requeue("a"),
            Advance(ms(1)),
            Expect(dispatched("a")),
            Advance(ms(2)),
            Complete("a"),
        ]);
        let stats = rig.stats(ROOT).op(Op::Read);
        assert_eq!((stats.dispatched, stats.completed), (2, 1), "{kind}");
        assert_eq!((stats.wait, stats.service), (ms(4), ms(2)), "{kind}");
        // It waited from 0 to 1 and from 3 to 4.
        assert_eq!(rig.stats(ROOT).backlogged(rig.now), ms(2), "{kind}");
    }
}

/// The value of a group's `blkio` file.
fn blkio(rig: &Rig, path: &str, file: &str, recursive: bool) -> BlkioValue {
    let group = rig.group_id(path);
    let elevator = &rig.elevator;
    let files = if recursive { elevator.blkio_recursive(group) } else { elevator.blkio(group) };
    files.into_iter().find(|known| known.name == file).expect("such a file").value
}

/// A read of 4 KiB waits 2 ms and takes 3; an asynchronous write of 8 KiB still waits.
#[test]
fn blkio_files_split_by_operation_and_by_whether_somebody_waits() {
    let mut rig = Rig::none().group("/a", 100).task("t", "be/4", "/a");
    rig.run(&[
        Submit("r", read(0..8).by("t")),
        Submit("w", write(100..116).by("t")),
        Submit("s", write(200..208).by("t").sync()),
        Advance(ms(2)),
        Expect(dispatched("r")),
        Advance(ms(3)),
        Complete("r"),
    ]);
    let file = |name| blkio(&rig, "/a", name, false);
    let split = |name| match file(name) {
        BlkioValue::Split { read, write, discard, sync, asynchronous, total, .. } => {
            assert_eq!((discard, total), (0, read + write), "{name}");
            [read, write, sync, asynchronous]
        }
        value => panic!("{name} is {value:?}"),
    };
    assert_eq!(file("sectors"), BlkioValue::Number(32));
    assert_eq!(split("io_service_bytes"), [4096, 3 * 4096, 2 * 4096, 2 * 4096]);
    assert_eq!(split("io_serviced"), [1, 2, 2, 1]);
    assert_eq!(split("io_wait_time"), [2_000_000, 0, 2_000_000, 0]);
    assert_eq!(split("io_service_time"), [3_000_000, 0, 3_000_000, 0]);
    assert_eq!(split("io_queued"), [0, 2, 1, 1]);
}

/// What was counted of a group goes to its parent as it is removed; time in slices too: the slice
/// of the read is charged with the 4 ms from its dispatch, as no other request ever began a slice.
#[test]
fn recursive_files_keep_what_was_counted_of_groups_that_are_gone() {
    let mut rig = Rig::cfq().group("/a", 100).group("/a/b", 100).task("t", "be/4", "/a/b");
    rig.run(&[
        Submit("r", read(0..8).by("t")),
        Expect(dispatched("r")),
        Advance(ms(4)),
        Complete("r"),
        Exit("t"),
    ]);
    let check = |rig: &Rig| {
        assert_eq!(blkio(rig, "/a", "sectors", false), BlkioValue::Number(0));
        assert_eq!(blkio(rig, "/a", "time", false), BlkioValue::Number(0));
        for path in ["/a", ROOT] {
            assert_eq!(blkio(rig, path, "sectors", true), BlkioValue::Number(8));
            assert_eq!(blkio(rig, path, "time", true), BlkioValue::Number(4_000_000));
        }
    };
    check(&rig);
    rig.run(&[RemoveGroup("/a/b")]);
    check(&rig);
    rig.run(&[RemoveGroup("/a")]);
    assert_eq!(blkio(&rig, ROOT, "time", true), BlkioValue::Number(4_000_000));
}

/// The device idles for the group from 4 ms on when its task goes elsewhere; at 7 ms it is removed,
/// which ends its slice: 3 ms idle and 3 ms of its slice.
#[test]
fn group_that_is_removed_while_it_is_waited_for_is_charged_for_that() {
    let mut rig = Rig::cfq().group("/a", 100).task("t", "be/4", "/a");
    rig.run(&[
        Submit("r", read(0..8).by("t")),
        Expect(dispatched("r")),
        Advance(ms(4)),
        Complete("r"),
        Move("t", ROOT),
        Advance(ms(3)),
        RemoveGroup("/a"),
    ]);
    assert_eq!(blkio(&rig, ROOT, "time", true), BlkioValue::Number(3_000_000));
    assert_eq!(blkio(&rig, ROOT, "idle_time", true), BlkioValue::Number(3_000_000));
    assert_eq!(blkio(&rig, ROOT, "dequeue", true), BlkioValue::Number(1));
}
