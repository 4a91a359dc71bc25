//! How soon a volume that is made can be read, while others load the pool.
//!
//! ```text
//!   8 clients of HTTP ──PUT──▶ server ──▶ pool of files ◀── 8 tenants that read all the time
//!        └─────first read over NBD──▶
//! ```

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use paternoster_load::read_once;

use crate::Options;
use crate::rig::{DEPTH, MODEL, Pool, Rig, delete, number, put};

/// Until a new volume can be read: the median, and what one of a hundred may take.
const MEDIAN: Duration = Duration::from_micros(1_500);
const ONE_OF_A_HUNDRED: Duration = Duration::from_millis(5);
/// What the shares of tenants may be off.
const OFF: f64 = 0.03;

/// Returns whether each could be read soon enough.
pub(crate) fn measure(options: &Options) -> Result<bool> {
    let &Options { made: volumes, loaders, makers, durable, modelled, .. } = options;
    let pool = if modelled { Pool::Modelled(MODEL) } else { Pool::Files { durable } };
    let rig = Rig::start(&pool)?;
    let next = AtomicUsize::new(0);
    let (ctl, socket) = (&rig.ctl(), &rig.server.socket());
    let mut load = rig.readers(loaders, DEPTH)?;
    let (mut took, mut syncs) = thread::scope(|scope| {
        let make = || -> Result<Vec<[Duration; 2]>> {
            let mut took = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= volumes {
                    return Ok(took);
                }
                let (name, begun) = (format!("vm{number}"), Instant::now());
                put(ctl, &name, "64M")?;
                let answered = begun.elapsed();
                read_once(socket, &name)?;
                took.push([answered, begun.elapsed()]);
            }
        };
        let making: Vec<_> = (0..makers).map(|_| scope.spawn(make)).collect();
        load.start()?;
        let mut syncs = Vec::new();
        while !making.iter().all(thread::ScopedJoinHandle::is_finished) {
            load.run_for(Duration::from_millis(20))?;
            if durable {
                syncs.push(sync(rig.dir.path())?);
            }
        }
        let took = making.into_iter().map(|one| one.join().expect("no panic"));
        let took = took.collect::<Result<Vec<_>>>()?.concat();
        Ok::<_, anyhow::Error>((took, syncs))
    })?;
    let shares = load.take_measured().into_iter().map(|of| of.replies).collect::<Vec<_>>();
    load.finish()?;
    for number in 0..volumes {
        delete(ctl, &format!("vm{number}"))?;
    }
    rig.end()?;
    syncs.sort_unstable();
    let sync = syncs.get(syncs.len() * 99 / 100).or(syncs.last()).copied().unwrap_or_default();
    let one_of_a_hundred = ONE_OF_A_HUNDRED + 3 * sync;
    if durable {
        println!("{} syncs of a new file meanwhile: p99 {sync:?}", syncs.len());
    }
    println!("{volumes} volumes by {makers} clients, beside {loaders} that read");
    for (index, what) in ["answered", "first read"].into_iter().enumerate() {
        took.sort_unstable_by_key(|one| one[index]);
        let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)][index];
        println!("{what:>12}: p50 {:?}, p99 {:?}, most {:?}", at(50), at(99), at(100));
    }
    let [p50, p99] = [50, 99].map(|percent| took[took.len() * percent / 100][1]);
    // Of durable ones nothing is promised of the median.
    let is_soon = (durable || p50 <= MEDIAN) && p99 <= one_of_a_hundred;
    let median = if durable { String::new() } else { format!("p50 {MEDIAN:?}, ") };
    ensure!(shares.iter().all(|replies| *replies > 0), "those that read had nothing");
    let off = off(&shares);
    println!("shares of those that read are {:.1} % off at most", off * 100.0);
    println!("promised: {median}p99 {one_of_a_hundred:?}, and {:.0} %", OFF * 100.0);
    Ok(is_soon && off <= OFF)
}

/// How far what each has had is from what it is due, as all have one weight.
fn off(replies: &[u64]) -> f64 {
    let due = number(replies.iter().sum()) / number(replies.len() as u64);
    replies.iter().map(|had| (number(*had) / due - 1.0).abs()).fold(0.0, f64::max)
}

/// How long a sync takes of a file that is new.
fn sync(folder: &Path) -> Result<Duration> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&[7; 512])?;
    let begun = Instant::now();
    file.as_file().sync_all()?;
    Ok(begun.elapsed())
}
