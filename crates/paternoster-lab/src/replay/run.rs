//! One replay: a recording over a device under a scheduler, in virtual time.

use std::collections::BTreeMap;
use std::ops::Range;

use paternoster::{Nanos, NoTrace, SchedulerKind};
use paternoster_intake::Request;
use paternoster_model::disk::LayoutError;
use paternoster_model::{Described, Model};
use paternoster_scene::Scheduler;
use paternoster_trace::sidecar::Meta;
use thiserror::Error;

use super::claims::{Due, by_clock, claims};
use super::clock::Nature;
use super::recording::{Context, Recording};
use super::streams::{Limits, Stream, Streams};
use crate::result::Latencies;
use crate::sim::{Setup, SetupError, SimError, Simulation};

/// On whose replies requests depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependency {
    /// On those of their own context.
    #[default]
    Connection,
    /// On those of all contexts of their group, which count as one: for contexts that wait for each
    /// other.
    Export,
}

/// What contexts do that have a timer, by what was found of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// They ask when they were recorded; those of which it cannot be told wait for replies.
    #[default]
    Found,
    /// The same, but those of which it cannot be told ask when they were recorded.
    FoundOrOpen,
    /// All wait for replies.
    Closed,
    /// All ask when they were recorded.
    Open,
}

/// How a recording is replayed.
#[derive(Clone, Debug)]
pub struct Options {
    /// The scheduler and what is around it. The groups are the recording's.
    pub setup: Setup,
    /// The seed of the device.
    pub seed: u64,
    /// Who waits for replies.
    pub arrivals: Arrivals,
    /// For whose.
    pub dependency: Dependency,
    /// A request waits for the reply of a certain request, instead of the reply of a number.
    pub fixed_chains: bool,
    /// Contexts begin again, until as much time has passed as was recorded.
    pub repeats: bool,
    /// The replay ends where so many requests wait of those who ask by the clock.
    pub backlog: usize,
}

/// A scheduler as the server would have it that recorded this, in front of that device: with the
/// tunables that fit it, and with no more requests in the device.
pub fn as_recorded(scheduler: &Scheduler, meta: &Meta, rotational: bool) -> Setup {
    let mut setup = Setup::new(scheduler.kind).as_served(rotational);
    setup.depth = meta.depths.get(scheduler.kind.name()).copied();
    // Else it learns one.
    let depth = setup.depth.filter(|_| scheduler.kind == SchedulerKind::Wfq);
    setup.tunables.extend(depth.map(|depth| ("depth".to_owned(), depth.into())));
    setup.tunables.extend(scheduler.tunables.iter().cloned());
    setup
}

impl Options {
    /// Each context depends on its own replies, and begins once.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            seed: 1,
            arrivals: Arrivals::default(),
            dependency: Dependency::default(),
            fixed_chains: false,
            repeats: false,
            backlog: 100_000,
        }
    }
}

/// Why a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All requests were replayed.
    All,
    /// A context that would have gone on got a reply for which it has no request left.
    RanOut {
        /// Its index.
        context: usize,
        /// When, since the start.
        at: Nanos,
    },
    /// As much time has passed as was recorded.
    Repeated {
        /// When, since the start.
        at: Nanos,
    },
    /// Too many requests waited: the device cannot do what is asked of it.
    Backlog {
        /// When, since the start.
        at: Nanos,
        /// How many.
        waiting: usize,
    },
}

/// Why there was no replay.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// There is no request.
    #[error("the trace has no request")]
    Empty,
    /// The device is impossible.
    #[error(transparent)]
    Device(#[from] LayoutError),
    /// The scheduler cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Nothing would ever happen though requests wait.
    #[error(transparent)]
    Stuck(#[from] SimError),
}

/// What became of a recording.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The requests that were submitted, with their times in the replay.
    pub recording: Recording,
    /// Why there were no more.
    pub end: End,
}

impl Outcome {
    /// The time until which all contexts asked as they do, in ns since the start.
    pub fn counted_ns(&self) -> u64 {
        match self.end {
            End::All => self.recording.end,
            End::RanOut { at, .. } | End::Repeated { at } | End::Backlog { at, .. } => {
                at.as_nanos()
            }
        }
    }
}

/// What a group got.
#[derive(Clone, Debug, Default)]
pub struct GotGroup {
    /// Requests that have completed.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long each took from its arrival.
    pub latencies: Latencies,
}

