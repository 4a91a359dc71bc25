//! What a server costs whose client is connected and asks for nothing more.
//!
//! The client is stopped (SIGSTOP) in the midst of its requests, so that ours has learned to look
//! for the next one, and has to give that up. `cargo xtask bench idle` measures a server without
//! clients.

use super::super::DISK_SIZE;
use super::super::fio::Client;
use super::super::load;
use super::costs::OwnCounters;
use super::{Bench, CONTENDERS, directory, one_by_one};
use crate::counters::Counters;
use anyhow::{Context, Result, bail};
use std::thread::sleep;
use std::time::Duration;

/// How long the client asks.
const ASKS: Duration = Duration::from_secs(1);
/// From then until it is quiet.
const SETTLES: Duration = Duration::from_millis(200);
/// How long it is measured.
const WINDOW: Duration = Duration::from_secs(2);
/// All of it for one server, about.
pub(super) const LENGTH: Duration = Duration::from_secs(4);
/// Fewer requests of ours are no load.
const LEAST_REQUESTS: u64 = 100;

/// Measures each server, and prints a line.
pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    println!("\nclient connected and stopped, {} s:", WINDOW.as_secs());
    for contender in CONTENDERS {
        let dir = directory()?;
        let server = bench.start(contender, dir.path())?;
        let before = OwnCounters::of(bench.program, &server)?;
        let client = Client::start(&server.uri, DISK_SIZE as u64, &one_by_one(load::KINDS[0], 60))?;
        sleep(ASKS);
        let frozen = client.freeze()?;
        let after = OwnCounters::of(bench.program, &server)?;
        let asked = before.zip(after).map(|(before, after)| after.requests - before.requests);
        if let Some(asked) = asked.filter(|asked| *asked < LEAST_REQUESTS) {
            bail!("{}: the client asked for {asked} only", contender.name());
        }
        sleep(SETTLES);
        let first = Counters::read(server.pid())?;
        sleep(WINDOW);
        let counted = Counters::read(server.pid())?
            .since(&first)
            .with_context(|| format!("{}, idle", contender.name()))?;
        // A server that sees the client break off may complain.
        drop(server);
        drop(frozen);
        println!(
            "{:<22} {:.0} us on a processor ({:.1} ticks of 10 ms), {:.0} wake-ups",
            contender.name(),
            counted.on_cpu_us,
            counted.on_cpu_us / 10_000.0,
            counted.sleeps,
        );
    }
    Ok(())
}
