//! The loop of the one thread that owns a disk: its engine, its back end, its ring and its front.
//!
//! ```text
//!   ┌─▶ what is due: the scheduler's timer, transfers of a modelled device, for 200 µs at most
//!   │   what has completed on the ring: transfers, the front's sockets
//!   │   what became of commands ──▶ the front
//!   │   the front sends what it has gathered
//!   └── wait in the ring, until the next moment at which something is due
//! ```
//!
//! After every single input the engine is settled, at the input's own clock reading: so the
//! elevator sees the same law as in the laboratory.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

use paternoster::{Instant, Nanos, Scheduler};
use rustix::event::{EventfdFlags, eventfd};

use crate::backend::{Backend, TransferDone};
use crate::clock::{Clock, MonotonicClock};
use crate::engine::{Command, Engine, Outcome};
use crate::ring::{Completion, Fd, Ring};
use crate::token::{FrontToken, Token};

/// How long a round goes on with transfers that are due.
const ROUND: Nanos = Nanos::from_micros(200);

/// Who puts commands to a disk and takes their outcomes, on the owner's thread.
pub trait Front<S: Scheduler> {
    /// Called once, before the first turn.
    fn started(&mut self, owner: &mut Owner<S>);

    /// One of its operations on the ring has completed.
    fn ring_completed(&mut self, owner: &mut Owner<S>, completion: Completion<FrontToken>);

    /// A command is done.
    fn command_done(&mut self, owner: &mut Owner<S>, outcome: Outcome);

    /// Another thread has called [`Waker::wake`].
    fn woken(&mut self, owner: &mut Owner<S>);

    /// A turn is over: what was gathered in it is to be sent. Whether there will be another turn.
    fn turn_over(&mut self, owner: &mut Owner<S>) -> Turn;

    /// When it wants another turn at the latest.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// Whether an owner goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is more to come.
    GoOn,
    /// The front is done with the disk.
    Stop,
}

/// Calls for an owner's attention from another thread.
#[derive(Clone, Debug)]
pub struct Waker {
    event: Fd,
}

impl Waker {
    /// A waker, for [`Owner::new`] to be woken by.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event: Arc::new(event) })
    }

    /// Has the owner's front called, soon.
    pub fn wake(&self) {
        // Full means that a call is pending already.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }

    fn clear(&self) {
        let _ = rustix::io::read(&*self.event, &mut [0; 8]);
    }

    /// What becomes readable, for a ring of one's own.
    pub fn fd(&self) -> &Fd {
        &self.event
    }
}

/// One disk and everything that one thread holds of it, but for the front.
#[derive(Debug)]
pub struct Owner<S: Scheduler> {
    engine: Engine<S>,
    backend: Box<dyn Backend>,
    ring: Ring<Token>,
    clock: MonotonicClock,
    waker: Waker,
}

impl<S: Scheduler> Owner<S> {
    /// An owner on the thread that calls this, which it must not leave. The thread's timers are
    /// made exact.
    pub fn new(
        engine: Engine<S>,
        backend: Box<dyn Backend>,
        clock: MonotonicClock,
        waker: Waker,
    ) -> io::Result<Self> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(Self { engine, backend, ring: Ring::new()?, clock, waker })
    }

    /// Puts a command to the disk.
    pub fn submit(&mut self, command: Command) {
        self.engine.submit(command);
        self.settle();
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine<S> {
        &self.engine
    }

    /// The engine, for its administration.
    pub fn engine_mut(&mut self) -> &mut Engine<S> {
        &mut self.engine
    }

    /// The back end, to look at.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// The ring, for the front's operations under [`Token::Front`].
    pub fn ring(&mut self) -> &mut Ring<Token> {
        &mut self.ring
    }

    /// The moment now.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Turns until the front stops.
    pub fn run(mut self, front: &mut impl Front<S>) -> io::Result<()> {
        let mut completions = Vec::new();
        let waker = self.waker.clone();
        self.ring.poll_readable(Token::Wake, waker.fd());
        front.started(&mut self);
        loop {
            self.handle_due();
            self.ring.take_completions(&mut completions);
            for completion in completions.drain(..) {
                self.handle_completion(front, completion);
            }
            while let Some(outcome) = self.engine.poll_outcome() {
                front.command_done(&mut self, outcome);
            }
            if front.turn_over(&mut self) == Turn::Stop {
                return Ok(());
            }
            self.wait(front.poll_timeout())?;
        }
    }

    /// A back end may have more to deliver as soon as it is given more to do: what takes longer
    /// than a round waits until the front has had its turn.
    fn handle_due(&mut self) {
        if self.engine.poll_timeout().is_some_and(|at| at <= self.clock.now()) {
            self.engine.handle_timeout(self.clock.now());
            self.settle();
        }
        let begin = self.clock.now();
        while let Some(done) = self.backend.take_done(begin) {
            self.transfer_done(done);
            if self.clock.now() >= begin + ROUND {
                return;
            }
        }
    }

    fn handle_completion(&mut self, front: &mut impl Front<S>, completion: Completion<Token>) {
        let Completion { token, result, filled, accepted } = completion;
        match token {
            Token::Transfer(token) => {
                let completion = Completion { token, result, filled, accepted };
                if let Some(done) = self.backend.ring_completed(&mut self.ring, completion) {
                    self.transfer_done(done);
                }
            }
            Token::Wake => {
                self.waker.clear();
                let waker = self.waker.clone();
                self.ring.poll_readable(Token::Wake, waker.fd());
                front.woken(self);
            }
            Token::Front(token) => {
                front.ring_completed(self, Completion { token, result, filled, accepted });
            }
        }
    }

    fn transfer_done(&mut self, done: TransferDone) {
        self.engine.transfer_done(self.clock.now(), done.id, done.transferred);
        self.settle();
    }

    /// Begins every transfer that may begin now.
    pub fn settle(&mut self) {
        let Self { engine, backend, ring, clock, .. } = self;
        engine.settle(clock, |now, id, transfer| backend.start(ring, now, id, transfer));
    }

    fn wait(&mut self, front: Option<Instant>) -> io::Result<()> {
        if self.engine.has_outcome() {
            // The front put a command at the end of its turn that is done already.
            return self.ring.submit();
        }
        let due = [self.engine.poll_timeout(), self.backend.poll_timeout(), front];
        let until = due.into_iter().flatten().min();
        if until.is_some_and(|until| until <= self.clock.now()) {
            return self.ring.submit();
        }
        self.ring.wait(until.map(|until| self.clock.monotonic_at(until)))
    }
}
