//! How late readers of one volume are while another one is flushed after each write: beside
//! seconds with as many writes and no FLUSH, and with neither, in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use paternoster_load::{Load, OneByOne};

use crate::rig::{Pool, Rig, WINDOW, loader_name, measured, median_of};

/// How much later one of a hundred reads may be with FLUSH than without.
const LATER: f64 = 1.2;
/// Reads that are outstanding.
const DEPTH: u32 = 4;
/// How long a sync takes, which a writer without FLUSH waits as well.
const SYNC: Duration = Duration::from_millis(5);

/// What the other volume is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Nothing,
    Writes,
    WritesAndFlushes,
}

const ALL: [Other; 3] = [Other::Nothing, Other::Writes, Other::WritesAndFlushes];

/// Returns whether they are in time.
pub(crate) fn measure(pairs: u32) -> Result<bool> {
    let model = format!("servers = 4\nservice_us = 200\nsync_us = {}", SYNC.as_micros());
    let rig = Rig::start(&Pool::Modelled(&model))?;
    let mut load = rig.readers(1, DEPTH)?;
    load.start()?;
    load.run_for(WINDOW)?;
    load.pause()?;
    let mut writer = OneByOne::connect(&rig.server.socket(), &loader_name(1))?;
    let (mut later, mut later_than_alone, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs as usize {
        let mut late = [0.0; 3];
        // None is always the first.
        for turn in 0..ALL.len() {
            let index = (pair + turn) % ALL.len();
            late[index] = beside(&mut load, &mut writer, ALL[index])?;
        }
        let [nothing, written, flushed] = late;
        alone.push(nothing);
        later.push(flushed / written);
        later_than_alone.push(flushed / nothing);
    }
    writer.end()?;
    load.finish()?;
    rig.end()?;
    let [alone, ..] = median_of(alone);
    println!("{DEPTH} reads of a volume outstanding: p99 {alone:.0} µs");
    println!("beside a volume with a FLUSH of {SYNC:?} after each write, {pairs} times each:");
    let [than_writes, than_alone] = [later, later_than_alone].map(median_of);
    for ([ratio, least, greatest], what) in [(than_writes, "FLUSH"), (than_alone, "writes")] {
        println!("  {ratio:.2} times that beside one without {what} ({least:.2} to {greatest:.2})");
    }
    println!("promised: {LATER} times that without FLUSH");
    Ok(than_writes[0] <= LATER)
}

/// What one of a hundred reads takes, in µs.
fn beside(load: &mut Load, writer: &mut OneByOne, other: Other) -> Result<f64> {
    let stop = AtomicBool::new(false);
    let measured = thread::scope(|scope| {
        let writing = scope.spawn(|| -> Result<()> {
            while other != Other::Nothing && !stop.load(Ordering::Relaxed) {
                writer.write(4096)?;
                match other {
                    Other::WritesAndFlushes => writer.flush()?,
                    Other::Writes | Other::Nothing => thread::sleep(SYNC),
                }
            }
            Ok(())
        });
        let measured = measured(load);
        stop.store(true, Ordering::Relaxed);
        writing.join().expect("no panic")?;
        measured
    })?;
    let nanos = measured.latency.value_at_quantile(0.99);
    Ok(Duration::from_nanos(nanos).as_secs_f64() * 1e6)
}
