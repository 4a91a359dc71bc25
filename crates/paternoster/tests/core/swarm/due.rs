//! Which queue is due, by a naive model of the service trees of one group that has sync queues
//! of one class alone, a task each: a list, and the rules by which keys are made.
//!
//! ```text
//!   key = moment of placing + (queues − 1) × (slice of level 0 − own slice) − residue
//! ```
//!
//! The model reads in the trace when a queue becomes busy, when its slice ends and with what
//! residue, when it preempts and whether the device idles for it, and computes where it is then.

use paternoster::{CfqEvent, Event, Instant, Nanos, QueueEvent, SliceEnd, Workload};

/// How far before the first queue one is placed that preempts.
const FRONT: i128 = 1_000_000_000;

/// A queue's place on a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) workload: Workload,
    /// In nanoseconds of the clock.
    pub(crate) key: i128,
    /// Counts placings; orders equal keys.
    order: u64,
}

#[derive(Debug)]
struct Queue {
    /// Its slice without regard to others.
    nominal: Nanos,
    place: Option<Place>,
    residue: i64,
    window: bool,
}

/// What happened to the trees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// A queue that has requests was placed by its key, with so much left of its last slice.
    Placed { queue: usize, residue: i64 },
    /// A queue has no requests and is not busy.
    Left(usize),
}

/// The tunables that matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuned {
    pub(crate) slice_sync: Nanos,
    pub(crate) slice_idle: Nanos,
    pub(crate) low_latency: bool,
    pub(crate) target_latency: Nanos,
}

impl Tuned {
    /// The slice of a level without regard to others.
    fn nominal(&self, level: u8) -> Nanos {
        let base = self.slice_sync.as_nanos();
        Nanos::new(base + base / 5 * 4 - base / 5 * u64::from(level))
    }
}

/// The model. Queues go by the numbers of their tasks.
#[derive(Debug)]
pub(crate) struct Due {
    tuned: Tuned,
    queues: Vec<Queue>,
    /// The mean of busy queues at the beginnings of slices.
    average: u64,
    placings: u64,
    /// A queue whose slice has ended, until it is known whether it has requests.
    ended: Option<usize>,
    /// A queue that preempts, until the slice that it ends has ended.
    preempting: Option<usize>,
}

impl Due {
    /// Of tasks of these levels.
    pub(crate) fn new(tuned: Tuned, levels: impl IntoIterator<Item = u8>) -> Self {
        let nominal = |level| tuned.nominal(level);
        let queue =
            |level| Queue { nominal: nominal(level), place: None, residue: 0, window: true };
        Self {
            tuned,
            queues: levels.into_iter().map(queue).collect(),
            average: 0,
            placings: 0,
            ended: None,
            preempting: None,
        }
    }

    pub(crate) fn place(&self, queue: usize) -> Option<Place> {
        self.queues[queue].place
    }

    /// The kind of work that a queue is from its next placing on.
    pub(crate) fn workload(&self, queue: usize) -> Workload {
        if self.queues[queue].window { Workload::Sync } else { Workload::SyncNoIdle }
    }

    /// All busy queues, with their places.
    pub(crate) fn busy(&self) -> impl Iterator<Item = (usize, Place)> {
        let places = self.queues.iter().map(|queue| queue.place);
        places.enumerate().filter_map(|(queue, place)| Some((queue, place?)))
    }

    /// The queue that is due first on a tree.
    pub(crate) fn first(&self, workload: Workload) -> Option<usize> {
        self.first_place(workload).map(|(queue, _)| queue)
    }

    /// The tree with the queue that is due first of all.
    pub(crate) fn first_workload(&self) -> Workload {
        let firsts = [Workload::SyncNoIdle, Workload::Sync]
            .into_iter()
            .filter_map(|workload| Some((self.first_place(workload)?.1.key, workload)));
        firsts.min_by_key(|&(key, _)| key).expect("a queue is busy").1
    }

    /// The slice that a queue gets now. With `low_latency` all busy queues are to have theirs
    /// within `target_latency`, but none below twice the idle time.
    pub(crate) fn slice(&mut self, queue: usize) -> Nanos {
        let nominal = self.queues[queue].nominal;
        if !self.tuned.low_latency {
            return nominal;
        }
        let busy = self.busy().count() as u64;
        self.average = (3 * busy.max(self.average) + busy.min(self.average) + 2) / 4;
        let sync = self.tuned.slice_sync.as_nanos();
        let (want, have) = (sync * self.average, self.tuned.target_latency.as_nanos());
        if want <= have {
            return nominal;
        }
        let nominal = nominal.as_nanos();
        let low = nominal.min(2 * self.tuned.slice_idle.as_nanos() * nominal / sync);
        Nanos::new((nominal * have / want).max(low))
    }

    fn first_place(&self, workload: Workload) -> Option<(usize, Place)> {
        let on_tree = self.busy().filter(|(_, place)| place.workload == workload);
        on_tree.min_by_key(|(_, place)| (place.key, place.order))
    }

    /// Takes an event of `queue`.
    pub(crate) fn hear(&mut self, at: Instant, event: Event, queue: usize) -> Vec<Change> {
        let mut changes = vec![];
        match event {
            Event::Queue(QueueEvent::NotBusy { .. }) => {
                assert_eq!(self.ended.take(), Some(queue), "a queue leaves as its slice ends");
                self.queues[queue].place = None;
                changes.push(Change::Left(queue));
                return changes;
            }
            Event::Cfq(CfqEvent::SliceExpired { residue, why, .. }) => {
                assert_ne!(why, SliceEnd::Cooperator, "tasks are far apart");
                if let Some(residue) = residue {
                    self.queues[queue].residue = residue;
                }
                self.ended = Some(queue);
                return changes;
            }
            _ => changes.extend(self.settle(at)),
        }
        match event {
            Event::Queue(QueueEvent::Busy { .. }) => changes.push(self.place_by_key(at, queue)),
            Event::Queue(QueueEvent::Preempted { .. }) => self.preempting = Some(queue),
            Event::Cfq(CfqEvent::IdleWindow { on, .. }) => self.queues[queue].window = on,
            _ => {}
        }
        changes
    }

    /// What ended and preempted in the events so far has had its effect.
    pub(crate) fn settle(&mut self, at: Instant) -> Option<Change> {
        let placed = self.ended.take().map(|queue| self.place_by_key(at, queue));
        if let Some(queue) = self.preempting.take() {
            let first = self.first_place(self.workload(queue));
            let key = first.map_or(nanos(at), |(_, place)| place.key) - FRONT;
            self.put(queue, key);
        }
        placed
    }

    fn place_by_key(&mut self, at: Instant, queue: usize) -> Change {
        let others = self.busy().count() as i128 - 1;
        let Queue { nominal, ref mut residue, .. } = self.queues[queue];
        let residue = std::mem::take(residue);
        let lower = i128::from(self.tuned.nominal(0).as_nanos()) - i128::from(nominal.as_nanos());
        self.put(queue, nanos(at) + others * lower - i128::from(residue));
        Change::Placed { queue, residue }
    }

    fn put(&mut self, queue: usize, key: i128) {
        let workload = self.workload(queue);
        let old = self.queues[queue].place;
        if old.is_some_and(|old| old.key == key && old.workload == workload) {
            return;
        }
        self.placings += 1;
        self.queues[queue].place = Some(Place { workload, key, order: self.placings });
    }
}

pub(crate) fn nanos(at: Instant) -> i128 {
    at.as_nanos().into()
}
