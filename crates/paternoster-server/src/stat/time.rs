//! Where a group's time went, in [`GroupStat::time`](super::GroupStat::time).

use paternoster::{Cause, FrontCause, GroupTimes};
use serde::{Deserialize, Serialize};

/// The time of a group by its cause, in nanoseconds since start-up. The first six are the time in
/// which a request of it waited for the disk, `backlogged_ns`; the first ten are all time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeStat {
    /// A request waited, and the disk served others.
    pub turn_ns: u64,
    /// A request waited, and the disk served the group's own.
    pub busy_ns: u64,
    /// A request waited while the disk idled for the next request of a connection.
    pub idle_window_ns: u64,
    /// A request waited, held by a cap.
    pub cap_ns: u64,
    /// A request waited, as places are held free while another group misses its latency target.
    pub target_ns: u64,
    /// A request waited while the server was at work.
    pub server_ns: u64,
    /// No request waited, as the tenant had used its `memory`.
    pub memory_ns: u64,
    /// No request waited, as a client did not read its replies.
    pub unread_ns: u64,
    /// No request waited: all that there were were in the disk.
    pub too_few_ns: u64,
    /// There was no request.
    pub nothing_ns: u64,
    /// How long the disk was full and served this group: what others waited behind.
    pub went_first_ns: u64,
    /// How long the disk idled for this group while something waited.
    pub idled_ns: u64,
}

impl TimeStat {
    /// What `memory_ns` counts, in the accounts of the scheduler.
    pub(crate) const MEMORY: FrontCause = FrontCause::First;
    /// What `unread_ns` counts.
    pub(crate) const UNREAD: FrontCause = FrontCause::Second;

    /// Copies a group's account.
    pub(crate) fn of(times: &GroupTimes) -> Self {
        let of = |cause| times.of(cause).as_nanos();
        Self {
            turn_ns: of(Cause::Turn),
            busy_ns: of(Cause::Busy),
            idle_window_ns: of(Cause::IdleWindow),
            cap_ns: of(Cause::Cap),
            target_ns: of(Cause::Target),
            server_ns: of(Cause::Driver),
            memory_ns: of(Cause::Front(Self::MEMORY)),
            unread_ns: of(Cause::Front(Self::UNREAD)),
            too_few_ns: of(Cause::TooFew),
            nothing_ns: of(Cause::Nothing),
            went_first_ns: times.served.as_nanos(),
            idled_ns: times.idled.as_nanos(),
        }
    }

    /// Returns the time in which a request waited.
    pub fn waited_ns(&self) -> u64 {
        let Self { turn_ns, busy_ns, idle_window_ns, cap_ns, target_ns, server_ns, .. } = *self;
        let parts = [turn_ns, busy_ns, idle_window_ns, cap_ns, target_ns, server_ns];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns each cause by its name, with its time.
    pub fn causes(&self) -> [(&'static str, u64); 10] {
        [
            ("turn", self.turn_ns),
            ("busy", self.busy_ns),
            ("idle_window", self.idle_window_ns),
            ("cap", self.cap_ns),
            ("target", self.target_ns),
            ("server", self.server_ns),
            ("memory", self.memory_ns),
            ("unread", self.unread_ns),
            ("too_few", self.too_few_ns),
            ("nothing", self.nothing_ns),
        ]
    }

    /// Returns what has been added since an earlier reading.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            turn_ns: self.turn_ns.saturating_sub(before.turn_ns),
            busy_ns: self.busy_ns.saturating_sub(before.busy_ns),
            idle_window_ns: self.idle_window_ns.saturating_sub(before.idle_window_ns),
            cap_ns: self.cap_ns.saturating_sub(before.cap_ns),
            target_ns: self.target_ns.saturating_sub(before.target_ns),
            server_ns: self.server_ns.saturating_sub(before.server_ns),
            memory_ns: self.memory_ns.saturating_sub(before.memory_ns),
            unread_ns: self.unread_ns.saturating_sub(before.unread_ns),
            too_few_ns: self.too_few_ns.saturating_sub(before.too_few_ns),
            nothing_ns: self.nothing_ns.saturating_sub(before.nothing_ns),
            went_first_ns: self.went_first_ns.saturating_sub(before.went_first_ns),
            idled_ns: self.idled_ns.saturating_sub(before.idled_ns),
        }
    }
}
