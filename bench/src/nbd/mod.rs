//! `cargo xtask bench nbd`: our server beside nbdkit and qemu-nbd, as a fio client sees them.
//!
//! All servers are up at once and idle but for the one that is measured. Rounds interleave them
//! (A B, B A, A B, …), so that a drift of the machine meets all alike, and each is compared with
//! nbdkit in the same round.
//!
//! ```text
//!   load      what the client asks of a server
//!   fio       the client, and what is read of its report
//!   servers   how each is started
//!   counters  processor time, sleeps and interrupts of a process
//!   watched   a server under a load, with what it and its client cost
//!   table     medians and ratios
//!   one_by_one   one request at a time, with its costs, and one server up at a time
//! ```

pub mod fio;
mod load;
mod one_by_one;
mod servers;
mod table;
mod watched;

use anyhow::{Context, Result, bail};
use fio::fio;
use load::Load;
use paternoster::SchedulerKind;
use servers::{Backing, Engine, KINDS, Kind, Ours, Poll, Program, Server, Variant};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use table::Samples;
use watched::watch;

/// Bytes of the disk, which the page cache holds.
const DISK_SIZE: usize = 256 << 20;
/// How long a load lasts before it is measured.
const RAMP: Duration = Duration::from_millis(500);

/// What to measure, and for how long.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Measure one request at a time instead, our server with `poll = "auto"` and `"interrupt"`
    /// beside nbdkit with their disks in memory, one up at a time: free, and pinned together with
    /// the client to two processors and to one; with sleeps, interrupts and processor time of a
    /// request. Unless told: 11 rounds of 1 s, of read-4k and write-4k
    #[arg(long = "depth-1", conflicts_with_all = ["threads", "engines", "connections", "backings"])]
    one_by_one: bool,
    /// Rounds, each with every load and server
    #[arg(long, default_value = "3", default_value_if("one_by_one", "true", "11"))]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds that one server is measured under one load in a round
    #[arg(long, default_value = "2", default_value_if("one_by_one", "true", "1"))]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// The scheduler of our server
    #[arg(long, value_name = "KIND", default_value = "cfq")]
    scheduler: SchedulerKind,
    /// Connection threads of our server, with commas: it is measured with each; 1 unless told
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Vec<u32>,
    /// By what our server carries operations out, with commas: it is measured with each; `auto`
    /// unless told
    #[arg(long, value_name = "ENGINES", value_delimiter = ',')]
    engines: Vec<Engine>,
    /// Connections of the client, which share 32 requests in flight, with commas: 1 to 32 each
    #[arg(long, value_name = "COUNTS", default_value = "1,4,16", value_delimiter = ',')]
    #[arg(value_parser = connections)]
    connections: Vec<u32>,
    /// What the servers keep their disks in, with commas: memory, file (in the page cache), direct
    /// (a file past it)
    #[arg(long, value_name = "BACKINGS", default_value = "memory,file,direct")]
    #[arg(value_delimiter = ',')]
    backings: Vec<Backing>,
    /// Requests that our server keeps in its disk; its own default unless told
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Option<u32>,
    /// Kinds of requests, with commas: read-4k, write-4k, read-64k, read-1m
    #[arg(long, value_name = "KINDS", default_value = "read-4k,write-4k,read-64k,read-1m")]
    #[arg(default_value_if("one_by_one", "true", "read-4k,write-4k"))]
    #[arg(value_delimiter = ',', value_parser = load_kind)]
    loads: Vec<load::Kind>,
}

fn connections(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| load::CONNECTIONS.contains(count));
    let (least, most) = (load::CONNECTIONS.start(), load::CONNECTIONS.end());
    count.ok_or_else(|| format!("{least} to {most} is allowed"))
}

fn load_kind(text: &str) -> Result<load::Kind, String> {
    let known = load::KINDS.into_iter().find(|kind| kind.name == text);
    let names = load::KINDS.map(|kind| kind.name);
    known.ok_or_else(|| format!("{} are allowed", names.join(", ")))
}

/// Runs the command, with the program that is ours.
pub fn run(args: &Args, program: &Path) -> Result<()> {
    if args.one_by_one {
        return one_by_one::run(args, program);
    }
    let dir = tempfile::Builder::new().prefix("bench-nbd").tempdir().context("a directory")?;
    let disk = dir.path().join("disk.img");
    fill(&disk)?;
    let mut servers = vec![];
    let mut missing = 0;
    for (kind, ours) in wanted(args, program) {
        match kind.start(dir.path(), &disk, ours) {
            Ok(server) => servers.push(server),
            Err(error) => {
                missing += 1;
                println!("left out: {}: {error:#}", kind.name());
            }
        }
    }
    for server in servers.iter().filter(|server| server.kind.backing == Backing::Memory) {
        fill_memory(server)?;
    }
    let samples = measure(&servers, args)?;
    table::print(&servers, &samples);
    if missing > 0 {
        bail!("{missing} of {} servers were left out", missing + servers.len());
    }
    Ok(())
}

