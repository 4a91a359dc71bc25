//! How a disk's thread has waited.

use paternoster::Nanos;
use paternoster::poll::{Choice, ClassStatistics, OvershootStatistics, WhyAwake};
use paternoster_disk::{LookStats, WaitStats};
use serde::{Deserialize, Serialize};

use crate::config::Polling;

/// The waits of the thread of a disk, by `poll` of its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollStat {
    /// `auto`, `interrupt`, `classic` or `hybrid`.
    pub mode: String,
    /// Commands that are done.
    pub commands: u64,
    /// CPU time of the thread, in nanoseconds.
    pub cpu_ns: u64,
    /// Sleeps of whatever kind that something ended before their time: an interrupt of the
    /// device's, or the wake-up of a client or another thread.
    pub interrupts: u64,
    /// Sleeps that were to end when I/Os in the device were nearly done.
    pub sleeps: u64,
    /// The time of these sleeps, in nanoseconds.
    pub slept_ns: u64,
    /// Those that something else ended: a completion, a client, a moment.
    pub woken_early: u64,
    /// Those at whose end a transfer was done.
    pub missed: u64,
    /// How often the thread looked for completions.
    pub polls: u64,
    /// The time of that, in nanoseconds.
    pub polled_ns: u64,
    /// How often the thread looked for a client's command before it slept, or instead.
    pub looks: u64,
    /// Those of them in which something came, and the thread did not sleep.
    pub found: u64,
    /// The time of all these, in nanoseconds.
    pub looked_ns: u64,
    /// How long the next one takes at most, in nanoseconds; 0 where the thread sleeps at once.
    pub next_ns: u64,
    /// Looks for either that ended as another thread had the processor.
    pub crowded: u64,
    /// CPU time of going to sleep and waking up, in nanoseconds, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep_cost_ns: Option<u64>,
    /// How late sleeps end, those of each kind that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overshoots: Vec<OvershootStat>,
    /// The classes of reads and writes that the device has had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<PollClassStat>,
}

/// How late sleeps of a kind end, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OvershootStat {
    /// The shortest sleep of the kind.
    pub from_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// One in a hundred is later.
    pub p99_ns: u64,
}

/// A class of reads or writes: those of a size, to the power of two below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollClassStat {
    /// Its name in Linux's `poll_stat`, as `read (4096 Bytes)`.
    pub class: String,
    /// What is done about it now: `sleep`, `poll` or `interrupt`.
    pub choice: String,
    /// For how long its I/Os are slept for, in nanoseconds, where the choice is `sleep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep_ns: Option<u64>,
    /// Why they are not slept for, where the choice is `poll`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// I/Os of the last window of 100 ms that had some, as Linux's `poll_stat` has them.
    pub samples: u64,
    /// The mean of their times, in nanoseconds.
    pub mean_ns: u64,
    /// The least.
    pub min_ns: u64,
    /// The greatest.
    pub max_ns: u64,
    /// I/Os that are done.
    pub ios: u64,
    /// Those that the thread slept for, with `auto`.
    pub slept_for: u64,
    /// Those of them that were done before the sleep was to end.
    pub misses: u64,
}

impl PollStat {
    /// `commands` are those that are done, `cpu_ns` is the CPU time of the thread.
    pub(crate) fn new(poll: Polling, stats: &WaitStats, commands: u64, cpu_ns: u64) -> Self {
        let WaitStats { device, looks, .. } = stats;
        let LookStats { looks, found, looked, next } = *looks;
        Self {
            mode: poll.name().to_owned(),
            commands,
            cpu_ns,
            interrupts: stats.interrupts,
            sleeps: device.sleeps,
            slept_ns: device.slept.as_nanos(),
            woken_early: device.woken_early,
            missed: device.found,
            polls: stats.polls,
            polled_ns: stats.polled.as_nanos(),
            looks,
            found,
            looked_ns: looked.as_nanos(),
            next_ns: next.as_nanos(),
            crowded: stats.crowded,
            sleep_cost_ns: device.sleep_cost.map(Nanos::as_nanos),
            overshoots: device.overshoots.iter().map(OvershootStat::of).collect(),
            classes: device.classes.iter().map(PollClassStat::of).collect(),
        }
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        let since = |count: fn(&Self) -> u64| count(self).saturating_sub(count(before));
        let class = |class: &PollClassStat| {
            let known = before.classes.iter().find(|known| known.class == class.class);
            known.map_or_else(|| class.clone(), |known| class.since(known))
        };
        Self {
            mode: self.mode.clone(),
            commands: since(|stat| stat.commands),
            cpu_ns: since(|stat| stat.cpu_ns),
            interrupts: since(|stat| stat.interrupts),
            sleeps: since(|stat| stat.sleeps),
            slept_ns: since(|stat| stat.slept_ns),
            woken_early: since(|stat| stat.woken_early),
            missed: since(|stat| stat.missed),
            polls: since(|stat| stat.polls),
            polled_ns: since(|stat| stat.polled_ns),
            looks: since(|stat| stat.looks),
            found: since(|stat| stat.found),
            looked_ns: since(|stat| stat.looked_ns),
            next_ns: self.next_ns,
            crowded: since(|stat| stat.crowded),
            sleep_cost_ns: self.sleep_cost_ns,
            overshoots: self.overshoots.clone(),
            classes: self.classes.iter().map(class).collect(),
        }
    }
}

impl OvershootStat {
    fn of(stats: &OvershootStatistics) -> Self {
        let OvershootStatistics { from, p50, p99 } = *stats;
        Self { from_ns: from.as_nanos(), p50_ns: p50.as_nanos(), p99_ns: p99.as_nanos() }
    }
}

impl PollClassStat {
    fn of(stats: &ClassStatistics) -> Self {
        let (choice, sleep_ns, why) = match stats.choice {
            Choice::Sleep(sleep) => ("sleep", Some(sleep.as_nanos()), None),
            Choice::Poll(why) => ("poll", None, Some(why)),
            Choice::Block => ("interrupt", None, None),
        };
        let window = &stats.window;
        Self {
            class: stats.class.to_string(),
            choice: choice.to_owned(),
            sleep_ns,
            why: why.map(WhyAwake::name).map(str::to_owned),
            samples: window.samples,
            mean_ns: window.mean().as_nanos(),
            min_ns: window.min.as_nanos(),
            max_ns: window.max.as_nanos(),
            ios: stats.ios,
            slept_for: stats.slept_for,
            misses: stats.misses,
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            ios: self.ios.saturating_sub(before.ios),
            slept_for: self.slept_for.saturating_sub(before.slept_for),
            misses: self.misses.saturating_sub(before.misses),
            ..self.clone()
        }
    }
}
