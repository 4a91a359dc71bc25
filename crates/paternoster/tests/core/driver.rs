//! What the driver adds to an elevator: who was turned away enters in order of arrival, arrivals
//! are chosen among, and a dispatch that was forgotten is found out.

use paternoster::{
    Administration, AnyScheduler, Arrival, Bio, Device, Driver, Elevator, ElevatorEvent, Event,
    Instant, IoPrio, IocId, Nanos, Recorder, RequestId, SchedulerKind, Sector, SectorCount,
};

const NOW: Instant = Instant::START;

type AnyDriver = Driver<AnyScheduler<Recorder>>;
type Change = fn(&mut Administration<'_, AnyScheduler<Recorder>>);

fn scheduler(kind: SchedulerKind) -> AnyScheduler<Recorder> {
    AnyScheduler::new(kind, Recorder::default())
}

/// A driver of that scheduler on a device that takes one request at a time.
fn driver(kind: SchedulerKind, nr_requests: Option<u32>) -> (AnyDriver, IocId) {
    let mut elevator = Elevator::new(scheduler(kind), Device::solid_state(1), NOW);
    elevator.set_nr_requests(nr_requests);
    let ioc = elevator.add_io_context(NOW, IoPrio::default(), elevator.groups().root());
    (Driver::new(elevator), ioc)
}

/// A read of 8 sectors, which goes by its sector.
fn read(ioc: IocId, sector: u64) -> Bio {
    Bio::read(ioc, Sector(sector), SectorCount(8)).with_user_data(sector)
}

/// What starts at `now`, if anything does.
fn dispatch(driver: &mut AnyDriver, now: Instant) -> Option<RequestId> {
    let mut started = None;
    driver.dispatch(now, |_, rq| assert_eq!(started.replace(rq), None, "one at a time"));
    started
}

/// Serves all that there is, 1 ms each: the user data in the order of completion.
fn serve(driver: &mut AnyDriver) -> Vec<u64> {
    serve_from(driver, NOW)
}

fn serve_from(driver: &mut AnyDriver, mut now: Instant) -> Vec<u64> {
    let mut done = vec![];
    let mut started = dispatch(driver, now);
    loop {
        if let Some(rq) = started {
            now = now + Nanos::from_millis(1);
            done.extend(driver.complete(now, rq));
        } else if let Some(at) = driver.poll_timeout() {
            now = now.max(at);
            driver.handle_timeout(now);
        } else {
            return done;
        }
        started = dispatch(driver, now);
        driver.check();
    }
}

/// What waits in the driver.
fn waiting(driver: &AnyDriver) -> Vec<u64> {
    driver.turned_away().map(|bio| bio.user_data).collect()
}

/// Has that many reads arrive, which merge with none, and the first of them start.
fn reads(driver: &mut AnyDriver, ioc: IocId, count: u64) -> RequestId {
    for n in 0..count {
        driver.submit(NOW, read(ioc, 100 * n));
    }
    dispatch(driver, NOW).expect("the device is free")
}

/// One may exist. The others wait in the driver, and each enters when the one before it is done.
#[test]
fn bios_that_are_turned_away_enter_in_order_of_arrival() {
    for kind in SchedulerKind::ALL {
        let (mut driver, ioc) = driver(kind, Some(1));
        let sectors = [500, 100, 900, 300, 700];
        let waits = sectors.map(|sector| driver.submit(NOW, read(ioc, sector)) == Arrival::Waiting);
        assert_eq!(waits, [false, true, true, true, true], "{kind}");
        assert_eq!(waiting(&driver), [100, 900, 300, 700], "{kind}");
        assert_eq!(serve(&mut driver), sectors, "{kind}");
    }
}

/// mq-deadline begins with the oldest request and goes on upwards. All five are there at the first
/// dispatch: 700 and 900 follow 500; then the oldest that is left, 100, and upwards again.
#[test]
fn bios_that_arrive_together_are_chosen_among() {
    let (mut driver, ioc) = driver(SchedulerKind::MqDeadline, None);
    for sector in [500, 100, 900, 300, 700] {
        assert!(matches!(driver.submit(NOW, read(ioc, sector)), Arrival::Queued(_)));
    }
    assert_eq!(serve(&mut driver), [500, 700, 900, 100, 300]);
}

/// As above, a microsecond after each other: a driver may take in several arrivals before it
/// dispatches.
#[test]
fn bios_that_arrive_one_after_the_other_before_a_dispatch_are_chosen_among() {
    let (mut driver, ioc) = driver(SchedulerKind::MqDeadline, None);
    for (late, sector) in (0..).zip([500, 100, 900, 300, 700]) {
        driver.submit(NOW + Nanos::from_micros(late), read(ioc, sector));
    }
    assert_eq!(serve_from(&mut driver, NOW + Nanos::from_micros(4)), [500, 700, 900, 100, 300]);
}

/// Two may exist, and both start. The third enters when one of them is done, and starts then.
#[test]
fn requests_that_are_dispatched_one_by_one_are_followed_by_those_of_bios_that_were_called() {
    let (mut driver, ioc) = driver(SchedulerKind::None, Some(2));
    driver.administer(|elevator| elevator.set_depth(2));
    for sector in [500, 100, 900] {
        driver.submit(NOW, read(ioc, sector));
    }
    let mut started = vec![];
    while let Some(rq) = driver.dispatch_next(NOW) {
        started.push(rq);
    }
    assert_eq!((started.len(), waiting(&driver)), (2, vec![900]));
    driver.complete(NOW, started[0]);
    let third = driver.dispatch_next(NOW).expect("it was called");
    assert_eq!(driver.elevator().request(third).user_data(), [900]);
    assert_eq!(driver.dispatch_next(NOW), None);
    assert_eq!(driver.poll_timeout(), None);
}

#[test]
fn all_that_waits_is_given_up_inside_and_outside_the_elevator() {
    let (mut driver, ioc) = driver(SchedulerKind::None, Some(2));
    for sector in [500, 100, 900] {
        driver.submit(NOW, read(ioc, sector));
    }
    let started = dispatch(&mut driver, NOW).expect("the device is free");
    assert_eq!(driver.cancel_queued(NOW), [100, 900]);
    assert_eq!(dispatch(&mut driver, NOW), None);
    assert_eq!(driver.complete(NOW, started).as_slice(), [500]);
    assert_eq!(serve(&mut driver), [0; 0]);
}

/// Of 16 that may exist, an eighth has to be done before those who wait are called: two. Then two
/// of the four may enter, before what arrives later, and the others wait before it.
#[test]
fn called_bios_enter_before_an_arrival_and_are_turned_away_again_before_it() {
    let (mut driver, ioc) = driver(SchedulerKind::None, Some(16));
    let first = reads(&mut driver, ioc, 20);
    assert_eq!(waiting(&driver), [1600, 1700, 1800, 1900]);
    driver.complete(NOW, first);
    let second = dispatch(&mut driver, NOW).expect("15 wait");
    assert_eq!(waiting(&driver), [1600, 1700, 1800, 1900], "one is not enough");
    driver.complete(NOW, second);
    let third = dispatch(&mut driver, NOW).expect("14 wait");
    assert_eq!(waiting(&driver), [1800, 1900]);
    assert_eq!(driver.submit(NOW, read(ioc, 2000)), Arrival::Waiting);
    assert_eq!(waiting(&driver), [1800, 1900, 2000]);
    assert_eq!(dispatch(&mut driver, NOW), None, "the device is full");
    assert_eq!(driver.complete(NOW, third).as_slice(), [200]);
    let in_order: Vec<u64> = (3..=20).map(|n| 100 * n).collect();
    assert_eq!(serve(&mut driver), in_order, "they were served in order of arrival");
}

/// As many are called as may enter: who arrives right after the completion does so behind them.
#[test]
fn arrival_after_a_wake_up_enters_behind_those_who_were_called() {
    let (mut driver, ioc) = driver(SchedulerKind::None, Some(8));
    let first = reads(&mut driver, ioc, 9);
    assert_eq!(waiting(&driver), [800]);
    driver.complete(NOW, first);
    assert!(dispatch(&mut driver, NOW).is_some());
    assert_eq!(driver.submit(NOW, read(ioc, 900)), Arrival::Waiting, "the called one is in");
    assert_eq!(waiting(&driver), [900]);
}

#[test]
fn bios_that_were_called_and_have_not_entered_are_given_up_too() {
    let (mut driver, ioc) = driver(SchedulerKind::None, Some(2));
    let first = reads(&mut driver, ioc, 5);
    driver.complete(NOW, first);
    assert_eq!(driver.cancel_queued(NOW), [100, 200, 300, 400]);
    assert_eq!(dispatch(&mut driver, NOW), None);
    assert_eq!(waiting(&driver), [0; 0]);
    driver.submit(NOW, read(ioc, 0));
    assert_eq!(serve(&mut driver), [0], "it goes on");
}

#[test]
fn bios_wait_while_the_request_before_them_is_requeued() {
    for kind in SchedulerKind::ALL {
        let (mut driver, ioc) = driver(kind, Some(1));
        let first = reads(&mut driver, ioc, 3);
        driver.requeue(NOW, first);
        assert_eq!(dispatch(&mut driver, NOW), Some(first), "{kind}");
        assert_eq!(waiting(&driver), [100, 200], "{kind}");
        driver.complete(NOW, first);
        assert_eq!(serve(&mut driver), [100, 200], "{kind}");
    }
}

/// What is administered while bios wait neither wakes them nor forgets them.
#[test]
fn bios_that_wait_all_end_whatever_is_administered() {
    let changes: [(&str, Change); 5] = [
        ("a larger bound", |elevator| elevator.set_nr_requests(Some(64))),
        ("no bound", |elevator| elevator.set_nr_requests(None)),
        ("a smaller bound", |elevator| elevator.set_nr_requests(Some(1))),
        ("a depth", |elevator| elevator.set_depth(1)),
        ("none", |elevator| drop(elevator.switch(NOW, scheduler(SchedulerKind::None)))),
    ];
    for kind in SchedulerKind::ALL {
        for (what, change) in changes {
            let (mut driver, ioc) = driver(kind, Some(16));
            let first = reads(&mut driver, ioc, 30);
            assert_eq!(waiting(&driver).len(), 14, "{kind}, {what}");
            driver.administer(change);
            assert_eq!(dispatch(&mut driver, NOW), None, "{kind}, {what}: the device is full");
            let mut done = driver.complete(NOW, first).into_vec();
            done.extend(serve(&mut driver));
            done.sort_unstable();
            let all: Vec<u64> = (0..30).map(|n| 100 * n).collect();
            assert_eq!(done, all, "{kind}, {what}");
        }
    }
}

/// The next completion calls them, though it alone is not enough for the bound that there was.
#[test]
fn bios_that_wait_enter_with_the_next_completion_after_a_larger_bound() {
    let (mut driver, ioc) = driver(SchedulerKind::None, Some(16));
    let first = reads(&mut driver, ioc, 20);
    driver.administer(|elevator| elevator.set_nr_requests(Some(64)));
    assert_eq!(dispatch(&mut driver, NOW), None);
    assert_eq!(waiting(&driver).len(), 4, "nothing has completed");
    driver.complete(NOW, first);
    assert!(dispatch(&mut driver, NOW).is_some());
    assert_eq!(waiting(&driver), [0; 0]);
}

/// The third of five is turned away twice, the fifth four times.
#[test]
fn bio_is_told_to_the_trace_once_however_often_it_tries() {
    let (mut driver, ioc) = driver(SchedulerKind::None, Some(1));
    let first = reads(&mut driver, ioc, 5);
    driver.complete(NOW, first);
    assert_eq!(serve(&mut driver), [100, 200, 300, 400]);
    let events = driver.trace().take().into_iter();
    let arrived: Vec<u64> = events
        .filter_map(|(_, event)| match event {
            Event::Elevator(ElevatorEvent::Queued { bio, .. }) => Some(bio),
            _ => None,
        })
        .collect();
    assert_eq!(arrived, [0, 100, 200, 300, 400]);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "an event is followed by dispatch")]
