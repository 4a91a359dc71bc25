//! io_uring: one system call submits many operations and waits for one.
//!
//! ```text
//!   start ──▶ submission queue ──┐
//!     └──▶ file I/O ─────────▶───┤ wait: one system call submits all and waits
//!   take  ◀── completion queue ◀─┘
//! ```
//!
//! The kernel works on what it is handed in that order, and copies what is in the page cache there
//! and then. So reads and writes of files are handed over behind all else: whoever waits for a
//! reply or a signal goes on meanwhile.
//!
//! An operation owns its buffers until it completes, so callers need no `unsafe`; this file alone
//! has it.
//!
//! A ring carries out those operations and no others ([`allowed`]).

#![allow(unsafe_code)] // The kernel works on our buffers; each block says why they are alive.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use bytes::{Bytes, BytesMut};
use io_uring::types::{self, TimeoutFlags, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::Errno;
use slotmap::{Key, KeyData, SlotMap};
use smallvec::SmallVec;

use super::{Buffers, Completion, Fd, ONE, Operation, OperationId, Output, Room, allowed};
use crate::spare::SpareBuffers;

/// Entries of the submission queue; more operations can be in flight.
const ENTRIES: u32 = 256;

/// How a thread waits. One that waits in the ring counts as waiting for I/O, whatever it waits for:
/// an idle server would make the machine look overloaded (iowait in `/proc/stat`, I/O pressure).
#[derive(Debug)]
enum Waiting {
    /// In the ring, which is asked not to count it so: Linux 6.15 and later.
    InRing,
    /// On an event that the ring signals. (Deferred work does not make the ring itself readable.)
    OnEvent(OwnedFd),
}

impl Waiting {
    fn best(uring: &IoUring) -> io::Result<Self> {
        if uring.params().is_feature_no_iowait() { Ok(Self::InRing) } else { Self::on_event(uring) }
    }

    fn on_event(uring: &IoUring) -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC)?;
        uring.submitter().register_eventfd(event.as_raw_fd())?;
        Ok(Self::OnEvent(event))
    }
}

/// What an operation keeps alive until it completes. The kernel has addresses into it, so what
/// it points to must not move; the enum itself may.
enum Held {
    Nothing,
    Read(Buffers<Room>),
    Write(Buffers<Bytes>),
    Send(Buffers<Bytes>),
    Receive(BytesMut),
    Moment(#[allow(dead_code)] Box<Timespec>),
    Accept,
    /// It completes again and again.
    Watch,
    /// It ends a watch or a signal, or is one that has been ended, which nobody hears of.
    End,
}

struct InFlight<T> {
    token: Option<T>,
    held: Held,
    /// The vector for the kernel, where there are several buffers.
    #[allow(dead_code)] // The kernel reads it.
    vector: Option<Box<Vector>>,
    fd: Option<Fd>,
}

/// Addresses and lengths of several buffers.
struct Vector {
    parts: Vec<libc::iovec>,
    message: libc::msghdr,
}

/// The io_uring of one thread. `T` names operations.
pub(super) struct Uring<T> {
    kernel: IoUring,
    waiting: Waiting,
    operations: SlotMap<OperationId, InFlight<T>>,
    /// Reads and writes of files, which are submitted behind all other operations.
    file_io: VecDeque<squeue::Entry>,
    /// The moments of wake-ups in flight, on the monotonic clock, the earliest last.
    wake_ups: Vec<u64>,
}

impl<T> Uring<T> {
    /// For the thread that calls this, and only for it.
    pub(super) fn new() -> io::Result<Self> {
        Self::that_waits(Waiting::best)
    }

