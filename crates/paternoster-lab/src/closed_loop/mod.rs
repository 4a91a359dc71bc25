//! Tenants that always ask for more, over devices whose times are random: what a scheduler makes of
//! it, by throughput, by shares and by the latency of one who asks for little.
//!
//! ```text
//!   scenes ──▶ clients ──▶ ┌────────┐ ──▶ device       run: one scene, scheduler, seed
//!                          │ Driver │                  outcome: what was measured
//!             scheduler ──▶└────────┘
//! ```
//!
//! It is the evidence for the depth that `wfq` learns: `cargo xtask bench depth` runs all scenes
//! under several schedulers and seeds. Each run drives the same core as the server does.

mod outcome;
mod run;
mod scenes;
mod scheduler;
mod settling;
mod tenants;

pub use outcome::{Outcome, Prices, Sample, TenantOutcome};
pub use run::{ClosedLoopError, Owner, run_closed_loop};
pub use scenes::{Scene, Set, scenes};
pub use scheduler::{Scheduler, SchedulerError};
pub use settling::Settling;
pub use tenants::{Clients, Tenant};
