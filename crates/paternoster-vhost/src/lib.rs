//! vhost-user-blk as state machines: what a virtual machine's front-end says, and what its guest
//! writes into memory that we share. It maps that memory; no other I/O, no thread, no clock.
//!
//! ```text
//!   front-end (QEMU, cloud-hypervisor, …)          guest's driver
//!        │ messages, descriptors                        │ chains in a ring
//!        ▼                                              ▼
//!   Session ──Order──▶ the device ──▶ Memory, SplitRing ──▶ Chain ──▶ Request
//!        ▲                │                  ▲                           │
//!        └────Answer──────┘                  └── push_used, publish ◀────┘ finish
//! ```
//!
//! - Neither side is trusted. A front-end gives us memory that it may take back; a guest writes
//!   rings that it may change while we read them. Every address is checked where it is used, every
//!   descriptor is read once, and what is wrong with one request ends that request.
//! - What is spoken: the split ring with event index and indirect descriptors, several rings, a
//!   configuration by messages, regions one by one. Not: packed rings, an IOMMU, migration's log.
//!
//! The texts: *Virtual I/O Device (VIRTIO) 1.2*, chapters 2.7 and 5.2, and QEMU's *Vhost-user
//! Protocol*.

pub mod blk;
mod chain;
mod inflight;
#[cfg(test)]
mod killed;
mod memory;
pub mod proto;
mod ring;
mod session;
mod sigbus;

pub use chain::{Buffer, Chain, ChainError};
pub use inflight::{Inflight, InflightError, InvalidRegion, RingInflight};
pub use memory::{Memory, Outside, Region, RegionError, Sealed};
pub use ring::{Broken, RingError, SplitRing, Taken};
pub use session::{Answer, Offer, Order, Output, Progress, Refusal, Session, SessionError, Start};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
