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
pub mod closed_loop;
pub mod compare;
pub mod dbench;
pub mod fio;
mod group_path;
pub mod host;
mod journal;
pub mod replay;
pub mod report;
pub mod result;
mod scenario;
pub mod sim;
pub mod study;
pub mod thinkers;
pub mod threads;

pub use journal::JournalPlace;
pub use scenario::{
    Change, Changed, DecideError, Decided, DeviceModel, Group, Log, Op, Outcome, Plan, Request,
    RunError, Scenario, ScenarioError, Task, decide, decide_all, run, told_with_place,
};

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The example of what it says on policies of one's own.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/own-policies.md")]
struct OwnPolicies;
