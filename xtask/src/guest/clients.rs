//! The clients in the guest whose writes are looked for afterwards: they write, zero, trim and
//! flush at random from a seed, and set a mark in the device's log at each promise they get.
//!
//! ```text
//!   connection ── requests in flight ─┐
//!   connection ──        …           ─┼─▶ one thread: a line of the record for each request and
//!   connection ──        …           ─┘   answer; after one to FLUSH or FUA, a mark in the log
//! ```
//!
//! While a mark is set nothing new is sent, but what is in flight goes on.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command as Process;

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;

use super::front::{By, Front};
use super::log::SECTOR;
use super::record::{self, Ask, Change, Event};

/// Connections, or rings.
const CONNECTIONS: u16 = 4;
/// Requests in flight on each.
const DEPTH: u16 = 8;
/// Sectors of the longest request.
const LONGEST: u64 = 32;
/// What the clients do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server's socket
    #[arg(long)]
    socket: PathBuf,
    /// By what it is reached
    #[arg(long, value_enum, default_value_t = By::Nbd)]
    by: By,
    /// Decides what is written
    #[arg(long)]
    seed: u64,
    /// How many marks to set
    #[arg(long)]
    marks: u64,
    /// The device of dm-log-writes, by its name there
    #[arg(long)]
    device: String,
    /// Where the record of what was done goes
    #[arg(long)]
    record: PathBuf,
}

/// The clients and what they did so far.
struct Clients<'a> {
    args: &'a Args,
    random: Rng,
    front: Front,
    /// Sectors of the export.
    sectors: u64,
    /// The sector behind each connection's last request, where neighbours begin.
    behind: Vec<u64>,
    /// Requests so far.
    asked: u64,
    /// Requests whose answer is a promise.
    promises: HashSet<u64>,
    marks: u64,
    record: Vec<Event>,
}

/// Runs the clients until they have set their marks and have all their answers.
pub(super) fn run(args: &Args) -> Result<()> {
    let front = Front::enter(args.by, &args.socket, CONNECTIONS, DEPTH, LONGEST)?;
    let sectors = front.size() / SECTOR as u64;
    ensure!(sectors > LONGEST, "the export has {sectors} sectors");
    let mut clients = Clients {
        args,
        random: Rng::with_seed(args.seed),
        front,
        sectors,
        behind: vec![0; CONNECTIONS.into()],
        asked: 0,
        promises: HashSet::new(),
        marks: 0,
        record: Vec::new(),
    };
    while clients.marks < args.marks {
        clients.ask_for_more()?;
        clients.take_answers()?;
    }
    while (0..CONNECTIONS).any(|index| clients.front.in_flight(index.into()) > 0) {
        clients.take_answers()?;
    }
    let file = fs::OpenOptions::new().write(true).open(&args.record);
    let mut file = file.with_context(|| format!("opening {}", args.record.display()))?;
    file.write_all(record::to_text(&clients.record).as_bytes()).context("writing the record")?;
    file.sync_all().context("writing the record")
}

impl Clients<'_> {
    /// Has each connection ask until it has as much in flight as it may.
    fn ask_for_more(&mut self) -> Result<()> {
        for index in (0..CONNECTIONS).map(usize::from) {
            while self.front.in_flight(index) < DEPTH.into() {
                let ask = self.draw(index);
                self.asked += 1;
                self.record.push(Event::Asked(self.asked, ask));
                if matches!(ask, Ask::Flush | Ask::Change { fua: true, .. }) {
                    self.promises.insert(self.asked);
                }
                self.front.ask(index, self.asked, ask)?;
            }
            self.front.send(index)?;
        }
        Ok(())
    }

    /// What a connection asks next: one in thirty is a flush, and by NBD one in thirty has FUA.
    fn draw(&mut self, index: usize) -> Ask {
        let random = &mut self.random;
        if random.u32(..30) == 0 {
            return Ask::Flush;
        }
        let how = match random.u32(..20) {
            0 => Change::Trim,
            1 => Change::Zero,
            _ => Change::Write,
        };
        let sectors = random.u64(1..=LONGEST);
        // Neighbours of the last request are what a scheduler merges.
        let near = random.bool() && self.behind[index] + sectors <= self.sectors;
        let sector = if near { self.behind[index] } else { random.u64(..=self.sectors - sectors) };
        self.behind[index] = sector + sectors;
        let fua = match self.args.by {
            By::Nbd => random.u32(..30) == 0,
            By::Machine => false,
            By::MachineWritesThrough => true,
        };
        Ask::Change { how, sector, sectors, fua }
    }

    /// Waits for answers, and takes all that have come.
    fn take_answers(&mut self) -> Result<()> {
        for number in self.front.answered()? {
            self.record.push(Event::Answered(number));
            if self.promises.remove(&number) && self.marks < self.args.marks {
                self.set_mark()?;
            }
        }
        Ok(())
    }

    /// Sets the next mark in the device's log.
    fn set_mark(&mut self) -> Result<()> {
        self.marks += 1;
        self.record.push(Event::Mark(self.marks));
        let mark = format!("mark-{}", self.marks);
        let mut dmsetup = Process::new("dmsetup");
        crate::cargo::run(dmsetup.args(["message", &self.args.device, "0", "mark", &mark]))
    }
}
