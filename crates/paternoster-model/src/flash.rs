//! Flash: channels, chosen by chance, that share a bus. What is read crosses the bus after its
//! channel has it, what is written before. A channel or the bus is what the device lacks, by the
//! mix of what is asked for.
//!
//! ```text
//!   read    channel 3 ├──────┤   bus ├─┤
//!   write   bus ├─┤   channel 1 ├────────────┤├── clean-up …
//! ```

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use crate::channels::clean_ups;
use crate::ends::Ends;
use crate::parameter_file::{Keys, ParameterError};
use crate::random::{Chances, Draws, Who};
use crate::service::{Service, time_of};
use crate::{Command, Completion, Model, Op, Room};

/// How flash is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashParameters {
    /// How many channels there are.
    pub channels: u32,
    /// How long one takes for a command.
    pub service: Service,
    /// How long the bus takes for a KiB.
    pub bus_per_kib: Nanos,
    /// The part of writes that is followed by a clean-up.
    pub clean_ups: f64,
    /// How long that takes.
    pub clean_up: Nanos,
}

impl FlashParameters {
    /// Reads the keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let channels = keys.small("channels", 1..=65_536)?;
        let service = Service::read(keys)?;
        let bus_per_kib = Nanos::new(keys.whole("bus_ns_per_kib", 0..=1_000_000_000)?);
        let (clean_ups, clean_up) = clean_ups(keys)?;
        Ok(Self { channels, service, bus_per_kib, clean_ups, clean_up })
    }
}

/// Where a command is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Bus,
    /// The channel of that index.
    Channel(usize),
}

/// What is over at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// What a place does for the command of that tag.
    Served(Place, u32),
    /// The clean-up of the channel of that index.
    CleanUp(usize),
}

/// What serves one command at a time.
#[derive(Debug, Default)]
struct Server {
    busy: bool,
    /// The tags of the commands that wait, in the order in which they came, and since when.
    waiting: VecDeque<(Instant, u32)>,
}

/// A command in the flash.
#[derive(Clone, Debug)]
struct InFlash {
    command: Command,
    channel: usize,
    draws: Draws,
}

/// Flash.
#[derive(Debug)]
pub(crate) struct Flash {
    parameters: FlashParameters,
    channels: Vec<Server>,
    bus: Server,
    /// The commands in it, by tag.
    commands: Vec<Option<InFlash>>,
    ends: Ends<End>,
    chances: Chances,
}

impl Flash {
    pub(crate) fn new(parameters: FlashParameters, seed: u64) -> Self {
        let chances = Chances::new(seed, Who::Device);
        Self {
            parameters,
            channels: (0..parameters.channels).map(|_| Server::default()).collect(),
            bus: Server::default(),
            commands: vec![None; Room::default().depth as usize],
            ends: Ends::default(),
            chances,
        }
    }

    fn command(&mut self, tag: u32) -> &mut InFlash {
        self.commands[tag as usize].as_mut().expect("it is in the device")
    }

    fn server(&mut self, place: Place) -> &mut Server {
        match place {
            Place::Bus => &mut self.bus,
            Place::Channel(channel) => &mut self.channels[channel],
        }
    }

    /// A command comes to a place.
    fn enter(&mut self, now: Instant, place: Place, tag: u32) {
        self.server(place).waiting.push_back((now, tag));
        self.start(now, place);
    }

    /// Begins the next command there, if there is one and none is served.
    fn start(&mut self, now: Instant, place: Place) {
        let server = self.server(place);
        if server.busy {
            return;
        }
        let Some((since, tag)) = server.waiting.pop_front() else { return };
        server.busy = true;
        let FlashParameters { bus_per_kib, service, .. } = self.parameters;
        let InFlash { command, draws, .. } = self.command(tag);
        let took = match place {
            Place::Bus => time_of(bus_per_kib, command.sectors),
            Place::Channel(_) => service.time(draws, command),
        };
        // Whoever hears late of an end submits what follows late.
        self.ends.push(now.max(since) + took, End::Served(place, tag));
    }

    /// A place is free again.
    fn free(&mut self, at: Instant, place: Place) {
        self.server(place).busy = false;
        self.start(at, place);
    }

    /// A place is done with a command. Returns whether that was its last.
    fn served(&mut self, at: Instant, place: Place, tag: u32) -> bool {
        let FlashParameters { clean_ups, clean_up, .. } = self.parameters;
        let InFlash { command, channel, draws } = self.command(tag);
        let (writes, channel) = (command.op == Op::Write, *channel);
        let on_channel = matches!(place, Place::Channel(_));
        if on_channel && writes && draws.happens(clean_ups) {
            self.ends.push(at + clean_up, End::CleanUp(channel));
        } else {
            self.free(at, place);
        }
        match (place, writes) {
            (Place::Bus, true) => self.enter(at, Place::Channel(channel), tag),
            (Place::Channel(_), false) => self.enter(at, Place::Bus, tag),
            (Place::Bus, false) | (Place::Channel(_), true) => {
                self.commands[tag as usize] = None;
                return true;
            }
        }
        false
    }
}

impl Model for Flash {
    fn submit(&mut self, now: Instant, command: Command) {
        let mut draws = self.chances.of(&command);
        let channel = draws.below(u64::from(self.parameters.channels));
        let channel = usize::try_from(channel).expect("it is below a u32");
        self.commands[command.tag as usize] = Some(InFlash { command, channel, draws });
        let first = if command.op == Op::Write { Place::Bus } else { Place::Channel(channel) };
        self.enter(now, first, command.tag);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ends.next()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        while let Some((at, end)) = self.ends.pop(now) {
            match end {
                End::CleanUp(channel) => self.free(at, Place::Channel(channel)),
                End::Served(place, tag) => {
                    if self.served(at, place, tag) {
                        return Some(Completion::of(tag));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, ends, read, write};

    fn flash(clean_ups: f64) -> Flash {
        let parameters = FlashParameters {
            channels: 1,
            service: Service { write_times: 2.0, ..Service::constant(Nanos::from_micros(50)) },
            bus_per_kib: Nanos::from_micros(5),
            clean_ups,
            clean_up: Nanos::from_micros(1000),
        };
        Flash::new(parameters, 1)
    }

    /// 50 µs in the channel, then 20 on the bus for 4 KiB; meanwhile the channel has the next.
    #[test]
    fn what_is_read_crosses_the_bus_while_the_channel_reads_on() {
        let mut flash = flash(0.0);
        flash.submit(at(0), read(0));
        flash.submit(at(0), read(1));
        assert_eq!(ends(&mut flash), [(0, 70), (1, 120)]);
    }

    /// The second crosses while the first is written, for 100 µs.
    #[test]
    fn what_is_written_crosses_the_bus_first() {
        let mut flash = flash(0.0);
        flash.submit(at(0), write(0));
        flash.submit(at(0), write(1));
        assert_eq!(ends(&mut flash), [(0, 120), (1, 220)]);
    }

    #[test]
    fn what_comes_behind_a_clean_up_waits_for_it() {
        let mut flash = flash(1.0);
        flash.submit(at(0), write(0));
        flash.submit(at(0), write(1));
        // The first is written from 20 to 120, and cleaned up behind until 1120.
        assert_eq!(ends(&mut flash), [(0, 120), (1, 1220)]);
    }
}
