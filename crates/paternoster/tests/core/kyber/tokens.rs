//! How many requests of a domain may be in the device.

use paternoster::{RequestId, SchedulerKind};

use crate::kyber::{
    Crowd, DEEP, complete, deep, dispatch_all, fire_timer, serve, submit, times_throttled,
};
use crate::rig::*;

/// Scenario 3. The 16th batch is full, so reads are tried once, at the end of the circle.
#[test]
fn domain_has_no_more_in_the_device_than_it_has_tokens() {
    let mut rig = deep();
    submit(&mut rig, read, "R", 257);
    let out = dispatch_all(&mut rig);
    assert_eq!(out.len(), 256);
    assert_eq!(times_throttled(&mut rig), 1);
    rig.run(&[
        Expect(Number("read_tokens", 256)),
        Expect(Number("read_tokens_busy", 256)),
        Expect(Number("read_waiting", 1)),
        Expect(Waiting(1)),
    ]);
    complete(&mut rig, out[0]);
    rig.run(&[Expect(Number("read_waiting", 0))]);
    assert_eq!(dispatch_all(&mut rig).len(), 1);
}

/// 5 and 251 reads are 256; the last 251 are 15 batches of 16 and 11 of another, so that reads are
/// tried in their turn and again at the end of the circle.
#[test]
fn domain_without_a_token_in_mid_batch_is_tried_twice() {
    let mut rig = deep();
    submit(&mut rig, read, "R", 5);
    dispatch_all(&mut rig);
    submit(&mut rig, write, "W", 1);
    dispatch_all(&mut rig);
    submit(&mut rig, read, "R", 252);
    assert_eq!(dispatch_all(&mut rig).len(), 251);
    assert_eq!(times_throttled(&mut rig), 2);
}

#[test]
fn each_domain_has_tokens_of_its_own() {
    for (kind, tokens) in [(read as fn(_) -> Io, 256), (write, 128), (discard, 64), (zeroes, 16)] {
        let mut rig = deep();
        submit(&mut rig, kind, "one", 300);
        assert_eq!(dispatch_all(&mut rig).len(), tokens);
        rig.run(&[Submit("r", read(0..8)), Submit("w", write(0..8))]);
        let others = if tokens < 128 { 2 } else { 1 };
        assert_eq!(dispatch_all(&mut rig).len(), others);
    }
}

/// A reason is given, once, after every domain without a token was named.
#[test]
fn scheduler_says_that_it_lacks_tokens() {
    let mut rig = deep();
    submit(&mut rig, discard, "D", 65);
    submit(&mut rig, zeroes, "O", 17);
    assert_eq!(dispatch_all(&mut rig).len(), 64 + 16);
    rig.run(&[
        Expect(Emitted("throttled Other")),
        Expect(Emitted("throttled Discard")),
        Expect(Emitted("waiting: NoToken")),
        Expect(NotEmitted("waiting")),
    ]);
}

/// Writes that were served one at a time, 500 of them, so that the last one had token 499 mod 32,
/// 19 of word 0; then 100 that are in the device. The first 12 of these take what was not taken
/// since word 0 was last swept, 20 to 31, and the next 20 the rest of the word, 0 to 19. The other
/// 68 get 32 to 99. Then reads that take 2 ms where 4 us are due are congestion, and the depth of
/// writes becomes 128 / 4 = 32: it counts the first 32 of the 100, and not the others.
fn with_tokens_beyond_the_depth() -> (Rig, Vec<RequestId>) {
    let mut rig = deep().set("read_lat_nsec", 4000);
    serve(&mut rig, 500, &Crowd { kind: write, count: 1, waits: us(0), takes: us(1) });
    serve(&mut rig, 2, &Crowd { kind: read, count: 250, waits: us(0), takes: ms(2) });
    submit(&mut rig, write, "W", 200);
    rig.elevator.set_depth(100);
    let out = dispatch_all(&mut rig);
    assert_eq!(out.len(), 100);
    rig.elevator.set_depth(DEEP);
    fire_timer(&mut rig);
    rig.run(&[Expect(Emitted("depth Write: 32")), Expect(Number("write_tokens_busy", 100))]);
    (rig, out)
}

#[test]
fn request_that_holds_a_token_beyond_a_lowered_depth_is_not_counted() {
    let (mut rig, out) = with_tokens_beyond_the_depth();
    let (counted, beyond) = out.split_at(32);
    for &rq in beyond {
        complete(&mut rig, rq);
        assert_eq!(dispatch_all(&mut rig), [], "its token is beyond the depth");
    }
    rig.run(&[Expect(Number("write_tokens_busy", 32))]);
    for &rq in counted {
        complete(&mut rig, rq);
        assert_eq!(dispatch_all(&mut rig).len(), 1);
    }
}

/// Three times as many as the depth says.
#[test]
fn more_than_the_depth_are_in_the_device_until_those_beyond_it_complete() {
    let (mut rig, out) = with_tokens_beyond_the_depth();
    for &counted in &out[..32] {
        complete(&mut rig, counted);
    }
    assert_eq!(dispatch_all(&mut rig).len(), 32);
    rig.run(&[Expect(Number("write_tokens", 32)), Expect(Number("write_tokens_busy", 100))]);
}

/// They were dispatched by another scheduler, so they hold no token, and nobody measures them.
#[test]
fn requests_of_the_scheduler_before_are_not_counted() {
    Rig::none().without_merging().depth(DEEP).run(&[
        Submit("before", read(0..8)),
        Submit("before too", read(100..108)),
        Expect(dispatched("before")),
        Expect(dispatched("before too")),
        SwitchTo(SchedulerKind::Kyber),
        Submit("a", read(200..208)),
        Expect(dispatched("a")),
        Expect(Number("read_tokens_busy", 1)),
        Complete("before"),
        Expect(Timeout(None)),
        Expect(Number("read_tokens_busy", 1)),
        Requeue("before too"),
        Expect(dispatched("before too")),
        Complete("before too"),
        Expect(Number("read_tokens_busy", 1)),
        Complete("a"),
        Expect(Timeout(Some(ms(100)))),
        Expect(Number("read_tokens_busy", 0)),
    ]);
}
