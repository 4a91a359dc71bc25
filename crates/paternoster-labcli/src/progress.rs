//! What a long run says of itself on standard error: how far it has come, and how long it still
//! takes. On a terminal that is one line, which disappears at the end; elsewhere it is a line every
//! ten seconds.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use paternoster_lab::threads::Progress;

/// How long a run may take before it says anything on a terminal.
const SILENT: Duration = Duration::from_secs(2);

/// How long it is between two lines where standard error is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// How far a simulation has come in its time.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    began: Instant,
    /// Where standard error is no terminal.
    lines: Option<Intervals>,
}

impl ProgressLine {
    pub(crate) fn new() -> Result<Self> {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}")?);
        let lines = (!io::stderr().is_terminal()).then(Intervals::default);
        Ok(Self { bar, began: Instant::now(), lines })
    }

    /// Shows how far the run has come.
    pub(crate) fn shows(&self, run: Progress<'_>) {
        let taken = self.began.elapsed();
        let is_shown = match &self.lines {
            Some(lines) => lines.is_due(taken),
            None => taken >= SILENT,
        };
        if !is_shown {
            return;
        }
        let simulated =
            |at: paternoster::Instant| Duration::from_nanos(at.since_start().as_nanos());
        let told = message(taken, simulated(run.now()), run.expected_end().map(simulated));
        if self.lines.is_some() {
            eprintln!("paternoster-lab: {told}");
        } else {
            self.bar.set_message(told);
            self.bar.tick();
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Intervals of a line, of which each is told at most once.
#[derive(Debug, Default)]
struct Intervals {
    told: AtomicU64,
}

impl Intervals {
    /// Whether another has begun, so long after the begin.
    fn is_due(&self, taken: Duration) -> bool {
        let interval = taken.as_secs() / BETWEEN_LINES.as_secs();
        interval > self.told.fetch_max(interval, Ordering::Relaxed)
    }
}

/// How many of several runs are done.
pub(crate) struct RunCount {
    bar: ProgressBar,
    /// Writes lines where standard error is no terminal, until the sender is gone.
    lines: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl RunCount {
    /// None of so many.
    pub(crate) fn new(runs: usize) -> Result<Self> {
        let bar = ProgressBar::new(runs as u64);
        bar.set_style(ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left")?);
        let lines = (!io::stderr().is_terminal()).then(|| tell(bar.clone())).transpose()?;
        Ok(Self { bar, lines })
    }

    /// One more.
    pub(crate) fn inc(&self) {
        self.bar.inc(1);
    }

    /// Takes the bar away.
    pub(crate) fn clear(self) {
        self.bar.finish_and_clear();
        if let Some((sender, thread)) = self.lines {
            drop(sender);
            thread.join().expect("a thread that writes lines does not panic");
        }
    }
}

/// Has a thread tell every ten seconds how far the bar has come, a long run among few included.
fn tell(bar: ProgressBar) -> io::Result<(mpsc::Sender<()>, JoinHandle<()>)> {
    let (sender, receiver) = mpsc::channel();
    let began = Instant::now();
    let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || {
        while receiver.recv_timeout(BETWEEN_LINES) == Err(RecvTimeoutError::Timeout) {
            let (done, all) = (bar.position(), bar.length().unwrap_or_default());
            eprintln!("paternoster-lab: {}", count_message(began.elapsed(), done, all));
        }
    })?;
    Ok((sender, thread))
}

/// What a line says when so many of all runs have taken that long.
#[allow(clippy::cast_precision_loss, reason = "runs are few")]
fn count_message(taken: Duration, done: u64, all: u64) -> String {
    let counted = format!("{done} of {all} runs");
    match done {
        0 => counted,
        done => format!("{counted}, {} left", left(taken, (all - done) as f64 / done as f64)),
    }
}

/// What the line says when `simulated` of `whole` has taken that long.
fn message(taken: Duration, simulated: Duration, whole: Option<Duration>) -> String {
    let seconds = simulated.as_secs();
    let Some(whole) = whole else { return format!("{seconds} s simulated") };
    let left = left(taken, whole.saturating_sub(simulated).div_duration_f64(simulated));
    let of = whole.as_secs();
    format!("{seconds} s of {of} s simulated, {left} left")
}

/// How long it still takes if `times` as much is left as has been done: as long as that has taken.
fn left(taken: Duration, times: f64) -> HumanDuration {
    let left = Duration::try_from_secs_f64(taken.as_secs_f64() * times);
    HumanDuration(left.unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_of_a_run_is_as_fast_as_its_beginning() {
        let seconds = Duration::from_secs;
        let told = message(seconds(4), seconds(20), Some(seconds(60)));
        assert_eq!(told, "20 s of 60 s simulated, 8 seconds left");
        assert_eq!(message(seconds(4), seconds(20), None), "20 s simulated");
        let unbegun = message(seconds(4), seconds(0), Some(seconds(60)));
        assert!(unbegun.starts_with("0 s of 60 s simulated"), "{unbegun}");
    }

    #[test]
    fn rest_of_several_runs_is_as_fast_as_the_first_ones() {
        let told = count_message(Duration::from_secs(20), 12, 240);
        assert_eq!(told, "12 of 240 runs, 6 minutes left");
        assert_eq!(count_message(Duration::from_secs(20), 0, 5), "0 of 5 runs");
        assert_eq!(count_message(Duration::from_secs(20), 5, 5), "5 of 5 runs, 0 seconds left");
    }

    /// The run is asked far more often than every ten seconds, and once after a long pause.
    #[test]
    fn line_is_due_once_in_each_ten_seconds() {
        let lines = Intervals::default();
        let asked = [0, 9_999, 10_000, 10_050, 19_999, 20_001, 47_000, 48_000, 50_000];
        let due = asked.map(|ms| lines.is_due(Duration::from_millis(ms)));
        assert_eq!(due, [false, false, true, false, false, true, true, false, true]);
    }
}
