//! The tunables of CFQ, BFQ and `wfq` that fit a medium. Linux's defaults fit a rotational disk
//! that serves a single machine; those of `wfq` fit a device whose clients are near.
//!
//! The values stand below, once; `paternoster serve --help` and `docs/tuning.md` are made of them.
//! Why they are so:
//!
//! - Idling for a queue's next request pays where it spares a seek. CFQ clears its `slice_idle`
//!   elsewhere by itself, as in Linux.
//! - Idling for a group's next request gives its share to a tenant with little outstanding, where
//!   a request takes about as long as its client takes to ask again. A client nearby asks within
//!   0.1 ms. In memory nothing is worth idling for. BFQ has one tunable for queues and groups.
//! - While it idles, the device serves nobody else. `charge_whole_turn` and `charge_waiting` charge
//!   that to the queue or group that it idles for. They are not of Linux, nor is `least_charge`.
//! - A request costs a non-rotational device as much as a page of 4 KiB at least.
//! - A long slice or service spares a rotational device its seeks. Elsewhere it only makes
//!   everybody else wait longer.
//! - BFQ's low latency is meant for the processes of one machine, of which somebody waits in front
//!   of one. Here a queue is a tenant's, and mostly a whole machine's. Its weight is raised within
//!   its group alone. But while it is raised, its services are up to thirty times as long, and the
//!   device idles for it for 20 ms at a time. The other tenants would pay for that.
//! - Under `wfq` a tenant with much outstanding has nothing waiting for moments, as its replies are
//!   on the way to its clients. With `grace` it keeps its place meanwhile. Requests of one client
//!   go together (`run_us`) where a reply costs more than what the device does for it. In memory
//!   the thread that serves is the device, and each of its rounds costs time of its own: `wfq`
//!   never learns that fewer than 16 requests a round are enough.
//!
//! All other tunables are as in Linux.

use crate::any::SchedulerKind;

/// Tunables by name with their values, in the order in which they are to be set.
type Tunables = &'static [(&'static str, i64)];

/// What serves the requests of a device, as far as tunables are fitted to it
/// ([`Elevator::fitted`](crate::Elevator::fitted)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Medium {
    /// A seek costs milliseconds: a disk with moving parts.
    Rotational,
    /// No seeks, and a request takes tens of microseconds or more: SSDs, disks on a network.
    NotRotational,
    /// A request takes less time than its submitter needs to submit the next.
    Memory,
}

const CFQ_ROTATIONAL: Tunables = &[("charge_whole_turn", 1)];

const CFQ_NOT_ROTATIONAL: Tunables = &[
    ("group_idle_us", 2000),
    ("slice_sync", 10),
    ("slice_async", 4),
    ("target_latency", 30),
    ("charge_whole_turn", 1),
];

const CFQ_MEMORY: Tunables =
    &[("group_idle_us", 0), ("slice_sync", 10), ("slice_async", 4), ("target_latency", 30)];

const BFQ_ROTATIONAL: Tunables = &[("low_latency", 0), ("charge_waiting", 1)];

const BFQ_NOT_ROTATIONAL: Tunables = &[
    ("low_latency", 0),
    ("timeout_sync", 5),
    ("slice_idle_us", 1000),
    ("charge_waiting", 1),
    ("least_charge", 8),
];

const BFQ_MEMORY: Tunables =
    &[("low_latency", 0), ("timeout_sync", 5), ("slice_idle_us", 0), ("least_charge", 8)];

const WFQ_NOT_ROTATIONAL: Tunables = &[("grace_us", 500), ("run_us", 50)];

const WFQ_MEMORY: Tunables = &[("min_depth", 16), ("grace_us", 500), ("run_us", 50)];

/// The tunables of a scheduler that fit `medium` better than Linux's defaults do: names and values,
/// each in the tunable's own unit and range, to be set in this order and before those that somebody
/// chose. What is not among them stays as it is. [`Elevator::fitted`](crate::Elevator::fitted) sets
/// them.
pub fn fitted_tunables(scheduler: SchedulerKind, medium: Medium) -> &'static [(&'static str, i64)] {
    match (scheduler, medium) {
        (SchedulerKind::Cfq, Medium::Rotational) => CFQ_ROTATIONAL,
        (SchedulerKind::Cfq, Medium::NotRotational) => CFQ_NOT_ROTATIONAL,
        (SchedulerKind::Cfq, Medium::Memory) => CFQ_MEMORY,
        (SchedulerKind::Bfq, Medium::Rotational) => BFQ_ROTATIONAL,
        (SchedulerKind::Bfq, Medium::NotRotational) => BFQ_NOT_ROTATIONAL,
        (SchedulerKind::Bfq, Medium::Memory) => BFQ_MEMORY,
        (SchedulerKind::Wfq, Medium::NotRotational) => WFQ_NOT_ROTATIONAL,
        (SchedulerKind::Wfq, Medium::Memory) => WFQ_MEMORY,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fitted_value_is_one_that_a_user_might_set() {
        for kind in SchedulerKind::ALL {
            for medium in [Medium::Rotational, Medium::NotRotational, Medium::Memory] {
                for &(name, value) in fitted_tunables(kind, medium) {
                    let info = kind.tunable(name).expect("the scheduler has it");
                    assert_eq!(info.accepts(value), Ok(()), "{kind} on {medium:?}");
                }
            }
        }
    }
}
