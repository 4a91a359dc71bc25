//! The connections of one disk: NBD commands in, replies out, on the owner's thread.
//!
//! ```text
//!   socket ──receive──▶ input ──decode──▶ command ──▶ the owner's engine
//!   socket ◀──send── out ◀── replies of a whole round ◀── outcome
//! ```
//!
//! The tenant is the group; a connection is an I/O context of it, made at its first command and
//! gone when it is closed and its last command is done.
//!
//! No tenant harms another. Memory is bounded by tenant (`credit.rs`): what would hold more
//! than its credit waits, in order, and is not read from. Work on this thread is bounded by round
//! (`rotation.rs`): what happens only queues a connection to be worked for, and tenants are worked
//! for in rotation, before the disk dispatches. The replies of a round go at its end
//! (`replies.rs`).

#[cfg(test)]
mod arrivals;
mod client_log;
mod connection;
mod credit;
mod faults;
#[cfg(test)]
mod faulty;
mod greatest_rate;
mod incoming;
mod limit;
mod outgoing;
mod outside;
mod reload;
mod replies;
mod rotation;
mod settings;
mod shutdown;
mod stalled;
mod stat;
#[cfg(test)]
mod swarm;
mod targets;
mod tenant;
mod weight;

use std::ops::ControlFlow;
use std::sync::mpsc;

use paternoster::scheduler::Work;
use paternoster::{AnyScheduler, Instant, Nanos, TimeAccounts};
use paternoster_disk::{
    Command as DiskCommand, CommandOp, Completion, Front, FrontToken, Outcome, Owner,
};
use paternoster_nbd::{Command, Extent, ExtentFlags, NbdError, Request, StatusQuery};
use rustix::io::Errno;
use slotmap::{Key, KeyData, SlotMap, new_key_type};

use self::client_log::Leave;
use self::connection::{Connection, ConnectionId, Decoded, Operation, Waiting};
use self::credit::Amount;
use self::faults::Faults;
use self::greatest_rate::GreatestRate;
use self::replies::Replies;
use self::rotation::{ANSWER, QUANTUM, Rotation};
use self::shutdown::{Patience, ShuttingDown};
use self::stalled::Stalled;
use self::targets::UnmetTargets;
pub(crate) use self::tenant::Tenant;
use self::tenant::{Grant, LEAST, request_cost};
use crate::log::Limits;
use crate::messages::{Message, NewConnection};

/// The scheduler of a served disk.
pub(crate) type Scheduler = AnyScheduler<TimeAccounts>;

pub(crate) type DiskOwner = Owner<Scheduler>;

new_key_type! {
    /// Names a command in flight; it is the engine's tag.
    struct CommandId;
}

/// A command that the engine works on.
#[derive(Debug)]
struct InFlight {
    connection: ConnectionId,
    cookie: u64,
    /// Of a read: its offset and length, for the reply.
    read: Option<(u64, u32)>,
    /// The credit that it holds.
    cost: Amount,
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

/// The part of a disk's configuration that its statistics report, and that the back end and the
/// elevator do not know.
#[derive(Debug)]
pub(crate) struct DiskLabel {
    pub(crate) name: String,
    pub(crate) backend: &'static str,
    /// Whether `auto` has chosen the scheduler in force.
    pub(crate) auto: bool,
}

/// All connections of a disk's exports.
#[derive(Debug)]
pub(crate) struct Connections {
    label: DiskLabel,
    exports: Vec<Export>,
    tenants: Vec<Tenant>,
    inbox: mpsc::Receiver<Message>,
    clients: SlotMap<ConnectionId, Connection>,
    /// The number of connections so far.
    connected: u64,
    in_flight: SlotMap<CommandId, InFlight>,
    rotation: Rotation<ConnectionId>,
    replies: Replies,
    /// Tenants of which something else may hold back commands now.
    changed: Vec<usize>,
    stalled: Stalled,
    shutting_down: Option<ShuttingDown>,
    patience: Patience,
    faults: Faults,
    limits: Limits,
    greatest_rate: GreatestRate,
    unmet_targets: UnmetTargets,
}

impl Connections {
    pub(crate) fn new(
        label: DiskLabel,
        exports: Vec<Export>,
        tenants: Vec<Tenant>,
        inbox: mpsc::Receiver<Message>,
        payload_timeout: Nanos,
    ) -> Self {
        let rotation = Rotation::new(tenants.len());
        Self {
            label,
            exports,
            tenants,
            inbox,
            clients: SlotMap::with_key(),
            connected: 0,
            in_flight: SlotMap::with_key(),
            rotation,
            replies: Replies::default(),
            changed: Vec::new(),
            stalled: Stalled::new(payload_timeout),
            shutting_down: None,
            patience: Patience::default(),
            faults: Faults::default(),
            limits: Limits::default(),
            greatest_rate: GreatestRate::default(),
            unmet_targets: UnmetTargets::default(),
        }
    }

