//! How many active queues there are of each weight, without the raised ones. If there are two
//! weights or more, shares do not hold by serving all queues alike.

use smallvec::SmallVec;

/// Weights in ascending order, each with its number of queues, more than 0. Weights of queues come
/// from levels, so there are few.
#[derive(Debug, Default)]
pub(super) struct WeightCounters(SmallVec<[(u32, u32); 8]>);

impl WeightCounters {
    pub(super) fn add(&mut self, weight: u32) {
        match self.0.binary_search_by_key(&weight, |&(weight, _)| weight) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (weight, 1)),
        }
    }

    pub(super) fn remove(&mut self, weight: u32) {
        let at = self.0.binary_search_by_key(&weight, |&(weight, _)| weight);
        let at = at.expect("a counted queue has its counter");
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.remove(at);
        }
    }

    /// The least weight of all.
    #[inline]
    pub(super) fn least(&self) -> Option<u32> {
        self.0.first().map(|&(weight, _)| weight)
    }

    /// Returns whether there are two weights or more.
    #[inline]
    pub(super) fn differ(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns whether these are the queues that are counted.
    pub(super) fn equals(&self, weights: impl Iterator<Item = u32>) -> bool {
        let mut other = Self::default();
        weights.for_each(|weight| other.add(weight));
        self.0 == other.0
    }
}
