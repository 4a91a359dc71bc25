//! The accounts of groups: where the time went, to the nanosecond.

mod shares;

use std::num::NonZeroU64;

use paternoster::scheduler::Scheduler as _;
use paternoster::{
    AnyScheduler, Bio, Cause, Device, Elevator, FrontCause, GroupId, GroupLimits, Instant, IoPrio,
    IocId, Nanos, Op, Outside, RequestId, SchedulerKind, Sector, SectorCount, Submitted,
    TimeAccounts, Weight,
};
use proptest::prelude::*;

/// An elevator with groups, and its clock.
struct Rig {
    elevator: Elevator<AnyScheduler<TimeAccounts>>,
    now: Instant,
    groups: Vec<(GroupId, IocId)>,
    in_device: Vec<RequestId>,
}

impl Rig {
    fn new(kind: SchedulerKind, device: Device, groups: usize) -> Self {
        let now = Instant::START;
        let scheduler = AnyScheduler::new(kind, TimeAccounts::default());
        let mut elevator = Elevator::new(scheduler, device, now);
        let root = elevator.groups().root();
        let groups = (0..groups).map(|_| {
            let group = elevator.add_group(now, root, Weight::default());
            (group, elevator.add_io_context(now, IoPrio::default(), group))
        });
        let groups = groups.collect();
        Self { elevator, now, groups, in_device: Vec::new() }
    }

    fn advance(&mut self, micros: u64) {
        self.now = self.now + Nanos::from_micros(micros);
    }

    /// A group below another one.
    fn group_below(&mut self, parent: usize) -> usize {
        let (parent, _) = self.groups[parent];
        let group = self.elevator.add_group(self.now, parent, Weight::default());
        let ioc = self.elevator.add_io_context(self.now, IoPrio::default(), group);
        self.groups.push((group, ioc));
        self.groups.len() - 1
    }

    /// A group reads 4 KiB, and everything is dispatched that may be.
    fn read(&mut self, group: usize, sector: u64) {
        self.submit(group, Op::Read, sector);
        self.dispatch();
    }

    /// A group submits 4 KiB, and nobody asks the scheduler yet.
    fn submit(&mut self, group: usize, op: Op, sector: u64) {
        let bio = Bio::new(op, self.groups[group].1, Sector(sector), SectorCount(8));
        let submitted = self.elevator.submit(self.now, bio);
        assert!(!matches!(submitted, Submitted::Later(_)), "there is room");
    }

    /// It submits so many, far from each other.
    fn submit_many(&mut self, group: usize, op: Op, count: u64) {
        for at in 0..count {
            self.submit(group, op, (group as u64 * 10_000 + at) * 1000);
        }
    }

    fn limit(&mut self, group: usize, limits: GroupLimits) {
        self.elevator.set_group_limits(self.now, self.groups[group].0, limits);
        self.dispatch();
    }

    /// A device that takes so many µs for each request, one after the other, until that many µs
    /// have passed. A timeout is handled when it comes; `each` is called after each event.
    fn serve(&mut self, took: u64, micros: u64, mut each: impl FnMut(&mut Self)) {
        let end = self.now + Nanos::from_micros(micros);
        self.dispatch();
        let mut free = self.now + Nanos::from_micros(took);
        loop {
            let done = (!self.in_device.is_empty()).then_some(free);
            let timeout = self.elevator.poll_timeout();
            let next = [done, timeout].into_iter().flatten().min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            if timeout.is_some_and(|at| at <= self.now) {
                self.elevator.handle_timeout(self.now);
            }
            let was_idle = self.in_device.is_empty();
            if done.is_some_and(|at| at <= self.now) {
                self.complete(0);
            }
            self.dispatch();
            if was_idle || done.is_some_and(|at| at <= self.now) {
                free = self.now + Nanos::from_micros(took);
            }
            each(self);
        }
        self.now = end;
    }

    /// For how long caps of the group itself held something, as the scheduler counts it.
    fn capped_micros(&self, group: usize) -> u64 {
        let stats = self.elevator.scheduler().own_stats(self.now, self.groups[group].0).share;
        stats.expect("wfq counts").capped(self.now).as_nanos() / 1000
    }

    fn dispatch(&mut self) {
        while let Some(rq) = self.elevator.dispatch(self.now) {
            self.in_device.push(rq);
        }
    }

    /// The device is done with a request, the first that it was given being 0.
    fn complete(&mut self, index: usize) {
        let rq = self.in_device.remove(index);
        let _ = self.elevator.complete(self.now, rq);
        self.dispatch();
    }