    fn connect(&mut self, owner: &mut DiskOwner, new: NewConnection) {
        let mine = self.exports.iter().position(|export| export.index == new.export);
        let export = mine.expect("clients are handed to the owner of their export's disk");
        self.tenants[self.exports[export].tenant].connections += 1;
        self.connected += 1;
        let client = Connection::new(new, export, self.connected, owner.now());
        let id = self.clients.insert(client);
        if self.shutting_down.is_some() {
            self.clients[id].transmission.begin_shutdown();
        }
        self.log_connected(id);
        self.queue(id);
    }

    /// Queues the connection in the rotation.
    fn queue(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        if !std::mem::replace(&mut self.clients[id].queued.for_work, true) {
            self.rotation.add(tenant, id);
        }
    }

    /// Puts what has been received to the disk, and lets the connection go if it is over; for a
    /// quantum of work at most.
    fn work_for(&mut self, owner: &mut DiskOwner, id: ConnectionId) {
        self.clients[id].queued.for_work = false;
        let tenant = self.tenant_of(id);
        let units = self.take_commands(owner, id);
        self.release(id);
        self.update_charge(id);
        self.rotation.charge(tenant, units.max(1));
        // It may have been answered at once.
        self.queue_replies(id);
        if self.clients[id].is_over() {
            self.remove(owner, id);
        } else if self.clients[id].takes_commands() {
            // It was the quantum that ended this.
            self.queue(id);
        }
    }

    /// Takes commands until none is left, the tenant has no credit, or a quantum is used. Returns
    /// the units of work that it took.
    fn take_commands(&mut self, owner: &mut DiskOwner, id: ConnectionId) -> i32 {
        let mut units = 0;
        while self.clients[id].takes_commands() && units < QUANTUM {
            let client = &self.clients[id];
            if client.pending.is_none()
                && !client.has_payload_room()
                && self.take_credit(owner, id, LEAST) == Grant::Waits
            {
                return units;
            }
            units += match self.clients[id].next_command() {
                Ok(Decoded::Request(Request { cookie, command: Command::BlockStatus(query) })) => {
                    self.block_status(owner, id, cookie, query)
                }
                Ok(Decoded::Request(request)) => {
                    self.handle_request(owner, id, request);
                    1
                }
                Ok(Decoded::Answered) => {
                    // What it was answered is charged, and there may be no more room for that.
                    self.release(id);
                    self.update_charge(id);
                    8 * ANSWER
                }
                Ok(Decoded::NeedMore) => return units + self.receive(owner, id),
                Err(error) => {
                    self.clients[id].fail(Leave::CutOff(error));
                    1
                }
            };
        }
        units
    }

    /// Receives what is missing, if the tenant has credit for it. Returns the units of work that it
    /// took.
    fn receive(&mut self, owner: &mut DiskOwner, id: ConnectionId) -> i32 {
        let [(least, needed), (best, wished)] = self.clients[id].rooms();
        if self.take_credit(owner, id, needed) == Grant::Waits {
            return 1;
        }
        // What was taken for the room is charged with it.
        self.release(id);
        let tenant = self.tenant_of(id);
        let spare = wished.bytes() == 0 || self.tenants[tenant].has_spare(wished);
        let now = owner.now();
        self.clients[id].receive(owner.ring(), id, if spare { best } else { least }, now);
        self.update_charge(id);
        1
    }

    /// Takes so much credit for what the connection does next, or has it wait for that.
    fn take_credit(&mut self, owner: &mut DiskOwner, id: ConnectionId, amount: Amount) -> Grant {
        let tenant = self.tenant_of(id);
        if amount.bytes() <= self.clients[id].granted.bytes() {
            return Grant::Taken;
        }
        self.release(id);
        let client = &mut self.clients[id];
        let grant = self.tenants[tenant].take_or_wait(id, amount);
        match grant {
            Grant::Taken => client.granted = amount,
            Grant::Waits => {
                client.waiting = Waiting::ForCredit;
                client.watch(owner.ring(), id);
                self.stalled.look_soon(owner.now());
                self.note_outside(tenant);
            }
        }
        grant
    }