    /// The same, of a thread that waits so.
    fn that_waits(waiting: fn(&IoUring) -> io::Result<Waiting>) -> io::Result<Self> {
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_defer_taskrun()
            .setup_cqsize(ENTRIES * 8)
            .setup_r_disabled()
            .build(ENTRIES)?;
        let waiting = waiting(&uring)?;
        allowed::restrict(&uring)?;
        let (operations, file_io, wake_ups) = (SlotMap::with_key(), VecDeque::new(), Vec::new());
        Ok(Self { kernel: uring, waiting, operations, file_io, wake_ups })
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn start(&mut self, token: T, operation: Operation) -> OperationId {
        match operation {
            Operation::Read { fd, offset, into } => self.read(token, fd, offset, into),
            Operation::Write { fd, offset, from } => self.write(token, fd, offset, from),
            Operation::Sync { fd, range } => self.sync(token, fd, range),
            Operation::Allocate { fd, mode, offset, len } => {
                let entry = opcode::Fallocate::new(raw(&fd), len);
                let entry = entry.offset(offset).mode(mode.bits().cast_signed()).build();
                self.push(entry, Some(token), Held::Nothing, None, Some(fd))
            }
            Operation::Receive { fd, mut into } => {
                let room = into.spare_capacity_mut();
                let (at, len) = (room.as_mut_ptr().cast::<u8>(), room.len());
                let entry = opcode::Recv::new(raw(&fd), at, buffer_len(len)).build();
                self.push(entry, Some(token), Held::Receive(into), None, Some(fd))
            }
            Operation::Send { fd, from } => self.send(token, fd, from),
            Operation::Accept { fd } => {
                let (null, no_len) = (std::ptr::null_mut(), std::ptr::null_mut());
                let entry = opcode::Accept::new(raw(&fd), null, no_len);
                let entry = entry.flags(libc::SOCK_CLOEXEC).build();
                self.push(entry, Some(token), Held::Accept, None, Some(fd))
            }
            Operation::Poll { fd, events } => {
                let entry = opcode::PollAdd::new(raw(&fd), events.bits().into()).build();
                self.push(entry, Some(token), Held::Nothing, None, Some(fd))
            }
            Operation::Watch { fd } => {
                self.push(watching(&fd), Some(token), Held::Watch, None, Some(fd))
            }
            Operation::Signal { fd } => {
                // An eventfd has no place to write at.
                let entry = opcode::Write::new(raw(&fd), ONE.as_ptr(), buffer_len(ONE.len()));
                let entry = entry.offset(u64::MAX).build();
                self.push(entry, Some(token), Held::Nothing, None, Some(fd))
            }
            Operation::Nop => {
                self.push(opcode::Nop::new().build(), Some(token), Held::Nothing, None, None)
            }
        }
    }

    fn read(&mut self, token: T, fd: Fd, offset: u64, mut into: Buffers<Room>) -> OperationId {
        if let [only] = into.as_mut_slice() {
            let entry = opcode::Read::new(raw(&fd), place_of(only), buffer_len(only.len()));
            let entry = entry.offset(offset).build();
            return self.push(entry, Some(token), Held::Read(into), None, Some(fd));
        }
        let vectors = into.iter_mut().map(|room| iovec(place_of(room), room.len())).collect();
        let vector = Box::new(Vector::new(vectors));
        let (at, count) = (vector.parts.as_ptr(), buffer_len(vector.parts.len()));
        let entry = opcode::Readv::new(raw(&fd), at, count).offset(offset).build();
        self.push(entry, Some(token), Held::Read(into), Some(vector), Some(fd))
    }

    fn write(&mut self, token: T, fd: Fd, offset: u64, from: Buffers<Bytes>) -> OperationId {
        if let [only] = from.as_slice() {
            let entry = opcode::Write::new(raw(&fd), only.as_ptr(), buffer_len(only.len()));
            let entry = entry.offset(offset).build();
            return self.push(entry, Some(token), Held::Write(from), None, Some(fd));
        }
        let vector = Box::new(Vector::of(&from));
        let (at, count) = (vector.parts.as_ptr(), buffer_len(vector.parts.len()));
        let entry = opcode::Writev::new(raw(&fd), at, count).offset(offset).build();
        self.push(entry, Some(token), Held::Write(from), Some(vector), Some(fd))
    }

    fn sync(&mut self, token: T, fd: Fd, range: Option<Range<u64>>) -> OperationId {
        let entry = opcode::Fsync::new(raw(&fd)).flags(types::FsyncFlags::DATASYNC);
        // The kernel counts the bytes of a range in 32 bits.
        let range = range.and_then(|range| {
            Some((range.start, u32::try_from(range.end.checked_sub(range.start)?).ok()?))
        });
        let entry = match range {
            Some((offset, len)) => entry.offset(offset).len(len),
            None => entry,
        };
        self.push(entry.build(), Some(token), Held::Nothing, None, Some(fd))
    }

    fn send(&mut self, token: T, fd: Fd, from: Buffers<Bytes>) -> OperationId {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        if let [only] = from.as_slice() {
            let entry = opcode::Send::new(raw(&fd), only.as_ptr(), buffer_len(only.len()));
            let entry = entry.flags(flags).build();
            return self.push(entry, Some(token), Held::Send(from), None, Some(fd));
        }
        let vector = Box::new(Vector::of(&from));
        let entry = opcode::SendMsg::new(raw(&fd), &raw const vector.message);
        let entry = entry.flags(flags.cast_unsigned()).build();
        self.push(entry, Some(token), Held::Send(from), Some(vector), Some(fd))
    }

    pub(super) fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        if let Some(at) = until {
            self.wake_at(at);
        }
        self.submit_and_wait()
    }

    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.queue_file_io();
        let queue = self.kernel.submission();
        let has_work = !queue.is_empty() || queue.taskrun() || queue.cq_overflow();
        drop(queue);
        if has_work { self.enter(0, EnterFlags::GETEVENTS) } else { Ok(()) }
    }

