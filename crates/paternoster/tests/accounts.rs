//! The accounts of groups: where the time went, to the nanosecond.

use paternoster::{
    AnyScheduler, Bio, Cause, Device, Elevator, GroupId, Instant, IoPrio, IocId, Nanos, Outside,
    RequestId, SchedulerKind, Sector, SectorCount, Submitted, TimeAccounts, Weight,
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

    /// A group reads 4 KiB, and everything is dispatched that may be.
    fn read(&mut self, group: usize, sector: u64) {
        let bio = Bio::read(self.groups[group].1, Sector(sector), SectorCount(8));
        let submitted = self.elevator.submit(self.now, bio);
        assert!(!matches!(submitted, Submitted::Later(_)), "there is room");
        self.dispatch();
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
        self.elevator.trace().close_all(now);
        let times = self.elevator.trace().times(self.groups[group].0);
        times.of(cause).as_nanos() / 1000
    }

    fn took(&mut self, group: usize) -> [u64; 2] {
        let times = self.elevator.trace().times(self.groups[group].0);
        [times.went_first, times.idled].map(|time| time.as_nanos() / 1000)
    }
}

#[test]
fn group_waits_behind_those_who_go_first_and_then_for_the_device() {
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
    assert_eq!(rig.micros(1, Cause::Turn), 100);
    assert_eq!(rig.micros(1, Cause::Busy), 40);
    assert_eq!((rig.took(0), rig.took(1)), ([100, 0], [40, 0]));
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
    assert_eq!([rig.micros(0, Cause::Busy), rig.micros(1, Cause::Busy)], [50, 55]);
    assert_eq!([rig.micros(0, Cause::Turn), rig.micros(1, Cause::Turn)], [5, 0]);
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

#[test]
fn what_is_held_back_outside_counts_while_nothing_waits() {
    let mut rig = Rig::new(SchedulerKind::None, Device::solid_state(1), 1);
    let note = |rig: &mut Rig, outside| {
        let (now, group) = (rig.now, rig.groups[0].0);
        rig.elevator.trace().note_outside(now, group, outside);
    };
    rig.read(0, 0);
    note(&mut rig, Outside::Memory);
    rig.advance(10);
    note(&mut rig, Outside::Unread { holds: true });
    rig.advance(20);
    // With something in the device, replies on their way are no reason.
    note(&mut rig, Outside::Unread { holds: false });
    rig.advance(30);
    rig.complete(0);
    rig.advance(40);
    note(&mut rig, Outside::Free);
    rig.advance(50);
    let expected =
        [(Cause::Memory, 10), (Cause::Unread, 60), (Cause::TooFew, 30), (Cause::Nothing, 50)];
    for (cause, micros) in expected {
        assert_eq!(rig.micros(0, cause), micros, "{cause:?}");
    }
    // Memory is no reason either where a request waits.
    rig.read(0, 0);
    rig.read(0, 800);
    note(&mut rig, Outside::Memory);
    rig.advance(60);
    assert_eq!([rig.micros(0, Cause::Memory), rig.micros(0, Cause::Busy)], [10, 60]);
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

/// What happens next: after so many µs, and to which group.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read { group: usize, sector: u64 },
    Complete,
    Requeue,
    Pass,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let read = (0..3usize, 0..100_000u64).prop_map(|(group, sector)| Step::Read { group, sector });
    let step = prop_oneof![
        4 => read,
        3 => Just(Step::Complete),
        1 => Just(Step::Requeue),
        1 => Just(Step::Pass),
    ];
    (0..300u64, step)
}

fn take(rig: &mut Rig, step: Step) {
    match step {
        Step::Read { group, sector } => rig.read(group, sector),
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
    /// At any moment the causes of each group are all time, and the first five are what the
    /// statistics call backlogged.
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
    rig.elevator.trace().close_all(now);
    for &(group, _) in &rig.groups.clone() {
        let times = rig.elevator.trace().times(group);
        let sum = |causes: &[Cause]| -> u64 {
            causes.iter().map(|&cause| times.of(cause).as_nanos()).sum()
        };
        let backlogged = rig.elevator.stats().group(group).backlogged(now).as_nanos();
        assert_eq!(sum(&Cause::ALL[..5]), backlogged, "{kind} at {now:?}");
        assert_eq!(sum(&Cause::ALL), now.since_start().as_nanos(), "{kind} at {now:?}");
    }
}
