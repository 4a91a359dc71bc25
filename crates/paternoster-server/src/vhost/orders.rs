//! What front-ends want of their devices, on the owner's thread.
//!
//! An order is done at once, or when the requests are that it has to wait for: the session sends
//! nothing more until it is answered.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use paternoster_disk::Token;
use paternoster_vhost::{Answer, InvalidRegion, Memory, Order, SplitRing, Start};

use super::device::{BrokenRing, Device, Ring, Waits};
use super::queue::{Operation, Queue, QueueId};
use super::{Devices, FromDevice, SessionId};
use crate::clients::{Leave, Site as _};
use crate::connections::OwnSite;

impl Devices {
    /// The front-end of a device is gone.
    pub(crate) fn detach(&mut self, site: &mut OwnSite<'_>, session: SessionId, why: Leave) {
        self.end(site, session, why);
    }

    /// Does what a front-end wants, or has it done when it can be.
    pub(crate) fn obey(&mut self, site: &mut OwnSite<'_>, session: SessionId, order: Order) {
        let Some(device) = self.all.get_mut(session).filter(|one| one.leave.is_none()) else {
            // Its session is told that it is gone.
            return;
        };
        match order {
            Order::Features(features) => device.features = features,
            Order::Writeback(writeback) => {
                device.writeback = writeback;
                device.keep_cache_mode();
            }
            Order::Inflight(inflight) => {
                device.writeback &= !inflight.writes_through();
                device.inflight = Some(inflight);
                device.keep_cache_mode();
            }
            Order::Start(number, start) => {
                let started = self.start(site, session, number, start);
                let answer = started.map_or_else(Answer::Refused, |()| Answer::Done);
                return self.all[session].answer(answer);
            }
            Order::Enable(number, enabled) => self.enable(site, session, number, enabled),
            Order::DisableAll => {
                for number in device.rings.keys().copied().collect::<Vec<_>>() {
                    self.enable(site, session, number, false);
                }
            }
            Order::Kick(number, file) => match device.rings.get_mut(&number) {
                Some(Ring::Waits(start)) => start.kick = file,
                Some(&mut Ring::Runs(id)) => {
                    let ring = site.ring();
                    let kick = ring.watch(Token::Front(Operation::Kick.token(id)), &file);
                    ring.end(std::mem::replace(&mut self.queues[id].kick, kick));
                    // A kick by the file before may have come and been lost with its watch.
                    self.queue(id, site.now());
                }
                Some(Ring::Broken(_)) | None => {}
            },
            Order::Call(number, file) => match device.rings.get_mut(&number) {
                Some(Ring::Waits(start)) => start.call = file,
                Some(&mut Ring::Runs(id)) => {
                    let queue = &mut self.queues[id];
                    queue.call = file;
                    queue.ring.owe_call();
                    self.note_change(id);
                }
                Some(Ring::Broken(_)) | None => {}
            },
            Order::Err(number, file) => match device.rings.get_mut(&number) {
                Some(Ring::Waits(start)) => start.err = file,
                Some(&mut Ring::Runs(id)) => self.queues[id].err = file,
                Some(Ring::Broken(broken)) => broken.err = file,
                None => {}
            },
            Order::Memory(memory) => return self.change_memory(site, session, memory),
            Order::Stop(number) => return self.begin_stop(site, session, number),
            Order::Reset => {
                for id in device.queues_running() {
                    self.stop(site, id);
                }
                return self.wait(session, Waits::Reset);
            }
        }
        self.all[session].answer(Answer::Done);
    }

    /// The ring of that number, if it runs.
    fn running(&self, session: SessionId, number: u16) -> Option<QueueId> {
        match self.all[session].rings.get(&number)? {
            Ring::Runs(id) => Some(*id),
            Ring::Waits(_) | Ring::Broken(_) => None,
        }
    }

    pub(super) fn wait(&mut self, session: SessionId, order: Waits) {
        self.all[session].order = Some(order);
        self.has_to_wait(session);
    }

    /// Starts a ring; one that comes before there is memory when that comes.
    fn start(
        &mut self,
        site: &mut OwnSite<'_>,
        session: SessionId,
        number: u16,
        start: Start,
    ) -> Result<(), String> {
        let device = &mut self.all[session];
        if device.memory.is_empty() {
            Self::set_ring(site, device, number, Ring::Waits(start));
            return Ok(());
        }
        let Start { size, addresses, base, kick, call, err, enabled } = start;
        let ring = SplitRing::new(&device.memory, size, addresses, base, device.features);
        let mut ring = ring.map_err(|error| error.to_string())?;
        let inflight = device.inflight.as_ref().and_then(|all| all.ring(number, size));
        let export = Arc::clone(&device.export);
        match inflight.map(|inflight| ring.recover(inflight)) {
            None | Some(Ok(()) | Err(InvalidRegion::New)) => {}
            Some(Err(invalid)) => self.report(
                "the memory of requests in flight is begun anew",
                &format!("{}, ring {number}", export.name),
                &invalid,
            ),
        }
        let now = site.now();
        let id = self.queues.insert_with_key(|id| Queue {
            session,
            number,
            ring,
            enabled,
            kick: site.ring().watch(Token::Front(Operation::Kick.token(id)), &kick),
            call,
            err,
            pending: None,
            is_queued: false,
            is_looked_at: false,
            had_some: now,
            has_changed: false,
            calling: None,
            calls_again: false,
        });
        Self::set_ring(site, &mut self.all[session], number, Ring::Runs(id));
        // A call is owed, and chains may be there for which nobody kicks.
        self.note_change(id);
        self.queue(id, now);
        Ok(())
    }