    pub(super) fn has_completions(&mut self) -> bool {
        !self.kernel.completion().is_empty() || self.kernel.submission().taskrun()
    }

    pub(super) fn end(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get_mut(id) else { return };
        (operation.token, operation.held) = (None, Held::End);
        // PollRemove would not remove a watch that has something to tell.
        let entry = opcode::AsyncCancel::new(id.data().as_ffi()).build();
        self.push(entry, None, Held::End, None, None);
    }

    /// Has all that waits for this descriptor complete.
    pub(super) fn cancel(&mut self, fd: &Fd) {
        let all = types::CancelBuilder::fd(raw(fd)).all();
        let entry = opcode::AsyncCancel2::new(all).build();
        self.push(entry, None, Held::End, None, Some(fd.clone()));
    }

    /// `name_again` gives a watch's name, which it needs again.
    pub(super) fn take_completions(
        &mut self,
        name_again: impl Fn(&T) -> Option<T>,
        spare: &mut SpareBuffers,
        into: &mut Vec<Completion<T>>,
    ) {
        // Watches that the kernel has ended, as it may.
        let mut ended: SmallVec<[OperationId; 4]> = SmallVec::new();
        for entry in self.kernel.completion() {
            let id = OperationId::from(KeyData::from_ffi(entry.user_data()));
            let goes_on = cqueue::more(entry.flags());
            if let Some(InFlight { token: Some(token), held: Held::Watch, .. }) =
                self.operations.get(id)
                && entry.result() >= 0
                && let Some(token) = name_again(token)
            {
                into.push(Completion { token, result: Ok(0), output: Output::None });
                ended.extend((!goes_on).then_some(id));
                continue;
            }
            if goes_on {
                continue;
            }
            let Some(operation) = self.operations.remove(id) else { continue };
            match operation.token {
                Some(token) => {
                    into.push(completion(token, operation.held, entry.result(), spare));
                }
                None if matches!(operation.held, Held::End) => {}
                // A wake-up came, the earliest.
                None => drop(self.wake_ups.pop()),
            }
        }
        for id in ended {
            let fd = self.operations[id].fd.clone();
            self.submit_as(id, watching(&fd.expect("a watch has one")));
        }
    }

    fn submit_and_wait(&mut self) -> io::Result<()> {
        match &self.waiting {
            Waiting::InRing => {
                self.queue_file_io();
                self.enter(1, EnterFlags::GETEVENTS | EnterFlags::NO_IOWAIT)
            }
            Waiting::OnEvent(_) => self.submit_and_wait_for_event(),
        }
    }

