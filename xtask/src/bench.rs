//! `cargo xtask bench`: the programs and the library of `bench/`, and the tests of served clients.

use crate::bench_live::FIGURES;
use crate::{bench_live, bench_sched, cargo};
use anyhow::{Result, bail};
use clap::Subcommand;
use paternoster_bench::{idle, nbd, record, throttled, tls};
use std::ffi::OsString;

/// What there is to measure.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// The schedulers: instructions per request, against the pins, and nanoseconds
    Sched(bench_sched::Args),
    /// A server without clients: iowait, I/O pressure and wake-ups that it adds to the machine's
    Idle(idle::Args),
    /// The server beside nbdkit and qemu-nbd: IOPS and latency
    Nbd(nbd::Args),
    /// The tests of served clients, judged to a few percent
    Live,
    /// What a neighbour keeps of a disk that other clients attack
    Fairness(Fairness),
    /// Whether every tenant gets its weight while the disk stays busy
    Shares(Shares),
    /// What the laboratory predicts of a server beside what the server does
    Predict(Program),
    /// What a replay of a recorded server predicts under other schedulers, beside what it does
    Replay(Program),
    /// Throughput, shares and a victim's latency under schedulers over modelled devices
    Depth(Program),
    /// What a client keeps of a disk beside one that thinks
    Thinkers(Program),
    /// Reads that the laboratory simulates in a second of a core
    Speed(Program),
    /// Machines that attach by shared memory beside qemu-storage-daemon, and beside NBD
    Vhost(Program),
    /// The server within TLS beside nbdkit within TLS, and both in the clear
    Tls(tls::Args),
    /// What a recording costs the clients of the disk that is recorded
    Record(record::Args),
    /// How soon a new volume can be read, and what is left of those that are gone
    Volumes(Program),
}

/// What to do with what is measured of attacks.
#[derive(clap::Args)]
pub(crate) struct Fairness {
    /// Fail where cfq, bfq or wfq leave a neighbour less than 85 % of its part; prints no table
    #[arg(long)]
    check: bool,
}

/// Which weights to measure.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Shares {
    /// Three tenants on a loop device that the kernel throttles, with direct I/O, instead; as root
    #[arg(long)]
    throttled: bool,

    #[command(flatten)]
    program: Program,
}

/// A program of `bench/benches`, which has options of its own.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Program {
    /// The program's own options, which its `--help` says
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// How a program is run, its name and the test of its attacks.
const BENCH: [&str; 5] = ["bench", "--locked", "-p", "paternoster-bench", "--bench"];
const ATTACKS: [&str; 8] =
    ["test", "--locked", "-p", "paternoster-bench", "--test", "fairness", "--", "--nocapture"];

/// Measures.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Sched(args) => bench_sched::run(args),
        Bench::Idle(args) => idle::run(args, &cargo::tested()?),
        Bench::Nbd(args) => nbd::run(args, &cargo::paternoster()?),
        Bench::Live => bench_live::run(),
        Bench::Fairness(Fairness { check: true }) => {
            cargo::run(cargo::command().args(ATTACKS).envs([FIGURES]))
        }
        Bench::Fairness(_) => program("fairness", &[]),
        Bench::Shares(Shares { throttled, program: Program { options } }) => {
            match (throttled, options.first()) {
                (false, _) => program("shares", options),
                (true, None) => throttled::run(&cargo::paternoster()?),
                (true, Some(option)) => {
                    bail!("{} beside --throttled, which takes no option", option.display())
                }
            }
        }
        Bench::Predict(args) => program("predict", &args.options),
        Bench::Replay(args) => program("replay", &args.options),
        Bench::Depth(args) => program("depth", &args.options),
        Bench::Thinkers(args) => program("thinkers", &args.options),
        Bench::Speed(args) => program("speed", &args.options),
        Bench::Vhost(args) => {
            let server = cargo::paternoster()?.into_os_string();
            let options = [&["--server".into(), server], &args.options[..]].concat();
            program("vhost", &options)
        }
        Bench::Tls(args) => tls::run(args, &cargo::paternoster()?),
        Bench::Record(args) => record::run(args, &cargo::paternoster()?),
        Bench::Volumes(args) => program("volumes", &args.options),
    }
}

fn program(name: &str, options: &[OsString]) -> Result<()> {
    cargo::run(cargo::command().args(BENCH).arg(name).arg("--").args(options))
}
