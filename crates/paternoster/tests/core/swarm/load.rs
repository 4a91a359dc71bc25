//! Tasks in closed loops on a modelled device: each keeps a number of requests, and asks
//! for the next one some time after one is done.
//!
//! The device serves all that it has at the same time, each within a bound. Tasks are far apart
//! and nothing merges, neither requests nor queues. Tasks and groups may come between two events; a
//! dispatch follows.

use std::collections::BTreeMap;

use paternoster::scheduler::Scheduler;
use paternoster::{
    Administration, Arrival, Bio, BioFlags, Device, Driver, Elevator, Event, GroupId, Instant,
    IoPrio, IocId, Nanos, NoMerges, Recorder, RequestId, Sector, SectorCount, Weight,
};

use crate::swarm::random::Random;

/// Sectors between the places of two tasks.
const APART: u64 = 1 << 40;
/// Sectors that a task uses.
const PLACE: u64 = 1 << 30;

/// What a task does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) group: GroupId,
    pub(crate) io_prio: IoPrio,
    /// Writes that it waits for, as direct ones; else reads.
    pub(crate) writes: bool,
    pub(crate) sequential: bool,
    /// Sectors of a request.
    pub(crate) sectors: u32,
    pub(crate) pace: Pace,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// So many requests exist, and each is followed by the next after up to so long, now and then
    /// several times that.
    Thinks { requests: u32, up_to: Nanos },
    /// So many always wait.
    Backlogged(u32),
}

struct Running {
    task: Task,
    ioc: IocId,
    /// Where its next sequential request starts.
    at: u64,
    /// Its requests that wait.
    waiting: u32,
}

enum Due {
    Arrival(usize),
    Completion(RequestId),
}

pub(crate) struct Load<S> {
    driver: Driver<S>,
    pub(crate) now: Instant,
    pub(crate) random: Random,
    tasks: Vec<Running>,
    /// A request is done within this time of its dispatch.
    pub(crate) service: Nanos,
    due: BTreeMap<(Instant, u64), Due>,
    made: u64,
    /// The task of each bio.
    task_of: Vec<usize>,
}

impl<S: Scheduler<Trace = Recorder>> Load<S> {
    pub(crate) fn new(scheduler: S, random: Random, device: Device, service: Nanos) -> Self {
        let mut elevator = Elevator::new(scheduler, device, Instant::START);
        elevator.set_nomerges(NoMerges::All);
        elevator.set_nr_requests(Some(u32::MAX));
        Self {
            driver: Driver::new(elevator),
            now: Instant::START,
            random,
            tasks: vec![],
            service,
            due: BTreeMap::new(),
            made: 0,
            task_of: vec![],
        }
    }

    pub(crate) fn tune(&mut self, tunable: &str, value: u64) {
        let value = i64::try_from(value).expect("a small number");
        let set = self.administer(|elevator, now| elevator.set_tunable(now, tunable, value));
        assert_eq!(set, Ok(value), "{tunable} takes it");
    }

    pub(crate) fn root(&self) -> GroupId {
        self.driver.elevator().groups().root()
    }

    pub(crate) fn add_group(&mut self, parent: GroupId, weight: Weight) -> GroupId {
        self.administer(|elevator, now| elevator.add_group(now, parent, weight))
    }

