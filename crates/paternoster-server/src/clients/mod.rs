//! The clients of one disk's exports that one thread serves: NBD commands in, replies out.
//!
//! ```text
//!   socket ──receive──▶ input ──decode──▶ command ──▶ site ──▶ the disk's engine
//!   socket ◀──send── out ◀── replies of a whole round ◀── outcome
//! ```
//!
//! The site (`site.rs`) is the thread: the owner of the disk itself, or one of those beside it.
//!
//! No tenant harms another. Memory is bounded by tenant, on all threads together (`pool.rs`): what
//! would hold more than its credit waits, in order, and is not read from. Work on this thread is
//! bounded by round (`rotation.rs`): what happens only queues a connection to be worked for, and
//! tenants are worked for in rotation, before the disk dispatches. The replies of a round go at its
//! end (`replies.rs`).

mod account;
mod answers;
#[cfg(test)]
mod check;
mod ciphered;
mod connection;
mod credit;
mod export;
mod held;
mod incoming;
mod leave;
mod outgoing;
mod outside;
mod pool;
mod replies;
mod rotation;
mod site;
mod stalled;
mod tenant;

use std::io;
use std::sync::Arc;

use paternoster::{Instant, Nanos};
use paternoster_disk::{CommandOp, Completion, FrontToken, Outcome};
use paternoster_nbd::{Command, NbdError, Request, StatusQuery};
use rustix::io::Errno;
use slotmap::secondary::Entry;
use slotmap::{Key, KeyData, SecondaryMap, SlotMap, new_key_type};

use self::account::Grant;
pub(crate) use self::answers::work_of;
use self::answers::{nbd_error, nbd_extent};
use self::connection::{Connection, ConnectionId, DataIn, Decoded, Operation, Waiting};
use self::credit::Amount;
pub(crate) use self::export::{Export, TenantId};
pub(crate) use self::held::HeldConnection;
pub(crate) use self::leave::Leave;
pub(crate) use self::outside::HeldBack;
use self::pool::Lease;
pub(crate) use self::pool::{Notices, Pool};
use self::replies::Replies;
pub(crate) use self::rotation::{ANSWER, QUANTUM, Rotation};
pub(crate) use self::site::{ClientId, Question, Site};
use self::stalled::Stalled;
use self::tenant::{LEAST, Tenant, request_cost};
use crate::config::AtStop;
use crate::connections::{ClientsOf, End};
use crate::messages::NewConnection;

new_key_type! {
    /// Names a command in flight; it is the engine's tag.
    struct CommandId;
}

/// A command that the disk works on.
#[derive(Debug)]
struct InFlight {
    connection: ConnectionId,
    cookie: u64,
    wants: Wants,
    /// The credit that it holds.
    cost: Amount,
}

/// What a command is answered beside its error.
#[derive(Clone, Copy, Debug)]
enum Wants {
    /// That it is done.
    Nothing,
    /// The data of its offset and length.
    Data(u64, u32),
    /// Which parts are holes.
    Extents(StatusQuery),
}

/// A client that is served no more.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) client: ClientId,
    pub(crate) why: Option<Leave>,
}

/// The clients that one thread serves.
#[derive(Debug)]
pub(crate) struct Clients {
    /// Those that have had a client here.
    tenants: SecondaryMap<TenantId, Tenant>,
    connections: SlotMap<ConnectionId, Connection>,
    in_flight: SlotMap<CommandId, InFlight>,
    rotation: Rotation<TenantId, ConnectionId>,
    replies: Replies,
    /// The number of this thread among those that serve clients of the disk.
    thread: usize,
    notices: Arc<Notices>,
    /// Tenants of which something has changed in this round: what they hold, or what holds them
    /// back.
    changed: Vec<TenantId>,
    stalled: Stalled,
    /// What becomes of commands that wait, once the server is being stopped.
    at_stop: Option<AtStop>,
    /// Whether another server is to go on with them, and whether the ring has to hear of that.
    is_held: bool,
    lets_go: bool,
    /// Those that are gone, and were not taken yet.
    gone: Vec<Gone>,
}

