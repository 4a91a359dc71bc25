//! The thread that makes connections: to connect may block, which the owner of a disk must not.
//!
//! ```text
//!   back end ──wants connection k──▶ thread: dial ──▶ dialed, an event wakes
//!                                       ▲      │ failed
//!                                       └ pause ┘
//! ```
//!
//! The first connection is tried again and again, after [`Pauses`]; the others are extras, which a
//! server may not admit, and are tried again rarely. The thread ends when the back end does.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::dial::{Dialed, dial};
use super::pauses::Pauses;
use super::uri::NbdUri;
use crate::ring::Fd;
use crate::waker::Waker;

/// The pause before it is tried again for another one.
const EXTRA_PAUSE: Duration = Duration::from_secs(30);

/// What the back end says.
#[derive(Clone, Copy, Debug)]
enum Want {
    /// The first connection is wanted, after a pause; `was_useful` says whether the one before was.
    First { was_useful: bool },
    /// The connection of that index is wanted beside it.
    Extra(usize),
    /// None is wanted any more.
    Nothing,
}

/// What the thread has to say.
#[derive(Debug)]
pub(super) enum Told {
    /// The connection of that index is there.
    Dialed(usize, Box<Dialed>),
    /// The first connection cannot be made; said again when the reason is another one.
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
            pauses: Pauses::new(),
            told: None,
        };
        thread::Builder::new().name("dial".to_owned()).spawn(move || worker.run())?;
        Ok(Self { wants, told, waker })
    }

    /// Has the first connection made, however long that takes. `was_useful` says whether the one
    /// before was of use for long enough that pauses fall back.
    pub(super) fn want_first(&self, was_useful: bool) {
        self.want(Want::First { was_useful });
    }

    /// Has the connection of that index made beside the first one.
    pub(super) fn want_extra(&self, index: usize) {
        self.want(Want::Extra(index));
    }

    /// Has none made any more.
    pub(super) fn want_nothing(&self) {
        self.want(Want::Nothing);
    }

    fn want(&self, want: Want) {
        // The thread ends no sooner than this.
        let _ = self.wants.send(want);
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
    /// Those before the attempts at the first one.
    pauses: Pauses,
    /// Why the server could not be used, as it was told last.
    told: Option<String>,
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
            Want::First { was_useful } => {
                if was_useful {
                    self.pauses.fall_back();
                    self.told = None;
                }
                self.due.insert(0, Instant::now() + self.pauses.take());
            }
            Want::Extra(index) => {
                self.due.insert(index, Instant::now());
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
                self.due.insert(index, Instant::now() + self.pauses.take());
                let why = error.to_string();
                if self.told.as_ref() != Some(&why) {
                    self.told = Some(why.clone());
                    self.tell(Told::Unreachable(why));
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
