//! The devices of a disk's exports: chains of their rings in, used entries out.
//!
//! ```text
//!   kick ──▶ rotation of tenants ──▶ chain ──▶ request ──▶ copy of its data ──▶ the disk's engine
//!   call ◀── published at the end of a round ◀── used entry ◀── copy to the guest ◀── outcome
//! ```
//!
//! What is read is not copied where the disk can put it into the guest itself.
//!
//! A guest kicks when it is asked to, and that is the dearest part of a request in a virtual
//! machine: while the owner runs or looks, it looks at the rings that had something of late, and
//! asks for kicks again before it sleeps. A round's completions of a ring are one index and at most
//! one call. What the owner may not take now stays in the guest.
//!
//! A request that the disk has not carried out is left unanswered: whoever serves the ring next
//! finds it in flight. Virtio has no other error than that of a broken disk.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use paternoster::{Instant, Nanos};
use paternoster_disk::{Capabilities, CommandOp, Completion, FrontToken, Outcome, Payload, Token};
use paternoster_vhost::Broken;
use paternoster_vhost::blk::{self, Op, Request, Status};
use rustix::io::Errno;
use slotmap::{Key, KeyData, SecondaryMap, SlotMap, new_key_type};

use super::device::{COST, Device, PART, Waits};
use super::queue::{Operation, Queue, QueueId, Taken};
use super::{FromDevice, NewDevice, SessionId};
use crate::clients::{
    ANSWER, ClientId, Gone, HeldBack, Leave, QUANTUM, Rotation, Site as _, TenantId,
};
use crate::connections::{ClientsOf, Door, OwnSite};
use crate::log::Limits;

new_key_type! {
    /// Names a request that the disk works on; it is the engine's tag.
    pub(super) struct RequestId;
}

/// How long a ring is looked at after it had something.
const LOOKS: Nanos = Nanos::from_millis(10);

/// Bytes of a guest that are copied in a unit of work, and parts of a request that are found in it.
const COPIED: usize = 32 << 10;
const FOUND: usize = 32;

/// A request that the disk works on.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) session: SessionId,
    pub(super) queue: QueueId,
    taken: Taken,
    /// The bytes that it holds.
    cost: usize,
}

/// The devices of a disk's exports.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    pub(super) all: SecondaryMap<SessionId, Device>,
    pub(super) queues: SlotMap<QueueId, Queue>,
    pub(super) in_flight: SlotMap<RequestId, InFlight>,
    rotation: Rotation<TenantId, (TenantId, QueueId)>,
    /// Rings that are looked at in every round.
    looked_at: Vec<QueueId>,
    /// Rings in which something has been given back in this round.
    changed: Vec<QueueId>,
    /// Devices that wait until requests are done.
    pub(super) waiting: BTreeSet<SessionId>,
    /// Whether one has come to them since they were looked at.
    pub(super) is_unsettled: bool,
    /// Devices whose next ring that waits is to be queued, when no visit is under way.
    pub(super) have_room: Vec<SessionId>,
    /// Tenants of which it is to be told whether memory holds them back.
    held_back: Vec<TenantId>,
    /// Whether the server is being stopped: nothing more is taken.
    stops: bool,
    gone: Vec<Gone>,
    pub(super) limits: Limits,
}

impl Devices {
    /// Takes a device in, of a volume that is capable of that. It is attached when one that was
    /// attached before has ended.
    pub(crate) fn attach(
        &mut self,
        session: SessionId,
        client: ClientId,
        new: NewDevice,
        capabilities: &Capabilities,
    ) {
        self.all.insert(session, Device::new(client, new, capabilities));
        self.wait(session, Waits::Attach);
    }

    /// The export of a device has so many bytes now: its driver may use them once it is told.
    pub(crate) fn resize(&mut self, session: SessionId, size: u64) {
        let Some(device) = self.all.get_mut(session) else { return };
        device.seen.size = size;
        if !matches!(device.order, Some(Waits::Attach)) {
            device.answers.send(FromDevice::Changed(device.seen));
        }
    }

    /// The number of devices.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Ends devices of what takes no others: what the disk works on ends unanswered.
    pub(crate) fn end_clients(&mut self, site: &mut OwnSite<'_>, of: &ClientsOf) {
        let meant = self.all.iter().filter(|(_, device)| of.has(&device.export));
        for session in meant.map(|(session, _)| session).collect::<Vec<_>>() {
            self.end(site, session, Leave::Removed);
        }
    }

