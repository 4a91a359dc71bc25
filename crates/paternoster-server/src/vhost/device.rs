//! A device that a front-end has attached to: what its rings have in common.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use paternoster_disk::{Capabilities, Fd, GuestBuffers, GuestReads, GuestSlice, LastingId};
use paternoster_vhost::blk;
use paternoster_vhost::proto::Features;
use paternoster_vhost::{Answer, Inflight, Memory, Region, Start};

use super::queue::{QueueId, Taken};
use super::{Answers, FromDevice, NewDevice};
use crate::admission::Admitted;
use crate::clients::{ClientId, Export, Leave};

/// Rings of a device. QEMU asks for one a processor of its guest, and does not start where there
/// are fewer.
pub(super) const QUEUES: u16 = 64;

/// The bytes of a request that are counted beside its data: its pieces and its places in tables.
pub(super) const COST: usize = 4096;

/// The same of each part of it in the guest.
pub(super) const PART: usize = 16;

/// Bytes that the requests of a device hold at most, of which one always fits. What has no room
/// stays in the guest.
const BYTES: usize = 8 << 20;

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) client: ClientId,
    pub(super) export: Arc<Export>,
    /// What its driver sees.
    pub(super) seen: blk::Device,
    /// What reads straight into the machine's memory have to be.
    reads_into: Option<GuestReads>,
    pub(super) features: Features,
    /// Whether what is answered may be lost until a flush.
    pub(super) writeback: bool,
    pub(super) memory: Arc<Memory>,
    pub(super) inflight: Option<Inflight>,
    pub(super) rings: BTreeMap<u16, Ring>,
    /// Requests that the disk works on.
    pub(super) in_flight: u32,
    /// What they hold.
    held: usize,
    /// Those of them whose rings are broken.
    pub(super) of_broken: u32,
    /// Rings with a request that waits until less is held.
    pub(super) waiting: VecDeque<QueueId>,
    /// An order that waits until requests are done.
    pub(super) order: Option<Waits>,
    /// Whether a request was left unanswered, for another server.
    pub(super) has_given_up: bool,
    /// Why it ends, once it does: when the disk works on none of its requests.
    pub(super) leave: Option<Leave>,
    pub(super) answers: Answers,
    _admitted: Admitted,
}

/// A ring of which something is known.
#[derive(Debug)]
pub(super) enum Ring {
    /// It starts when there is memory.
    Waits(Start),
    Runs(QueueId),
    Broken(BrokenRing),
}

/// A ring that is broken. Its front-end is told when the disk works on no request of such a ring:
/// from then on it may be set up anew.
#[derive(Debug)]
pub(super) struct BrokenRing {
    /// The chain behind those that were taken.
    pub(super) base: u16,
    /// What tells the front-end.
    pub(super) err: Option<Fd>,
    pub(super) is_told: bool,
    /// The signal by which it is told, which may wait for ever.
    pub(super) telling: Option<LastingId>,
}

impl BrokenRing {
    pub(super) fn new(base: u16, err: Option<Fd>) -> Self {
        Self { base, err, is_told: false, telling: None }
    }
}

/// An order that waits until requests are done.
#[derive(Debug)]
pub(super) enum Waits {
    /// For those that use this memory.
    Memory(Arc<Memory>),
    /// For those of a ring that stops.
    Stop(u16),
    /// For all, and then all rings are gone.
    Reset,
    /// For those of a device of the same export that ends: then this one is attached.
    Attach,
}

impl Device {
    pub(super) fn new(client: ClientId, new: NewDevice, capabilities: &Capabilities) -> Self {
        let (seen, reads_into) = (new.seen(capabilities), capabilities.reads_into);
        let NewDevice { export, answers, admitted, .. } = new;
        Self {
            client,
            export,
            seen,
            reads_into,
            features: Features::empty(),
            writeback: true,
            memory: Arc::default(),
            inflight: None,
            rings: BTreeMap::new(),
            in_flight: 0,
            has_given_up: false,
            held: 0,
            of_broken: 0,
            waiting: VecDeque::new(),
            order: None,
            leave: None,
            answers,
            _admitted: admitted,
        }
    }

