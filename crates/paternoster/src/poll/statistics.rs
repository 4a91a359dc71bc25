//! What an estimator has learned and done, for people to read.

use super::class::PollClass;
use super::policy::{PollPolicy, Ppm};
use super::window::WindowTimes;
use crate::time::Nanos;

/// Why nobody sleeps for the I/Os of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyAwake {
    /// The policy never sleeps.
    Policy,
    /// Fewer than 64 completion times are known.
    Learning,
    /// What a sleep costs has not been measured.
    Uncalibrated,
    /// A sleep would cost more CPU time than it saves.
    NotWorth,
    /// Sleeps end so late, one in a hundred by a third of a completion time later than most, that
    /// the CPU is somebody else's; or it is so for long more often where the thread sleeps than
    /// where it polls.
    Crowded,
    /// Even the shortest sleep would add more latency than is allowed.
    NoRoom,
    /// Sleeping made the slowest I/Os slower.
    Guard,
}

impl WhyAwake {
    /// Its name, in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Learning => "learning",
            Self::Uncalibrated => "uncalibrated",
            Self::NotWorth => "not_worth",
            Self::Crowded => "crowded",
            Self::NoRoom => "no_room",
            Self::Guard => "guard",
        }
    }
}

/// How the I/Os of a class are waited for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By polling from the start.
    Poll(WhyAwake),
    /// By sleeping that long, and polling then.
    Sleep(Nanos),
    /// By an interrupt.
    Block,
}

/// A class of I/O.
#[derive(Clone, Copy, Debug)]
pub struct ClassStatistics {
    /// Which.
    pub class: PollClass,
    /// The last window of 100 ms that had samples, as Linux's `poll_stat` shows it.
    pub window: WindowTimes,
    /// How its I/Os are waited for.
    pub choice: Choice,
    /// One in a hundred is faster, as far as `auto` knows; zero where it knows nothing.
    pub q01: Nanos,
    /// The median.
    pub q50: Nanos,
    /// One in a hundred is slower.
    pub q99: Nanos,
    /// I/Os that are done.
    pub ios: u64,
    /// Those that somebody slept for.
    pub slept_for: u64,
    /// Those of them that were done before the sleep ended.
    pub misses: u64,
    /// I/Os that nobody slept for, so that their time is known.
    pub probes: u64,
    /// How often the sleep was halved because the device got faster.
    pub fallbacks: u64,
    /// What part of the allowance is used; less than all of it after bad windows.
    pub scale: Ppm,
    /// How long sleeping stops the next time: 2048 I/Os, so often doubled.
    pub guard_level: u8,
}

/// How late sleeps of a kind end.
#[derive(Clone, Copy, Debug)]
pub struct OvershootStatistics {
    /// The shortest sleep of the kind.
    pub from: Nanos,
    /// The median.
    pub p50: Nanos,
    /// One in a hundred is later.
    pub p99: Nanos,
}

/// How often a thread lost the CPU to something else for 200 µs or more, in the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallStatistics {
    /// How long it slept, or polled, with the stalls; after 64 s of both all counts half.
    pub time: Nanos,
    /// How often.
    pub stalls: u64,
    /// For how long together.
    pub lost: Nanos,
}

/// What an estimator has learned and done.
#[derive(Clone, Debug)]
pub struct PollStatistics {
    /// How it waits.
    pub policy: PollPolicy,
    /// The classes that had I/Os, in order.
    pub classes: Vec<ClassStatistics>,
    /// How late sleeps end, shortest first; of kinds of which enough is known. Stalls are left out
    /// where they are one in ten at most.
    pub overshoots: Vec<OvershootStatistics>,
    /// Sleeps that ended 200 µs late or more.
    pub stalls_asleep: StallStatistics,
    /// Looks that came so long after the one before.
    pub stalls_polling: StallStatistics,
    /// CPU time of going to sleep and waking up, once it is known.
    pub sleep_cost: Option<Nanos>,
    /// Sleeps.
    pub sleeps: u64,
    /// Those that something else ended before their time.
    pub woken_early: u64,
    /// Sleeps at whose end something was done.
    pub found: u64,
    /// Time asleep, from asking to running again.
    pub slept: Nanos,
    /// I/Os that nobody slept for, of all classes.
    pub awake_for: u64,
}
