//! The way of batches from many submitting threads to the one that owns their device.
//!
//! ```text
//!   submitter ─ outbox ═══════ ring ════════╗
//!   submitter ─ outbox ═══════ ring ═══════▶╬══▶ inbox ─ owner
//!   submitter ─ outbox ═══════ ring ════════╝      │
//!        │                                         │ goes to sleep, wakes up
//!        └───── looks, and rings once ──▶ bell ◀───┘
//! ```
//!
//! - **No lock between submitters.** A ring has one producer and one consumer. What submitters
//!   share is the owner's bell; while the owner is awake they only read it.
//! - **Order.** What one submitter sends arrives in that order. Between submitters there is none.
//! - **No lost wake-up, and at most one** each time that the owner says that it sleeps; it may
//!   come late, when the owner is awake again. The owner says that it sleeps and then looks at all
//!   rings once more; a submitter sends and then looks whether the owner sleeps. A fence on each
//!   side makes sure that at least one of them sees the other. Of several submitters that see it
//!   sleep one wakes it.
//! - **Nobody waits.** A full ring gives the batch back, to be kept by the submitter, in order. One
//!   whose outstanding I/O is bounded never sees a full ring: it asks for one as long as its bound.
//!
//! A [`Door`] lets new submitters in while the owner runs. That takes a lock, once a submitter, of
//! a kind that counts ([`lock`]), so that tests can tell that nothing else takes one.
//!
//! What threads share beside that, such as an account under a lock, is not sent: a [`Notice`] tells
//! a thread that it has changed.
//!
//! All atomics and locks come through one module, which the feature `model` points at a model
//! checker: what is checked is what is shipped. The ring of `rtrb` alone is replaced there by a
//! specified one (`tests/model.rs` says what that leaves out).

mod bell;
mod inbox;
pub mod lock;
mod notice;
mod ring;
mod sync;

pub use bell::Wake;
pub use inbox::{Door, Inbox, Outbox, Sent, SubmitterId};
pub use notice::Notice;

/// The example of the crate's README.
#[cfg(all(doctest, not(feature = "model")))]
#[doc = include_str!("../README.md")]
struct Readme;
