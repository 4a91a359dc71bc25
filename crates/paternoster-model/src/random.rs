//! Random numbers of everything that is simulated: the same everywhere for the same seed.

use std::f64::consts::PI;

use paternoster::Nanos;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

use crate::Command;

/// 2^53.
const STEPS: f64 = 9_007_199_254_740_992.0;

/// Who draws. With its number each has a stream of its own, so one who draws more often changes
/// nothing for the others. Devices have a stream for each request ([`Chance`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A job of fio, which numbers its streams itself.
    Job,
    /// A device whose times have a law, but for a solid-state drive.
    Device,
    /// When a device pauses.
    Pauses,
    /// A client of a tenant, by its number: what it asks for, and when.
    Tenants,
    /// When the thread that drives a scheduler is stalled.
    Owner,
    /// A solid-state drive.
    SolidState,
    /// dbench.
    Dbench,
    /// Threads at locks.
    Locks,
    /// Who resamples differences of runs, for the bounds of their mean.
    Resamples,
    /// Hybrid polling: I/Os by the number of their stream from 1 on, wake-ups 0, stalls 999.
    Polling,
}

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// The stream of that seed and number of whoever draws.
    pub fn new(seed: u64, who: Who, number: u64) -> Self {
        match who {
            Who::Job => Self::numbered(seed, number),
            Who::Device => Self::numbered(seed, 1),
            Who::Pauses => Self::numbered(seed, 2),
            Who::Tenants => Self::numbered(seed ^ mixed(number), 3),
            Who::Owner => Self::numbered(seed, 4),
            Who::Resamples => Self::numbered(seed, 5),
            Who::SolidState | Who::Dbench | Who::Locks => Self::seeded(seed),
            Who::Polling => Self::seeded(seed * 1000 + number),
        }
    }

    fn seeded(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The `number`th stream of a seed, which has nothing in common with the others.
    fn numbered(seed: u64, number: u64) -> Self {
        Self::seeded(seed ^ Self::seeded(number).bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, all alike.
    ///
    /// # Panics
    ///
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is a number below");
        // Of 2^64 draws, the `surplus` first would make some numbers more likely than others.
        let surplus = (u64::MAX - end + 1) % end;
        loop {
            let product = u128::from(self.bits()) * u128::from(end);
            let [low, high] = [product & u128::from(u64::MAX), product >> 64];
            if low >= u128::from(surplus) {
                return u64::try_from(high).expect("it is below `end`");
            }
        }
    }

    /// A number from 0 on and below 1, of 53 bits.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / STEPS
    }

    /// A number above 0 and at most 1, of 53 bits.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn above_zero(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / STEPS
    }

    /// Whether something happens that happens in this part of all cases.
    pub fn happens(&mut self, part: f64) -> bool {
        self.unit() < part
    }

    /// Whether one of a hundred draws is among the first `percent`.
    pub fn percent(&mut self, percent: u8) -> bool {
        match percent {
            0 => false,
            100.. => true,
            percent => self.below(100) < u64::from(percent),
        }
    }

    /// A number from the first to the second, both included.
    pub fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        match (high - low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.bits(),
        }
    }

    /// A time from the first to the second, both included.
    pub fn time_between(&mut self, (low, high): (Nanos, Nanos)) -> Nanos {
        Nanos::new(self.between((low.as_nanos(), high.as_nanos())))
    }

    /// A time with this mean, exponentially distributed.
    pub fn exponential(&mut self, mean_us: f64) -> Nanos {
        span(-mean_us * libm::log(1.0 - self.unit()))
    }

    /// Any time up to so many microseconds.
    pub fn time_up_to(&mut self, us: f64) -> Nanos {
        span(us * self.unit())
    }

    /// The standard normal distribution, by the method of Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(2.0 * PI * self.unit())
    }
}

/// The chance of a request: what a device draws for it is the same in each run of a seed, whatever
/// else the device serves, and in which order. So runs under two schedulers differ by what the
/// schedulers do, and not by who met which chance.
///
/// ```text
///   seed ──┐
///   Chance ┴──▶ Draws: the times of this request, and its place
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chance(u64);

impl Chance {
    /// That of the `number`th request of somebody.
    pub fn of(who: u64, number: u64) -> Self {
        Self(mixed(mixed(who) ^ number))
    }

    /// That of a part of the request, which the device takes as one command.
    #[must_use]
    pub fn part(self, part: u64) -> Self {
        Self(mixed(self.0 ^ part))
    }
}

