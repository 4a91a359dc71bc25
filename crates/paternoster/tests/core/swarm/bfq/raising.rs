//! When a queue is busy, and by how much its weight is raised: a naive model, after the rules.
//!
//! The model holds for sync tasks with a queue each, of which none merge. The load says which
//! requests arrive and complete. The trace says what no rule of raising decides: which queue is put
//! in service, when its service ends and what it cost, what is dispatched, and the peak rate. The
//! model works out all the rest:
//!
//! ```text
//!   busy            from an arrival until nothing is left, out of service or as service ends; but
//!                   a preempted queue stays busy where its share depends on it
//!   interactive     × 30: new, or idle for 2 s; until its time is over, or 120000 sectors served
//!   soft real time  × 3000: back after its batch was paid for at 7000 sectors a second, and not
//!                   right after; until 300 ms after that
//!   neither         with a priority that is not the default one, or one of eight queues that
//!                   became busy together
//! ```
//!
//! Times are in ticks. Of a queue that was not idle yet they are long ago.

use std::collections::BTreeSet;

use paternoster::{GroupId, Hz, Instant, Nanos};

/// The raising factors.
pub(super) const INTERACTIVE: u64 = 30;
pub(super) const SOFT_RT: u64 = 3000;
/// The weight of the default level, the only one that is raised.
const DEFAULT_WEIGHT: u64 = 40;
const LONG_AGO: i64 = i64::MIN / 2;

/// What the rules depend on, besides the queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) hz: Hz,
    pub(super) rotational: bool,
    pub(super) slice_idle: Nanos,
    pub(super) low_latency: bool,
}

impl Rules {
    /// So many milliseconds in ticks, rounded up.
    fn ticks(&self, millis: i64) -> i64 {
        let hz = i64::from(self.hz.ticks_per_s());
        (millis * hz + 999) / 1000
    }

    fn now(&self, at: Instant) -> i64 {
        (self.hz.jiffies(at) - self.hz.jiffies(Instant::START)).count()
    }

    fn soft_rt_span(&self) -> i64 {
        self.ticks(300)
    }

    /// What the reference device serves in its time: its rate times its ticks.
    fn reference(&self) -> i64 {
        if self.rotational { 14_000 * self.ticks(7000) } else { 33_000 * self.ticks(2500) }
    }
}

/// A request, as far as it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) sectors: u64,
}

/// What the model knows of a queue.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent facts
struct Queue {
    weight: u64,
    group: Option<GroupId>,
    busy: bool,
    waiting: u32,
    in_flight: u32,
    factor: u64,
    span: i64,
    /// Since when it is raised, or is not.
    since: i64,
    interactive_since: i64,
    served_raised: u64,
    /// A batch that begins after this may be soft real time; or that is to be worked out as the
    /// last of its requests is done.
    soft_rt_after: i64,
    soft_rt_due: bool,
    busy_since: i64,
    served_since_busy: u64,
    /// In the service that goes on or comes next.
    served: u64,
    /// When its time in service is over, or since when it is idle.
    end: i64,
    /// No request of it has arrived.
    is_new: bool,
    in_large_burst: bool,
    /// Its last 32 requests, the newest first: whether they were far.
    seeks: u32,
    last_end: u64,
}

/// Queues that became busy together.
#[derive(Debug)]
struct Burst {
    last: i64,
    size: usize,
    /// Of the group, or of the root.
    group: Option<GroupId>,
    large: bool,
    queues: BTreeSet<usize>,
}

/// The model. Queues go by the numbers of their tasks.
#[derive(Debug)]
pub(super) struct Raising {
    rules: Rules,
    queues: Vec<Queue>,
    burst: Burst,
    /// Sectors a microsecond × 2¹⁶.
    pub(super) peak_rate: u32,
}

