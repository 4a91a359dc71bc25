//! Channels, each with a queue of its own: a command goes to one by chance, and waits there though
//! others are free. A write may be followed by a clean-up, in which its channel stands still.
//!
//! ```text
//!               ┌ channel 1  ├ a ┤├ d ┤├ e ┤
//!   by chance ──┤ channel 2                        free, though d and e wait
//!               └ channel 3  ├ b ┤├──── clean-up ────┤├ c ┤
//! ```

use paternoster::{Instant, Nanos};

use crate::parameter_file::{Keys, ParameterError, millis};
use crate::random::{Chances, Who};
use crate::service::Service;
use crate::timed::Times;
use crate::{Command, Op};

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

impl ChannelsParameters {
    /// Reads the keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let channels = keys.small("channels", 1..=65_536)?;
        let service = Service::read(keys)?;
        let (clean_ups, clean_up) = clean_ups(keys)?;
        Ok(Self { channels, service, clean_ups, clean_up })
    }
}

/// Reads the part of writes that a clean-up follows, and how long that takes; none without.
pub(crate) fn clean_ups(keys: &mut Keys<'_>) -> Result<(f64, Nanos), ParameterError> {
    if !keys.has("clean_up_ms") {
        return Ok((0.0, Nanos::ZERO));
    }
    let clean_up = millis(keys.number("clean_up_ms", 0.0..=1e6)?);
    Ok((keys.number("clean_up_percent", 0.0..=100.0)? / 100.0, clean_up))
}

/// Channels.
#[derive(Debug)]
pub(crate) struct Channels {
    parameters: ChannelsParameters,
    /// When each has done all that it was given.
    free_at: Vec<Instant>,
    chances: Chances,
}

impl Channels {
    pub(crate) fn new(parameters: ChannelsParameters, seed: u64) -> Self {
        let chances = Chances::new(seed, Who::Device);
        let free_at = vec![Instant::START; parameters.channels as usize];
        Self { parameters, free_at, chances }
    }
}

impl Times for Channels {
    fn end_of(&mut self, now: Instant, command: &Command) -> Instant {
        let ChannelsParameters { channels, service, clean_ups, clean_up } = self.parameters;
        let mut draws = self.chances.of(command);
        let channel = draws.below(u64::from(channels));
        let free_at = &mut self.free_at[usize::try_from(channel).expect("it is below a u32")];
        let end = (*free_at).max(now) + service.time(&mut draws, command);
        let cleans_up = command.op == Op::Write && draws.happens(clean_ups);
        *free_at = if cleans_up { end + clean_up } else { end };
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use crate::tests::{at, ends, read, write};
    use crate::timed::Timed;

    fn channels(clean_ups: f64) -> Timed<Channels> {
        let parameters = ChannelsParameters {
            channels: 1,
            service: Service { write_times: 2.0, ..Service::constant(Nanos::from_micros(50)) },
            clean_ups,
            clean_up: Nanos::from_micros(1000),
        };
        Timed::new(Channels::new(parameters, 1))
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
        let service = Service::constant(Nanos::from_micros(1));
        let parameters =
            ChannelsParameters { channels: 32, service, clean_ups: 0.0, clean_up: Nanos::ZERO };
        let mut channels = Timed::new(Channels::new(parameters, 3));
        for tag in 0..32_000 {
            channels.submit(at(0), read(tag));
        }
        for free_at in channels.times.free_at {
            let served = free_at.since_start().as_nanos() / 1000;
            assert!((875..1125).contains(&served), "{served}");
        }
    }
}