    /// The server is being stopped: what has not been taken stays in the guests.
    pub(crate) fn begin_shutdown(&mut self) {
        self.stops = true;
    }

    /// The server is not stopped after all. A device of which something was given up has its
    /// front-end attach anew, and find that in flight; the others go on.
    pub(crate) fn go_on(&mut self, site: &mut OwnSite<'_>) {
        self.stops = false;
        let sessions: Vec<_> = self.all.iter().map(|(id, one)| (id, one.has_given_up)).collect();
        for (session, _) in sessions.into_iter().filter(|(_, has_given_up)| *has_given_up) {
            self.end(site, session, Leave::HandOver);
        }
        let now = site.now();
        for id in self.queues.keys().collect::<Vec<_>>() {
            self.queue(id, now);
        }
    }

    /// Returns whether the disk works on nothing of theirs.
    pub(crate) fn is_drained(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The client whose request has that key.
    pub(crate) fn client_of(&self, key: u64) -> Option<ClientId> {
        let request = self.in_flight.get(RequestId::from(KeyData::from_ffi(key)))?;
        Some(self.all.get(request.session)?.client)
    }

    /// Returns whether an operation on the owner's ring is one of theirs.
    pub(crate) fn have(token: FrontToken) -> bool {
        Operation::is_that(token)
    }

    /// Takes a completed operation on the owner's ring.
    pub(crate) fn ring_completed(
        &mut self,
        site: &mut OwnSite<'_>,
        completion: &Completion<FrontToken>,
    ) {
        let (id, operation) = Operation::from_token(completion.token);
        let Some(queue) = self.queues.get_mut(id) else { return };
        match operation {
            Operation::Kick => self.queue(id, site.now()),
            Operation::Call => {
                queue.calling = None;
                if std::mem::take(&mut queue.calls_again) {
                    self.call(site, id);
                }
            }
            Operation::Err => {}
        }
    }

    /// Gives the disk what has arrived, as much as fits into a round. Returns who is gone.
    pub(crate) fn take_in(&mut self, site: &mut OwnSite<'_>) -> Vec<Gone> {
        self.look(site);
        self.wake_those_with_room(site.now());
        self.rotation.begin_round();
        while let Some((tenant, id)) = self.rotation.next() {
            let units = self.work_for(site, id);
            self.rotation.charge(tenant, units.max(1));
            self.wake_those_with_room(site.now());
            if self.queues.get(id).is_some_and(Queue::has_work) {
                // It was the quantum that ended this.
                self.queue(id, site.now());
            }
        }
        std::mem::take(&mut self.gone)
    }

    /// Takes the outcome of a request.
    pub(crate) fn command_done(&mut self, site: &mut OwnSite<'_>, outcome: Outcome) {
        let key = RequestId::from(KeyData::from_ffi(outcome.tag.key));
        let done = self.in_flight.remove(key).expect("a request is done once");
        let InFlight { session, queue, taken, cost } = done;
        let device = self.all.get_mut(session).expect("a device waits for its requests");
        device.release(cost);
        if !self.queues.contains_key(queue) {
            device.of_broken = device.of_broken.saturating_sub(1);
        }
        self.wake_next(session, site.now());
        if !self.queues.contains_key(queue) {
            return;
        }
        let status = match outcome.result {
            Ok(payload) => copy_in(site, &taken, payload),
            // It was cancelled.
            Err(Errno::SHUTDOWN) => {
                self.all[session].has_given_up = true;
                return;
            }
            // There is no page where it was to be read to.
            Err(Errno::FAULT) => return self.end(site, session, Leave::MemoryGone),
            Err(Errno::OPNOTSUPP) => Status::Unsupported,
            Err(_) => Status::IoErr,
        };
        self.give_back(queue, &taken, status);
    }

    /// Ends a round: drivers see what was given back and are called where they want to be.
    pub(crate) fn round_over(&mut self, site: &mut OwnSite<'_>) {
        for id in std::mem::take(&mut self.changed) {
            let Some(queue) = self.queues.get_mut(id) else { continue };
            queue.has_changed = false;
            let wants_call = queue.ring.publish();
            let session = queue.session;
            if wants_call {
                self.call(site, id);
            }
            self.end_if_memory_is_gone(site, session);
        }
        self.settle(site);
        for tenant in std::mem::take(&mut self.held_back) {
            let of_tenant = |device: &Device| device.export.tenant == tenant;
            let waits = |device: &Device| of_tenant(device) && device.waits_for_memory();
            let held_back = HeldBack::by_memory(self.all.values().any(waits));
            site.note_outside(tenant, Door::VhostUser, held_back);
        }
    }

    /// Returns when it wants its next round at the latest: `now` if it has work left, or something
    /// to tell.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let has_more = self.rotation.has_more() || self.is_unsettled || !self.gone.is_empty();
        has_more.then_some(now)
    }