impl Raising {
    pub(super) fn new(rules: Rules) -> Self {
        let rate = if rules.rotational { 14_000 } else { 33_000 };
        let (group, queues) = (None, BTreeSet::new());
        let burst = Burst { last: LONG_AGO, size: 0, group, large: false, queues };
        Self { rules, queues: vec![], burst, peak_rate: rate * 2 / 3 }
    }

    /// A task comes; its queue is made with its first request.
    pub(super) fn add(&mut self, weight: u64, group: Option<GroupId>) {
        self.queues.push(Queue {
            weight,
            group,
            busy: false,
            waiting: 0,
            in_flight: 0,
            factor: 1,
            span: 0,
            since: 0,
            interactive_since: LONG_AGO,
            served_raised: 0,
            soft_rt_after: 0,
            soft_rt_due: false,
            busy_since: 0,
            served_since_busy: 0,
            served: 0,
            end: LONG_AGO,
            is_new: true,
            in_large_burst: false,
            seeks: 1,
            last_end: 0,
        });
    }

    /// For whoever reads why a test failed.
    pub(super) fn queue(&self, queue: usize) -> &impl std::fmt::Debug {
        &self.queues[queue]
    }

    pub(super) fn busy(&self, queue: usize) -> bool {
        self.queues[queue].busy
    }

    pub(super) fn factor(&self, queue: usize) -> u64 {
        self.queues[queue].factor
    }

    /// For how long it is raised, as in the trace.
    pub(super) fn length(&self, queue: usize) -> Nanos {
        let ticks = self.queues[queue].span;
        let millis = ticks * 1000 / i64::from(self.rules.hz.ticks_per_s());
        Nanos::from_millis(millis.try_into().expect("a length"))
    }

    /// No request of it has arrived.
    pub(super) fn is_new(&self, queue: usize) -> bool {
        self.queues[queue].is_new
    }

    pub(super) fn in_large_burst(&self, queue: usize) -> bool {
        self.queues[queue].in_large_burst
    }

    /// For how long a queue is interactive: what the reference device takes, scaled by how much
    /// slower this one is.
    fn interactive_span(&self) -> i64 {
        let span = self.rules.reference() / i64::from(self.peak_rate);
        span.clamp(self.rules.ticks(3000), self.rules.ticks(25_000))
    }

    fn is_soft_rt(&self, queue: usize) -> bool {
        self.queues[queue].span == self.rules.soft_rt_span()
    }

    /// A request of the queue arrives. Returns whether the queue becomes busy with it.
    pub(super) fn arrive(&mut self, queue: usize, request: Range, at: Instant) -> bool {
        let now = self.rules.now(at);
        if self.queues[queue].is_new {
            let state = &mut self.queues[queue];
            (state.since, state.soft_rt_after) = (now, now);
            self.join_burst(queue, now);
        }
        self.note_seek(queue, request, now);
        let before = self.queues[queue].factor;
        let begins = !self.queues[queue].busy;
        let interactive = begins && self.become_busy(queue, now);
        let low_latency = self.rules.low_latency;
        let state = &mut self.queues[queue];
        state.waiting += 1;
        state.is_new = false;
        if low_latency && (before == 1 || state.factor == 1 || interactive) {
            state.since = now;
        }
        begins
    }

    /// A new queue, while a burst goes on or nothing is busy. Two queues are of one burst if they
    /// are of one group and no more than 180 ms lie between them and one that came between.
    fn join_burst(&mut self, queue: usize, now: i64) {
        let is_first = !self.queues.iter().any(|queue| queue.busy);
        if self.burst.size == 0 && !is_first {
            return;
        }
        let group = self.queues[queue].group;
        let burst = &mut self.burst;
        if now > burst.last + self.rules.ticks(180) || burst.group != group {
            burst.large = false;
            burst.group = group;
            burst.queues.clear();
            burst.size = usize::from(is_first);
            burst.queues.extend(is_first.then_some(queue));
        } else if burst.large {
            self.queues[queue].in_large_burst = true;
        } else {
            burst.size += 1;
            burst.queues.insert(queue);
            if burst.size == 8 {
                burst.large = true;
                for queue in std::mem::take(&mut burst.queues) {
                    self.queues[queue].in_large_burst = true;
                }
            }
        }
        self.burst.last = now;
    }