    fn enable(&mut self, site: &OwnSite<'_>, session: SessionId, number: u16, enabled: bool) {
        match self.all[session].rings.get_mut(&number) {
            Some(Ring::Waits(start)) => start.enabled = enabled,
            Some(&mut Ring::Runs(id)) => {
                self.queues[id].enabled = enabled;
                self.queue(id, site.now());
            }
            Some(Ring::Broken(_)) | None => {}
        }
    }

    /// Rings go on in other memory, at their addresses; those that are not there are broken.
    fn change_memory(&mut self, site: &mut OwnSite<'_>, session: SessionId, memory: Memory) {
        let device = &mut self.all[session];
        let before = std::mem::replace(&mut device.memory, Arc::new(memory));
        let memory = Arc::clone(&device.memory);
        for id in device.queues_running() {
            if let Err(outside) = self.queues[id].ring.move_to(&memory) {
                self.break_ring(site, id, &outside);
            }
        }
        drop(memory);
        let device = &mut self.all[session];
        for (number, start) in device.take_waiting() {
            let (base, err) = (start.base, start.err.clone());
            if let Err(why) = self.start(site, session, number, start) {
                self.broke(site, session, number, BrokenRing::new(base, err), &why);
            }
        }
        self.wait(session, Waits::Memory(before));
    }

    /// Has a ring take no more chains.
    fn begin_stop(&mut self, site: &OwnSite<'_>, session: SessionId, number: u16) {
        let device = &mut self.all[session];
        match device.rings.get(&number) {
            Some(&Ring::Runs(id)) => {
                self.stop(site, id);
                self.wait(session, Waits::Stop(number));
            }
            Some(Ring::Broken(_)) => self.wait(session, Waits::Stop(number)),
            Some(Ring::Waits(start)) => {
                let base = start.base;
                device.rings.remove(&number);
                device.answer(Answer::Base(base));
            }
            None => device.answer(Answer::Base(0)),
        }
    }

    /// Has a ring that runs take no more chains but those of a server before this one.
    fn stop(&mut self, site: &OwnSite<'_>, id: QueueId) {
        self.queues[id].ring.stop();
        self.queue(id, site.now());
    }

    /// A ring is broken: it is gone until the front-end sets it up anew.
    pub(super) fn break_ring(
        &mut self,
        site: &mut OwnSite<'_>,
        id: QueueId,
        why: &dyn fmt::Display,
    ) {
        let Queue { session, number, ring, err, .. } = self.remove_queue(site, id);
        let works_on = self.in_flight.values().filter(|request| request.queue == id).count();
        self.all[session].of_broken += u32::try_from(works_on).expect("a ring's chains are few");
        let broken = BrokenRing::new(ring.next_available(), err);
        self.broke(site, session, number, broken, why);
    }

    fn broke(
        &mut self,
        site: &mut OwnSite<'_>,
        session: SessionId,
        number: u16,
        broken: BrokenRing,
        why: &dyn fmt::Display,
    ) {
        Self::set_ring(site, &mut self.all[session], number, Ring::Broken(broken));
        self.has_to_wait(session);
        let device = &self.all[session];
        let of = format!("{}, ring {number}", device.export.name);
        self.report("a ring of a device is broken", &of, why);
    }

    /// Takes a ring away that runs. What the disk works on of it ends unanswered.
    pub(super) fn remove_queue(&mut self, site: &mut OwnSite<'_>, id: QueueId) -> Queue {
        let queue = self.queues.remove(id).expect("it runs");
        site.ring().end(queue.kick);
        if let Some(calling) = queue.calling {
            site.ring().end(calling);
        }
        let device = &mut self.all[queue.session];
        let is_first = device.waiting.front() == Some(&id);
        device.waiting.retain(|&waiting| waiting != id);
        if is_first && device.leave.is_none() {
            // Queued when the next round begins: a visit may be under way.
            self.have_room.push(queue.session);
        }
        queue
    }