    /// Tells the front-end what has become of its order.
    pub(super) fn answer(&self, answer: Answer) {
        self.answers.send(FromDevice::Answer(answer));
    }

    /// Returns whether the front-end has taken memory away.
    pub(super) fn has_lost_memory(&self) -> bool {
        self.memory.is_lost() || self.inflight.as_ref().is_some_and(Inflight::is_lost)
    }

    /// Its rings that run.
    pub(super) fn queues_running(&self) -> Vec<QueueId> {
        let running = self.rings.values().filter_map(|ring| match ring {
            Ring::Runs(id) => Some(*id),
            Ring::Waits(_) | Ring::Broken(_) => None,
        });
        running.collect()
    }

    /// Returns whether there is a broken ring of which the front-end is still to be told.
    pub(super) fn has_to_tell(&self) -> bool {
        let is_to_tell = |ring: &Ring| matches!(ring, Ring::Broken(broken) if !broken.is_told);
        self.rings.values().any(is_to_tell)
    }

    /// Takes its rings that wait for memory.
    pub(super) fn take_waiting(&mut self) -> Vec<(u16, Start)> {
        let (waiting, others) = std::mem::take(&mut self.rings)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, ring)| matches!(ring, Ring::Waits(_)));
        self.rings = others;
        let start = |(number, ring)| match ring {
            Ring::Waits(start) => Some((number, start)),
            Ring::Runs(_) | Ring::Broken(_) => None,
        };
        waiting.into_iter().filter_map(start).collect()
    }

    /// Notes for the next server what the driver was told of the cache.
    pub(super) fn keep_cache_mode(&self) {
        if let Some(inflight) = &self.inflight {
            inflight.set_writes_through(!self.writeback);
        }
    }

    /// Returns whether a write is durable before it is answered: where the driver cannot flush, or
    /// has been told that it need not.
    pub(super) fn writes_through(&self) -> bool {
        let can_flush = self.features.intersects(Features::FLUSH | Features::CONFIG_WCE);
        self.seen.flushes && !(self.writeback && can_flush)
    }

    /// Where in the machine's memory the disk can put the bytes that a request reads from `offset`
    /// on, without a copy of ours; none where they have to be copied.
    pub(super) fn places(&self, taken: &Taken, offset: u64, len: u32) -> Option<GuestBuffers> {
        let reads = self.reads_into?;
        let mut places = GuestBuffers::default();
        let place = |region: &Arc<Region>, at, len: usize| {
            let len = u32::try_from(len).expect("a part of what is read");
            places.extend(GuestSlice::new(Arc::clone(region) as _, at, len));
        };
        taken.request.places(&taken.memory, place).ok()?;
        (places.len() == len && reads.permit(offset, &places)).then_some(places)
    }

    /// Holds so many bytes for a request of a ring, if they fit beside those of others; else the
    /// ring waits for that, behind those that wait.
    pub(super) fn hold(&mut self, queue: QueueId, bytes: usize) -> bool {
        let is_next = self.waiting.front().is_none_or(|&first| first == queue);
        if is_next && (self.held == 0 || self.held + bytes <= BYTES) {
            self.waiting.pop_front();
            self.held += bytes;
            self.in_flight += 1;
            return true;
        }
        if !self.waiting.contains(&queue) {
            self.waiting.push_back(queue);
        }
        false
    }

    /// A request is done that held so many.
    pub(super) fn release(&mut self, bytes: usize) {
        self.held -= bytes;
        self.in_flight -= 1;
    }

    /// Returns whether a ring waits until less is held.
    pub(super) fn waits_for_memory(&self) -> bool {
        !self.waiting.is_empty()
    }
}
