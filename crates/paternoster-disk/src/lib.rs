//! The live engine: one disk, its scheduler, and the thread that owns both.
//!
//! ```text
//!   front (connections)                        the owner's thread
//!     │ Command            ┌──────────────────────────────────────────────────────┐
//!     └──────────────────▶ │ engine: command ─▶ bios ─▶ Elevator ─▶ Transfer ──┐  │
//!     ◀─────────────────── │         outcome ◀─ pieces ◀─ completion ◀───────┐ │  │
//!       Outcome            │                                                 │ ▼  │
//!                          │                        backend: file, memory, modelled│
//!                          │ ring: everything that waits, waits here               │
//!                          └──────────────────────────────────────────────────────┘
//! ```
//!
//! [`Engine`] decides, and is as sans-IO as the core: it takes commands and gives [`Transfer`]s,
//! takes results and gives [`Outcome`]s; the caller passes the time. A [`Backend`] carries
//! transfers out. [`Owner`] is the loop of the one thread that holds them, the [`Ring`] and the
//! front, so that nothing crosses a thread on the way of a request.

mod backend;
mod clock;
mod engine;
mod owner;
mod ring;
mod spare;
mod token;
mod waiting;

pub use backend::{
    Backend, Cache, CacheChoice, Capabilities, Damage, Extent, FileBackend, FileOptions,
    MemoryBackend, Model, ModelledBackend, ModelledStats, Rotational, TransferDone, device_size,
    is_in_memory, is_rotational,
};
pub use clock::MonotonicClock;
pub use engine::{
    Command, CommandOp, DiskOp, Engine, Fault, FaultyPiece, InDevice, Outcome, Parts, Payload,
    SyncRange, SyncStats, Transfer, TransferId, Transferred,
};
pub use owner::{Front, Owner, Waker};
pub use ring::{Buffers, Completion, Fd, IoEngine, Output, Ring};
pub use token::{FrontToken, Token};
pub use waiting::{LookStats, WaitStats};

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
