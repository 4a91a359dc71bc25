//! Bursts: many queues that become busy together, as when a daemon starts or a program is built.
//! Throughput matters then, so the queues of a large burst are not raised.
//!
//! ```text
//!   first request of a new queue
//!     longer than the interval after the last, or of another group:  a new burst begins
//!     the 8th queue of a burst:                                      the burst is large, and
//!                                                                    these 8 are in it
//!     later ones:                                                    are in the large burst
//! ```
//!
//! CFQ raises no queue and has no counterpart.

use crate::arena::GroupId;
use crate::bfq::queue_id::QueueId;
use crate::time::{Jiffies, Ticks};

/// A burst of so many queues is large.
const LARGE: u32 = 8;

/// The burst that goes on, if any.
#[derive(Debug)]
pub(super) struct Burst {
    /// When a queue last came.
    last: Jiffies,
    /// Queues that came. One that is freed leaves the list but still counts here, as in Linux.
    size: u32,
    /// The group of them all.
    group: Option<GroupId>,
    large: bool,
    /// Those that came, until the burst is large.
    queues: Vec<QueueId>,
}

/// A queue that never had a request and gets its first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    pub(super) queue: QueueId,
    pub(super) group: GroupId,
    pub(super) now: Jiffies,
    /// No other queue is busy.
    pub(super) is_first_busy: bool,
}

/// What a newcomer means for the queues.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// No queue is in a large burst for it.
    Small,
    /// The newcomer is in the large burst.
    Large,
    /// With the newcomer the burst has become large: these queues are in it.
    MadeLarge(Vec<QueueId>),
}

impl Burst {
    pub(super) fn new() -> Self {
        Self { last: Jiffies::LONG_AGO, size: 0, group: None, large: false, queues: Vec::new() }
    }

    /// Returns whether a burst may be going on.
    #[inline]
    pub(super) fn may_go_on(&self) -> bool {
        self.size > 0
    }

    pub(super) fn is_large(&self) -> bool {
        self.large
    }

    /// Returns whether the queue is one of the burst that goes on and is not large.
    pub(super) fn contains(&self, queue: QueueId) -> bool {
        self.queues.contains(&queue)
    }

    /// Counts a newcomer, if it is not in the burst already. Queues that come no farther apart than
    /// `interval` are of one burst.
    ///
    /// The first queue of a burst counts only if no other was busy as it came: as in Linux.
    pub(super) fn join(&mut self, newcomer: Newcomer, interval: Ticks) -> Joined {
        let Newcomer { queue, group, now, is_first_busy } = newcomer;
        if self.contains(queue) {
            return Joined::Small;
        }
        let is_apart = now > self.last + interval || Some(group) != self.group;
        self.last = now;
        if is_apart {
            self.begin(group, is_first_busy.then_some(queue));
            return Joined::Small;
        }
        if self.large {
            return Joined::Large;
        }
        self.size += 1;
        self.queues.push(queue);
        if self.size < LARGE {
            return Joined::Small;
        }
        self.large = true;
        Joined::MadeLarge(std::mem::take(&mut self.queues))
    }

    fn begin(&mut self, group: GroupId, first: Option<QueueId>) {
        self.large = false;
        self.group = Some(group);
        self.queues.clear();
        self.queues.extend(first);
        self.size = u32::from(first.is_some());
    }

    /// Adds a queue to those of the burst without counting it: it was created for a user whose
    /// queue was one of them.
    pub(super) fn put_back(&mut self, queue: QueueId) {
        self.queues.push(queue);
    }

    /// Removes a queue from those of the burst; it still counts.
    pub(super) fn remove(&mut self, queue: QueueId) {
        self.queues.retain(|&other| other != queue);
    }
}

#[cfg(test)]
mod tests {
    use crate::arena::Arena;

    use super::*;
    use crate::time::Hz;

    const INTERVAL: Ticks = Ticks::new(180);

    /// A burst, queues and groups to come, and the tick at which all begins.
    struct Bench {
        burst: Burst,
        queues: Vec<QueueId>,
        groups: [GroupId; 2],
        begin: Jiffies,
    }

    impl Bench {
        fn new() -> Self {
            let mut queues = Arena::<QueueId, ()>::default();
            let mut groups = Arena::<GroupId, ()>::default();
            Self {
                burst: Burst::new(),
                queues: (0..20).map(|_| queues.insert(())).collect(),
                groups: [groups.insert(()), groups.insert(())],
                begin: Hz::MILLI.jiffies(crate::time::Instant::START),
            }
        }

        /// The queue comes at that tick, to the first group, while others are busy.
        fn join(&mut self, queue: usize, tick: i64) -> Joined {
            self.join_as(queue, tick, 0, false)
        }

