//! How the thread of a disk waits: `poll` and, where that is `hybrid`, the tunables of Linux and of
//! a patch of 2017, by their names.

use paternoster::Nanos;
use paternoster::poll::{AutoTunables, OfMean, PollPolicy, Ppm};

use super::draft::{At, DraftDisk};
use super::error::{Mistake, Problem};
use super::mistakes::Mistakes;

/// How the thread of a disk waits for its device and its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polling {
    /// It finds out: see [`PollPolicy::Auto`]. It looks for clients' commands too.
    #[default]
    Auto,
    /// It sleeps at once.
    Interrupt,
    /// It looks again and again while something is in the device.
    Classic,
    /// It sleeps for a time first.
    Hybrid(Hybrid),
}

/// For how long it sleeps first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hybrid {
    /// `io_poll_delay`, in µs: 0 is a part of the mean, -1 is not at all.
    pub delay: i64,
    /// `io_poll_part`: which part, in percent. Linux has half of it.
    pub part: u8,
    /// `io_poll_hyb_use_min`: where the delay is 0, no less than the least.
    pub use_min: bool,
    /// `io_poll_hyb_adjust`: and then that much less, or not at all.
    pub adjust: Nanos,
}

/// As Linux: half of the mean.
impl Default for Hybrid {
    fn default() -> Self {
        Self { delay: 0, part: 50, use_min: false, adjust: Nanos::ZERO }
    }
}

impl Polling {
    /// All names.
    pub const NAMES: [&str; 4] = ["auto", "interrupt", "classic", "hybrid"];

    /// The one of that name, with the tunables that it has unless they are set.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "interrupt" => Some(Self::Interrupt),
            "classic" => Some(Self::Classic),
            "hybrid" => Some(Self::Hybrid(Hybrid::default())),
            _ => None,
        }
    }

    /// Its name in configurations and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Interrupt => "interrupt",
            Self::Classic => "classic",
            Self::Hybrid(_) => "hybrid",
        }
    }

    /// The policy of the core.
    pub fn policy(self) -> PollPolicy {
        match self {
            Self::Auto => PollPolicy::Auto(AutoTunables::DEFAULT),
            Self::Interrupt => PollPolicy::Interrupt,
            Self::Classic => PollPolicy::Classic,
            Self::Hybrid(Hybrid { delay, part, use_min, adjust }) => {
                let policy = PollPolicy::hybrid(delay, use_min, adjust);
                match policy.expect("the delay is within its range") {
                    PollPolicy::OfMean(of_mean) => {
                        let part = Ppm(u32::from(part) * 10_000);
                        PollPolicy::OfMean(OfMean { part, ..of_mean })
                    }
                    other => other,
                }
            }
        }
    }

    /// Its tunables and their values; only `hybrid` has some.
    pub fn tunables(self) -> impl Iterator<Item = (HybridTunable, i64)> {
        let hybrid = match self {
            Self::Hybrid(hybrid) => Some(hybrid),
            _ => None,
        };
        let values = move |hybrid: Hybrid| HybridTunable::ALL.map(|it| (it, it.of(hybrid)));
        hybrid.map(values).into_iter().flatten()
    }
}

/// A tunable of `hybrid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HybridTunable {
    /// [`Hybrid::delay`].
    Delay,
    /// [`Hybrid::part`].
    Part,
    /// [`Hybrid::use_min`].
    UseMin,
    /// [`Hybrid::adjust`].
    Adjust,
}

impl HybridTunable {
    /// All, in the order of their making.
    pub const ALL: [Self; 4] = [Self::Delay, Self::Part, Self::UseMin, Self::Adjust];

    /// Its name, in Linux and in configurations; Linux has no `io_poll_part`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "io_poll_delay",
            Self::Part => "io_poll_part",
            Self::UseMin => "io_poll_hyb_use_min",
            Self::Adjust => "io_poll_hyb_adjust",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tunable| tunable.name() == name)
    }

    /// The least and the greatest value, and the unit.
    pub const fn range(self) -> (i64, i64, &'static str) {
        match self {
            Self::Delay => (-1, 4_294_967, "µs"),
            Self::Part => (1, 100, "%"),
            Self::UseMin => (0, 1, ""),
            Self::Adjust => (0, 4_294_967_295, "ns"),
        }
    }

    /// Its value.
    pub fn of(self, hybrid: Hybrid) -> i64 {
        match self {
            Self::Delay => hybrid.delay,
            Self::Part => hybrid.part.into(),
            Self::UseMin => hybrid.use_min.into(),
            Self::Adjust => i64::try_from(hybrid.adjust.as_nanos()).unwrap_or(i64::MAX),
        }
    }

    /// Sets it, if the value is within its range.
    pub fn set(self, hybrid: &mut Hybrid, value: i64) -> Option<()> {
        let (min, max, _) = self.range();
        if !(min..=max).contains(&value) {
            return None;
        }
        match self {
            Self::Delay => hybrid.delay = value,
            Self::Part => hybrid.part = u8::try_from(value).ok()?,
            Self::UseMin => hybrid.use_min = value == 1,
            Self::Adjust => hybrid.adjust = Nanos::new(value.unsigned_abs()),
        }
        Some(())
    }
}

