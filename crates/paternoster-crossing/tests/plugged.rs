//! Plugs and the crossing together, as an engine has them: submitters on threads of their own, each
//! with a plug, and an owner with the elevator. Nothing is lost and nothing comes twice while the
//! owner switches through all schedulers.

use std::collections::VecDeque;
use std::thread::{self, Thread};
use std::time::{Duration, Instant as Moment};

use paternoster::{
    AnyScheduler, Batch, Bio, Device, Driver, Elevator, FlushReason, HandOver, Instant, IoPrio,
    IocId, Nanos, NoTrace, Plug, PlugLimits, PlugRules, SchedulerKind, Sector, SectorCount,
};
use paternoster_crossing::{Inbox, Outbox, Sent, Wake};

const SUBMITTERS: usize = 4;
const EACH: usize = 20_000;
/// The owner switches schedulers after so many completions.
const SWITCH_AFTER: usize = 3_000;
/// What has not come after so long is lost.
const LOST_AFTER: Duration = Duration::from_secs(10);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// One clock for all threads.
#[derive(Clone, Copy)]
struct Clock(Moment);

impl Clock {
    fn now(self) -> Instant {
        let nanos = u64::try_from(self.0.elapsed().as_nanos()).expect("a test is short");
        Instant::START + Nanos::new(nanos)
    }
}

/// Sends batches, and keeps those for which the ring has no room, in order.
struct Sender {
    outbox: Outbox<Batch>,
    kept: VecDeque<Batch>,
}

impl Sender {
    fn send_kept(&mut self) {
        while let Some(batch) = self.kept.pop_front() {
            match self.outbox.send(batch) {
                Sent::Quietly | Sent::Woke => {}
                Sent::Full(batch) => return self.kept.push_front(batch),
                Sent::Gone(_) => panic!("the owner takes all"),
            }
        }
    }
}

impl HandOver<()> for Sender {
    fn hand_over(&mut self, (): (), batch: Batch) {
        self.kept.push_back(batch);
        self.send_kept();
    }
}

/// Reads, eight sectors each: runs of four that adjoin, far from one another.
fn submit_all(number: usize, ioc: IocId, outbox: Outbox<Batch>, clock: Clock) {
    let mut plug = Plug::new(PlugLimits::default(), Sender { outbox, kept: VecDeque::new() });
    for nth in 0..EACH {
        let name = (number * EACH + nth) as u64;
        let sector = Sector(name / 4 * 1000 + name % 4 * 8);
        let bio = Bio::read(ioc, sector, SectorCount(8)).with_user_data(name);
        plug.submit(clock.now(), (), bio, &PlugRules::default());
        if nth % 100 == 99 {
            plug.flush(clock.now(), FlushReason::Wait);
        }
    }
    plug.flush(clock.now(), FlushReason::Wait);
    assert!(plug.stats().merges > 0, "runs adjoin");
    while !plug.receiver().kept.is_empty() {
        plug.receiver().send_kept();
        thread::yield_now();
    }
}

/// The elevator, before a device that takes one request at a time and is done at once.
struct Owner {
    driver: Driver<AnyScheduler<NoTrace>>,
    clock: Clock,
    /// How often each bio has completed.
    completed: Vec<u32>,
    done: usize,
    /// How often the scheduler was switched.
    switched: usize,
}

impl Owner {
    fn new(clock: Clock) -> Self {
        let scheduler = AnyScheduler::new(SchedulerKind::ALL[0], NoTrace);
        let mut elevator = Elevator::new(scheduler, Device::solid_state(1), clock.now());
        elevator.set_nr_requests(None);
        let completed = vec![0; SUBMITTERS * EACH];
        Self { driver: Driver::new(elevator), clock, completed, done: 0, switched: 0 }
    }

    /// Serves all that may be served now.
    fn serve(&mut self) {
        loop {
            let mut started = None;
            self.driver.dispatch(self.clock.now(), |_, rq| started = Some(rq));
            let Some(rq) = started else {
                if self.driver.poll_timeout().is_none_or(|due| due > self.clock.now()) {
                    return;
                }
                self.driver.handle_timeout(self.clock.now());
                continue;
            };
            for name in self.driver.complete(self.clock.now(), rq) {
                self.completed[usize::try_from(name).expect("an index")] += 1;
                self.done += 1;
            }
            if self.done / SWITCH_AFTER > self.switched {
                self.switched = self.done / SWITCH_AFTER;
                let kind = SchedulerKind::ALL[self.switched % SchedulerKind::ALL.len()];
                let (now, to) = (self.clock.now(), AnyScheduler::new(kind, NoTrace));
                self.driver.administer(|elevator| drop(elevator.switch(now, to)));
            }
        }
    }

    /// Waits to be woken, or until the scheduler wants to be asked.
    fn wait(&self) {
        let due = self.driver.poll_timeout();
        let longest = due.map_or(LOST_AFTER, |due| {
            Duration::from_nanos(due.saturating_since(self.clock.now()).as_nanos())
        });
        let begin = Moment::now();
        thread::park_timeout(longest);
        let is_lost = due.is_none() && begin.elapsed() >= LOST_AFTER;
        assert!(!is_lost, "{} of {} have come", self.done, self.completed.len());
    }
}

#[test]
fn nothing_is_lost_or_doubled_from_plugs_on_four_threads_to_six_schedulers() {
    let clock = Clock(Moment::now());
    let mut owner = Owner::new(clock);
    let mut inbox = Inbox::new(Unpark(thread::current()));
    let submitters: Vec<_> = (0..SUBMITTERS)
        .map(|number| {
            let ioc = owner.driver.administer(|elevator| {
                let root = elevator.groups().root();
                elevator.add_io_context(clock.now(), IoPrio::default(), root)
            });
            let door = inbox.door();
            thread::spawn(move || submit_all(number, ioc, door.enter(4), clock))
        })
        .collect();
    loop {
        inbox.take(|_, batch| owner.driver.submit_batch(clock.now(), batch));
        owner.serve();
        if owner.done == SUBMITTERS * EACH {
            break;
        }
        if inbox.fall_asleep() {
            owner.wait();
        }
        inbox.awake();
    }
    for submitter in submitters {
        submitter.join().expect("it ends");
    }
    assert!(owner.completed.iter().all(|&times| times == 1), "each once");
    assert!(owner.switched >= 20, "{} switches", owner.switched);
}
