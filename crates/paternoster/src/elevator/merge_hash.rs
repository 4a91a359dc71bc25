//! The merge hash: queued requests by the sector behind their last, for back merges.
//!
//! Of several requests that end at one sector it finds the one that was hashed last, and only that
//! one. It may hide a better candidate, in Linux as here. Each bucket is a chain, newest first.

use crate::arena::{ListLinks, RequestId};
use crate::request::Sector;
use crate::requests::Requests;

/// As many buckets as Linux has. The table grows with the requests in it.
const BUCKETS_AT_START: usize = 64;

/// At least so many buckets for each request. Most lookups find nothing, and the processor predicts
/// an empty bucket better if nearly all of them are.
const SPARSENESS: usize = 4;

/// Knuth's multiplicative hash: the golden ratio in 64 bits.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash table of queued requests by their end.
#[derive(Debug)]
pub(super) struct MergeHash {
    /// The newest request of each chain, which goes on through the requests.
    buckets: Vec<Option<RequestId>>,
    /// By how many bits a hash is shifted to be the index of a bucket.
    shift: u32,
    count: usize,
}

impl MergeHash {
    pub(super) fn new() -> Self {
        let buckets = new_buckets(BUCKETS_AT_START);
        Self { shift: shift_for(&buckets), buckets, count: 0 }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert(&mut self, requests: &mut Requests, rq: RequestId) {
        if self.count * SPARSENESS >= self.buckets.len() {
            self.grow(requests);
        }
        self.push(requests, rq);
        self.count += 1;
    }

    /// Puts `rq` first in its bucket.
    #[inline]
    fn push(&mut self, requests: &mut Requests, rq: RequestId) {
        let request = requests.get_mut(rq);
        let bucket = self.bucket(request.end());
        let after = self.buckets[bucket].replace(rq);
        request.by_end = ListLinks { before: None, after };
        request.hashed = true;
        if let Some(after) = after {
            requests.get_mut(after).by_end.before = Some(rq);
        }
    }

    /// Takes out `rq`, which ended at `end` when it was inserted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn remove(&mut self, requests: &mut Requests, rq: RequestId, end: Sector) {
        let request = requests.get_mut(rq);
        request.hashed = false;
        let ListLinks { before, after } = request.by_end;
        if let Some(before) = before {
            requests.get_mut(before).by_end.after = after;
        } else {
            let bucket = self.bucket(end);
            self.buckets[bucket] = after;
        }
        if let Some(after) = after {
            requests.get_mut(after).by_end.before = before;
        }
        self.count -= 1;
    }

    /// The request hashed last of those that end at `end` and may merge at all.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn find(&self, requests: &Requests, end: Sector) -> Option<RequestId> {
        let mut found = self.buckets[self.bucket(end)];
        while let Some(rq) = found {
            let request = &requests[rq];
            if request.end() == end && request.is_mergeable() {
                break;
            }
            found = request.by_end.after;
        }
        found
    }

    #[allow(clippy::cast_possible_truncation)] // as many bits are left as the index has
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bucket(&self, end: Sector) -> usize {
        (end.0.wrapping_mul(GOLDEN_RATIO) >> self.shift) as usize
    }

    /// Doubles the buckets. Requests move from the oldest to the newest, so that those with equal
    /// ends keep their order.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, requests: &mut Requests) {
        let doubled = new_buckets(self.buckets.len() * 2);
        self.shift = shift_for(&doubled);
        for chain in std::mem::replace(&mut self.buckets, doubled) {
            let after = |&rq: &RequestId| requests[rq].by_end.after;
            let newest_first: Vec<_> = std::iter::successors(chain, after).collect();
            for rq in newest_first.into_iter().rev() {
                self.push(requests, rq);
            }
        }
    }
}

fn shift_for(buckets: &[Option<RequestId>]) -> u32 {
    u64::BITS - buckets.len().trailing_zeros()
}

fn new_buckets(count: usize) -> Vec<Option<RequestId>> {
    vec![None; count]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{bio, request};
    use proptest::prelude::*;

    fn add(hash: &mut MergeHash, requests: &mut Requests, end: u64) -> RequestId {
        let rq = request(requests, &bio(end - 8..end));
        hash.insert(requests, rq);
        rq
    }

    #[test]
    fn of_equal_ends_the_one_hashed_last_is_found() {
        let (mut hash, mut requests) = (MergeHash::new(), Requests::default());
        let [old, new] = [108, 108].map(|end| add(&mut hash, &mut requests, end));
        assert_eq!(hash.find(&requests, Sector(108)), Some(new));
        hash.remove(&mut requests, new, Sector(108));
        assert_eq!(hash.find(&requests, Sector(108)), Some(old));
        assert_eq!(hash.find(&requests, Sector(100)), None);
    }

    #[test]
    fn what_may_merge_no_more_hides_nothing() {
        let (mut hash, mut requests) = (MergeHash::new(), Requests::default());
        let [old, new] = [108, 108].map(|end| add(&mut hash, &mut requests, end));
        requests.get_mut(new).never_merge = true;
        assert_eq!(hash.find(&requests, Sector(108)), Some(old));
    }

    /// A bucket in four is used at most: 64 are doubled by the 17th request, 128 by the 33rd, 256
    /// by the 65th, 512 by the 129th.
    #[test]
    fn equal_ends_stay_newest_first_as_buckets_are_doubled() {
        let (mut hash, mut requests) = (MergeHash::new(), Requests::default());
        let equals: Vec<_> = (0..10).map(|_| add(&mut hash, &mut requests, 4096)).collect();
        for other in 0..190 {
            add(&mut hash, &mut requests, 8192 + 8 * other);
        }
        assert_eq!(hash.buckets.len(), 1024);
        for &newest in equals.iter().rev() {
            assert_eq!(hash.find(&requests, Sector(4096)), Some(newest));
            hash.remove(&mut requests, newest, Sector(4096));
        }
        assert_eq!(hash.find(&requests, Sector(4096)), None);
    }

    proptest! {
        /// The model is one list, newest last.
        #[test]
        fn any_table_finds_the_newest_of_an_end(
            steps in proptest::collection::vec((1_u64..24, any::<u16>(), 0_u8..4), 0..400),
        ) {
            let (mut hash, mut requests) = (MergeHash::new(), Requests::default());
            let mut model: Vec<RequestId> = vec![];
            for (end, pick, what) in steps {
                if what == 0 && !model.is_empty() {
                    let rq = model.remove(usize::from(pick) % model.len());
                    let end = requests[rq].end();
                    hash.remove(&mut requests, rq, end);
                } else {
                    model.push(add(&mut hash, &mut requests, end * 8));
                }
                let end = Sector(end * 8);
                let newest = model.iter().rev().copied().find(|&rq| requests[rq].end() == end);
                prop_assert_eq!(hash.find(&requests, end), newest);
            }
        }
    }
}
