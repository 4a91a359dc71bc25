//! Tasks in closed loops on a modelled device: each keeps a number of requests, and asks
//! for the next one some time after one is done.
//!
//! The device serves all that it has at the same time, each within a bound. Tasks are far apart
//! and nothing merges, neither requests nor queues.

use std::collections::BTreeMap;

use paternoster::scheduler::Scheduler;
use paternoster::{
    Bio, BioFlags, Device, Elevator, Event, GroupId, Instant, IoPrio, IocId, Nanos, NoMerges,
    Recorder, RequestId, Sector, SectorCount, Submitted,
};

use crate::random::Random;

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
    pub(crate) elevator: Elevator<S>,
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
            elevator,
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
        let set = self.elevator.set_tunable(self.now, tunable, value);
        assert_eq!(set, Ok(value), "{tunable} takes it");
    }

    /// A task begins, soon or at once.
    pub(crate) fn add(&mut self, task: Task) {
        let ioc = self.elevator.add_io_context(self.now, task.io_prio, task.group);
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

    /// The next event and what follows by the law; the events of it.
    pub(crate) fn step(&mut self) -> Vec<(Instant, Event)> {
        if let Some(task) = self.starving() {
            self.submit(task);
        } else {
            self.wait();
        }
        while let Some(rq) = self.elevator.dispatch(self.now) {
            let name = self.elevator.request(rq).name();
            let task = self.task_of_request(name);
            self.tasks[task].waiting -= 1;
            let service = Nanos::new(1 + self.random.below(self.service.as_nanos()));
            self.plan(service, Due::Completion(rq));
        }
        self.elevator.trace().take()
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
        let timeout = self.elevator.poll_timeout();
        let timer_is_first = match (planned, timeout) {
            (Some(planned), Some(timeout)) if planned == timeout => self.random.one_in(2),
            (Some(planned), Some(timeout)) => timeout < planned,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if timer_is_first {
            self.now = timeout.expect("it is first");
            self.elevator.handle_timeout(self.now);
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
        let submitted = self.elevator.submit(self.now, bio);
        assert!(matches!(submitted, Submitted::Queued(_)), "nothing merges or is turned away");
    }

    fn complete(&mut self, rq: RequestId) {
        let bios = self.elevator.complete(self.now, rq);
        let task = self.task_of_request(bios.user_data[0]);
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