    /// Changes the elevator, and has dispatched what then may be.
    pub(crate) fn administer<R>(
        &mut self,
        change: impl FnOnce(&mut Administration<'_, S>, Instant) -> R,
    ) -> R {
        let now = self.now;
        let result = self.driver.administer(|elevator| change(elevator, now));
        self.dispatch();
        result
    }

    /// A task begins, soon or at once.
    pub(crate) fn add(&mut self, task: Task) {
        let Task { io_prio, group, .. } = task;
        let ioc = self.administer(|elevator, now| elevator.add_io_context(now, io_prio, group));
        let index = self.tasks.len();
        self.tasks.push(Running { task, ioc, at: 0, waiting: 0 });
        if let Pace::Thinks { requests, up_to } = task.pace {
            for _ in 0..requests {
                self.think(index, up_to);
            }
        }
    }

    /// The task that has this I/O context.
    pub(crate) fn task_of(&self, ioc: IocId) -> usize {
        self.tasks.iter().position(|task| task.ioc == ioc).expect("it is a task's")
    }

    /// The task that made this request.
    pub(crate) fn task_of_request(&self, rq: u64) -> usize {
        self.task_of[usize::try_from(rq).expect("an index")]
    }

    pub(crate) fn task(&self, task: usize) -> &Task {
        &self.tasks[task].task
    }

    /// Requests of a task that wait.
    pub(crate) fn waiting(&self, task: usize) -> u32 {
        self.tasks[task].waiting
    }

    /// What followed from changes, or the next event and what follows by the law: what the trace
    /// says of it.
    pub(crate) fn step(&mut self) -> Vec<(Instant, Event)> {
        let of_changes = self.driver.trace().take();
        if !of_changes.is_empty() {
            return of_changes;
        }
        if let Some(task) = self.starving() {
            self.submit(task);
        } else {
            self.wait();
        }
        self.dispatch();
        self.driver.trace().take()
    }

    fn dispatch(&mut self) {
        while let Some(rq) = self.driver.dispatch_next(self.now) {
            let name = self.driver.elevator().request(rq).name();
            let task = self.task_of_request(name);
            self.tasks[task].waiting -= 1;
            let service = Nanos::new(1 + self.random.below(self.service.as_nanos()));
            self.plan(service, Due::Completion(rq));
        }
    }

    /// A backlogged task of which too little waits.
    fn starving(&self) -> Option<usize> {
        self.tasks.iter().position(|running| match running.task.pace {
            Pace::Backlogged(requests) => running.waiting < requests,
            Pace::Thinks { .. } => false,
        })
    }

    /// Until the next arrival, completion or timeout. The timer is first or last in its moment.
    fn wait(&mut self) {
        let planned = self.due.first_key_value().map(|(&(at, _), _)| at);
        let timeout = self.driver.poll_timeout();
        let timer_is_first = match (planned, timeout) {
            (Some(planned), Some(timeout)) if planned == timeout => self.random.one_in(2),
            (Some(planned), Some(timeout)) => timeout < planned,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if timer_is_first {
            self.now = timeout.expect("it is first");
            self.driver.handle_timeout(self.now);
            return;
        }
        let ((at, _), due) = self.due.pop_first().expect("tasks go on for ever");
        self.now = at;
        match due {
            Due::Arrival(task) => self.submit(task),
            Due::Completion(rq) => self.complete(rq),
        }
    }

    fn submit(&mut self, task: usize) {
        let running = &mut self.tasks[task];
        let Task { writes, sequential, sectors, .. } = running.task;
        if !sequential {
            running.at = self.random.below(PLACE);
        }
        let start = (task as u64 + 1) * APART + running.at;
        running.at += u64::from(sectors);
        running.waiting += 1;
        let (sector, sectors) = (Sector(start), SectorCount(sectors));
        let bio = if writes {
            Bio::write(running.ioc, sector, sectors).with_flags(BioFlags::SYNC | BioFlags::IDLE)
        } else {
            Bio::read(running.ioc, sector, sectors)
        };
        let bio = bio.with_user_data(self.task_of.len() as u64);
        self.task_of.push(task);
        let arrival = self.driver.submit(self.now, bio);
        assert!(matches!(arrival, Arrival::Queued(_)), "nothing merges or is turned away");
    }

    fn complete(&mut self, rq: RequestId) {
        let bios = self.driver.complete(self.now, rq);
        let task = self.task_of_request(bios[0]);
        if let Pace::Thinks { up_to, .. } = self.tasks[task].task.pace {
            self.think(task, up_to);
        }
    }

    fn think(&mut self, task: usize, up_to: Nanos) {
        let longest = up_to.as_nanos() * if self.random.one_in(20) { 8 } else { 1 };
        let pause = Nanos::new(self.random.below(longest + 1));
        self.plan(pause, Due::Arrival(task));
    }

    fn plan(&mut self, after: Nanos, due: Due) {
        self.made += 1;
        self.due.insert((self.now + after, self.made), due);
    }
}
