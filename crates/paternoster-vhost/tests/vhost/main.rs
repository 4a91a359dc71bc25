//! vhost-user-blk without I/O: what a driver and a front-end write, and what comes of it.

mod attacks;
mod driver;
mod fuzz_targets;
mod inflight;
mod memory;
mod model;
mod peer;
mod requests;
mod ring;
mod seeds;
mod session;
