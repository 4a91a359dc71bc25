//! A request that the device could not take.

use crate::kyber::deep;
use crate::rig::*;

#[test]
fn requeued_request_gives_its_token_back_and_is_the_first_to_become_ready() {
    deep().run(&[
        Submit("a", read(0..8)),
        Submit("b", read(100..108)),
        Submit("c", read(200..208)),
        Expect(dispatched("a")),
        Expect(Number("read_tokens_busy", 1)),
        Submit("d", read(300..308)),
        Requeue("a"),
        Expect(Number("read_tokens_busy", 0)),
        // b and c are ready, and go first.
        Serve(&["b", "c", "a", "d"]),
    ]);
}

/// It waited for 4 ms before it was dispatched again, and then took 1 ms: all in all 6 ms.
#[test]
fn time_in_the_device_is_that_since_the_last_dispatch() {
    let mut rig = deep();
    rig.run(&[Submit("first", read(0..8)), Serve(&["first"]), Advance(ms(100)), TimerFires]);
    rig.run(&[
        Submit("a", read(0..8)),
        Expect(dispatched("a")),
        Advance(ms(1)),
        Requeue("a"),
        Advance(ms(4)),
        Expect(dispatched("a")),
        Advance(ms(1)),
        Complete("a"),
        Advance(ms(1100)),
        TimerFires,
        // 90 % of two are two: 0 and 1 ms. The deadline is then set anew for the total ones.
        Expect(Emitted("latency Read Device p90: 2/4 of 2")),
        Submit("b", write(0..8)),
        Serve(&["b"]),
        Advance(ms(1100)),
        TimerFires,
        Expect(Emitted("latency Read Total p99: 8/4 of 2")),
    ]);
}
