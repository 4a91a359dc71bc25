//! Linux's block-layer I/O scheduling as state machines: no I/O, no clock, no threads.
//!
//! A scheduler decides; something else acts. The [`Elevator`] of a device takes events and the
//! time, and answers with requests to start and with the next moment at which it wants to be
//! asked again.
//!
//! ```text
//!   group tree, weights      I/O contexts, priorities
//!            \                 /
//!   bio ──▶ merge ──▶ scheduler ──▶ dispatch ──▶ the device ──▶ complete ──▶ user data
//!          elevator/  none, mq_deadline, cfq/, bfq/
//! ```
//!
//! One loop drives it, in a simulation as in a server: an event, then `dispatch` until it gives
//! nothing, then `poll_timeout`.
//!
//! ```
//! use paternoster::{
//!     AnyScheduler, Bio, BioFlags, Device, Elevator, Instant, IoPrio, Nanos, NoTrace, Op,
//!     SchedulerKind, Sector, SectorCount, Submitted, Weight,
//! };
//!
//! let scheduler = AnyScheduler::new(SchedulerKind::Cfq, NoTrace);
//! let mut elevator = Elevator::new(scheduler, Device::solid_state(1));
//! let mut now = Instant::START;
//! let gold = elevator.add_group(now, elevator.groups().root(), Weight::new(400)?);
//! let tenant = elevator.io_context(now, IoPrio::default(), gold);
//!
//! let read = |sector, user_data| Bio {
//!     op: Op::Read,
//!     flags: BioFlags::empty(),
//!     sector: Sector(sector),
//!     sectors: SectorCount(8),
//!     segments: 1,
//!     ioc: tenant,
//!     user_data,
//! };
//! assert!(matches!(elevator.submit(now, read(100, 1)), Submitted::Queued(_)));
//! assert!(matches!(elevator.submit(now, read(108, 2)), Submitted::Merged { .. }));
//!
//! let rq = elevator.dispatch(now).expect("the device has room");
//! assert_eq!(elevator.request(rq).sectors, SectorCount(16));
//! assert_eq!(elevator.dispatch(now), None, "one request at a time fits into this device");
//! assert_eq!(elevator.poll_timeout(), None);
//!
//! now = now + Nanos::from_micros(80);
//! assert_eq!(elevator.complete(now, rq).user_data.as_slice(), [1, 2]);
//! elevator.exit_io_context(now, tenant);
//! # Ok::<(), paternoster::WeightError>(())
//! ```
//!
//! # How long it takes until weights show
//!
//! [`Elevator::new`] leaves a scheduler's tunables as they are in Linux. There CFQ's turns are for
//! a disk with a head: a queue that always has a request waiting keeps the device for 100 ms, in
//! which a fast one serves thousands. A short run then shows the first turn alone, and of two
//! groups one seems to get everything. [`Elevator::fitted`] gives it the tunables that fit what
//! serves the requests, [`fitted_tunables`], so that turns take 10 ms at most.
//!
//! Shares are right once some dozens of turns are over. This is the part in percent that the group
//! of weight 300 had, beside one of weight 100 that came first, both with 64 reads outstanding, on
//! a device that serves 20,000 a second:
//!
//! | after | 50 ms | 100 ms | 300 ms | 1 s | 3 s | 10 s |
//! |---|---|---|---|---|---|---|
//! | `cfq`, fitted | 60 | 67 | 71 | 74 | 74 | 74 |
//! | `cfq`, as in Linux | 0 | 0 | 41 | 67 | 71 | 74 |
//! | `bfq`, fitted | 70 | 75 | 75 | 75 | 75 | 75 |
//! | `bfq`, as in Linux | 100 | 68 | 75 | 74 | 75 | 74 |
//!
//! So count over a second or more, while every group has requests waiting: what a group leaves,
//! the others get.
//!
//! ```
//! # use paternoster::{
//! #     AnyScheduler, Bio, BioFlags, Device, Elevator, Instant, IoPrio, Medium, Nanos, NoTrace,
//! #     Op, SchedulerKind, Sector, SectorCount, Weight,
//! # };
//! let scheduler = AnyScheduler::new(SchedulerKind::Cfq, NoTrace);
//! let mut elevator = Elevator::fitted(scheduler, Device::solid_state(1), Medium::NotRotational);
//! let mut now = Instant::START;
//! let root = elevator.groups().root();
//! let silver = elevator.add_group(now, root, Weight::new(100)?);
//! let gold = elevator.add_group(now, root, Weight::new(300)?);
//! let tenants = [silver, gold].map(|group| elevator.io_context(now, IoPrio::default(), group));
//!
//! // The nth read, of that tenant; it is far from the others, and so merges with none.
//! let read = |n: u64, tenant: usize| Bio {
//!     op: Op::Read,
//!     flags: BioFlags::empty(),
//!     sector: Sector(n * 7919 % 100_003 * 64),
//!     sectors: SectorCount(8),
//!     segments: 1,
//!     ioc: tenants[tenant],
//!     user_data: tenant as u64,
//! };
//! // 128 at a time: none is told `Later`, which happens at 256 where no other bound is set.
//! for n in 0..64 {
//!     let _queued = elevator.submit(now, read(2 * n, 0));
//!     let _queued = elevator.submit(now, read(2 * n + 1, 1));
//! }
//! let mut done = [0, 0];
//! let mut running = None;
//! for n in 128..20_128 {
//!     while running.is_none() {
//!         running = elevator.dispatch(now);
//!         if running.is_none() {
//!             now = elevator.poll_timeout().expect("requests wait").max(now);
//!             elevator.handle_timeout(now);
//!         }
//!     }
//!     now = now + Nanos::from_micros(50);
//!     for tenant in elevator.complete(now, running.take().expect("it was dispatched")).user_data {
//!         let tenant = usize::try_from(tenant).expect("0 or 1");
//!         done[tenant] += 1;
//!         let _queued = elevator.submit(now, read(n, tenant));
//!     }
//! }
//! let [silver, gold] = done;
//! assert!((28..=32).contains(&(10 * gold / silver)), "{silver} : {gold} is about 1 : 3");
//! # Ok::<(), paternoster::WeightError>(())
//! ```