fn giving_up_without_dispatch_is_found_out() {
    let (mut driver, ioc) = driver(SchedulerKind::None, None);
    reads(&mut driver, ioc, 2);
    driver.cancel_queued(NOW);
    driver.poll_timeout();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "an event is followed by dispatch")]
fn dispatch_one_by_one_that_does_not_end_is_found_out() {
    let (mut driver, ioc) = driver(SchedulerKind::None, None);
    driver.submit(NOW, read(ioc, 0));
    assert!(driver.dispatch_next(NOW).is_some());
    driver.poll_timeout();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "an event is followed by dispatch")]
fn completion_without_dispatch_is_found_out_as_the_timeout_is_asked_for() {
    let (mut driver, ioc) = driver(SchedulerKind::None, None);
    driver.submit(NOW, read(ioc, 0));
    let rq = dispatch(&mut driver, NOW).expect("the device is free");
    driver.complete(NOW, rq);
    driver.poll_timeout();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a completion is followed by dispatch")]
fn arrival_before_the_dispatch_of_a_completion_is_found_out() {
    let (mut driver, ioc) = driver(SchedulerKind::None, None);
    driver.submit(NOW, read(ioc, 0));
    let rq = dispatch(&mut driver, NOW).expect("the device is free");
    driver.complete(NOW, rq);
    driver.submit(NOW, read(ioc, 100));
}
