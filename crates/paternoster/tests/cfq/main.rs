//! What CFQ decides, a file for each mechanism.

#[path = "../rig/mod.rs"]
mod rig;

mod groups;
mod idling;
mod membership;
mod order;
mod slices;
mod tunables;
mod wait_busy;
mod weights;
