//! What wfq decides.

use super::ShareOf;
use super::declare::{Value, events, reasons};
use crate::arena::GroupId;
use crate::time::Instant;
use crate::wfq::Vtime;

events! {
    /// An event of wfq.
    pub enum WfqEvent;

    /// One that had nothing waiting, or only what was held back, has something now. There is one of
    /// these for each node from the I/O context up.
    Busy => "fair_busy" {
        /// Who.
        node: ShareOf => "node",
        /// Its tag from now on.
        start: Vtime => "start",
        /// The virtual time among its siblings.
        v: Vtime => "v",
        /// How far its tag is ahead of that, in thousandths of an op.
        lag: u64,
    };
    /// A request was chosen, and is dispatched next.
    Chosen => "fair_dispatch" {
        /// The request.
        rq: u64 => "rq" = Value::Request(rq),
        /// The tag by which it was chosen below the root, before it is advanced.
        start: Vtime => "start",
        /// What it is charged, in units of which 2²⁰ are one op; 0 if it was charged before.
        charge: u64 => "charge",
        /// Why it was chosen.
        why: FairWhy => "why",
    };
    /// Some of what waits below a node is held back from now on. By a cap: of the group, or for its
    /// own requests that of a group above it too.
    Held {
        /// Who.
        node: ShareOf,
        /// Why.
        why: HoldReason,
        /// When the cap lets it go on, if it stays as it is; none where it is no cap.
        until: Option<Instant>,
    };
    /// No cap holds back anything that waits below a node any more.
    Released {
        /// Who.
        node: ShareOf,
    };
    /// Another depth is tried from the next window on.
    DepthTrial {
        /// The depth that holds.
        from: u32,
        /// The depth that is tried.
        to: u32,
        /// Which trial.
        kind: TrialKind,
    };
    /// A trial of another depth is over.
    DepthVerdict {
        /// The depth that held.
        from: u32,
        /// The depth that was tried.
        to: u32,
        /// By how much it was faster, in parts per million.
        mean_ppm: i64,
        /// Pairs of windows that were compared.
        pairs: u32,
        /// Whether it holds from now on.
        verdict: TrialVerdict,
    };
    /// The device has become faster or slower; a trial that ran is dropped.
    DepthJolt {
        /// Ops a second now.
        speed: u64,
        /// Ops a second before.
        was: u64,
    };
    /// A measurement of the device's speed is over.
    WindowClosed {
        /// Requests that completed.
        completions: u32,
        /// Ops a second.
        speed: u64,
        /// Whether it says something.
        why: WindowVerdict,
    };
    /// A price was wrong. In bytes that cost as much as one op, or in percent of a read.
    PriceMoved {
        /// The price of what.
        which: PriceOf,
        /// What it was.
        from: u64,
        /// What it is.
        to: u64,
    } says {
        which == PriceOf::Bytes => "{to} bytes cost as much as an op; {from} did before",
        which == PriceOf::Writes => "a write costs {to} % of a read; {from} % before",
        which == PriceOf::Fua => "a FUA write costs {to} % of a read; {from} % before",
    };
    /// A period of a group with a latency target is over, and others may have more or fewer
    /// requests in the device.
    TargetJudged {
        /// The group.
        group: GroupId,
        /// Requests of the period that took longer than the target,
        late: u32,
        /// of so many.
        requests: u32,
        /// How it was judged.
        verdict: TargetVerdict,
        /// How many requests groups with a later target or none may have in the device from now on;
        /// none where they are not held.
        held: Option<u32>,
    };
}

reasons! {
    /// Why wfq chose a request.
    #[non_exhaustive]
    pub enum FairWhy;
    Weight = "weight", "its tag is the least that may be served, or it is of a run (`run_us`)";
    Reserved = "other", "its group, or one above it, is behind its reservation";
}

reasons! {
    /// Why wfq holds back what waits below a node.
    #[non_exhaustive]
    pub enum HoldReason;
    Cap, "a cap, in one direction at least";
    Kept, "the room is kept for a tenant that has much outstanding, and nothing waiting for now";
    Target, "the room is held free, as another group misses its latency target";
}

reasons! {
    /// What has become of a latency target of wfq in one period.
    #[non_exhaustive]
    pub enum TargetVerdict;
    Missed, "it was missed: others have fewer requests in the device from now on";
    Reached, "it was reached with room to spare: others have more";
    Idle, "the group asks for nothing: nobody is held for it";
    Unmet, "it cannot be met however few others have: they are not held for some seconds";
}

reasons! {
    /// How wfq tries another depth.
    #[non_exhaustive]
    pub enum TrialKind;
    Up, "more requests in the device";
    Down, "fewer";
    Soft, "fewer than the clients have in it, where they do not fill the depth";
}

reasons! {
    /// What a trial of another depth has come to.
    #[non_exhaustive]
    pub enum TrialVerdict;
    Accepted, "the other depth holds";
    Rejected, "the depth stays as it is";
}

reasons! {
    /// What has a price of its own under wfq.
    #[non_exhaustive]
    pub enum PriceOf;
    Bytes, "bytes: how many cost as much as one op";
    Writes, "writes, trims and zeroes, in percent of a read of the same size";
    Fua, "writes with FUA, likewise";
}

reasons! {
    /// Whether a measurement of the device's speed says something.
    #[non_exhaustive]
    pub enum WindowVerdict;
    Valid, "it does";
    Starved, "for more than a twentieth of it nothing waited, and the device had room";
    Bursty, "it is full of gaps between completions";
}