impl Recording {
    /// What each group got in that time, in ns since the start, in the order of
    /// [`Recording::parties`].
    pub fn got(&self, counted: Range<u64>) -> Vec<GotGroup> {
        let of_party = |party: Option<usize>| {
            let mut got = GotGroup::default();
            let contexts = self.contexts.iter().filter(|context| context.group == party);
            for request in contexts.flat_map(|context| &context.requests) {
                let completed = request.completed.filter(|at| counted.contains(at));
                let Some(completed) = completed else { continue };
                got.requests += 1;
                got.bytes += request.len;
                got.latencies.add(Nanos::new(completed.saturating_sub(request.arrived)));
            }
            got
        };
        self.parties().into_iter().map(of_party).collect()
    }

    /// How each context comes to its next request.
    pub fn natures(&self) -> Vec<Nature> {
        let of = |context: &Context| {
            let requests: Vec<_> = context.requests.iter().collect();
            Nature::of(&requests, &claims(&requests))
        };
        self.contexts.iter().map(of).collect()
    }

    /// Replays it over that device.
    pub fn replay(&self, device: &Described, options: &Options) -> Result<Outcome, ReplayError> {
        if self.requests() == 0 {
            return Err(ReplayError::Empty);
        }
        let model = device.open(options.seed)?;
        let mut setup = options.setup.clone();
        setup.groups.clone_from(&self.groups);
        let limits = Limits {
            repeated_until: options.repeats.then_some(Nanos::new(self.end)),
            backlog: options.backlog,
        };
        let streams = Streams::new(self, self.streams(options), limits);
        let mut sim: Simulation<_, Box<dyn Model + Send>, _> =
            Simulation::new(&setup, streams, model, NoTrace)?;
        sim.run()?;
        let (submitted, end) = sim.into_workload().into_submitted();
        let contexts = self.contexts.iter().zip(submitted);
        let contexts = contexts.map(|(context, requests)| {
            let (name, group) = (context.name.clone(), context.group);
            Context { name, group, requests }
        });
        let contexts: Vec<_> = contexts.collect();
        let requests = contexts.iter().flat_map(|context| &context.requests);
        let last = requests.map(|request| request.completed.unwrap_or(0).max(request.arrived));
        let end_ns = last.max().unwrap_or(0);
        let recording = Self { contexts, groups: self.groups.clone(), end: end_ns };
        Ok(Outcome { recording, end })
    }

    /// The streams that its requests are.
    fn streams(&self, options: &Options) -> Vec<Stream> {
        let mut orders = BTreeMap::<usize, Vec<(u32, u32)>>::new();
        for (context, index) in self.contexts.iter().zip(0..) {
            let key = match (options.dependency, context.group) {
                (Dependency::Connection, _) => index as usize,
                // Those of the root are nobody's export: each is on its own.
                (Dependency::Export, None) => self.groups.len() + index as usize,
                (Dependency::Export, Some(group)) => group,
            };
            let numbers = (0..).take(context.requests.len());
            orders.entry(key).or_default().extend(numbers.map(|number| (index, number)));
        }
        let end = self.last_arrival();
        orders.into_values().map(|order| self.stream(order, options, end)).collect()
    }

    /// Those of one stream; the last request of all arrives at `end`.
    fn stream(&self, mut order: Vec<(u32, u32)>, options: &Options, end: u64) -> Stream {
        let request = |&(context, number): &(u32, u32)| {
            &self.contexts[context as usize].requests[number as usize]
        };
        order.sort_by_key(|at| request(at).arrived);
        let is_one = order.iter().all(|(context, _)| *context == order[0].0);
        let requests = order.iter().map(|at| {
            let mut request = *request(at);
            // A count of the replies of one connection says nothing of those of all.
            if let Some(replied) = request.replied.as_mut().filter(|_| !is_one) {
                replied.after = None;
            }
            request
        });
        let requests: Vec<Request> = requests.collect();
        let requests: Vec<&Request> = requests.iter().collect();
        let due = claims(&requests);
        let is_open = |unclear: bool| match Nature::of(&requests, &due) {
            Nature::Open => true,
            Nature::Between => unclear,
            Nature::Closed => false,
        };
        let is_open = match options.arrivals {
            Arrivals::Found => is_open(false),
            Arrivals::FoundOrOpen => is_open(true),
            Arrivals::Closed => false,
            Arrivals::Open => true,
        };
        let due: Vec<Due> = if is_open { by_clock(&requests) } else { due };
        let mut contexts: Vec<_> = order.iter().map(|&(context, _)| context as usize).collect();
        contexts.sort_unstable();
        contexts.dedup();
        // Who has a timer does not run out; but it begins again.
        let goes_on = contexts.iter().any(|&context| self.contexts[context].goes_on(end));
        let goes_on = goes_on && (!is_open || options.repeats);
        let tasks = contexts.iter().map(|&context| u32::try_from(context).expect("it was one"));
        let (tasks, by_request) = (tasks.collect(), options.fixed_chains);
        Stream { order, due, by_request, tasks, is_open, goes_on }
    }
}
