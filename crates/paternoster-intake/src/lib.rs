//! Reads traces of block I/O that other programs have recorded.
//!
//! ```text
//!   file ──▶ Source ──▶ Format ──▶ one reader a format ──▶ Checks ──▶ Request, Request, …
//!            gz, zst    found, or                          order of    in order of arrival
//!            by content asked for                          times       └─▶ Findings: contexts,
//!                                                                          warnings
//! ```
//!
//! A trace is read as a stream: memory holds the requests that are outstanding, and the names of
//! the contexts. Formats with events (blktrace, blkparse, tracefs) tell of one request several
//! times: its arrival, dispatch and completion are put together to one [`Request`].

mod assembly;
mod blkparse;
mod blktrace;
mod checks;
mod columns;
mod companion;
mod convert;
mod error;
mod event;
mod findings;
mod fit;
mod format;
pub mod iolog;
mod lines;
mod request;
mod source;
mod survey;
mod trace;
mod vscsi;

pub use companion::Recorded;
pub use convert::{Converter, Target};
pub use error::{Error, Place};
pub use findings::{Findings, Warning};
pub use fit::Beyond;
pub use format::Format;
pub use paternoster_trace::sidecar::{Meta, Party};
pub use request::{ContextId, Replied, Request};
pub use trace::{Options, SIDECAR, Trace};
