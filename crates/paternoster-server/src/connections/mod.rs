//! The connections of one disk: NBD commands in, replies out, on the owner's thread.
//!
//! ```text
//!   socket ──receive──▶ input ──decode──▶ command ──▶ the owner's engine
//!   socket ◀──send── out ◀── replies of a whole turn ◀── outcome
//! ```
//!
//! The tenant is the group; a connection is an I/O context of it, made at its first command and
//! gone when it is closed and its last command is done.
//!
//! No tenant is another's trouble. Memory is bounded by tenant: one whose commands and unsent
//! replies hold more than its credit is not read from until some are sent. Work on this thread is
//! bounded by turn: what costs the owner system calls of its own, `BLOCK_STATUS`, is done once a
//! turn and connection.

mod connection;
mod faults;
mod shutdown;
mod stat;
mod tenant;
mod visits;
mod weight;

use std::sync::mpsc;

use paternoster::{AnyScheduler, Instant, NoTrace};
use paternoster_disk::{
    Command as DiskCommand, CommandOp, Completion, Front, FrontToken, Outcome, Owner, Turn,
};
use paternoster_nbd::{Command, Extent, ExtentFlags, NbdError, Request, StatusQuery};
use rustix::io::Errno;
use slotmap::{Key, KeyData, SlotMap, new_key_type};

use self::connection::{Connection, ConnectionId, Operation, State};
use self::faults::Faults;
use self::shutdown::{Patience, ShuttingDown};
pub(crate) use self::tenant::Tenant;
use self::tenant::request_cost;
use self::visits::Leave;
use crate::log::Limits;
use crate::messages::{Message, NewConnection};

/// The scheduler of a served disk.
pub(crate) type Scheduler = AnyScheduler<NoTrace>;

pub(crate) type DiskOwner = Owner<Scheduler>;

new_key_type! {
    /// Names a command under way; it is the engine's tag.
    struct CommandId;
}

/// A command that the engine has.
#[derive(Debug)]
struct Underway {
    connection: ConnectionId,
    cookie: u64,
    /// What a read's reply says of its place: offset and length.
    read: Option<(u64, u32)>,
    /// Bytes of the tenant's credit that it holds.
    cost: usize,
}

/// An export of the disk.
#[derive(Debug)]
pub(crate) struct Export {
    /// Its index in the configuration.
    pub(crate) index: usize,
    pub(crate) name: String,
    /// Where on the disk it starts, in bytes.
    pub(crate) offset: u64,
    pub(crate) io_prio: paternoster::IoPrio,
    /// Its tenant, as an index.
    pub(crate) tenant: usize,
}

/// What of the disk's configuration its statistics tell.
#[derive(Debug)]
pub(crate) struct DiskLabel {
    pub(crate) name: String,
    pub(crate) backend: &'static str,
    pub(crate) weights_apply: bool,
}

/// All connections of a disk's exports.
#[derive(Debug)]
pub(crate) struct Connections {
    label: DiskLabel,
    exports: Vec<Export>,
    tenants: Vec<Tenant>,
    inbox: mpsc::Receiver<Message>,
    clients: SlotMap<ConnectionId, Connection>,
    /// Connections so far.
    connected: u64,
    underway: SlotMap<CommandId, Underway>,
    /// Connections with replies to send, or that may be over.
    touched: Vec<ConnectionId>,
    /// Connections whose next commands have to wait for the next turn.
    deferred: Vec<ConnectionId>,
    shutting_down: Option<ShuttingDown>,
    patience: Patience,
    faults: Faults,
    limits: Limits,
}

impl Connections {
    pub(crate) fn new(
        label: DiskLabel,
        exports: Vec<Export>,
        tenants: Vec<Tenant>,
        inbox: mpsc::Receiver<Message>,
    ) -> Self {
        Self {
            label,
            exports,
            tenants,
            inbox,
            clients: SlotMap::with_key(),
            connected: 0,
            underway: SlotMap::with_key(),
            touched: Vec::new(),
            deferred: Vec::new(),
            shutting_down: None,
            patience: Patience::default(),
            faults: Faults::default(),
            limits: Limits::default(),
        }
    }

    fn connect(&mut self, owner: &mut DiskOwner, new: NewConnection) {
        let mine = self.exports.iter().position(|export| export.index == new.export);
        let export = mine.expect("clients are handed to the owner of their export's disk");
        self.tenants[self.exports[export].tenant].connections += 1;
        self.connected += 1;
        let id = self.clients.insert(Connection::new(new, export, self.connected));
        if self.shutting_down.is_some() {
            self.clients[id].transmission.begin_shutdown();
        }
        self.tell_connected(id);
        self.take_commands(owner, id);
    }

