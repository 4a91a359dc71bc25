//! Which queues have a claim that the device idles for them: a naive model, of sync tasks with a
//! queue each.
//!
//! The model does not read from the trace which queues are busy and raised: `raising.rs` works that
//! out. In flight is what was dispatched and has not completed. Of the trace the model believes one
//! thing, whether the device queues requests.

use std::collections::BTreeSet;

use paternoster::{GroupId, Instant, IoClass, Nanos};

/// A task and its queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) class: IoClass,
    /// Its group and the parents of that, from its own to below the root.
    pub(super) groups: Vec<GroupId>,
    pub(super) weight: u64,
    /// Its raising factor, and the one that its weight has now.
    pub(super) factor: u64,
    pub(super) applied: u64,
    pub(super) busy: bool,
    pub(super) in_flight: u32,
    /// The weight under which it counts.
    counted: Option<u64>,
}

impl Queue {
    pub(super) fn new(class: IoClass, groups: Vec<GroupId>, weight: u64) -> Self {
        Self {
            class,
            groups,
            weight,
            factor: 1,
            applied: 1,
            busy: false,
            in_flight: 0,
            counted: None,
        }
    }
}

/// The model. Queues go by the numbers of their tasks.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) queues: Vec<Queue>,
    /// Groups that have I/O pending.
    pending: BTreeSet<GroupId>,
    pub(super) rotational: bool,
    pub(super) slice_idle: Nanos,
    pub(super) strict: bool,
    /// Whether the device queues, if that is known.
    pub(super) device_queues: Option<bool>,
}

impl Claim {
    pub(super) fn new(rotational: bool, slice_idle: Nanos, strict: bool) -> Self {
        let (queues, pending) = (vec![], BTreeSet::new());
        Self { queues, pending, rotational, slice_idle, strict, device_queues: None }
    }

    pub(super) fn busy(&self) -> usize {
        self.queues.iter().filter(|queue| queue.busy).count()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.queues.iter().map(|queue| queue.in_flight).sum()
    }

    /// A queue becomes busy.
    pub(super) fn becomes_busy(&mut self, queue: usize) {
        self.apply_raising(queue);
        let state = &mut self.queues[queue];
        state.busy = true;
        if state.factor == 1 && state.in_flight == 0 {
            state.counted = Some(state.weight);
        }
        self.pending.extend(&state.groups);
    }

    /// A queue is busy no more, or has nothing in flight any more.
    pub(super) fn rests(&mut self, queue: usize) {
        let state = &mut self.queues[queue];
        if state.busy || state.in_flight > 0 {
            return;
        }
        state.counted = None;
        for group in state.groups.clone() {
            let below = |queue: &&Queue| queue.busy && queue.groups.contains(&group);
            if self.queues.iter().find(below).is_some() {
                return;
            }
            self.pending.remove(&group);
        }
    }

    /// The queue gets the weight by which it is raised.
    pub(super) fn apply_raising(&mut self, queue: usize) {
        let state = &mut self.queues[queue];
        if std::mem::replace(&mut state.applied, state.factor) != state.factor {
            state.counted = (state.factor == 1).then_some(state.weight);
        }
    }

    /// Returns whether serving all queues alike would not be fair to this one.
    pub(super) fn is_asymmetric(&self, queue: usize) -> bool {
        let counted = || self.queues.iter().filter_map(|queue| queue.counted);
        let least = counted().min();
        let differ = counted().max() != least;
        let is_least = least.is_some() && self.queues[queue].counted == least;
        let mut classes = self.queues.iter().filter(|queue| queue.busy).map(|queue| queue.class);
        let first = classes.next();
        !self.pending.is_empty()
            || (differ && !is_least)
            || classes.any(|class| Some(class) != first)
    }

    fn raised_busy(&self) -> usize {
        self.queues.iter().filter(|queue| queue.busy && queue.factor > 1).count()
    }

    /// Returns whether the queue's share only holds if the device idles for it.
    pub(super) fn is_guaranteed(&self, queue: usize) -> bool {
        let state = &self.queues[queue];
        let others = self.in_flight() - state.in_flight;
        (state.factor > 1 && (self.raised_busy() < self.busy() || others >= 4))
            || self.is_asymmetric(queue)
            || self.busy() == 1
    }

    fn is_ever_idled_for(&self, queue: usize) -> bool {
        self.slice_idle > Nanos::ZERO && self.queues[queue].class != IoClass::Idle
    }

    /// Returns whether the device has to idle for the queue.
    pub(super) fn must_idle(&self, queue: usize) -> bool {
        self.strict || (self.is_ever_idled_for(queue) && self.is_guaranteed(queue))
    }

    /// Returns whether the device may idle for the queue. Where it need not, the queue's I/O
    /// pattern decides.
    pub(super) fn may_idle(&self, queue: usize) -> bool {
        let boosts =
            self.raised_busy() == 0 && (self.rotational || self.device_queues == Some(false));
        self.must_idle(queue) || (self.is_ever_idled_for(queue) && boosts)
    }
}

/// The queue in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) queue: usize,
    pub(super) begun: Instant,
    /// By which its weight was raised then.
    pub(super) factor: u64,
    pub(super) dispatched: u64,
    /// Until when the device idles for it.
    pub(super) idle_until: Option<Instant>,
    /// It was preempted.
    pub(super) preempted: bool,
}
