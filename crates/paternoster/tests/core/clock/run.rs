//! A run of an elevator with four tasks in two groups, all of whose times are random but for the
//! first: two runs that differ by their first time alone have to decide alike.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use paternoster::scheduler::{Dump, QueueDump, Scheduler};
use paternoster::{
    AnyScheduler, Bio, Device, Elevator, Event, GroupId, GroupLimits, Instant, IoPrio, IocId,
    Nanos, Op, Recorder, RequestId, SchedulerKind, Sector, SectorCount, Submitted, Weight,
};

/// No timeout is further away than this: mq-deadline's deadline of a write is 5 s.
const FAR: Nanos = Nanos::from_millis(10_000);

enum Due {
    Arrival(usize),
    Completion(RequestId),
}

pub(crate) struct Run {
    pub(crate) elevator: Elevator<AnyScheduler<Recorder>>,
    start: Instant,
    pub(crate) now: Instant,
    pub(crate) groups: [GroupId; 2],
    tasks: Vec<IocId>,
    due: BTreeMap<(Instant, u64), Due>,
    made: u64,
    random: u64,
    /// How often a timeout ended.
    pub(crate) timeouts: u32,
    /// What the caller saw, by its own clock, from the start of the run on.
    log: Vec<String>,
    /// What schedulers emitted that are no longer the elevator's.
    emitted: Vec<(Instant, Event)>,
}

impl Run {
    pub(crate) fn new(kind: SchedulerKind, start: Instant) -> Self {
        let scheduler = AnyScheduler::new(kind, Recorder::default());
        let mut elevator = Elevator::new(scheduler, Device::disk(2), start);
        // A light group would have to wait for admission, which no clock is part of.
        elevator.set_nr_requests(None);
        let root = elevator.groups().root();
        let groups = [100, 300].map(|weight| {
            let weight = Weight::new(weight).expect("a weight");
            elevator.add_group(start, root, weight)
        });
        let mut run = Self {
            elevator,
            start,
            now: start,
            groups,
            tasks: vec![],
            due: BTreeMap::new(),
            made: 0,
            random: 1,
            timeouts: 0,
            log: vec![],
            emitted: vec![],
        };
        for task in 0..4 {
            let ioc = run.add_task(task);
            run.tasks.push(ioc);
            run.plan(Nanos::ZERO, Due::Arrival(task));
        }
        run
    }

    fn add_task(&mut self, task: usize) -> IocId {
        self.elevator.add_io_context(self.now, IoPrio::default(), self.groups[task / 2])
    }

