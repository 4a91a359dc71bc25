//! Attacks: what clients of one tenant can do to those of another, and to the server.
//!
//! ```text
//!   before    victim alone: 64 random reads outstanding          rate, the owner's time a read
//!   during    the same, and the attackers at it, niced           rate, kept at least a third
//!   then      a newcomer reads, `ctl stat` answers, SIGTERM      memory's peak, time to the exit
//! ```
//!
//! Every attack has a server of its own, and one runs at a time. Memory, the newcomer, `ctl` and
//! the exit are asserted always; the rate where it is the server that decides it (`verdict.rs`).
//! Each attack prints what it measured; `cargo xtask test` runs them as a step of its own:
//! `cargo test -p paternoster-cli --test attacks -- --nocapture`. `cargo xtask bench live` asks for
//! 90 % of the rate.

mod arena;
mod client;
mod crowds;
mod flood;
mod held;
mod mixes;
mod stalled;
mod verdict;
mod work;

#[allow(dead_code, reason = "the end-to-end tests use the rest")]
#[path = "../end_to_end/support.rs"]
mod support;
