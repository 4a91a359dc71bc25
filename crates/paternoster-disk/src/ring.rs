//! The io_uring of one thread: operations on file descriptors in, completions out.
//!
//! It knows descriptors and buffers, not disks and connections: read, write, send, receive,
//! accept, sync, allocate, wait until readable, wake at a moment. An operation owns its buffers
//! and keeps its descriptor open until it completes, so callers need no `unsafe`; this file alone
//! has it.
//!
//! ```text
//!   ring.read(token, …) ──▶ submission queue ──┐
//!                                              │ wait: one system call submits all and waits
//!   Completion { token, … } ◀── completions ◀──┘
//! ```

#![allow(unsafe_code)] // The kernel works on our buffers; each block says why they are alive.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use io_uring::types::{self, TimeoutFlags, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use slotmap::{Key, KeyData, SlotMap, new_key_type};
use smallvec::SmallVec;

use crate::spare::SpareBuffers;

new_key_type! {
    struct OperationId;
}

/// A descriptor that stays open while an operation on it is in flight.
pub type Fd = Arc<OwnedFd>;

/// Buffers of one operation, in the order of the device or the stream.
pub type Buffers<B> = SmallVec<[B; 1]>;

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

/// Buffers that one operation takes at most (`IOV_MAX`).
pub(crate) const MAX_BUFFERS: usize = 1024;

/// The result of an operation on the ring.
#[derive(Debug)]
pub struct Completion<T> {
    /// The name that the caller gave to the operation.
    pub token: T,
    /// What the kernel answered: the number of bytes moved, a descriptor, or 0.
    pub result: Result<u32, Errno>,
    /// What the operation gives back beside that.
    pub output: Output,
}

/// What a completed operation gives back to the caller: its buffers, or a new socket.
#[derive(Debug)]
pub enum Output {
    /// Nothing.
    None,
    /// The buffers of a read or a receive, also where it failed.
    Buffers(Buffers<BytesMut>),
    /// The socket of the connection that was accepted.
    Socket(OwnedFd),
}

impl Output {
    /// Returns the buffers; they are empty for an operation without buffers.
    pub fn into_buffers(self) -> Buffers<BytesMut> {
        match self {
            Self::Buffers(buffers) => buffers,
            Self::None | Self::Socket(_) => Buffers::new(),
        }
    }

    /// Returns the socket of an accept that succeeded.
    pub fn into_socket(self) -> Option<OwnedFd> {
        match self {
            Self::Socket(socket) => Some(socket),
            Self::None | Self::Buffers(_) => None,
        }
    }
}

impl<T> Completion<T> {
    /// Returns the same completion under another name.
    pub fn with_token<U>(self, token: U) -> Completion<U> {
        Completion { token, result: self.result, output: self.output }
    }
}

/// What an operation keeps alive until it completes. The kernel has addresses into it, so what
/// it points to must not move; the enum itself may.
enum Held {
    Nothing,
    Read(Buffers<BytesMut>),
    Write(Buffers<Bytes>),
    Receive(BytesMut),
    Moment(#[allow(dead_code)] Box<Timespec>),
    Accept,
}

struct Operation<T> {
    token: Option<T>,
    held: Held,
    /// The vector for the kernel, where there are several buffers.
    vector: Option<Box<Vector>>,
    _fd: Option<Fd>,
}

/// Addresses and lengths of several buffers.
struct Vector {
    parts: Vec<libc::iovec>,
    message: libc::msghdr,
}

/// The io_uring of one thread. `T` names operations.
pub struct Ring<T> {
    uring: IoUring,
    waiting: Waiting,
    operations: SlotMap<OperationId, Operation<T>>,
    /// The moments of wake-ups in flight, on the monotonic clock, the earliest last.
    wake_ups: Vec<u64>,
    spare: SpareBuffers,
}

impl<T> Ring<T> {
    /// Makes a ring for the thread that calls this, and only for it.
    pub fn new() -> io::Result<Self> {
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_defer_taskrun()
            .setup_cqsize(ENTRIES * 8)
            .build(ENTRIES)?;
        let waiting = Waiting::best(&uring)?;
        let operations = SlotMap::with_key();
        let (wake_ups, spare) = (Vec::new(), SpareBuffers::default());
        Ok(Self { uring, waiting, operations, wake_ups, spare })
    }

    /// Returns the buffers that reads may take, rather than new ones.
    pub(crate) fn spare(&mut self) -> &mut SpareBuffers {
        &mut self.spare
    }

    /// Returns the number of operations that have not completed.
    pub fn in_flight(&self) -> usize {
        self.operations.len()
    }

