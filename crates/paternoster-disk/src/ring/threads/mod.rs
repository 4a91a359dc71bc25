//! The same operations without io_uring: epoll tells which sockets are ready, and a pool of threads
//! does what may block.
//!
//! ```text
//!   receive, send, accept, poll ──▶ tried when the socket is ready ──────────────┐
//!                                       ▲ epoll                                  ▼
//!   read, write, sync, allocate ──▶ pool of threads ──▶ done, an event wakes ──▶ completed
//! ```
//!
//! Nothing here is `unsafe`: the threads own the buffers that they fill, and those are filled with
//! zeroes first.

mod pool;
mod readiness;
mod socket;

use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use slotmap::SlotMap;

use super::{Completion, Fd, Operation, OperationId, Output};
use crate::spare::SpareBuffers;
use pool::{Done, Pool};
use readiness::Readiness;
use socket::{SocketOperation, Tried};

/// The operations of one thread. `T` names them.
pub(super) struct Threads<T> {
    operations: SlotMap<OperationId, InFlight<T>>,
    pool: Pool,
    /// What signals others, who may have it wait for ever; none until that is asked for.
    signals: Option<Pool>,
    readiness: Readiness,
    /// Socket operations to be tried: they are new, or their sockets have become ready.
    tries: Vec<OperationId>,
    completed: Vec<(OperationId, Done)>,
    /// Where what arrives is put first.
    arrived: Vec<u8>,
}

struct InFlight<T> {
    token: T,
    /// None of a file: the pool has it.
    socket: Option<SocketOperation>,
}

/// The most that one receive takes.
const RECEIVE: usize = 256 << 10;

impl<T> Threads<T> {
    pub(super) fn new() -> io::Result<Self> {
        let pool = Pool::new()?;
        let readiness = Readiness::new(pool.event())?;
        let (operations, tries, completed) = (SlotMap::with_key(), Vec::new(), Vec::new());
        let (signals, arrived) = (None, vec![0; RECEIVE]);
        Ok(Self { operations, pool, signals, readiness, tries, completed, arrived })
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn start(&mut self, token: T, operation: Operation) -> OperationId {
        let operation = match SocketOperation::of(operation) {
            Ok(socket) => {
                let id = self.operations.insert(InFlight { token, socket: Some(socket) });
                self.tries.push(id);
                return id;
            }
            Err(operation) => operation,
        };
        let id = self.operations.insert(InFlight { token, socket: None });
        match operation {
            Operation::Nop => self.completed.push((id, Done::of(Ok(0)))),
            Operation::Signal { .. } => self.signal(id, operation),
            operation => self.pool.start(id, operation),
        }
        id
    }

    fn signal(&mut self, id: OperationId, operation: Operation) {
        if self.signals.is_none() {
            self.signals = self.pool.another().ok();
        }
        match &mut self.signals {
            Some(signals) => signals.start(id, operation),
            None => self.completed.push((id, Done::of(Err(Errno::NOMEM)))),
        }
    }

    /// A signal that the kernel lets wait keeps its thread.
    pub(super) fn end(&mut self, id: OperationId) {
        let ended = self.operations.remove(id);
        if let Some(InFlight { socket: Some(watch), .. }) = ended {
            self.readiness.forget(watch.fd());
        }
    }

    /// Has all that waits for this descriptor complete.
    pub(super) fn cancel(&mut self, fd: &Fd) {
        let Self { operations, completed, .. } = self;
        let waiting = operations.iter_mut().filter_map(|(id, of)| {
            let waits = of.socket.as_ref().is_some_and(|socket| Arc::ptr_eq(socket.fd(), fd));
            Some((id, of.socket.take_if(|_| waits)?))
        });
        completed.extend(waiting.map(|(id, socket)| {
            let (result, output) = socket.given_up();
            (id, Done { output, ..Done::of(result) })
        }));
    }

    pub(super) fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        self.try_sockets();
        self.collect();
        let timeout = if self.completed.is_empty() { until.map(time_until) } else { NOW };
        self.look(timeout)
    }

    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.try_sockets();
        self.look(NOW)
    }

    pub(super) fn has_completions(&mut self) -> bool {
        // An error will come again where somebody hears of it.
        let _ = self.submit();
        !self.completed.is_empty()
    }

    pub(super) fn take_completions(
        &mut self,
        spare: &mut SpareBuffers,
        into: &mut Vec<Completion<T>>,
    ) where
        T: Clone,
    {
        for (id, done) in self.completed.drain(..) {
            let Some(InFlight { token, socket }) = self.operations.get(id) else { continue };
            let token = token.clone();
            if !matches!(socket, Some(SocketOperation::Watch { .. })) || done.result.is_err() {
                self.operations.remove(id);
            }
            done.written.into_iter().for_each(|buffer| spare.give_back(buffer));
            let output = match done.output {
                Output::Unsent(all) => Output::of_send(all, done.result, spare),
                other => other,
            };
            into.push(Completion { token, result: done.result, output });
        }
    }

    /// Waits that long until something is ready or done, and completes what is.
    fn look(&mut self, timeout: Option<Timespec>) -> io::Result<()> {
        self.readiness.wait(timeout, &mut self.tries)?;
        self.try_sockets();
        self.collect();
        Ok(())
    }

    fn try_sockets(&mut self) {
        let Self { operations, readiness, tries, completed, arrived, .. } = self;
        for id in tries.drain(..) {
            let Some(socket) = operations.get_mut(id).and_then(|of| of.socket.as_mut()) else {
                continue;
            };
            let side = socket.side();
            let tried = match readiness.is_ready(socket.fd(), side) {
                Ok(true) => socket.try_once(arrived),
                Ok(false) => Tried::Blocked,
                Err(errno) => Tried::Done(Err(errno), Output::None),
            };
            match tried {
                Tried::Again(result) => {
                    completed.push((id, Done::of(result)));
                    readiness.park(id, socket.fd(), side);
                }
                Tried::Done(result, output) => {
                    completed.push((id, Done { output, ..Done::of(result) }));
                }
                Tried::DoneAndDrained(result, output) => {
                    readiness.drained(socket.fd(), side);
                    completed.push((id, Done { output, ..Done::of(result) }));
                }
                Tried::Blocked => readiness.park(id, socket.fd(), side),
            }
        }
    }

    fn collect(&mut self) {
        self.pool.collect(&mut self.completed);
        if let Some(signals) = &mut self.signals {
            signals.collect(&mut self.completed);
        }
    }
}

impl<T> Drop for Threads<T> {
    fn drop(&mut self) {
        if let Some(signals) = self.signals.take() {
            signals.leave();
        }
    }
}

/// Without waiting.
const NOW: Option<Timespec> = Some(Timespec { tv_sec: 0, tv_nsec: 0 });

/// The time from now to a moment of `CLOCK_MONOTONIC` in nanoseconds.
fn time_until(at: u64) -> Timespec {
    let now = clock_gettime(ClockId::Monotonic);
    let now = u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap_or(0);
    let left = at.saturating_sub(now);
    let part = |part: u64| i64::try_from(part).unwrap_or(i64::MAX);
    Timespec { tv_sec: part(left / 1_000_000_000), tv_nsec: part(left % 1_000_000_000) }
}
