//! A host from a TOML file, such as `hosts/ten-cores.toml`.

use std::ops::RangeInclusive;
use std::path::Path;

use paternoster::{Hz, SchedulerKind, Sector, SectorCount};

use super::{Host, IoCosts, SchedulerCosts};
use crate::JournalPlace;
use crate::cache::{PAGE, Throttling, WritebackRules};
use crate::threads::{PageCacheParameters, WritebackGroup};
use paternoster_model::parameter_file::{Keys, ParameterError, Problem, micros};

type Read<T> = Result<T, ParameterError>;

/// How many cores a host may have.
pub const CORES: RangeInclusive<u32> = 1..=4096;

/// Times in µs, more than any machine takes for an I/O.
const MICROS: RangeInclusive<f64> = 0.0..=1e6;

impl Host {
    /// Reads the text of a file; `path` is what errors call it.
    pub fn from_toml(path: &Path, text: &str) -> Read<Self> {
        let mut keys = Keys::open(path, text)?;
        keys.one_of("kind", &[("host", ())])?;
        keys.text("name")?;
        let cores = keys.small("cores", CORES)?;
        let ticks = keys.small("hz", 1..=1000)?;
        let hz = Hz::new(ticks).ok_or_else(|| {
            keys.refuse(Problem::Unexpected {
                what: "`hz`".to_owned(),
                found: ticks.to_string(),
                allowed: "1 to 1000, where a tick is a whole number of ns".to_owned(),
            })
        })?;
        for key in ["about", "valid"] {
            keys.text(key)?;
        }
        let io = keys.table("io", |keys| {
            Ok(IoCosts {
                submit: micros(keys.number("submit_us", MICROS)?),
                complete: micros(keys.number("complete_us", MICROS)?),
                wake: micros(keys.number("wake_us", MICROS)?),
                varies_percent: keys.small("varies_percent", 0..=100)?,
            })
        })?;
        let page_cache = keys.table("page_cache", page_cache)?;
        let schedulers = keys.table("schedulers", |keys| {
            let mut all = [SchedulerCosts::default(); SchedulerKind::ALL.len()];
            for (costs, kind) in all.iter_mut().zip(SchedulerKind::ALL) {
                *costs = keys.table(kind.name(), scheduler)?;
            }
            Ok(all)
        })?;
        keys.end()?;
        Ok(Self { cores, hz, io, schedulers, page_cache })
    }
}

fn page_cache(keys: &mut Keys<'_>) -> Read<PageCacheParameters> {
    const PAGE_KIB: u64 = PAGE / 1024;
    let mut parameters = PageCacheParameters {
        read_ahead_pages: keys.whole("read_ahead_kib", 0..=1 << 20)? / PAGE_KIB,
        copy_page: micros(keys.number("copy_page_us", MICROS)?),
        memory_bytes: keys.whole("memory_mib", 1..=1 << 30)? << 20,
        ..PageCacheParameters::default()
    };
    if keys.has("writeback") {
        keys.table("writeback", |keys| writeback(keys, &mut parameters))?;
    }
    if keys.has("journal") {
        parameters.journal = Some(keys.table("journal", |keys| {
            Ok(JournalPlace {
                start: Sector(keys.whole("start_sector", 0..=1 << 50)?),
                sectors: SectorCount(keys.small("sectors", 8..=1 << 31)?),
            })
        })?);
    }
    Ok(parameters)
}

fn writeback(keys: &mut Keys<'_>, parameters: &mut PageCacheParameters) -> Read<()> {
    let seconds = |number: f64| micros(number * 1e6);
    parameters.writeback = WritebackRules {
        background_percent: keys.whole("background_percent", 0..=100)?,
        limit_percent: keys.whole("limit_percent", 1..=100)?,
        expire: seconds(keys.number("expire_s", 0.0..=1e6)?),
        wake_up: seconds(keys.number("wake_up_s", 0.01..=1e6)?),
        turn_pages: keys.whole("turn_pages", 1..=1 << 30)?,
    };
    let throttling = [("sleeps", Throttling::Sleeps), ("writes-back", Throttling::WritesBack)];
    parameters.throttling = keys.one_of("throttling", &throttling)?;
    let groups = [("root", WritebackGroup::Root), ("owner", WritebackGroup::Owner)];
    parameters.writeback_group = keys.one_of("group", &groups)?;
    Ok(())
}

fn scheduler(keys: &mut Keys<'_>) -> Read<SchedulerCosts> {
    Ok(SchedulerCosts {
        unlocked: micros(keys.number("unlocked_us", MICROS)?),
        hold: micros(keys.number("hold_us", MICROS)?),
        hold_after_wait: micros(keys.number("hold_after_wait_us", MICROS)?),
        queue_merging: micros(keys.number_or("queue_merging_us", 0.0, MICROS)?),
    })
}
