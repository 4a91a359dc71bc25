//! The schedulers by name, and a type that is any of them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::arena::{GroupId, IocId, RequestId};
use crate::bfq::{self, Bfq};
use crate::cfq::{self, Cfq};
use crate::dump::Dump;
use crate::group::GroupEvent;
use crate::hierarchy::{Hierarchy, NoHierarchy};
use crate::kernel::{Kernel, NoKernel};
use crate::kyber::{self, Kyber};
use crate::mq_deadline::{self, MqDeadline};
use crate::none::{self, NoScheduler};
use crate::request::Bio;
use crate::scheduler::{Cx, Existing, InsertAt, OwnStats, Requeue, Rules, Scheduler};
use crate::time::Instant;
use crate::trace::{
    BfqEvent, CfqEvent, DeadlineEvent, EventInfo, KyberEvent, MergeKind, QueueEvent, Trace,
    WfqEvent,
};
use crate::tunable::{TunableError, TunableInfo};
use crate::wfq::{self, Wfq};

/// The schedulers of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchedulerKind {
    /// Requests in order of arrival.
    None,
    /// Batches in sector order, with deadlines.
    MqDeadline,
    /// As many requests of each kind in the device as lets all meet their latency targets.
    Kyber,
    /// Time slices for queues, and groups by weight.
    Cfq,
    /// Budgets by weight, and raised weights for interactive and soft-real-time queues.
    Bfq,
    /// Requests by weight, without turns, while the device stays busy.
    Wfq,
}

impl SchedulerKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::None, Self::MqDeadline, Self::Kyber, Self::Cfq, Self::Bfq, Self::Wfq];

    /// Its name in sysfs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => none::NAME,
            Self::MqDeadline => mq_deadline::NAME,
            Self::Kyber => kyber::NAME,
            Self::Cfq => cfq::NAME,
            Self::Bfq => bfq::NAME,
            Self::Wfq => wfq::NAME,
        }
    }

    /// Its tunables.
    pub const fn tunables(self) -> &'static [TunableInfo] {
        match self {
            Self::None => &[],
            Self::MqDeadline => MqDeadline::<crate::trace::NoTrace>::TUNABLES,
            Self::Kyber => Kyber::<crate::trace::NoTrace>::TUNABLES,
            Self::Cfq => Cfq::<crate::trace::NoTrace>::TUNABLES,
            Self::Bfq => Bfq::<crate::trace::NoTrace>::TUNABLES,
            Self::Wfq => Wfq::<crate::trace::NoTrace>::TUNABLES,
        }
    }

    /// What there is to know of each of its own events.
    pub const fn events(self) -> &'static [&'static [EventInfo]] {
        match self {
            Self::None => &[],
            Self::MqDeadline => &[DeadlineEvent::TABLE],
            Self::Kyber => &[KyberEvent::TABLE],
            Self::Cfq => &[CfqEvent::TABLE, QueueEvent::TABLE],
            Self::Bfq => &[BfqEvent::TABLE, QueueEvent::TABLE],
            Self::Wfq => &[WfqEvent::TABLE],
        }
    }

    /// Its tunables where that kernel decides.
    pub const fn tunables_of(self, kernel: Kernel) -> &'static [TunableInfo] {
        match self {
            Self::Cfq => cfq::tunables_of(kernel),
            _ => self.tunables(),
        }
    }

    /// Returns the tunable of that name, to check a value before a scheduler is made.
    pub fn tunable(self, name: &str) -> Result<&'static TunableInfo, TunableError> {
        self.tunable_of(Kernel::default(), name)
    }

    /// The same where that kernel decides.
    pub fn tunable_of(
        self,
        kernel: Kernel,
        name: &str,
    ) -> Result<&'static TunableInfo, TunableError> {
        let table = self.tunables_of(kernel);
        table.iter().find(|info| info.name == name).ok_or_else(|| match self {
            Self::Cfq => cfq::unknown_tunable(kernel, name),
            _ => TunableError::unknown(self.name(), name, table),
        })
    }

    /// Returns an error if the scheduler's hierarchy cannot be chosen.
    pub fn check_hierarchy(self) -> Result<(), NoHierarchy> {
        match self {
            Self::Cfq => Ok(()),
            other => Err(NoHierarchy::new(other.name())),
        }
    }

    /// Returns whether group weights change its decisions.
    pub const fn has_weights(self) -> bool {
        matches!(self, Self::Cfq | Self::Bfq | Self::Wfq)
    }

    /// Returns whether leaf weights change its decisions.
    pub const fn has_leaf_weights(self) -> bool {
        matches!(self, Self::Cfq | Self::Wfq)
    }

    /// Returns whether the caps, reservations and latency targets of groups change its decisions.
    pub const fn has_group_limits(self) -> bool {
        matches!(self, Self::Wfq)
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that no scheduler has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no scheduler {name:?}; there are: {}", known())]
pub struct UnknownScheduler {
    name: String,
}

fn known() -> String {
    SchedulerKind::ALL.map(SchedulerKind::name).join(", ")
}

impl FromStr for SchedulerKind {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownScheduler { name: name.to_owned() })
    }
}

/// Any of the schedulers, chosen at run time.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyScheduler<T> {
    /// Requests in order of arrival.
    None(NoScheduler<T>),
    /// Batches in sector order, with deadlines.
    MqDeadline(Box<MqDeadline<T>>),
    /// As many requests of each kind in the device as lets all meet their latency targets.
    Kyber(Box<Kyber<T>>),
    /// Time slices for queues, and groups by weight.
    Cfq(Box<Cfq<T>>),
    /// Budgets by weight, and raised weights for interactive and soft-real-time queues.
    Bfq(Box<Bfq<T>>),
    /// Requests by weight, without turns, while the device stays busy.
    Wfq(Box<Wfq<T>>),
}

