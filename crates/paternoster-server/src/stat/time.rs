//! Where a group's time went, in [`GroupStat::time`](super::GroupStat::time).

use paternoster::{Cause, FrontCause, GroupTimes};

use super::Stat;
use super::figures::{Number, Value as _, figures};

figures! {
    /// The time of a group by its cause. The first six are the time in which a request of it waited
    /// for the disk, `backlogged_ns`; the first ten are all time.
    #[derive(Copy)]
    pub struct TimeStat, of (times: &GroupTimes);
    /// A request waited, and the disk served others.
    turn_ns: u64, Counter = times.of(Cause::Turn).as_nanos();
    /// A request waited, and the disk served the group's own.
    busy_ns: u64, Counter = times.of(Cause::Busy).as_nanos();
    /// A request waited while the disk idled for the next request of a connection.
    idle_window_ns: u64, Counter = times.of(Cause::IdleWindow).as_nanos();
    /// A request waited, held by a cap.
    cap_ns: u64, Counter = times.of(Cause::Cap).as_nanos();
    /// A request waited, held back because another group misses its latency target.
    target_ns: u64, Counter = times.of(Cause::Target).as_nanos();
    /// A request waited while the server was at work.
    server_ns: u64, Counter = times.of(Cause::Driver).as_nanos();
    /// No request waited, as the tenant had used its `memory`.
    memory_ns: u64, Counter = times.of(Cause::Front(Self::MEMORY)).as_nanos();
    /// No request waited, as a client did not read its replies.
    unread_ns: u64, Counter = times.of(Cause::Front(Self::UNREAD)).as_nanos();
    /// No request waited: all that there were were in the disk.
    too_few_ns: u64, Counter = times.of(Cause::TooFew).as_nanos();
    /// There was no request.
    nothing_ns: u64, Counter = times.of(Cause::Nothing).as_nanos();
    /// The disk was full and served this group: what others waited behind.
    went_first_ns: u64, Counter = times.served.as_nanos();
    /// The disk idled for this group while something waited.
    idled_ns: u64, Counter = times.idled.as_nanos();
}

impl TimeStat {
    /// What `memory_ns` counts, in the accounts of the scheduler.
    pub(crate) const MEMORY: FrontCause = FrontCause::First;
    /// What `unread_ns` counts.
    pub(crate) const UNREAD: FrontCause = FrontCause::Second;
    /// How many of the causes are those of a request that waited.
    const WAITING: usize = 6;
    /// How many causes there are.
    const CAUSES: usize = 10;

    /// Returns the time in which a request waited.
    pub fn waited_ns(&self) -> u64 {
        let waiting = self.causes().into_iter().take(Self::WAITING);
        waiting.fold(0, |sum, (_, nanos)| sum.saturating_add(nanos))
    }

    /// Returns each cause by its name, with its time.
    pub fn causes(&self) -> Vec<(&'static str, u64)> {
        let mut causes = Vec::new();
        self.tell(Stat::FIGURES, &[], &mut |figure, _, number| {
            if let Number::Count(nanos) = number {
                causes.push((figure.name.trim_end_matches("_ns"), nanos));
            }
        });
        causes.truncate(Self::CAUSES);
        causes
    }
}
