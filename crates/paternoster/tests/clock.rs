//! Whose clock it is does not matter: an elevator decides alike from the first nanosecond of
//! uptime on, and asks for its timeouts on the clock of its driver.

use std::collections::BTreeMap;

use paternoster::{
    AnyScheduler, Bio, Device, Elevator, Instant, IoPrio, IocId, Medium, Nanos, Op, Recorder,
    RequestId, SchedulerKind, Sector, SectorCount, Submitted, Weight,
};

/// Events of a run: enough for every task to be served some hundreds of times.
const EVENTS: u32 = 3000;
/// No timeout is further away than this: mq-deadline's deadline of a write is 5 s.
const FAR: Nanos = Nanos::from_millis(10_000);

enum Due {
    Arrival(usize),
    Completion(RequestId),
}

struct Run {
    elevator: Elevator<AnyScheduler<Recorder>>,
    start: Instant,
    now: Instant,
    tasks: Vec<IocId>,
    due: BTreeMap<(Instant, u64), Due>,
    made: u64,
    random: u64,
    timeouts: u32,
    log: Vec<String>,
}

impl Run {
    fn new(kind: SchedulerKind, start: Instant) -> Self {
        let scheduler = AnyScheduler::new(kind, Recorder::default());
        let mut elevator = Elevator::new(scheduler, Device::disk(2), start);
        let root = elevator.groups().root();
        let mut tasks = vec![];
        for weight in [100, 300] {
            let weight = Weight::new(weight).expect("a weight");
            let group = elevator.add_group(start, root, weight);
            tasks
                .extend([(); 2].map(|()| elevator.add_io_context(start, IoPrio::default(), group)));
        }
        let mut run = Self {
            elevator,
            start,
            now: start,
            tasks,
            due: BTreeMap::new(),
            made: 0,
            random: 1,
            timeouts: 0,
            log: vec![],
        };
        for task in 0..run.tasks.len() {
            run.plan(Nanos::ZERO, Due::Arrival(task));
        }
        run
    }

    /// Numbers below that, by Marsaglia's xorshift.
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

    fn note(&mut self, what: &str) {
        self.log.push(format!("{} {what}", self.now.saturating_since(self.start).as_nanos()));
    }

    /// The next event, and what follows.
    fn step(&mut self) {
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
                Due::Completion(rq) => self.complete(rq),
            }
        }
        while let Some(rq) = self.elevator.dispatch(self.now) {
            self.note(&format!("dispatched {}", self.elevator.request(rq)));
            let service = Nanos::new(1 + self.below(6_000_000));
            self.plan(service, Due::Completion(rq));
        }
        self.elevator.check();
    }

    /// Of the four tasks two read on from where they were, one reads anywhere and one writes.
    fn submit(&mut self, task: usize) {
        let place = if task < 2 { 8 * self.made } else { 8 * self.below(1 << 20) };
        let op = if task == 3 { Op::Write } else { Op::Read };
        let sector = Sector(((task as u64) << 32) + place);
        let bio =
            Bio::new(op, self.tasks[task], sector, SectorCount(8)).with_user_data(task as u64);
        let submitted = self.elevator.submit(self.now, bio);
        assert!(!matches!(submitted, Submitted::Later(_)), "there is room for four");
    }

    /// Whoever had something done thinks, mostly shorter than schedulers idle, and asks again.
    fn complete(&mut self, rq: RequestId) {
        for task in self.elevator.complete(self.now, rq).user_data {
            let think = Nanos::new(self.below(10_000_000));
            let task = usize::try_from(task).expect("it was an index");
            self.plan(think, Due::Arrival(task));
        }
    }
}

/// All that was decided, and how often a timeout ended.
fn decisions(kind: SchedulerKind, start: Instant) -> (Vec<String>, u32) {
    let mut run = Run::new(kind, start);
    for event in 0..EVENTS {
        if kind == SchedulerKind::MqDeadline {
            // A request that waits now seems to have started its deadline less the expiry ago:
            // with an expiry of 0 half a second from now, which is waited for.
            let expiry = match event % 500 {
                400 => Some(0),
                499 => Some(500),
                _ => None,
            };
            expiry.map(|ms| run.elevator.set_tunable(run.now, "read_expire", ms).expect("its own"));
        }
        run.step();
    }
    let emitted = run.elevator.trace().take();
    assert!(
        emitted.first().is_some_and(|&(at, _)| at == Instant::START),
        "the elevator's own clock"
    );
    run.log.extend(emitted.iter().map(|(at, event)| format!("{at:?} {event:?}")));
    (run.log, run.timeouts)
}

#[test]
fn every_scheduler_decides_alike_whatever_the_clock_of_its_caller_shows() {
    for kind in SchedulerKind::ALL {
        let (from_start, timeouts) = decisions(kind, Instant::START);
        assert!(timeouts > 0 || kind == SchedulerKind::None, "{kind} had a timeout");
        for nanos in [0, 1, 999_999_999_999, u64::MAX / 3] {
            let (log, _) = decisions(kind, Instant::from_nanos(nanos));
            assert_eq!(log.len(), from_start.len(), "{kind} from {nanos} ns");
            for (line, expected) in log.iter().zip(&from_start) {
                assert_eq!(line, expected, "{kind} from {nanos} ns");
            }
        }
    }
}

/// What is fitted is set as the elevator is made, at whatever time that is.
#[test]
fn fitted_elevator_begins_where_the_clock_of_its_caller_is() {
    for kind in SchedulerKind::ALL {
        let boot = Instant::from_nanos(3);
        let scheduler = AnyScheduler::new(kind, Recorder::default());
        let medium = Medium::NotRotational;
        let mut elevator = Elevator::fitted(scheduler, Device::solid_state(1), medium, boot);
        elevator.handle_timeout(boot);
        assert_eq!(elevator.clock().elevator_time(boot), Instant::START);
        assert_eq!(elevator.clock().caller_time(Instant::START), boot);
    }
}

#[test]
#[should_panic(expected = "time does not go back")]
fn event_before_the_elevator_was_made_is_refused() {
    let scheduler = AnyScheduler::new(SchedulerKind::None, Recorder::default());
    let made = Instant::from_nanos(1000);
    let mut elevator = Elevator::new(scheduler, Device::disk(1), made);
    elevator.handle_timeout(Instant::from_nanos(999));
}