    fn submit_and_wait_for_event(&mut self) -> io::Result<()> {
        self.submit()?;
        if let Waiting::OnEvent(event) = &self.waiting
            && self.kernel.completion().is_empty()
        {
            // An earlier signal may end it at once; whoever waits looks and waits again.
            ignore_retryable(
                rustix::io::read(event, &mut [0; 8]).map(drop).map_err(io::Error::from),
            )?;
            // What has signalled may be work that has yet to complete.
            self.submit()?;
        }
        Ok(())
    }

    /// Hands everything to the kernel, and waits for so many completions. The crate's own `submit`
    /// neither lets deferred completions come in nor takes flags.
    fn enter(&mut self, wanted: u32, flags: EnterFlags) -> io::Result<()> {
        let waiting = {
            let mut queue = self.kernel.submission();
            queue.sync();
            queue.len()
        };
        // SAFETY: no argument is passed, and the entries are those that `push` pushed.
        let entered = unsafe {
            let submitter = self.kernel.submitter();
            submitter.enter::<()>(buffer_len(waiting), wanted, flags.bits(), None)
        };
        ignore_retryable(entered.map(drop))
    }

    /// Cancels everything that can be, and waits until something has completed.
    fn cancel_and_wait(&mut self) -> io::Result<()> {
        self.submit()?;
        if !self.kernel.submission().is_empty() {
            // The kernel wants completions taken first. What it has not been handed it cannot
            // cancel, and would begin afterwards.
            return Ok(());
        }
        // It finds nothing where all has completed, and what it must let finish is waited for.
        let _ =
            self.kernel.submitter().register_sync_cancel(None, types::CancelBuilder::any().all());
        self.submit_and_wait()
    }

    /// Has a wake-up in flight for `at` or earlier.
    fn wake_at(&mut self, at: u64) {
        if self.wake_ups.last().is_some_and(|&armed| armed <= at) {
            return;
        }
        self.wake_ups.push(at);
        #[allow(clippy::cast_possible_truncation)] // less than a second
        let moment = Timespec::new().sec(at / 1_000_000_000).nsec((at % 1_000_000_000) as u32);
        let moment = Box::new(moment);
        let entry = opcode::Timeout::new(&raw const *moment).flags(TimeoutFlags::ABS).build();
        self.push(entry, None, Held::Moment(moment), None, None);
    }

    fn push(
        &mut self,
        entry: squeue::Entry,
        token: Option<T>,
        held: Held,
        vector: Option<Box<Vector>>,
        fd: Option<Fd>,
    ) -> OperationId {
        let operation = InFlight { token, held, vector, fd };
        let id = self.operations.insert(operation);
        self.submit_as(id, entry);
        id
    }

    /// Has the kernel do what an operation has that is in flight.
    fn submit_as(&mut self, id: OperationId, entry: squeue::Entry) {
        let entry = entry.user_data(id.data().as_ffi());
        if matches!(self.operations[id].held, Held::Read(_) | Held::Write(_)) {
            self.file_io.push_back(entry);
        } else {
            self.queue(&entry);
        }
    }

    /// Queues reads and writes of files, behind all that is queued.
    fn queue_file_io(&mut self) {
        while let Some(entry) = self.file_io.pop_front() {
            self.queue(&entry);
        }
    }

    /// Queues what the kernel is handed next.
    fn queue(&mut self, entry: &squeue::Entry) {
        while self.kernel.submission().is_full() {
            self.enter(0, EnterFlags::GETEVENTS).expect("a full queue can be submitted");
        }
        // SAFETY: all addresses in the entry are into the operation's heap memory, or into our
        // mapping of a machine's memory, which its `GuestSlice` keeps mapped and into which nobody
        // has a reference: neither moves nor is freed before the completion removes it, or `drop`
        // has waited for all. Or they are of what is constant.
        let pushed = unsafe { self.kernel.submission().push(entry) };
        pushed.expect("there is room, and one thread pushes");
    }
}

