//! What a scheduler decides, a JSON object a line, in the words of `oracle/FORMAT.md`.
//!
//! ```text
//!   Event of the core ──▶ line  ──▶ {"t":0,"ev":"M","rq":"1.1","into":"1.0","kind":"back"}
//!                           ▲
//!                         Names     what requests, groups and tasks are called: a scenario numbers
//!                           ▲       them, jobs have names, a server has tenants and connections
//!                       Decisions   … where requests have no names of their own
//! ```
//!
//! [`blktrace`] is another form of a trace, for programs of others; [`sidecar`] is what stands
//! beside it in a recording of the server.

mod about;
pub mod blktrace;
mod completions;
mod decisions;
mod line;
mod names;
pub mod sidecar;

pub use completions::Completions;
pub use decisions::Decisions;
pub use line::{completed, dropped, exited, line};
pub use names::{Names, Parties};