/// What a disk's keys say. None if one of them is wrong.
pub(super) fn check(draft: &DraftDisk, mistakes: &mut Mistakes) -> Option<Polling> {
    let polling = draft.poll.check_or(Polling::default(), mistakes, check_name);
    let mut values = [None; HybridTunable::ALL.len()];
    for (index, (tunable, key)) in HybridTunable::ALL.into_iter().zip(&draft.hybrid).enumerate() {
        values[index] = key.check(mistakes, |found| check_value(tunable, polling, found))?;
    }
    let polling = polling?;
    let Polling::Hybrid(mut hybrid) = polling else { return Some(polling) };
    for (tunable, value) in HybridTunable::ALL.into_iter().zip(values) {
        if let Some(value) = value {
            tunable.set(&mut hybrid, value).expect("it was checked");
        }
    }
    Some(Polling::Hybrid(hybrid))
}

fn check_name(found: &At<String>) -> Result<Polling, Mistake> {
    let refuse = || found.refuse(Problem::UnknownPoll { found: found.value.clone() });
    Polling::named(&found.value).map_or_else(refuse, Ok)
}

/// The value, if it is within its range and `poll` says that it means something.
fn check_value(
    tunable: HybridTunable,
    polling: Option<Polling>,
    found: &At<i64>,
) -> Result<i64, Mistake> {
    let key = tunable.name();
    if let Some(polling) = polling.filter(|polling| !matches!(polling, Polling::Hybrid(_))) {
        return found.refuse(Problem::NotHybrid { key, poll: polling.name() });
    }
    let (min, max, unit) = tunable.range();
    match tunable.set(&mut Hybrid::default(), found.value) {
        Some(()) => Ok(found.value),
        None => found.refuse(Problem::OutOfRange { key, value: found.value, min, max, unit }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use paternoster::poll::OfMean;

    use super::*;
    use crate::config::Config;

    fn polling(lines: &str) -> Result<Polling, String> {
        let toml = format!(
            "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n{lines}\n[exports.e]\ndisk = \"d\"\n"
        );
        let config = Config::from_toml(&toml, Path::new("c.toml"));
        config.map(|config| config.disks[0].poll).map_err(|error| error.to_string())
    }

    #[test]
    fn names_of_linux_mean_what_they_meant_there() {
        let policy = |lines| polling(lines).expect("allowed").policy();
        assert_eq!(policy(""), PollPolicy::Auto(AutoTunables::DEFAULT));
        assert_eq!(policy("poll = \"interrupt\""), PollPolicy::Interrupt);
        assert_eq!(policy("poll = \"classic\""), PollPolicy::Classic);
        assert_eq!(policy("poll = \"hybrid\""), PollPolicy::OfMean(OfMean::HALF));
        assert_eq!(policy("poll = \"hybrid\"\nio_poll_delay = -1"), PollPolicy::Classic);
        let fixed = policy("poll = \"hybrid\"\nio_poll_delay = 9");
        assert_eq!(fixed, PollPolicy::Fixed(Nanos::from_micros(9)));
        let of_min = policy(
            "poll = \"hybrid\"\nio_poll_delay = 0\nio_poll_hyb_use_min = 1\n\
             io_poll_hyb_adjust = 2000",
        );
        // As was proposed in answer to post 4.
        let part = OfMean { part: Ppm(600_000), ..OfMean::HALF };
        assert_eq!(policy("poll = \"hybrid\"\nio_poll_part = 60"), PollPolicy::OfMean(part));
        let adjust = Nanos::new(2000);
        assert_eq!(of_min, PollPolicy::OfMean(OfMean { use_min: true, adjust, ..OfMean::HALF }));
    }

    #[test]
    fn disk_in_memory_is_told_that_nobody_waits_for_it() {
        let notices = |lines: &str| {
            let toml = format!("[disks.d]\nsize = \"1M\"\n{lines}\n[exports.e]\ndisk = \"d\"\n");
            Config::from_toml(&toml, Path::new("c.toml")).expect("allowed").notices()
        };
        let expected = "disk \"d\": poll = \"classic\" has no effect on a memory disk, whose \
                        requests take no time";
        assert_eq!(notices("backend = \"memory\"\npoll = \"classic\""), [expected]);
        assert_eq!(notices("backend = \"memory\"\npoll = \"interrupt\""), [""; 0]);
        let modelled = "backend = \"modelled\"\nservers = 1\nservice_us = 9\npoll = \"classic\"";
        assert_eq!(notices(modelled), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_what_is_allowed() {
        let cases = [
            (
                "poll = \"poll\"",
                "poll = \"poll\": \"auto\", \"interrupt\", \"classic\" or \"hybrid\" is allowed",
            ),
            (
                "poll = \"hybrid\"\nio_poll_delay = -2",
                "io_poll_delay = -2: -1 to 4294967 µs is allowed",
            ),
            ("poll = \"hybrid\"\nio_poll_part = 0", "io_poll_part = 0: 1 to 100 % is allowed"),
            (
                "poll = \"hybrid\"\nio_poll_hyb_use_min = 2",
                "io_poll_hyb_use_min = 2: 0 to 1 is allowed",
            ),
            (
                "io_poll_hyb_adjust = 5",
                "io_poll_hyb_adjust has no effect with poll = \"auto\"; it is allowed with poll = \
                 \"hybrid\"",
            ),
        ];
        for (lines, expected) in cases {
            let refused = polling(lines).expect_err(lines);
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