    /// Reads `parts` of so many bytes, one after the other, from `offset` of the file on: each into
    /// a buffer of its own, which comes back with what was read of it.
    pub fn read(&mut self, token: T, fd: &Fd, offset: u64, parts: &[u32]) {
        let room = |&len| self.spare.take(len as usize);
        let into = parts.iter().map(room).collect();
        self.read_into(token, fd, offset, parts, into);
    }

    /// The same into these buffers, one for each part, which are empty and have room for it.
    pub fn read_into(
        &mut self,
        token: T,
        fd: &Fd,
        offset: u64,
        parts: &[u32],
        mut into: Buffers<BytesMut>,
    ) {
        let raw = types::Fd(fd.as_raw_fd());
        let has_room =
            |(part, &len): (&BytesMut, &u32)| part.is_empty() && part.capacity() >= len as usize;
        assert!(into.len() == parts.len() && into.iter().zip(parts).all(has_room), "it has room");
        if let ([only], &[len]) = (into.as_mut_slice(), parts) {
            let entry = opcode::Read::new(raw, only.as_mut_ptr(), len);
            let entry = entry.offset(offset).build();
            self.start(entry, Some(token), Held::Read(into), None, Some(fd));
            return;
        }
        let each = into.iter_mut().zip(parts);
        let vectors = each.map(|(part, &len)| iovec(part.as_mut_ptr(), len as usize)).collect();
        let vector = Box::new(Vector::new(vectors));
        let entry = opcode::Readv::new(raw, vector.parts.as_ptr(), buffer_len(vector.parts.len()));
        let entry = entry.offset(offset).build();
        self.start(entry, Some(token), Held::Read(into), Some(vector), Some(fd));
    }

    /// Writes `from`, one buffer after the other, at `offset` of the file on.
    pub fn write(&mut self, token: T, fd: &Fd, offset: u64, from: Buffers<Bytes>) {
        let raw = types::Fd(fd.as_raw_fd());
        if let [only] = from.as_slice() {
            let entry = opcode::Write::new(raw, only.as_ptr(), buffer_len(only.len()));
            let entry = entry.offset(offset).build();
            self.start(entry, Some(token), Held::Write(from), None, Some(fd));
            return;
        }
        let vector = Box::new(Vector::of(&from));
        let entry = opcode::Writev::new(raw, vector.parts.as_ptr(), buffer_len(vector.parts.len()));
        let entry = entry.offset(offset).build();
        self.start(entry, Some(token), Held::Write(from), Some(vector), Some(fd));
    }

    /// Makes the file's data durable (`fdatasync`), all of it or that of a range of bytes.
    pub fn sync(&mut self, token: T, fd: &Fd, range: Option<Range<u64>>) {
        let entry = opcode::Fsync::new(types::Fd(fd.as_raw_fd()));
        let entry = entry.flags(types::FsyncFlags::DATASYNC);
        // The kernel counts the bytes of a range in 32 bits.
        let range = range.and_then(|range| {
            Some((range.start, u32::try_from(range.end.checked_sub(range.start)?).ok()?))
        });
        let entry = match range {
            Some((offset, len)) => entry.offset(offset).len(len),
            None => entry,
        };
        self.start(entry.build(), Some(token), Held::Nothing, None, Some(fd));
    }

    /// Allocates, zeroes or frees a range of the file: `fallocate` with that mode.
    pub fn allocate(&mut self, token: T, fd: &Fd, mode: i32, offset: u64, len: u64) {
        let entry = opcode::Fallocate::new(types::Fd(fd.as_raw_fd()), len);
        let entry = entry.offset(offset).mode(mode).build();
        self.start(entry, Some(token), Held::Nothing, None, Some(fd));
    }

    /// Receives what has arrived on the socket, at least a byte, behind what `into` holds, as far
    /// as it has room. 0 bytes are the end of the stream.
    pub fn receive(&mut self, token: T, fd: &Fd, mut into: BytesMut) {
        let room = into.spare_capacity_mut();
        let (at, len) = (room.as_mut_ptr().cast::<u8>(), room.len());
        let entry = opcode::Recv::new(types::Fd(fd.as_raw_fd()), at, buffer_len(len)).build();
        self.start(entry, Some(token), Held::Receive(into), None, Some(fd));
    }