    /// Returns whether a ring that is looked at has something.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.stops && self.looked().any(Queue::has_work)
    }

    /// Returns whether a ring had something of late, whose guest would kick.
    pub(crate) fn are_looked_at(&self) -> bool {
        !self.looked_at.is_empty()
    }

    /// Has guests kick again. Returns whether the owner may sleep: not where something has come
    /// meanwhile.
    pub(crate) fn falls_asleep(&mut self) -> bool {
        for id in &self.looked_at {
            if let Some(queue) = self.queues.get_mut(*id) {
                // Whatever comes of it is found by the look that follows.
                let _ = queue.ring.allow_kicks();
            }
        }
        !self.has_arrived()
    }

    /// Has guests not kick while the owner looks.
    pub(crate) fn awake(&mut self) {
        for id in &self.looked_at {
            if let Some(queue) = self.queues.get_mut(*id) {
                queue.ring.hold_kicks();
            }
        }
    }

    fn looked(&self) -> impl Iterator<Item = &Queue> {
        self.looked_at.iter().filter_map(|id| self.queues.get(*id))
    }

    /// Queues the rings that have something, and has those kick again that had nothing for a while.
    fn look(&mut self, site: &mut OwnSite<'_>) {
        let now = site.now();
        for id in std::mem::take(&mut self.looked_at) {
            let Some(queue) = self.queues.get_mut(id) else { continue };
            let is_idle = now.saturating_since(queue.had_some) > LOOKS;
            // One that is not read may sleep with chains in it: it is queued when it is read again.
            let may_sleep =
                |queue: &mut Queue| queue.ring.allow_kicks() == Ok(false) || !queue.is_read();
            if is_idle && !queue.has_work() && may_sleep(queue) {
                queue.is_looked_at = false;
                continue;
            }
            queue.ring.hold_kicks();
            let (has_work, session) = (queue.has_work(), queue.session);
            self.looked_at.push(id);
            if has_work {
                self.queue(id, now);
            }
            self.end_if_memory_is_gone(site, session);
        }
    }

    /// Queues the ring in the rotation, and looks at it from now on.
    pub(super) fn queue(&mut self, id: QueueId, now: Instant) {
        let queue = &mut self.queues[id];
        queue.had_some = now;
        if !std::mem::replace(&mut queue.is_looked_at, true) {
            queue.ring.hold_kicks();
            self.looked_at.push(id);
        }
        if queue.may_be_visited() && !self.stops && !std::mem::replace(&mut queue.is_queued, true) {
            let tenant = self.all[queue.session].export.tenant;
            self.rotation.add(tenant, (tenant, id));
        }
    }

    /// Takes chains until none is left, the device holds too much, or a quantum is used. Returns
    /// the units of work that it took.
    fn work_for(&mut self, site: &mut OwnSite<'_>, id: QueueId) -> i32 {
        let Some(queue) = self.queues.get_mut(id) else { return 0 };
        queue.is_queued = false;
        let mut units = 0;
        while units < QUANTUM && !self.stops {
            match self.take_chain(site, id) {
                Ok(0) => break,
                Ok(more) => units += more,
                Err(broken) => {
                    let session = self.queues[id].session;
                    // Zeroes are no ring either, and the front-end is told of what counts.
                    if !self.end_if_memory_is_gone(site, session) {
                        self.break_ring(site, id, &broken);
                    }
                    break;
                }
            }
        }
        units
    }

    /// Takes the next chain of a ring, or the request that has waited, and does what it wants.
    /// Returns the units of work that it took; none where nothing can be taken.
    fn take_chain(&mut self, site: &mut OwnSite<'_>, id: QueueId) -> Result<i32, Broken> {
        let queue = &mut self.queues[id];
        if let Some(pending) = queue.pending.take() {
            return Ok(self.carry_out(site, id, pending));
        }
        if !queue.is_read() {
            return Ok(0);
        }
        let device = &self.all[queue.session];
        let memory = Arc::clone(&device.memory);
        let Some(chain) = queue.ring.pop(&memory)? else { return Ok(0) };
        let buffers = chain.chain.ok();
        let request = buffers.and_then(|all| Request::parse(&all, &memory, &device.seen).ok());
        let Some(request) = request else {
            // There is no place to say what is wrong with it.
            queue.ring.push_used(chain.head, 0);
            self.note_change(id);
            return Ok(1);
        };
        Ok(self.carry_out(site, id, Taken { head: chain.head, request, memory }))
    }

    /// Does what a request wants, if its device may hold that. Returns the units of work that it
    /// took; none where it waits.
    fn carry_out(&mut self, site: &mut OwnSite<'_>, id: QueueId, taken: Taken) -> i32 {
        let session = self.queues[id].session;
        let device = &mut self.all[session];
        let op = match taken.request.op {
            Ok(Op::GetId) => {
                let copied = taken.request.copy_in(&taken.memory, 0, &id_of(&device.export.name));
                let status = if copied.is_ok() { Status::Ok } else { Status::IoErr };
                self.give_back(id, &taken, status);
                return ANSWER;
            }
            Ok(op) => op,
            Err(status) => {
                self.give_back(id, &taken, status);
                return 1;
            }
        };
        let parts = taken.request.parts();
        let (cost, units) = (COST + data_of(op) + PART * parts, units_of(op, parts));
        if !device.hold(id, cost) {
            self.held_back.push(device.export.tenant);
            self.queues[id].pending = Some(taken);
            return 0;
        }
        let (client, export) = (device.client, Arc::clone(&device.export));
        match command(site, &taken, op, device) {
            Ok(command) => {
                let done = InFlight { session, queue: id, taken, cost };
                let key = self.in_flight.insert(done).data().as_ffi();
                site.submit_by(Door::VhostUser, client, &export, key, command);
            }
            Err(status) => {
                device.release(cost);
                self.give_back(id, &taken, status);
            }
        }
        self.have_room.push(session);
        units
    }

    fn wake_those_with_room(&mut self, now: Instant) {
        for session in std::mem::take(&mut self.have_room) {
            self.wake_next(session, now);
        }
    }

    /// Queues the ring that is the next to hold something more of a device.
    fn wake_next(&mut self, session: SessionId, now: Instant) {
        let device = &self.all[session];
        if let Some(&next) = device.waiting.front() {
            self.held_back.push(device.export.tenant);
            self.queue(next, now);
        }
    }

    /// Gives a chain back.
    fn give_back(&mut self, id: QueueId, taken: &Taken, status: Status) {
        // Where its status cannot be written any more, nothing can.
        let written = taken.request.finish(&taken.memory, status).unwrap_or(0);
        self.queues[id].ring.push_used(taken.head, written);
        self.note_change(id);
    }

    /// Notes that the driver is to be told of something.
    pub(super) fn note_change(&mut self, id: QueueId) {
        if !std::mem::replace(&mut self.queues[id].has_changed, true) {
            self.changed.push(id);
        }
    }

    fn call(&mut self, site: &mut OwnSite<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        let Some(call) = &queue.call else { return };
        if queue.calling.is_some() {
            queue.calls_again = true;
        } else {
            let token = Token::Front(Operation::Call.token(id));
            queue.calling = Some(site.ring().signal(token, call));
        }
    }

    /// Ends a device: its rings are gone, and it is when the disk works on none of its requests.
    pub(super) fn end(&mut self, site: &mut OwnSite<'_>, session: SessionId, why: Leave) {
        let Some(device) = self.all.get_mut(session) else { return };
        device.leave.get_or_insert(why);
        for id in device.queues_running() {
            self.remove_queue(site, id);
        }
        let device = &mut self.all[session];
        Self::clear_rings(site, device);
        device.waiting.clear();
        self.held_back.push(device.export.tenant);
        self.has_to_wait(session);
    }

    /// Has a device looked at when a round ends, until what it waits for is so.
    pub(super) fn has_to_wait(&mut self, session: SessionId) {
        self.waiting.insert(session);
        self.is_unsettled = true;
    }

    /// Ends a device whose front-end has taken memory away. Returns whether it has.
    fn end_if_memory_is_gone(&mut self, site: &mut OwnSite<'_>, session: SessionId) -> bool {
        let is_gone = self.all[session].has_lost_memory();
        if is_gone {
            self.end(site, session, Leave::MemoryGone);
        }
        is_gone
    }

    /// Forgets a device that has ended.
    pub(super) fn forget(&mut self, session: SessionId, why: Leave) {
        let device = self.all.remove(session).expect("it is here");
        let Device { client, memory, answers, order, .. } = device;
        answers.send(FromDevice::Retired(memory));
        if let Some(Waits::Memory(before)) = order {
            answers.send(FromDevice::Retired(before));
        }
        self.gone.push(Gone { client, why: Some(why) });
    }
}

