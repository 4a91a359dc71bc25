//! What BFQ decides, a file for each mechanism.

mod admission;
mod budgets;
mod bursts;
mod cooperation;
mod hw_queueing;
mod idling;
mod injection;
mod membership;
mod order;
mod peak_rate;
mod preemption;
mod requeue;
mod soft_real_time;
mod splitting;
mod stable_merge;
mod ticks;
mod tunables;
mod wakers;
mod weight_raising;
mod wf2q;

use crate::rig::Rig;
use paternoster::{Device, SchedulerKind};

/// Far from the other requests of a test.
const FAR: u64 = 1_000_000;

/// A disk. Requests stay as they come.
fn disk(depth: u32) -> Rig {
    Rig::bfq().without_merging().depth(depth)
}

/// The same, on which no queue is raised.
fn plain_disk(depth: u32) -> Rig {
    disk(depth).set("low_latency", 0)
}

/// A device without moving parts that queues requests.
fn fast(depth: u32) -> Rig {
    let device = Device::solid_state(depth).with_native_queueing(true);
    Rig::on(device, SchedulerKind::Bfq).without_merging()
}

/// The same, on which no queue is raised.
fn plain_fast(depth: u32) -> Rig {
    fast(depth).set("low_latency", 0)
}
