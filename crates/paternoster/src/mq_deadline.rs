//! mq-deadline: batches in sector order, a deadline for each request, reads before writes.
//!
//! A disk is fast in sector order and fair in order of arrival. This scheduler dispatches a batch
//! of requests in ascending sector order, then decides again where to continue:
//!
//! ```text
//!   for each class RT, BE, IDLE:           dispatch list ▶ requeued, served first
//!                 reads                         writes
//!     sort   ●──●──●──●──●──●            ○──○──○──○──○         by sector
//!                  ▲ next[read]          ▲ next[write]
//!     fifo   ●─●─●─●─●─●                 ○─○─○─○─○             by arrival, deadlines
//! ```
//!
//! A decision picks the direction first: reads, unless writes have starved `writes_starved` times.
//! Then it picks the request: the oldest if its deadline has passed, otherwise the one at which the
//! direction stopped. A lower class waits until a higher one has nothing queued *or in flight*, or
//! until it has waited for `prio_aging_expire`. All clocks count ticks.
//!
//! Decisions are those of Linux 6.1 with its oddities; each oddity is a step of its own.

use crate::arena::RequestId;
use crate::dump::Dump;
use crate::io_context::IoClass;
use crate::parts::fifo::Fifo;
use crate::parts::sort_list::SortList;
use crate::request::{Bio, Direction, Request};
use crate::requests::Requests;
use crate::scheduler::{Cx, Existing, InsertAt, Requeue, Rules, Scheduler};
use crate::time::{Instant, Jiffies, Ticks};
use crate::trace::{BatchReason, DeadlineEvent, Event, MergeKind, Trace};
use crate::tunable::{TunableInfo, tunable_methods, tunables};

/// Its name in sysfs.
pub(crate) const NAME: &str = "mq-deadline";

const INT_MAX: i64 = i32::MAX as i64;
const INT_MIN: i64 = i32::MIN as i64;

tunables! {
    struct Tunables of NAME;
    read_expire: "ms", 500, 0, INT_MAX, "Deadline of a read from its arrival on.";
    write_expire: "ms", 5000, 0, INT_MAX, "Deadline of a write from its arrival on.";
    writes_starved: "count", 2, INT_MIN, INT_MAX,
        "How often reads are preferred over waiting writes; below 0, always.";
    front_merges: "bool", 1, 0, 1, "Whether the sort list is searched for front merges.";
    fifo_batch: "requests", 16, 0, INT_MAX, "Requests in sector order between two decisions.";
    prio_aging_expire: "ms", 10_000, 0, INT_MAX,
        "Wait after which a request is served before a higher class.";
    async_depth: "requests", INT_MAX, 1, INT_MAX,
        "Limit of requests other than reads; `nr_requests` if that is less.";
}

/// The requests of one class, and the counts of all of them.
#[derive(Debug, Default)]
struct Class {
    /// Requeued requests, the last one first.
    dispatch_list: Fifo,
    sorted: [SortList; 2],
    fifo: [Fifo; 2],
    /// For each direction, the request behind the one dispatched last, in sector order.
    next: [Option<RequestId>; 2],
    counts: Counts,
}

/// How often each happened to a request of the class.
#[derive(Debug, Default)]
struct Counts {
    inserted: u64,
    merged: u64,
    dispatched: u64,
    completed: u64,
}

impl Class {
    /// Requests that are queued or in flight.
    fn queued(&self) -> u64 {
        self.counts.inserted - self.counts.completed
    }

    /// Takes `rq` out of the lists of its direction. The direction continues behind it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take(&mut self, requests: &mut Requests, rq: RequestId) {
        let direction = requests[rq].direction() as usize;
        self.next[direction] = self.sorted[direction].remove(requests, rq);
        self.fifo[direction].remove(requests, rq);
    }
}

/// What a class has to dispatch.
enum Pick {
    /// This request.
    Request(RequestId),
    /// This one, but it started too late to be eligible now.
    NotYet(RequestId),
    Nothing,
}

/// The mq-deadline scheduler.
#[derive(Debug)]
pub struct MqDeadline<T> {
    classes: [Class; IoClass::COUNT],
    /// The direction of the last decision, of any class.
    last_direction: Direction,
    /// Requests served since the last decision, of any class.
    batching: u32,
    /// How often reads were preferred over waiting writes, in any class.
    starved: u32,
    /// Requests that wait, of all classes.
    waiting: u32,
    /// When a request that is not eligible yet becomes so.
    eligible_at: Option<Instant>,
    tunables: Tunables,
    trace: T,
}

