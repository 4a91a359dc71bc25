//! The waiting requests of one I/O context: by arrival, or on a rotational device by sector.
//!
//! ```text
//!   by arrival   ●─●─●─●         the oldest is the head
//!   by sector    ●──●──●──●      the head is the next one upwards, and after the last the first
//!                      ▲ sweep
//! ```
//!
//! Requeued requests go before all others in both orders.

use crate::arena::RequestId;
use crate::device::Device;
use crate::parts::fifo::Fifo;
use crate::parts::sort_list::SortList;
use crate::request::{Bio, Sector};
use crate::requests::Requests;
use crate::scheduler::InsertAt;

/// In which order the requests of a context are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Arrival,
    Sector,
}

impl Order {
    /// The order that fits a device.
    #[inline]
    pub(super) fn of(device: &Device) -> Self {
        if device.rotational { Self::Sector } else { Self::Arrival }
    }
}

/// The waiting requests of one I/O context.
#[derive(Debug)]
pub(super) struct ContextQueue {
    order: Order,
    fifo: Fifo,
    sorted: SortList,
    /// The head in the order of sectors; none in the other.
    next: Option<RequestId>,
    /// Where the request started that was dispatched last, requeued ones apart.
    sweep: Sector,
    /// How many requests were requeued. They are the first in the fifo.
    requeued: u32,
}

impl ContextQueue {
    pub(super) fn new(order: Order) -> Self {
        let (fifo, sorted) = (Fifo::default(), SortList::default());
        Self { order, fifo, sorted, next: None, sweep: Sector(0), requeued: 0 }
    }

    /// The request to dispatch next.
    #[inline]
    pub(super) fn head(&self) -> Option<RequestId> {
        match self.order {
            Order::Sector if self.requeued == 0 => self.next,
            Order::Arrival | Order::Sector => self.fifo.first(),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert(&mut self, requests: &mut Requests, rq: RequestId, at: InsertAt) {
        // Of two requests that merge, the one that is left takes the place of the older.
        let arrived = requests[rq].start;
        self.sorted.insert(requests, rq);
        match at {
            InsertAt::Sorted => self.fifo.push(requests, rq, arrived),
            InsertAt::Head => {
                self.fifo.push_front(requests, rq, arrived);
                self.requeued += 1;
            }
        }
        self.prefer(requests, rq);
    }

    /// Makes `rq` the head in the order of sectors if the sweep comes to it first.
    #[inline]
    fn prefer(&mut self, requests: &Requests, rq: RequestId) {
        if self.order == Order::Arrival {
            return;
        }
        let rank = |rq: RequestId| {
            let sector = requests[rq].sector;
            (sector < self.sweep, sector)
        };
        if self.next.is_none_or(|next| rank(rq) < rank(next)) {
            self.next = Some(rq);
        }
    }

    /// Returns whether `rq`, which is dispatched or removed in order of arrival, was requeued.
    fn is_requeued(&self, rq: RequestId) -> bool {
        self.requeued > 0 && self.fifo.first() == Some(rq)
    }

    /// Takes out a request that is dispatched.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pop(&mut self, requests: &mut Requests, rq: RequestId) {
        if self.order == Order::Sector && !self.is_requeued(rq) {
            self.sweep = requests[rq].sector;
        }
        self.remove(requests, rq);
    }

    /// Takes out a request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn remove(&mut self, requests: &mut Requests, rq: RequestId) {
        if self.next == Some(rq) {
            let first = || self.sorted.first(requests).filter(|&first| first != rq);
            self.next = SortList::after(requests, rq).or_else(first);
        }
        self.requeued -= u32::from(self.is_requeued(rq));
        self.sorted.remove(requests, rq);
        self.fifo.remove(requests, rq);
    }

    /// Takes out `absorbed`, which `rq` of the same queue has absorbed.
    pub(super) fn absorb(&mut self, requests: &mut Requests, rq: RequestId, absorbed: RequestId) {
        if self.next == Some(absorbed) {
            self.next = Some(rq);
        }
        self.sorted.remove(requests, absorbed);
        self.fifo.absorb(requests, rq, absorbed);
    }

    /// Takes note that `rq` starts at an earlier sector.
    pub(super) fn start_moved(&mut self, requests: &mut Requests, rq: RequestId) {
        self.sorted.reposition(requests, rq);
        self.prefer(requests, rq);
    }

    /// A request that starts where `bio` ends.
    #[inline]
    pub(super) fn find_front(&mut self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        self.sorted.find_front(requests, bio)
    }

    /// All of them in order of arrival.
    pub(super) fn iter<'a>(
        &self,
        requests: &'a Requests,
    ) -> impl Iterator<Item = RequestId> + use<'a> {
        self.fifo.iter(requests)
    }

    /// Asserts that both orders have the same requests, one of which is next.
    pub(super) fn check(&self, requests: &Requests) {
        let mut by_arrival: Vec<_> = self.fifo.iter(requests).collect();
        let mut by_sector: Vec<_> = self.sorted.iter(requests).collect();
        by_arrival.sort_unstable();
        by_sector.sort_unstable();
        assert_eq!(by_arrival, by_sector, "both orders hold the same");
        let has_next = self.order == Order::Sector && !by_sector.is_empty();
        assert_eq!(self.next.is_some(), has_next, "one of what waits is next");
        assert!(self.next.is_none_or(|next| by_sector.contains(&next)), "what is next waits");
    }
}