    /// Returns a number below `end`, by Marsaglia's xorshift.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    fn plan(&mut self, after: Nanos, due: Due) {
        self.made += 1;
        self.due.insert((self.now + after, self.made), due);
    }

    pub(crate) fn note(&mut self, what: &str) {
        self.log.push(format!("{} {what}", self.now.saturating_since(self.start).as_nanos()));
    }

    /// Handles the next event, and dispatches.
    pub(crate) fn step(&mut self) {
        let timeout = self.elevator.poll_timeout();
        let planned = self.due.first_key_value().map(|(&(at, _), _)| at);
        if let Some(at) = timeout
            && planned.is_none_or(|planned| at < planned)
        {
            assert!(at >= self.start, "the timeout is on the caller's clock: {at:?}");
            assert!(at.saturating_since(self.now) < FAR, "and so not far away: {at:?}");
            self.now = self.now.max(at);
            self.timeouts += 1;
            self.note("timeout");
            self.elevator.handle_timeout(self.now);
        } else {
            let ((at, _), due) = self.due.pop_first().expect("tasks go on for ever");
            self.now = at;
            match due {
                Due::Arrival(task) => self.submit(task),
                Due::Completion(rq) => {
                    let completed = self.elevator.complete(self.now, rq);
                    self.ask_again(&completed.user_data);
                }
            }
        }
        self.dispatch();
        self.elevator.check();
    }

    pub(crate) fn dispatch(&mut self) {
        while let Some(rq) = self.elevator.dispatch(self.now) {
            let request = self.elevator.request(rq);
            self.note(&format!("dispatched {request}, made at {:?}", request.start));
            let service = Nanos::new(1 + self.below(6_000_000));
            self.plan(service, Due::Completion(rq));
        }
    }

    /// Of the four tasks two read on from where they were, one reads anywhere and one writes.
    fn submit(&mut self, task: usize) {
        let place = if task < 2 { 8 * self.made } else { 8 * self.below(1 << 20) };
        let op = if task == 3 { Op::Write } else { Op::Read };
        let sector = Sector(((task as u64) << 32) + place);
        let bio =
            Bio::new(op, self.tasks[task], sector, SectorCount(8)).with_user_data(task as u64);
        let submitted = self.elevator.submit(self.now, bio);
        assert!(!matches!(submitted, Submitted::Later(_)), "there is no admission");
    }

    /// Whoever was answered thinks, mostly shorter than schedulers idle, and asks again.
    fn ask_again(&mut self, answered: &[u64]) {
        for &task in answered {
            let think = Nanos::new(self.below(10_000_000));
            let task = usize::try_from(task).expect("it was an index");
            self.plan(think, Due::Arrival(task));
        }
    }

    /// Caps the reads and the writes of each group.
    pub(crate) fn cap(&mut self, per_s: u64) {
        let per_s = NonZeroU64::new(per_s);
        let limits = GroupLimits { riops: per_s, wiops: per_s, ..GroupLimits::NONE };
        for group in self.groups {
            self.elevator.set_group_limits(self.now, group, limits);
        }
    }

    /// Switches to the scheduler `to`.
    pub(crate) fn switch(&mut self, to: SchedulerKind) {
        self.note(&format!("switched to {to} with {} requests queued", self.elevator.queued()));
        let to = AnyScheduler::new(to, Recorder::default());
        let mut old = self.elevator.switch(self.now, to);
        self.emitted.extend(old.trace().take());
    }

    /// Cancels all requests that wait.
    pub(crate) fn cancel(&mut self) {
        for cancelled in self.elevator.cancel_queued(self.now) {
            self.note(&format!("cancelled {:?}", cancelled.user_data));
            self.ask_again(&cancelled.user_data);
        }
    }

    /// The device cannot take the request that it would complete next.
    pub(crate) fn requeue(&mut self) {
        let found = self.due.iter().find_map(|(&key, due)| match due {
            Due::Completion(rq) => Some((key, *rq)),
            Due::Arrival(_) => None,
        });
        if let Some((key, rq)) = found {
            self.due.remove(&key);
            self.elevator.requeue(self.now, rq);
        }
    }

    /// The I/O context of a task exits, and the task goes on with another.
    pub(crate) fn exit(&mut self, task: usize) {
        self.elevator.exit_io_context(self.now, self.tasks[task]);
        self.tasks[task] = self.add_task(task);
    }

    /// Notes all that can be seen of the inside of the elevator.
    pub(crate) fn dump(&mut self) {
        let mut lines = Lines(vec![]);
        self.elevator.scheduler().dump(&mut lines);
        let now = self.elevator.clock().elevator_time(self.now);
        for group in self.groups {
            let backlogged = self.elevator.stats().group(group).backlogged(now);
            lines.0.push(format!("{backlogged:?} {:?}", self.elevator.blkio(group)));
        }
        lines.0.iter().for_each(|line| self.note(line));
    }

    /// Returns all that was seen and all that was emitted.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.emitted.extend(self.elevator.trace().take());
        assert!(
            self.emitted.first().is_some_and(|&(at, _)| at == Instant::START),
            "events are on the elevator's own clock"
        );
        self.log.extend(self.emitted.iter().map(|(at, event)| format!("{at:?} {event:?}")));
        self.log
    }
}

/// What a scheduler dumps, in lines.
struct Lines(Vec<String>);

impl Dump for Lines {
    fn number(&mut self, name: &'static str, value: i64) {
        self.0.push(format!("{name} {value}"));
    }

    fn queue(&mut self, queue: &QueueDump) {
        self.0.push(format!("{queue:?}"));
    }
}