        fn join_as(
            &mut self,
            queue: usize,
            tick: i64,
            group: usize,
            is_first_busy: bool,
        ) -> Joined {
            let newcomer = Newcomer {
                queue: self.queues[queue],
                group: self.groups[group],
                now: self.begin + Ticks::new(tick),
                is_first_busy,
            };
            self.burst.join(newcomer, INTERVAL)
        }
    }

    /// The first came while no other was busy and counts: the 8th makes the burst large, and the
    /// 9th finds it so.
    #[test]
    fn burst_of_eight_queues_is_large() {
        let mut bench = Bench::new();
        assert_eq!(bench.join_as(0, 0, 0, true), Joined::Small);
        for queue in 1..7 {
            assert_eq!(bench.join(queue, 0), Joined::Small, "{queue}");
            assert!(bench.burst.contains(bench.queues[queue]) && !bench.burst.is_large());
        }
        let all = bench.queues[..8].to_vec();
        assert_eq!(bench.join(7, 0), Joined::MadeLarge(all));
        assert!(bench.burst.is_large());
        assert!(!bench.burst.contains(bench.queues[0]), "its queues are known no more");
        assert_eq!(bench.join(8, 0), Joined::Large);
    }

    /// The first came while others were busy and does not count: there is no burst yet. The next 8
    /// do.
    #[test]
    fn first_queue_does_not_count_if_others_are_busy() {
        let mut bench = Bench::new();
        assert_eq!(bench.join(0, 0), Joined::Small);
        assert!(!bench.burst.may_go_on() && !bench.burst.contains(bench.queues[0]));
        for queue in 1..8 {
            assert_eq!(bench.join(queue, 0), Joined::Small, "{queue}");
            assert!(bench.burst.may_go_on());
        }
        assert_eq!(bench.join(8, 0), Joined::MadeLarge(bench.queues[1..9].to_vec()));
    }

    /// Each comes 180 ticks after the one before, which is the interval, and all are of one burst,
    /// though it takes 7 times as long. 181 ticks later another burst begins.
    #[test]
    fn queues_that_come_within_the_interval_are_of_one_burst() {
        for (gap, last) in [(180, true), (181, false)] {
            let mut bench = Bench::new();
            bench.join_as(0, 0, 0, true);
            for queue in 1..7 {
                bench.join(queue, 180 * i64::try_from(queue).expect("few"));
            }
            let is_large = bench.join(7, 180 * 6 + gap) != Joined::Small;
            assert_eq!(is_large, last, "{gap}");
            assert_eq!(bench.burst.is_large(), last, "{gap}");
        }
    }

    #[test]
    fn large_burst_is_over_when_another_begins() {
        let mut bench = Bench::new();
        bench.join_as(0, 0, 0, true);
        for queue in 1..8 {
            bench.join(queue, 0);
        }
        assert_eq!(bench.join(8, 180), Joined::Large);
        assert_eq!(bench.join(9, 360), Joined::Large, "the one before keeps it going");
        assert_eq!(bench.join(10, 541), Joined::Small);
        assert!(!bench.burst.is_large());
    }

    #[test]
    fn queue_of_another_group_begins_another_burst() {
        let mut bench = Bench::new();
        bench.join_as(0, 0, 0, true);
        for queue in 1..7 {
            bench.join(queue, 0);
        }
        assert_eq!(bench.join_as(7, 0, 1, false), Joined::Small);
        assert_eq!(bench.join(8, 0), Joined::Small);
        assert!(!bench.burst.contains(bench.queues[1]));
    }

    /// Queue 1 comes twice and counts once: queue 7 is the 8th.
    #[test]
    fn queue_that_is_in_the_burst_does_not_count_again() {
        let mut bench = Bench::new();
        bench.join_as(0, 0, 0, true);
        for queue in [1, 1, 2, 3, 4, 5, 6] {
            assert_eq!(bench.join(queue, 0), Joined::Small);
        }
        assert_eq!(bench.join(7, 0), Joined::MadeLarge(bench.queues[..8].to_vec()));
    }

    /// Queue 3 goes, and the 8th that came makes the burst large all the same, of 7 queues. Queue
    /// 15 was put back and is in it uncounted.
    #[test]
    fn queue_that_leaves_still_counts_and_one_put_back_does_not() {
        let mut bench = Bench::new();
        bench.join_as(0, 0, 0, true);
        for queue in 1..7 {
            bench.join(queue, 0);
        }
        bench.burst.remove(bench.queues[3]);
        bench.burst.put_back(bench.queues[15]);
        let mut all = bench.queues[..7].to_vec();
        all.remove(3);
        all.extend([bench.queues[15], bench.queues[7]]);
        assert_eq!(bench.join(7, 0), Joined::MadeLarge(all));
    }
}
