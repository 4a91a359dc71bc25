//! What the elevator does, and what every scheduler may say.

use super::declare::{FieldValue as _, Value, events, reasons};
use crate::arena::{GroupId, IocId, RequestId};
use crate::plug::FlushReason;
use crate::request::{Op, Sector, SectorCount};
use crate::time::Nanos;

events! {
    /// An event of the elevator, or one that every scheduler may emit.
    pub enum ElevatorEvent;

    /// A bio arrived. There is one of these for a bio, however often it is turned away.
    Queued => "Q" {
        /// Its name, `TASK.INDEX`.
        bio: u64 => "rq" = Value::Request(bio),
        /// The I/O context that submitted it.
        ioc: IocId,
        /// Its operation.
        op: Op,
        /// Its first sector.
        sector: Sector,
        /// Its length.
        sectors: SectorCount,
    };
    /// *Ours:* a submitter's plug was flushed (`block_unplug`): what it held of this device arrives
    /// now.
    Unplugged => "U" {
        /// How many requests enter; bios that merged in the plug are one.
        depth: u32 => "depth",
        /// Why it was flushed.
        reason: FlushReason => "why",
        /// How long the oldest chain of the plug had been in it.
        age: Nanos,
    };
    /// A bio became part of a queued request.
    Merged => "M" {
        /// Its name.
        bio: u64 => "rq" = Value::Request(bio),
        /// The name of the queued one: of the bio that it was first made of.
        into: u64 => "into" = Value::Request(into),
        /// At which end of the request.
        kind: MergeKind => "kind",
        /// Which lookup found the request.
        site: MergeSite,
        /// The I/O context that submitted it.
        ioc: IocId,
        /// Its operation.
        op: Op,
        /// Its first sector.
        sector: Sector,
        /// Its length.
        sectors: SectorCount,
    };
    /// A request absorbed the one behind it, which is gone.
    Absorbed => "M" {
        /// The request that was absorbed.
        absorbed: u64 => "rq" = Value::Request(absorbed),
        /// The request that absorbed it.
        into: u64 => "into" = Value::Request(into),
        /// Which lookup found the request. Lines say that it merged at the back.
        site: MergeSite => "kind" = MergeKind::Back.value(),
    };
    /// A request was dispatched to the device.
    Dispatched => "D" {
        /// Its name.
        rq: u64 => "rq" = Value::Request(rq),
        /// Its key, which names it alone for as long as it exists.
        key: RequestId,
        /// Its group.
        group: GroupId,
        /// The I/O context that submitted its first bio.
        ioc: IocId,
        /// Its operation.
        op: Op,
        /// Its first sector.
        sector: Sector,
        /// Its length.
        sectors: SectorCount,
    };
    /// *Ours:* the device could not take a dispatched request; it was requeued.
    Requeued => "R" {
        /// Its name.
        rq: u64 => "rq" = Value::Request(rq),
        /// Its key, which names it alone for as long as it exists.
        key: RequestId,
        /// Its group.
        group: GroupId,
    };
    /// A request completed. A bio that was merged has a line of its own.
    Completed => "C" {
        /// Its name.
        rq: u64 => "rq" = Value::Request(rq),
        /// Its key, which names it alone for as long as it exists.
        key: RequestId,
        /// Its group.
        group: GroupId,
        /// The I/O context that submitted its first bio.
        ioc: IocId,
        /// Its operation.
        op: Op,
        /// Its first sector.
        sector: Sector,
        /// Its length.
        sectors: SectorCount,
    };
    /// A group has a request that waits, from now on.
    GroupWaits {
        /// The group.
        group: GroupId,
    };
    /// A group has no request that waits any more.
    GroupWaitsNoMore {
        /// The group.
        group: GroupId,
    };
    /// Another scheduler is there from now on, and the events of the one before are over.
    SchedulerSwitched;
    /// Requests wait, and the scheduler dispatches none.
    Waiting {
        /// Why.
        why: WaitReason,
    } says {
        // That is no decision.
        why == WaitReason::DeviceFull => "",
        true => "requests wait, none is dispatched: {why}",
    };
    /// All waiting requests were taken out of the scheduler (`forced_dispatch`).
    Drained {
        /// How many there were.
        requests: u32,
    } says "all {requests} requests that wait are taken out";
}

reasons! {
    /// Which lookup found the request of a merge.
    #[non_exhaustive]
    pub enum MergeSite;
    Cache, "the request of the last merge";
    Hash, "the merge hash";
    Tree, "the scheduler's sort list";
    Scan, "a scan of the newest requests of a list";
    Insert, "the lookup for a whole request as it is inserted";
    Neighbour, "the look at the neighbour that a grown request touches";
    Plug, "the submitter's plug, before the bios arrived";
}

reasons! {
    /// At which end of a request something merged.
    pub enum MergeKind;
    Back = "back", "behind it";
    Front = "front", "before it";
}

reasons! {
    /// Why a scheduler dispatches nothing though requests wait.
    #[non_exhaustive]
    pub enum WaitReason;
    /// Its idle timer runs.
    IdleTimer, "the device idles for the active queue";
    /// The device will idle for it.
    InFlight, "requests of the active queue are in flight, and it is idled for";
    /// The active queue is all that its group has.
    GroupInFlight, "requests of the active group are in flight";
    /// The active queue has an idle window.
    GateAsyncDrains, "asynchronous requests have to complete first";
    /// The active queue is asynchronous.
    GateSyncDrains, "synchronous requests have to complete first";
    GateDepth, "the active queue has as many in flight as it may";
    /// Of BFQ.
    OneAtATime, "strict_guarantees has one dispatched at a time";
    /// Kyber has no token for any domain with requests that wait.
    NoToken, "as many of their kind are in the device as may be";
    /// Of wfq: the tenant has nothing waiting for a moment.
    Kept, "the room is kept for another tenant";
    DeviceFull, "the device has as many requests in flight as its depth allows";
    /// Of wfq: the next one would be of a group that has as many in the device as it may.
    Target, "another group misses its latency target";
    Capped, "caps of groups hold all that waits";
}
