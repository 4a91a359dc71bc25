//! The block server: tenants, connections, control plane.
//!
//! ```text
//!   clients ──▶ acceptor: option phase ──▶ owner of disk0 │ owner of disk1 │ …
//!                                            connections  │                │     a thread each
//!                                            engine       │                │
//!                                            back end     │                │
//!   ctl     ──▶ control plane ──asks─────────▶            │                │
//! ```
//!
//! A tenant is a group with a weight, maybe below others; its exports' connections are I/O contexts
//! of it. Everything of one disk is decided by one thread in one order.

mod acceptor;
mod acquire;
mod admission;
mod announce;
mod borders;
mod catalogue;
mod clients;
mod common;
pub mod config;
mod connections;
mod control;
pub mod ctl;
mod depth;
mod export_table;
mod following;
mod gate;
mod handover;
mod holder;
mod inherited;
mod journal;
pub mod log;
mod messages;
mod metrics;
mod negotiation;
mod new_access;
mod owners;
mod page;
mod passed;
mod peer;
mod recording;
mod reload;
mod rights;
mod rings;
mod sandbox;
mod serve;
mod server;
mod service_manager;
mod signals;
pub mod sockets;
pub mod stat;
mod threads;
mod tls;
mod tuned;
mod uri;
mod vhost;
mod watched;

pub use acquire::obstacles;
pub use control::ControlHandle;
pub use metrics::families as metric_families;
pub use page::Picture;
pub use serve::{Start, run};
pub use server::Server;

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
