//! Clients that send the same again and again, as fast as the server takes it.

use std::io::{self, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use crate::arena::{Attacker, Orders};
use crate::client::{Socket, Target};
use crate::support::Place;

/// How long to wait after a round in which no connection took or brought anything.
const PAUSE: Duration = Duration::from_millis(1);

/// What is sent at once at least, in bytes.
const CHUNK: usize = 64 << 10;

/// Connections on one thread, each of which sends the same commands again and again.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    export: &'static str,
    place: Place,
    connections: usize,
    commands: Vec<u8>,
    replies: Replies,
    entry: Entry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replies {
    Read,
    LeftUnread,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Simple,
    Allocation,
}

/// One of them.
struct Client {
    socket: Box<dyn Socket>,
    /// Bytes sent of the commands.
    sent: usize,
    /// Whether it is of use still.
    is_open: bool,
}

impl Flood {
    /// Of `commands`, on so many connections of the export `evil`, whose replies are read.
    pub(crate) fn of(connections: usize, commands: &[u8]) -> Self {
        let commands = commands.repeat(CHUNK.div_ceil(commands.len()));
        let (replies, entry) = (Replies::Read, Entry::Simple);
        Self { export: "evil", place: Place::Unix, connections, commands, replies, entry }
    }

    /// The same with replies that nobody reads.
    pub(crate) fn unread(connections: usize, commands: &[u8]) -> Self {
        Self { replies: Replies::LeftUnread, ..Self::of(connections, commands) }
    }

    /// The same of `BLOCK_STATUS`.
    pub(crate) fn of_block_status(connections: usize, commands: &[u8]) -> Self {
        Self { entry: Entry::Allocation, ..Self::of(connections, commands) }
    }

    pub(crate) fn on(self, export: &'static str) -> Self {
        Self { export, ..self }
    }

    pub(crate) fn over_tcp(self) -> Self {
        Self { place: Place::Tcp, ..self }
    }

    pub(crate) fn attacker(self) -> Attacker {
        Box::new(move |target, orders| self.run(target, orders))
    }

    fn enter(&self, target: &Target) -> io::Result<Client> {
        let socket = match self.entry {
            Entry::Simple => target.enter(self.place, self.export),
            Entry::Allocation => target.enter_allocation(self.place, self.export),
        }?;
        socket.do_not_block()?;
        Ok(Client { socket, sent: 0, is_open: true })
    }

    fn run(&self, target: &Target, orders: &Orders) {
        let mut clients = Vec::new();
        while orders.go_on() {
            // All of them are at it before the last is in.
            if clients.len() < self.connections
                && let Ok(client) = self.enter(target)
            {
                clients.push(client);
            }
            let moved: usize = clients.iter_mut().map(|client| self.go_on(client)).sum();
            if moved == 0 {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Sends and reads as much as one call each does: the bytes.
    fn go_on(&self, client: &mut Client) -> usize {
        if !client.is_open {
            return 0;
        }
        let from = client.sent % self.commands.len();
        let mut moved = 0;
        match client.socket.write(&self.commands[from..]) {
            Ok(sent) => {
                client.sent += sent;
                moved += sent;
            }
            Err(error) => client.is_open = error.kind() == io::ErrorKind::WouldBlock,
        }
        if self.replies == Replies::Read {
            match client.socket.read(&mut [0; 16 << 10]) {
                Ok(0) => client.is_open = false,
                Ok(taken) => moved += taken,
                Err(error) => client.is_open &= error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        moved
    }
}
