//! Many machines on one server: how soon each can read, what each takes, and what they cost while
//! they are idle.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use paternoster_bench::counters::{Counters, float};
use paternoster_bench::used::Used;
use paternoster_load::{Ask, Machine, Shape};
use paternoster_scene::statistics::quantile;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::servers::spawn;

/// Descriptors that a machine takes here.
const DESCRIPTORS: u64 = 8;

/// How long they have nothing to do before they count as idle, and how long that is looked at.
const QUIET: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(10);

/// Attaches them one after the other, and keeps them.
pub(crate) fn measure(dir: &Path, program: &Path, machines: usize) -> Result<()> {
    if machines == 0 {
        return Ok(());
    }
    let dir = dir.join("many");
    fs::create_dir(&dir)?;
    let mut toml = format!(
        "unix = \"nbd.sock\"\nctl = \"none\"\n[disks.d]\nbackend = \"memory\"\n\
         size = \"{machines}M\"\nscheduler = \"wfq\"\n"
    );
    for number in 0..machines {
        write!(
            toml,
            "[exports.vm{number}]\ndisk = \"d\"\noffset = \"{number}M\"\nsize = \"1M\"\n\
             vhost_user = \"vm{number}.vhost\"\n"
        )?;
    }
    fs::write(dir.join("c.toml"), toml)?;
    let needed = DESCRIPTORS * machines as u64 + 100;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    ensure!(maximum.is_none_or(|most| most >= needed), "{needed} descriptors: ulimit -Hn has less");
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let mut command = Command::new(program);
    command.args(["serve", "--log", "warn", "c.toml"]).current_dir(&dir);
    let server = spawn(command, &dir.join(format!("vm{}.vhost", machines - 1)))?;

    let before = Used::by(server.id())?;
    let (mut attached, mut took) = (Vec::new(), Vec::new());
    for number in 0..machines {
        let begun = Instant::now();
        let shape = Shape { room: 4096, ..Shape::default() };
        let mut machine = Machine::attach(&dir.join(format!("vm{number}.vhost")), shape)?;
        let (status, _) = machine.do_one(&Ask::Read(0, 4096))?;
        took.push(begun.elapsed());
        ensure!(status == 0, "vm{number} cannot read");
        attached.push(machine);
    }
    let after = Used::by(server.id())?;
    sleep(QUIET);
    let begin = Counters::read(server.id())?;
    sleep(IDLE);
    let idle = Counters::read(server.id())?.since(&begin)?;

    took.sort_unstable();
    let [p50, p99] = [500, 990].map(|rank| quantile(&took, rank).context("one at least"));
    let each =
        |before: u64, after: u64| float(after.saturating_sub(before)) / float(machines as u64);
    println!(
        "\n{machines} machines on one server: from connecting to the first read {:.2?} (p99 \
         {:.2?}); {:.1} KiB of its own memory and {:.1} of theirs each; {} wake-ups in {} s while \
         all are idle",
        p50?,
        p99?,
        each(before.anonymous_kib, after.anonymous_kib),
        each(before.shared_kib, after.shared_kib),
        idle.sleeps,
        IDLE.as_secs(),
    );
    Ok(())
}
