//! BFQ's attributes under `queue/iosched/`.

use crate::bfq::Bfq;
use crate::bfq::hw_queueing::QueueMerging;
use crate::parts::order_tunables::OrderTunables;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::Nanos;
use crate::trace::{BfqEvent, Event, Trace};
use crate::tunable::{TunableError, number, span, tunable_table};

const INT_MAX: i64 = i32::MAX as i64;
const MS: i64 = 1_000_000;
const US: i64 = 1_000;
/// `slice_idle` is kept in nanoseconds of 32 bits; Linux wraps what is longer.
const LONGEST_IDLE: i64 = u32::MAX as i64;
/// Strict guarantees need the device to idle for queues, at least for so long.
const STRICT_IDLE: i64 = 8 * MS;
/// No more than the least that a budget may be.
const LARGEST_LEAST_CHARGE: i64 = 512;

/// The value of each, times in nanoseconds but for `timeout_sync`, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tunables {
    pub(super) order: OrderTunables,
    slice_idle: i64,
    max_budget: i64,
    timeout_sync: i64,
    strict_guarantees: i64,
    low_latency: i64,
    charge_waiting: i64,
    least_charge: i64,
    merging: i64,
}

tunable_table! {
    pub(super) Tunables of super::NAME;
    fifo_expire_sync = order.fifo_expire_sync * MS, "ms", 125, 1, INT_MAX,
        "Deadline of synchronous requests: expired ones are dispatched before sector order.";
    fifo_expire_async = order.fifo_expire_async * MS, "ms", 250, 1, INT_MAX,
        "Deadline of asynchronous requests: expired ones are dispatched before sector order.";
    back_seek_max = order.back_seek_max * 1, "KiB", 16384, 0, INT_MAX,
        "How far behind the head a request may be and still compete with those ahead.";
    back_seek_penalty = order.back_seek_penalty * 1, "factor", 2, 1, INT_MAX,
        "Factor by which the distance of a request behind the head counts more than one ahead.";
    slice_idle = slice_idle * MS, "ms", 8, 0, LONGEST_IDLE / MS,
        "How long the device idles for the next request of a queue. 0 gives up shares for \
         throughput.";
    slice_idle_us = slice_idle * US, "us", 8_000, 0, LONGEST_IDLE / US,
        "slice_idle in microseconds.";
    max_budget = max_budget * 1, "sectors", 0, 0, INT_MAX,
        "Sectors served in one service of a queue, at most. 0: as many as the device serves in \
         timeout_sync at its peak rate.";
    timeout_sync = timeout_sync * 1, "ms", 125, 1, INT_MAX,
        "How long a service of a queue may last, sync or not; in whole ticks of the clock (124 at \
         250 Hz).";
    strict_guarantees = strict_guarantees * 1, "bool", 0, 0, 1,
        "Whether requests are dispatched one at a time and the device idles for every queue. \
         Setting it to 1 raises slice_idle to 8 ms at least.";
    low_latency = low_latency * 1, "bool", 1, 0, 1,
        "Whether the weights of interactive and of soft real-time queues are raised.";
    charge_waiting = charge_waiting * 1, "bool", 0, 0, 1,
        "Ours; Linux has 0. Whether a service in which the device idled for its queue is also \
         charged for what the device did not serve meanwhile, and the time in which the queue was \
         empty is left out of the measured speed of the device.";
    least_charge = least_charge * 1, "sectors", 0, 0, LARGEST_LEAST_CHARGE,
        "Ours; Linux has 0. The least charge for a request, however small it is.";
    merging = merging * 1, "word", 0, 0, 2,
        "Ours; Linux has linux. When queues are merged. linux: near each other on a device that \
         seeks or does not queue, else those of a group that are created within 180 ms; never: no \
         more are merged; everywhere: as on a device that seeks.",
        ["linux", "never", "everywhere"];
}

impl Tunables {
    /// The timeout as the clock has it.
    pub(super) fn set_timeout(&mut self, millis: u64) {
        self.timeout_sync = millis.cast_signed();
    }

    #[inline]
    pub(super) fn slice_idle(&self) -> Nanos {
        span(self.slice_idle)
    }

    /// The greatest budget; 0 follows the peak rate.
    pub(super) fn max_budget(&self) -> SectorCount {
        SectorCount(number(self.max_budget))
    }

    #[inline]
    pub(super) fn strict_guarantees(&self) -> bool {
        self.strict_guarantees != 0
    }

    #[inline]
    pub(super) fn low_latency(&self) -> bool {
        self.low_latency != 0
    }

    pub(super) fn charge_waiting(&self) -> bool {
        self.charge_waiting != 0
    }

    fn merging(&self) -> QueueMerging {
        match self.merging {
            0 => QueueMerging::Linux,
            1 => QueueMerging::Never,
            _ => QueueMerging::Everywhere,
        }
    }

    #[inline]
    pub(super) fn least_charge(&self) -> SectorCount {
        SectorCount(number(self.least_charge))
    }
}

impl<T: Trace> Bfq<T> {
    /// Stores a tunable and applies it.
    pub(super) fn tune(&mut self, cx: &Cx, name: &str, value: i64) -> Result<(), TunableError> {
        let before = self.tunables;
        let set = self.tunables.set(name, value)?;
        let tuned = &mut self.tunables;
        match name {
            "max_budget" => self.update_max_budget(cx),
            // Who has the device idle pays for it then, at the device's speed and not at his own.
            "charge_waiting" => self.peak_rate.set_counts_pauses(!tuned.charge_waiting()),
            "timeout_sync" => {
                let hz = cx.device.hz;
                self.budgets.set_timeout(hz.ticks_from_millis(set.cast_unsigned()));
                tuned.set_timeout(hz.millis(self.budgets.timeout()));
                self.update_max_budget(cx);
            }
            "strict_guarantees" if before.strict_guarantees < tuned.strict_guarantees => {
                tuned.slice_idle = tuned.slice_idle.max(STRICT_IDLE);
            }
            "merging" => {
                if let Some(on) = self.hw_queueing.set_policy(tuned.merging()) {
                    self.trace.event(cx.now, Event::Bfq(BfqEvent::QueueMerging { on }));
                }
            }
            "low_latency" if before.low_latency > tuned.low_latency => self.end_all_raising(cx),
            _ => {}
        }
        Ok(())
    }
}
