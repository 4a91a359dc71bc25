//! Clients write to a server on a device whose writes are logged below it; then the log is judged
//! by what the clients were promised.
//!
//! ```text
//!   clients ──▶ server ──▶ dm-log-writes ──▶ /dev/vda
//!      │                        └───────────▶ /dev/vdb: the log ─┐
//!      └─────────────────────────────────────▶ /dev/vdc: record ─┴─▶ judge, on the host
//! ```

use std::fs;

use anyhow::{Result, ensure};

use super::front::By;
use super::judge::{Verdict, judge};
use super::log::{self, Entry, SECTOR, Sent};
use super::machine::Machine;
use super::record::{self, Event};

/// Bytes of the disk: few, so that most writes meet others.
const DISK: u64 = 2 << 20;
/// Bytes of the log's disk.
const LOG: u64 = 256 << 20;
/// Bytes of the record's disk.
const RECORD: u64 = 4 << 20;
/// Marks of a run.
const MARKS: u64 = 150;
/// How many losses are shown.
const SHOWN: usize = 10;

/// Runs the clients under a scheduler and that many connection threads, by that way, and judges the
/// log: nothing that was promised may be missing at any mark. Then the same log without its flushes
/// must be found to miss something.
pub(super) fn check(machine: &Machine, scheduler: &str, threads: u32, of: By) -> Result<String> {
    let by = of.name();
    let name = format!("durability-{scheduler}-{by}");
    let settings = format!("scheduler={scheduler} threads={threads} by={by} flushes=kept");
    let (mut entries, events) = run(machine, &name, &settings)?;
    let verdict = judge_disk(&entries, &events)?;
    let losses = verdict.losses.len();
    let shown = verdict.losses.iter().take(SHOWN).map(|loss| format!("\n  {loss}"));
    ensure!(
        losses == 0,
        "{losses} times a sector had not what was promised, at {} of {} marks; log and record are \
         in {}{}",
        verdict.bad_marks,
        verdict.marks,
        machine.dir.display(),
        shown.collect::<String>()
    );
    verdict.is_of_weight(of != By::MachineWritesThrough)?;
    for entry in &mut entries {
        if let Entry::Sent(Sent { flush, fua, .. }) = entry {
            (*flush, *fua) = (false, false);
        }
    }
    ensure!(judge_disk(&entries, &events)?.fails(), "the log is good without its flushes too");
    Ok(format!(
        "{} marks, {} changes promised, {} in flight at a mark, {} overtook others, {} writes of \
         the device are merged ones, {} flushes reached it",
        verdict.marks,
        verdict.kept,
        verdict.in_flight / verdict.marks,
        verdict.overtakings,
        verdict.merged,
        verdict.flushes
    ))
}

/// The same run on a device to which no flush gets must be found to miss something at most marks.
pub(super) fn check_control(machine: &Machine) -> Result<String> {
    let settings = "scheduler=auto threads=1 by=nbd flushes=dropped";
    let (entries, events) = run(machine, "durability-control", settings)?;
    let verdict = judge_disk(&entries, &events)?;
    ensure!(verdict.flushes == 0, "{} flushes reached the device all the same", verdict.flushes);
    ensure!(
        verdict.fails(),
        "only {} of {} marks miss something, though nothing was flushed",
        verdict.bad_marks,
        verdict.marks
    );
    Ok(format!("found at {} of {} marks", verdict.bad_marks, verdict.marks))
}

/// One run: what the device's log has, and what the clients did.
fn run(machine: &Machine, name: &str, settings: &str) -> Result<(Vec<Entry>, Vec<Event>)> {
    let disk = machine.disk(&format!("{name}.disk"), DISK)?;
    let log = machine.disk(&format!("{name}.log"), LOG)?;
    let record = machine.disk(&format!("{name}.record"), RECORD)?;
    let seed = fastrand::u32(..);
    println!("   seed {seed}");
    let settings = format!("part=durability {settings} marks={MARKS} seed={seed}");
    machine.run(name, &settings, &[&disk, &log, &record])?;
    Ok((log::read(&fs::read(log.path)?)?, record::read(&fs::read(record.path)?)?))
}

fn judge_disk(entries: &[Entry], events: &[Event]) -> Result<Verdict> {
    judge(entries, events, usize::try_from(DISK)? / SECTOR)
}

impl Verdict {
    /// Whether something is missing at most marks.
    fn fails(&self) -> bool {
        self.bad_marks * 2 > self.marks
    }

    /// Whether the run was such that a mistake could show: it is an error if not. What has to be
    /// durable by itself does not merge.
    fn is_of_weight(&self, merges: bool) -> Result<()> {
        let Self { marks, flushes, kept, in_flight, overtakings, merged, .. } = *self;
        ensure!(marks == MARKS, "{marks} marks were judged, not {MARKS}");
        let all = flushes > 0 && kept > 100 && in_flight > 0 && overtakings > 0;
        let all = all && (merged > 0 || !merges);
        ensure!(
            all,
            "the run shows nothing: {flushes} flushes reached the device, {kept} changes were \
             promised, {in_flight} were in flight at marks, {overtakings} overtook others, \
             {merged} writes were merged"
        );
        Ok(())
    }
}
