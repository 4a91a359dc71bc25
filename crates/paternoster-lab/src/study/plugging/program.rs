//! What a processor does for a batch of I/Os, as steps: work, and locks around it.
//!
//! The sequences are those of the ways in `paternoster-generations`, where they are real locks:
//!
//! ```text
//!   global, percpu   each I/O: device's lock [ list's, if it plugs ] [ list's, if it unplugs ]
//!                    then: list's; each queue left: device's lock [ list's ]; list's
//!   perdev           each I/O: device's lock, in which the fourth and the last unplug
//!   plug+lock        the batch: device's lock; then a device's lock for each dispatch
//! ```

use super::model::Machine;

/// A way from submitters to a device's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// One list and lock for the machine.
    Global,
    /// A list and lock for each processor.
    PerCpu,
    /// A bit of each device, under its lock.
    PerDevice,
    /// A plug, and a lock of the device that is taken for each dispatch.
    PlugLock,
    /// The same, dispatching in batches.
    PlugLockBatch,
    /// A plug, and rings to the devices' owners.
    Rings,
}

impl Generation {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Global,
        Self::PerCpu,
        Self::PerDevice,
        Self::PlugLock,
        Self::PlugLockBatch,
        Self::Rings,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::PerCpu => "percpu",
            Self::PerDevice => "perdev",
            Self::PlugLock => "plug+lock",
            Self::PlugLockBatch => "plug+lock-batch",
            Self::Rings => "plug+rings",
        }
    }

    /// How many requests are dispatched under one lock.
    pub(super) fn per_lock(self) -> u32 {
        if self == Self::PlugLockBatch { 32 } else { 1 }
    }
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The machine's list.
    Machine,
    /// The list of the processor itself.
    Slot,
    /// The device of the batch.
    Device,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Works outside of all locks so many µs, on average.
    Outside(f64),
    /// Works so many µs.
    Work(f64),
    Lock(Which),
    Unlock(Which),
    /// So many requests wait for dispatch now.
    Insert(u32),
    /// Goes on behind the dispatch if no request waits; takes no lock to see it.
    Look,
    /// Dispatches what may be dispatched under one lock.
    Dispatch,
    /// Looks again if that was as much as may be.
    Again,
    /// So many I/Os are with the disks.
    Disks(u32),
}

/// So many requests unplug a queue.
const THRESHOLD: u32 = 4;

/// The steps of a batch.
pub(super) fn program(generation: Generation, machine: &Machine) -> Vec<Step> {
    match generation {
        Generation::Global => with_list(machine, Which::Machine),
        Generation::PerCpu => with_list(machine, Which::Slot),
        Generation::PerDevice => per_device(machine),
        Generation::PlugLock | Generation::PlugLockBatch => plugged(machine),
        Generation::Rings => unreachable!("rings have no locks"),
    }
}

/// Around those steps is a lock.
fn locked(steps: &mut Vec<Step>, which: Which, within: impl FnOnce(&mut Vec<Step>)) {
    steps.push(Step::Lock(which));
    within(steps);
    steps.push(Step::Unlock(which));
}

fn with_list(machine: &Machine, list: Which) -> Vec<Step> {
    let half = machine.device_us / 2.0;
    let mut steps = Vec::new();
    let touch = |steps: &mut Vec<Step>| {
        locked(steps, list, |steps| steps.push(Step::Work(machine.list_us)));
    };
    let mut held = 0;
    for _ in 0..machine.batch {
        steps.push(Step::Outside(machine.outside_us));
        locked(&mut steps, Which::Device, |steps| {
            if held == 0 {
                touch(steps);
            }
            held += 1;
            steps.push(Step::Work(half));
            if held == THRESHOLD {
                touch(steps);
                steps.push(Step::Work(half * f64::from(held)));
                held = 0;
            }
        });
    }
    touch(&mut steps);
    if held > 0 {
        locked(&mut steps, Which::Device, |steps| {
            touch(steps);
            steps.push(Step::Work(half * f64::from(held)));
        });
        touch(&mut steps);
    }
    steps.push(Step::Disks(machine.batch));
    steps
}

fn per_device(machine: &Machine) -> Vec<Step> {
    let half = machine.device_us / 2.0;
    let mut steps = Vec::new();
    let mut held = 0;
    for nth in 1..=machine.batch {
        steps.push(Step::Outside(machine.outside_us));
        locked(&mut steps, Which::Device, |steps| {
            held += 1;
            steps.push(Step::Work(half));
            if held == THRESHOLD || nth == machine.batch {
                steps.push(Step::Work(half * f64::from(held)));
                held = 0;
            }
        });
    }
    steps.push(Step::Disks(machine.batch));
    steps
}

fn plugged(machine: &Machine) -> Vec<Step> {
    let batch = f64::from(machine.batch);
    let mut steps = vec![Step::Outside(machine.outside_us * batch)];
    locked(&mut steps, Which::Device, |steps| {
        steps.push(Step::Work(machine.device_us / 2.0 * batch));
        steps.push(Step::Insert(machine.batch));
    });
    steps.push(Step::Look);
    locked(&mut steps, Which::Device, |steps| steps.push(Step::Dispatch));
    steps.extend([Step::Again, Step::Disks(machine.batch)]);
    steps
}
