//! What a processor does for a batch of I/Os, as steps: work, and locks around it.
//!
//! The sequences are those of the ways in `paternoster-generations`, where they are real locks:
//!
//! ```text
//!   global, percpu   each I/O: device's lock [ list's, if it plugs ] [ list's, if it unplugs ]
//!                    then: list's; each queue left: device's lock [ list's ]; list's
//!     list_empty     a list that is empty is seen to be so without its lock
//!     walk           then the lists of all other processors, each with its lock
//!   perdev           each I/O: device's lock, in which the fourth and the last unplug
//!   plug+lock        the batch: device's lock; then a device's lock for each dispatch
//! ```

use super::model::Machine;

/// A way from submitters to a device's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// One list and lock for the machine.
    Global,
    /// The same, where who looks for plugged queues sees without the lock that there are none: it
    /// was proposed in the thread, and withdrawn, as under load some disk is always plugged.
    GlobalListEmpty,
    /// A list and lock for each processor.
    PerCpu,
    /// The same, where who needs progress drains the lists of all processors, as all but direct I/O
    /// does under the patch.
    PerCpuWalk,
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
    pub const ALL: [Self; 8] = [
        Self::Global,
        Self::GlobalListEmpty,
        Self::PerCpu,
        Self::PerCpuWalk,
        Self::PerDevice,
        Self::PlugLock,
        Self::PlugLockBatch,
        Self::Rings,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::GlobalListEmpty => "global list_empty",
            Self::PerCpu => "percpu",
            Self::PerCpuWalk => "percpu walk",
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
    /// The list of the processor that is so many behind the processor itself.
    Slot(u32),
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
    /// A queue is on that list from now on.
    Plug(Which),
    /// It is on it no more.
    Unplug(Which),
    /// Leaves out so many steps if no queue is on that list; takes no lock to see it.
    UnlessPlugged(Which, usize),
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
        Generation::Global => with_list(machine, Which::Machine, Looks::WithLock),
        Generation::GlobalListEmpty => with_list(machine, Which::Machine, Looks::WithoutLock),
        Generation::PerCpu => with_list(machine, Which::Slot(0), Looks::WithLock),
        Generation::PerCpuWalk => {
            let mut steps = with_list(machine, Which::Slot(0), Looks::WithLock);
            for other in 1..machine.processors {
                touch(machine, &mut steps, Which::Slot(other), None);
            }
            steps
        }
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

/// How one sees whether a queue is plugged.
#[derive(Clone, Copy, PartialEq)]
enum Looks {
    WithLock,
    WithoutLock,
}

/// Takes the lock of a list, and puts a queue on it or takes one off.
fn touch(machine: &Machine, steps: &mut Vec<Step>, list: Which, change: Option<Step>) {
    locked(steps, list, |steps| {
        steps.extend(change);
        steps.push(Step::Work(machine.list_us));
    });
}

fn with_list(machine: &Machine, list: Which, looks: Looks) -> Vec<Step> {
    let half = machine.device_us / 2.0;
    let mut steps = Vec::new();
    let put = |steps: &mut Vec<Step>, change| touch(machine, steps, list, Some(change));
    let look = |steps: &mut Vec<Step>| {
        let mut looking = Vec::new();
        touch(machine, &mut looking, list, None);
        if looks == Looks::WithoutLock {
            steps.push(Step::UnlessPlugged(list, looking.len()));
        }
        steps.extend(looking);
    };
    let mut held = 0;
    for _ in 0..machine.batch {
        steps.push(Step::Outside(machine.outside_us));
        locked(&mut steps, Which::Device, |steps| {
            if held == 0 {
                put(steps, Step::Plug(list));
            }
            held += 1;
            steps.push(Step::Work(half));
            if held == THRESHOLD {
                put(steps, Step::Unplug(list));
                steps.push(Step::Work(half * f64::from(held)));
                held = 0;
            }
        });
    }
    look(&mut steps);
    if held > 0 {
        locked(&mut steps, Which::Device, |steps| {
            put(steps, Step::Unplug(list));
            steps.push(Step::Work(half * f64::from(held)));
        });
        look(&mut steps);
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
