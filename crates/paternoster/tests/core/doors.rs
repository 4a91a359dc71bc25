//! What the elevator does not take: a bio whose sectors cannot be counted, limits at which lengths
//! could not be, keys that are gone. Behind that nothing wraps.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use paternoster::scheduler::Work;
use paternoster::{
    AnyScheduler, Arrival, Bio, Device, DeviceWeights, Driver, Elevator, Instant, IoPrio, Limits,
    NoTrace, Op, SchedulerKind, Sector, SectorCount, Submitted, Weight,
};

const NOW: Instant = Instant::START;

fn elevator(kind: SchedulerKind) -> Elevator<AnyScheduler<NoTrace>> {
    Elevator::new(AnyScheduler::new(kind, NoTrace), Device::disk(4), NOW)
}

/// What becomes of bio 7 with these sectors.
fn submit(op: Op, sector: u64, sectors: u32) -> Submitted {
    let mut elevator = elevator(SchedulerKind::None);
    let ioc = elevator.add_io_context(NOW, IoPrio::default(), elevator.groups().root());
    let (sector, sectors) = (Sector(sector), SectorCount(sectors));
    elevator.submit(NOW, Bio::new(op, ioc, sector, sectors).with_user_data(7))
}

/// It wrapped in a release build, and was served as if it ended at sector 3.
#[test]
#[should_panic(
    expected = "bio 7: Write of 8 sectors at sector 18446744073709551611 ends beyond sector 2⁶⁴ − 1"
)]
fn bio_that_ends_beyond_the_last_sector_that_there_can_be_is_refused() {
    let _refused = submit(Op::Write, u64::MAX - 4, 8);
}

#[test]
#[should_panic(expected = "bio 7: Read of 0 sectors: a flush has none, and nothing else has none")]
fn read_without_sectors_is_refused() {
    let _refused = submit(Op::Read, 100, 0);
}

#[test]
#[should_panic(expected = "bio 7: Flush of 8 sectors: a flush has none, and nothing else has none")]
fn flush_with_sectors_is_refused() {
    let _refused = submit(Op::Flush, 0, 8);
}

#[test]
fn bios_at_both_ends_of_what_can_be_counted_are_served_by_every_scheduler() {
    for kind in SchedulerKind::ALL {
        let mut elevator = elevator(kind);
        let ioc = elevator.add_io_context(NOW, IoPrio::default(), elevator.groups().root());
        let mut driver = Driver::new(elevator);
        let ends = [0, u64::MAX - 8, 8, u64::MAX - 16, u64::MAX / 2];
        for (sector, user_data) in ends.into_iter().zip(0..) {
            let bio = Bio::read(ioc, Sector(sector), SectorCount(8)).with_user_data(user_data);
            assert_ne!(driver.submit(NOW, bio), Arrival::Waiting, "there is room");
        }
        let mut now = NOW;
        let mut started = VecDeque::new();
        let mut served = vec![];
        while served.len() < ends.len() {
            driver.dispatch(now, |_, rq| started.push_back(rq));
            driver.check();
            if let Some(rq) = started.pop_front() {
                served.extend(driver.complete(now, rq));
            } else if let Some(at) = driver.poll_timeout() {
                now = at.max(now);
                driver.handle_timeout(now);
            }
        }
        served.sort_unstable();
        assert_eq!(served, [0, 1, 2, 3, 4], "{kind}");
    }
}

#[test]
fn end_of_a_bio_that_no_elevator_takes_does_not_wrap() {
    assert_eq!(Sector(u64::MAX - 4) + SectorCount(8), Sector(u64::MAX));
}

/// Two bios of 3 · 2³⁰ sectors became one request of 2³² − 1.
#[test]
#[should_panic(expected = "a request has 1 to 2³² − 2 sectors")]
fn limit_at_which_a_length_could_not_be_counted_is_refused() {
    let limits = Limits::default().with_max_sectors(u32::MAX);
    elevator(SchedulerKind::MqDeadline).set_limits(limits);
}

/// It was found out as the first request was made, far from the mistake.
#[test]
#[should_panic(expected = "the group is gone")]
fn io_context_of_a_group_that_is_gone_is_refused() {
    let mut elevator = elevator(SchedulerKind::None);
    let group = elevator.add_group(NOW, elevator.groups().root(), Weight::default());
    elevator.remove_group(NOW, group);
    let _ioc = elevator.add_io_context(NOW, IoPrio::default(), group);
}

