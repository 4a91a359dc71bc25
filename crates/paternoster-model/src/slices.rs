//! A throttle that lets so many commands through in each slice of time, as fast as they come.
//!
//! ```text
//!   ├ 200 at once ┤ nothing …  ├ 200 at once ┤ nothing …
//!   0                         100 ms
//! ```

use paternoster::{Instant, Nanos};

use crate::Command;
use crate::parameter_file::{Keys, ParameterError, millis};
use crate::random::{Chances, Who};
use crate::service::Service;
use crate::timed::Times;

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

impl SlicesParameters {
    /// Reads the keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let commands = keys.small("commands", 1..=100_000_000)?;
        let slice = millis(keys.number("slice_ms", 0.001..=1e6)?);
        Ok(Self { commands, slice, service: Service::read(keys)? })
    }
}

/// A throttle.
#[derive(Debug)]
pub(crate) struct Slices {
    parameters: SlicesParameters,
    /// The slice in which the last command began, and how many have there.
    slice: u64,
    begun: u32,
    chances: Chances,
}

impl Slices {
    pub(crate) fn new(parameters: SlicesParameters, seed: u64) -> Self {
        let chances = Chances::new(seed, Who::Device);
        Self { parameters, slice: 0, begun: 0, chances }
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
        begin.max(now) + service.time(&mut self.chances.of(command), command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use crate::tests::{at, ends, read};
    use crate::timed::Timed;

    #[test]
    fn what_finds_no_room_in_a_slice_begins_with_the_next() {
        let parameters = SlicesParameters {
            commands: 2,
            slice: Nanos::from_millis(1),
            service: Service::constant(Nanos::from_micros(10)),
        };
        let mut slices = Timed::new(Slices::new(parameters, 1));
        for tag in 0..5 {
            slices.submit(at(300), read(tag));
        }
        slices.submit(at(5500), read(5));
        let expected = [(0, 310), (1, 310), (2, 1010), (3, 1010), (4, 2010), (5, 5510)];
        assert_eq!(ends(&mut slices), expected);
    }
}
