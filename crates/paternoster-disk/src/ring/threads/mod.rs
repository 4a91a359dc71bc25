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

use rustix::time::{ClockId, Timespec, clock_gettime};
use slotmap::{SlotMap, new_key_type};

use super::{Completion, Operation, Output};
use crate::spare::SpareBuffers;
use pool::{Done, Pool};
use readiness::Readiness;
use socket::{SocketOperation, Tried};

new_key_type! {
    struct OperationId;
}

/// The operations of one thread. `T` names them.
pub(super) struct Threads<T> {
    operations: SlotMap<OperationId, InFlight<T>>,
    pool: Pool,
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
        Ok(Self { operations, pool, readiness, tries, completed, arrived: vec![0; RECEIVE] })
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn start(&mut self, token: T, operation: Operation) {
        let operation = match SocketOperation::of(operation) {
            Ok(socket) => {
                let id = self.operations.insert(InFlight { token, socket: Some(socket) });
                return self.tries.push(id);
            }
            Err(operation) => operation,
        };
        let id = self.operations.insert(InFlight { token, socket: None });
        match operation {
            Operation::Nop => self.completed.push((id, Done::of(Ok(0)))),
            operation => self.pool.start(id, operation),
        }
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
    ) {
        for (id, done) in self.completed.drain(..) {
            let Some(InFlight { token, .. }) = self.operations.remove(id) else { continue };
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