    /// Puts what has been received to the disk, as far as the tenant's credit goes, then receives
    /// more.
    fn take_commands(&mut self, owner: &mut DiskOwner, id: ConnectionId) {
        self.touch(id);
        while self.clients[id].state == State::Open {
            let tenant = self.tenant_of(id);
            if self.tenants[tenant].is_out_of_credit() && !self.clients[id].is_landing() {
                self.tenants[tenant].paused.push(id);
                return;
            }
            let decoded = self.clients[id].decode();
            self.recharge(id);
            match decoded {
                Ok(Some(Request { cookie, command: Command::BlockStatus(query) })) => {
                    self.block_status(owner, id, cookie, query);
                    self.recharge(id);
                    self.deferred.push(id);
                    return;
                }
                Ok(Some(request)) => {
                    self.handle_request(owner, id, request);
                    self.recharge(id);
                }
                Ok(None) => return self.receive(owner, id),
                Err(error) => self.clients[id].fail(Leave::CutOff(error)),
            }
        }
    }

    /// Receives what is missing, if the tenant has credit for it.
    fn receive(&mut self, owner: &mut DiskOwner, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let connection = &mut self.clients[id];
        let credit = connection.landing_wanted();
        if credit > 0 && !self.tenants[tenant].may_land(credit) {
            self.tenants[tenant].paused.push(id);
            return;
        }
        connection.receive(owner.ring(), id, credit);
        self.recharge(id);
    }

    /// Charges the tenant for what the connection holds now.
    fn recharge(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let (before, now) = self.clients[id].recharge();
        self.tenants[tenant].give_back(before);
        self.tenants[tenant].take(now);
    }

    fn tenant_of(&self, id: ConnectionId) -> usize {
        self.exports[self.clients[id].export].tenant
    }

    fn handle_request(&mut self, owner: &mut DiskOwner, id: ConnectionId, request: Request) {
        let Request { cookie, command } = request;
        let base = self.exports[self.clients[id].export].offset;
        let mut read = None;
        let op = match command {
            Command::Read { offset, len, .. } => {
                read = Some((offset, len));
                CommandOp::Read { offset: base + offset, len }
            }
            Command::Write { offset, data, fua } => {
                CommandOp::Write { offset: base + offset, data, fua }
            }
            Command::Trim { offset, len, fua } => {
                CommandOp::Trim { offset: base + offset, len, fua }
            }
            Command::Cache { offset, len } => CommandOp::Cache { offset: base + offset, len },
            Command::WriteZeroes { offset, len, fua, no_hole, fast } => {
                CommandOp::Zero { offset: base + offset, len, fua, allocate: no_hole, fast }
            }
            Command::Flush => CommandOp::Flush,
            Command::BlockStatus(_) => unreachable!("it is answered when it is decoded"),
            Command::Disconnect => return self.clients[id].finish(Leave::Farewell),
        };
        if self.shutting_down.is_some() {
            let error = NbdError::Shutdown;
            return self.clients[id].reply_error(cookie, error, "the server is shutting down");
        }
        let ioc = self.io_context(owner, id);
        let cost = request_cost(&op);
        let tenant = self.tenant_of(id);
        self.tenants[tenant].take(cost);
        self.clients[id].underway += 1;
        let tag = self.underway.insert(Underway { connection: id, cookie, read, cost });
        owner.submit(DiskCommand { tag: tag.data().as_ffi(), ioc, op });
    }

    /// The connection's I/O context, made at its first command.
    fn io_context(&mut self, owner: &mut DiskOwner, id: ConnectionId) -> paternoster::IocId {
        let connection = &mut self.clients[id];
        *connection.ioc.get_or_insert_with(|| {
            let export = &self.exports[connection.export];
            let group = self.tenants[export.tenant].group;
            let now = owner.now();
            owner.engine_mut().elevator_mut().io_context(now, export.io_prio, group)
        })
    }

    /// What is allocated is the back end's to say, at once: no data moves.
    fn block_status(
        &mut self,
        owner: &mut DiskOwner,
        id: ConnectionId,
        cookie: u64,
        query: StatusQuery,
    ) {
        let connection = &mut self.clients[id];
        let base = self.exports[connection.export].offset;
        match owner.backend().extents(base + query.offset, query.len.into()) {
            Ok(extents) => {
                let extents: Vec<Extent> = extents.iter().map(nbd_extent).collect();
                connection.reply_block_status(cookie, query, &extents);
            }
            Err(error) => {
                connection.reply_error(cookie, NbdError::Io, &error.to_string());
            }
        }
    }

    fn touch(&mut self, id: ConnectionId) {
        let connection = &mut self.clients[id];
        if !std::mem::replace(&mut connection.touched, true) {
            self.touched.push(id);
        }
    }

    /// Sends what the turn has gathered for the connection, or lets it go if it is over.
    fn tend(&mut self, owner: &mut DiskOwner, id: ConnectionId) {
        let connection = &mut self.clients[id];
        connection.touched = false;
        connection.send(owner.ring(), id);
        if connection.is_over() {
            self.remove(owner, id);
        }
    }