/// Where a device draws from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chances(u64);

impl Chances {
    /// Those of that seed.
    pub(crate) fn new(seed: u64, who: Who) -> Self {
        Self(Draws::new(seed, who, 0).bits())
    }

    /// The stream of a command.
    pub(crate) fn of(self, command: &Command) -> Draws {
        Draws::seeded(self.0 ^ command.chance.0)
    }
}

/// Other bits for each number, half of which change with each bit of it: the next of `SplitMix64`.
fn mixed(number: u64) -> u64 {
    SplitMix64::seed_from_u64(number).next_u64()
}

/// The span of so many microseconds, less what is not a whole nanosecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is far below 2^53 ns, and not negative"
)]
pub(crate) fn span(us: f64) -> Nanos {
    Nanos::new((us * 1000.0) as u64)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tests::{at, read, write};
    use crate::{Described, Model, describe_text};
    use paternoster::Sector;

    const LAW: &str = "service_us = 80\nspread = { law = \"log-normal\", sigma = 0.5 }\n";

    const HEAD: &str = "name = \"one\"\nabout = \"a law\"\nvalid = \"here\"\n";
    const CLEAN_UPS: &str = "clean_up_ms = 5\nclean_up_percent = 50\n";

    /// One device of each kind whose times have a law.
    fn devices() -> Vec<Described> {
        let room = "depth = 8\nsectors = 1000000\n";
        let files = [
            format!("kind = \"servers\"\nservers = 2\n{room}{LAW}"),
            format!("kind = \"channels\"\nchannels = 16\n{CLEAN_UPS}{LAW}"),
            format!("kind = \"flash\"\nchannels = 16\nbus_ns_per_kib = 500\n{CLEAN_UPS}{LAW}"),
            format!("kind = \"volume\"\niops = 10000\n{LAW}"),
            format!("kind = \"slices\"\ncommands = 100\nslice_ms = 1\n{LAW}"),
        ];
        let describe = |text: &String| {
            let text = format!("{HEAD}{text}");
            describe_text(Path::new("one.toml"), &text).expect("a device")
        };
        let files = files.iter().map(describe);
        files.chain([crate::describe_device("nvme-980pro").expect("it comes along")]).collect()
    }

    /// How long the commands take of those tags, each of which finds the device idle.
    fn times(device: &Described, tags: &[u32]) -> Vec<(u32, Nanos)> {
        let mut model = device.open(7).expect("a device");
        let mut times = Vec::new();
        for (&tag, second) in tags.iter().zip(1..) {
            let begin = at(second * 1_000_000);
            let command = if tag % 2 == 0 { read(tag) } else { write(tag) };
            // Far from one another: nothing is read ahead.
            let sector = Sector(u64::from(tag) * 1000 + 64);
            model.submit(begin, Command { tag, sector, ..command });
            let end = loop {
                let due = model.poll_timeout().expect("it is served");
                if model.poll(due).is_some() {
                    break due;
                }
            };
            times.push((tag, end.saturating_since(begin)));
        }
        times.sort_by_key(|(tag, _)| *tag);
        times
    }

    #[test]
    fn chance_of_a_request_is_the_same_in_whatever_order_requests_come() {
        for device in devices() {
            let forth = times(&device, &[0, 1, 2, 3, 4, 5]);
            assert_eq!(forth, times(&device, &[3, 5, 0, 4, 1, 2]), "{device:?}");
            let reads = forth.iter().filter(|(tag, _)| tag % 2 == 0);
            let others = reads.filter(|(_, time)| *time != forth[0].1);
            assert_eq!(others.count(), 2, "each has its own: {forth:?} of {device:?}");
        }
    }

    /// Of 10,000 neighbours 5,000, with a deviation of 50.
    #[test]
    fn chances_of_neighbours_have_nothing_in_common() {
        let half = |chance: fn(u64) -> Chance| {
            let chances = Chances::new(1, Who::Device);
            let first = |number| Draws::seeded(chances.0 ^ chance(number).0).happens(0.5);
            (0..10_000).filter(|&number| first(number) != first(number + 1)).count()
        };
        for count in [
            half(|number| Chance::of(1, number)),
            half(|who| Chance::of(who, 1)),
            half(|part| Chance::of(1, 1).part(part)),
        ] {
            assert!((4_800..5_200).contains(&count), "{count}");
        }
    }
}