impl Clients {
    /// All clients of the disk.
    pub(crate) fn of_all(stall_timeout: Nanos) -> Self {
        Self::new(Arc::default(), 0, stall_timeout)
    }

    /// Clients that the thread of that number serves, of all that get these notices.
    pub(crate) fn new(notices: Arc<Notices>, thread: usize, stall_timeout: Nanos) -> Self {
        Self {
            connections: SlotMap::with_key(),
            in_flight: SlotMap::with_key(),
            rotation: Rotation::default(),
            tenants: SecondaryMap::new(),
            replies: Replies::default(),
            thread,
            notices,
            changed: Vec::new(),
            stalled: Stalled::new(stall_timeout),
            at_stop: None,
            is_held: false,
            lets_go: false,
            gone: Vec::new(),
        }
    }

    /// Takes a client in.
    pub(crate) fn connect(&mut self, now: Instant, client: ClientId, new: NewConnection) {
        let Export { tenant, memory, .. } = &*new.export;
        let key = *tenant;
        let tenant = self.tenants.entry(key).expect("a tenant outlives its exports");
        let lease = || Lease::new(Arc::clone(memory), self.thread);
        let is_new = matches!(tenant, Entry::Vacant(_));
        tenant.or_insert_with(|| Tenant::new(lease())).connections += 1;
        if is_new {
            // It may have taken the place of one that is gone.
            let Self { changed, tenants, .. } = self;
            changed.retain(|&tenant| tenants.contains_key(tenant));
        }
        let resumes = new.resumed.as_ref().map(|resumed| resumed.has_room);
        let id = self.connections.insert(Connection::new(new, client, now));
        if let Some(has_room) = resumes {
            self.resume(id, has_room);
        }
        if self.is_held {
            self.connections[id].hold();
        }
        if let Some(at_stop) = self.at_stop {
            self.connections[id].stop(at_stop);
        }
        self.queue(id);
    }

    /// The server is being stopped: what has not been taken in waits, or is refused.
    pub(crate) fn begin_shutdown(&mut self, at_stop: AtStop) {
        self.at_stop = Some(at_stop);
        self.connections.values_mut().for_each(|connection| connection.stop(at_stop));
    }

    /// Ends clients of what takes no others.
    pub(crate) fn end_clients(&mut self, of: &ClientsOf, how: End) {
        let meant = self.connections.iter().filter(|(_, one)| of.has(&one.export));
        for id in meant.map(|(id, _)| id).collect::<Vec<_>>() {
            match how {
                End::Answered => self.connections[id].finish_with_answers(Leave::Removed),
                End::CutOff => self.connections[id].fail(Leave::Removed),
            }
            self.update_charge(id);
            self.queue(id);
        }
    }

