//! Which descriptors may be ready, as epoll tells when they become so.
//!
//! A descriptor is watched from its first operation until it is closed, or forgotten. It is taken
//! for ready until a trial has found that it is not:
//!
//! ```text
//!   ready ── a trial is blocked, or has drained it ──▶ not ready ── epoll's event ──▶ ready
//! ```

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Weak};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;
use smallvec::SmallVec;

use crate::ring::{Fd, OperationId};

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Something can be read, or accepted.
    Read,
    /// There is room to write.
    Write,
    /// The other end is gone.
    HangUp,
}

impl Side {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::HangUp];

    /// The events after which it is worth a trial.
    fn events(self) -> EventFlags {
        let gone = EventFlags::HUP | EventFlags::ERR;
        match self {
            Self::Read => EventFlags::IN | EventFlags::RDHUP | gone,
            Self::Write => EventFlags::OUT | gone,
            Self::HangUp => gone,
        }
    }
}

/// The descriptors of one thread's operations.
pub(super) struct Readiness {
    epoll: OwnedFd,
    watched: HashMap<RawFd, Watched>,
    events: Vec<Event>,
}

#[derive(Debug)]
struct Watched {
    /// It may be closed, and another may then have its number.
    fd: Weak<OwnedFd>,
    /// By [`Side`].
    ready: [bool; 3],
    /// Whether the end of what can be read has been told: it is told once, and stays.
    ended: bool,
    waiting: SmallVec<[(OperationId, Side); 3]>,
}

/// Events taken in one call.
const EVENTS: usize = 256;

impl Readiness {
    /// Watches this event, which interrupts a wait and nothing else, and whatever is asked for.
    pub(super) fn new(event: &OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, event, data_of(event.as_raw_fd()), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, watched: HashMap::new(), events: Vec::with_capacity(EVENTS) })
    }

    /// Returns whether an operation on that side is worth a trial.
    pub(super) fn is_ready(&mut self, fd: &Fd, side: Side) -> Result<bool, Errno> {
        let number = fd.as_raw_fd();
        let known = self.watched.get(&number).filter(|watched| watched.is(fd));
        if let Some(watched) = known {
            return Ok(watched.ready[side as usize]);
        }
        let all = Side::ALL.iter().fold(EventFlags::ET, |all, side| all | side.events());
        match epoll::add(&self.epoll, fd, data_of(number), all) {
            // It is open twice and had the number before.
            Err(Errno::EXIST) => epoll::modify(&self.epoll, fd, data_of(number), all)?,
            added => added?,
        }
        self.watched.insert(number, Watched::new(fd));
        Ok(true)
    }

    /// Watches it no more: whoever else has it open may keep it so for long.
    pub(super) fn forget(&mut self, fd: &Fd) {
        let number = fd.as_raw_fd();
        if self.watched.get(&number).is_some_and(|watched| watched.is(fd)) {
            self.watched.remove(&number);
            // It is there.
            let _ = epoll::delete(&self.epoll, fd);
        }
    }

    /// Notes that a trial has taken all that there was.
    pub(super) fn drained(&mut self, fd: &Fd, side: Side) {
        if let Some(watched) = self.watched.get_mut(&fd.as_raw_fd()) {
            watched.ready[side as usize] = watched.ended;
        }
    }

    /// Has the operation tried again when the descriptor has become ready.
    pub(super) fn park(&mut self, id: OperationId, fd: &Fd, side: Side) {
        let Some(watched) = self.watched.get_mut(&fd.as_raw_fd()) else { return };
        watched.ready[side as usize] = false;
        watched.waiting.push((id, side));
    }

    /// Waits that long, or without a limit, until something has become ready; the operations to be
    /// tried are added to `tries`.
    pub(super) fn wait(
        &mut self,
        timeout: Option<Timespec>,
        tries: &mut Vec<OperationId>,
    ) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Err(Errno::INTR) => return Ok(()),
            waited => waited?,
        };
        for event in &self.events {
            let Ok(number) = RawFd::try_from(event.data.u64()) else { continue };
            if let Some(watched) = self.watched.get_mut(&number) {
                watched.take(event.flags, tries);
            }
        }
        Ok(())
    }
}

impl Watched {
    fn new(fd: &Fd) -> Self {
        let (ready, waiting) = ([true; 3], SmallVec::new());
        Self { fd: Arc::downgrade(fd), ready, ended: false, waiting }
    }

    /// Whether it is this one, rather than one that was closed.
    fn is(&self, fd: &Fd) -> bool {
        std::ptr::eq(self.fd.as_ptr(), Arc::as_ptr(fd))
    }

    fn take(&mut self, events: EventFlags, tries: &mut Vec<OperationId>) {
        self.ended |= events.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        for side in Side::ALL {
            self.ready[side as usize] |= events.intersects(side.events());
        }
        let ready = self.ready;
        self.waiting.retain(|&mut (id, side)| {
            let is_ready = ready[side as usize];
            if is_ready {
                tries.push(id);
            }
            !is_ready
        });
    }
}

fn data_of(number: RawFd) -> EventData {
    EventData::new_u64(u64::from(number.cast_unsigned()))
}
