//! The live engine: one disk, whole or in volumes, its scheduler, and the thread that owns both.
//!
//! ```text
//!   front (connections)                        the owner's thread
//!     │ Command            ┌──────────────────────────────────────────────────────┐
//!     └──────────────────▶ │ engine: command ─▶ bios ─▶ Elevator ─▶ Transfer ──┐  │
//!     ◀─────────────────── │         outcome ◀─ pieces ◀─ completion ◀───────┐ │  │
//!       Outcome            │                                                 │ ▼  │
//!                          │        a back end a volume: file, memory, modelled … │
//!                          │ ring: everything that waits, waits here              │
//!                          └──────────────────────────────────────────────────────┘
//! ```
//!
//! [`Engine`] decides, and is as sans-IO as the core: it takes commands and gives [`Transfer`]s,
//! takes results and gives [`Outcome`]s; the caller passes the time. A [`Backend`] carries the
//! transfers of a volume out. [`Owner`] is the loop of the one thread that holds them, the [`Ring`]
//! and the front, so that nothing crosses a thread on the way of a request.

mod backend;
mod clock;
mod cpu_latency;
mod engine;
mod guest;
mod owner;
mod ring;
mod spare;
mod token;
mod waiting;
mod waker;

pub use backend::{
    AfterReconnect, Backend, BusyDepth, Cache, CacheChoice, Capabilities, Damage, DialError,
    Extent, Far, FarStats, FileBackend, FileOptions, Granules, MemoryBackend, ModelledBackend,
    ModelledDevice, ModelledStats, NbdBackend, NbdDialer, NbdOptions, NbdPlace, NbdTls, NbdUri,
    NbdUriError, Notice, QuiesceError, Quiesced, Rotational, ServersTime, ServiceTimes,
    TransferDone, Unusable, ask_far, block_of, device_size, devices_of, is_in_memory,
    is_rotational, program,
};
pub use clock::MonotonicClock;
pub use cpu_latency::CpuLatency;
pub use engine::{
    Command, CommandOp, DiskOp, Engine, Fault, FaultyPiece, FrontTag, InDevice, NoGrowth, NoVolume,
    Outcome, Part, Parts, Payload, SyncRange, SyncStats, Transfer, TransferId, Transferred,
    VolumeId, VolumePlace, VolumeStats,
};
pub use guest::{GuestBuffers, GuestMemory, GuestReads, GuestSlice};
pub use owner::{Front, GrowError, Owner};
pub use ring::{Buffers, Completion, Fd, IoEngine, LastingId, Output, Ring};
pub use token::{BackendToken, FrontToken, Token};
pub use waiting::{LookStats, WaitStats};
pub use waker::Waker;

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
