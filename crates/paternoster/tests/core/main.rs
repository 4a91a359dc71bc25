//! What the core decides: behaviour tests of each scheduler and mechanism, and random runs of all.
//!
//! They are one program, as each program of tests compiles the schedulers anew. `cargo test --test
//! core cfq` runs those of one module.

mod accounts;
mod bfq;
mod cfq;
mod clock;
mod doors;
mod drain;
mod driver;
mod dump;
mod elevator;
mod kyber;
mod lines;
mod merging;
mod mq_deadline;
mod outside;
mod plug;
mod poll;
mod rig;
mod shares;
mod stats;
mod swarm;
mod tunables;
mod wfq;
