//! Scenes: some tenants share a device under a scheduler. What does each of them get?
//!
//! ```text
//!   FILE.toml ──▶ Scene ──▶ World ──▶ Outcome ──▶ table
//!                           │
//!                           ├─ the laboratory: virtual time, a model of the device
//!                           └─ a server with real clients
//! ```
//!
//! A scene is data: a device, tenants with weights and habits, and for how long they are counted.
//! Who plays it is a [`World`], and an [`Outcome`] says the same whoever played it.

mod from_toml;
mod outcome;
mod scene;
mod scheduler;
pub mod statistics;
mod table;

pub use from_toml::{Mistake, Mistakes, SceneFile};
pub use outcome::{Counting, Outcome, TenantOutcome};
pub use scene::{Ask, Scene, Tenant, Unfit};
pub use scheduler::{Scheduler, SchedulerError};
pub use table::{markdown_table, plain_table, table, table_text};

/// Whoever plays scenes.
pub trait World {
    /// Why a scene could not be played.
    type Error;

    /// Has the tenants of a scene share its device under that scheduler. The seed is that of all
    /// that is random.
    fn play(
        &mut self,
        scene: &Scene,
        scheduler: &Scheduler,
        seed: u64,
    ) -> Result<Outcome, Self::Error>;
}

/// The example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
