//! How many requests may exist: asynchronous ones leave a quarter.

use crate::kyber::deep;
use crate::rig::*;

/// 16 requests are four words of 4, of each of which asynchronous ones may have 3.
#[test]
fn asynchronous_requests_leave_a_quarter_to_those_that_somebody_waits_for() {
    let mut rig = deep();
    rig.run(&[SetNrRequests(Some(16))]);
    let names = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];
    for (at, name) in (0..).zip(names) {
        rig.enter(name, write(100 * at..100 * at + 8));
    }
    rig.run(&[
        TurnAway("write", write(5000..5008)),
        TurnAway("discard", discard(6000..6008)),
        Submit("sync", write(7000..7008).sync()),
        Submit("read", read(8000..8008)),
        TurnAway("write", write(5000..5008)),
        Serve(&["read", "1"]),
        // There are 12 that are no reads, one of them synchronous.
        TurnAway("discard", discard(6000..6008)),
        Serve(&["2"]),
        Expect(WaitersCalled(true)),
        Retry("discard", discard(6000..6008)),
    ]);
}