    /// What a cause of a group has now, in µs.
    fn micros(&mut self, group: usize, cause: Cause) -> u64 {
        let now = self.now;
        let group = self.groups[group].0;
        self.elevator.trace().close(now, [group]);
        let times = self.elevator.trace().times(group);
        times.of(cause).as_nanos() / 1000
    }

    fn took(&mut self, group: usize) -> [u64; 2] {
        let times = self.elevator.trace().times(self.groups[group].0);
        [times.served, times.idled].map(|time| time.as_nanos() / 1000)
    }
}

#[test]
fn group_waits_behind_those_whom_the_device_serves() {
    let mut rig = Rig::new(SchedulerKind::None, Device::solid_state(1), 2);
    rig.read(0, 0);
    rig.read(0, 800);
    rig.read(1, 1600);
    rig.advance(100);
    rig.complete(0);
    // The second one of 0 has gone; 1 is next.
    rig.advance(40);
    rig.complete(0);
    assert_eq!(rig.micros(0, Cause::Busy), 100);
    assert_eq!(rig.micros(0, Cause::Turn), 0);
    assert_eq!(rig.micros(0, Cause::TooFew), 40);
    assert_eq!(rig.micros(1, Cause::Turn), 140);
    assert_eq!(rig.micros(1, Cause::Busy), 0);
    assert_eq!((rig.took(0), rig.took(1)), ([140, 0], [0, 0]));
    rig.advance(7);
    rig.complete(0);
    rig.advance(3);
    assert_eq!(rig.micros(1, Cause::TooFew), 7);
    assert_eq!(rig.micros(1, Cause::Nothing), 3);
    assert_eq!(rig.micros(0, Cause::Nothing), 10);
}

#[test]
fn device_that_has_answered_nobody_yet_is_what_is_waited_for() {
    let mut rig = Rig::new(SchedulerKind::None, Device::solid_state(1), 2);
    rig.read(0, 0);
    rig.read(1, 800);
    rig.read(0, 1600);
    rig.advance(50);
    assert_eq!([rig.micros(0, Cause::Busy), rig.micros(1, Cause::Busy)], [50, 50]);
    rig.advance(5);
    rig.complete(0);
    // What was read before stays so.
    assert_eq!([rig.micros(0, Cause::Busy), rig.micros(1, Cause::Busy)], [55, 50]);
    assert_eq!([rig.micros(0, Cause::Turn), rig.micros(1, Cause::Turn)], [0, 5]);
}

#[test]
fn window_that_the_device_idles_in_is_whose_it_is_for() {
    let mut rig = Rig::new(SchedulerKind::Cfq, Device::disk(4), 2);
    rig.read(0, 0);
    rig.advance(500);
    rig.complete(0);
    // The device idles for the reader's next request.
    rig.advance(100);
    rig.read(1, 1_000_000);
    assert_eq!(rig.in_device, [], "it idles");
    rig.advance(900);
    rig.read(0, 8);
    assert_eq!(rig.in_device.len(), 1);
    assert_eq!(rig.micros(1, Cause::IdleWindow), 900);
    assert_eq!((rig.took(0), rig.took(1)), ([0, 900], [0, 0]));
}

/// The causes of a server: its memory is used up, and replies wait to be read.
const MEMORY: FrontCause = FrontCause::First;
const UNREAD: FrontCause = FrontCause::Second;

#[test]
fn what_is_held_back_outside_counts_while_nothing_waits() {
    let mut rig = Rig::new(SchedulerKind::None, Device::solid_state(1), 1);
    let note = |rig: &mut Rig, outside| {
        let (now, group) = (rig.now, rig.groups[0].0);
        rig.elevator.trace().note_outside(now, group, outside);
    };
    rig.read(0, 0);
    note(&mut rig, Outside::Holds(MEMORY));
    rig.advance(10);
    note(&mut rig, Outside::Holds(UNREAD));
    rig.advance(20);
    // With something in the device, replies on their way are no reason.
    note(&mut rig, Outside::IfIdle(UNREAD));
    rig.advance(30);
    rig.complete(0);
    rig.advance(40);
    note(&mut rig, Outside::Free);
    rig.advance(50);
    let [memory, unread] = [MEMORY, UNREAD].map(Cause::Front);
    let expected = [(memory, 10), (unread, 60), (Cause::TooFew, 30), (Cause::Nothing, 50)];
    for (cause, micros) in expected {
        assert_eq!(rig.micros(0, cause), micros, "{cause:?}");
    }
    // That memory is short is no reason either where a request waits.
    rig.read(0, 0);
    rig.read(0, 800);
    note(&mut rig, Outside::Holds(MEMORY));
    rig.advance(60);
    assert_eq!([rig.micros(0, memory), rig.micros(0, Cause::Busy)], [10, 60]);
}

