//! Locks as servers: processors in a closed loop, each of which works, waits for a lock in order of
//! arrival, works under it, and so on. A processor that waits for a lock spins.
//!
//! ```text
//!   processor 1 ─ outside ─▶┐ waits │ holds │ hands over ─▶ outside …
//!   processor 2 ─ outside ──▶ waits         │ holds │ …
//! ```
//!
//! Handing a lock over to one who waits takes time, too; more, where many spin on it, by
//! `per_waiter_us`. Where the disks do no more than a rate, processors are idle meanwhile.
//!
//! This is no workload of the simulation, as that has the one lock of a scheduler, and here are
//! many, with no scheduler and no device below them. Its queue of events is not the simulation's
//! agenda either: times are fractions of a microsecond, and processors go by their numbers at one
//! time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paternoster_model::{Draws, Who};

use super::program::{Generation, Step, Which, program};

/// A machine, and what an I/O takes on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Processors, each of which submits.
    pub processors: u32,
    /// Devices; each batch is for one of them.
    pub devices: u32,
    /// I/Os that are handed over at once.
    pub batch: u32,
    /// Work on an I/O outside of all locks, in µs.
    pub outside_us: f64,
    /// Work under the lock of a list each time that it is taken, in µs.
    pub list_us: f64,
    /// Work on an I/O under its device's lock, in µs; with rings, that of the device's owner.
    pub device_us: f64,
    /// The time until who waits has a lock that was let go, in µs.
    pub hand_over_us: f64,
    /// How much longer that takes for each other one that waits, in µs.
    pub per_waiter_us: f64,
    /// I/Os a second that the disks do at most, if that is a limit.
    pub disks_iops: Option<f64>,
}

/// What the model says of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// I/Os a second.
    pub iops: f64,
    /// CPU time of an I/O, spinning included, in µs.
    pub cpu_us: f64,
    /// What part of the CPU time is spinning, in percent.
    pub spinning_percent: f64,
}

/// Batches that are run for each processor: the first ones, until they fall out of step, are few.
const BATCHES_EACH: u64 = 40;
/// And no fewer I/Os in all.
const IOS: u64 = 8_000;
/// So much work of the disks may be outstanding before processors wait for it.
const DISKS_SLACK_US: f64 = 1_000.0;

/// Runs the model.
pub fn predict(generation: Generation, machine: &Machine) -> Predicted {
    if generation == Generation::Rings {
        return rings(machine);
    }
    Run::new(generation, machine).predict()
}

/// Nothing waits for a lock there: submitters and owners each do their part, on as many processors
/// as is best. Nothing is known of how they wake each other.
fn rings(machine: &Machine) -> Predicted {
    let Machine { processors, devices, outside_us, device_us, disks_iops, .. } = *machine;
    let cpu_us = outside_us + device_us;
    let with = |owners: u32| {
        let submitters = f64::from(processors - owners) / outside_us;
        (f64::from(owners) / device_us).min(submitters)
    };
    let alone = 1.0 / cpu_us;
    let per_us = (1..=devices.min(processors - 1)).map(with).fold(alone, f64::max);
    let iops = (per_us * 1e6).min(disks_iops.unwrap_or(f64::INFINITY));
    Predicted { iops, cpu_us, spinning_percent: 0.0 }
}

#[derive(Default)]
struct Lock {
    held: bool,
    /// Queues on its list, if it is that of one.
    plugged: u32,
    /// Who waits, and since when.
    waiting: VecDeque<(usize, f64)>,
}

#[derive(Clone, Default)]
struct Processor {
    /// The next step.
    step: usize,
    /// The device of its batch.
    device: usize,
    /// What it dispatched under the last lock.
    dispatched: u32,
}