/// What a request of a device is to the disk; or how it ends at once.
fn command(
    site: &mut OwnSite<'_>,
    taken: &Taken,
    op: Op,
    device: &Device,
) -> Result<CommandOp, Status> {
    let (base, fua) = (device.export.offset, device.writes_through());
    let short = |len: u64| u32::try_from(len).map_err(|_| Status::IoErr);
    Ok(match op {
        Op::Read { offset, len } => match device.places(taken, base + offset, len) {
            Some(into) => CommandOp::ReadInto { offset: base + offset, into },
            None => CommandOp::Read { offset: base + offset, len },
        },
        Op::Write { offset, len } => {
            let len = usize::try_from(len).map_err(|_| Status::IoErr)?;
            let mut data = site.ring().buffer(len);
            data.resize(len, 0);
            let copied = taken.request.copy_out(&taken.memory, &mut data);
            copied.map_err(|_| Status::IoErr)?;
            CommandOp::Write { offset: base + offset, data: data.freeze(), fua }
        }
        Op::Flush => CommandOp::Flush,
        Op::Discard { offset, len } => {
            CommandOp::Trim { offset: base + offset, len: short(len)?, fua }
        }
        Op::WriteZeroes { offset, len, unmap } => {
            let (offset, len, fast) = (base + offset, short(len)?, false);
            CommandOp::Zero { offset, len, fua, allocate: !unmap, fast }
        }
        Op::GetId => unreachable!("it is answered at once"),
    })
}

