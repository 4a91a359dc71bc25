//! How the clients in the guest reach the server: by connections of NBD, or by the rings of a
//! machine that attaches by shared memory. Either has several, each with requests in flight.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use clap::ValueEnum;
use paternoster_load::{Ask as Wanted, Machine, Shape};
use paternoster_nbd::{Command, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::Connection;
use super::log::SECTOR;
use super::record::{Ask, Change, fill};

/// How long the server may take for the next answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// By what the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// By NBD
    Nbd,
    /// As a machine, what is flushed being durable
    Machine,
    /// As a machine whose driver has said that it does not flush: what is answered is durable
    MachineWritesThrough,
}

impl By {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::Machine => "machine",
            Self::MachineWritesThrough => "machine-writes-through",
        }
    }
}

/// The connections or rings.
pub(super) enum Front {
    Nbd(Vec<Connection>),
    Machine(Rings),
}

/// The rings of a machine, with the request in each slot.
pub(super) struct Rings {
    machine: Machine,
    in_flight: Vec<BTreeMap<u16, u64>>,
}

impl Front {
    /// Reaches the server at its socket, so many times.
    pub(super) fn enter(
        by: By,
        socket: &Path,
        count: u16,
        depth: u16,
        longest: u64,
    ) -> Result<Self> {
        if by == By::Nbd {
            let connections = (0..count).map(|_| Connection::enter(socket));
            return Ok(Self::Nbd(connections.collect::<Result<_>>()?));
        }
        let room = bytes(longest);
        let mut machine = Machine::attach(
            socket,
            Shape { queues: count, slots: depth, room, ..Shape::default() },
        )?;
        if by == By::MachineWritesThrough {
            machine.set_writeback(false)?;
        }
        let in_flight = vec![BTreeMap::new(); count.into()];
        Ok(Self::Machine(Rings { machine, in_flight }))
    }

    /// Bytes of the export.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Nbd(connections) => connections[0].size(),
            Self::Machine(Rings { machine, .. }) => machine.size(),
        }
    }

    /// Requests without an answer, on one of them.
    pub(super) fn in_flight(&self, index: usize) -> usize {
        match self {
            Self::Nbd(connections) => connections[index].in_flight(),
            Self::Machine(rings) => rings.in_flight[index].len(),
        }
    }

    /// Asks for something of that number, on one of them.
    pub(super) fn ask(&mut self, index: usize, number: u64, ask: Ask) -> Result<()> {
        match self {
            Self::Nbd(connections) => {
                let request = Request { cookie: number, command: command(number, ask) };
                connections[index].ask(&request)
            }
            Self::Machine(Rings { machine, in_flight }) => {
                let data: Vec<u8>;
                let wanted = match ask {
                    Ask::Flush => Wanted::Flush,
                    Ask::Change { how: Change::Write, sector, sectors, .. } => {
                        data = content(number, sector, sectors);
                        Wanted::Write(sector, &data)
                    }
                    Ask::Change { how, sector, sectors, .. } => {
                        let sectors = u32::try_from(sectors)?;
                        match how {
                            Change::Trim => Wanted::Discard(sector, sectors),
                            _ => Wanted::WriteZeroes(sector, sectors),
                        }
                    }
                };
                in_flight[index].insert(machine.ask(index, &wanted)?, number);
                Ok(())
            }
        }
    }

    /// Sends what one of them has to send.
    pub(super) fn send(&mut self, index: usize) -> Result<()> {
        match self {
            Self::Nbd(connections) => connections[index].send(),
            // The ring was kicked for each.
            Self::Machine(_) => Ok(()),
        }
    }

    /// Waits until something is answered, and takes all that is: the numbers of the requests.
    pub(super) fn answered(&mut self) -> Result<Vec<u64>> {
        match self {
            Self::Nbd(connections) => answered_of(connections),
            Self::Machine(Rings { machine, in_flight }) => {
                let done = machine.wait_for_any(PATIENCE)?;
                ensure!(!done.is_empty(), "no answer for {} s", PATIENCE.as_secs());
                let number = |(ring, done): (usize, paternoster_load::Done)| {
                    let number = in_flight[ring].remove(&done.slot).context("it was asked for")?;
                    ensure!(done.status == 0, "request {number} has the status {}", done.status);
                    Ok(number)
                };
                done.into_iter().map(number).collect()
            }
        }
    }
}

fn answered_of(connections: &mut [Connection]) -> Result<Vec<u64>> {
    let wanted = |connection: &Connection| {
        let send = if connection.wants_to_send() { PollFlags::OUT } else { PollFlags::empty() };
        PollFlags::IN | send
    };
    let mut waiting: Vec<PollFd<'_>> =
        connections.iter().map(|connection| PollFd::new(connection, wanted(connection))).collect();
    let patience = Timespec::try_from(PATIENCE)?;
    ensure!(poll(&mut waiting, Some(&patience))? > 0, "no answer for {} s", PATIENCE.as_secs());
    let ready: Vec<PollFlags> = waiting.iter().map(PollFd::revents).collect();
    let mut answered = Vec::new();
    for (connection, ready) in connections.iter_mut().zip(ready) {
        connection.send()?;
        if ready.intersects(PollFlags::IN | PollFlags::HUP) {
            connection.receive()?;
        }
        while let Some(reply) = connection.answer()? {
            if let Err(error) = reply.result {
                bail!("request {} was answered by {error}", reply.cookie);
            }
            answered.push(reply.cookie);
        }
    }
    Ok(answered)
}

/// The command on the wire.
fn command(number: u64, ask: Ask) -> Command {
    let Ask::Change { how, sector, sectors, fua } = ask else { return Command::Flush };
    let (offset, len) = (sector * SECTOR as u64, bytes(sectors));
    match how {
        Change::Trim => Command::Trim { offset, len, fua },
        Change::Zero => Command::WriteZeroes { offset, len, fua, no_hole: false, fast: false },
        Change::Write => {
            Command::Write { offset, data: Bytes::from(content(number, sector, sectors)), fua }
        }
    }
}

/// What the write of that number writes.
fn content(number: u64, sector: u64, sectors: u64) -> Vec<u8> {
    (sector..sector + sectors).flat_map(|sector| fill(number, sector)).collect()
}

fn bytes(sectors: u64) -> u32 {
    u32::try_from(sectors * SECTOR as u64).expect("a request has a few sectors")
}
