//! The thread that makes connections: to connect may block, which the owner of a disk must not. It
//! is one disk's, or that of all volumes of a pool.
//!
//! ```text
//!   back end ──wants connection k──▶ thread: dial ──▶ dialed, an event wakes
//!                                       ▲      │ failed
//!                                       └ pause ┘
//! ```
//!
//! The first connection is tried again and again, after [`Pauses`]; the others are extras, which a
//! server may not admit, and are tried again rarely. The thread ends when the last back end that
//! has it does.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::dial::{Dialed, dial};
use super::pauses::Pauses;
use super::uri::{NbdPlace, NbdUri};
use crate::ring::Fd;
use crate::waker::Waker;

/// The pause before it is tried again for another one.
const EXTRA_PAUSE: Duration = Duration::from_secs(30);

/// The thread, for whoever opens far servers.
#[derive(Clone, Debug)]
pub struct NbdDialer {
    says: Sender<(Number, Said)>,
    /// How many back ends it has had.
    so_far: Arc<AtomicU64>,
}

/// Names a back end.
type Number = u64;

/// How long an attempt lasts that a silent server lets fail, at least.
const SILENT: Duration = Duration::from_secs(1);

/// What a back end says.
#[derive(Debug)]
enum Said {
    Comes(Box<Served>),
    Wants(Want),
    Leaves,
}

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

/// A back end's ways to the thread and back.
#[derive(Debug)]
pub(super) struct Dialer {
    thread: NbdDialer,
    number: Number,
    told: Receiver<Told>,
    waker: Waker,
}

impl NbdDialer {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Where there can be no further thread.
    pub fn new() -> io::Result<Self> {
        let (says, said) = channel();
        let worker = Worker { said, served: BTreeMap::new(), due: BTreeMap::new() };
        thread::Builder::new().name("dial".to_owned()).spawn(move || worker.run())?;
        Ok(Self { says, so_far: Arc::default() })
    }

    fn say(&self, number: Number, said: Said) {
        // The thread ends no sooner than this.
        let _ = self.says.send((number, said));
    }
}

impl Dialer {
    pub(super) fn new(uri: NbdUri, thread: &NbdDialer) -> io::Result<Self> {
        let (tells, told) = channel();
        let waker = Waker::new()?;
        let number = thread.so_far.fetch_add(1, Ordering::Relaxed);
        let (pauses, last_told) = (Pauses::new(), None);
        let served = Served { uri, tells, waker: waker.clone(), pauses, last_told };
        thread.say(number, Said::Comes(Box::new(served)));
        Ok(Self { thread: thread.clone(), number, told, waker })
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
        self.thread.say(self.number, Said::Wants(want));
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

impl Drop for Dialer {
    fn drop(&mut self) {
        self.thread.say(self.number, Said::Leaves);
        // So that nothing on a ring waits for it any more.
        self.waker.wake();
    }
}

/// What the thread has.
struct Worker {
    said: Receiver<(Number, Said)>,
    served: BTreeMap<Number, Served>,
    /// When each connection that is wanted is tried next, by its back end and index.
    due: BTreeMap<(Number, usize), Instant>,
}

/// A back end, as the thread knows it.
#[derive(Debug)]
struct Served {
    uri: NbdUri,
    tells: Sender<Told>,
    waker: Waker,
    /// Those before the attempts at the first connection.
    pauses: Pauses,
    /// Why the server could not be used, as it was told last.
    last_told: Option<String>,
}

impl Worker {
    fn run(mut self) {
        loop {
            let next = self.due.iter().map(|(&which, &at)| (at, which)).min();
            let said = match next {
                None => self.said.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => {
                    self.said.recv_timeout(at.saturating_duration_since(Instant::now()))
                }
            };
            match (said, next) {
                (Ok((number, said)), _) => self.note(number, said),
                (Err(RecvTimeoutError::Timeout), Some((_, which))) => self.dial(which),
                (Err(_), _) => return,
            }
        }
    }

    fn note(&mut self, number: Number, said: Said) {
        let want = match said {
            Said::Comes(served) => {
                self.served.insert(number, *served);
                return;
            }
            Said::Leaves => {
                self.served.remove(&number);
                Want::Nothing
            }
            Said::Wants(want) => want,
        };
        match want {
            Want::First { was_useful } => {
                let Some(served) = self.served.get_mut(&number) else { return };
                if was_useful {
                    served.pauses.fall_back();
                    served.last_told = None;
                }
                self.due.insert((number, 0), Instant::now() + served.pauses.take());
            }
            Want::Extra(index) => {
                self.due.insert((number, index), Instant::now());
            }
            Want::Nothing => self.due.retain(|&(of, _), _| of != number),
        }
    }

    fn dial(&mut self, (number, index): (Number, usize)) {
        self.due.remove(&(number, index));
        let Some(served) = self.served.get_mut(&number) else { return };
        let begun = Instant::now();
        let dialed = dial(&served.uri);
        if dialed.is_err() && begun.elapsed() >= SILENT {
            let place = served.uri.place.clone();
            self.let_others_go_first(&place);
        }
        let Some(served) = self.served.get_mut(&number) else { return };
        let again = match dialed {
            Ok(dialed) => return served.tell(Told::Dialed(index, Box::new(dialed))),
            Err(_) if index > 0 => EXTRA_PAUSE,
            Err(error) => {
                let why = error.to_string();
                if served.last_told.as_ref() != Some(&why) {
                    served.last_told = Some(why.clone());
                    served.tell(Told::Unreachable(why));
                }
                served.pauses.take()
            }
        };
        self.due.insert((number, index), Instant::now() + again);
    }
}

impl Worker {
    /// Has what is due of a silent server wait, so that other servers are not waited for behind
    /// each of its volumes.
    fn let_others_go_first(&mut self, silent: &NbdPlace) {
        let served = &self.served;
        let later = Instant::now() + SILENT;
        for ((number, _), at) in &mut self.due {
            if served.get(number).is_some_and(|of| of.uri.place == *silent) {
                *at = later.max(*at);
            }
        }
    }
}

impl Served {
    /// Where the back end is gone, the thread hears of it next.
    fn tell(&self, told: Told) {
        let _ = self.tells.send(told);
        self.waker.wake();
    }
}
