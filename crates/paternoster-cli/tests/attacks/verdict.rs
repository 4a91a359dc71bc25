//! Whether a rate shows what the server did, or what the machine had no time for.
//!
//! ```text
//!   entitlement = the least of   the weight's part of what the victim had alone
//!                                half of the owner's thread, at the victim's cost of a read
//! ```
//!
//! Or what it had beside a polite client that asks for as much as it does itself.
//!
//! The second line is what is left to share where attackers keep the owner's thread busy all the
//! time. A canary sleeps for a millisecond at a time, as the victim and the server without nice do:
//! if it wakes up late, cores were short, and the rate is printed, not judged. The kernel wakes a
//! sleeper up in time though other work keeps every core busy. Where the disk is fast, the threads
//! of the owner and of the victim do not sleep. For them the kernel counts how long they could run
//! and had no core; attackers are nice, and take little of that.
//!
//! In `cargo xtask test` the victim keeps at least a third of its entitlement, `cargo xtask bench
//! live` asks for nine tenths.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paternoster_load::least_part;

use crate::support::Served;

/// What the victim has to keep of its entitlement where figures are judged.
const KEPT: f64 = 0.9;

/// From which part of the time on the owner's thread is what is short.
const OWNER_BUSY: f64 = 0.85;

/// Which part of the canary's time may be lateness.
const LATE: f64 = 0.05;

/// For which part of the time the owner's thread, and the victim's, may be without a core. On a
/// quiet machine it is a tenth at most, as each wake-up takes a moment.
const WITHOUT_CORE: f64 = 0.15;

/// How long the canary sleeps.
const NAP: Duration = Duration::from_millis(1);

/// What a window of the victim has shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Replies in a second.
    pub(crate) rate: f64,
    /// The part of the time in which the owner's thread was on a core.
    pub(crate) owner: f64,
    /// The part of the time by which the canary was late.
    pub(crate) late: f64,
    /// The parts of the time for which the owner's thread and the victim's could run and had no
    /// core.
    pub(crate) without_core: [f64; 2],
}

impl Window {
    /// Measures the server while `work` goes on, on the victim's thread, which gives the replies.
    pub(crate) fn of(served: &Served, work: impl FnOnce() -> u64) -> Self {
        let canary = Canary::start();
        let times = || [CoreTime::of_owner(served), CoreTime::of_this_thread()];
        let (begin, [owner_before, victim_before]) = (Instant::now(), times());
        let replies = work();
        let span = begin.elapsed().as_secs_f64();
        let [owner, victim] = times();
        let without = [owner.waited - owner_before.waited, victim.waited - victim_before.waited];
        let owner = (owner.run - owner_before.run) / span;
        let late = canary.stop().as_secs_f64() / span;
        #[allow(clippy::cast_precision_loss, reason = "a few thousand replies")]
        Self { rate: replies as f64 / span, owner, late, without_core: without.map(|it| it / span) }
    }
}

/// What the victim is entitled to while it is attacked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entitled {
    /// That part of what it has alone: 0.5 where the attackers, whose weight is the same, want the
    /// disk, and 1 where they do not.
    Part(f64),
    /// What it has beside a polite client of the same weight that asks for as much: where the disk
    /// takes no time, the work of the owner's thread is what is shared, and a second connection
    /// costs some of it.
    AsBesideEqual,
    /// Replies in a second.
    Rate(f64),
}

/// What came of an attack, for the victim.
pub(crate) struct Verdict {
    before: Window,
    during: Window,
    /// Replies in a second.
    entitled: f64,
}

impl Verdict {
    pub(crate) fn new(before: Window, during: Window, to: Entitled) -> Self {
        let mut entitled = match to {
            Entitled::Part(part) => before.rate * part,
            Entitled::AsBesideEqual => return Self { before, during, entitled: before.rate },
            Entitled::Rate(rate) => rate,
        };
        if during.owner >= OWNER_BUSY {
            let cost = before.owner / before.rate;
            entitled = entitled.min(0.5 * during.owner / cost);
        }
        Self { before, during, entitled }
    }

    /// The first good one, else the best.
    pub(crate) fn of_best(windows: &mut impl Iterator<Item = Self>) -> Self {
        let mut best = windows.next().expect("there is one");
        while !best.is_good()
            && let Some(next) = windows.next()
        {
            best = if next.kept() > best.kept() { next } else { best };
        }
        best
    }

    fn kept(&self) -> f64 {
        self.during.rate / self.entitled
    }

    pub(crate) fn is_good(&self) -> bool {
        self.kept() >= least_part(KEPT)
    }

    /// Returns whether it says something about the server.
    pub(crate) fn is_judged(&self) -> bool {
        let is_sound = |window: &Window| {
            window.late < LATE && window.without_core.iter().all(|&part| part < WITHOUT_CORE)
        };
        is_sound(&self.before) && is_sound(&self.during)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, during, entitled } = self;
        write!(
            f,
            "{:6.0}/s before, {entitled:6.0} entitled, {:6.0} during: {:3.0} %; \
             owner {:3.0} % then {:3.0} %, canary late {:2.0} % then {:2.0} %, \
             without a core {:2.0?} then {:2.0?}",
            before.rate,
            during.rate,
            100.0 * self.kept(),
            100.0 * before.owner,
            100.0 * during.owner,
            100.0 * before.late,
            100.0 * during.late,
            before.without_core.map(|part| 100.0 * part),
            during.without_core.map(|part| 100.0 * part),
        )
    }
}

/// Sleeps, and notes by how much it overslept.
struct Canary {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Canary {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let thread = thread::spawn(move || {
            let mut late = Duration::ZERO;
            while !until.load(Ordering::Relaxed) {
                let begin = Instant::now();
                thread::sleep(NAP);
                // A nap takes a little longer on a machine without work too.
                late += begin.elapsed().saturating_sub(NAP + NAP / 10);
            }
            late
        });
        Self { stop, thread }
    }

    fn stop(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it only sleeps")
    }
}

/// What the kernel counts of a thread, in seconds.
#[derive(Clone, Copy, Debug)]
struct CoreTime {
    /// On a core.
    run: f64,
    /// Could have run, and had no core.
    waited: f64,
}

impl CoreTime {
    /// Of the thread with this folder in `/proc`.
    fn of(thread: &Path) -> Self {
        let stat = fs::read_to_string(thread.join("schedstat")).expect("the kernel counts it");
        let mut nanos = stat.split(' ').map(|nanos| nanos.parse::<f64>().unwrap_or_default());
        let mut next = || nanos.next().expect("a time in ns") / 1e9;
        Self { run: next(), waited: next() }
    }

    /// Of the thread of the disk `d`.
    fn of_owner(served: &Served) -> Self {
        let tasks = fs::read_dir(format!("/proc/{}/task", served.id())).expect("it runs");
        let is_owner = |task: &PathBuf| {
            fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "disk d\n")
        };
        let owner = tasks.flatten().map(|task| task.path()).find(is_owner);
        Self::of(&owner.expect("a disk has a thread"))
    }

    fn of_this_thread() -> Self {
        Self::of(Path::new("/proc/thread-self"))
    }
}
