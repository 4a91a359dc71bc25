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

mod any;
mod arena;
mod bfq;
mod cfq;
mod dump;
mod elevator;
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
