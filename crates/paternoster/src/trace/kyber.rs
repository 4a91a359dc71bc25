//! What Kyber decides.

use super::declare::{events, reasons};

events! {
    /// An event of Kyber.
    pub enum KyberEvent;

    /// A percentile of a domain's latencies was computed (`kyber_latency`).
    Latency => "latency" {
        /// The domain.
        domain: Domain => "dom",
        /// Of which latencies.
        kind: LatencyKind => "type",
        /// The percentile: 90 or 99.
        percent: u32 => "pct",
        /// In which quarter of the domain's target it lies, 1 to 8: the 4th ends at the target, and
        /// the 8th has all that is longer.
        quarters: u32 => "bucket",
        /// How many latencies it was computed of.
        samples: u32 => "samples",
    } says {
        quarters >= 8 => "{domain}: {percent} % of {samples} were {kind} for longer than 7/4 of \
                          the target",
        true => "{domain}: {percent} % of {samples} were {kind} for at most {quarters}/4 of the \
                 target",
    };
    /// The depth of a domain has changed (`kyber_adjust`).
    DepthChanged => "depth" {
        /// The domain.
        domain: Domain => "dom",
        /// How many of its requests may be in flight.
        depth: u32 => "v",
    } says "{domain}: {depth} may be in the device";
    /// Requests of a domain wait, and it has no token for one (`kyber_throttled`).
    Throttled {
        /// The domain.
        domain: Domain,
    } says "{domain} wait: as many are in the device as may be";
}

reasons! {
    /// A domain of Kyber: the requests that share one depth.
    #[derive(PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Domain;
    Read = "READ", "reads";
    /// Synchronous or not.
    Write = "WRITE", "writes";
    Discard = "DISCARD", "discards";
    Other = "OTHER", "others";
}

reasons! {
    /// Which time of a request Kyber measures.
    pub enum LatencyKind;
    /// From its arrival to its completion.
    Total = "total", "under way";
    /// From its dispatch to its completion.
    Device = "I/O", "in the device";
}
