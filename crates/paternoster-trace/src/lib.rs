//! What a scheduler decides, a JSON object a line, in the words of `oracle/FORMAT.md`.
//!
//! ```text
//!   Event of the core ──▶ line  ──▶ {"t":0,"ev":"M","rq":"1.1","into":"1.0","kind":"back"}
//!                           ▲
//!                         Names     what requests, groups and tasks are called: a scenario numbers
//!                                   them, jobs have names, a server has tenants and connections
//! ```

mod completions;
mod line;
mod names;
mod scheduler_line;

pub use completions::Completions;
pub use line::{completed, exited, line};
pub use names::Names;
