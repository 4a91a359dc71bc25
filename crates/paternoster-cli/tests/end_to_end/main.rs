//! The binary as its users meet it: served disks, other people's clients, signals.
//!
//! Every server has its own folder, socket and port, and is killed where a test fails; every tool
//! is ended after a while. A tool that is missing is a failure that names its Debian package.

mod auto;
mod controller;
mod demo;
mod descriptor_store;
#[path = "../../../paternoster-disk/tests/disk/support/devices.rs"]
mod devices;
mod far;
mod full_disk;
mod fuse;
mod handover_peers;
mod interop;
mod iolog;
mod killed;
mod log;
mod machines;
mod memory;
mod metrics;
mod model;
mod page;
mod passed_sockets;
mod record;
mod reload;
mod restart;
mod sandbox;
mod schema;
mod service_manager;
mod settings;
mod shutdown;
mod signals;
mod startup;
mod stat;
mod support;
mod take_over;
mod tls_peers;
mod trace;
mod volumes;
mod why;
mod wire;