    /// Gives back what has been taken for what the connection does next.
    fn release(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let granted = std::mem::replace(&mut self.clients[id].granted, Amount::Small(0));
        self.tenants[tenant].give_back(granted);
    }

    /// Has the tenant charged for what the connection holds now.
    fn update_charge(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let (before, now) = self.clients[id].update_charge();
        for amount in before {
            self.tenants[tenant].give_back(amount);
        }
        for amount in now {
            self.tenants[tenant].take(amount);
        }
    }

    fn tenant_of(&self, id: ConnectionId) -> usize {
        self.exports[self.clients[id].export].tenant
    }

    fn handle_request(&mut self, owner: &mut DiskOwner, id: ConnectionId, request: Request) {
        let cost = request_cost(&request.command);
        let has_payload_room = self.clients[id].has_payload_room();
        if !has_payload_room
            && self.shutting_down.is_none()
            && self.take_credit(owner, id, cost) == Grant::Waits
        {
            self.clients[id].pending = Some(request);
            return;
        }
        let Request { cookie, command } = request;
        let base = self.exports[self.clients[id].export].offset;
        let mut read = None;
        let op = match command {
            Command::Read { offset, len, .. } => {
                read = Some((offset, len));
                CommandOp::Read { offset: base + offset, len }
            }
            Command::Write { offset, data, fua } => {
                let data = self.clients[id].own(data);
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
            Command::Disconnect => return self.clients[id].finish(Leave::Disconnected),
        };
        if self.shutting_down.is_some() {
            let error = NbdError::Shutdown;
            return self.clients[id].reply_error(cookie, error, "the server is shutting down");
        }
        let ioc = self.io_context(owner, id);
        // What was taken for the connection, or for the room of its payload, is the command's now.
        self.release(id);
        self.update_charge(id);
        let tenant = self.tenant_of(id);
        self.tenants[tenant].take(cost);
        self.clients[id].in_flight += 1;
        let tag = self.in_flight.insert(InFlight { connection: id, cookie, read, cost });
        owner.submit(DiskCommand { tag: tag.data().as_ffi(), ioc, op });
    }

    /// Returns the connection's I/O context, and makes it at its first command.
    fn io_context(&mut self, owner: &mut DiskOwner, id: ConnectionId) -> paternoster::IocId {
        let connection = &mut self.clients[id];
        *connection.ioc.get_or_insert_with(|| {
            let export = &self.exports[connection.export];
            let group = self.tenants[export.tenant].group;
            owner.administer(|elevator, now| elevator.add_io_context(now, export.io_prio, group))
        })
    }

    /// Answers from the back end at once, as no data moves: the tenant is charged as for a read of
    /// no bytes each extent. Returns the units of work that it took: those of an answer, and a look
    /// for data and one for a hole each extent.
    fn block_status(
        &mut self,
        owner: &mut DiskOwner,
        id: ConnectionId,
        cookie: u64,
        query: StatusQuery,
    ) -> i32 {
        let group = self.tenants[self.tenant_of(id)].group;
        let connection = &mut self.clients[id];
        let base = self.exports[connection.export].offset;
        match owner.backend().extents(base + query.offset, query.len.into()) {
            Ok(extents) => {
                let extents: Vec<Extent> = extents.iter().map(nbd_extent).collect();
                connection.reply_block_status(cookie, query, &extents);
                let looks = u32::try_from(extents.len()).expect("a look has few extents");
                owner.administer(|elevator, now| elevator.charge(now, group, Work::Ops(looks)));
                ANSWER + i32::try_from(2 * extents.len()).expect("a look has few extents")
            }
            Err(error) => {
                connection.reply_error(cookie, NbdError::Io, &error.to_string());
                ANSWER
            }
        }
    }

    fn remove(&mut self, owner: &mut DiskOwner, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        self.tenants[tenant].connections -= 1;
        self.log_left(id);
        let connection = self.clients.remove(id).expect("a connection ends once");
        if connection.waiting == Waiting::ForCredit {
            self.tenants[tenant].forget(id);
            self.note_outside(tenant);
        }
        debug_assert!(!connection.counted_sending, "its last send has ended");
        for amount in connection.charged() {
            self.tenants[tenant].give_back(amount);
        }
        debug_assert!(self.tenants[tenant].is_settled(), "without clients nothing is held");
        connection.shut();
        if let Some(ioc) = connection.ioc {
            owner.administer(|elevator, now| elevator.exit_io_context(now, ioc));
        }
    }

    /// Queues connections for which there is credit again, in their order.
    fn call_waiting(&mut self) {
        // Every round asks twice, and there may be many tenants.
        if !self.stalled.may_anyone_wait() {
            return;
        }
        for tenant in 0..self.tenants.len() {
            while let Some((id, amount)) = self.tenants[tenant].call_next() {
                let client = &mut self.clients[id];
                client.waiting = Waiting::No;
                client.granted = amount;
                self.queue(id);
                self.note_outside(tenant);
            }
        }
    }
}

impl Front<Scheduler> for Connections {
    fn started(&mut self, _owner: &mut DiskOwner) {}

