//! A throttle that lets so many commands through in each slice of time, as fast as they come.
//!
//! ```text
//!   ├ 200 at once ┤ nothing …  ├ 200 at once ┤ nothing …
//!   0                         100 ms
//! ```

use paternoster::{Instant, Nanos};

use super::timed::Times;
use crate::closed_loop::chance::{Chance, Service};
use crate::model::Command;

/// How a throttle is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlicesParameters {
    /// How many commands begin in a slice.
    pub commands: u32,
    /// How long a slice is.
    pub slice: Nanos,
    /// How long a command takes that has begun.
    pub service: Service,
}

/// A throttle.
#[derive(Debug)]
pub(super) struct Slices {
    parameters: SlicesParameters,
    /// The slice in which the last command began, and how many have there.
    slice: u64,
    begun: u32,
    chance: Chance,
}

impl Slices {
    pub(super) fn new(parameters: SlicesParameters, chance: Chance) -> Self {
        Self { parameters, slice: 0, begun: 0, chance }
    }
}

impl Times for Slices {
    fn end_of(&mut self, now: Instant, command: &Command) -> Instant {
        let SlicesParameters { commands, slice, service } = self.parameters;
        let current = now.since_start().as_nanos() / slice.as_nanos();
        let at = self.slice.max(current);
        if at > self.slice {
            (self.slice, self.begun) = (at, 0);
        }
        if self.begun == commands {
            (self.slice, self.begun) = (self.slice + 1, 0);
        }
        self.begun += 1;
        let begin = Instant::START + Nanos::new(self.slice * slice.as_nanos());
        begin.max(now) + service.draw(&mut self.chance, command, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, ends, read};
    use super::super::timed::Timed;
    use super::*;
    use crate::model::Model;

    #[test]
    fn what_finds_no_room_in_a_slice_begins_with_the_next() {
        let parameters = SlicesParameters {
            commands: 2,
            slice: Nanos::from_millis(1),
            service: Service::constant(10.0),
        };
        let mut slices = Timed::new(Slices::new(parameters, Chance::new(1, 1)));
        for tag in 0..5 {
            slices.submit(at(300), read(tag));
        }
        slices.submit(at(5500), read(5));
        let expected = [(0, 310), (1, 310), (2, 1010), (3, 1010), (4, 2010), (5, 5510)];
        assert_eq!(ends(&mut slices), expected);
    }
}
