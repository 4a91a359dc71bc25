//! Volumes that are paused, as the server behind them is away: their requests wait without a place
//! in the device, which the requests of other volumes then have.
//!
//! ```text
//!   in the device ────pause───▶ stays with the back end, which ends it some time
//!   dispatched while paused ──▶ waits here ──go on──▶ submitted again
//! ```
//!
//! Schedulers have no way to give a request up or to set one aside. To the scheduler each of these
//! requests is done, as one that the device was very fast with, and its group has paid for it: at
//! most those that clients had outstanding, once each time that the server is lost.

use std::collections::{HashMap, VecDeque};

use paternoster::RequestId;
use paternoster::scheduler::Scheduler;

use super::pieces::{InOrder, PieceId, Pieces, Scope};
use super::volumes::VolumeId;
use super::{Engine, InTheDevice};

/// The requests of paused volumes.
#[derive(Debug, Default)]
pub(super) struct Paused {
    /// Those that are with the back end.
    started: HashMap<RequestId, InTheDevice>,
    /// Those of them whose place in the device is not free.
    to_free: VecDeque<RequestId>,
    /// The pieces of those that are not.
    waiting: Vec<PieceId>,
}

impl Paused {
    /// Takes a request that the back end has ended, if it is of a volume that was paused.
    pub(super) fn take_started(&mut self, rq: RequestId) -> Option<InOrder> {
        // To look it up would cost every request of every disk a hash.
        if self.started.is_empty() {
            return None;
        }
        self.started.remove(&rq).map(|of| of.order)
    }

    /// Takes the pieces that wait of those volumes.
    pub(super) fn take_waiting(&mut self, of: Scope, pieces: &Pieces) -> Vec<PieceId> {
        let is_of = |piece: &mut PieceId| of.includes(pieces.piece(*piece).volume);
        self.waiting.extract_if(.., is_of).collect()
    }

    /// Has the pieces of a request wait.
    pub(super) fn wait(&mut self, order: InOrder) {
        self.waiting.extend(order);
    }

    /// Takes a request whose place in the device becomes free.
    pub(super) fn free_next(&mut self) -> Option<RequestId> {
        self.to_free.pop_front()
    }

    pub(super) fn started(&self) -> impl Iterator<Item = &InTheDevice> {
        self.started.values()
    }
}

impl<S: Scheduler> Engine<S> {
    /// Has a volume's requests wait without a place in the device, or go on. The caller lets the
    /// engine take steps before anything else.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn set_paused(&mut self, id: VolumeId, is_paused: bool) {
        let volume = &mut self.pieces.volumes[id];
        if volume.is_paused == is_paused {
            return;
        }
        volume.is_paused = is_paused;
        if is_paused {
            return self.free_places(id);
        }
        for piece in self.paused.take_waiting(Scope::One(id), &self.pieces) {
            self.to_submit.push_back(self.pieces.reissue(piece));
        }
    }

    /// Frees the places in the device of the volume's requests.
    fn free_places(&mut self, id: VolumeId) {
        let is_of = |of: &InTheDevice| self.pieces.piece(of.order[0]).volume == id;
        // One whose ends are being read goes on with its write, for which it needs its place.
        let started = self.in_device.iter().filter(|(_, of)| !of.is_reading_ends && is_of(of));
        let started: Vec<_> = started.map(|(rq, _)| rq).collect();
        for rq in started {
            let of = self.in_device.remove(rq).expect("it is in the device");
            self.paused.started.insert(rq, of);
            self.paused.to_free.push_back(rq);
        }
    }
}
