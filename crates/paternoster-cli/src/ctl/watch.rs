//! `ctl stat --watch` and `top`: readings at intervals, and what happened between two of them.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use paternoster_server::ctl::fetch_stat;
use paternoster_server::stat::{Detail, Stat};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use signal_hook::consts::SIGINT;

/// The spans that are allowed between two readings.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

/// Clears a terminal and goes to its first line.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// What is watched.
pub(super) struct Watching {
    pub(super) detail: Detail,
    /// The time between two readings.
    pub(super) interval: Duration,
    /// How often something is shown; none is until Ctrl-C or until nobody reads.
    pub(super) screens: Option<u64>,
}

/// The argument of `--watch`.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| INTERVALS.contains(seconds));
    let (least, most) = (INTERVALS.start(), INTERVALS.end());
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{least} to {most} seconds are allowed"))
}

/// Has `show` show what happened in each interval.
pub(super) fn run(
    socket: &Path,
    watching: &Watching,
    show: fn(&Stat) -> String,
) -> anyhow::Result<()> {
    let &Watching { detail, interval, screens } = watching;
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGINT, 0, always)?;
    let between = if io::stdout().is_terminal() { CLEAR } else { "\n" };
    let mut before = fetch_stat(socket, detail)?.stat;
    let mut lead = if io::stdout().is_terminal() { CLEAR } else { "" };
    let mut left = screens.unwrap_or(u64::MAX);
    while left > 0 && is_read_for(interval)? {
        left -= 1;
        let now = fetch_stat(socket, detail)?.stat;
        let text = format!("{lead}{}", show(&now.since(&before)));
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        (before, lead) = (now, between);
    }
    Ok(())
}

/// Waits, but not for longer than somebody reads what is written. Returns whether somebody still
/// does.
fn is_read_for(interval: Duration) -> io::Result<bool> {
    let stdout = io::stdout();
    let timeout = Timespec::try_from(interval).expect("a day fits");
    // That the other end has gone is told unasked.
    let mut wanted = [PollFd::new(&stdout, PollFlags::empty())];
    match rustix::event::poll(&mut wanted, Some(&timeout)) {
        Ok(gone) => Ok(gone == 0),
        // Stopped and continued: the interval is a shorter one.
        Err(Errno::INTR) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_seconds_with_or_without_a_point() {
        assert_eq!(interval("2"), Ok(Duration::from_secs(2)));
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "0.09", "-1", "86401", "nan", "inf", "", "1s"] {
            assert_eq!(
                interval(text),
                Err("0.1 to 86400 seconds are allowed".to_owned()),
                "{text}"
            );
        }
    }
}
