//! The requests of one elevator, and the lists that they can be in.

use crate::arena::{Arena, GroupId, Linked, ListLinks, RequestId};
use crate::io_context::IoPrio;
use crate::parts::sort_list::SortNodes;
use crate::request::{Bio, Op, Place, Request, UserDataList, urgency_of};
use crate::time::Instant;

/// The requests of one elevator.
#[derive(Debug, Default)]
pub struct Requests {
    slots: Arena<RequestId, Request>,
    /// Their nodes in sort lists.
    pub(crate) sort_nodes: SortNodes,
    made: u64,
}

impl Requests {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn add(
        &mut self,
        now: Instant,
        bio: &Bio,
        io_prio: IoPrio,
        group: GroupId,
    ) -> RequestId {
        self.made += 1;
        // Its links are as they were left: it is in no list.
        let (rq, request) = self.slots.reuse(Request::blank);
        request.op = bio.op;
        request.flags = bio.flags;
        request.io_prio = io_prio;
        request.segments = bio.segments;
        request.sectors = bio.sectors;
        request.sector = bio.sector;
        request.ioc = bio.ioc;
        request.group = group;
        request.start = now;
        request.deadline = now;
        request.sequence = self.made;
        request.place = Place::Made;
        request.urgency = urgency_of(bio);
        // A request that bypasses the scheduler is marked by the elevator.
        request.bound = true;
        // Zeroes carry no data to gather.
        request.never_merge = !bio.is_mergeable() || bio.op == Op::WriteZeroes;
        request.bios = UserDataList::from_buf_and_len([bio.user_data, 0], 1);
        rq
    }

    #[inline]
    pub(crate) fn remove(&mut self, rq: RequestId) -> &mut Request {
        self.slots.remove(rq).expect("a request is freed once")
    }

    /// The request, which exists.
    #[inline]
    pub(crate) fn get_mut(&mut self, rq: RequestId) -> &mut Request {
        &mut self.slots[rq]
    }

    /// Returns the request of that key, if it exists.
    #[inline]
    pub fn get(&self, rq: RequestId) -> Option<&Request> {
        self.slots.get(rq)
    }

    /// How many requests exist.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether none exists.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns every request that exists.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.slots.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (RequestId, &mut Request)> {
        self.slots.iter_mut()
    }

    /// Sorts requests by arrival, and those of one instant in the order in which they were made.
    pub(crate) fn sort_by_arrival(&self, list: &mut [RequestId]) {
        list.sort_unstable_by_key(|&rq| (self[rq].start, self[rq].sequence));
    }
}

impl std::ops::Index<RequestId> for Requests {
    type Output = Request;
    /// The request. Where it is gone, debug builds panic; others may return another.
    #[inline]
    fn index(&self, rq: RequestId) -> &Request {
        &self.slots[rq]
    }
}

/// Names the links of a request in a list in order of arrival: a fifo, a dispatch list.
#[derive(Debug)]
pub(crate) enum ByArrival {}

impl Linked<RequestId, ByArrival> for Requests {
    #[inline]
    fn list_links(&self, rq: RequestId) -> &ListLinks<RequestId> {
        &self[rq].by_arrival
    }
    #[inline]
    fn list_links_mut(&mut self, rq: RequestId) -> &mut ListLinks<RequestId> {
        &mut self.get_mut(rq).by_arrival
    }
}
