//! `ctl stat --watch` and `top`: readings at intervals, and what happened between two of them. On a
//! terminal they take keys.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use paternoster_server::ctl::{TraceQuestion, fetch_stat};
use paternoster_server::stat::{Detail, Stat};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use signal_hook::consts::SIGINT;

use super::keys::{Key, Keys};
use paternoster_cli::output::fit;

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
    let allowed = TraceQuestion::SECONDS;
    let seconds = text.parse::<f64>().ok().filter(|seconds| allowed.contains(seconds));
    let (least, most) = (allowed.start(), allowed.end());
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{least} to {most} seconds are allowed"))
}

/// What happened in one interval.
pub(super) fn one(socket: &Path, interval: Duration) -> anyhow::Result<Stat> {
    let before = fetch_stat(socket, Detail::Groups)?.stat;
    std::thread::sleep(interval);
    Ok(fetch_stat(socket, Detail::Groups)?.stat.since(&before))
}

/// Has `show` show what happened in each interval.
pub(super) fn run(
    socket: &Path,
    watching: &Watching,
    show: impl Fn(&Stat) -> String,
) -> anyhow::Result<()> {
    let &Watching { detail, interval, screens } = watching;
    let is_terminal = io::stdout().is_terminal();
    // One screen needs no keys, and stays.
    let keys = if is_terminal && screens != Some(1) { Keys::take()? } else { None };
    if keys.is_none() {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(SIGINT, 0, always)?;
    }
    let between = if is_terminal { CLEAR } else { "\n" };
    let mut before = fetch_stat(socket, detail)?.stat;
    let mut lead = if is_terminal { CLEAR } else { "" };
    let mut left = screens.unwrap_or(u64::MAX);
    while left > 0 && pause(interval, keys.as_ref())? {
        left -= 1;
        let now = fetch_stat(socket, detail)?.stat;
        let named = if keys.is_some() { Keys::NAMES } else { "" };
        let text = format!("{lead}{}", fit(&(show(&now.since(&before)) + named)));
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        (before, lead) = (now, between);
    }
    Ok(())
}

/// Waits for an interval, or until a key says to go on. Returns whether to go on: not where nobody
/// reads any more, and not after the key or a signal that ends it.
fn pause(interval: Duration, keys: Option<&Keys>) -> io::Result<bool> {
    let end = Instant::now() + interval;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match wait(left, keys)? {
            Wait::Over => return Ok(true),
            Wait::End => return Ok(false),
            Wait::Interrupted => {}
            Wait::Key => match keys.map(Keys::read).transpose()?.flatten() {
                Some(Key::Quit) => return Ok(false),
                Some(Key::Refresh) => return Ok(true),
                None => {}
            },
        }
    }
}

/// What ended a wait.
enum Wait {
    /// Its time is over.
    Over,
    /// A key has been pressed.
    Key,
    /// A signal has come; one that wants the end is told by its descriptor.
    Interrupted,
    /// Nobody reads, or a signal wants the end.
    End,
}

fn wait(span: Duration, keys: Option<&Keys>) -> io::Result<Wait> {
    let stdout = io::stdout();
    let timeout = Timespec::try_from(span).expect("a day fits");
    // That the other end has gone is told unasked.
    let mut wanted = vec![PollFd::new(&stdout, PollFlags::empty())];
    if let Some(keys) = keys {
        wanted.extend(keys.descriptors().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    }
    match rustix::event::poll(&mut wanted, Some(&timeout)) {
        Ok(0) => Ok(Wait::Over),
        Ok(_) => {
            let has = |at: usize| wanted.get(at).is_some_and(|fd| !fd.revents().is_empty());
            Ok(if has(0) || has(SIGNAL) { Wait::End } else { Wait::Key })
        }
        // Stopped and continued: the interval is a shorter one.
        Err(Errno::INTR) if keys.is_none() => Ok(Wait::Over),
        Err(Errno::INTR) => Ok(Wait::Interrupted),
        Err(errno) => Err(errno.into()),
    }
}

/// The place of the signals among the descriptors, behind standard output.
const SIGNAL: usize = 1;

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