    fn ring_completed(&mut self, owner: &mut DiskOwner, completion: Completion<FrontToken>) {
        let Completion { token, result, output } = completion;
        let (id, operation) = Operation::from_token(token);
        let Some(connection) = self.clients.get_mut(id) else { return };
        match operation {
            Operation::Receive => {
                let input = output.into_buffers().pop().unwrap_or_default();
                connection.received(input, result, owner.now());
            }
            Operation::Send => {
                connection.sent(result, owner.now());
                self.note_sending(id);
                self.update_charge(id);
                return self.queue_replies(id);
            }
            Operation::HangUp => connection.hung_up(),
        }
        self.update_charge(id);
        self.queue(id);
    }

    fn take_in(&mut self, owner: &mut DiskOwner) {
        self.close_stalled(owner.now());
        self.call_waiting();
        self.rotation.begin_round();
        while let Some(id) = self.rotation.next() {
            self.work_for(owner, id);
        }
    }

    fn command_done(&mut self, owner: &mut DiskOwner, outcome: Outcome) {
        if outcome.result.is_err() {
            self.report_faults(owner);
        }
        let Some(outcome) = self.take_flush_outcome(outcome) else { return };
        let tag = CommandId::from(KeyData::from_ffi(outcome.tag));
        let done = self.in_flight.remove(tag).expect("a command is done once");
        let id = done.connection;
        let connection = &mut self.clients[id];
        connection.in_flight -= 1;
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
        self.update_charge(id);
        self.queue_replies(id);
    }

    fn woken(&mut self, owner: &mut DiskOwner) {
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Connect(new) => self.connect(owner, new),
                Message::Stat(detail, sender) => {
                    // Whoever asked may have gone.
                    let _ = sender.send(self.stat(owner, detail));
                }
                Message::Settings(sender) => {
                    let _ = sender.send(self.settings(owner));
                }
                Message::ChangeSettings(new, sender) => {
                    let _ = sender.send(self.change_settings(owner, &new));
                }
                Message::Compare(file, sender) => {
                    let _ = sender.send(self.compare(owner, &file));
                }
                Message::Reload(file, sender) => {
                    let _ = sender.send(self.reload(owner, &file));
                }
                Message::SetWeight(weights, sender) => {
                    if let Some(in_force) = self.set_weight(owner, &weights) {
                        // Whoever asked may have gone.
                        let _ = sender.send(in_force);
                    }
                }
                Message::SetLimits(limits, sender) => {
                    if let Some(answer) = self.set_limits(owner, &limits) {
                        let _ = sender.send(answer);
                    }
                }
                Message::Shutdown => self.begin_shutdown(owner),
            }
        }
    }

    fn round_over(&mut self, owner: &mut DiskOwner) -> ControlFlow<()> {
        self.send_replies(owner);
        self.greatest_rate.measure(owner.now(), owner.engine().elevator());
        self.report_targets(owner);
        // Nothing else may happen that would have those called for whom this has made room.
        self.call_waiting();
        self.report_faults(owner);
        self.tell_outside(owner);
        self.go_on_shutting_down(owner)
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        if self.rotation.has_more() {
            return Some(now);
        }
        let ending = self.shutting_down.as_ref().map(ShuttingDown::deadline);
        ending.into_iter().chain(self.stalled.due()).min()
    }
}

fn nbd_extent(extent: &paternoster_disk::Extent) -> Extent {
    let flags =
        if extent.hole { ExtentFlags::HOLE | ExtentFlags::ZERO } else { ExtentFlags::empty() };
    // A query is shorter than 4 GiB, and so is every part of it.
    Extent { len: u32::try_from(extent.len).unwrap_or(u32::MAX), flags }
}

/// Returns the error of the protocol for an errno; no other number may be on the wire.
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