#[test]
fn accounts_go_on_under_another_scheduler() {
    let mut rig = Rig::new(SchedulerKind::Cfq, Device::solid_state(1), 1);
    rig.read(0, 0);
    rig.read(0, 800);
    rig.advance(10);
    let accounts = std::mem::take(rig.elevator.trace());
    let now = rig.now;
    rig.elevator.switch(now, AnyScheduler::new(SchedulerKind::Bfq, accounts));
    rig.dispatch();
    rig.advance(20);
    rig.complete(0);
    assert_eq!(rig.micros(0, Cause::Busy), 30);
    rig.advance(5);
    rig.complete(0);
    assert_eq!([rig.micros(0, Cause::TooFew), rig.micros(0, Cause::Nothing)], [5, 0]);
}

fn reads_capped_at(rate: u64) -> GroupLimits {
    GroupLimits { riops: NonZeroU64::new(rate), ..GroupLimits::NONE }
}

/// Groups under wfq, at a fixed depth and with a burst of a millisecond.
fn fair(groups: usize, depth: i64) -> Rig {
    let mut rig = Rig::new(SchedulerKind::Wfq, Device::solid_state(32), groups);
    rig.elevator.set_nr_requests(None);
    for (name, value) in [("depth", depth), ("burst", 1), ("keep_slots", 0)] {
        rig.elevator.set_tunable(rig.now, name, value).expect("its own");
    }
    rig
}

/// A request takes 70 µs, so 1000 a second keep A out of the device's queue for most of the time:
/// each waits for two of B's at most after its cap lets it go.
#[test]
fn time_that_a_cap_holds_a_busy_group_is_the_cap_s_beside_a_neighbour() {
    let mut rig = fair(2, 1);
    rig.limit(0, reads_capped_at(1000));
    rig.submit_many(0, Op::Read, 200);
    rig.submit_many(1, Op::Read, 2000);
    rig.serve(70, 100_000, |rig| {
        assert_eq!(rig.micros(0, Cause::Cap), rig.capped_micros(0));
    });
    let cap = rig.micros(0, Cause::Cap);
    assert_eq!(cap, rig.capped_micros(0));
    assert!((86_000..100_000).contains(&cap), "{cap}");
    assert_eq!(rig.micros(1, Cause::Cap), 0);
    // Without the cap it waits for its turn alone.
    rig.limit(0, GroupLimits::NONE);
    rig.serve(70, 2000, |_| {});
    assert_eq!(rig.micros(0, Cause::Cap), cap);
    let (now, group) = (rig.now, rig.groups[0].0);
    rig.elevator.trace().close(now, [group]);
    let times = rig.elevator.trace().times(group);
    let waits = times.of(Cause::Turn) + times.of(Cause::Busy);
    assert_eq!(waits.as_nanos() / 1000, 102_000 - cap);
}

#[test]
fn caps_of_the_scheduler_before_hold_nobody() {
    let mut rig = fair(1, 1);
    rig.limit(0, reads_capped_at(1));
    rig.submit_many(0, Op::Read, 4);
    rig.serve(70, 5000, |_| {});
    let cap = rig.micros(0, Cause::Cap);
    assert_eq!(cap, 5000, "the first went at once");
    let accounts = std::mem::take(rig.elevator.trace());
    rig.elevator.switch(rig.now, AnyScheduler::new(SchedulerKind::None, accounts));
    rig.serve(70, 1000, |_| {});
    assert_eq!(rig.micros(0, Cause::Cap), cap);
}

/// p{a, b, w} beside c: p may read 1000 times a second. b comes late, and w writes.
#[test]
fn cap_of_a_group_holds_those_below_it_by_what_they_ask_for() {
    let mut rig = fair(2, 1);
    let [a, b, w] = [0; 3].map(|parent| rig.group_below(parent));
    rig.limit(0, reads_capped_at(1000));
    rig.submit_many(a, Op::Read, 200);
    rig.submit_many(w, Op::Write, 2000);
    rig.submit_many(1, Op::Read, 2000);
    rig.serve(70, 50_000, |rig| assert_eq!(rig.micros(a, Cause::Cap), rig.capped_micros(0)));
    let before = rig.capped_micros(0);
    rig.submit_many(b, Op::Read, 200);
    rig.serve(70, 50_000, |_| {});
    let capped = rig.capped_micros(0);
    assert!(capped > 80_000, "{capped}");
    assert_eq!(rig.micros(a, Cause::Cap), capped);
    assert_eq!(rig.micros(b, Cause::Cap), capped - before);
    assert_eq!([rig.micros(w, Cause::Cap), rig.micros(0, Cause::Cap)], [0, 0]);
    assert_eq!(rig.micros(0, Cause::Nothing), 100_000);
}

