//! The study's file of parameters.

use std::collections::BTreeMap;
use std::path::Path;

use paternoster::{IoPrio, Nanos, Sector, SectorCount};
use serde::Deserialize;

use crate::JournalPlace;
use crate::dbench::{DbenchParameters, Flush, Places};
use paternoster_model::parameter_file::{Keys, ParameterError, Problem, exactly, micros};

type Read<T> = Result<T, ParameterError>;

/// Sectors of a MiB.
const MIB: u32 = 2048;

/// What was published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Published {
    pub(super) peak_mb_per_s: f64,
    pub(super) bfq_mb_per_s: f64,
    pub(super) merging_mb_per_s: f64,
    pub(super) mq_deadline_lock_us: f64,
    pub(super) bfq_lock_us: f64,
}

/// The instructions of requests as `cargo xtask bench sched` has pinned them.
const PINS: &str = include_str!("../../../instructions.toml");

/// Instructions of a request of our own schedulers, 16 tasks with 16 outstanding each. What there
/// is without a scheduler is not done under its lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instructions {
    pub(super) none: f64,
    pub(super) mq_deadline: f64,
    pub(super) bfq: f64,
    pub(super) bfq_merging: f64,
}

impl Instructions {
    /// Those that are pinned.
    pub(super) fn pinned() -> Self {
        #[derive(Deserialize)]
        struct Pins {
            instructions: BTreeMap<String, f64>,
        }
        let pins: Pins = toml::from_str(PINS).expect("our own file");
        let of = |scheduler: &str| pins.instructions[&format!("{scheduler}/16x16")];
        Self {
            none: of("none"),
            mq_deadline: of("mq-deadline"),
            bfq: of("bfq"),
            bfq_merging: of("bfq-merging"),
        }
    }
}

/// What the file says.
#[derive(Clone, Debug)]
pub(super) struct StudyFile {
    pub(super) about: String,
    pub(super) device: String,
    pub(super) host: String,
    pub(super) runs: u32,
    pub(super) published: Published,
    /// The load, with the seed 1.
    pub(super) load: DbenchParameters,
}

impl StudyFile {
    pub(super) fn read(path: &Path, text: &str) -> Read<Self> {
        let mut keys = Keys::open(path, text)?;
        let about = keys.text("about")?;
        let device = keys.text("device")?;
        let host = keys.text("host")?;
        let runs = keys.small("runs", 1..=100)?;
        let published = keys.table("published", published)?;
        let load = load(&mut keys)?;
        keys.end()?;
        Ok(Self { about, device, host, runs, published, load })
    }
}

fn published(keys: &mut Keys<'_>) -> Read<Published> {
    Ok(Published {
        peak_mb_per_s: keys.number("peak_mb_per_s", 1.0..=1e5)?,
        bfq_mb_per_s: keys.number("bfq_mb_per_s", 1.0..=1e5)?,
        merging_mb_per_s: keys.number("merging_mb_per_s", 1.0..=1e5)?,
        mq_deadline_lock_us: keys.number("mq_deadline_lock_us", 0.01..=1e3)?,
        bfq_lock_us: keys.number("bfq_lock_us", 0.01..=1e3)?,
    })
}

fn load(keys: &mut Keys<'_>) -> Read<DbenchParameters> {
    let load = keys.table("clients", |keys| {
        Ok(DbenchParameters {
            clients: keys.small("count", 1..=10_000)?,
            flushes: flushes(keys)?,
            operation: micros(keys.number("operation_us", 0.1..=1e6)?),
            varies_percent: keys.small("varies_percent", 0..=100)?,
            operation_bytes: keys.number("operation_bytes", 1.0..=1e9)?,
            ..DbenchParameters::default()
        })
    })?;
    let load = keys.table("layout", |keys| {
        let places = Places {
            begin: Sector(keys.whole("data_mib", 0..=1 << 30)? * u64::from(MIB)),
            cores: keys.small("cores", 1..=1024)?,
            chunk_blocks: keys.whole("chunk_blocks", 128..=1 << 20)?,
            large_blocks: keys.small("large_blocks", 1..=1000)?,
        };
        let start = Sector(keys.whole("journal_mib", 0..=1 << 30)? * u64::from(MIB));
        let journal = JournalPlace { start, ..load.journal };
        Ok(DbenchParameters { places, journal, ..load })
    })?;
    let load = keys.table("journal", |keys| {
        let level = keys.small("level", 0..=7)?;
        let level = u8::try_from(level).expect("a level is small");
        let sectors = SectorCount(keys.small("mib", 1..=1 << 20)? * MIB);
        Ok(DbenchParameters {
            journal: JournalPlace { sectors, ..load.journal },
            commit_blocks: keys.small("commit_blocks", 1..=100)?,
            client_blocks: keys.small("client_blocks", 0..=20)?,
            journal_prio: IoPrio::be(level).expect("0 to 7 are levels"),
            ..load
        })
    })?;
    keys.table("run", |keys| {
        let apart = Nanos::from_millis(keys.whole("apart_ms", 0..=100_000)?);
        let from = Nanos::from_millis(keys.whole("ramp_ms", 0..=1_000_000)?);
        let window = Nanos::from_millis(keys.whole("window_ms", 1..=1_000_000)?);
        Ok(DbenchParameters { apart, from, until: from + window, ..load })
    })
}

/// Rows of operations, file and blocks.
fn flushes(keys: &mut Keys<'_>) -> Read<Vec<Flush>> {
    let mut flushes = Vec::new();
    for row in keys.rows("flushes")? {
        let [Some(operations), Some(file @ ..10_000), Some(blocks @ 1..=128)] = row.map(exactly)
        else {
            return Err(keys.refuse(Problem::Unexpected {
                what: "a row of `clients.flushes`".to_owned(),
                found: format!("{row:?}"),
                allowed:
                    "operations, a file (0 to 9999) and blocks of it (1 to 128), whole numbers"
                        .to_owned(),
            }));
        };
        flushes.push(Flush { operations, file, blocks });
    }
    Ok(flushes)
}
