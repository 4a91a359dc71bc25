//! What real clients get of disks that they share, by weights and limits. `cargo xtask bench live`
//! judges these to a few percent, on a quiet machine; else nobody may starve, and nothing is lost.

mod doors;
mod far;
mod limits;
mod nested;
mod reweigh;
mod support;
mod weights;
