//! Kyber's attributes under `queue/iosched/`.

use crate::time::Nanos;
use crate::trace::Domain;
use crate::tunable::{span, tunables};

/// The target of discards, which nobody can set.
const DISCARD_TARGET: Nanos = Nanos::from_millis(5000);

tunables! {
    pub(super) struct Tunables of super::NAME;
    read_lat_nsec: "ns", 2_000_000, 0, i64::MAX,
        "Latency target of reads, from their arrival on.";
    write_lat_nsec: "ns", 10_000_000, 0, i64::MAX,
        "Latency target of writes, from their arrival on.";
}

impl Tunables {
    /// Returns the target of a domain; none if its latencies are not measured.
    #[inline]
    pub(super) fn target(&self, domain: Domain) -> Option<Nanos> {
        match domain {
            Domain::Read => Some(span(self.read_lat_nsec)),
            Domain::Write => Some(span(self.write_lat_nsec)),
            Domain::Discard => Some(DISCARD_TARGET),
            Domain::Other => None,
        }
    }
}
