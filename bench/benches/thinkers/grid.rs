//! The grid in virtual time: a table for each scheduler and device.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, bail};
use comfy_table::Table;
use paternoster_lab::thinkers::{
    Cell, DEVICES, Kept, LEAST_PERCENT, OUTSTANDING, SCHEDULERS, THOUGHTS_US, ThinkersError,
    WEIGHTS, cells,
};
use paternoster_scene::markdown_table;

/// Runs the cells in whose line all words stand, prints what came of them, and returns in how many
/// the victim keeps too little.
pub(crate) fn run(words: &[String], with_cells: bool) -> Result<usize> {
    let is_chosen = |cell: &Cell| {
        let line = cell.to_string();
        words.iter().all(|word| line.contains(word.as_str()))
    };
    let chosen: Vec<_> = cells().into_iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        bail!("no cell is called so; one is: {}", cells()[0]);
    }
    let ran = run_all(&chosen)?;
    if with_cells {
        for (cell, kept) in &ran {
            println!("{:3} %  {cell}", kept.percent());
        }
    }
    for scheduler in SCHEDULERS {
        for device in DEVICES {
            for weights in WEIGHTS {
                let own: Vec<_> = ran
                    .iter()
                    .filter(|(cell, _)| {
                        (cell.scheduler, cell.device, cell.weights) == (scheduler, device, weights)
                    })
                    .collect();
                if let Some((cell, _)) = own.first() {
                    let (own_weight, other) = weights;
                    let (servers, micros) = device;
                    println!(
                        "\n{}, {servers} × {micros} µs, {own_weight}:{other}: the least that the \
                         victim keeps of what it is due, whoever comes first\n{}",
                        cell.scheduler,
                        table(&own)
                    );
                }
            }
        }
    }
    let short: Vec<_> = ran.iter().filter(|(_, kept)| kept.percent() < LEAST_PERCENT).collect();
    for (cell, kept) in &short {
        println!("{} %: {cell}: {} of {}", kept.percent(), kept.reads, kept.due);
    }
    println!("\n{} of {} cells are below {LEAST_PERCENT} %", short.len(), ran.len());
    Ok(short.len())
}

/// Runs them on all processors; in the order of the cells.
fn run_all(cells: &[Cell]) -> Result<Vec<(Cell, Kept)>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut ran = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = cells.get(index) else { return Ok::<_, ThinkersError>(ran) };
            ran.push((index, *cell, cell.run()?));
        }
    };
    let processors = thread::available_parallelism()?.get();
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no cell panics")).collect()
    });
    let mut ran = Vec::new();
    for result in results {
        ran.extend(result?);
    }
    ran.sort_unstable_by_key(|(index, ..)| *index);
    Ok(ran.into_iter().map(|(_, cell, kept)| (cell, kept)).collect())
}

/// A row for each number of reads outstanding, and a column for each thought.
fn table(ran: &[&(Cell, Kept)]) -> Table {
    let thoughts = THOUGHTS_US.map(|thought| format!("{thought} µs"));
    let mut table = markdown_table(["outstanding".to_owned()].into_iter().chain(thoughts), 0);
    for outstanding in OUTSTANDING {
        let least = THOUGHTS_US.map(|think_us| {
            let own = ran
                .iter()
                .filter(|(cell, _)| (cell.outstanding, cell.think_us) == (outstanding, think_us));
            let least = own.map(|(_, kept)| kept.percent()).min();
            least.map_or_else(String::new, |least| format!("{least} %"))
        });
        table.add_row([outstanding.to_string()].into_iter().chain(least));
    }
    table
}
