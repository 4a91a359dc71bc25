//! CFQ's attributes under `queue/iosched/`, those that the first cut has.

use crate::tunable::tunables;

const UINT_MAX: i64 = u32::MAX as i64;

tunables! {
    pub(super) struct Tunables of "cfq";
    quantum: "requests", 8, 1, UINT_MAX,
        "Requests that a best-effort queue of level 4 sends in one turn.";
    fifo_expire_sync: "ms", 125, 1, UINT_MAX,
        "After how long a synchronous request is served out of sector order.";
    fifo_expire_async: "ms", 250, 1, UINT_MAX,
        "After how long an asynchronous request is served out of sector order.";
    back_seek_max: "KiB", 16384, 0, UINT_MAX,
        "How far behind the head a request may lie to be weighed against those ahead.";
    back_seek_penalty: "factor", 2, 1, UINT_MAX,
        "How many times farther a request behind the head counts than one ahead.";
}
