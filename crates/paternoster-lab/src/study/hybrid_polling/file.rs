//! The study's file of parameters: machines and devices.

use std::path::Path;

use paternoster::poll::PollClass;
use paternoster::{Direction, SectorCount};

use super::law::{Overshoots, StallLaw, Times, nanos};
use super::simulate::{Length, Machine, Stream};
use paternoster_model::parameter_file::{Keys, ParameterError, Problem};

type Read<T> = Result<T, ParameterError>;

/// Times, in µs.
const US: std::ops::RangeInclusive<f64> = 0.0..=1e5;

/// A device, and the machine that waits for it.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) machine: Machine,
    /// It was looked at while constants of `auto` were chosen.
    pub(super) seen: bool,
    pub(super) streams: Vec<Stream>,
}

/// What the file says.
#[derive(Clone, Debug)]
pub(super) struct StudyFile {
    pub(super) about: String,
    pub(super) runs: u32,
    pub(super) length: Length,
    /// The first is the post's.
    pub(super) devices: Vec<Device>,
}

impl StudyFile {
    pub(super) fn read(path: &Path, text: &str) -> Read<Self> {
        let mut keys = Keys::open(path, text)?;
        let about = keys.text("about")?;
        let runs = keys.small("runs", 1..=100)?;
        let ramp = keys.whole("ramp_ios", 0..=10_000_000)?;
        let ios = keys.whole("ios", 1..=10_000_000)?;
        let machines = keys.table("machines", |keys| {
            Ok([
                ("post", keys.table("post", machine)?),
                ("fast", keys.table("fast", machine)?),
                ("virtual", keys.table("virtual", machine)?),
                ("shared", keys.table("shared", machine)?),
            ])
        })?;
        let devices = keys.tables("devices", |keys| device(keys, &machines))?;
        keys.end()?;
        Ok(Self { about, runs, length: Length { ramp, ios }, devices })
    }
}

fn machine(keys: &mut Keys<'_>) -> Read<Machine> {
    Ok(Machine {
        submit: nanos(keys.number("submit_us", US)?),
        sleep: nanos(keys.number("sleep_us", US)?),
        interrupt: nanos(keys.number("interrupt_us", US)?),
        overshoots: Overshoots {
            base_us: keys.number("overshoot_us", US)?,
            deviation_us: keys.number_or("overshoot_deviation_us", 0.0, US)?,
            gamma_us: keys.number_or("overshoot_gamma_us", 0.0, US)?,
            rare: keys.number_or("rare", 0.0, 0.0..=1.0)?,
            rare_us: keys.number_or("rare_us", 0.0, US)?,
        },
        stalls: StallLaw {
            every_us: keys.number_or("stall_every_us", 0.0, 0.0..=1e9)?,
            length_us: keys.number_or("stall_us", 0.0, US)?,
        },
    })
}

fn device(keys: &mut Keys<'_>, machines: &[(&str, Machine)]) -> Read<Device> {
    Ok(Device {
        name: keys.text("name")?,
        about: keys.text("about")?,
        machine: keys.one_of("machine", machines)?,
        seen: keys.flag("seen")?,
        streams: keys.tables("streams", stream)?,
    })
}

fn stream(keys: &mut Keys<'_>) -> Read<Stream> {
    let sectors = keys.small("sectors", 1..=1 << 20)?;
    let writes = keys.has("writes") && keys.flag("writes")?;
    let direction = if writes { Direction::Write } else { Direction::Read };
    let class = PollClass::of(direction, SectorCount(sectors)).expect("it has sectors");
    let stall_every = keys.number_or("stall_every", 0.0, 0.0..=1e9)?;
    let stall_ios = keys.number_or("stall_ios", 0.0, 0.0..=1e9)?;
    let times = Times {
        base_us: keys.number_or("base_us", 0.0, US)?,
        uniform_us: keys.number_or("uniform_us", 0.0, US)?,
        gamma_us: keys.number_or("gamma_us", 0.0, US)?,
        pareto_us: keys.number_or("pareto_us", 0.0, US)?,
        pareto_alpha: keys.number_or("pareto_alpha", 1.0, 0.5..=100.0)?,
        median_us: keys.number_or("median_us", 0.0, US)?,
        sigma: keys.number_or("sigma", 0.0, 0.0..=5.0)?,
        rare: keys.number_or("rare", 0.0, 0.0..=1.0)?,
        rare_us: keys.number_or("rare_us", 0.0, US)?,
        fast_part: keys.number_or("fast_part", 0.0, 0.0..=1.0)?,
        fast_us: keys.number_or("fast_us", 0.0, US)?,
        fast_uniform_us: keys.number_or("fast_uniform_us", 0.0, US)?,
        midway: keys.number_or("midway", 1.0, 0.001..=1000.0)?,
        drift: keys.number_or("drift", 0.0, 0.0..=0.9)?,
        drift_ios: keys.number_or("drift_ios", 1.0, 1.0..=1e9)?,
        stall_every: whole(stall_every),
        stall_ios: whole(stall_ios),
        stall_us: keys.number_or("stall_us", 0.0, US)?,
        stall_uniform_us: keys.number_or("stall_uniform_us", 0.0, US)?,
    };
    if times.base_us <= 0.0 && times.median_us <= 0.0 {
        return Err(keys.refuse(Problem::Missing {
            what: "`base_us` or `median_us` of a stream".to_owned(),
            allowed: "how long its I/Os take, above 0".to_owned(),
        }));
    }
    Ok(Stream { class, times })
}

/// Numbers of I/Os, which are in their range.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> u64 {
    number as u64
}
