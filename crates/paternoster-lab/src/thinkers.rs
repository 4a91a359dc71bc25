//! What a client keeps of a device beside one that thinks: a grid of victims, thinkers, devices,
//! weights and schedulers, in virtual time.
//!
//! ```text
//!   victim    keeps so many reads outstanding, all the time      ┐
//!   thinker   one read, and a pause before it asks for the next  ┴▶ scheduler ──▶ servers
//! ```
//!
//! The victim is due its weight's part of what it gets alone. While the device idles for the
//! thinker it serves nobody, so whoever it idles for has to pay for that. `cargo xtask bench
//! thinkers` runs all cells, and the tests some of them.

use std::fmt;

use paternoster::{Instant, Medium, Nanos, NoTrace, SchedulerKind, Sector, fitted_tunables};

use crate::fio::{JobFileError, Jobs, Surroundings};
use crate::sim::{Setup, SimError};
use crate::threads::{JobRunError, PageCacheParameters, Threads, set_up};
use paternoster_model::{Model as _, Room, Servers};

/// How many reads a victim keeps outstanding.
pub const OUTSTANDING: [u32; 9] = [1, 2, 4, 6, 8, 10, 12, 32, 64];
/// How long a thinker thinks, in microseconds.
pub const THOUGHTS_US: [u32; 6] = [0, 30, 100, 300, 700, 1000];
/// Servers, and the time of one for a request in microseconds. A device takes twice as many
/// requests at once as it has servers.
pub const DEVICES: [(u32, u32); 3] = [(4, 200), (16, 80), (16, 800)];
/// The weights of the victim and the thinker.
pub const WEIGHTS: [(u32, u32); 2] = [(100, 100), (900, 100)];
/// The schedulers that idle.
pub const SCHEDULERS: [SchedulerKind; 2] = [SchedulerKind::Cfq, SchedulerKind::Bfq];
/// The least part of what it is due that a victim keeps, in percent.
pub const LEAST_PERCENT: u64 = 90;

/// Who comes later comes so late, in seconds.
const LATE_S: u64 = 1;
/// For how long is counted, from when both are there.
const COUNTED: Nanos = Nanos::from_millis(2000);

/// Who asks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// Both at the same time.
    Both,
    /// The thinker, a second before the victim.
    Thinker,
    /// The victim, a second before the thinker.
    Victim,
}

impl First {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Both, Self::Thinker, Self::Victim];
}

/// A victim, a thinker, and what is between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The scheduler, with the tunables that fit a device that does not rotate.
    pub scheduler: SchedulerKind,
    /// Servers, and the time of one for a request in microseconds.
    pub device: (u32, u32),
    /// How many reads the victim keeps outstanding.
    pub outstanding: u32,
    /// How long the thinker thinks, in microseconds.
    pub think_us: u32,
    /// Who asks first.
    pub first: First,
    /// The weights of the victim and the thinker.
    pub weights: (u32, u32),
}

/// All cells.
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheduler in SCHEDULERS {
        for device in DEVICES {
            for weights in WEIGHTS {
                for outstanding in OUTSTANDING {
                    for think_us in THOUGHTS_US {
                        cells.extend(First::ALL.map(|first| Cell {
                            scheduler,
                            device,
                            outstanding,
                            think_us,
                            first,
                            weights,
                        }));
                    }
                }
            }
        }
    }
    cells
}

/// So many of the cells, from all parts of the grid; the same at each call.
pub fn some_cells(count: usize) -> Vec<Cell> {
    /// A prime number that does not divide the number of cells, so that no cell comes twice.
    const STRIDE: usize = 613;
    let cells = cells();
    let indices = (0..count.min(cells.len())).map(|number| number * STRIDE % cells.len());
    indices.map(|index| cells[index]).collect()
}

/// Why a cell could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThinkersError {
    /// The job file of the cell cannot be read.
    #[error(transparent)]
    JobFile(#[from] JobFileError),
    /// The run did not begin.
    #[error(transparent)]
    Setup(#[from] JobRunError),
    /// The run did not come to its end.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// What the victim got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its reads that completed.
    pub reads: u64,
    /// What it was due: its weight's part of those that complete in the same time when it is alone.
    pub due: u64,
}

impl Kept {
    /// What it kept of what it was due, in percent, rounded down.
    pub fn percent(self) -> u64 {
        100 * self.reads / self.due.max(1)
    }
}

impl Cell {
    /// Runs the cell, and the victim alone.
    pub fn run(&self) -> Result<Kept, ThinkersError> {
        let (own, other) = self.weights;
        let alone = self.reads(false)?;
        let due = alone * u64::from(own) / u64::from(own + other);
        Ok(Kept { reads: self.reads(true)?, due })
    }

    /// The reads of the victim while both are there.
    fn reads(&self, with_thinker: bool) -> Result<u64, ThinkersError> {
        let device = self.servers();
        let surroundings = Surroundings::without_files(device.end().0 * 512, 1);
        let text = self.job_file(with_thinker);
        let jobs = Jobs::parse("thinkers.fio", text.as_bytes(), &surroundings)?;
        let setup = self.setup();
        let scheduler = setup.scheduler(NoTrace).map_err(JobRunError::from)?;
        let threads = Threads::new(&jobs, PageCacheParameters::default());
        let mut sim = set_up(&jobs, &setup, scheduler, threads, device)?;
        let late = if self.first == First::Both { 0 } else { LATE_S };
        let from = Instant::START + Nanos::from_secs(late);
        let mut reads = [0; 2];
        for (until, reads) in [from, from + COUNTED].into_iter().zip(&mut reads) {
            while sim.now() < until {
                sim.step()?;
            }
            *reads = sim.workload().results()[0].ios();
        }
        Ok(reads[1] - reads[0])
    }

    fn servers(&self) -> Servers {
        let (servers, micros) = self.device;
        let room = Room { depth: 2 * servers, end: Sector(1 << 31) };
        Servers::constant(servers, room, Nanos::from_micros(micros.into()), Nanos::ZERO)
    }

    fn setup(&self) -> Setup {
        let mut setup = Setup::new(self.scheduler);
        let fitted = fitted_tunables(self.scheduler, Medium::NotRotational).iter();
        setup.tunables = fitted.map(|&(name, value)| (name.to_owned(), value)).collect();
        setup
    }

    fn job_file(&self, with_thinker: bool) -> String {
        let &Self { outstanding, think_us, first, weights: (own, other), .. } = self;
        let [late_victim, late_thinker] = [First::Thinker, First::Victim].map(|earlier| {
            if first == earlier { format!("startdelay={LATE_S}\n") } else { String::new() }
        });
        let thinker = format!(
            "[thinker]\n; lab: group=/thinker weight={other}\niodepth=1\noffset=500m\n\
             thinktime={think_us}us\n{late_thinker}"
        );
        format!(
            "[global]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nsize=500m\ntime_based\n\
             runtime=60\n[victim]\n; lab: group=/victim weight={own}\niodepth={outstanding}\n\
             {late_victim}{}",
            if with_thinker { thinker.as_str() } else { "" }
        )
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { scheduler, device: (servers, micros), outstanding, think_us, first, .. } = self;
        let (own, other) = self.weights;
        let first = match first {
            First::Both => "both at once",
            First::Thinker => "thinker first",
            First::Victim => "victim first",
        };
        write!(
            f,
            "{scheduler}, {servers} × {micros} µs, {outstanding} outstanding beside {think_us} µs \
             of thought, {first}, {own}:{other}"
        )
    }
}
