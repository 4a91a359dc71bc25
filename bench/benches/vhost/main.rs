//! `cargo xtask bench vhost`: a virtual machine's disk by shared memory, beside
//! qemu-storage-daemon, and beside the same server's NBD.
//!
//! ```text
//!   servers.rs   how each is started: ours under none and wfq, and theirs
//!   attach.rs    how soon one of many can read, what each takes, and that idle ones cost nothing
//! ```
//!
//! All servers are up at once and idle but for the one that is measured. Rounds go through them
//! forwards and backwards by turns, and each figure is compared with another of the same round. The
//! machine has no processor: its driver is a thread here, which sleeps until it is called. The disk
//! is in memory (theirs: null-co, which reads zeroes) or a file in the page cache of both.

mod attach;
mod servers;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use comfy_table::Table;
use paternoster_bench::counters::Counters;
use paternoster_load::{Load, MachineLoad};
use paternoster_scene::statistics::Spread;
use paternoster_scene::{Tenant, markdown_table};

use self::servers::{Backing, Door, Server};

/// The options.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench vhost",
    about = "A machine's disk by shared memory, beside \
                                                     qemu-storage-daemon and beside NBD"
)]
struct Options {
    /// Our server
    #[arg(long, hide = true)]
    server: PathBuf,
    /// Rounds, each with every load and server
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds that one is measured under one load in a round
    #[arg(long, default_value_t = 1000)]
    millis: u64,
    /// Machines that attach to one server, one after the other
    #[arg(long, default_value_t = 500)]
    machines: usize,
    /// Only rows whose load, disk and server have this in them, such as "read 4K × 32, memory"; the
    /// machines of --machines do not attach then
    #[arg(long, default_value = "")]
    only: String,
    /// What cargo passes
    #[arg(long, hide = true)]
    bench: bool,
}

/// A load: bytes of a request, requests in flight, and the percentage that writes.
const LOADS: [(u32, u32, u32); 4] = [(4096, 1, 0), (4096, 32, 0), (4096, 32, 100), (65536, 16, 0)];

fn name_of((block, depth, write_percent): (u32, u32, u32)) -> String {
    let kind = if write_percent > 0 { "write" } else { "read" };
    format!("{kind} {}K × {depth}", block >> 10)
}

/// What came of a load.
#[derive(Clone, Copy, Debug)]
struct Figures {
    iops: f64,
    /// Microseconds of the server's processors a request.
    cpu_us: f64,
    kicks: f64,
    calls: f64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let dir = tempfile::tempdir().context("a directory")?;
    let mut table = markdown_table(
        [
            "load",
            "disk",
            "server",
            "IOPS",
            "CPU µs",
            "kicks",
            "calls",
            "× theirs",
            "CPU ×",
            "CPU × NBD",
        ],
        3,
    );
    for backing in [Backing::Memory, Backing::File] {
        let all = servers::start(dir.path(), &options.server, backing)?;
        for load in LOADS {
            let title =
                |server: &Server| format!("{}, {}, {}", name_of(load), backing.name(), server.name);
            let is_meant = |server: &&Server| title(server).contains(&options.only);
            let servers: Vec<_> = all.iter().filter(is_meant).collect();
            let rounds = measure(&servers, load, &options)?;
            for (place, server) in servers.iter().enumerate() {
                add_row(&mut table, load, backing, server, place, &servers, &rounds);
            }
        }
    }
    ensure!(!table.is_empty(), "--only {:?} is in no row", options.only);
    println!("{table}");
    // They are no row.
    if options.only.is_empty() {
        attach::measure(dir.path(), &options.server, options.machines)?;
    }
    Ok(())
}

/// The figures of each server, a round each.
fn measure(
    servers: &[&Server],
    load: (u32, u32, u32),
    options: &Options,
) -> Result<Vec<Vec<Figures>>> {
    let mut rounds = vec![Vec::new(); servers.len()];
    for round in 0..options.rounds {
        let mut order: Vec<_> = (0..servers.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let span = Duration::from_millis(options.millis);
            let figures = run(servers[place], load, span, round as u64);
            let named = || servers[place].name.clone();
            rounds[place].push(figures.with_context(named)?);
        }
    }
    Ok(rounds)
}

/// Puts a load on a server for that long, behind a quarter of it that does not count.
fn run(server: &Server, load: (u32, u32, u32), span: Duration, seed: u64) -> Result<Figures> {
    let (block, depth, write_percent) = load;
    let tenant = Tenant { block, write_percent, ..Tenant::reads(100, 1, depth) };
    let tenant = tenant.named("disk".to_owned());
    let pid = server.pid();
    let (replies, [kicks, calls], counted) = match server.door {
        Door::VhostUser => {
            let mut machine = MachineLoad::attach(&server.socket, &tenant, seed)?;
            machine.run_for(span / 4)?;
            let (before, said) = (Counters::read(pid)?, machine.kicks_and_calls());
            let measured = machine.run_for(span)?;
            let counted = Counters::read(pid)?.since(&before)?;
            let (kicks, calls) = machine.kicks_and_calls();
            (measured.replies, [kicks - said.0, calls - said.1], counted)
        }
        Door::Nbd => {
            let mut clients = Load::connect(&server.socket, &[tenant], seed)?;
            clients.start()?;
            clients.run_for(span / 4)?;
            clients.take_measured();
            let before = Counters::read(pid)?;
            clients.run_for(span)?;
            let counted = Counters::read(pid)?.since(&before)?;
            let replies = clients.take_measured()[0].replies;
            clients.finish()?;
            (replies, [0, 0], counted)
        }
    };
    #[allow(clippy::cast_precision_loss)] // some hundreds of thousands
    let [replies, kicks, calls] = [replies, kicks, calls].map(|count| count as f64);
    Ok(Figures {
        iops: replies / counted.seconds,
        cpu_us: counted.on_cpu_us / replies,
        kicks: kicks / replies,
        calls: calls / replies,
    })
}

/// Medians of a server, and its figures as multiples of others' in the same round.
fn add_row(
    table: &mut Table,
    load: (u32, u32, u32),
    backing: Backing,
    server: &Server,
    place: usize,
    servers: &[&Server],
    rounds: &[Vec<Figures>],
) {
    let of = |figure: fn(&Figures) -> f64| Spread::of(rounds[place].iter().map(figure));
    let median = |figure| of(figure).map_or(f64::NAN, |spread| spread.median);
    let beside = |other: Option<usize>, figure: fn(&Figures) -> f64| {
        let Some(other) = other.filter(|other| *other != place) else { return String::new() };
        let each = rounds[place].iter().zip(&rounds[other]);
        let spread = Spread::of(each.map(|(ours, theirs)| figure(ours) / figure(theirs)));
        spread.map_or_else(String::new, |Spread { median, least, most }| {
            format!("{median:.2} ({least:.2} to {most:.2})")
        })
    };
    let theirs = servers.iter().position(|other| !other.is_ours);
    let same = |other: &&Server| other.door == Door::Nbd && other.scheduler == server.scheduler;
    let nbd = servers.iter().position(same).filter(|_| server.is_ours);
    table.add_row([
        name_of(load),
        backing.name().to_owned(),
        server.name.clone(),
        format!("{:.0}", median(|figures| figures.iops)),
        format!("{:.2}", median(|figures| figures.cpu_us)),
        format!("{:.2}", median(|figures| figures.kicks)),
        format!("{:.2}", median(|figures| figures.calls)),
        beside(theirs, |figures| figures.iops),
        beside(theirs, |figures| figures.cpu_us),
        beside(nbd, |figures| figures.cpu_us),
    ]);
}