    /// More than 800 sectors are far; on a device that is not rotational a large request is never
    /// far. A queue that only seeks is not soft real time.
    fn note_seek(&mut self, queue: usize, request: Range, now: i64) {
        let state = &mut self.queues[queue];
        let is_far = state.last_end != 0 && state.last_end.abs_diff(request.start) > 800;
        let is_seek = is_far && (self.rules.rotational || request.sectors < 64);
        state.seeks = state.seeks << 1 | u32::from(is_seek);
        state.last_end = request.start + request.sectors;
        if state.factor > 1 && state.seeks == u32::MAX && self.is_soft_rt(queue) {
            self.end_or_fall_back(queue, now);
        }
    }

    /// The queue becomes busy. Returns whether it is interactive: new, or used again after a while.
    fn become_busy(&mut self, queue: usize, now: i64) -> bool {
        let state = &self.queues[queue];
        let idle = |millis| state.in_flight == 0 && now > state.end + self.rules.ticks(millis);
        let in_burst = state.in_large_burst;
        let may_be = !in_burst && state.weight == DEFAULT_WEIGHT;
        let interactive = may_be && idle(2000);
        let soft_rt =
            may_be && state.seeks != u32::MAX && state.in_flight == 0 && now > state.soft_rt_after;
        if !state.is_new && idle(10_000) {
            self.burst.queues.remove(&queue);
            self.queues[queue].in_large_burst = false;
        }
        if self.rules.low_latency {
            if self.queues[queue].factor == 1 && interactive {
                self.queues[queue].served_raised = 0;
                self.raise_interactive(queue);
            } else if self.queues[queue].factor == 1 && soft_rt {
                self.queues[queue].interactive_since = LONG_AGO;
                self.raise_soft_rt(queue);
            } else if self.queues[queue].factor > 1 {
                self.go_on(queue, now, [interactive, in_burst, soft_rt]);
            }
        }
        let state = &mut self.queues[queue];
        state.busy = true;
        state.busy_since = now;
        (state.served_since_busy, state.served) = (0, 0);
        state.soft_rt_due = false;
        interactive
    }

    /// A queue is raised already as it becomes busy.
    fn go_on(&mut self, queue: usize, now: i64, [interactive, in_burst, soft_rt]: [bool; 3]) {
        if interactive {
            self.raise_interactive(queue);
        } else if in_burst {
            self.queues[queue].factor = 1;
        } else if soft_rt {
            if !self.is_soft_rt(queue) {
                self.queues[queue].interactive_since = self.queues[queue].since;
                self.raise_soft_rt(queue);
            }
            self.queues[queue].since = now;
        }
    }

    fn raise_interactive(&mut self, queue: usize) {
        self.queues[queue].span = self.interactive_span();
        self.queues[queue].factor = INTERACTIVE;
    }

    fn raise_soft_rt(&mut self, queue: usize) {
        self.queues[queue].span = self.rules.soft_rt_span();
        self.queues[queue].factor = SOFT_RT;
    }

    fn end(&mut self, queue: usize, now: i64) {
        let is_soft_rt = self.is_soft_rt(queue);
        let state = &mut self.queues[queue];
        if !is_soft_rt {
            state.soft_rt_after = now;
        }
        (state.factor, state.span, state.since) = (1, 0, now);
    }

    /// The time of soft real time is over. A queue that was interactive before is so again while
    /// its time as interactive lasts.
    fn end_or_fall_back(&mut self, queue: usize, now: i64) {
        let since = self.queues[queue].interactive_since;
        if !self.is_soft_rt(queue) || now > since + self.interactive_span() {
            return self.end(queue, now);
        }
        self.raise_interactive(queue);
        self.queues[queue].since = since;
    }

