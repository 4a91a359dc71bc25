//! Counts of what a group got, or did not get, beside what its weight gives it; and of what it asks
//! for.

use crate::time::{Instant, Nanos};

/// The counts of the share of one group. They have no influence on what is decided.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ShareStats {
    /// Requests of it, or of groups below it, that its reservation brought forward.
    pub reserved: u64,
    /// The time for which its caps held what waited, up to when that was last over.
    capped: Nanos,
    /// Since when, and until when, its caps hold something; none while they do not.
    hold: Option<(Instant, Instant)>,
    /// What has become of its latency target.
    pub target: TargetStats,
}

/// What has become of the latency target of a group, since it was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetStats {
    /// Requests that were served, of the group and of those below it,
    pub requests: u64,
    /// and those of them that took longer than the target.
    pub late: u64,
    /// How many requests groups with a later target or none may have in the device; none where
    /// they are not held.
    pub held: Option<u32>,
    /// Periods of 100 ms or more in which it was missed though others were held as far as may be.
    pub unmet: u64,
    /// It cannot be met: nobody is held for it, until it is tried again.
    pub given_up: bool,
}

impl TargetStats {
    #[inline]
    pub(crate) fn count(&mut self, is_late: bool) {
        self.requests += 1;
        self.late += u64::from(is_late);
    }
}

impl ShareStats {
    /// The time for which its caps held something that waited, up to `now` on the elevator's own
    /// clock ([`Elevator::clock`](crate::Elevator::clock)).
    pub fn capped(&self, now: Instant) -> Nanos {
        let open = self.hold.map(|(since, until)| until.min(now).saturating_since(since));
        self.capped + open.unwrap_or_default()
    }

    /// From now on its caps hold something until then; none where they hold nothing.
    #[inline]
    pub(crate) fn capped_until(&mut self, now: Instant, until: Option<Instant>) {
        if self.hold.is_none() && until.is_none() {
            return;
        }
        self.capped = self.capped(now);
        self.hold = until.map(|until| (now, until));
    }
}

/// What a group has outstanding, without the groups below it, and what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DemandStats {
    /// The time of its requests from their arrival to their completion, summed over requests, of
    /// those that are outstanding up to now: in a span it grows by their mean number times the
    /// span.
    pub outstanding: Nanos,
    /// How many requests it has to keep outstanding for its weight to hold, by its part of the
    /// depth among the groups that ask too; none while it asks for nothing.
    pub needs: Option<u32>,
}
