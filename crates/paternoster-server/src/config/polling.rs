//! How the thread of a disk waits: `poll` and, where that is `hybrid`, the tunables of Linux and of
//! a patch of 2017, by their names.

use paternoster::Nanos;
use paternoster::poll::{AutoTunables, OfMean, PollPolicy, Ppm};

use super::error::Problem;
use super::keys::kinds::words;
use super::keys::{DiskKeys, Key, Keys as _, Object};
use super::mistakes::Mistakes;

/// How the thread of a disk waits for its device and its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollMode {
    /// It finds out: see [`PollPolicy::Auto`]. It looks for clients' commands too.
    #[default]
    Auto,
    /// It sleeps at once.
    Interrupt,
    /// It looks again and again while something is in the device.
    Classic,
    /// It sleeps for a time first.
    Hybrid,
}

impl PollMode {
    const ALL: [Self; 4] = [Self::Auto, Self::Interrupt, Self::Classic, Self::Hybrid];

    /// Its name in configurations and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Interrupt => "interrupt",
            Self::Classic => "classic",
            Self::Hybrid => "hybrid",
        }
    }
}

words!(PollMode);

/// The mode and what `hybrid` goes by. Fields are named as their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// In what way the thread waits.
    pub poll: PollMode,
    /// How long it sleeps first, in µs: 0 is a part of the mean, -1 is not at all.
    pub io_poll_delay: i64,
    /// Which part, in percent. Linux has half of it.
    pub io_poll_part: u8,
    /// Where the delay is 0, 1 is to sleep no less than the least.
    pub io_poll_hyb_use_min: u8,
    /// And then that much less, in ns, or not at all.
    pub io_poll_hyb_adjust: u32,
}

/// As Linux: half of the mean, where it is `hybrid`.
impl Default for Polling {
    fn default() -> Self {
        Self {
            poll: PollMode::Auto,
            io_poll_delay: 0,
            io_poll_part: 50,
            io_poll_hyb_use_min: 0,
            io_poll_hyb_adjust: 0,
        }
    }
}

impl From<PollMode> for Polling {
    fn from(poll: PollMode) -> Self {
        Self { poll, ..Self::default() }
    }
}

impl Polling {
    /// The mode's name.
    pub const fn name(self) -> &'static str {
        self.poll.name()
    }

    /// The policy of the core.
    pub fn policy(self) -> PollPolicy {
        match self.poll {
            PollMode::Auto => PollPolicy::Auto(AutoTunables::DEFAULT),
            PollMode::Interrupt => PollPolicy::Interrupt,
            PollMode::Classic => PollPolicy::Classic,
            PollMode::Hybrid => {
                let adjust = Nanos::new(self.io_poll_hyb_adjust.into());
                let use_min = self.io_poll_hyb_use_min == 1;
                let policy = PollPolicy::hybrid(self.io_poll_delay, use_min, adjust);
                match policy.expect("the delay is within its range") {
                    PollPolicy::OfMean(of_mean) => {
                        let part = Ppm(u32::from(self.io_poll_part) * 10_000);
                        PollPolicy::OfMean(OfMean { part, ..of_mean })
                    }
                    other => other,
                }
            }
        }
    }

    /// What is in force of it: only `hybrid` has tunables.
    #[must_use]
    pub fn in_force(self) -> Self {
        if self.poll == PollMode::Hybrid { self } else { self.poll.into() }
    }
}

/// The keys that `hybrid` has.
pub(crate) fn of_hybrid() -> impl Iterator<Item = &'static Key<DiskKeys>> {
    DiskKeys::part("polling").filter(|key| key.name != "poll")
}

/// Refuses tunables of `hybrid` without it, as far as the mode is known.
pub(super) fn check(draft: &Object<DiskKeys>, mistakes: &mut Mistakes) {
    let poll = draft.keys.polling.poll;
    if draft.states.poll.is_wrong() || poll == PollMode::Hybrid {
        return;
    }
    for key in of_hybrid() {
        let problem = Problem::NotHybrid { key: key.name, poll: poll.name() };
        mistakes.note(draft.state(key.name).refuse(problem));
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
        config.map(|config| config.disks[0].keys.polling).map_err(|error| error.to_string())
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