    /// From now on that is what the ring of that number is.
    fn set_ring(site: &mut OwnSite<'_>, device: &mut Device, number: u16, ring: Ring) {
        if let Some(before) = device.rings.insert(number, ring) {
            Self::forget_ring(site, &before);
        }
    }

    /// Forgets the rings of a device.
    pub(super) fn clear_rings(site: &mut OwnSite<'_>, device: &mut Device) {
        for ring in std::mem::take(&mut device.rings).into_values() {
            Self::forget_ring(site, &ring);
        }
    }

    /// A ring is no more, nor is what tells that it is broken.
    fn forget_ring(site: &mut OwnSite<'_>, ring: &Ring) {
        if let Ring::Broken(BrokenRing { telling: Some(telling), .. }) = ring {
            site.ring().end(*telling);
        }
    }

    /// Answers the orders, and forgets the devices, whose requests are done.
    pub(super) fn settle(&mut self, site: &mut OwnSite<'_>) {
        self.is_unsettled = false;
        for session in std::mem::take(&mut self.waiting) {
            let Some(device) = self.all.get_mut(session) else { continue };
            if let Some(why) = device.leave.clone() {
                if device.in_flight == 0 {
                    self.forget(session, why);
                } else {
                    self.waiting.insert(session);
                }
                continue;
            }
            if device.of_broken == 0 {
                Self::tell_broken(site, device);
            }
            if device.has_to_tell() {
                self.waiting.insert(session);
            }
            let device = &mut self.all[session];
            match device.order.take() {
                None => {}
                Some(Waits::Memory(before)) if Arc::strong_count(&before) == 1 => {
                    device.answers.send(FromDevice::Retired(before));
                    device.answer(Answer::Done);
                }
                Some(Waits::Attach) if !self.has_leaving(session) => {
                    let device = &self.all[session];
                    device.answers.send(FromDevice::Attached(device.seen));
                }
                Some(Waits::Stop(number)) if self.has_stopped(session, number) => {
                    self.stopped(site, session, number);
                }
                Some(Waits::Reset) if self.is_idle(session) => {
                    let device = &mut self.all[session];
                    for id in device.queues_running() {
                        self.remove_queue(site, id);
                    }
                    let device = &mut self.all[session];
                    Self::clear_rings(site, device);
                    device.answer(Answer::Done);
                }
                Some(waits) => {
                    self.all[session].order = Some(waits);
                    self.waiting.insert(session);
                }
            }
        }
    }

    /// Returns whether all that a ring has taken is given back. Of one that is broken, whose
    /// chains are not given back, the disk must not work on any: it may read into the guest.
    fn has_stopped(&self, session: SessionId, number: u16) -> bool {
        match self.running(session, number) {
            Some(id) => self.queues[id].is_idle(),
            None => self.all[session].of_broken == 0,
        }
    }

    /// Tells the front-end which rings are broken, which it may set up anew: its session first.
    fn tell_broken(site: &mut OwnSite<'_>, device: &mut Device) {
        for (&number, ring) in &mut device.rings {
            let Ring::Broken(broken) = ring else { continue };
            if std::mem::replace(&mut broken.is_told, true) {
                continue;
            }
            device.answers.send(FromDevice::Broken(number, broken.base));
            if let Some(err) = &broken.err {
                let token = Token::Front(Operation::Err.token(QueueId::default()));
                broken.telling = Some(site.ring().signal(token, err));
            }
        }
    }

    /// Returns whether the disk works on nothing of a device, and all of its rings say so.
    fn is_idle(&self, session: SessionId) -> bool {
        let device = &self.all[session];
        let mut running = device.queues_running().into_iter();
        device.in_flight == 0 && running.all(|id| self.queues[id].is_idle())
    }

    /// Returns whether a device of the same export is still to end: the disk may read into its
    /// guest, which is perhaps this one's.
    fn has_leaving(&self, session: SessionId) -> bool {
        let export = &self.all[session].export.name;
        self.all.values().any(|other| other.leave.is_some() && other.export.name == *export)
    }

    /// A ring has stopped, and all of its chains are published.
    fn stopped(&mut self, site: &mut OwnSite<'_>, session: SessionId, number: u16) {
        let base = match self.all[session].rings.remove(&number) {
            Some(Ring::Runs(id)) => self.remove_queue(site, id).ring.next_available(),
            Some(ref ring @ Ring::Broken(ref broken)) => {
                Self::forget_ring(site, ring);
                broken.base
            }
            Some(Ring::Waits(_)) | None => unreachable!("it ran"),
        };
        self.all[session].answer(Answer::Base(base));
    }

    fn report(&mut self, kind: &'static str, of: &str, why: &dyn fmt::Display) {
        if let Some(line) = self.limits.admit(kind, Instant::now()) {
            tracing::warn!(export = of, left_out = line.left_out, "{kind}: {why}");
        }
    }
}