struct Run<'a> {
    machine: &'a Machine,
    steps: Vec<Step>,
    per_lock: u32,
    draws: Draws,
    processors: Vec<Processor>,
    /// The machine's list, then a slot for each processor, then devices.
    locks: Vec<Lock>,
    /// Requests that wait for dispatch, by device.
    queued: Vec<u32>,
    /// Until when the disks have work.
    disks_until: f64,
    /// When each processor goes on: µs as bits, which are in order as they are positive.
    events: BinaryHeap<Reverse<(u64, usize)>>,
    ios: u64,
    spun_us: f64,
    idle_us: f64,
}

impl<'a> Run<'a> {
    fn new(generation: Generation, machine: &'a Machine) -> Self {
        let count = |number: u32| usize::try_from(number).expect("machines are small");
        let (processors, devices) = (count(machine.processors), count(machine.devices));
        let mut run = Self {
            machine,
            steps: program(generation, machine),
            per_lock: generation.per_lock(),
            draws: Draws::new(1, Who::Locks, 0),
            processors: vec![Processor::default(); processors],
            locks: (0..1 + processors + devices).map(|_| Lock::default()).collect(),
            queued: vec![0; devices],
            disks_until: 0.0,
            events: BinaryHeap::new(),
            ios: 0,
            spun_us: 0.0,
            idle_us: 0.0,
        };
        for processor in 0..processors {
            run.processors[processor].device = run.draw_device();
            run.at(0.0, processor);
        }
        run
    }

    #[allow(clippy::cast_precision_loss)] // counts are told with 53 bits
    fn predict(mut self) -> Predicted {
        let Machine { processors, batch, .. } = *self.machine;
        let all = IOS.max(BATCHES_EACH * u64::from(processors) * u64::from(batch.min(8)));
        let mut now = 0.0;
        while self.ios < all {
            let Reverse((bits, processor)) = self.events.pop().expect("somebody goes on");
            now = f64::from_bits(bits);
            self.go_on(now, processor);
        }
        for lock in &self.locks {
            self.spun_us += lock.waiting.iter().map(|(_, since)| now - since).sum::<f64>();
        }
        let cpu_us = f64::from(processors) * now - self.idle_us;
        Predicted {
            iops: self.ios as f64 / now * 1e6,
            cpu_us: cpu_us / self.ios as f64,
            spinning_percent: 100.0 * self.spun_us / cpu_us,
        }
    }

    fn at(&mut self, time: f64, processor: usize) {
        self.events.push(Reverse((time.to_bits(), processor)));
    }

    /// Takes steps until one takes time, or waits.
    fn go_on(&mut self, now: f64, processor: usize) {
        loop {
            let at = self.processors[processor].step;
            let Some(&step) = self.steps.get(at) else {
                self.ios += u64::from(self.machine.batch);
                let device = self.draw_device();
                self.processors[processor] = Processor { device, ..Processor::default() };
                return self.at(now, processor);
            };
            self.processors[processor].step += 1;
            let device = self.processors[processor].device;
            match step {
                Step::Outside(us) => {
                    let until = now + us * self.draw_factor();
                    return self.at(until, processor);
                }
                Step::Work(us) => return self.at(now + us, processor),
                Step::Lock(which) => {
                    let lock = self.index(which, processor);
                    if std::mem::replace(&mut self.locks[lock].held, true) {
                        return self.locks[lock].waiting.push_back((processor, now));
                    }
                }
                Step::Unlock(which) => self.unlock(now, self.index(which, processor)),
                Step::Plug(list) => {
                    let list = self.index(list, processor);
                    self.locks[list].plugged += 1;
                }
                Step::Unplug(list) => {
                    let list = self.index(list, processor);
                    self.locks[list].plugged -= 1;
                }
                Step::UnlessPlugged(list, steps) => {
                    let list = self.index(list, processor);
                    if self.locks[list].plugged == 0 {
                        self.processors[processor].step += steps;
                    }
                }
                Step::Insert(requests) => self.queued[device] += requests,
                Step::Look if self.queued[device] > 0 => {}
                // Lock, dispatch, unlock and again.
                Step::Look => self.processors[processor].step += 4,
                Step::Dispatch => {
                    let requests = self.queued[device].min(self.per_lock);
                    self.queued[device] -= requests;
                    self.processors[processor].dispatched = requests;
                    let us = f64::from(requests) * self.machine.device_us / 2.0;
                    return self.at(now + us, processor);
                }
                Step::Again => {
                    if self.processors[processor].dispatched == self.per_lock {
                        // To the look.
                        self.processors[processor].step -= 5;
                    }
                }
                Step::Disks(ios) => {
                    if let Some(idle) = self.disks(now, ios) {
                        self.idle_us += idle;
                        return self.at(now + idle, processor);
                    }
                }
            }
        }
    }