/// The time in which the device has fewer than four and B has something waiting: nothing but the
/// target of A holds it.
#[test]
fn places_held_free_for_a_target_are_the_target_s() {
    let mut rig = fair(2, 4);
    rig.limit(
        0,
        GroupLimits { latency_target: Some(Nanos::from_micros(1500)), ..GroupLimits::NONE },
    );
    rig.submit_many(0, Op::Read, 1);
    rig.submit_many(1, Op::Read, 3000);
    let (mut held, mut since, mut sector) = (0, None, 0);
    rig.serve(500, 900_000, |rig| {
        if let Some(from) = since.take() {
            held += rig.now.saturating_since(from).as_nanos() / 1000;
        }
        let stats = rig.elevator.scheduler().own_stats(rig.now, rig.groups[0].0).share;
        if stats.expect("wfq counts").target.requests > sector / 8 {
            sector += 8;
            rig.read(0, sector);
        }
        if rig.in_device.len() < 4 {
            since = Some(rig.now);
        }
    });
    let held = held + since.map_or(0, |from| rig.now.saturating_since(from).as_nanos() / 1000);
    assert!(held > 10_000, "{held}");
    assert_eq!(rig.micros(1, Cause::Target), held);
    assert_eq!(rig.micros(0, Cause::Target), 0);
}

/// What happens next: after so many µs, and to which group.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read {
        group: usize,
        sector: u64,
    },
    /// A read that nobody asks the scheduler for yet.
    Submit {
        group: usize,
        sector: u64,
    },
    /// Reads a second; 0 is no cap.
    Cap {
        group: usize,
        riops: u64,
    },
    Complete,
    Requeue,
    Pass,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let read = (0..3usize, 0..100_000u64).prop_map(|(group, sector)| Step::Read { group, sector });
    let submit =
        (0..3usize, 0..100_000u64).prop_map(|(group, sector)| Step::Submit { group, sector });
    let riops = prop_oneof![Just(0), 10..20_000u64];
    let cap = (0..3usize, riops).prop_map(|(group, riops)| Step::Cap { group, riops });
    let step = prop_oneof![
        4 => read,
        2 => submit,
        1 => cap,
        3 => Just(Step::Complete),
        1 => Just(Step::Requeue),
        1 => Just(Step::Pass),
    ];
    (0..300u64, step)
}

fn take(rig: &mut Rig, step: Step) {
    match step {
        Step::Read { group, sector } => rig.read(group, sector),
        Step::Submit { group, sector } => rig.submit(group, Op::Read, sector),
        Step::Cap { group, riops } => rig.limit(group, reads_capped_at(riops)),
        Step::Complete if !rig.in_device.is_empty() => rig.complete(0),
        Step::Requeue if !rig.in_device.is_empty() => {
            let rq = rig.in_device.remove(0);
            rig.elevator.requeue(rig.now, rq);
            rig.dispatch();
        }
        Step::Complete | Step::Requeue | Step::Pass => {}
    }
}

proptest! {
    /// At any moment the causes of each group are all time, and the first six are what the
    /// statistics call backlogged. Under wfq what is the caps' is what it counts itself.
    #[test]
    fn every_nanosecond_has_one_cause_under_every_scheduler(
        steps in prop::collection::vec(step(), 1..200),
        depth in 1..5u32,
    ) {
        for kind in SchedulerKind::ALL {
            let mut rig = Rig::new(kind, Device::disk(depth), 3);
            for &(micros, step) in &steps {
                rig.advance(micros);
                if rig.elevator.poll_timeout().is_some_and(|at| at <= rig.now) {
                    rig.elevator.handle_timeout(rig.now);
                    rig.dispatch();
                }
                take(&mut rig, step);
                check_sums(&mut rig, kind);
            }
        }
    }
}

fn check_sums(rig: &mut Rig, kind: SchedulerKind) {
    let now = rig.now;
    for &(group, _) in &rig.groups.clone() {
        rig.elevator.trace().close(now, [group]);
        let times = rig.elevator.trace().times(group);
        let sum = |causes: &[Cause]| -> u64 {
            causes.iter().map(|&cause| times.of(cause).as_nanos()).sum()
        };
        let backlogged = rig.elevator.stats().group(group).backlogged(now).as_nanos();
        assert_eq!(sum(&Cause::ALL[..6]), backlogged, "{kind} at {now:?}");
        assert_eq!(sum(&Cause::ALL), now.since_start().as_nanos(), "{kind} at {now:?}");
        let shares = rig.elevator.scheduler().own_stats(now, group).share;
        let capped = shares.map_or(Nanos::ZERO, |shares| shares.capped(now));
        assert_eq!(times.of(Cause::Cap), capped, "{kind} at {now:?}");
    }
}
