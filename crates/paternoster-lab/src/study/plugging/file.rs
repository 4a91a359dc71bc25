//! The study's file of parameters.

use std::path::Path;

use super::model::Machine;
use paternoster_model::parameter_file::{Keys, ParameterError};

type Read<T> = Result<T, ParameterError>;

/// What the file says.
#[derive(Clone, Debug)]
pub(super) struct StudyFile {
    pub(super) about: String,
    /// The machine of 32 processors of 2004.
    pub(super) seed: Machine,
    /// The machine of 8 processors of 2004.
    pub(super) second: Machine,
    /// The machine of 128 processors of 2025, under its `mq-deadline`.
    pub(super) null_block: Machine,
    /// BFQ's work under its lock there, in µs.
    pub(super) bfq_us: f64,
    pub(super) published: Published,
}

/// What was published.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    pub(super) seed_global_iops: f64,
    pub(super) seed_global_cpu_us: f64,
    pub(super) seed_global_spinning_percent: f64,
    pub(super) seed_percpu_iops: f64,
    pub(super) seed_percpu_cpu_us: f64,
    pub(super) second_global_iops: f64,
    pub(super) second_global_cpu_us: f64,
    pub(super) second_percpu_iops: f64,
    pub(super) second_percpu_cpu_us: f64,
    pub(super) second_perdev_iops: f64,
    pub(super) second_perdev_cpu_us: f64,
    pub(super) second_global_bound_iops: f64,
    pub(super) second_percpu_bound_iops: f64,
    pub(super) mq_deadline_iops: f64,
    pub(super) mq_deadline_batch_iops: f64,
    pub(super) bfq_iops: f64,
    pub(super) bfq_batch_iops: f64,
}

/// µs of a step.
const STEP_US: std::ops::RangeInclusive<f64> = 0.0..=1e4;
const IOPS: std::ops::RangeInclusive<f64> = 1.0..=1e9;

impl StudyFile {
    pub(super) fn read(path: &Path, text: &str) -> Read<Self> {
        let mut keys = Keys::open(path, text)?;
        let about = keys.text("about")?;
        let per_waiter_us = keys.number("per_waiter_us", STEP_US)?;
        let (seed_cpu_us, seed) = keys.table("seed", |keys| old_machine(keys, per_waiter_us))?;
        let (second_cpu_us, second) =
            keys.table("second", |keys| second_machine(keys, seed_cpu_us, seed))?;
        debug_assert!(second_cpu_us > 0.0, "it was read so");
        let (null_block, bfq_us) = keys.table("null_block", null_block)?;
        let published = keys.table("published", published)?;
        keys.end()?;
        Ok(Self { about, seed, second, null_block, bfq_us, published })
    }
}

/// What an I/O takes without anybody else, with a list for each processor, and the machine.
fn old_machine(keys: &mut Keys<'_>, per_waiter_us: f64) -> Read<(f64, Machine)> {
    let cpu_us = keys.number("cpu_us", 1.0..=1e4)?;
    let list_us = keys.number("list_us", STEP_US)?;
    let device_us = keys.number("device_us", STEP_US)?;
    let machine = Machine {
        processors: keys.small("processors", 1..=1024)?,
        devices: keys.small("devices", 1..=4096)?,
        batch: keys.small("batch", 1..=64)?,
        outside_us: (cpu_us - 4.0 * list_us - device_us).max(0.0),
        list_us,
        device_us,
        hand_over_us: 0.0,
        per_waiter_us,
        disks_iops: Some(keys.number("disks_iops", IOPS)?),
    };
    Ok((cpu_us, machine))
}

/// The second machine does all that is under a lock as much faster as its I/O takes less CPU time
/// without contention: there without lists.
fn second_machine(keys: &mut Keys<'_>, seed_cpu_us: f64, seed: Machine) -> Read<(f64, Machine)> {
    let cpu_us = keys.number("cpu_us", 1.0..=1e4)?;
    let faster = cpu_us / (seed_cpu_us - 4.0 * seed.list_us).max(1.0);
    let device_us = seed.device_us * faster;
    let machine = Machine {
        processors: keys.small("processors", 1..=1024)?,
        devices: keys.small("devices", 1..=4096)?,
        outside_us: (cpu_us - device_us).max(0.0),
        list_us: seed.list_us * faster,
        device_us,
        disks_iops: Some(keys.number("disks_iops", IOPS)?),
        ..seed
    };
    Ok((cpu_us, machine))
}

fn null_block(keys: &mut Keys<'_>) -> Read<(Machine, f64)> {
    let machine = Machine {
        processors: keys.small("processors", 1..=1024)?,
        devices: keys.small("devices", 1..=4096)?,
        batch: keys.small("batch", 1..=64)?,
        outside_us: keys.number("outside_us", STEP_US)?,
        list_us: 0.0,
        device_us: keys.number("mq_deadline_us", STEP_US)?,
        hand_over_us: keys.number("hand_over_us", STEP_US)?,
        per_waiter_us: 0.0,
        disks_iops: None,
    };
    Ok((machine, keys.number("bfq_us", STEP_US)?))
}

fn published(keys: &mut Keys<'_>) -> Read<Published> {
    Ok(Published {
        seed_global_iops: keys.number("seed_global_iops", IOPS)?,
        seed_global_cpu_us: keys.number("seed_global_cpu_us", STEP_US)?,
        seed_global_spinning_percent: keys.number("seed_global_spinning_percent", 1.0..=100.0)?,
        seed_percpu_iops: keys.number("seed_percpu_iops", IOPS)?,
        seed_percpu_cpu_us: keys.number("seed_percpu_cpu_us", STEP_US)?,
        second_global_iops: keys.number("second_global_iops", IOPS)?,
        second_global_cpu_us: keys.number("second_global_cpu_us", STEP_US)?,
        second_percpu_iops: keys.number("second_percpu_iops", IOPS)?,
        second_percpu_cpu_us: keys.number("second_percpu_cpu_us", STEP_US)?,
        second_perdev_iops: keys.number("second_perdev_iops", IOPS)?,
        second_perdev_cpu_us: keys.number("second_perdev_cpu_us", STEP_US)?,
        second_global_bound_iops: keys.number("second_global_bound_iops", IOPS)?,
        second_percpu_bound_iops: keys.number("second_percpu_bound_iops", IOPS)?,
        mq_deadline_iops: keys.number("mq_deadline_iops", IOPS)?,
        mq_deadline_batch_iops: keys.number("mq_deadline_batch_iops", IOPS)?,
        bfq_iops: keys.number("bfq_iops", IOPS)?,
        bfq_batch_iops: keys.number("bfq_batch_iops", IOPS)?,
    })
}
