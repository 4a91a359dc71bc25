//! What a group may have at most, and has at least, whatever its weight.

use std::num::NonZeroU64;

use crate::time::Nanos;

/// Caps, reservations and the latency target of a group, with all groups below it. They hold on the
/// group's device; a scheduler without them ignores them
/// ([`has_group_limits`](crate::SchedulerKind::has_group_limits)).
///
/// The caps have the names of `io.max` in Linux; there they count bios, here requests, which may
/// have merged of several. A cap wins over a reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Reads a second, at most.
    pub riops: Option<NonZeroU64>,
    /// Writes, trims and zeroings a second, at most.
    pub wiops: Option<NonZeroU64>,
    /// Bytes read a second, at most.
    pub rbps: Option<NonZeroU64>,
    /// Bytes written a second, at most. A request that moves no bytes, a trim or a zeroing, counts
    /// as 512.
    pub wbps: Option<NonZeroU64>,
    /// Requests a second, at most, whatever they do.
    pub iops: Option<NonZeroU64>,
    /// Bytes read and written a second, at most; counted as under `rbps` and `wbps`.
    pub bps: Option<NonZeroU64>,
    /// Ops a second that it gets before others get theirs by weight, in the scheduler's price of a
    /// request: a large one is several ops.
    pub min_iops: Option<NonZeroU64>,
    /// Bytes a second that it gets before others get theirs by weight.
    pub min_bps: Option<NonZeroU64>,
    /// The time, from arrival to completion, within which nine of ten of its requests shall be
    /// served. Where they are not, groups with a later one or none have fewer requests in the
    /// device at once, down to a quarter of its depth. It gets no more than its weight all the
    /// same.
    pub latency_target: Option<Nanos>,
}

impl GroupLimits {
    /// Nothing is limited.
    pub const NONE: Self = Self {
        riops: None,
        wiops: None,
        rbps: None,
        wbps: None,
        iops: None,
        bps: None,
        min_iops: None,
        min_bps: None,
        latency_target: None,
    };

    /// Returns whether it has a cap.
    pub fn has_caps(&self) -> bool {
        let caps = [self.riops, self.wiops, self.rbps, self.wbps, self.iops, self.bps];
        caps.iter().any(Option::is_some)
    }

    /// Returns whether it has nothing else than caps.
    pub fn are_caps(&self) -> bool {
        let Self { min_iops, min_bps, latency_target, .. } = self;
        min_iops.is_none() && min_bps.is_none() && latency_target.is_none()
    }

    /// Returns whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}
