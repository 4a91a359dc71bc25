//! Which tunables hold after the scheduler of an elevator was switched.

use std::collections::BTreeMap;

use paternoster::{
    AnyScheduler, Device, Elevator, Instant, Medium, NoTrace, SchedulerKind, TunableError,
    parse_tunable,
};

type AnyElevator = Elevator<AnyScheduler<NoTrace>>;

fn scheduler(kind: SchedulerKind) -> AnyScheduler<NoTrace> {
    AnyScheduler::new(kind, NoTrace)
}

fn on_disk(kind: SchedulerKind) -> AnyElevator {
    Elevator::new(scheduler(kind), Device::disk(1), Instant::START)
}

fn set(elevator: &mut AnyElevator, name: &str, value: i64) {
    assert_eq!(elevator.set_tunable(Instant::START, name, value), Ok(value), "{name}");
}

fn switch(elevator: &mut AnyElevator, to: SchedulerKind) {
    let _old = elevator.switch(Instant::START, scheduler(to));
}

fn values<const N: usize>(elevator: &AnyElevator, names: [&str; N]) -> [i64; N] {
    names.map(|name| elevator.tunable(name).expect("it has that one"))
}

#[test]
fn what_was_set_holds_after_a_switch_where_both_schedulers_have_it() {
    let mut elevator = on_disk(SchedulerKind::Cfq);
    set(&mut elevator, "fifo_expire_sync", 77);
    set(&mut elevator, "slice_idle", 5);
    set(&mut elevator, "quantum", 3);
    switch(&mut elevator, SchedulerKind::Bfq);
    let names = ["fifo_expire_sync", "slice_idle", "slice_idle_us", "fifo_expire_async"];
    assert_eq!(values(&elevator, names), [77, 5, 5_000, 250]);
    let unknown = elevator.tunable("quantum");
    assert!(matches!(unknown, Err(TunableError::Unknown { .. })), "{unknown:?}");
}

#[test]
fn what_was_set_is_back_when_a_scheduler_is_back_that_has_it() {
    let mut elevator = on_disk(SchedulerKind::Cfq);
    set(&mut elevator, "quantum", 3);
    switch(&mut elevator, SchedulerKind::None);
    switch(&mut elevator, SchedulerKind::Cfq);
    assert_eq!(values(&elevator, ["quantum", "slice_sync"]), [3, 100]);
}

#[test]
fn value_that_the_new_scheduler_does_not_take_is_left_at_its_default() {
    let mut elevator = on_disk(SchedulerKind::Cfq);
    set(&mut elevator, "back_seek_max", i64::from(u32::MAX));
    switch(&mut elevator, SchedulerKind::Bfq);
    assert_eq!(values(&elevator, ["back_seek_max"]), [16_384]);
}

#[test]
fn of_two_names_of_a_tunable_the_one_set_last_holds_after_a_switch_too() {
    let mut elevator = on_disk(SchedulerKind::Cfq);
    for (name, value) in [("slice_idle_us", 700), ("slice_idle", 5), ("slice_idle_us", 200)] {
        set(&mut elevator, name, value);
    }
    switch(&mut elevator, SchedulerKind::Bfq);
    assert_eq!(values(&elevator, ["slice_idle_us"]), [200]);
}

#[test]
fn fitted_tunables_are_those_of_the_scheduler_that_there_is_and_what_was_set_is_over_them() {
    let device = Device::solid_state(1);
    let mut elevator = Elevator::fitted(
        scheduler(SchedulerKind::Bfq),
        device,
        Medium::NotRotational,
        Instant::START,
    );
    assert_eq!(values(&elevator, ["slice_idle_us", "low_latency"]), [1000, 0]);
    switch(&mut elevator, SchedulerKind::Cfq);
    // BFQ's fitted values are not CFQ's.
    let names = ["slice_idle_us", "low_latency", "slice_sync", "group_idle_us"];
    assert_eq!(values(&elevator, names), [0, 1, 10, 2000]);
    set(&mut elevator, "slice_sync", 20);
    set(&mut elevator, "slice_idle", 2);
    switch(&mut elevator, SchedulerKind::Bfq);
    assert_eq!(values(&elevator, ["slice_idle_us", "timeout_sync"]), [2000, 5]);
    switch(&mut elevator, SchedulerKind::Cfq);
    assert_eq!(values(&elevator, ["slice_idle", "slice_sync", "group_idle_us"]), [2, 20, 2000]);
}

/// All tunables of the scheduler that there is.
fn all_values(elevator: &AnyElevator) -> Vec<(&'static str, i64)> {
    let kind = elevator.scheduler().kind();
    let value = |name| elevator.tunable(name).expect("it has that one");
    kind.tunables().iter().map(|info| (info.name, value(info.name))).collect()
}

