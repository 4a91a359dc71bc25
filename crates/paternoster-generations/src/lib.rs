//! The generations of plugging side by side: the ways of a bio from the thread that submits it to
//! the driver of its device, from Linux 2.6.0 to this project's.
//!
//! ```text
//!   load: submitters ─▶ a Way ─▶ elevator ─▶ null device ─▶ completions ─▶ submitters
//!
//!   direct           –                                    no plug, no lock: the floor
//!   global           one list and lock for the machine    Linux 2.6.0 to 2.6.3
//!   percpu           a list and lock a processor          a patch of March 2004
//!   perdev           a bit under the device's lock        to 2.6.38
//!   plug+lock        a plug of the task, a lock a device  since 2.6.39
//!   plug+lock-batch  the same, dispatching in batches     posted in 2025
//!   plug+rings       a plug of the task, rings, an owner  this project
//!   off+lock, off+rings                                   the last two hand-overs without a plug
//! ```
//!
//! They differ in how long bios are held back, in their locks, and in the thread that runs a
//! device; bios, elevator, device, completions and load are the same. All locks are of one kind,
//! which counts ([`Lock`](paternoster_crossing::lock::Lock)); clippy refuses any other here.
//!
//! The older generations follow descriptions of what they did. Their locks put a thread that waits
//! to sleep, or have it keep its processor as in Linux ([`Load::spins`]); a kernel does not take
//! the processor from who holds one, which threads of a program cannot have. What they did besides
//! (interrupts, the page cache, a pool of requests that runs out) is left out.

mod clock;
mod completions;
mod direct;
mod global;
pub mod legacy;
mod load;
mod locked;
mod null_device;
mod percpu;
mod perdev;
mod plug_lists;
mod queue;
mod rings;
mod token;
mod variant;
mod way;

pub use completions::Completions;
pub use direct::Direct;
pub use global::Global;
pub use load::{Figures, Load, Until};
pub use locked::{BATCH_DISPATCH, Locked};
pub use null_device::Scheduler;
pub use percpu::PerCpu;
pub use perdev::PerDevice;
pub use rings::Rings;
pub use variant::{NoVariant, Variant};
pub use way::{Batches, Counts, Setup, Then, Way};

/// The example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
