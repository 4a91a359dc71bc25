//! `cargo xtask bench nbd --depth-1`: one request at a time, ours with and without busy polling
//! beside nbdkit, and what a request costs.
//!
//! One server is up at a time: another that polls would take its processor. A round has every
//! server in every place, every other round backwards, so that ours and nbdkit are neighbours.

mod costs;
mod idle;
mod place;
mod table;

use super::load::{self, Load};
use super::servers::{Backing, KINDS, Kind, Ours, Poll, Program, Server, Variant};
use super::watched::{AROUND_FIO, watch};
use super::{Args, fio_options};
use anyhow::{Context, Result};
use costs::{Costs, OwnCounters};
use place::Place;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use table::{Round, Rounds};

/// What a server takes to start and to be filled, about; only to say how long all takes.
const AROUND_SERVER: Duration = Duration::from_millis(600);

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contender {
    Nbdkit,
    Ours(Poll),
}

/// Those that are compared: the second, whose aim is a ratio to the first, is next to it forwards
/// and backwards.
const CONTENDERS: [Contender; 3] =
    [Contender::Nbdkit, Contender::Ours(Poll::Auto), Contender::Ours(Poll::Interrupt)];

/// How servers are started, and for whom.
struct Bench<'a> {
    args: &'a Args,
    /// Our executable.
    program: &'a Path,
}

/// Runs the command.
pub(super) fn run(args: &Args, program: &Path) -> Result<()> {
    let bench = Bench { args, program };
    let allowed = place::allowed()?;
    let places = place::all(&allowed);
    let seconds = length(args, places.len()).as_secs();
    println!("This takes about {} min {} s.", seconds / 60, seconds % 60);
    if let Some(remark) = place::remark(&allowed) {
        println!("{remark}");
    }
    let mut rounds = Rounds::new();
    for round in 1..=args.rounds {
        for (index, place) in places.iter().enumerate() {
            place.enter()?;
            bench.round(round, (index, place), &mut rounds)?;
        }
    }
    // The first is free.
    places[0].enter()?;
    table::print(&places, &rounds);
    idle::run(&bench)
}

/// How long it takes, about.
fn length(args: &Args, places: usize) -> Duration {
    let times = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let load = super::RAMP + Duration::from_secs(args.seconds.into()) + AROUND_FIO;
    let server = AROUND_SERVER + load * times(args.loads.len());
    let servers = times(places * CONTENDERS.len()) * args.rounds;
    server * servers + idle::LENGTH * times(CONTENDERS.len())
}

impl Contender {
    /// For people.
    fn name(self) -> String {
        match self {
            Self::Nbdkit => Program::Nbdkit.name().to_owned(),
            Self::Ours(poll) => format!("{}, {}", Program::Paternoster.name(), poll.name()),
        }
    }

    /// The server, with its disk in memory.
    fn kind(self) -> &'static Kind {
        let program = match self {
            Self::Nbdkit => Program::Nbdkit,
            Self::Ours(_) => Program::Paternoster,
        };
        let mut in_memory = KINDS.iter().filter(|kind| kind.backing == Backing::Memory);
        in_memory.find(|kind| kind.program == program).expect("both serve memory")
    }
}

impl Bench<'_> {
    /// Measures all servers in a place.
    fn round(&self, number: u32, (index, place): (usize, &Place), all: &mut Rounds) -> Result<()> {
        let mut contenders = CONTENDERS;
        if number.is_multiple_of(2) {
            contenders.reverse();
        }
        print!("round {number} of {}, {}:", self.args.rounds, place.name);
        for contender in contenders {
            let dir = directory()?;
            let server = self.start(contender, dir.path())?;
            print!(" {}", contender.name());
            for &kind in &self.args.loads {
                let measured = self.measure(&server, kind);
                let round = measured
                    .with_context(|| format!("measuring {}: {}", contender.name(), kind.name))?;
                print!(" {:.0}", round.sample.iops);
                std::io::stdout().flush().context("printing")?;
                all.entry((kind, index, contender)).or_default().push(round);
            }
            print!(";");
        }
        println!();
        Ok(())
    }

    /// Starts a server with a disk that has been written.
    fn start(&self, contender: Contender, dir: &Path) -> Result<Server> {
        let poll = match contender {
            Contender::Ours(poll) => poll,
            Contender::Nbdkit => Poll::Auto,
        };
        let Self { args, program } = *self;
        let (scheduler, depth, variant) = (args.scheduler, args.depth, Variant::default());
        let ours = Ours { program, scheduler, depth, variant, poll };
        // Nobody reads the disk in a file.
        let server = contender.kind().start(dir, Path::new(""), ours);
        let server = server.with_context(|| format!("starting {}", contender.name()))?;
        super::fill_memory(&server)?;
        Ok(server)
    }

    /// Measures a server under one request at a time. Ours counts its own requests: its counters
    /// are read before the client starts and after it has ended.
    fn measure(&self, server: &Server, kind: load::Kind) -> Result<Round> {
        let own = OwnCounters::of(self.program, server)?;
        let watched = watch(server, &one_by_one(kind, self.args.seconds), self.args.seconds)?;
        let own = match (own, OwnCounters::of(self.program, server)?) {
            (Some(before), Some(after)) => Some(after.since(&before)?),
            _ => None,
        };
        let (sample, costs) = (watched.sample, Costs::of(&watched.server, watched.sample.iops));
        Ok(Round { sample, costs, own })
    }
}

/// fio's options for requests of a kind, one at a time.
fn one_by_one(kind: load::Kind, seconds: u32) -> Vec<String> {
    fio_options(Load { kind, connections: 1, depth: 1 }, seconds)
}

/// A directory for the socket of one server.
fn directory() -> Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("bench-nbd").tempdir().context("a directory")
}