impl<T: Trace> AnyScheduler<T> {
    /// Makes a scheduler of that kind with Linux's defaults; its events go to `trace`.
    pub fn new(kind: SchedulerKind, trace: T) -> Self {
        match kind {
            SchedulerKind::None => Self::None(NoScheduler::new(trace)),
            SchedulerKind::MqDeadline => Self::MqDeadline(Box::new(MqDeadline::new(trace))),
            SchedulerKind::Kyber => Self::Kyber(Box::new(Kyber::new(trace))),
            SchedulerKind::Cfq => Self::Cfq(Box::new(Cfq::new(trace))),
            SchedulerKind::Bfq => Self::Bfq(Box::new(Bfq::new(trace))),
            SchedulerKind::Wfq => Self::Wfq(Box::new(Wfq::new(trace))),
        }
    }

    /// Makes a scheduler of that kind that decides as that kernel; its events go to `trace`.
    pub fn with_kernel(kind: SchedulerKind, trace: T, kernel: Kernel) -> Result<Self, NoKernel> {
        match kind {
            SchedulerKind::Cfq => Ok(Self::Cfq(Box::new(Cfq::with_kernel(trace, kernel)))),
            other => Err(NoKernel::new(other)),
        }
    }

    /// Which of them it is.
    pub const fn kind(&self) -> SchedulerKind {
        match self {
            Self::None(_) => SchedulerKind::None,
            Self::MqDeadline(_) => SchedulerKind::MqDeadline,
            Self::Kyber(_) => SchedulerKind::Kyber,
            Self::Cfq(_) => SchedulerKind::Cfq,
            Self::Bfq(_) => SchedulerKind::Bfq,
            Self::Wfq(_) => SchedulerKind::Wfq,
        }
    }
}

/// Forwards each method to the scheduler that it is.
macro_rules! forward {
    ($( fn $method:ident(&mut self $(, $arg:ident: $Arg:ty)*) $(-> $Out:ty)?; )*
     -- $( fn $asked:ident(&self $(, $param:ident: $Param:ty)*) $(-> $Answer:ty)?; )*) => {
        $( fn $method(&mut self $(, $arg: $Arg)*) $(-> $Out)? {
            match self {
                Self::None(scheduler) => scheduler.$method($($arg),*),
                Self::MqDeadline(scheduler) => scheduler.$method($($arg),*),
                Self::Kyber(scheduler) => scheduler.$method($($arg),*),
                Self::Cfq(scheduler) => scheduler.$method($($arg),*),
                Self::Bfq(scheduler) => scheduler.$method($($arg),*),
                Self::Wfq(scheduler) => scheduler.$method($($arg),*),
            }
        } )*
        $( fn $asked(&self $(, $param: $Param)*) $(-> $Answer)? {
            match self {
                Self::None(scheduler) => scheduler.$asked($($param),*),
                Self::MqDeadline(scheduler) => scheduler.$asked($($param),*),
                Self::Kyber(scheduler) => scheduler.$asked($($param),*),
                Self::Cfq(scheduler) => scheduler.$asked($($param),*),
                Self::Bfq(scheduler) => scheduler.$asked($($param),*),
                Self::Wfq(scheduler) => scheduler.$asked($($param),*),
            }
        } )*
    };
}

impl<T: Trace> Scheduler for AnyScheduler<T> {
    type Trace = T;

    forward! {
        fn attach(&mut self, cx: &mut Cx);
        fn bind(&mut self, cx: &mut Cx, rq: RequestId);
        fn insert(&mut self, cx: &mut Cx, rq: RequestId, at: InsertAt);
        fn complete(&mut self, cx: &mut Cx, rq: RequestId);
        fn requeue(&mut self, cx: &mut Cx, rq: RequestId) -> Requeue;
        fn reactivate(&mut self, cx: &mut Cx, rq: RequestId);
        fn handle_timeout(&mut self, cx: &mut Cx);
        fn exit_io_context(&mut self, cx: &mut Cx, ioc: IocId);
        fn group_event(&mut self, cx: &mut Cx, group: GroupId, event: GroupEvent);
        fn offer(&mut self, cx: &mut Cx, bio: &Bio);
        fn allow_merge(&mut self, cx: &mut Cx, rq: RequestId, bio: &Bio) -> bool;
        fn find_front_merge(&mut self, cx: &Cx, bio: &Bio) -> Option<RequestId>;
        fn request_merged(&mut self, cx: &mut Cx, rq: RequestId, kind: MergeKind);
        fn requests_merged(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId);
        fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId>;
        fn refusal(&mut self, cx: &mut Cx, bio: &Bio, existing: Existing) -> Option<u32>;
        fn drain(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>);
        fn set_tunables(&mut self, cx: &mut Cx, values: &[(String, i64)])
            -> Result<(), TunableError>;
        fn begin_at_depth(&mut self, cx: &mut Cx, depth: u32);
        fn trace(&mut self) -> &mut T;
        --
        fn name(&self) -> &'static str;
        fn rules(&self) -> Rules;
        fn scan(&self, cx: &Cx, bio: &Bio, newer: Option<RequestId>) -> Option<RequestId>;
        fn poll_timeout(&self) -> Option<Instant>;
        fn has_work(&self) -> bool;
        fn tunables(&self) -> &'static [TunableInfo];
        fn tunable(&self, name: &str) -> Result<i64, TunableError>;
        fn hierarchy(&self) -> Result<Hierarchy, NoHierarchy>;
        fn own_stats(&self, now: Instant, group: GroupId) -> OwnStats<'_>;
        fn dump(&self, out: &mut dyn Dump);
        fn check(&self, cx: &Cx);
    }
}
