//! What is measured with other programs beside the server: `cargo xtask bench` has a command for
//! each. The programs of `benches/` measure with the project's own crates.

pub mod idle;
mod killed_on_drop;
pub mod nbd;
mod not_run;
pub mod throttled;

pub use killed_on_drop::KilledOnDrop;
pub use not_run::NotRun;