    fn remove(&mut self, owner: &mut DiskOwner, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        self.tenants[tenant].connections -= 1;
        self.tell_left(id);
        let connection = self.clients.remove(id).expect("a connection ends once");
        let tenant = &mut self.tenants[tenant];
        tenant.give_back(connection.charged());
        tenant.paused.retain(|&paused| paused != id);
        self.deferred.retain(|&deferred| deferred != id);
        if let Some(ioc) = connection.ioc {
            let now = owner.now();
            owner.engine_mut().elevator_mut().exit_io_context(now, ioc);
            owner.settle();
        }
    }

    /// Goes on with the connections of tenants that have credit again.
    fn resume_paused(&mut self, owner: &mut DiskOwner) {
        for tenant in 0..self.tenants.len() {
            if self.tenants[tenant].is_out_of_credit() {
                continue;
            }
            for id in std::mem::take(&mut self.tenants[tenant].paused) {
                self.take_commands(owner, id);
            }
        }
    }
}

impl Front<Scheduler> for Connections {
    fn started(&mut self, _owner: &mut DiskOwner) {}

    fn ring_completed(&mut self, owner: &mut DiskOwner, completion: Completion<FrontToken>) {
        let Completion { token, result, mut filled, .. } = completion;
        let (id, operation) = Operation::from_token(token);
        let Some(connection) = self.clients.get_mut(id) else { return };
        match operation {
            Operation::Receive => {
                let input = filled.pop().unwrap_or_default();
                connection.received(input, result);
                self.take_commands(owner, id);
            }
            Operation::Send => {
                connection.sent(result);
                self.recharge(id);
                self.touch(id);
            }
        }
    }

    fn command_done(&mut self, owner: &mut DiskOwner, outcome: Outcome) {
        if outcome.result.is_err() {
            self.tell_faults(owner);
        }
        if self.shutdown_flushed(&outcome) {
            return;
        }
        let tag = CommandId::from(KeyData::from_ffi(outcome.tag));
        let done = self.underway.remove(tag).expect("a command is done once");
        let id = done.connection;
        let connection = &mut self.clients[id];
        connection.underway -= 1;
        match (outcome.result, done.read) {
            (Ok(payload), Some((offset, len))) => {
                connection.reply_read(done.cookie, offset, len, payload);
            }
            (Ok(_), None) => connection.reply_ok(done.cookie),
            (Err(errno), _) => {
                connection.reply_error(done.cookie, nbd_error(errno), &errno.to_string());
            }
        }
        let tenant = self.tenant_of(id);
        self.tenants[tenant].give_back(done.cost);
        self.recharge(id);
        self.touch(id);
    }

    fn woken(&mut self, owner: &mut DiskOwner) {
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Connect(new) => self.connect(owner, new),
                Message::Stat(detail, sender) => {
                    // Whoever asked may have gone.
                    let _ = sender.send(self.stat(owner, detail));
                }
                Message::SetWeight(weights, sender) => {
                    if let Some(in_force) = self.set_weight(owner, &weights) {
                        // Whoever asked may have gone.
                        let _ = sender.send(in_force);
                    }
                }
                Message::Shutdown => self.begin_shutdown(owner),
            }
        }
    }

    fn turn_over(&mut self, owner: &mut DiskOwner) -> Turn {
        for id in std::mem::take(&mut self.deferred) {
            self.take_commands(owner, id);
        }
        self.resume_paused(owner);
        for id in std::mem::take(&mut self.touched) {
            self.tend(owner, id);
        }
        self.tell_faults(owner);
        self.go_on_shutting_down(owner)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.deferred.is_empty() {
            return Some(Instant::START);
        }
        self.shutting_down.as_ref().map(ShuttingDown::deadline)
    }
}

fn nbd_extent(extent: &paternoster_disk::Extent) -> Extent {
    let flags =
        if extent.hole { ExtentFlags::HOLE | ExtentFlags::ZERO } else { ExtentFlags::empty() };
    // A query is shorter than 4 GiB, and so is every part of it.
    Extent { len: u32::try_from(extent.len).unwrap_or(u32::MAX), flags }
}

/// What the protocol can say of an error; no other number may be on the wire.
fn nbd_error(errno: Errno) -> NbdError {
    match errno {
        Errno::PERM | Errno::ROFS | Errno::ACCESS => NbdError::NotPermitted,
        Errno::NOMEM => NbdError::NoMemory,
        Errno::INVAL => NbdError::Invalid,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => NbdError::NoSpace,
        Errno::OVERFLOW => NbdError::Overflow,
        Errno::OPNOTSUPP => NbdError::NotSupported,
        Errno::SHUTDOWN => NbdError::Shutdown,
        _ => NbdError::Io,
    }
}
