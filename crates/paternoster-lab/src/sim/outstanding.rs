//! The I/Os that are outstanding, by the name under which their bios complete.

use super::workload::{Ended, Io, TaskId};
use paternoster::{Instant, Nanos, Request};
use paternoster_model::Chance;

/// An I/O that has been submitted and has not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutstandingIo {
    pub(super) task: TaskId,
    pub(super) io: Io,
    chance: Chance,
    pub(super) submitted: Instant,
    /// When it entered the scheduler; valid once it has.
    pub(super) entered: Instant,
    /// How long cores were busy for it so far.
    pub(super) cpu: Nanos,
    /// Bios of it that have not completed.
    bios: u32,
}

impl OutstandingIo {
    /// The chance of a request that begins with a bio of it.
    pub(super) fn chance(&self, request: &Request) -> Chance {
        let part = request.sector.0.wrapping_sub(self.io.sector.0);
        self.chance.part(part)
    }
}

/// The outstanding I/Os. Freed places are used again, so that it is no larger than the most that
/// were ever outstanding.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    places: Vec<OutstandingIo>,
    free: Vec<usize>,
}

impl Outstanding {
    /// Adds an I/O without bios. Returns the user data of its bios.
    pub(super) fn add(&mut self, task: TaskId, io: Io, chance: Chance, submitted: Instant) -> u64 {
        let (entered, cpu, bios) = (submitted, Nanos::ZERO, 0);
        let outstanding = OutstandingIo { task, io, chance, submitted, entered, cpu, bios };
        let index = if let Some(index) = self.free.pop() {
            self.places[index] = outstanding;
            index
        } else {
            self.places.push(outstanding);
            self.places.len() - 1
        };
        index as u64
    }

    /// The I/O of that user data enters the scheduler.
    pub(super) fn enter(&mut self, user_data: u64, now: Instant) -> OutstandingIo {
        let place = &mut self.places[index(user_data)];
        place.entered = now;
        *place
    }

    /// A core was busy for so long for the I/O of that user data.
    pub(super) fn spend(&mut self, user_data: u64, cpu: Nanos) {
        self.places[index(user_data)].cpu += cpu;
    }

    /// One more bio of that user data is submitted.
    pub(super) fn add_bio(&mut self, user_data: u64) {
        self.places[index(user_data)].bios += 1;
    }

    /// The I/O of that user data.
    pub(super) fn get(&self, user_data: u64) -> &OutstandingIo {
        &self.places[index(user_data)]
    }

    /// A bio of that user data has completed. Returns how the I/O ended if it was the last one.
    pub(super) fn end_bio(&mut self, user_data: u64, now: Instant) -> Option<Ended> {
        let index = index(user_data);
        let place = &mut self.places[index];
        place.bios -= 1;
        if place.bios > 0 {
            return None;
        }
        self.free.push(index);
        let &mut OutstandingIo { task, io, submitted, entered, cpu, .. } = place;
        Some(Ended { task, io, submitted, entered, completed: now, cpu })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

fn index(user_data: u64) -> usize {
    usize::try_from(user_data).expect("user data is an index here")
}
