//! Channels, each with a queue of its own: a command goes to one by chance, and waits there though
//! others are free. A write may be followed by a clean-up, in which its channel stands still.
//!
//! ```text
//!               ┌ channel 1  ├ a ┤├ d ┤├ e ┤
//!   by chance ──┤ channel 2                        free, though d and e wait
//!               └ channel 3  ├ b ┤├──── clean-up ────┤├ c ┤
//! ```

use paternoster::{Instant, Nanos};

use super::timed::Times;
use crate::closed_loop::chance::{Chance, Service};
use crate::model::{Command, Op};

/// How channels are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelsParameters {
    /// How many there are.
    pub channels: u32,
    /// How long one takes for a command.
    pub service: Service,
    /// The part of writes that is followed by a clean-up.
    pub clean_ups: f64,
    /// How long that takes.
    pub clean_up: Nanos,
}

/// Channels.
#[derive(Debug)]
pub(super) struct Channels {
    parameters: ChannelsParameters,
    /// When each has done all that it was given.
    free_at: Vec<Instant>,
    chance: Chance,
}

impl Channels {
    pub(super) fn new(parameters: ChannelsParameters, chance: Chance) -> Self {
        let free_at = vec![Instant::START; parameters.channels as usize];
        Self { parameters, free_at, chance }
    }
}

impl Times for Channels {
    fn end_of(&mut self, now: Instant, command: &Command) -> Instant {
        let ChannelsParameters { channels, service, clean_ups, clean_up } = self.parameters;
        let channel = self.chance.below(u64::from(channels));
        let free_at = &mut self.free_at[usize::try_from(channel).expect("it is below a u32")];
        let end = (*free_at).max(now) + service.draw(&mut self.chance, command, 1.0);
        let cleans_up = command.op == Op::Write && self.chance.happens(clean_ups);
        *free_at = if cleans_up { end + clean_up } else { end };
        end
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, ends, read, write};
    use super::super::timed::Timed;
    use super::*;
    use crate::model::Model;

    fn channels(clean_ups: f64) -> Timed<Channels> {
        let parameters = ChannelsParameters {
            channels: 1,
            service: Service { write_times: 2.0, ..Service::constant(50.0) },
            clean_ups,
            clean_up: Nanos::from_micros(1000),
        };
        Timed::new(Channels::new(parameters, Chance::new(1, 1)))
    }

    #[test]
    fn commands_of_a_channel_follow_each_other() {
        let mut channels = channels(0.0);
        channels.submit(at(0), read(0));
        channels.submit(at(10), write(1));
        channels.submit(at(500), read(2));
        assert_eq!(ends(&mut channels), [(0, 50), (1, 150), (2, 550)]);
    }

    #[test]
    fn what_comes_behind_a_clean_up_waits_for_it() {
        let mut channels = channels(1.0);
        channels.submit(at(0), write(0));
        channels.submit(at(0), read(1));
        assert_eq!(ends(&mut channels), [(0, 100), (1, 1150)]);
    }

    /// 32,000 commands on 32 channels: 1000 each, with a deviation of 31. Four of them are 125.
    #[test]
    fn commands_spread_evenly_over_channels() {
        let service = Service::constant(1.0);
        let parameters =
            ChannelsParameters { channels: 32, service, clean_ups: 0.0, clean_up: Nanos::ZERO };
        let mut channels = Timed::new(Channels::new(parameters, Chance::new(3, 1)));
        for tag in 0..32_000 {
            channels.submit(at(0), read(tag));
        }
        for free_at in channels.times.free_at {
            let served = free_at.since_start().as_nanos() / 1000;
            assert!((875..1125).contains(&served), "{served}");
        }
    }
}
