//! Six rows of a real server: a modelled disk, sockets, and clients in real time.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use paternoster::SchedulerKind;
use paternoster_lab::thinkers::{LEAST_PERCENT, SCHEDULERS};
use paternoster_load::{Habit, Load, TenantLoad};
use paternoster_server::Server;
use paternoster_server::config::{Config, Listen};

/// How many reads the victims keep outstanding.
const OUTSTANDING: [u32; 3] = [1, 8, 32];
/// How long the thinker thinks.
const THOUGHT: Duration = Duration::from_micros(700);
/// How long they ask before anything counts, and how long is counted.
const WARM_UP: Duration = Duration::from_secs(1);
const COUNTED: Duration = Duration::from_secs(4);
/// What decides where clients read.
const SEED: u64 = 13;

/// Measures the rows, prints them, and returns in how many the victim keeps too little.
pub(crate) fn run() -> Result<usize> {
    println!(
        "\na server, its disk 4 × 200 µs; the thinker thinks for {} µs and has the same weight",
        THOUGHT.as_micros()
    );
    let mut short = 0;
    for scheduler in SCHEDULERS {
        for outstanding in OUTSTANDING {
            let [alone, beside] =
                [false, true].map(|with_thinker| reads(scheduler, outstanding, with_thinker));
            let (alone, beside) = (alone?, beside?);
            let percent = 200 * beside / alone.max(1);
            short += usize::from(percent < LEAST_PERCENT);
            println!(
                "{percent:3} %  {scheduler}, {outstanding} outstanding: {beside} reads in {} s; \
                 alone {alone}",
                COUNTED.as_secs()
            );
        }
    }
    println!("{short} of {} rows are below {LEAST_PERCENT} %", 2 * OUTSTANDING.len());
    Ok(short)
}

/// The reads of the victim in the counted time.
fn reads(scheduler: SchedulerKind, outstanding: u32, with_thinker: bool) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("nbd.sock");
    let mut config = Config::from_toml(&config(scheduler), Path::new("thinkers.toml"))?;
    config.listen = vec![Listen::unix(socket.clone())];
    let server = Server::start(&config)?;
    let load = |export: &str, depth| TenantLoad {
        export: export.to_owned(),
        connections: 1,
        depth,
        block: 4 << 10,
        write_percent: 0,
    };
    let mut loads = vec![load("victim", outstanding)];
    if with_thinker {
        loads.push(load("thinker", 1));
    }
    let mut clients = Load::connect(&socket, &loads, SEED)?;
    if with_thinker {
        clients.set_habit(1, Habit { think: THOUGHT, ..Habit::default() });
    }
    clients.start()?;
    clients.run_for(WARM_UP)?;
    let window = clients.count(&server.control(), COUNTED, |_| {})?;
    clients.finish()?;
    server.shut_down()?;
    Ok(window.tenants[0].measured.replies)
}

/// The configuration of the server, but for its socket.
fn config(scheduler: SchedulerKind) -> String {
    format!(
        "[disks.d]\nbackend = \"modelled\"\nsize = \"128M\"\nservers = 4\nservice_us = 200\n\
         scheduler = \"{scheduler}\"\n\
         [groups.\"/victim\"]\nweight = 100\n\
         [exports.victim]\ndisk = \"d\"\nsize = \"64M\"\n\
         [groups.\"/thinker\"]\nweight = 100\n\
         [exports.thinker]\ndisk = \"d\"\noffset = \"64M\"\nsize = \"64M\"\n"
    )
}