// Whoever uses this crate is to know what ends their program.
#![warn(clippy::missing_panics_doc)]

mod any;
mod arena;
mod bfq;
mod cfq;
mod dump;
mod elevator;
mod fitted;
mod group;
mod io_context;
mod mq_deadline;
mod none;
mod parts;
mod request;
mod scheduler;
mod stats;
mod time;
mod trace;
mod tunable;

pub use any::{AnyScheduler, SchedulerKind, UnknownScheduler};
pub use arena::{GroupId, IocId, RequestId, SideTable};
pub use bfq::Bfq;
pub use cfq::Cfq;
pub use dump::{BudgetDump, Dump, QueueDump, SliceDump, TurnDump};
pub use elevator::{Bios, Elevator, Limits, NoMerges, Submitted};
pub use fitted::{Medium, fitted_tunables};
pub use group::{DeviceWeights, Group, GroupChange, Groups, Weight, WeightError, Weights};
pub use io_context::{IoClass, IoContext, IoContexts, IoPrio, ParseIoPrioError};
pub use mq_deadline::MqDeadline;
pub use none::NoScheduler;
pub use request::{
    Bio, BioFlags, Direction, Op, Request, Requests, Sector, SectorCount, UserDataList,
};
pub use scheduler::{Cx, Device, InsertAt, MergeRules, Requeue, Scheduler, Side};
pub use stats::{BlkioFile, BlkioValue, GroupStats, OpStats, Stats, TurnStats};
pub use time::{Hz, Instant, Jiffies, Nanos, Ticks};
pub use trace::{
    BatchReason, BudgetEnd, Event, ExpireReason, MergeKind, MergeSite, NoIdleReason, NoTrace,
    PreemptReason, QueueName, Recorder, Trace, WaitReason, Workload,
};
pub use tunable::{TunableError, TunableInfo};
