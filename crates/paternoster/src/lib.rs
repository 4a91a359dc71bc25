//! Linux's block-layer I/O scheduling as state machines: no I/O, no clock, no threads.
//!
//! A scheduler decides; its caller acts. The [`Elevator`] of a device takes events with their
//! times. It returns the requests to start, and the time at which it wants to be called again.
//!
//! ```text
//!   group tree, weights      I/O contexts, priorities
//!            \                 /
//!   bio ──▶ merge ──▶ scheduler ──▶ dispatch ──▶ the device ──▶ complete ──▶ user data
//!          elevator/  none, mq_deadline, kyber/, cfq/, bfq/, wfq/
//! ```
//!
//! - A *bio* is a piece of I/O that somebody wants. A *request* is what the device is given: one
//!   bio, or several that were merged.
//! - An *I/O context* is who issues bios: a process in Linux, a connection in a server.
//! - A *group* is what has a weight: a tenant, with one I/O context or many.
//!
//! # The loop
//!
//! One loop drives it, in a simulation as in a server. Something happens: a bio arrives, a request
//! is done, or the timeout ends that the scheduler asked for. The elevator is told, and every
//! request that may start now goes to the device. [`Driver`] keeps this order, and the bios that
//! may not enter yet. Here a device takes four requests at a time, 80 µs each, and reads arrive
//! twice as fast as it serves them:
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use paternoster::{
//!     AnyScheduler, Bio, Device, Driver, Elevator, Instant, IoPrio, Medium, Nanos, NoTrace,
//!     RequestId, SchedulerKind, Sector, SectorCount, Weight,
//! };
//!
//! let mut now = Instant::START; // a server takes what its clock shows
//! let scheduler = AnyScheduler::new(SchedulerKind::Cfq, NoTrace);
//! let device = Device::solid_state(4);
//! let mut elevator = Elevator::fitted(scheduler, device, Medium::NotRotational, now);
//! let gold = elevator.add_group(now, elevator.groups().root(), Weight::new(400)?);
//! let client = elevator.add_io_context(now, IoPrio::default(), gold);
//! let mut driver = Driver::new(elevator);
//!
//! // Reads to come, and requests that the device has, each with its time.
//! let read = |n: u64| Bio::read(client, Sector(n * 1000), SectorCount(8)).with_user_data(n);
//! let mut arrivals: VecDeque<(Instant, Bio)> =
//!     (0..1000).map(|n| (now + Nanos::from_micros(10 * n), read(n))).collect();
//! let mut running: VecDeque<(Instant, RequestId)> = VecDeque::new();
//! let mut served = vec![];
//! let mut most_waiting = 0;
//!
//! while served.len() < 1000 {
//!     // What happens next?
//!     let done = running.front().map(|&(at, _)| at);
//!     let arrival = arrivals.front().map(|&(at, _)| at);
//!     let next = [done, arrival, driver.poll_timeout()].into_iter().flatten().min();
//!     now = next.expect("not all are served").max(now);
//!
//!     if done == Some(now) {
//!         let (_, rq) = running.pop_front().expect("it is done");
//!         served.extend(driver.complete(now, rq)); // the user data of its bios
//!     } else if arrival == Some(now) {
//!         let (_, bio) = arrivals.pop_front().expect("it arrives");
//!         driver.submit(now, bio);
//!     } else {
//!         driver.handle_timeout(now);
//!     }
//!
//!     // After each event start what may start.
//!     driver.dispatch(now, |_, rq| running.push_back((now + Nanos::from_micros(80), rq)));
//!     most_waiting = most_waiting.max(driver.turned_away().count());
//! }
//! assert!(most_waiting > 100, "256 requests may exist; other bios waited in the driver");
//! # Ok::<(), paternoster::WeightError>(())
//! ```
//!
//! `examples/two_tenants.rs` is a whole program around the same loop. It prints the shares of two
//! groups with weights 1 : 3 under each scheduler: `cargo run --release --example two_tenants`.
//! `examples/engine.rs` is the same in real time: threads that ask, an owner that waits by
//! `recv_timeout` until the timeout at most, and threads that read a real file.
//!
//! # How long it takes until weights show
//!
//! [`Elevator::new`] leaves a scheduler's tunables as they are in Linux. There CFQ's slices are for
//! a rotational disk: a queue that always has a request waiting keeps the device for 100 ms, in
//! which a fast one serves thousands. A short run then shows the first slice alone, and of two
//! groups one seems to get everything. [`Elevator::fitted`] gives it the tunables that fit what
//! serves the requests, [`fitted_tunables`], so that slices take 10 ms at most.
//!
//! Shares are right once some dozens of slices are over. This is the part in percent that the group
//! of weight 300 had, beside one of weight 100 that came first, both with 64 reads outstanding, on
//! a device that serves 20,000 a second:
//!
//! | after | 50 ms | 100 ms | 300 ms | 1 s | 3 s | 10 s |
//! |---|---|---|---|---|---|---|
//! | `cfq`, fitted | 64 | 67 | 73 | 74 | 74 | 74 |
//! | `cfq`, as in Linux | 0 | 0 | 41 | 67 | 71 | 74 |
//! | `bfq`, fitted | 70 | 75 | 75 | 75 | 75 | 75 |
//! | `bfq`, as in Linux | 100 | 68 | 75 | 74 | 75 | 74 |
//!
//! So count over a second or more, while every group has requests waiting: what a group leaves,
//! the others get.

// Users of this crate must know what makes their program panic.
#![warn(clippy::missing_panics_doc)]
// The way of a request (submit, bind, insert, dispatch, complete, and what they alone call) is
// inlined by attribute, and what is rare beside it is `#[cold]` and a function of its own. The
// compiler's own choice costs a fifth more instructions; `cargo xtask bench sched` counts them.
// Debug builds leave it to the compiler: with the attribute they take four times as long to build.
#![allow(clippy::inline_always)]

mod accounts;
mod administration;
mod any;
mod arena;
mod bfq;
mod cfq;
mod device;
mod driver;
mod dump;
mod elevator;
mod fitted;
mod group;
mod group_limits;
mod hierarchy;
mod io_context;
mod kernel;
mod kyber;
mod mq_deadline;
mod none;
mod parts;
mod plug;
pub mod poll;
mod request;
mod requests;
pub mod scheduler;
mod stats;
mod synchrony;
mod time;
mod trace;
mod tunable;
mod wfq;

pub use accounts::{Cause, FrontCause, GroupTimes, Outside, RequestTime, TimeAccounts};
pub use administration::Administration;
pub use any::{AnyScheduler, SchedulerKind, UnknownScheduler};
pub use arena::{GroupId, IocId, RequestId};
pub use bfq::Bfq;
pub use cfq::Cfq;
pub use device::Device;
pub use driver::{Arrival, Driver};
pub use elevator::{Completed, Elevator, ElevatorClock, Limits, NoMerges, Submitted};
pub use fitted::{Medium, fitted_tunables};
pub use group::{DeviceWeights, Group, Groups, Weight, WeightError, Weights};
pub use group_limits::GroupLimits;
pub use hierarchy::{Hierarchy, NoHierarchy, UnknownHierarchy};
pub use io_context::{IoClass, IoPrio, ParseIoPrioError};
pub use kernel::{Kernel, NoKernel, UnknownKernel};
pub use kyber::Kyber;
pub use mq_deadline::MqDeadline;
pub use none::NoScheduler;
pub use plug::{Batch, Chain, FlushReason, HandOver, Plug, PlugLimits, PlugRules, PlugStats};
pub use request::{Bio, BioFlags, Direction, Op, Request, Sector, SectorCount, UserDataList};
pub use stats::{
    BlkioFile, BlkioValue, DemandStats, GroupStats, Histogram, Latencies, OpStats, ShareStats,
    Stats, SwitchStats, TargetStats,
};
pub use time::{Hz, Instant, Jiffies, Nanos, Ticks};
pub use trace::{
    BatchReason, BfqEvent, BudgetEnd, CfqEvent, DeadlineEvent, Domain, ElevatorEvent, Event,
    EventData, EventInfo, FairWhy, FieldInfo, HoldReason, KyberEvent, LatencyKind, MergeKind,
    MergeSite, NoIdleReason, NoTrace, PreemptReason, PriceOf, QueueEvent, QueueName, Recorder,
    RingRecorder, ShareOf, SliceEnd, TargetVerdict, TimedEvents, Trace, TrialKind, TrialVerdict,
    Value, WaitReason, WfqEvent, WindowVerdict, Word, Workload,
};
pub use tunable::{TunableError, TunableInfo, parse_tunable};
pub use wfq::{Vtime, Wfq};

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
