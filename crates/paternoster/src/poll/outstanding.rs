//! The I/Os that are in the device, in the order of their submission in each class.
//!
//! Of a class the oldest is expected first, so one look at each class in use finds the earliest
//! completion. One that has been waited for far too long leaves the order, and no longer counts.

use slotmap::new_key_type;

use super::class::PollClass;
use crate::arena::{Arena, Linked, List, ListLinks};
use crate::time::Instant;

new_key_type! {
    /// Names an I/O from its submission to its completion.
    pub struct Ticket;
}

/// An I/O in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct InDevice {
    pub(super) class: PollClass,
    pub(super) submitted: Instant,
    /// Its number among all submissions, from 1.
    pub(super) number: u64,
    /// It is still waited for in its turn.
    is_expected: bool,
    links: ListLinks<Ticket>,
}

#[derive(Debug)]
struct ByClass;

impl Linked<Ticket, ByClass> for Arena<Ticket, InDevice> {
    fn list_links(&self, key: Ticket) -> &ListLinks<Ticket> {
        &self[key].links
    }
    fn list_links_mut(&mut self, key: Ticket) -> &mut ListLinks<Ticket> {
        &mut self[key].links
    }
}

#[derive(Debug, Default)]
pub(super) struct Outstanding {
    arena: Arena<Ticket, InDevice>,
    expected: [List<Ticket, ByClass>; PollClass::COUNT],
    /// Number of the last submission.
    submissions: u64,
}

impl Outstanding {
    pub(super) fn add(&mut self, class: PollClass, submitted: Instant) -> Ticket {
        self.submissions += 1;
        let links = ListLinks::default();
        let number = self.submissions;
        let io = InDevice { class, submitted, number, is_expected: true, links };
        let ticket = self.arena.insert(io);
        self.expected[class.index()].push_back(&mut self.arena, ticket);
        ticket
    }

    /// Takes out an I/O, which has completed.
    pub(super) fn remove(&mut self, ticket: Ticket) -> InDevice {
        assert!(self.arena.contains_key(ticket), "an I/O completes once");
        self.stop_expecting(ticket);
        *self.arena.remove(ticket).expect("its list held it")
    }

    /// Takes it out of its order. It is in the device as before.
    pub(super) fn stop_expecting(&mut self, ticket: Ticket) {
        let io = &mut self.arena[ticket];
        if std::mem::take(&mut io.is_expected) {
            let class = io.class;
            self.expected[class.index()].remove(&mut self.arena, ticket);
        }
    }

    /// The oldest of a class that is expected.
    pub(super) fn first(&self, class: PollClass) -> Option<(Ticket, &InDevice)> {
        let ticket = self.expected[class.index()].first()?;
        Some((ticket, &self.arena[ticket]))
    }

    pub(super) fn get(&self, ticket: Ticket) -> &InDevice {
        &self.arena[ticket]
    }

    pub(super) fn len(&self) -> usize {
        self.arena.len()
    }

    /// The number of the last submission, 0 before the first.
    pub(super) fn submissions(&self) -> u64 {
        self.submissions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Direction, SectorCount};

    /// Another I/O has the entry of the one that completed.
    #[test]
    #[should_panic(expected = "an I/O completes once")]
    fn ticket_of_an_io_that_has_completed_is_refused() {
        let class = PollClass::of(Direction::Read, SectorCount(8)).expect("it has sectors");
        let mut outstanding = Outstanding::default();
        let gone = outstanding.add(class, Instant::START);
        outstanding.remove(gone);
        outstanding.add(class, Instant::START);
        outstanding.remove(gone);
    }
}