    /// Returns whether every command is done and every reply sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.connections.values().all(Connection::is_drained)
    }

    /// Takes those that are gone.
    pub(crate) fn take_gone(&mut self) -> Vec<Gone> {
        std::mem::take(&mut self.gone)
    }

    /// Shuts all sockets: nobody is served any more.
    pub(crate) fn shut(&mut self) {
        self.connections.values_mut().for_each(Connection::shut);
    }

    /// The client whose command in flight has that tag.
    pub(crate) fn client_of(&self, tag: u64) -> Option<ClientId> {
        let command = self.in_flight.get(CommandId::from(KeyData::from_ffi(tag)))?;
        Some(self.connections.get(command.connection)?.client)
    }

    /// Takes a completed operation on a socket.
    pub(crate) fn ring_completed(&mut self, site: &impl Site, completion: Completion<FrontToken>) {
        let Completion { token, result, output } = completion;
        let (id, operation) = Operation::from_token(token);
        let Some(connection) = self.connections.get_mut(id) else { return };
        match operation {
            Operation::Receive => {
                let input = output.into_buffers().pop().unwrap_or_default();
                connection.received(input, result, site.now());
            }
            Operation::Send => {
                connection.sent(result, output.into_unsent(), site.now());
                self.note_sending(id);
                self.update_charge(id);
                return self.queue_replies(id);
            }
            Operation::HangUp => connection.hung_up(result),
        }
        self.update_charge(id);
        self.queue(id);
    }

    /// Gives the disk what has arrived, as much as fits into a round.
    pub(crate) fn take_in(&mut self, site: &mut impl Site) {
        if std::mem::take(&mut self.lets_go) {
            self.let_go(site);
        }
        self.close_stalled(site.now());
        self.settle(site);
        self.rotation.begin_round();
        while let Some(id) = self.rotation.next() {
            self.work_for(site, id);
        }
    }

    /// Takes the outcome of a command.
    pub(crate) fn command_done(&mut self, outcome: Outcome) {
        let tag = CommandId::from(KeyData::from_ffi(outcome.tag.key));
        let done = self.in_flight.remove(tag).expect("a command is done once");
        let id = done.connection;
        let connection = &mut self.connections[id];
        connection.in_flight -= 1;
        match (outcome.result, done.wants) {
            // Nobody may go on after all: then it is done here.
            (Err(_), _)
                if self.at_stop.is_none()
                    && let Some(left) = outcome.left =>
            {
                connection.take_back(done.cookie, *left);
                self.queue(id);
            }
            (Ok(payload), Wants::Data(offset, len)) => {
                connection.reply_read(done.cookie, offset, len, payload);
            }
            (Ok(_), _) => connection.reply_ok(done.cookie),
            // It was cancelled: the client will send it to the next server.
            (Err(Errno::SHUTDOWN), _) if self.at_stop == Some(AtStop::Close) => {}
            (Err(errno), _) => {
                connection.reply_error(done.cookie, nbd_error(errno), &errno.to_string());
            }
        }
        let tenant = self.tenant_of(id);
        self.give_back(tenant, done.cost);
        self.update_charge(id);
        self.queue_replies(id);
    }

    /// Takes the answer to a [`Question`] that took time.
    pub(crate) fn extents_found(
        &mut self,
        tag: u64,
        answer: &io::Result<Vec<paternoster_disk::Extent>>,
    ) {
        let tag = CommandId::from(KeyData::from_ffi(tag));
        let done = self.in_flight.remove(tag).expect("a question is answered once");
        let Wants::Extents(query) = done.wants else { unreachable!("it was this question") };
        let connection = &mut self.connections[done.connection];
        connection.in_flight -= 1;
        connection.waiting = Waiting::No;
        connection.reply_extents(done.cookie, query, answer);
        self.update_charge(done.connection);
        self.queue_replies(done.connection);
        self.queue(done.connection);
    }

    /// Ends a round: sends all replies, and calls those for whom the round has made room.
    pub(crate) fn round_over(&mut self, site: &mut impl Site) {
        self.send_replies(site);
        self.settle(site);
    }

    /// Returns when it wants its next round at the latest: `now` if it has work left.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let look = self.stalled.due().filter(|_| !self.is_held);
        if self.rotation.has_more() { Some(now) } else { look }
    }

    /// Queues the connection in the rotation.
    fn queue(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        if !std::mem::replace(&mut self.connections[id].queued.for_work, true) {
            self.rotation.add(tenant, id);
        }
    }

    /// Puts what has been received to the disk, and lets the connection go if it is over; for a
    /// quantum of work at most.
    fn work_for(&mut self, site: &mut impl Site, id: ConnectionId) {
        self.connections[id].queued.for_work = false;
        let tenant = self.tenant_of(id);
        let units = self.take_commands(site, id);
        site.visit_over(self.connections[id].client);
        self.release(id);
        self.update_charge(id);
        self.rotation.charge(tenant, units.max(1));
        // It may have been answered at once.
        self.queue_replies(id);
        if self.connections[id].is_over() {
            self.remove(id);
        } else if self.connections[id].takes_commands() {
            // It was the quantum that ended this.
            self.queue(id);
        }
    }

    /// Takes commands until none is left, the tenant has no credit, or a quantum is used. Returns
    /// the units of work that it took.
    fn take_commands(&mut self, site: &mut impl Site, id: ConnectionId) -> i32 {
        let mut units = 0;
        while self.connections[id].takes_commands() && units < QUANTUM {
            let client = &self.connections[id];
            if !client.has_command()
                && !client.has_payload_room()
                && self.take_credit(site, id, LEAST) == Grant::Waits
            {
                return units;
            }
            units += match self.connections[id].next_command() {
                Ok(Decoded::Request(
                    Request { cookie, command: Command::BlockStatus(query) },
                    _,
                )) => self.block_status(site, id, cookie, query),
                Ok(Decoded::Request(request, data)) => {
                    self.handle_request(site, id, request, data);
                    1
                }
                Ok(Decoded::Answered) => {
                    // What it was answered is charged, and there may be no more room for that.
                    self.release(id);
                    self.update_charge(id);
                    8 * ANSWER
                }
                Ok(Decoded::NeedMore) => return units + self.receive(site, id),
                Err(error) => {
                    self.connections[id].fail(Leave::CutOff(error));
                    1
                }
            };
        }
        units
    }

    /// Receives what is missing, if the tenant has credit for it. Returns the units of work that it
    /// took.
    fn receive(&mut self, site: &mut impl Site, id: ConnectionId) -> i32 {
        let [(least, needed), (best, wished)] = self.connections[id].rooms();
        if self.take_credit(site, id, needed) == Grant::Waits {
            return 1;
        }
        // What was taken for the room is charged with it.
        self.release(id);
        let tenant = self.tenant_of(id);
        let spare = self.tenants[tenant].credit.has_spare(wished);
        let room = if spare { best } else { least };
        let units = self.connections[id].receive(site, id, room, spare);
        self.update_charge(id);
        units
    }

    /// Takes so much credit for what the connection does next, or has it wait for that.
    fn take_credit(&mut self, site: &mut impl Site, id: ConnectionId, amount: Amount) -> Grant {
        let tenant = self.tenant_of(id);
        if amount.bytes() <= self.connections[id].granted.bytes() {
            return Grant::Taken;
        }
        self.release(id);
        let grant = self.tenants[tenant].credit.take_or_wait(id, amount);
        self.note_change(tenant);
        let client = &mut self.connections[id];
        match grant {
            Grant::Taken => client.granted = amount,
            Grant::Waits => {
                client.waiting = Waiting::ForCredit;
                client.watch(site, id);
                self.stalled.look_soon(site.now());
            }
        }
        grant
    }

    /// Gives back what has been taken for what the connection does next.
    fn release(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let granted = std::mem::replace(&mut self.connections[id].granted, Amount::Small(0));
        self.give_back(tenant, granted);
    }

    fn give_back(&mut self, tenant: TenantId, amount: Amount) {
        self.tenants[tenant].credit.give_back(amount);
        self.note_change(tenant);
    }

    /// Has the tenant charged for what the connection holds now.
    fn update_charge(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let (before, now) = self.connections[id].update_charge();
        if before == now {
            return;
        }
        let credit = &mut self.tenants[tenant].credit;
        for amount in before {
            credit.give_back(amount);
        }
        for amount in now {
            credit.take(amount);
        }
        self.note_change(tenant);
    }

    fn tenant_of(&self, id: ConnectionId) -> TenantId {
        self.connections[id].export.tenant
    }

    fn handle_request(
        &mut self,
        site: &mut impl Site,
        id: ConnectionId,
        request: Request,
        data_in: DataIn,
    ) {
        let cost = request_cost(&request.command);
        let has_credit = data_in == DataIn::Room;
        let refuses = self.at_stop == Some(AtStop::Refuse);
        if !has_credit && !refuses && self.take_credit(site, id, cost) == Grant::Waits {
            return self.connections[id].put_back(request, data_in);
        }
        let Request { cookie, command } = request;
        let base = self.connections[id].export.offset;
        let mut wants = Wants::Nothing;
        let op = match command {
            Command::Read { offset, len, .. } => {
                wants = Wants::Data(offset, len);
                CommandOp::Read { offset: base + offset, len }
            }
            Command::Write { offset, data, fua } => {
                let data = self.connections[id].own(data, data_in);
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
            Command::Disconnect => return self.connections[id].finish(Leave::Disconnected),
        };
        if refuses {
            let error = NbdError::Shutdown;
            return self.connections[id].reply_error(cookie, error, "the server is shutting down");
        }
        // What was taken for the connection, or for the room of its payload, is the command's now.
        self.release(id);
        self.update_charge(id);
        let tenant = self.tenant_of(id);
        self.tenants[tenant].credit.take(cost);
        let connection = &mut self.connections[id];
        connection.in_flight += 1;
        let tag = self.in_flight.insert(InFlight { connection: id, cookie, wants, cost });
        site.submit(connection.client, &connection.export, tag.data().as_ffi(), op);
    }

    /// Answers which parts of a range are holes; at once where the site can, as no data moves: the
    /// units of work that took. Else the connection waits for it, so that it asks one thing at a
    /// time.
    fn block_status(
        &mut self,
        site: &mut impl Site,
        id: ConnectionId,
        cookie: u64,
        query: StatusQuery,
    ) -> i32 {
        let (wants, cost) = (Wants::Extents(query), Amount::Small(0));
        let tag = self.in_flight.insert(InFlight { connection: id, cookie, wants, cost });
        let connection = &mut self.connections[id];
        let offset = connection.export.offset + query.offset;
        let (client, tag_number) = (connection.client, tag.data().as_ffi());
        let question = Question { client, tag: tag_number, offset, len: query.len };
        if let Some(answer) = site.extents(question) {
            self.in_flight.remove(tag);
            connection.reply_extents(cookie, query, &answer);
            return work_of(&answer);
        }
        connection.in_flight += 1;
        connection.waiting = Waiting::ForExtents;
        1
    }

    fn remove(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        self.tenants[tenant].connections -= 1;
        let mut connection = self.connections.remove(id).expect("a connection ends once");
        let credit = &mut self.tenants[tenant].credit;
        if connection.waiting == Waiting::ForCredit {
            credit.forget(id);
        }
        debug_assert!(!connection.counted_sending, "its last send has ended");
        connection.charged().for_each(|amount| credit.give_back(amount));
        let is_unused = self.tenants[tenant].credit.is_unused();
        debug_assert!(self.tenants[tenant].connections > 0 || is_unused, "nobody holds anything");
        self.note_change(tenant);
        connection.shut();
        let Connection { client, leave: why, .. } = connection;
        self.gone.push(Gone { client, why });
    }

    /// Has accounts count what is held now, and queues connections for which there is credit, in
    /// their order.
    fn settle(&mut self, site: &impl Site) {
        if self.notices.take(self.thread) {
            self.stalled.look_soon(site.now());
            let waiting = self.tenants.iter_mut().filter(|(_, of)| of.credit.anyone_waits());
            let looked = waiting.map(|(tenant, of)| {
                of.credit.look();
                tenant
            });
            for tenant in looked.collect::<Vec<_>>() {
                self.note_change(tenant);
            }
        }
        for at in 0..self.changed.len() {
            let tenant = self.changed[at];
            self.tenants[tenant].credit.settle();
            while let Some((id, amount)) = self.tenants[tenant].credit.next_called() {
                let client = &mut self.connections[id];
                client.waiting = Waiting::No;
                client.granted = amount;
                self.queue(id);
            }
        }
    }

    /// Notes that something of the tenant has changed.
    fn note_change(&mut self, tenant: TenantId) {
        if !std::mem::replace(&mut self.tenants[tenant].has_changed, true) {
            self.changed.push(tenant);
        }
    }
}