impl<T: Trace> MqDeadline<T> {
    /// Makes an empty scheduler with Linux's defaults; its events go to `trace`.
    pub fn new(trace: T) -> Self {
        Self {
            classes: Default::default(),
            last_direction: Direction::Write,
            batching: 0,
            starved: 0,
            waiting: 0,
            eligible_at: None,
            tunables: Tunables::with_defaults(),
            trace,
        }
    }

    /// The tunables.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn class(&mut self, request: &Request) -> &mut Class {
        &mut self.classes[request.io_prio.class() as usize]
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn expire(&self, cx: &Cx, direction: Direction) -> Ticks {
        let millis = match direction {
            Direction::Read => self.tunables.read_expire,
            Direction::Write => self.tunables.write_expire,
        };
        cx.device.hz.ticks_from_millis(millis.cast_unsigned())
    }

    /// Picks a request of a lower class that has waited long enough to go before higher classes.
    ///
    /// An oddity: the probe is a full pick, and it changes the batch before the age is judged. With
    /// two busy classes the batch therefore rarely grows, and writes starve for the wrong class.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick_aged(&mut self, cx: &mut Cx) -> Option<RequestId> {
        // Ageing needs requests in at least two classes.
        let [rt, be, idle] = self.classes.each_ref().map(|class| class.queued() > 0);
        if !(rt && be || idle && (rt || be)) {
            return None;
        }
        let aging = self.tunables.prio_aging_expire.cast_unsigned();
        let latest = cx.jiffies() - cx.device.hz.ticks_from_millis(aging);
        for class in [IoClass::Be, IoClass::Idle] {
            if let Pick::Request(rq) = self.pick(cx, class, latest) {
                self.trace.event(cx.now, Event::Deadline(DeadlineEvent::Aged { class }));
                return Some(rq);
            }
        }
        None
    }

    /// Picks a request of the highest class that has any. A class with requests, queued or in
    /// flight, holds back the lower ones.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick_in_order(&mut self, cx: &mut Cx) -> Option<RequestId> {
        let latest = cx.jiffies();
        for class in IoClass::ALL {
            if self.classes[class as usize].queued() == 0 {
                continue;
            }
            match self.pick(cx, class, latest) {
                Pick::Request(rq) => return Some(rq),
                Pick::NotYet(rq) => {
                    self.eligible_at = Some(cx.device.hz.instant(self.started(cx, rq)));
                    return None;
                }
                Pick::Nothing => return None,
            }
        }
        None
    }

    /// Picks the next request of `class`, if it started at `latest` or before. The choice of
    /// direction stands even if its request is not eligible yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, cx: &mut Cx, class: IoClass, latest: Jiffies) -> Pick {
        if let Some(rq) = self.classes[class as usize].dispatch_list.first() {
            if self.started_after(cx, rq, latest) {
                return Pick::NotYet(rq);
            }
            self.classes[class as usize].dispatch_list.pop(&mut cx.requests);
            return self.count_dispatch(class, rq);
        }
        let (rq, reason) = match self.batch_goes_on_with(class) {
            Some(rq) => (rq, BatchReason::Onward),
            None => match self.begin_batch(cx, class) {
                Some(chosen) => chosen,
                None => return Pick::Nothing,
            },
        };
        if self.started_after(cx, rq, latest) {
            return Pick::NotYet(rq);
        }
        self.batching += 1;
        if self.batching == 1 {
            let direction = self.last_direction;
            let event = Event::Deadline(DeadlineEvent::Batch {
                direction,
                class,
                starved: self.starved,
                reason,
            });
            self.trace.event(cx.now, event);
        }
        self.classes[class as usize].take(&mut cx.requests, rq);
        self.count_dispatch(class, rq)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn count_dispatch(&mut self, class: IoClass, rq: RequestId) -> Pick {
        self.waiting -= 1;
        self.classes[class as usize].counts.dispatched += 1;
        Pick::Request(rq)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn batch_goes_on_with(&self, class: IoClass) -> Option<RequestId> {
        let next = self.classes[class as usize].next[self.last_direction as usize]?;
        (i64::from(self.batching) < self.tunables.fifo_batch).then_some(next)
    }

    /// Decides on a direction, and where in it to continue. An oddity of Linux: if that request is
    /// not eligible yet, the batch may begin with another class, which goes on where it stopped.
    #[cold]
    #[inline(never)]
    fn begin_batch(&mut self, cx: &Cx, class: IoClass) -> Option<(RequestId, BatchReason)> {
        let direction = self.choose_direction(class)?;
        let chosen = self.choose_request(cx, class, direction);
        self.last_direction = direction;
        self.batching = 0;
        Some(chosen)
    }

    /// Chooses reads before writes, until writes have starved often enough.
    fn choose_direction(&mut self, class: IoClass) -> Option<Direction> {
        let [reads, writes] = &self.classes[class as usize].fifo;
        match (reads.is_empty(), writes.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Direction::Read),
            (true, false) => {
                self.starved = 0;
                Some(Direction::Write)
            }
            (false, false) => {
                let starved = self.starved;
                self.starved = self.starved.wrapping_add(1);
                if starved < self.writes_starved() {
                    return Some(Direction::Read);
                }
                self.starved = 0;
                Some(Direction::Write)
            }
        }
    }

    /// Linux compares it as an unsigned number, so that a value below 0 means (nearly) never.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn writes_starved(&self) -> u32 {
        self.tunables.writes_starved as u32
    }

    /// Chooses the oldest request if it is overdue, otherwise the one at which the direction
    /// stopped. No other deadline is looked at, and nowhere else.
    fn choose_request(
        &self,
        cx: &Cx,
        class: IoClass,
        direction: Direction,
    ) -> (RequestId, BatchReason) {
        let class = &self.classes[class as usize];
        let oldest = class.fifo[direction as usize].first().expect("the direction has requests");
        match class.next[direction as usize] {
            None => (oldest, BatchReason::Start),
            Some(_) if cx.now >= cx.requests[oldest].deadline => (oldest, BatchReason::Expired),
            Some(next) => (next, BatchReason::Onward),
        }
    }

    /// Returns the tick in which the request seems to have started: its deadline less the expiry
    /// *as it is now*. A lower expiry makes requests look younger, even than now.
    fn started(&self, cx: &Cx, rq: RequestId) -> Jiffies {
        let request = &cx.requests[rq];
        cx.device.hz.jiffies(request.deadline) - self.expire(cx, request.direction())
    }

    /// Returns whether the request seems to have started after the tick `latest`. Deadlines are the
    /// beginnings of ticks, so that instants compare as their ticks do, without a division.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn started_after(&self, cx: &Cx, rq: RequestId, latest: Jiffies) -> bool {
        let request = &cx.requests[rq];
        let latest_deadline = latest + self.expire(cx, request.direction());
        request.deadline > cx.device.hz.instant(latest_deadline)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert_sorted(&mut self, cx: &mut Cx, rq: RequestId) {
        let direction = cx.requests[rq].direction();
        let deadline = cx.jiffies() + self.expire(cx, direction);
        let deadline = cx.device.hz.instant(deadline);
        let class = &mut self.classes[cx.requests[rq].io_prio.class() as usize];
        class.sorted[direction as usize].insert(&mut cx.requests, rq);
        class.fifo[direction as usize].push(&mut cx.requests, rq, deadline);
    }
}

