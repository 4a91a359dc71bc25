//! The laboratory: the schedulers of [`paternoster`] over device models in virtual time.
//!
//! ```text
//!   NAME.scenario.json ──▶ scenario ──▶ run ◀──▶ Elevator<AnyScheduler>
//!                                        ▲ ▼
//!                                       device       run ──▶ log ──▶ NAME.log.jsonl
//! ```
//!
//! A scenario lists every request of every task; [`decide()`] runs it and gives the log of what the
//! scheduler decided, to be compared with what Linux's decided on the same scenario. The format
//! of both is `oracle/FORMAT.md`.
//!
//! [`fio`] reads job files of fio and makes the I/Os of their jobs; [`result`] tells what was
//! measured of them, in fio's JSON or as a table; [`report`] shows all of it on a page.

pub mod cache;
pub mod dbench;
mod decide;
mod device;
mod fields;
pub mod fio;
pub mod host;
mod log;
mod measured;
pub mod model;
mod names;
pub mod report;
pub mod result;
mod run;
mod scenario;
mod scheduler_line;
pub mod sim;
pub mod study;
pub mod threads;

pub use decide::{DecideError, Decided, Outcome, Plan, decide, decide_all};
pub use log::Log;
pub use run::{RunError, run, run_with};
pub use scenario::{DeviceModel, Group, Op, Request, Scenario, ScenarioError, Task};

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The example of what it says on policies of one's own.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/own-policies.md")]
struct OwnPolicies;
