//! Queued requests by the sector behind their last, for back merges.
//!
//! Of several requests with one end the one hashed last is found, and only that one: it may hide
//! a better candidate behind it, in Linux as here. Buckets are chains, the newest at the head.

use crate::arena::{List, RequestId};
use crate::request::{ByEnd, Requests, Sector};

/// As many buckets as Linux has; more are made as requests come.
const BUCKETS_AT_START: usize = 64;

/// Buckets for each request, at least: most lookups find nothing, and whether a bucket is empty is
/// easier to predict the rarer it is not.
const SPARSENESS: usize = 4;

/// Knuth's multiplicative hash: the golden ratio in 64 bits.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(Debug)]
pub(super) struct Ends {
    buckets: Vec<List<RequestId, ByEnd>>,
    count: usize,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self { buckets: new_buckets(BUCKETS_AT_START), count: 0 }
    }

    #[inline]
    pub(super) fn insert(&mut self, requests: &mut Requests, rq: RequestId) {
        if self.count * SPARSENESS >= self.buckets.len() {
            self.grow(requests);
        }
        let bucket = self.bucket(requests[rq].end());
        self.buckets[bucket].push_front(requests, rq);
        self.count += 1;
    }

    /// Takes out `rq`, which was inserted when it ended at `end`.
    #[inline]
    pub(super) fn remove(&mut self, requests: &mut Requests, rq: RequestId, end: Sector) {
        let bucket = self.bucket(end);
        self.buckets[bucket].remove(requests, rq);
        self.count -= 1;
    }

    /// The request hashed last of those that end at `end` and may merge at all.
    #[inline]
    pub(super) fn find(&self, requests: &Requests, end: Sector) -> Option<RequestId> {
        let newest = self.buckets[self.bucket(end)].first();
        std::iter::successors(newest, |&rq| List::<_, ByEnd>::after(requests, rq))
            .find(|&rq| requests[rq].end() == end && requests[rq].is_mergeable())
    }

    #[allow(clippy::cast_possible_truncation)] // as many bits are left as the index has
    #[inline]
    fn bucket(&self, end: Sector) -> usize {
        let bits = self.buckets.len().trailing_zeros();
        (end.0.wrapping_mul(GOLDEN_RATIO) >> (u64::BITS - bits)) as usize
    }

    /// Doubles the buckets. From the oldest to the newest, so that equal ends keep their order.
    fn grow(&mut self, requests: &mut Requests) {
        let doubled = new_buckets(self.buckets.len() * 2);
        for chain in std::mem::replace(&mut self.buckets, doubled) {
            let mut oldest = chain.last();
            while let Some(rq) = oldest {
                oldest = List::<_, ByEnd>::before(requests, rq);
                let bucket = self.bucket(requests[rq].end());
                self.buckets[bucket].push_front(requests, rq);
            }
        }
    }
}

fn new_buckets(count: usize) -> Vec<List<RequestId, ByEnd>> {
    std::iter::repeat_with(List::default).take(count).collect()
}
