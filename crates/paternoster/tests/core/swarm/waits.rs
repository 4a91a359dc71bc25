//! Sync tasks of one class and group wait for each other's slices and idle times, not longer.
//!
//! Let a device serve each request within `S` of its dispatch, and let `I` be the longer of the two
//! idle times. A queue with a slice of `L` expires, and the next is active, within `L + 3 S + I`:
//!
//! ```text
//!   activated     ▷ a request is dispatched at once, or some are in flight
//!     ≤ S         ▷ the first is done: the slice begins
//!     L           ▷ the slice ends; a completion that finds it over, or nearly, may stretch it,
//!     ≤ S + I       but no more once another queue of the group is busy; or it passes unnoticed
//!                   while requests are in flight or the idle timer runs
//!     ≤ S         ▷ the device has room: the next queue is activated
//! ```
//!
//! A queue `w` is placed with the key `k(w)`: the moment of placing, and as much later as its level
//! makes it, and by what it was given too much before. Another queue that is placed at `t` gets a
//! key of at least `t − r`, where `r` is what was left of its slice when it last expired. So no
//! queue that is placed after `k(w) + r` is ahead of `w`, and of those ahead each has one slice
//! left: another only if it preempts, which puts it first. So `w` waits for at most
//!
//! ```text
//!   (k(w) + r − moment of placing) + Σ over the other queues (1 + preemptions) × (L + 3 S + I)
//! ```
//!
//! and with level 0, nothing given too much and nobody preempting, that is the sum alone. `L`
//! is what the others were in fact given meanwhile. All this is so while all queues are on one
//! tree; between the trees of those with and without an idle window time is divided otherwise.
//!
//! The naive model of `due.rs` also says which queue is to be active, and with what slice; a
//! workload goes on while time of its span is left; and a slice is charged what it took.
//!
//! A request of a task that has one at a time is dispatched as its queue is activated; or within
//! `S`, for want of room, if that had its slice already.
//!
//! ```text
//!   modelled, and the trace has to     which queue and tree are due, with what slice; what a slice
//!   say the same                       is charged; the bound above, from what the load submitted
//!   only heard, and believed           when a queue becomes busy or has an idle window, when and
//!                                      why a slice ends, with what residue, who preempts
//! ```

use paternoster::{
    Cfq, CfqEvent, Device, ElevatorEvent, Event, Hz, Instant, IoPrio, Nanos, QueueEvent, Recorder,
    Weight, Workload,
};

use crate::swarm::due::{Change, Due, Tuned, nanos};
use crate::swarm::load::{Load, Pace, Task};
use crate::swarm::random::Random;
use crate::swarm::slice::ActiveSlice;

/// So many events a seed.
const EVENTS: u32 = 20_000;

/// What another queue did while one waited.
#[derive(Clone, Copy, Debug, Default)]
struct Other {
    had_a_slice: bool,
    /// The longest slice.
    slice: Nanos,
    preemptions: u64,
}

/// A queue waits for its slice.
#[derive(Clone, Debug)]
struct Wait {
    since: Instant,
    key: i128,
    workload: Workload,
    others: Vec<Other>,
    /// The most that was left of another's slice.
    residue: i64,
    /// Some other queue was on another tree.
    mixed: bool,
}

/// For how long the workload that is served goes on.
#[derive(Debug, Default)]
struct Span {
    workload: Option<Workload>,
    end: Option<Instant>,
    /// What is left between two slices.
    left: Option<Nanos>,
    /// A queue of another workload preempts: what is left is forgotten.
    forgotten: bool,
}

impl Span {
    fn slice_ends(&mut self, at: Instant) {
        let left = self.end.take().map(|end| end.saturating_since(at));
        let forgotten = std::mem::take(&mut self.forgotten);
        self.left = left.filter(|&left| left > Nanos::ZERO && !forgotten);
    }

    /// Another workload is chosen, or the same for another span.
    fn chosen(&mut self, at: Instant, workload: Workload, span: Nanos, due: &Due) {
        let goes_on = self.workload.is_some_and(|served| due.first(served).is_some());
        assert!(self.left.is_none() || !goes_on, "the workload's time is not over: {self:?}");
        *self = Self { workload: Some(workload), end: Some(at + span), ..Self::default() };
    }

    fn slice_begins(&mut self, at: Instant) {
        if self.end.is_none() {
            let left = self.left.take().expect("the workload's time is not over");
            self.end = Some(at + left);
        }
    }
}

/// What was shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Slices that began with the queue that was due first.
    pub(crate) slices: u64,
    /// Waits that were within their bound.
    pub(crate) waits: u64,
    /// Requests that were dispatched as they should be.
    pub(crate) requests: u64,
    /// The longest wait, in percent of its bound.
    pub(crate) longest: u64,
}

impl Shown {
    pub(crate) fn add(&mut self, other: &Self) {
        self.slices += other.slices;
        self.waits += other.waits;
        self.requests += other.requests;
        self.longest = self.longest.max(other.longest);
    }
}

