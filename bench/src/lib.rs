//! Benches that start the server as a program, alone, under fio, or beside other servers: `cargo
//! xtask bench` has a command for each. Those in `benches/` run the project's crates in their own
//! process.

pub mod counters;
pub mod idle;
mod killed_on_drop;
pub mod nbd;
mod not_run;
pub mod record;
pub mod throttled;
pub mod tls;
pub mod used;

pub use killed_on_drop::KilledOnDrop;
pub use not_run::NotRun;