    /// The queue is put in service. What soft real time waited for that does not count; an
    /// interactive queue has as many times as long as its weight, by now, is raised.
    pub(super) fn begin_service(&mut self, queue: usize, raised_by: u64, at: Instant) {
        let now = self.rules.now(at);
        let timeout = i64::from(self.rules.hz.ticks_per_s() / 8);
        let is_soft_rt = self.is_soft_rt(queue);
        let state = &mut self.queues[queue];
        if is_soft_rt && state.factor > 1 && now > state.since && now > state.end {
            let counts = state.end - state.since;
            state.since = if counts > 0 { now - counts } else { now };
        }
        let times = if is_soft_rt { 1 } else { raised_by.cast_signed() };
        state.end = now + timeout * times;
    }

    /// A request of the queue is dispatched, in its own service or not.
    pub(super) fn dispatch(&mut self, queue: usize, sectors: u64, in_service: bool, at: Instant) {
        let now = self.rules.now(at);
        let state = &mut self.queues[queue];
        state.served += sectors;
        state.served_since_busy += sectors;
        state.served_raised += if state.factor > 1 { sectors } else { 0 };
        state.waiting -= 1;
        state.in_flight += 1;
        if !in_service {
            state.busy = state.waiting > 0;
            return;
        }
        if state.factor > 1 && state.in_large_burst {
            self.end(queue, now);
        } else if state.factor > 1 && now > state.since + state.span {
            self.end_or_fall_back(queue, now);
        }
        let state = &self.queues[queue];
        if state.factor > 1 && state.served_raised > 120_000 && !self.is_soft_rt(queue) {
            self.end(queue, now);
        }
    }

    pub(super) fn complete(&mut self, queue: usize, at: Instant) {
        let now = self.rules.now(at);
        let state = &mut self.queues[queue];
        state.in_flight -= 1;
        if state.in_flight > 0 {
            return;
        }
        if !state.busy {
            state.end = now;
        }
        if state.soft_rt_due && state.waiting == 0 && state.factor != INTERACTIVE {
            self.bound_soft_rt(queue, now);
        }
    }

    /// What was served has to be worth its time at 7000 sectors a second, and what follows at once
    /// is a part of it.
    fn bound_soft_rt(&mut self, queue: usize, now: i64) {
        let hz = u64::from(self.rules.hz.ticks_per_s());
        let tick = 1_000_000_000 / hz;
        let idle = (self.rules.slice_idle.as_nanos() / tick).cast_signed();
        let state = &mut self.queues[queue];
        let paid = state.busy_since + (hz * state.served_since_busy / 7000).cast_signed();
        state.soft_rt_after = state.soft_rt_after.max(paid).max(now + idle + 4);
    }

    /// The service of the queue ends, for which it is charged so many sectors: those that it had,
    /// or more if its time was charged. `stays` if it is busy though nothing is left.
    pub(super) fn end_service(&mut self, queue: usize, charge: u64, stays: bool, at: Instant) {
        let now = self.rules.now(at);
        let state = &mut self.queues[queue];
        let for_time = charge.checked_sub(state.served).expect("what is served is charged");
        assert!(for_time == 0 || state.factor == 1, "what is raised is not charged for time");
        state.served_since_busy += for_time;
        state.served = 0;
        if self.rules.low_latency && state.factor == 1 {
            state.since = now;
        }
        if state.waiting > 0 {
            return;
        }
        let is_idle = state.in_flight == 0;
        state.busy = stays;
        if is_idle && !stays {
            state.end = now;
        }
        if !self.rules.low_latency {
            return;
        }
        if is_idle {
            self.bound_soft_rt(queue, now);
        } else {
            self.queues[queue].soft_rt_due = true;
        }
    }
}