    /// Sends `from` on the socket; it completes with the bytes sent, which may be less than all.
    pub fn send(&mut self, token: T, fd: &Fd, from: Buffers<Bytes>) {
        let raw = types::Fd(fd.as_raw_fd());
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        if let [only] = from.as_slice() {
            let entry = opcode::Send::new(raw, only.as_ptr(), buffer_len(only.len()));
            let entry = entry.flags(flags).build();
            self.start(entry, Some(token), Held::Write(from), None, Some(fd));
            return;
        }
        let vector = Box::new(Vector::of(&from));
        let entry = opcode::SendMsg::new(raw, &raw const vector.message);
        let entry = entry.flags(flags.cast_unsigned()).build();
        self.start(entry, Some(token), Held::Write(from), Some(vector), Some(fd));
    }

    /// Accepts one connection.
    pub fn accept(&mut self, token: T, fd: &Fd) {
        let raw = types::Fd(fd.as_raw_fd());
        let entry = opcode::Accept::new(raw, std::ptr::null_mut(), std::ptr::null_mut());
        let entry = entry.flags(libc::SOCK_CLOEXEC).build();
        self.start(entry, Some(token), Held::Accept, None, Some(fd));
    }

    /// Waits until the descriptor can be read.
    pub fn poll_readable(&mut self, token: T, fd: &Fd) {
        let events = u32::from(libc::POLLIN.cast_unsigned());
        let entry = opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), events).build();
        self.start(entry, Some(token), Held::Nothing, None, Some(fd));
    }

    /// Waits until the peer of the socket has hung up, or the socket has failed.
    pub fn poll_hang_up(&mut self, token: T, fd: &Fd) {
        // The kernel reports both whatever is asked for.
        let entry = opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), 0).build();
        self.start(entry, Some(token), Held::Nothing, None, Some(fd));
    }

    /// Does nothing, and completes in the order of the others.
    pub fn nop(&mut self, token: T) {
        self.start(opcode::Nop::new().build(), Some(token), Held::Nothing, None, None);
    }

    /// Submits everything and waits for a completion, or until that moment of `CLOCK_MONOTONIC`
    /// in nanoseconds.
    pub fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        if let Some(at) = until {
            self.wake_at(at);
        }
        self.submit_and_wait()
    }

    /// Submits everything and has the kernel finish what it can, without waiting. Where there is
    /// nothing to do this takes no system call.
    pub fn submit(&mut self) -> io::Result<()> {
        let queue = self.uring.submission();
        let has_work = !queue.is_empty() || queue.taskrun() || queue.cq_overflow();
        drop(queue);
        if has_work { self.enter(0, EnterFlags::GETEVENTS) } else { Ok(()) }
    }

    /// Returns whether something has completed, or would if the kernel were asked. This takes no
    /// system call.
    pub fn has_completions(&mut self) -> bool {
        !self.uring.completion().is_empty() || self.uring.submission().taskrun()
    }

    /// Takes what has completed since the last call.
    pub fn take_completions(&mut self, into: &mut Vec<Completion<T>>) {
        let Self { operations, spare, .. } = self;
        for entry in self.uring.completion() {
            let id = OperationId::from(KeyData::from_ffi(entry.user_data()));
            let Some(operation) = operations.remove(id) else { continue };
            match operation.token {
                Some(token) => {
                    let Operation { mut held, vector, .. } = operation;
                    if let Held::Write(buffers) = &mut held {
                        buffers.drain(..).for_each(|buffer| spare.give_back(buffer));
                    }
                    into.push(completion(token, held, vector.as_deref(), entry.result()));
                }
                // A wake-up came, the earliest.
                None => drop(self.wake_ups.pop()),
            }
        }
    }

    fn submit_and_wait(&mut self) -> io::Result<()> {
        match &self.waiting {
            Waiting::InRing => self.enter(1, EnterFlags::GETEVENTS | EnterFlags::NO_IOWAIT),
            Waiting::OnEvent(_) => self.submit_and_wait_for_event(),
        }
    }

    fn submit_and_wait_for_event(&mut self) -> io::Result<()> {
        self.submit()?;
        if let Waiting::OnEvent(event) = &self.waiting
            && self.uring.completion().is_empty()
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
            let mut queue = self.uring.submission();
            queue.sync();
            queue.len()
        };
        // SAFETY: no argument is passed, and the entries are those that `start` pushed.
        let entered = unsafe {
            let submitter = self.uring.submitter();
            submitter.enter::<()>(buffer_len(waiting), wanted, flags.bits(), None)
        };
        ignore_retryable(entered.map(drop))
    }

    /// Cancels everything that can be, and waits until something has completed.
    fn cancel_and_wait(&mut self) -> io::Result<()> {
        self.submit()?;
        if !self.uring.submission().is_empty() {
            // The kernel wants completions taken first. What it has not been handed it cannot
            // cancel, and would begin afterwards.
            return Ok(());
        }
        // It finds nothing where all has completed, and what it must let finish is waited for.
        let _ =
            self.uring.submitter().register_sync_cancel(None, types::CancelBuilder::any().all());
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
        self.start(entry, None, Held::Moment(moment), None, None);
    }

    fn start(
        &mut self,
        entry: squeue::Entry,
        token: Option<T>,
        held: Held,
        vector: Option<Box<Vector>>,
        fd: Option<&Fd>,
    ) {
        while self.uring.submission().is_full() {
            self.submit().expect("a full queue can be submitted");
        }
        let operation = Operation { token, held, vector, _fd: fd.cloned() };
        let id = self.operations.insert(operation);
        let entry = entry.user_data(id.data().as_ffi());
        // SAFETY: all addresses in the entry are into `operation`'s heap memory, which neither
        // moves nor is freed before the completion removes it, or `drop` has waited for all.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.expect("there is room, and one thread pushes");
    }
}