impl<T> Drop for Uring<T> {
    /// Cancels what is in flight and waits for it: the kernel must be done with the buffers.
    fn drop(&mut self) {
        let mut completed = Vec::new();
        let mut spare = SpareBuffers::default();
        while !self.operations.is_empty() {
            if self.cancel_and_wait().is_err() {
                // Better to leak than to free what the kernel may still write to.
                std::mem::forget(std::mem::take(&mut self.operations));
                return;
            }
            self.take_completions(|_| None, &mut spare, &mut completed);
        }
    }
}

impl Vector {
    fn new(mut parts: Vec<libc::iovec>) -> Self {
        // SAFETY: a message header of zeroes is one without address, control data and buffers.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len();
        Self { parts, message }
    }

    fn of(buffers: &[Bytes]) -> Self {
        // The kernel only reads what it sends or writes.
        Self::new(buffers.iter().map(|part| iovec(part.as_ptr().cast_mut(), part.len())).collect())
    }
}

/// Takes for no error what only means that the caller is to take completions and come again: the
/// kernel wants that first (EBUSY), or a signal came (EINTR).
fn ignore_retryable(entered: io::Result<()>) -> io::Result<()> {
    match entered {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EINTR)) => Ok(()),
        other => other,
    }
}

/// Tells of each time that something can be read.
fn watching(fd: &Fd) -> squeue::Entry {
    opcode::PollAdd::new(raw(fd), PollFlags::IN.bits().into()).multi(true).build()
}

fn raw(fd: &Fd) -> types::Fd {
    types::Fd(fd.as_raw_fd())
}

fn iovec(at: *mut u8, len: usize) -> libc::iovec {
    libc::iovec { iov_base: at.cast(), iov_len: len }
}

/// Where a room is, for as long as it is held.
fn place_of(room: &mut Room) -> *mut u8 {
    match room {
        Room::Own(buffer, _) => buffer.as_mut_ptr(),
        Room::Guest(slice) => slice.as_ptr(),
    }
}

fn buffer_len(len: usize) -> u32 {
    u32::try_from(len).expect("a buffer is shorter than 4 GiB")
}

fn completion<T>(token: T, held: Held, result: i32, spare: &mut SpareBuffers) -> Completion<T> {
    let result = u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
    let output = match (held, result) {
        (Held::Read(rooms), result) => {
            let mut left = result.unwrap_or(0) as usize;
            let filled = rooms.into_iter().filter_map(|room| {
                let filled = left.min(room.len());
                left -= filled;
                let Room::Own(mut buffer, _) = room else { return None };
                // SAFETY: the kernel has filled the rooms in their order, each up to its length.
                unsafe { extend_filled(&mut buffer, filled) };
                Some(buffer)
            });
            Output::Buffers(filled.collect())
        }
        (Held::Write(buffers), _) => {
            buffers.into_iter().for_each(|buffer| spare.give_back(buffer));
            Output::None
        }
        (Held::Send(buffers), result) => Output::of_send(buffers, result, spare),
        (Held::Receive(mut buffer), result) => {
            // SAFETY: the kernel has filled that many bytes of the spare capacity.
            unsafe { extend_filled(&mut buffer, result.unwrap_or(0) as usize) };
            Output::Buffers(Buffers::from_buf([buffer]))
        }
        (Held::Accept, Ok(fd)) => {
            let fd: RawFd = fd.cast_signed();
            // SAFETY: the kernel has just made this descriptor for us.
            Output::Socket(unsafe { OwnedFd::from_raw_fd(fd) })
        }
        _ => Output::None,
    };
    Completion { token, result, output }
}

/// Has the buffer hold what the kernel put into its spare capacity.
///
/// # Safety
///
/// The kernel has filled so many bytes of it.
unsafe fn extend_filled(buffer: &mut BytesMut, filled: usize) {
    let len = buffer.len() + filled;
    assert!(len <= buffer.capacity(), "the kernel fills no more than there is room for");
    // SAFETY: what was there is, and the rest the caller vouches for.
    unsafe { buffer.set_len(len) };
}

#[cfg(test)]
#[path = "uring_tests.rs"]
mod tests;
