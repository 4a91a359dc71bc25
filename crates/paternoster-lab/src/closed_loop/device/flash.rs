//! Flash: channels, chosen by chance, that share a bus. What is read crosses the bus after its
//! channel has it, what is written before. A channel or the bus is what the device lacks, by the
//! mix of what is asked for.
//!
//! ```text
//!   read    channel 3 ├──────┤   bus ├─┤
//!   write   bus ├─┤   channel 1 ├────────────┤├── clean-up …
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paternoster::{Instant, Nanos, Sector};

use super::{DEPTH, END, completion};
use crate::closed_loop::chance::{Chance, Service, micros};
use crate::model::{Command, Completion, Model, Op};

/// How flash is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashParameters {
    /// How many channels there are.
    pub channels: u32,
    /// How long one takes for a command.
    pub service: Service,
    /// How long the bus takes for a KiB, in microseconds.
    pub bus_us_per_kib: f64,
    /// The part of writes that is followed by a clean-up.
    pub clean_ups: f64,
    /// How long that takes.
    pub clean_up: Nanos,
}

/// Where a command is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Bus,
    /// The channel of that index.
    Channel(usize),
    /// The same, where the channel cleans up and has no command.
    CleanUp(usize),
}

/// What serves one command at a time.
#[derive(Debug, Default)]
struct Server {
    busy: bool,
    waiting: VecDeque<Command>,
}

/// Flash.
#[derive(Debug)]
pub(super) struct Flash {
    parameters: FlashParameters,
    channels: Vec<Server>,
    bus: Server,
    /// The channels of the commands, by tag.
    channel_of: Vec<usize>,
    /// What ends next: when, in which order it began, where, and the command's tag.
    ends: BinaryHeap<Reverse<(Instant, u64, Stage, u32)>>,
    /// The commands that are served, by tag.
    served: Vec<Option<Command>>,
    sequence: u64,
    chance: Chance,
}

impl Flash {
    pub(super) fn new(parameters: FlashParameters, chance: Chance) -> Self {
        Self {
            parameters,
            channels: (0..parameters.channels).map(|_| Server::default()).collect(),
            bus: Server::default(),
            channel_of: vec![0; DEPTH as usize],
            ends: BinaryHeap::new(),
            served: vec![None; DEPTH as usize],
            sequence: 0,
            chance,
        }
    }

    /// A command comes to its channel or to the bus.
    fn enter(&mut self, now: Instant, stage: Stage, command: Command) {
        self.server(stage).waiting.push_back(command);
        self.start(now, stage);
    }

    fn server(&mut self, stage: Stage) -> &mut Server {
        match stage {
            Stage::Bus => &mut self.bus,
            Stage::Channel(channel) | Stage::CleanUp(channel) => &mut self.channels[channel],
        }
    }

    /// Begins the next command there, if there is one and nothing is served.
    fn start(&mut self, now: Instant, stage: Stage) {
        let server = self.server(stage);
        if server.busy {
            return;
        }
        let Some(command) = server.waiting.pop_front() else { return };
        server.busy = true;
        let took = match stage {
            Stage::Bus => {
                micros(self.parameters.bus_us_per_kib * f64::from(command.sectors.0) / 2.0)
            }
            _ => self.parameters.service.draw(&mut self.chance, &command, 1.0),
        };
        self.served[command.tag as usize] = Some(command);
        self.end_at(now + took, stage, command.tag);
    }

    fn end_at(&mut self, at: Instant, stage: Stage, tag: u32) {
        self.sequence += 1;
        self.ends.push(Reverse((at, self.sequence, stage, tag)));
    }

    /// A stage of a command is over; returns whether that was its last.
    fn ended(&mut self, at: Instant, stage: Stage, tag: u32) -> bool {
        if let Stage::CleanUp(channel) = stage {
            self.channels[channel].busy = false;
            self.start(at, Stage::Channel(channel));
            return false;
        }
        let command = self.served[tag as usize].take().expect("it is served");
        let writes = command.op == Op::Write;
        match stage {
            Stage::Channel(channel) if writes && self.chance.happens(self.parameters.clean_ups) => {
                self.end_at(at + self.parameters.clean_up, Stage::CleanUp(channel), tag);
            }
            _ => {
                self.server(stage).busy = false;
                self.start(at, stage);
            }
        }
        match (stage, writes) {
            (Stage::Bus, true) => {
                self.enter(at, Stage::Channel(self.channel_of[tag as usize]), command);
                false
            }
            (Stage::Channel(_), false) => {
                self.enter(at, Stage::Bus, command);
                false
            }
            _ => true,
        }
    }
}

impl Model for Flash {
    fn depth(&self) -> u32 {
        DEPTH
    }

    fn end(&self) -> Sector {
        END
    }

    fn rotational(&self) -> bool {
        false
    }

    fn submit(&mut self, now: Instant, command: Command) {
        let channel = self.chance.below(u64::from(self.parameters.channels));
        let channel = usize::try_from(channel).expect("it is below a u32");
        self.channel_of[command.tag as usize] = channel;
        let first = if command.op == Op::Write { Stage::Bus } else { Stage::Channel(channel) };
        self.enter(now, first, command);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ends.peek().map(|Reverse((at, ..))| *at)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        while let Some(&Reverse((at, _, stage, tag))) = self.ends.peek() {
            if at > now {
                return None;
            }
            self.ends.pop();
            if self.ended(at, stage, tag) {
                return Some(completion(tag));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, ends, read, write};
    use super::*;

    fn flash(clean_ups: f64) -> Flash {
        let parameters = FlashParameters {
            channels: 1,
            service: Service { write_times: 2.0, ..Service::constant(50.0) },
            bus_us_per_kib: 5.0,
            clean_ups,
            clean_up: Nanos::from_micros(1000),
        };
        Flash::new(parameters, Chance::new(1, 1))
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
