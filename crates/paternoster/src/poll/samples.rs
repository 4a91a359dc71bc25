//! The last samples of a time, and what is known of its distribution.

use crate::time::Nanos;

/// The last `N` samples, in nanoseconds; what is longer than 4 s counts as 4 s.
#[derive(Debug, Default)]
pub(super) struct Samples<const N: usize> {
    /// Room is made at the first sample: most classes have none, ever.
    ring: Vec<u32>,
    /// Where the next one goes once there are `N`.
    next: usize,
}

impl<const N: usize> Samples<N> {
    pub(super) fn push(&mut self, time: Nanos) {
        let time = u32::try_from(time.as_nanos()).unwrap_or(u32::MAX);
        if self.ring.len() < N {
            self.ring.reserve_exact(N - self.ring.len());
            self.ring.push(time);
        } else {
            self.ring[self.next] = time;
            self.next = (self.next + 1) % N;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.ring.len() == N
    }

    /// Forgets all but the last `count`.
    pub(super) fn keep_last(&mut self, count: usize) {
        self.ring.rotate_left(self.next);
        self.next = 0;
        let older = self.ring.len().saturating_sub(count);
        self.ring.drain(..older);
    }
}

/// Samples in order of length.
#[derive(Debug, Default)]
pub(super) struct Distribution {
    sorted: Vec<u32>,
    sum: u64,
}

impl Distribution {
    /// Takes what the samples say now.
    pub(super) fn refresh<const N: usize>(&mut self, samples: &Samples<N>) {
        self.sorted.clear();
        self.sorted.reserve_exact(N);
        self.sorted.extend_from_slice(&samples.ring);
        self.sorted.sort_unstable();
        self.sum = self.sorted.iter().map(|&time| u64::from(time)).sum();
    }

    /// Leaves out those from `limit` on, if they are one in ten at most; else all of them stay.
    /// Whether none is left from there on.
    pub(super) fn leave_out_rare(&mut self, limit: Nanos) -> bool {
        let below = self.sorted.partition_point(|&time| u64::from(time) < limit.as_nanos());
        let are_rare = (self.sorted.len() - below) * 10 <= self.sorted.len();
        if are_rare {
            let rare = self.sorted.drain(below..);
            self.sum -= rare.map(u64::from).sum::<u64>();
        }
        are_rare
    }

    pub(super) fn sorted(&self) -> &[u32] {
        &self.sorted
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// All of them together, in ns.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// Zero where there is none.
    pub(super) fn mean(&self) -> Nanos {
        Nanos::new(self.sum.checked_div(self.sorted.len() as u64).unwrap_or(0))
    }

    /// The sample that so many in a thousand are not longer than; zero where there is none.
    pub(super) fn quantile(&self, per_mille: usize) -> Nanos {
        let rank = (self.sorted.len() * per_mille).div_ceil(1000);
        let sample = self.sorted.get(rank.saturating_sub(1)).copied();
        Nanos::new(sample.unwrap_or(0).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(times: impl IntoIterator<Item = u64>) -> Samples<100> {
        let mut samples = Samples::default();
        times.into_iter().for_each(|time| samples.push(Nanos::new(time)));
        samples
    }

    #[test]
    fn quantiles_are_samples_by_rank() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.quantile(500), Nanos::ZERO);
        distribution.refresh(&ring((1..=100).rev()));
        let quantile = |per_mille| distribution.quantile(per_mille).as_nanos();
        assert_eq!((quantile(10), quantile(500), quantile(990)), (1, 50, 99));
        assert_eq!(distribution.mean(), Nanos::new(50));
    }

    /// 100 of 1 to 100: from 91 on they are one in ten, from 90 on more.
    #[test]
    fn only_what_is_rare_is_left_out() {
        let left = |limit| {
            let mut distribution = Distribution::default();
            distribution.refresh(&ring(1..=100));
            let are_rare = distribution.leave_out_rare(Nanos::new(limit));
            (are_rare, distribution.sorted().len(), distribution.sum())
        };
        assert_eq!(left(101), (true, 100, 5050));
        assert_eq!(left(91), (true, 90, 4095));
        assert_eq!(left(90), (false, 100, 5050));
    }

    #[test]
    fn only_the_last_samples_stay() {
        let mut samples = ring(1..=130);
        assert_eq!(samples.len(), 100);
        samples.keep_last(2);
        assert_eq!(samples.ring, [129, 130]);
        samples.push(Nanos::from_secs(9));
        assert_eq!(samples.ring, [129, 130, u32::MAX]);
    }
}