impl<T> Drop for Ring<T> {
    /// Cancels what is in flight and waits for it: the kernel must be done with the buffers.
    fn drop(&mut self) {
        let mut completed = Vec::new();
        while !self.operations.is_empty() {
            if self.cancel_and_wait().is_err() {
                // Better to leak than to free what the kernel may still write to.
                std::mem::forget(std::mem::take(&mut self.operations));
                return;
            }
            self.take_completions(&mut completed);
        }
    }
}

impl<T> std::fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("in_flight", &self.operations.len()).finish_non_exhaustive()
    }
}

impl Vector {
    fn new(mut parts: Vec<libc::iovec>) -> Self {
        assert!(parts.len() <= MAX_BUFFERS, "an operation takes at most 1024 buffers");
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

fn iovec(at: *mut u8, len: usize) -> libc::iovec {
    libc::iovec { iov_base: at.cast(), iov_len: len }
}

fn buffer_len(len: usize) -> u32 {
    u32::try_from(len).expect("a buffer is shorter than 4 GiB")
}

fn completion<T>(token: T, held: Held, vector: Option<&Vector>, result: i32) -> Completion<T> {
    let result = u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
    let output = match (held, result) {
        (Held::Read(mut buffers), result) => {
            let mut left = result.unwrap_or(0) as usize;
            for (index, buffer) in buffers.iter_mut().enumerate() {
                let room = vector.map_or(left, |vector| vector.parts[index].iov_len);
                // SAFETY: the kernel has filled the buffers in their order, each up to its room.
                unsafe { extend_filled(buffer, left.min(room)) };
                left -= left.min(room);
            }
            Output::Buffers(buffers)
        }
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
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::clock::MonotonicClock;

    const MILLISECOND: u64 = 1_000_000;

    /// What completes next on a ring that waits so.
    fn next(ring: &mut Ring<u32>) -> u32 {
        let mut completions = Vec::new();
        while completions.is_empty() {
            ring.wait(None).expect("the ring works");
            ring.take_completions(&mut completions);
        }
        assert_eq!(completions.len(), 1);
        completions[0].token
    }

    /// Both ways have to work where only one would be chosen.
    #[test]
    fn whatever_completes_ends_a_wait_in_the_ring_and_one_on_the_event() {
        let in_ring = Ring::new().expect("a ring");
        let mut on_event = Ring::new().expect("a ring");
        on_event.waiting = Waiting::on_event(&on_event.uring).expect("an event");
        for mut ring in [in_ring, on_event] {
            let (ours, mut theirs) = UnixStream::pair().expect("sockets");
            let ours: Fd = Arc::new(OwnedFd::from(ours));
            let file: Fd = Arc::new(tempfile::tempfile().expect("a file").into());

            ring.nop(1);
            assert_eq!(next(&mut ring), 1);
            ring.write(2, &file, 0, Buffers::from_elem(Bytes::from(vec![7; 4096]), 1));
            assert_eq!(next(&mut ring), 2);
            ring.sync(3, &file, None);
            assert_eq!(next(&mut ring), 3);
            ring.poll_readable(4, &ours);
            let sender = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                theirs.write_all(&[7]).expect("taken");
                theirs
            });
            assert_eq!(next(&mut ring), 4);
            ring.receive(5, &ours, BytesMut::with_capacity(10));
            assert_eq!(next(&mut ring), 5);
            let until = MonotonicClock::monotonic_now() + 20 * MILLISECOND;
            while MonotonicClock::monotonic_now() < until {
                ring.wait(Some(until)).expect("the ring works");
            }
            drop(sender);
        }
    }
}
