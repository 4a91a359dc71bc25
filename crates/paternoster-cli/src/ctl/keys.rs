//! Keys that are pressed while something is shown on a terminal.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Refresh,
}

/// The keys of the terminal, each as it is pressed. When this is dropped, the terminal is as it was
/// before.
#[derive(Debug)]
pub(super) struct Keys {
    terminal: io::Stdin,
    before: Termios,
    /// Readable once a signal wants the end.
    signalled: UnixStream,
}

impl Keys {
    /// The line that names the keys.
    pub(super) const NAMES: &str = "q: quit   space: refresh now\n";

    /// Takes them from now on; none if standard input is no terminal.
    pub(super) fn take() -> io::Result<Option<Self>> {
        let terminal = io::stdin();
        if !terminal.is_terminal() {
            return Ok(None);
        }
        let (signalled, signal) = UnixStream::pair()?;
        for number in [SIGINT, SIGTERM, SIGHUP] {
            // The second of a kind ends the program whatever it does.
            let again = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register_conditional_shutdown(number, 0, Arc::clone(&again))?;
            signal_hook::flag::register(number, again)?;
            signal_hook::low_level::pipe::register(number, signal.try_clone()?)?;
        }
        let before = tcgetattr(&terminal)?;
        let mut unbuffered = before.clone();
        unbuffered.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        unbuffered.special_codes[SpecialCodeIndex::VMIN] = 1;
        unbuffered.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Now, &unbuffered)?;
        Ok(Some(Self { terminal, before, signalled }))
    }

    /// What is readable once a signal wants the end, and what once a key is pressed.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.signalled.as_fd(), self.terminal.as_fd()]
    }

    /// The first key pressed that means something. A terminal that is gone wants the end.
    pub(super) fn read(&self) -> io::Result<Option<Key>> {
        let mut pressed = [0; 32];
        match rustix::io::read(&self.terminal, &mut pressed) {
            Ok(0) | Err(Errno::IO) => Ok(Some(Key::Quit)),
            Ok(count) => Ok(pressed[..count].iter().find_map(|&byte| meaning(byte))),
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // If it is gone, there is nothing to restore.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

fn meaning(byte: u8) -> Option<Key> {
    /// Ctrl-D, which is the end of what is typed.
    const END: u8 = 4;
    match byte {
        b'q' | b'Q' | END => Some(Key::Quit),
        b' ' => Some(Key::Refresh),
        _ => None,
    }
}