impl<T: Trace> Scheduler for MqDeadline<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        NAME
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bind(&mut self, cx: &mut Cx, rq: RequestId) {
        self.class(&cx.requests[rq]).counts.inserted += 1;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert(&mut self, cx: &mut Cx, rq: RequestId, at: InsertAt) {
        self.waiting += 1;
        match at {
            InsertAt::Sorted => self.insert_sorted(cx, rq),
            InsertAt::Head => {
                // The deadline is now, without the expiry. The request looks older by that, as in
                // Linux.
                let deadline = cx.device.hz.instant(cx.jiffies());
                let class = &mut self.classes[cx.requests[rq].io_prio.class() as usize];
                class.dispatch_list.push_front(&mut cx.requests, rq, deadline);
            }
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn complete(&mut self, cx: &mut Cx, rq: RequestId) {
        self.class(&cx.requests[rq]).counts.completed += 1;
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        // The next dispatch looks again, once the device has room.
        self.eligible_at = self.eligible_at.filter(|&at| at > cx.now);
    }

    fn requeue(&mut self, cx: &mut Cx, rq: RequestId) -> Requeue {
        self.class(&cx.requests[rq]).counts.dispatched -= 1;
        self.insert(cx, rq, InsertAt::Head);
        Requeue::Scheduler
    }

    fn rules(&self) -> Rules {
        Rules { pure_merging: true, ..Rules::default() }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find_front_merge(&mut self, cx: &Cx, bio: &Bio) -> Option<RequestId> {
        if self.tunables.front_merges == 0 {
            return None;
        }
        let class = &mut self.classes[cx.contexts[bio.ioc].io_prio.class() as usize];
        class.sorted[bio.op.direction() as usize].find_front(&cx.requests, bio)
    }

    fn request_merged(&mut self, cx: &mut Cx, rq: RequestId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let direction = cx.requests[rq].direction() as usize;
            let class = &mut self.classes[cx.requests[rq].io_prio.class() as usize];
            class.sorted[direction].reposition(&mut cx.requests, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        let direction = cx.requests[absorbed].direction() as usize;
        let queued = cx.requests[absorbed].is_queued();
        self.waiting -= u32::from(queued);
        let class = self.class(&cx.requests[absorbed]);
        class.counts.merged += 1;
        class.counts.completed += 1;
        if !queued {
            return;
        }
        if class.next[direction] == Some(absorbed) {
            class.next[direction] = SortList::after(&cx.requests, absorbed);
        }
        class.sorted[direction].remove(&mut cx.requests, absorbed);
        class.fifo[direction].absorb(&mut cx.requests, rq, absorbed);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        self.eligible_at = None;
        let aged = self.pick_aged(cx);
        if aged.is_some() { aged } else { self.pick_in_order(cx) }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.eligible_at
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_work(&self) -> bool {
        self.waiting > 0
    }

    fn refusal(&mut self, _cx: &mut Cx, bio: &Bio, existing: Existing) -> Option<u32> {
        let limit = self.tunables.async_depth;
        existing.bound_or_limit(bio, u32::try_from(limit).expect("the table's range is a u32's"))
    }

    fn drain(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        for class in &mut self.classes {
            let before = out.len();
            while let Some(rq) = class.dispatch_list.pop(&mut cx.requests) {
                out.push(rq);
            }
            for direction in [Direction::Read, Direction::Write] {
                while let Some(rq) = class.fifo[direction as usize].pop(&mut cx.requests) {
                    class.sorted[direction as usize].remove(&mut cx.requests, rq);
                    out.push(rq);
                }
            }
            class.next = [None, None];
            // They count as if they had never been inserted.
            class.counts.inserted -= (out.len() - before) as u64;
        }
        (self.last_direction, self.batching, self.starved) = (Direction::Write, 0, 0);
        self.waiting = 0;
        self.eligible_at = None;
    }

    tunable_methods!(tunables: Tunables);

    fn dump(&self, out: &mut dyn Dump) {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        out.number("batching", self.batching.into());
        out.number("starved", self.starved.into());
        out.number("async_depth", self.tunables.async_depth);
        for (name, class) in ["queued_rt", "queued_be", "queued_idle"].iter().zip(&self.classes) {
            out.number(name, number(class.queued()));
        }
        let names = ["owned_by_driver_rt", "owned_by_driver_be", "owned_by_driver_idle"];
        for (name, Class { counts, .. }) in names.iter().zip(&self.classes) {
            out.number(name, number(counts.dispatched + counts.merged - counts.completed));
        }
    }

    fn check(&self, cx: &Cx) {
        let mut waiting = 0;
        for class in &self.classes {
            waiting += class.dispatch_list.iter(&cx.requests).count();
            for direction in [Direction::Read, Direction::Write] {
                let sorted = &class.sorted[direction as usize];
                let mut starts = sorted.iter(&cx.requests).map(|rq| cx.requests[rq].sector);
                assert!(starts.by_ref().is_sorted(), "the sort list is in sector order");
                let length = sorted.iter(&cx.requests).count();
                assert_eq!(length, class.fifo[direction as usize].iter(&cx.requests).count());
                waiting += length;
                if let Some(next) = class.next[direction as usize] {
                    assert!(
                        sorted.iter(&cx.requests).any(|rq| rq == next),
                        "next is in the sort list"
                    );
                }
            }
        }
        assert_eq!(waiting, self.waiting as usize, "requests that wait");
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
