//! What a request costs beside its time: sleeps, interrupts and processor time, from the counters
//! in `/proc`.
//!
//! They are read twice while the client is connected, as the threads that a server makes for a
//! connection end with it and take their counters along.

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

/// Counters of a server's threads and of the machine, at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counters {
    at: Instant,
    /// Time of the server on processors, in nanoseconds.
    on_cpu_ns: u64,
    /// How often a thread of the server gave its processor up: context switches of its own will.
    sleeps: u64,
    /// Interrupts of the machine from one processor to another; none where the kernel has other
    /// names for them.
    ipis: Option<u64>,
    /// Interrupts of the machine by its processors' timers.
    timers: Option<u64>,
}

/// What was counted over a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// The span, in seconds.
    pub seconds: f64,
    /// As in [`Counters`], in microseconds.
    pub on_cpu_us: f64,
    /// As in [`Counters`].
    pub sleeps: f64,
    /// As in [`Counters`].
    pub ipis: Option<f64>,
    /// As in [`Counters`].
    pub timers: Option<f64>,
}

impl Counters {
    /// Reads those of the process with that number and of the machine.
    pub fn read(pid: u32) -> Result<Self> {
        let (mut on_cpu_ns, mut sleeps) = (0, 0);
        let tasks = format!("/proc/{pid}/task");
        for task in fs::read_dir(&tasks).with_context(|| format!("reading {tasks}"))? {
            let task = task.with_context(|| format!("reading {tasks}"))?.path();
            let (Some(times), Some(status)) = (read(&task, "schedstat")?, read(&task, "status")?)
            else {
                continue;
            };
            on_cpu_ns += on_cpu(&times).with_context(|| format!("{times:?} of {pid}"))?;
            sleeps += voluntary(&status).context("a thread's status has no context switches")?;
        }
        let interrupts = fs::read_to_string("/proc/interrupts").context("/proc/interrupts")?;
        Ok(Self {
            at: Instant::now(),
            on_cpu_ns,
            sleeps,
            ipis: interrupts_of(&interrupts, &["RES", "CAL"]),
            timers: interrupts_of(&interrupts, &["LOC"]),
        })
    }

    /// Returns what was counted since `before`; an error where a thread has ended meanwhile.
    pub fn since(&self, before: &Self) -> Result<Counted> {
        let count = |now: u64, before: u64| match now.checked_sub(before) {
            Some(count) => Ok(float(count)),
            None => bail!("a thread of the server ended while it was measured"),
        };
        let both = |now: Option<u64>, before: Option<u64>| {
            now.zip(before).map(|(now, before)| float(now.saturating_sub(before)))
        };
        Ok(Counted {
            seconds: self.at.duration_since(before.at).as_secs_f64(),
            on_cpu_us: count(self.on_cpu_ns, before.on_cpu_ns)? / 1000.0,
            sleeps: count(self.sleeps, before.sleeps)?,
            ipis: both(self.ipis, before.ipis),
            timers: both(self.timers, before.timers),
        })
    }
}

/// Reads a file of a thread; none where the thread has ended.
fn read(task: &Path, name: &str) -> Result<Option<String>> {
    match fs::read_to_string(task.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // It ended between opening and reading.
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{}/{name}", task.display())),
    }
}

/// Nanoseconds on a processor, of a thread's `schedstat`: the first of its three numbers.
fn on_cpu(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// Context switches of its own will, of a thread's `status`.
fn voluntary(status: &str) -> Option<u64> {
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}

/// The interrupts with these labels, on all processors, of `/proc/interrupts`; none where a label
/// is missing.
fn interrupts_of(interrupts: &str, labels: &[&str]) -> Option<u64> {
    let of = |label: &str| {
        let line = interrupts.lines().find_map(|line| {
            let (found, counts) = line.split_once(':')?;
            (found.trim() == label).then_some(counts)
        })?;
        // A count for each processor, and then what it is.
        Some(line.split_whitespace().map_while(|count| count.parse::<u64>().ok()).sum::<u64>())
    };
    labels.iter().map(|label| of(label)).sum()
}

/// Exact below 2⁵³: microseconds of 285 years.
#[allow(clippy::cast_precision_loss)] // said above
pub fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const INTERRUPTS: &str = "           CPU0       CPU1       
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
LOC:    4756285    4576556   Local timer interrupts
RES:     726871     732013   Rescheduling interrupts
CAL:    6004026    5727916   Function call interrupts
ERR:          0
";

    #[test]
    fn interrupts_are_summed_over_processors_and_labels() {
        assert_eq!(interrupts_of(INTERRUPTS, &["LOC"]), Some(4_756_285 + 4_576_556));
        let ipis = 726_871 + 732_013 + 6_004_026 + 5_727_916;
        assert_eq!(interrupts_of(INTERRUPTS, &["RES", "CAL"]), Some(ipis));
        assert_eq!(interrupts_of(INTERRUPTS, &["RES", "IPI0"]), None);
        // Neither its number nor its label is one of those.
        assert_eq!(interrupts_of(INTERRUPTS, &["4"]), None);
    }

    #[test]
    fn sleeps_are_the_switches_of_a_threads_own_will() {
        let status = "Name:\tnbdkit\nvoluntary_ctxt_switches:\t321\n\
                      nonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(voluntary(status), Some(321));
        let other = status.replace("\nvoluntary", "\nnonvoluntary");
        assert_eq!(voluntary(&other), None);
        assert_eq!(on_cpu("123456789 42 7\n"), Some(123_456_789));
        assert_eq!(on_cpu("\n"), None);
    }

    #[test]
    fn counts_are_those_between_two_readings() {
        let at = Instant::now();
        let before = Counters { at, on_cpu_ns: 5_000, sleeps: 10, ipis: Some(100), timers: None };
        let after = Counters {
            at: at + Duration::from_millis(500),
            on_cpu_ns: 12_500,
            sleeps: 13,
            ipis: Some(104),
            timers: Some(9),
        };
        let expected =
            Counted { seconds: 0.5, on_cpu_us: 7.5, sleeps: 3.0, ipis: Some(4.0), timers: None };
        assert_eq!(after.since(&before).expect("it is later"), expected);
        // A thread that ends takes what it has counted along.
        assert!(Counters { sleeps: 9, ..after }.since(&before).is_err());
    }

    #[test]
    fn counters_of_this_very_process_grow_while_it_works_and_sleeps() {
        let pid = std::process::id();
        let read = || Counters::read(pid).expect("we are there");
        // Other tests' threads may end meanwhile: that is said, and tried again.
        let counted = (0..100).find_map(|_| {
            let before = read();
            std::thread::sleep(Duration::from_millis(1));
            read().since(&before).ok().filter(|counted| counted.sleeps >= 1.0)
        });
        let counted = counted.expect("one of a hundred is undisturbed");
        assert!(counted.seconds >= 0.001, "{counted:?}");
    }
}