/// Whatever was set before, what holds is what a new elevator with the list alone has.
#[test]
fn reset_tunables_are_those_of_a_new_elevator_and_what_is_named() {
    let lists: [&[(&str, i64)]; 4] = [
        &[],
        &[("slice_idle", 3), ("no_such_tunable", 1)],
        &[("slice_idle_us", 700), ("slice_idle", 2)],
        // The one that comes second wins: with it slices idle for 8 ms at least.
        &[("slice_idle", 1), ("strict_guarantees", 1)],
    ];
    let mut changed = 0;
    for kind in SchedulerKind::ALL {
        for medium in [Medium::Rotational, Medium::NotRotational, Medium::Memory] {
            for list in lists {
                let device = match medium {
                    Medium::Rotational => Device::disk(4),
                    _ => Device::solid_state(4),
                };
                let new = || Elevator::fitted(scheduler(kind), device, medium, Instant::START);
                let mut expected = new();
                for &(name, value) in list {
                    let _not_every_scheduler_has_it =
                        expected.set_tunable(Instant::START, name, value);
                }
                let mut elevator = new();
                for info in kind.tunables() {
                    let value = if info.default == info.max { info.min } else { info.max };
                    elevator.set_tunable(Instant::START, info.name, value).expect("in its range");
                }
                changed += usize::from(all_values(&elevator) != all_values(&expected));
                let list = list.iter().map(|&(name, value)| (name.to_owned(), value));
                let list: Vec<_> = list.collect();
                elevator.reset_tunables(Instant::START, &list);
                assert_eq!(all_values(&elevator), all_values(&expected), "{kind}, {medium:?}");
                assert_eq!(elevator.tunables_set(), list);
            }
        }
    }
    assert!(changed >= 3 * 3 * lists.len(), "of three schedulers something was set");
}

#[test]
fn tunables_that_were_reset_are_not_back_after_a_switch() {
    let mut elevator = on_disk(SchedulerKind::Cfq);
    set(&mut elevator, "quantum", 3);
    set(&mut elevator, "slice_idle", 5);
    switch(&mut elevator, SchedulerKind::MqDeadline);
    elevator.reset_tunables(Instant::START, &[("quantum".to_owned(), 7)]);
    switch(&mut elevator, SchedulerKind::Cfq);
    assert_eq!(values(&elevator, ["quantum", "slice_idle"]), [7, 8]);
}

#[test]
fn tunables_of_one_name_have_one_unit() {
    let mut units = BTreeMap::new();
    for info in SchedulerKind::ALL.iter().flat_map(|kind| kind.tunables()) {
        let unit = *units.entry(info.name).or_insert(info.unit);
        assert_eq!(unit, info.unit, "{}", info.name);
    }
}

/// People write `cost=bytes`, or the number that programs have for it.
#[test]
fn value_with_words_is_read_and_shown_as_one_of_them() {
    let cost = SchedulerKind::Wfq.tunable("cost").expect("wfq has it");
    assert_eq!((cost.min, cost.range()), (0, "learn, requests, bytes, fixed".to_owned()));
    for (value, word) in (0..).zip(["learn", "requests", "bytes", "fixed"]) {
        assert_eq!((cost.parse(word), cost.shown(value)), (Ok(value), word.into()));
        assert_eq!(cost.parse(&value.to_string()), Ok(value));
        assert_eq!(parse_tunable("cost", word), Ok(value));
    }
    let error = |found: Result<i64, TunableError>| found.expect_err("it is wrong").to_string();
    let allowed = "one of learn, requests, bytes, fixed is allowed";
    assert_eq!(error(cost.parse("lern")), format!("cost = \"lern\": {allowed}"));
    assert_eq!(error(parse_tunable("cost", "lern")), format!("cost = \"lern\": {allowed}"));
    assert_eq!(error(cost.parse("4")), "cost = 4: 0 to 3 is allowed");
}

#[test]
fn value_without_words_is_a_number_in_its_range() {
    let quantum = SchedulerKind::Cfq.tunable("quantum").expect("cfq has it");
    assert_eq!((quantum.parse("8"), quantum.shown(8)), (Ok(8), "8".into()));
    let error = |found: Result<i64, TunableError>| found.expect_err("it is wrong").to_string();
    let allowed = "a whole number from 1 to 4294967295 is allowed";
    assert_eq!(error(quantum.parse("many")), format!("quantum = \"many\": {allowed}"));
    assert_eq!(error(quantum.parse("0")), "quantum = 0: 1 to 4294967295 is allowed");
    let allowed = "a whole number is allowed";
    assert_eq!(error(parse_tunable("quantum", "many")), format!("quantum = \"many\": {allowed}"));
    assert_eq!(parse_tunable("unknown", "-7"), Ok(-7), "whether it is known is asked later");
}
