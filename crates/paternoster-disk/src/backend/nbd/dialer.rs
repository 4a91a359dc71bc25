//! The thread that makes connections: to connect may block, which the owner of a disk must not.
//!
//! ```text
//!   back end ──wants connection k──▶ thread: dial ──▶ dialed, an event wakes
//!                                       ▲      │ failed
//!                                       └ pause ┘
//! ```
//!
//! The first connection is tried again and again, soon; the others are extras, which a server may
//! not admit, and are tried again rarely. The thread ends when the back end does.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::dial::{Dialed, dial};
use super::uri::NbdUri;
use crate::ring::Fd;
use crate::waker::Waker;

/// The pause before the server is tried again for the first connection: at first, and at most.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause before it is tried again for another one.
const EXTRA_PAUSE: Duration = Duration::from_secs(30);

/// What the back end says.
#[derive(Clone, Copy, Debug)]
enum Want {
    /// The connection of that index is wanted, after a pause.
    Connection(usize, Duration),
    /// None is wanted any more.
    Nothing,
}

/// What the thread has to say.
#[derive(Debug)]
pub(super) enum Told {
    /// The connection of that index is there.
    Dialed(usize, Box<Dialed>),
    /// The first connection cannot be made; said once until it can.
    Unreachable(String),
}

/// The thread, and the ways to it and back.
#[derive(Debug)]
pub(super) struct Dialer {
    wants: Sender<Want>,
    told: Receiver<Told>,
    waker: Waker,
}

impl Dialer {
    pub(super) fn new(uri: NbdUri) -> io::Result<Self> {
        let (wants, wanted) = channel();
        let (tells, told) = channel();
        let waker = Waker::new()?;
        let worker = Worker {
            uri,
            wanted,
            tells,
            waker: waker.clone(),
            due: BTreeMap::new(),
            pause: PAUSE,
            is_told: false,
        };
        thread::Builder::new().name("dial".to_owned()).spawn(move || worker.run())?;
        Ok(Self { wants, told, waker })
    }

    /// Has the connection of that index made after a pause, however long that takes. `fruitless` is
    /// how many before it were made and lost without an answer.
    pub(super) fn want(&self, index: usize, fruitless: u32) {
        let pause = match fruitless {
            0 => Duration::ZERO,
            _ => LONGEST_PAUSE.min(PAUSE * 2u32.saturating_pow(fruitless - 1)),
        };
        // The thread ends no sooner than this.
        let _ = self.wants.send(Want::Connection(index, pause));
    }

    /// Has none made any more.
    pub(super) fn want_nothing(&self) {
        let _ = self.wants.send(Want::Nothing);
    }

    /// What becomes readable when there is something to take.
    pub(super) fn fd(&self) -> &Fd {
        self.waker.fd()
    }

    pub(super) fn take(&self) -> Vec<Told> {
        self.waker.clear();
        self.told.try_iter().collect()
    }
}

/// What the thread has.
struct Worker {
    uri: NbdUri,
    wanted: Receiver<Want>,
    tells: Sender<Told>,
    waker: Waker,
    /// When each connection that is wanted is tried next.
    due: BTreeMap<usize, Instant>,
    /// How long until the first one is tried again.
    pause: Duration,
    /// Whether it was told that the server cannot be reached.
    is_told: bool,
}

impl Worker {
    fn run(mut self) {
        loop {
            let next = self.due.iter().map(|(&index, &at)| (at, index)).min();
            let wanted = match next {
                None => self.wanted.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => {
                    self.wanted.recv_timeout(at.saturating_duration_since(Instant::now()))
                }
            };
            match (wanted, next) {
                (Ok(want), _) => self.note(want),
                (Err(RecvTimeoutError::Timeout), Some((_, index))) => self.dial(index),
                (Err(_), _) => return,
            }
        }
    }

    fn note(&mut self, want: Want) {
        match want {
            Want::Connection(index, pause) => {
                self.due.insert(index, Instant::now() + pause);
                self.pause = PAUSE;
                self.is_told = false;
            }
            Want::Nothing => self.due.clear(),
        }
    }

    fn dial(&mut self, index: usize) {
        match dial(&self.uri) {
            Ok(dialed) => {
                self.due.remove(&index);
                self.tell(Told::Dialed(index, Box::new(dialed)));
            }
            Err(_) if index > 0 => {
                self.due.insert(index, Instant::now() + EXTRA_PAUSE);
            }
            Err(error) => {
                self.due.insert(index, Instant::now() + self.pause);
                self.pause = LONGEST_PAUSE.min(self.pause * 2);
                if !std::mem::replace(&mut self.is_told, true) {
                    self.tell(Told::Unreachable(error.to_string()));
                }
            }
        }
    }

    /// Where the back end is gone, the next look for what it wants says so.
    fn tell(&self, told: Told) {
        let _ = self.tells.send(told);
        self.waker.wake();
    }
}