    /// Gives so many I/Os to the disks. Returns how long the processor waits, if it does.
    fn disks(&mut self, now: f64, ios: u32) -> Option<f64> {
        let each = 1e6 / self.machine.disks_iops?;
        self.disks_until = self.disks_until.max(now) + each * f64::from(ios);
        let idle = self.disks_until - now - DISKS_SLACK_US;
        (idle > 0.0).then_some(idle)
    }

    fn unlock(&mut self, now: f64, lock: usize) {
        let Some((next, since)) = self.locks[lock].waiting.pop_front() else {
            self.locks[lock].held = false;
            return;
        };
        let others = u32::try_from(self.locks[lock].waiting.len()).expect("machines are small");
        let Machine { hand_over_us, per_waiter_us, .. } = *self.machine;
        let has_it = now + hand_over_us + per_waiter_us * f64::from(others);
        self.spun_us += has_it - since;
        self.at(has_it, next);
    }

    fn index(&self, which: Which, processor: usize) -> usize {
        match which {
            Which::Machine => 0,
            Which::Slot(behind) => {
                1 + (processor + usize::try_from(behind).expect("few")) % self.processors.len()
            }
            Which::Device => 1 + self.processors.len() + self.processors[processor].device,
        }
    }

    #[allow(clippy::cast_possible_truncation)] // below the number of devices
    fn draw_device(&mut self) -> usize {
        (self.draws.bits() % self.queued.len() as u64) as usize
    }