struct Waits {
    load: Load<Cfq<Recorder>>,
    due: Due,
    /// Each task's, if its queue waits.
    waiting: Vec<Option<Wait>>,
    /// From when to when each task's queue last waited.
    waited: Vec<Option<(Instant, Instant)>>,
    /// When the request of each task arrived that has one at a time.
    arrived: Vec<Instant>,
    active: Option<usize>,
    active_slice: ActiveSlice,
    span: Span,
    service: Nanos,
    idle: Nanos,
    shown: Shown,
}

impl Waits {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = if random.one_in(4) { Device::solid_state } else { Device::disk };
        let device = kind(random.pick(&[1, 2, 8, 32]))
            .with_hz(Hz::new(random.pick(&[1000, 250])).expect("a clock"));
        let service = Nanos::from_micros(random.pick(&[200, 1000, 3000]));
        let mut load = Load::new(Cfq::new(Recorder::default()), random, device, service);
        let slice_sync = load.random.pick(&[10, 20, 40, 100]);
        let slice_idle = load.random.pick(&[0, 2, 8, 16]);
        let (group_idle, low_latency) = (load.random.pick(&[0, 8]), load.random.below(2));
        let target_latency = load.random.pick(&[50, 300]);
        load.tune("slice_sync", slice_sync);
        load.tune("slice_idle", slice_idle);
        load.tune("group_idle", group_idle);
        load.tune("low_latency", low_latency);
        load.tune("target_latency", target_latency);
        let tuned = Tuned {
            slice_sync: Nanos::from_millis(slice_sync),
            slice_idle: Nanos::from_millis(slice_idle),
            low_latency: low_latency == 1,
            target_latency: Nanos::from_millis(target_latency),
        };
        let tasks = Self::add_tasks(&mut load, slice_idle);
        let levels: Vec<u8> = (0..tasks).map(|task| load.task(task).io_prio.level()).collect();
        Self {
            load,
            due: Due::new(tuned, levels),
            waiting: vec![None; tasks],
            waited: vec![None; tasks],
            arrived: vec![Instant::START; tasks],
            active: None,
            active_slice: ActiveSlice::new(device.hz.tick()),
            span: Span::default(),
            service,
            idle: Nanos::from_millis(slice_idle.max(group_idle)),
            shown: Shown::default(),
        }
    }

    /// All of one group and class; how many.
    fn add_tasks(load: &mut Load<Cfq<Recorder>>, slice_idle: u64) -> usize {
        let root = load.root();
        let below = load.add_group(root, Weight::default());
        let group = load.random.pick(&[root, below]);
        let class = load.random.pick(&[IoPrio::be as fn(u8) -> _, IoPrio::rt]);
        let (same_level, sequential) = (load.random.below(2) == 0, !load.random.one_in(4));
        let common = load.random.pick(&[0, 0, 4, 7]);
        let tasks = load.random.pick(&[2, 3, 4, 6]);
        for _ in 0..tasks {
            let random = &mut load.random;
            let own = u8::try_from(random.below(8)).expect("a level");
            let longest = if slice_idle == 0 { 10 } else { slice_idle };
            let task = Task {
                group,
                io_prio: class(if same_level { common } else { own }).expect("a level"),
                writes: random.below(2) == 0,
                sequential,
                sectors: random.pick(&[8, 16, 128]),
                pace: Pace::Thinks {
                    requests: random.pick(&[1, 1, 1, 2, 3]),
                    up_to: Nanos::from_micros(random.pick(&[0, 100, 250, 500]) * longest),
                },
            };
            load.add(task);
        }
        tasks
    }

    fn run(mut self) -> Shown {
        for _ in 0..EVENTS {
            for (at, event) in self.load.step() {
                self.hear(at, event);
            }
            let change = self.due.settle(self.load.now);
            self.follow(self.load.now, change);
        }
        self.shown
    }

    fn hear(&mut self, at: Instant, event: Event) {
        self.active_slice.hear(at, event);
        match event {
            Event::Elevator(ElevatorEvent::Queued { bio, .. }) => {
                let task = self.load.task_of_request(bio);
                self.arrived[task] = at;
            }
            Event::Elevator(ElevatorEvent::Dispatched { rq, .. }) => {
                self.judge_request(at, self.load.task_of_request(rq));
            }
            Event::Queue(
                QueueEvent::Busy { queue, .. }
                | QueueEvent::NotBusy { queue, .. }
                | QueueEvent::Preempted { by: queue, .. },
            )
            | Event::Cfq(
                CfqEvent::SliceExpired { queue, .. }
                | CfqEvent::IdleWindow { queue, .. }
                | CfqEvent::Active { queue, .. }
                | CfqEvent::Slice { queue, .. },
            ) => {
                let queue = self.load.task_of(queue.ioc);
                let changes = self.due.hear(at, event, queue);
                self.follow(at, changes);
                self.note(at, event, queue);
            }
            Event::Cfq(CfqEvent::GroupLeft { .. }) => self.span.left = None,
            Event::Cfq(CfqEvent::WaitBusy { queue, .. }) => {
                let queue = self.load.task_of(queue.ioc);
                assert_eq!(self.load.waiting(queue), 0, "it has nothing to dispatch");
                assert_eq!(self.due.busy().count(), 1, "it is all that its group has");
            }
            Event::Cfq(CfqEvent::Workload { workload, span, .. }) => {
                let change = self.due.settle(at);
                self.follow(at, change);
                self.span.chosen(at, workload, span, &self.due);
                assert_eq!(workload, self.due.first_workload(), "the tree that is due first");
            }
            _ => {}
        }
    }

    fn note(&mut self, at: Instant, event: Event, queue: usize) {
        match event {
            Event::Cfq(CfqEvent::SliceExpired { residue, .. }) => {
                if let (Some(residue), None) = (residue, self.active_slice.length()) {
                    let slice = self.due.slice(queue).as_nanos();
                    assert_eq!(residue, slice.cast_signed(), "it keeps what it has not begun");
                }
                self.active = None;
                self.span.slice_ends(at);
            }
            Event::Queue(QueueEvent::Preempted { .. }) => {
                let active = self.active.expect("one queue preempts another");
                self.span.forgotten = self.due.workload(active) != self.due.workload(queue);
                for wait in self.waiting.iter_mut().flatten() {
                    wait.others[queue].preemptions += 1;
                }
            }
            Event::Cfq(CfqEvent::Active { workload, .. }) => {
                assert_eq!(Some(queue), self.due.first(workload), "the queue that is due first");
                self.shown.slices += 1;
                self.judge_waits(at, queue);
                self.active = Some(queue);
                self.span.slice_begins(at);
                for wait in self.waiting.iter_mut().flatten() {
                    wait.others[queue].had_a_slice = true;
                }
            }
            Event::Cfq(CfqEvent::Slice { length, .. }) => {
                assert_eq!(length, self.due.slice(queue), "the slice of its level");
                for wait in self.waiting.iter_mut().flatten() {
                    let other = &mut wait.others[queue];
                    other.slice = other.slice.max(length);
                }
            }
            _ => {}
        }
    }

    /// Queues begin to wait, or are placed ahead of others that do.
    fn follow(&mut self, at: Instant, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            match change {
                Change::Left(queue) => self.waiting[queue] = None,
                Change::Placed { queue, residue } => self.begin_wait(at, queue, residue),
            }
        }
    }

    fn begin_wait(&mut self, at: Instant, queue: usize, residue: i64) {
        let place = self.due.place(queue).expect("it was placed");
        for wait in self.waiting.iter_mut().flatten() {
            wait.residue = wait.residue.max(residue);
            wait.mixed |= wait.workload != place.workload;
        }
        let mut others = vec![Other::default(); self.waiting.len()];
        if let Some(active) = self.active {
            let slice = self.active_slice.length().unwrap_or_default();
            others[active] = Other { had_a_slice: true, slice, preemptions: 0 };
        }
        let mixed = self.due.busy().any(|(_, other)| other.workload != place.workload);
        let (key, workload) = (place.key, place.workload);
        let wait = Wait { since: at, key, workload, others, residue: 0, mixed };
        self.waiting[queue] = Some(wait);
    }

    /// The slice of `queue` begins: its wait is over, and those of others are not too long so far.
    fn judge_waits(&mut self, at: Instant, queue: usize) {
        for wait in self.waiting.iter().flatten().filter(|wait| !wait.mixed) {
            let bound = self.bound(wait);
            let waited = nanos(at) - nanos(wait.since);
            assert!(waited <= bound, "a queue waits for {waited} ns, not {bound}: {wait:?}");
            let percent = u64::try_from(waited * 100 / bound).expect("time goes on");
            self.shown.longest = self.shown.longest.max(percent);
        }
        if let Some(wait) = self.waiting[queue].take() {
            self.waited[queue] = Some((wait.since, at));
            self.shown.waits += u64::from(!wait.mixed);
        }
    }

    /// How long the wait may be, by what others did so far.
    fn bound(&self, wait: &Wait) -> i128 {
        let [service, idle] = [self.service, self.idle].map(|span| i128::from(span.as_nanos()));
        let slices = wait.others.iter().filter(|other| other.had_a_slice).map(|other| {
            let slice = i128::from(other.slice.as_nanos()) + 3 * service + idle;
            i128::from(1 + other.preemptions) * slice
        });
        let behind = wait.key + i128::from(wait.residue) - nanos(wait.since);
        // Nobody may have a slice yet, for want of room.
        behind.max(0) + slices.sum::<i128>() + service
    }

    fn judge_request(&mut self, at: Instant, task: usize) {
        if !matches!(self.load.task(task).pace, Pace::Thinks { requests: 1, .. }) {
            return;
        }
        let in_time = self.arrived[task] + self.service;
        let with_slice = self.waited[task].is_some_and(|(since, to)| since <= in_time && to == at);
        assert!(at <= in_time || with_slice, "a request was left behind by its queue");
        self.shown.requests += 1;
    }
}

/// Runs the tasks of a seed.
pub(crate) fn run(seed: u64) -> Shown {
    Waits::new(seed).run()
}
