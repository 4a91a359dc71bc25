//! How a disk's thread has waited.

use paternoster::Nanos;
use paternoster::poll::{Choice, ClassStatistics, OvershootStatistics, WhyAwake};
use paternoster_disk::WaitStats;

use super::figures::figures;
use crate::config::Polling;

figures! {
    /// How the thread of a disk has waited, by `poll` of its configuration.
    pub struct PollStat,
        of (poll: Polling, stats: &WaitStats, commands: u64, cpu_ns: u64);
    /// `auto`, `interrupt`, `classic` or `hybrid`.
    mode: String, Text = poll.name().to_owned();
    /// Commands that are done.
    commands: u64, Counter = commands;
    /// CPU time of the thread.
    cpu_ns: u64, Counter = cpu_ns;
    /// Sleeps of any kind that something ended early: an interrupt of the device, or a client or
    /// another thread that woke this one.
    interrupts: u64, Counter = stats.interrupts;
    /// Timed sleeps, which are to end when requests in the device are nearly done.
    sleeps: u64, Counter = stats.device.sleeps;
    /// Time of the timed sleeps.
    slept_ns: u64, Counter = stats.device.slept.as_nanos();
    /// Timed sleeps that something else ended: a completion, a client, a timer.
    woken_early: u64, Counter = stats.device.woken_early;
    /// Timed sleeps at whose end a transfer was already done.
    missed: u64, Counter = stats.device.found;
    /// Polls for completions.
    polls: u64, Counter = stats.polls;
    /// Time of the polls for completions.
    polled_ns: u64, Counter = stats.polled.as_nanos();
    /// Looks for a client's command before a sleep, or instead of one.
    looks: u64, Counter = stats.looks.looks;
    /// Looks in which a command came, so that the thread did not sleep.
    found: u64, Counter = stats.looks.found;
    /// Time of the looks.
    looked_ns: u64, Counter = stats.looks.looked.as_nanos();
    /// The longest that the next look may take; 0 if the thread sleeps at once.
    next_ns: u64, Gauge = stats.looks.next.as_nanos();
    /// Looks and polls that ended because another thread had the processor.
    crowded: u64, Counter = stats.crowded;
    /// CPU time of going to sleep and waking up, once it is known.
    sleep_cost_ns: Option<u64>, Gauge unless none = stats.device.sleep_cost.map(Nanos::as_nanos);
    /// How late sleeps end, by the length of the sleep, where it is known.
    overshoots: Vec<OvershootStat>, Figures unless empty =
        stats.device.overshoots.iter().map(OvershootStat::of).collect();
    /// The classes of reads and writes that the device has had.
    classes: Vec<PollClassStat>, Figures unless empty =
        stats.device.classes.iter().map(PollClassStat::of).collect();
}

figures! {
    /// How late sleeps of one range of lengths end.
    pub struct OvershootStat, of (stats: &OvershootStatistics);
    /// The shortest sleep of the range.
    from_ns: u64, Gauge = stats.from.as_nanos();
    /// The median.
    p50_ns: u64, Gauge = stats.p50.as_nanos();
    /// One in a hundred ends later than this.
    p99_ns: u64, Gauge = stats.p99.as_nanos();
}

figures! {
    /// A class of reads or writes: those of one size, rounded down to a power of two.
    pub struct PollClassStat, "class" by class, of (stats: &ClassStatistics);
    /// Its name in Linux's `poll_stat`, such as `read (4096 Bytes)`.
    class: String, Text = stats.class.to_string();
    /// How its requests are waited for now: `sleep`, `poll` or `interrupt`.
    choice: String, Text = choice(stats.choice).to_owned();
    /// How long a sleep for its requests takes, if the choice is `sleep`.
    sleep_ns: Option<u64>, Gauge unless none = match stats.choice {
        Choice::Sleep(sleep) => Some(sleep.as_nanos()),
        _ => None,
    };
    /// Why its requests are not slept for, if the choice is `poll`.
    why: Option<String>, Text unless none = match stats.choice {
        Choice::Poll(why) => Some(WhyAwake::name(why).to_owned()),
        _ => None,
    };
    /// Requests in the last window of 100 ms that had some, as in Linux's `poll_stat`.
    samples: u64, Gauge = stats.window.samples;
    /// The mean of their times.
    mean_ns: u64, Gauge = stats.window.mean().as_nanos();
    /// The shortest of their times.
    min_ns: u64, Gauge = stats.window.min.as_nanos();
    /// The longest of their times.
    max_ns: u64, Gauge = stats.window.max.as_nanos();
    /// Requests that are done.
    ios: u64, Counter = stats.ios;
    /// Requests that the thread slept for, with `auto`.
    slept_for: u64, Counter = stats.slept_for;
    /// Requests slept for that were done before the sleep was to end.
    misses: u64, Counter = stats.misses;
}

fn choice(choice: Choice) -> &'static str {
    match choice {
        Choice::Sleep(_) => "sleep",
        Choice::Poll(_) => "poll",
        Choice::Block => "interrupt",
    }
}
