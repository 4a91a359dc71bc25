//! What CFQ decides, a file for each mechanism.

#[path = "../rig/mod.rs"]
mod rig;

mod membership;
mod order;
mod tunables;
