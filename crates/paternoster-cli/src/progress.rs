//! What a long run says of itself on a terminal: how far it has come, and how long it still takes.

use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use paternoster_lab::threads::Progress;

/// How long a run may take before it says anything.
const SILENT: Duration = Duration::from_secs(2);

/// A line on the terminal. Where standard error is none, there is no line.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    began: Instant,
}

impl ProgressLine {
    pub(crate) fn new() -> Result<Self> {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}")?);
        Ok(Self { bar, began: Instant::now() })
    }

    /// Shows how far the run has come.
    pub(crate) fn shows(&self, run: Progress<'_>) {
        let taken = self.began.elapsed();
        if taken >= SILENT {
            let simulated =
                |at: paternoster::Instant| Duration::from_nanos(at.since_start().as_nanos());
            let whole = run.expected_end().map(simulated);
            self.bar.set_message(message(taken, simulated(run.now()), whole));
            self.bar.tick();
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What the line says when `simulated` of `whole` has taken that long.
fn message(taken: Duration, simulated: Duration, whole: Option<Duration>) -> String {
    let seconds = simulated.as_secs();
    let Some(whole) = whole else { return format!("{seconds} s simulated") };
    // What is left takes as long as the same time has taken so far.
    let left = whole.saturating_sub(simulated).div_duration_f64(simulated);
    let left = Duration::try_from_secs_f64(taken.as_secs_f64() * left).unwrap_or(Duration::MAX);
    let of = whole.as_secs();
    format!("{seconds} s of {of} s simulated, {} left", HumanDuration(left))
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
}