/// Calls `misuse`, and returns what it panics with.
fn panic_of(misuse: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(misuse)).expect_err("it is refused");
    let text = panic.downcast_ref::<String>().cloned();
    text.or(panic.downcast_ref::<&str>().map(ToString::to_string)).expect("a text")
}

/// A request has completed and another has its slot: the first one's key names neither.
#[test]
fn key_of_a_request_that_has_completed_is_refused_everywhere() {
    let mut elevator = elevator(SchedulerKind::None);
    let ioc = elevator.add_io_context(NOW, IoPrio::default(), elevator.groups().root());
    let start = |elevator: &mut Elevator<_>, sector| {
        let bio = Bio::read(ioc, Sector(sector), SectorCount(8));
        assert!(matches!(elevator.submit(NOW, bio), Submitted::Queued(_)));
        elevator.dispatch(NOW).expect("there is room")
    };
    let gone = start(&mut elevator, 0);
    let _completed = elevator.complete(NOW, gone);
    let other = start(&mut elevator, 800);
    let once = "a request is completed or requeued once";
    assert_eq!(panic_of(|| _ = elevator.complete(NOW, gone)), once);
    assert_eq!(panic_of(|| elevator.requeue(NOW, gone)), once);
    assert_eq!(panic_of(|| _ = elevator.request(gone)), "a request that exists");
    assert_eq!(elevator.request(other).sector, Sector(800));
}

#[test]
fn key_of_an_io_context_that_has_exited_is_refused_everywhere() {
    let mut elevator = elevator(SchedulerKind::None);
    let root = elevator.groups().root();
    let gone = elevator.add_io_context(NOW, IoPrio::default(), root);
    elevator.exit_io_context(NOW, gone);
    let _other = elevator.add_io_context(NOW, IoPrio::default(), root);
    let why = "the I/O context is gone";
    let bio = Bio::read(gone, Sector(0), SectorCount(8));
    assert_eq!(panic_of(|| _ = elevator.submit(NOW, bio)), why);
    assert_eq!(panic_of(|| elevator.set_io_priority(NOW, gone, IoPrio::IDLE)), why);
    assert_eq!(panic_of(|| elevator.move_to_group(NOW, gone, root)), why);
    assert_eq!(panic_of(|| elevator.exit_io_context(NOW, gone)), why);
    assert_eq!(panic_of(|| _ = elevator.group_of(gone)), why);
}

#[test]
fn key_of_a_group_that_was_removed_is_refused_everywhere() {
    let mut elevator = elevator(SchedulerKind::None);
    let root = elevator.groups().root();
    let gone = elevator.add_group(NOW, root, Weight::default());
    elevator.remove_group(NOW, gone);
    let _other = elevator.add_group(NOW, root, Weight::default());
    let ioc = elevator.add_io_context(NOW, IoPrio::default(), root);
    let why = "the group is gone";
    let weights = Weight::default().into();
    assert_eq!(panic_of(|| _ = elevator.add_group(NOW, gone, Weight::default())), why);
    assert_eq!(panic_of(|| elevator.remove_group(NOW, gone)), why);
    assert_eq!(panic_of(|| elevator.set_weight(NOW, gone, weights)), why);
    let own = DeviceWeights::default();
    assert_eq!(panic_of(|| elevator.set_device_weights(NOW, gone, own)), why);
    let limits = *elevator.groups()[root].limits();
    assert_eq!(panic_of(|| elevator.set_group_limits(NOW, gone, limits)), why);
    assert_eq!(panic_of(|| _ = elevator.add_io_context(NOW, IoPrio::default(), gone)), why);
    assert_eq!(panic_of(|| _ = elevator.stats().group(gone)), why);
    assert_eq!(panic_of(|| elevator.move_to_group(NOW, ioc, gone)), why);
    assert_eq!(panic_of(|| elevator.charge(NOW, gone, Work::Ops(1))), why);
    assert_eq!(panic_of(|| _ = elevator.groups()[gone].weight()), why);
}

#[test]
#[should_panic(expected = "time does not go back")]
fn event_before_the_last_one_is_refused() {
    let mut elevator = elevator(SchedulerKind::None);
    elevator.handle_timeout(NOW);
    elevator.handle_timeout(Instant::from_nanos(NOW.as_nanos() - 1));
}