/// The bytes that a request has the disk hold.
fn data_of(op: Op) -> usize {
    match op {
        Op::Read { len, .. } | Op::Write { len, .. } => {
            usize::try_from(len).expect("a u32 fits in memory sizes")
        }
        Op::Flush | Op::GetId | Op::Discard { .. } | Op::WriteZeroes { .. } => 0,
    }
}

/// The units of work that it is to take a request: one, and more for what is long or in many
/// places. What is read is copied later.
fn units_of(op: Op, parts: usize) -> i32 {
    let copied = if matches!(op, Op::Write { .. }) { data_of(op) / COPIED } else { 0 };
    1 + i32::try_from(copied + parts / FOUND).expect("a request is bounded")
}

/// Copies what was read into the guest.
fn copy_in(site: &mut OwnSite<'_>, taken: &Taken, payload: Payload) -> Status {
    let (mut at, mut status) = (0, Status::Ok);
    for buffer in payload {
        if taken.request.copy_in(&taken.memory, at, &buffer).is_err() {
            status = Status::IoErr;
        }
        at += len_of(&buffer);
        site.ring().give_back(buffer);
    }
    status
}

fn len_of(buffer: &Bytes) -> u64 {
    u64::try_from(buffer.len()).expect("it fits")
}

/// The name of an export as a driver asks for it: as many bytes as there is room for.
fn id_of(name: &str) -> [u8; blk::ID_LEN] {
    let mut id = [0; blk::ID_LEN];
    let len = name.len().min(id.len());
    id[..len].copy_from_slice(&name.as_bytes()[..len]);
    id
}
