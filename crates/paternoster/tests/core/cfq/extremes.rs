//! No value of a tunable makes arithmetic overflow or the device stand still.
//!
//! In a debug build arithmetic that overflows panics. Every kind of queue works for a while with
//! combinations of extreme values, and every request completes in the end.

use crate::rig::*;
use paternoster::{Device, Hz, Nanos, SchedulerKind};

/// When nothing happens any more: far beyond the times that can be set, which are up to 50 days.
const AFTERWARDS: Nanos = ms(1_000_000_000_000);

/// Readers and writers of two groups and all classes work for some 60 ms, and a long time later
/// once more.
fn works(device: Device, settings: &[(&'static str, i64)]) {
    let mut rig = Rig::on(device, SchedulerKind::Cfq).group("/a", 1000).group("/a/b", 1);
    rig = rig.task("rt", "rt/0", "/a").task("be", "be/7", "/a/b").task("idle", "idle", "/a");
    rig = rig.task("writer", "be/0", "/a/b").task("near", "be/7", "/a/b");
    for &(tunable, value) in settings {
        rig = rig.set(tunable, value);
    }
    let mut run = rig.served(2, ms(1));
    for start in [ms(0), AFTERWARDS] {
        let stream = |from, sectors| Stream::reads(sectors).from(from).at(start).count(8);
        run.issues("idle", stream(0, 64).depth(2));
        run.issues("writer", Stream::writes(8).from(1 << 20).at(start).depth(12).count(24));
        run.issues("be", stream(u64::from(u32::MAX), 8).stride(16).think(us(300)));
        run.issues("near", stream(u64::from(u32::MAX) + 8, 8).stride(16));
        run.issues("rt", stream(1 << 40, 8).at(start + ms(4)).stride(1 << 30).depth(3));
        run.until(start + AFTERWARDS);
        assert_eq!((run.rig.elevator.queued(), run.rig.elevator.in_flight()), (0, 0));
    }
    assert_eq!(run.completed, 2 * (4 * 8 + 24), "every request was served");
}

/// The tunables with a value of their own, in the unit with the wider range.
fn names() -> Vec<&'static str> {
    let all = SchedulerKind::Cfq.tunables().iter().map(|info| info.name);
    all.filter(|name| !name.ends_with("_us")).collect()
}

const EXTREMES: [i64; 3] = [0, 1, u32::MAX as i64];

fn devices() -> [Device; 3] {
    let slow_clock = Hz::new(1).expect("a clock");
    [Device::disk(1), Device::disk(8).with_hz(slow_clock), Device::solid_state(32)]
}

#[test]
fn any_two_extreme_tunables_go_together() {
    let names = names();
    for (at, first) in names.iter().enumerate() {
        for second in &names[..at] {
            for value in EXTREMES {
                for other in EXTREMES {
                    works(Device::disk(4), &[(first, value), (second, other)]);
                }
            }
        }
    }
}

#[test]
fn all_extremes_at_once_go_together() {
    for device in devices() {
        for value in EXTREMES {
            let all: Vec<_> = names().into_iter().map(|name| (name, value)).collect();
            works(device, &all);
            // All but one.
            for odd in 0..all.len() {
                for other in EXTREMES {
                    let mut settings = all.clone();
                    settings[odd].1 = other;
                    works(device, &settings);
                }
            }
        }
    }
}

/// The least value is less in microseconds.
#[test]
fn least_microseconds_go_together() {
    let twins = SchedulerKind::Cfq.tunables().iter().filter(|info| info.name.ends_with("_us"));
    let least: Vec<_> = twins.map(|info| (info.name, info.min)).collect();
    for device in devices() {
        works(device, &least);
        for extreme in EXTREMES {
            for name in names() {
                let mut settings = least.clone();
                settings.push((name, extreme));
                works(device, &settings);
            }
        }
    }
}
