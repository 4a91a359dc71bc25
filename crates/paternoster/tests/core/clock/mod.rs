//! Whose clock it is does not matter: an elevator decides alike from the first nanosecond of
//! uptime on, and asks for its timeouts on the clock of its driver.

mod run;

use paternoster::{
    AnyScheduler, Device, DeviceWeights, Elevator, Instant, Medium, Recorder, SchedulerKind, Weight,
};
use run::Run;

/// Events of a run: enough for every task to be served some hundreds of times.
const EVENTS: u32 = 3000;
/// As many where the elevator is changed among them.
const EVENTS_WITH_CHANGES: u32 = 1000;
/// When the elevator is made, on the clocks of callers other than a laboratory: soon after boot,
/// and after 146 years of uptime.
const FOREIGN: [u64; 2] = [40, 1 << 62];

/// Returns all that a run decided, and how often a timeout ended. `change` comes before each event.
fn decisions(
    (kind, start): (SchedulerKind, Instant),
    events: u32,
    change: impl Fn(&mut Run, u32),
) -> (Vec<String>, u32) {
    let mut run = Run::new(kind, start);
    for event in 0..events {
        change(&mut run, event);
        run.dispatch();
        run.step();
    }
    let timeouts = run.timeouts;
    (run.end(), timeouts)
}

fn assert_alike(log: &[String], expected: &[String], what: &str) {
    for (line, expected) in log.iter().zip(expected) {
        assert_eq!(line, expected, "{what}");
    }
    assert_eq!(log.len(), expected.len(), "{what}");
}

#[test]
fn every_scheduler_decides_alike_whatever_the_clock_of_its_caller_shows() {
    for kind in SchedulerKind::ALL {
        let expire_reads = |run: &mut Run, event: u32| {
            // Both groups ask for some hundreds a second: now and then all that waits is capped.
            if kind == SchedulerKind::Wfq && event == 0 {
                run.cap(50);
            }
            // A request that waits now seems to have started its deadline less the expiry ago:
            // with an expiry of 0 half a second from now, which is waited for.
            let expiry = match event % 500 {
                400 => Some(0),
                499 => Some(500),
                _ => None,
            };
            if kind == SchedulerKind::MqDeadline
                && let Some(ms) = expiry
            {
                run.elevator.set_tunable(run.now, "read_expire", ms).expect("its own");
            }
        };
        let (from_start, timeouts) = decisions((kind, Instant::START), EVENTS, expire_reads);
        assert!(timeouts > 0 || kind == SchedulerKind::None, "{kind} had a timeout");
        for nanos in [0, 1, 999_999_999_999, u64::MAX / 3] {
            let (log, _) = decisions((kind, Instant::from_nanos(nanos)), EVENTS, expire_reads);
            assert_alike(&log, &from_start, &format!("{kind} from {nanos} ns"));
        }
    }
}

/// Asserts that runs with the same changes are alike on every clock, under each scheduler. Under
/// those that it `concerns` a run without them is another one, so that there was something to
/// decide.
fn assert_changes_alike(concerns: fn(SchedulerKind) -> bool, change: impl Fn(&mut Run, u32)) {
    for kind in SchedulerKind::ALL {
        let on = |start, change: &dyn Fn(&mut Run, u32)| {
            decisions((kind, start), EVENTS_WITH_CHANGES, change).0
        };
        let changed = on(Instant::START, &change);
        if concerns(kind) {
            let unchanged = on(Instant::START, &|_, _| {});
            assert!(changed != unchanged, "{kind}: the change shows");
        }
        for nanos in FOREIGN {
            let log = on(Instant::from_nanos(nanos), &change);
            assert_alike(&log, &changed, &format!("{kind} from {nanos} ns"));
        }
    }
}

#[test]
fn scheduler_is_switched_alike_on_every_clock() {
    assert_changes_alike(
        |_| true,
        |run, event| {
            if event % 50 == 49 {
                let to = event as usize / 50 % SchedulerKind::ALL.len();
                run.switch(SchedulerKind::ALL[to]);
            }
        },
    );
}

#[test]
fn requests_are_cancelled_alike_on_every_clock() {
    assert_changes_alike(
        |_| true,
        |run, event| {
            if event % 7 == 6 {
                run.cancel();
            }
        },
    );
}

#[test]
fn request_is_requeued_alike_on_every_clock() {
    assert_changes_alike(
        |_| true,
        |run, event| {
            if event % 7 == 6 {
                run.requeue();
            }
        },
    );
}

#[test]
fn dumps_and_counts_are_alike_on_every_clock() {
    assert_changes_alike(
        |_| true,
        |run, event| {
            if event % 20 == 19 {
                run.dump();
            }
        },
    );
}

/// Of the two groups it is now one and now the other that weighs more.
#[test]
fn weights_are_changed_alike_on_every_clock() {
    let weight = |weight| Weight::new(weight).expect("a weight");
    assert_changes_alike(SchedulerKind::has_weights, |run, event| match event % 200 {
        0 => run.elevator.set_weight(run.now, run.groups[0], weight(1000).into()),
        100 => {
            let weights = DeviceWeights { weight: Some(weight(1)), ..DeviceWeights::default() };
            run.elevator.set_device_weights(run.now, run.groups[0], weights);
        }
        150 => run.elevator.set_device_weights(run.now, run.groups[0], DeviceWeights::default()),
        _ => {}
    });
}

/// Only schedulers with queues keep something of a context.
#[test]
fn io_context_exits_alike_on_every_clock() {
    assert_changes_alike(SchedulerKind::has_weights, |run, event| {
        if event % 9 == 8 {
            run.exit(event as usize / 9 % 4);
        }
    });
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
