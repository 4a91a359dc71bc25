//! The back ends of a disk, one for each of its volumes.
//!
//! A round asks only those that may have something: a volume is *active* from when a transfer of it
//! begins, or something happens to its back end, until it has nothing in flight and waits for no
//! moment. So thousands of volumes that nobody uses cost a round nothing.

use std::collections::VecDeque;
use std::io;

use paternoster::Instant;
use slotmap::SecondaryMap;

use crate::backend::{Backend, BusyDepth, Notice, QuiesceError, TransferDone};
use crate::engine::{Transfer, TransferId, VolumeId};
use crate::ring::{Completion, Ring};
use crate::token::{BackendToken, Token};

/// A back end, and what is known of it.
#[derive(Debug)]
struct Held {
    backend: Box<dyn Backend>,
    /// Transfers that it works on.
    in_flight: u32,
    is_active: bool,
    is_paused: bool,
    /// Whether it has yet to hear that all has been started.
    is_unsent: bool,
}

/// The back ends of a disk.
#[derive(Debug, Default)]
pub(super) struct Backends {
    all: SecondaryMap<VolumeId, Held>,
    /// Those that are active; the next to be asked comes first.
    active: VecDeque<VolumeId>,
    /// Those that have yet to hear that all has been started.
    unsent: Vec<VolumeId>,
    /// What has happened to them.
    notices: Vec<(VolumeId, Notice)>,
    /// Volumes that pause or go on since they were asked last.
    pauses: Vec<(VolumeId, bool)>,
}

impl Backends {
    pub(super) fn add(&mut self, volume: VolumeId, backend: Box<dyn Backend>) {
        let held =
            Held { backend, in_flight: 0, is_active: false, is_paused: false, is_unsent: false };
        let before = self.all.insert(volume, held);
        assert!(before.is_none(), "a volume has one back end");
    }

    pub(super) fn has(&self, volume: VolumeId) -> bool {
        self.all.contains_key(volume)
    }

    /// Returns the back end of a volume, to read its state.
    pub(super) fn get(&self, volume: VolumeId) -> &dyn Backend {
        &*self.all[volume].backend
    }

    /// Returns how many requests in flight keep the device busy: the most that a back end says.
    pub(super) fn depth(&self) -> BusyDepth {
        BusyDepth::of_all(self.all.values().map(|held| held.backend.capabilities().depth))
    }

    /// Returns whether the device of any volume is made of servers.
    pub(super) fn have_servers(&self) -> bool {
        self.all.values().any(|held| held.backend.servers_time().is_some())
    }

    /// Returns whether transfers of any volume take time; those of volumes that are yet to come do.
    pub(super) fn take_time(&self) -> bool {
        self.all.is_empty() || self.all.values().any(|held| held.backend.takes_time())
    }

    /// The owner begins.
    pub(super) fn begin_all(&mut self, ring: &mut Ring<Token>) {
        for volume in self.volumes() {
            self.begin(ring, volume);
        }
    }

    /// A back end begins.
    pub(super) fn begin(&mut self, ring: &mut Ring<Token>, volume: VolumeId) {
        self.activate(volume).backend.begin(ring, volume);
    }

    /// What is behind a back end has so many bytes.
    pub(super) fn grow(&mut self, volume: VolumeId, size: u64) -> io::Result<()> {
        self.all[volume].backend.grow(size)
    }

    /// Has a back end leave what is behind it.
    pub(super) fn quiesce(&mut self, volume: VolumeId, now: Instant) -> Result<(), QuiesceError> {
        self.activate(volume).backend.quiesce(now)
    }

    /// Has a back end go on.
    pub(super) fn resume(&mut self, volume: VolumeId, now: Instant) {
        self.activate(volume).backend.resume(now);
    }

    /// Gives a back end up that works on nothing.
    pub(super) fn remove(&mut self, volume: VolumeId) -> Box<dyn Backend> {
        let held = self.all.remove(volume).expect("a volume is removed once");
        assert_eq!(held.in_flight, 0, "a back end that is given up works on nothing");
        self.active.retain(|&active| active != volume);
        self.unsent.retain(|&unsent| unsent != volume);
        held.backend
    }

