//! Scenes in virtual time: what a scheduler makes of tenants that always ask for more, by
//! throughput, by shares and by the latency of one who asks for little.
//!
//! ```text
//!   Scene ──▶ tenants.rs ──▶ ┌────────────┐
//!                            │ Simulation │ ──▶ Outcome, and what was seen of the scheduler
//!   Scene ──▶ Model    ◀───▶ └────────────┘
//! ```
//!
//! Its own scenes are the evidence for the depth that `wfq` learns: `cargo xtask bench depth` runs
//! all of them under several schedulers and seeds. Each run drives the same core as the server.

mod outcome;
mod run;
mod scenes;
mod settling;
mod tenants;

pub use outcome::{Prices, Sample, Watched};
pub use run::{ClosedLoopError, Owner, Virtual};
pub use scenes::{Entry, Set, scenes};
pub use settling::Settling;
pub use tenants::Turnaround;
