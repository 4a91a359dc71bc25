//! How many requests may exist: as they are admitted, BFQ leaves room for what is to be fast, and
//! gives each its share by weight.

use crate::bfq::{FAR, fast, plain_disk, plain_fast};
use crate::rig::*;

/// Of 16 requests async writes have 8, all writes 12, and reads the rest.
#[test]
fn writes_leave_room_for_reads_and_async_ones_for_sync_ones() {
    let mut rig = plain_fast(1).task("sync", "be/4", ROOT);
    rig.run(&[
        SetNrRequests(Some(16)),
        Submit("a1", write(0..8)),
        Submit("a2", write(100..108)),
        Submit("a3", write(200..208)),
        Submit("a4", write(300..308)),
        Submit("a5", write(400..408)),
        Submit("a6", write(500..508)),
        Submit("a7", write(600..608)),
        Submit("a8", write(700..708)),
        TurnAway("a9", write(800..808)),
        Submit("s1", write(FAR..FAR + 8).sync().by("sync")),
        Submit("s2", write(FAR + 100..FAR + 108).sync().by("sync")),
        Submit("s3", write(FAR + 200..FAR + 208).sync().by("sync")),
        Submit("s4", write(FAR + 300..FAR + 308).sync().by("sync")),
        TurnAway("s5", write(FAR + 400..FAR + 408).sync().by("sync")),
        Submit("r1", read(FAR + 500..FAR + 508).by("sync")),
    ]);
}

/// Weights 80 and 10: of 18 requests 16 and 2.
#[test]
fn task_that_holds_its_share_of_the_requests_is_turned_away() {
    let mut rig = plain_fast(1).task("more", "be/0", ROOT).task("less", "be/7", ROOT);
    rig.run(&[
        SetNrRequests(Some(18)),
        Submit("m1", read(0..8).by("more")),
        Submit("l1", read(FAR..FAR + 8).by("less")),
        Submit("l2", read(FAR + 100..FAR + 108).by("less")),
        TurnAway("l3", read(FAR + 200..FAR + 208).by("less")),
        Submit("m2", read(100..108).by("more")),
        Submit("m3", read(200..208).by("more")),
        Submit("m4", read(300..308).by("more")),
        Serve(&["m1", "m2", "m3", "m4"]),
        // Whose request is done does not matter to who is called, but to who is let in.
        TurnAway("l3", read(FAR + 200..FAR + 208).by("less")),
        // The device idles for the heavier one; then one of the other's two is done.
        Advance(ms(8)),
        TimerFires,
        Serve(&["l1"]),
        Expect(WaitersCalled(true)),
        Retry("l3", read(FAR + 200..FAR + 208).by("less")),
    ]);
}

/// Of 16 requests `/a` has 100 parts of 400, and of these 4 each of its tasks the half. On a disk,
/// where queues are not merged at their birth.
#[test]
fn share_of_the_requests_is_that_of_the_group_and_in_it_of_the_task() {
    let rig = plain_disk(1).group("/a", 100).group("/b", 300);
    let rig = rig.task("a1", "be/4", "/a").task("a2", "be/4", "/a");
    let mut rig = rig.task("b", "be/4", "/b");
    rig.run(&[
        SetNrRequests(Some(16)),
        Submit("b", read(0..8).by("b")),
        Submit("1", read(FAR..FAR + 8).by("a1")),
        Submit("2", read(2 * FAR..2 * FAR + 8).by("a2")),
        Submit("1b", read(FAR + 100..FAR + 108).by("a1")),
        TurnAway("1c", read(FAR + 200..FAR + 208).by("a1")),
        Submit("2b", read(2 * FAR + 100..2 * FAR + 108).by("a2")),
        TurnAway("2c", read(2 * FAR + 200..2 * FAR + 208).by("a2")),
        Submit("b2", read(100..108).by("b")),
        Submit("b3", read(200..208).by("b")),
    ]);
}

/// 3 of 16 instead of 8. The tasks differ in level, so that each write is the first of an async
/// queue of its own, which has no share yet.
#[test]
fn async_writes_have_fewer_requests_while_a_queue_is_raised() {
    let rig = fast(1).task("raised", "be/4", ROOT);
    let rig = rig.task("w1", "be/1", ROOT).task("w2", "be/2", ROOT);
    let mut rig = rig.task("w3", "be/3", ROOT).task("w4", "be/5", ROOT);
    rig.run(&[
        SetNrRequests(Some(16)),
        Submit("r", read(0..8).by("raised")),
        Expect(Emitted("raised raised: 30")),
        Submit("1", write(FAR..FAR + 8).by("w1")),
        Submit("2", write(FAR + 100..FAR + 108).by("w2")),
        Submit("3", write(FAR + 200..FAR + 208).by("w3")),
        TurnAway("4", write(FAR + 300..FAR + 308).by("w4")),
    ]);
}

/// However little that is: weight 40 beside 1200 would round to nothing.
#[test]
fn share_of_the_requests_is_at_least_one() {
    let mut rig = fast(1).task("raised", "be/4", ROOT).task("other", "be/3", ROOT);
    rig.run(&[
        SetNrRequests(Some(16)),
        Submit("r", read(0..8).by("raised")),
        Submit("w", write(FAR..FAR + 8).by("other")),
        TurnAway("w2", write(FAR + 100..FAR + 108).by("other")),
        Submit("r2", read(100..108).by("raised")),
    ]);
}