/// The servers that are to be compared, ours in each variant.
fn wanted<'a>(args: &Args, program: &'a Path) -> Vec<(&'static Kind, Ours<'a>)> {
    let variants = variants(&args.threads, &args.engines);
    let (scheduler, depth) = (args.scheduler, args.depth);
    let ours = |variant| Ours { program, scheduler, depth, variant, poll: Poll::Auto };
    let kinds = KINDS.iter().filter(|kind| args.backings.contains(&kind.backing));
    let each = kinds.flat_map(|kind| {
        let times = if kind.program == Program::Paternoster { variants.len() } else { 1 };
        variants[..times].iter().map(move |&variant| (kind, ours(variant)))
    });
    each.collect()
}

/// Each number of threads with each engine; the default of what is not named.
fn variants(threads: &[u32], engines: &[Engine]) -> Vec<Variant> {
    fn or_default<T: Copy>(named: &[T]) -> Vec<Option<T>> {
        if named.is_empty() { vec![None] } else { named.iter().copied().map(Some).collect() }
    }
    let engines = or_default(engines);
    let of = |threads| engines.iter().map(move |&engine| Variant { threads, engine });
    or_default(threads).into_iter().flat_map(of).collect()
}

/// Writes the disk, with content that does not compress or repeat.
fn fill(path: &Path) -> Result<()> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(DISK_SIZE);
    while bytes.len() < DISK_SIZE {
        // One step of xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Writes all of a disk in memory.
fn fill_memory(server: &Server) -> Result<()> {
    let fill = ["--rw=write", "--bs=1M", "--iodepth=4"];
    fio(&server.uri, &fill).with_context(|| format!("filling {}", server.name()))?;
    Ok(())
}

/// Measures all servers under all loads, round after round, every other one backwards. A disk in a
/// file is measured with what all servers are asked alone.
fn measure(servers: &[Server], args: &Args) -> Result<Samples> {
    let mut samples = Samples::new();
    for round in 1..=args.rounds {
        for load in load::loads(&args.loads, &args.connections) {
            let asked = servers.iter().enumerate();
            let is_asked =
                |server: &Server| load.is_for_all() || server.kind.backing == Backing::Memory;
            let mut asked: Vec<_> = asked.filter(|(_, server)| is_asked(server)).collect();
            if round % 2 == 0 {
                asked.reverse();
            }
            print!("round {round} of {}, {load}:", args.rounds);
            for (index, server) in asked {
                let iops = measure_one(server, load, args.seconds, &mut samples, index)?;
                print!(" {iops:.0}");
                std::io::stdout().flush().context("printing")?;
            }
            println!();
        }
    }
    Ok(samples)
}

/// Measures a server under a load. Returns how many requests a second it served.
fn measure_one(
    server: &Server,
    load: Load,
    seconds: u32,
    samples: &mut Samples,
    index: usize,
) -> Result<f64> {
    let watched = watch(server, &fio_options(load, seconds), seconds)
        .with_context(|| format!("measuring {}: {load}", server.name()))?;
    samples.entry((load, index)).or_default().push(watched);
    Ok(watched.sample.iops)
}

/// fio's options for a load of so many seconds.
fn fio_options(load: Load, seconds: u32) -> Vec<String> {
    let mut options = load.options();
    options.extend(["--time_based".to_owned(), format!("--ramp_time={}ms", RAMP.as_millis())]);
    options.push(format!("--runtime={seconds}"));
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(options: &[&str]) -> Result<Args, clap::Error> {
        Cli::try_parse_from([&["bench"], options].concat()).map(|cli| cli.args)
    }

    #[test]
    fn requests_one_by_one_have_rounds_and_loads_of_their_own_unless_told() {
        let of = |options: &[&str]| {
            let args = parse(options).expect("they are allowed");
            let loads: Vec<_> = args.loads.iter().map(|kind| kind.name).collect();
            (args.one_by_one, args.rounds, args.seconds, loads.join(" "))
        };
        let all = load::KINDS.map(|kind| kind.name).join(" ");
        assert_eq!(of(&[]), (false, 3, 2, all));
        let small = "read-4k write-4k".to_owned();
        assert_eq!(of(&["--depth-1"]), (true, 11, 1, small));
        let told = ["--depth-1", "--rounds=2", "--seconds=3", "--loads=read-1m"];
        assert_eq!(of(&told), (true, 2, 3, "read-1m".to_owned()));
        for refused in
            ["--threads=2", "--connections=4", "--backings=file", "--rounds=0", "--loads=read-2k"]
        {
            assert!(parse(&["--depth-1", refused]).is_err(), "{refused}");
        }
    }
}