    /// 0.5 to 1.5, so that processors do not go in step.
    #[allow(clippy::cast_precision_loss)] // 53 bits are kept
    fn draw_factor(&mut self) -> f64 {
        0.5 + (self.draws.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 × 6 µs of an I/O are under the one lock of the machine, 30 outside of it, and 2 under a
    /// device's.
    const MACHINE: Machine = Machine {
        processors: 32,
        devices: 64,
        batch: 1,
        outside_us: 30.0,
        list_us: 6.0,
        device_us: 2.0,
        hand_over_us: 0.0,
        per_waiter_us: 0.0,
        disks_iops: None,
    };

    fn with(processors: u32) -> Machine {
        Machine { processors, ..MACHINE }
    }

    /// Scenario 12: a lock that is held for 24 µs of each I/O lets 1/24 µs through at most.
    #[test]
    fn one_lock_bounds_the_rate_however_many_processors_there_are() {
        for processors in [1, 2, 8, 32, 128] {
            let predicted = predict(Generation::Global, &with(processors));
            assert!(predicted.iops <= 1.005e6 / 24.0, "{processors}: {predicted:?}");
        }
        let [eight, many] = [8, 128].map(|it| predict(Generation::Global, &with(it)).iops);
        assert!((many / eight - 1.0).abs() < 0.01, "more of them add nothing: {eight}, {many}");
    }

    #[test]
    fn most_of_32_processors_spins_on_one_lock_and_no_lock_a_device_does_that() {
        let global = predict(Generation::Global, &MACHINE);
        assert!(global.spinning_percent > 80.0, "{global:?}");
        let per_device = predict(Generation::PerDevice, &MACHINE);
        assert!(per_device.spinning_percent < 5.0, "{per_device:?}");
        assert!(per_device.iops > 20.0 * global.iops, "32 µs each, on 32: {per_device:?}");
    }

    /// Without anybody else an I/O takes 30 + 2 µs, and 6 for each time that a list is touched.
    #[test]
    fn one_processor_never_waits() {
        for (generation, batch, touched) in [
            (Generation::Global, 1, 4.0),
            (Generation::PerCpu, 1, 4.0),
            (Generation::Global, 16, 9.0 / 16.0),
            (Generation::PerDevice, 5, 0.0),
            (Generation::PlugLock, 16, 0.0),
            (Generation::PlugLockBatch, 16, 0.0),
        ] {
            let predicted = predict(generation, &Machine { batch, ..with(1) });
            let expected = 32.0 + 6.0 * touched;
            assert!((predicted.cpu_us / expected - 1.0).abs() < 0.01, "{generation:?}");
            assert!(predicted.spinning_percent.abs() < 1e-9, "{generation:?}");
        }
    }

    /// A walk takes a lock of each of 8 processors, 6 µs each, where one's own is 4 of 11 touches;
    /// who sees without the lock that nothing is plugged spares the last touch, if nobody else has
    /// plugged anything.
    #[test]
    fn walk_takes_the_lock_of_every_processor_and_an_early_return_spares_one_if_alone() {
        let machine = Machine { outside_us: 3e4, ..with(8) };
        let walk = predict(Generation::PerCpuWalk, &machine).cpu_us;
        assert!((walk / (3e4 + 2.0 + 6.0 * 11.0) - 1.0).abs() < 1e-3, "{walk}");
        let alone = predict(Generation::GlobalListEmpty, &with(1)).cpu_us;
        assert!((alone / (32.0 + 6.0 * 3.0) - 1.0).abs() < 0.01, "{alone}");
        let [plain, early] = [Generation::Global, Generation::GlobalListEmpty]
            .map(|generation| predict(generation, &MACHINE).iops);
        assert!(early < 1.1 * plain, "32 processors: somebody has plugged: {plain}, {early}");
    }

    /// One device, one I/O at a time, and locks that take 3 µs to be handed over. Without batches
    /// an I/O takes two locks, and mostly a third to find that none waits: 2 + 9 µs. With them it
    /// takes more than one and no more than those.
    #[test]
    fn batches_spare_the_hand_over_of_a_contended_lock() {
        let machine = Machine { devices: 1, outside_us: 5.0, hand_over_us: 3.0, ..MACHINE };
        let [single, batch] = [Generation::PlugLock, Generation::PlugLockBatch]
            .map(|generation| predict(generation, &machine).iops);
        assert!((1e6 / 11.5..1e6 / 8.0).contains(&single), "{single}");
        assert!(batch > 1.2 * single && batch < 1e6 / 5.0, "{batch}");
    }

    #[test]
    fn disks_are_a_limit_in_which_processors_idle() {
        let machine = Machine { disks_iops: Some(110_000.0), ..MACHINE };
        let predicted = predict(Generation::PerCpu, &machine);
        assert!((predicted.iops / 110_000.0 - 1.0).abs() < 0.1, "{predicted:?}");
        assert!((predicted.cpu_us / 56.0 - 1.0).abs() < 0.02, "{predicted:?}");
    }

    /// 3 of 4 processors submit, at 30 µs each, before one owner has to do more than it can.
    #[test]
    fn rings_are_bound_by_owners_or_submitters() {
        let iops = |processors, devices, outside_us| {
            let machine = Machine { devices, outside_us, ..with(processors) };
            predict(Generation::Rings, &machine).iops
        };
        assert!((iops(4, 1, 30.0) - 1e5).abs() < 1.0);
        assert!((iops(128, 1, 30.0) - 5e5).abs() < 1.0, "one owner, 2 µs each");
        assert!((iops(1, 1, 30.0) - 1e6 / 32.0).abs() < 1.0);
        assert!(iops(128, 64, 30.0) > 3.9e6);
    }
}
