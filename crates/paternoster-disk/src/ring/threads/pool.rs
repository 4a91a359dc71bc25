//! Threads that carry out what may block: operations on files and block devices.
//!
//! ```text
//!   start ──▶ jobs ──▶ thread ──▶ done ──▶ collect
//!                        └── the event, if nobody has been woken since the last collect
//! ```
//!
//! Each is made when there is more to do than there are threads, and ends with the pool. What waits
//! for a thread has left the scheduler: for it, the device is at work on that.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use bytes::{Bytes, BytesMut};
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{fallocate, fdatasync};
use rustix::io::{Errno, preadv, pwritev, retry_on_intr};
use smallvec::SmallVec;

use crate::ring::{Buffers, Fd, ONE, Operation, OperationId, Output, Room};
use crate::spare::aligned;

/// Threads at most, and so operations that the kernel has at once.
const MOST: usize = 64;

/// Room for the stack of a thread, which calls little.
const STACK: usize = 128 << 10;

/// What came of an operation.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: Result<u32, Errno>,
    pub(super) output: Output,
    /// The buffers that were written.
    pub(super) written: Buffers<Bytes>,
}

impl Done {
    pub(super) fn of(result: Result<u32, Errno>) -> Self {
        Self { result, output: Output::None, written: Buffers::new() }
    }
}

/// The threads of one ring.
#[derive(Debug)]
pub(super) struct Pool {
    /// None when the pool ends.
    jobs: Option<Sender<(OperationId, Operation)>>,
    done: Receiver<(OperationId, Done)>,
    worker: Worker,
    threads: Vec<JoinHandle<()>>,
    /// Jobs that are not collected.
    outstanding: usize,
}

/// What each thread has.
#[derive(Clone, Debug)]
struct Worker {
    jobs: Receiver<(OperationId, Operation)>,
    done: Sender<(OperationId, Done)>,
    event: Arc<OwnedFd>,
    /// Whether the event has been signalled since the last collect.
    signalled: Arc<AtomicBool>,
    /// Whether the pool ends: what no thread has begun is left.
    ends: Arc<AtomicBool>,
}

impl Pool {
    /// With one thread.
    pub(super) fn new() -> io::Result<Self> {
        Self::with_event(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Another one, which is told of by the same event.
    pub(super) fn another(&self) -> io::Result<Self> {
        Self::with_event(Arc::clone(&self.worker.event))
    }

    fn with_event(event: Arc<OwnedFd>) -> io::Result<Self> {
        let (jobs, jobs_of_threads) = unbounded();
        let (done_of_threads, done) = unbounded();
        let worker = Worker {
            jobs: jobs_of_threads,
            done: done_of_threads,
            event,
            signalled: Arc::default(),
            ends: Arc::default(),
        };
        let threads = vec![worker.clone().spawn()?];
        Ok(Self { jobs: Some(jobs), done, worker, threads, outstanding: 0 })
    }

    /// What becomes readable when something is done.
    pub(super) fn event(&self) -> &OwnedFd {
        &self.worker.event
    }

    pub(super) fn start(&mut self, id: OperationId, operation: Operation) {
        self.outstanding += 1;
        if self.outstanding > self.threads.len()
            && self.threads.len() < MOST
            && let Ok(thread) = self.worker.clone().spawn()
        {
            // Where there can be no other thread, those that are there have to do.
            self.threads.push(thread);
        }
        if let Some(jobs) = &self.jobs {
            jobs.send((id, operation)).expect("the pool has a receiver too");
        }
    }

    /// Ends without waiting for what is begun.
    pub(super) fn leave(mut self) {
        self.threads.clear();
    }

    /// Takes what is done.
    pub(super) fn collect(&mut self, into: &mut Vec<(OperationId, Done)>) {
        // Before the look: who is done after it signals again.
        self.worker.signalled.swap(false, Ordering::AcqRel);
        let before = into.len();
        into.extend(self.done.try_iter());
        self.outstanding -= into.len() - before;
    }
}

impl Drop for Pool {
    /// Waits for what is begun, so that nothing is written after this.
    fn drop(&mut self) {
        self.worker.ends.store(true, Ordering::Release);
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn spawn(self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("I/O".to_owned()).stack_size(STACK).spawn(move || self.run())
    }

    fn run(self) {
        for (id, operation) in &self.jobs {
            if self.ends.load(Ordering::Acquire) {
                return;
            }
            let done = carry_out(operation);
            if self.done.send((id, done)).is_err() {
                return;
            }
            if !self.signalled.swap(true, Ordering::AcqRel) {
                // Full means that it is signalled already.
                let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
            }
        }
    }
}

fn carry_out(operation: Operation) -> Done {
    match operation {
        Operation::Read { fd, offset, into } => read(&fd, offset, into),
        Operation::Write { fd, offset, from } => {
            let slices: SmallVec<[IoSlice<'_>; 8]> =
                from.iter().map(|part| IoSlice::new(part)).collect();
            let result = counted(retry_on_intr(|| pwritev(&fd, &slices, offset)));
            drop(slices);
            Done { written: from, ..Done::of(result) }
        }
        // No call of Linux's makes a range durable alone, so all is.
        Operation::Sync { fd, .. } => Done::of(retry_on_intr(|| fdatasync(&fd)).map(|()| 0)),
        Operation::Allocate { fd, mode, offset, len } => {
            Done::of(retry_on_intr(|| fallocate(&fd, mode, offset, len)).map(|()| 0))
        }
        // One that is full tells what there is to tell, and a write would wait until it is read.
        Operation::Signal { fd } if !is_writable(&fd) => Done::of(Ok(0)),
        Operation::Signal { fd } => {
            Done::of(retry_on_intr(|| rustix::io::write(&fd, &ONE)).map(|_| 0))
        }
        Operation::Receive { .. }
        | Operation::Send { .. }
        | Operation::Accept { .. }
        | Operation::Poll { .. }
        | Operation::Watch { .. }
        | Operation::Nop => unreachable!("the pool is for files"),
    }
}

fn is_writable(fd: &Fd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&now)), Ok(0))
}

/// Reads. What is for a machine is read into memory of ours and copied.
fn read(fd: &OwnedFd, offset: u64, mut into: Buffers<Room>) -> Done {
    let mut buffers: Buffers<BytesMut> = into
        .iter_mut()
        .map(|room| {
            let len = room.len();
            let mut buffer = match room {
                Room::Own(buffer, _) => std::mem::take(buffer),
                // Direct I/O asks for no more than a page.
                Room::Guest(_) => aligned(len, rustix::param::page_size()),
            };
            buffer.resize(len, 0);
            buffer
        })
        .collect();
    let mut slices: SmallVec<[IoSliceMut<'_>; 8]> =
        buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
    let result = counted(retry_on_intr(|| preadv(fd, &mut slices, offset)));
    drop(slices);
    let mut left = result.unwrap_or(0) as usize;
    let read = buffers.into_iter().zip(into).filter_map(|(mut buffer, room)| {
        buffer.truncate(left);
        left -= buffer.len();
        match room {
            Room::Own(..) => Some(buffer),
            Room::Guest(slice) => {
                slice.write(&buffer);
                None
            }
        }
    });
    let output = Output::Buffers(read.collect());
    Done { output, ..Done::of(result) }
}

fn counted(result: Result<usize, Errno>) -> Result<u32, Errno> {
    result.map(|len| u32::try_from(len).expect("an operation moves less than 4 GiB"))
}
