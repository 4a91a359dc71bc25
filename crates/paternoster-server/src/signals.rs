//! The meaning of each signal to a server.
//!
//! ```text
//!   SIGTERM, SIGINT, SIGQUIT    the end; once more: the end at once, without a flush, status 1
//!   SIGHUP                      the configuration's file is read again; at the end, nothing
//!   SIGUSR1, SIGUSR2            nothing
//! ```
//!
//! None of them ends the process by itself, which would leave clients unanswered and sockets
//! behind.

use std::io;
use std::sync::mpsc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

/// What to do about a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    End,
    EndAtOnce,
    Reload,
    Nothing(&'static str),
}

/// What a signal means to a server that `ends` already, or does not yet.
fn meaning(signal: i32, ends: bool) -> Meaning {
    match signal {
        SIGHUP if ends => Meaning::Nothing("the server is about to end"),
        SIGHUP => Meaning::Reload,
        SIGUSR1 | SIGUSR2 => Meaning::Nothing("it means nothing to this server"),
        _ if ends => Meaning::EndAtOnce,
        _ => Meaning::End,
    }
}

/// The signals that have come and will come.
pub(crate) struct Caught(Signals);

/// Keeps all signals from here on, until they are forwarded.
pub(crate) fn catch() -> io::Result<Caught> {
    Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2]).map(Caught)
}

impl Caught {
    /// Takes them on a thread of its own: `ends` is told the name of the first that means the end,
    /// and `hang_ups` of each that means that the file is read again.
    pub(crate) fn forward(
        self,
        ends: mpsc::Sender<String>,
        hang_ups: mpsc::Sender<()>,
    ) -> io::Result<()> {
        let Self(mut signals) = self;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut ending = false;
            for signal in signals.forever() {
                let name = signal_name(signal).unwrap_or("a signal");
                match meaning(signal, ending) {
                    Meaning::Reload => {
                        // Nobody listens where the server has failed to start.
                        let _ = hang_ups.send(());
                    }
                    Meaning::Nothing(why) => tracing::warn!("{name} is ignored: {why}"),
                    Meaning::EndAtOnce => {
                        // The sockets' files went when the end began.
                        tracing::error!("{name} again: ending at once, without a flush");
                        std::process::exit(1);
                    }
                    Meaning::End => {
                        ending = true;
                        // Nobody listens where the server has failed to start.
                        let _ = ends.send(name.to_owned());
                    }
                }
            }
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_signal_to_end_ends_at_once_and_no_other_ends_anything() {
        for signal in [SIGTERM, SIGINT, SIGQUIT] {
            assert_eq!(meaning(signal, false), Meaning::End);
            assert_eq!(meaning(signal, true), Meaning::EndAtOnce);
        }
        for signal in [SIGUSR1, SIGUSR2] {
            for ends in [false, true] {
                assert!(matches!(meaning(signal, ends), Meaning::Nothing(_)), "{signal}");
            }
        }
    }

    #[test]
    fn sighup_has_the_file_read_again_unless_the_server_ends() {
        assert_eq!(meaning(SIGHUP, false), Meaning::Reload);
        assert!(matches!(meaning(SIGHUP, true), Meaning::Nothing(_)));
    }
}