    /// The end has begun.
    pub(super) fn begin_end(&mut self, now: Instant) {
        for volume in self.volumes() {
            self.activate(volume).backend.begin_end(now);
        }
    }

    /// Begins a transfer.
    pub(super) fn start(
        &mut self,
        ring: &mut Ring<Token>,
        now: Instant,
        id: TransferId,
        transfer: Transfer,
    ) {
        let held = self.activate(id.volume());
        held.in_flight += 1;
        held.backend.start(ring, now, id, transfer);
    }

    /// All that begins now has been started.
    pub(super) fn all_started(&mut self, ring: &mut Ring<Token>) {
        for volume in self.unsent.drain(..) {
            if let Some(held) = self.all.get_mut(volume) {
                held.is_unsent = false;
                held.backend.all_started(ring);
            }
        }
    }

    /// An operation on the ring that is no single transfer's has completed.
    pub(super) fn ring_event(
        &mut self,
        ring: &mut Ring<Token>,
        now: Instant,
        volume: VolumeId,
        completion: Completion<BackendToken>,
    ) {
        // One that has gone has closed what it waited for, and hears no more of it.
        if self.has(volume) {
            self.activate(volume).backend.ring_event(ring, now, completion);
        }
    }

    /// A transfer's operation on the ring has completed: the transfer, if it is done by that.
    pub(super) fn ring_completed(
        &mut self,
        ring: &mut Ring<Token>,
        completion: Completion<TransferId>,
    ) -> Option<TransferDone> {
        let held = self.activate(completion.token.volume());
        let done = held.backend.ring_completed(ring, completion)?;
        held.in_flight -= 1;
        Some(done)
    }

    /// Returns how many back ends a round asks.
    pub(super) fn active(&self) -> usize {
        self.active.len()
    }

    /// A transfer of the back end whose turn it is that is done by `now` without the ring.
    pub(super) fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        let held = &mut self.all[*self.active.front()?];
        let done = held.backend.take_done(now)?;
        held.in_flight -= 1;
        Some(done)
    }

    /// Ends the turn of the back end whose turn it is.
    pub(super) fn next(&mut self) {
        let Some(volume) = self.active.pop_front() else { return };
        let held = &mut self.all[volume];
        let notices = held.backend.take_notices();
        self.notices.extend(notices.into_iter().map(|notice| (volume, notice)));
        let is_paused = held.backend.is_paused();
        if is_paused != held.is_paused {
            held.is_paused = is_paused;
            self.pauses.push((volume, is_paused));
        }
        held.is_active = held.in_flight > 0 || held.backend.poll_timeout().is_some();
        if held.is_active {
            self.active.push_back(volume);
        }
        // What was due may have led to something that it has to send.
        self.has_to_send(volume);
    }

    /// When a back end will have something.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.active.iter().filter_map(|&volume| self.all[volume].backend.poll_timeout()).min()
    }

    /// What has happened to back ends since the last call that their operator should know.
    pub(super) fn take_notices(&mut self) -> Vec<(VolumeId, Notice)> {
        std::mem::take(&mut self.notices)
    }

    /// The volumes that pause or go on since the last call.
    pub(super) fn take_pauses(&mut self) -> Vec<(VolumeId, bool)> {
        std::mem::take(&mut self.pauses)
    }

    fn volumes(&self) -> Vec<VolumeId> {
        self.all.keys().collect()
    }

    /// Something happens to a back end: a round asks it.
    fn activate(&mut self, volume: VolumeId) -> &mut Held {
        let held = &mut self.all[volume];
        if !held.is_active {
            held.is_active = true;
            self.active.push_back(volume);
        }
        self.has_to_send(volume)
    }

    /// A back end is told when all has been started.
    fn has_to_send(&mut self, volume: VolumeId) -> &mut Held {
        let held = &mut self.all[volume];
        if !held.is_unsent {
            held.is_unsent = true;
            self.unsent.push(volume);
        }
        held
    }
}
