//! The ring of one thread: operations on file descriptors in, completions out.
//!
//! It knows descriptors and buffers, not disks and connections: read, write, send, receive,
//! accept, sync, allocate, wait until readable, wake at a moment. An operation owns its buffers
//! and keeps its descriptor open until it completes.
//!
//! ```text
//!   ring.read(token, …) ──▶ Operation ──▶ engine ──┬── io_uring: the kernel's rings
//!                                                  └── threads: epoll for sockets, and
//!   Completion { token, … } ◀── wait, take ◀───────        a pool of threads for files
//! ```
//!
//! What the caller sees is the same with both. io_uring takes one system call for many operations
//! and is the faster one; some machines and most containers forbid it.

mod allowed;
mod threads;
mod uring;

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use rustix::event::PollFlags;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use slotmap::new_key_type;
use smallvec::SmallVec;

use crate::guest::GuestSlice;
use crate::spare::SpareBuffers;
use threads::Threads;
use uring::Uring;

/// A descriptor that stays open while an operation on it is in flight.
pub type Fd = Arc<OwnedFd>;

/// Buffers of one operation, in the order of the device or the stream.
pub type Buffers<B> = SmallVec<[B; 1]>;

/// Buffers that one operation takes at most (`IOV_MAX`).
pub(crate) const MAX_BUFFERS: usize = 1024;

/// By what a ring has its operations carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoEngine {
    /// By io_uring: Linux 6.1 or later, where it is permitted.
    IoUring,
    /// By a pool of threads, with epoll for sockets.
    Threads,
}

impl IoEngine {
    /// Both, the faster one first.
    pub const ALL: [Self; 2] = [Self::IoUring, Self::Threads];

    /// Returns the fastest that this machine permits.
    pub fn fastest() -> Self {
        match Ring::<()>::new(Self::IoUring) {
            Ok(_) => Self::IoUring,
            Err(_) => Self::Threads,
        }
    }

    /// Returns its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
        }
    }
}

impl fmt::Display for IoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The result of an operation on the ring.
#[derive(Debug)]
pub struct Completion<T> {
    /// The name that the caller gave to the operation.
    pub token: T,
    /// The number of bytes moved; where none are meant to be, any number.
    pub result: Result<u32, Errno>,
    /// What the operation gives back beside that.
    pub output: Output,
}

/// What a completed operation gives back to the caller: buffers, or a new socket.
#[derive(Debug)]
pub enum Output {
    /// Nothing.
    None,
    /// The buffers of a read or a receive, also where it failed.
    Buffers(Buffers<BytesMut>),
    /// What a send has not sent, the first of it cut where that begins.
    Unsent(Buffers<Bytes>),
    /// The socket of the connection that was accepted.
    Socket(OwnedFd),
}

impl Output {
    /// Returns the buffers; they are empty for an operation without buffers.
    pub fn into_buffers(self) -> Buffers<BytesMut> {
        match self {
            Self::Buffers(buffers) => buffers,
            Self::None | Self::Unsent(_) | Self::Socket(_) => Buffers::new(),
        }
    }

    /// Returns what a send has not sent; nothing for any other operation.
    pub fn into_unsent(self) -> Buffers<Bytes> {
        match self {
            Self::Unsent(buffers) => buffers,
            Self::None | Self::Buffers(_) | Self::Socket(_) => Buffers::new(),
        }
    }

    /// That of a send; buffers that are sent are spare.
    fn of_send(
        buffers: Buffers<Bytes>,
        result: Result<u32, Errno>,
        spare: &mut SpareBuffers,
    ) -> Self {
        let mut sent = result.unwrap_or(0) as usize;
        let mut unsent = Buffers::new();
        for mut buffer in buffers {
            let part = buffer.len().min(sent);
            sent -= part;
            if part == buffer.len() {
                spare.give_back(buffer);
            } else {
                buffer.advance(part);
                unsent.push(buffer);
            }
        }
        Self::Unsent(unsent)
    }

    /// Returns the socket of an accept that succeeded.
    pub fn into_socket(self) -> Option<OwnedFd> {
        match self {
            Self::Socket(socket) => Some(socket),
            Self::None | Self::Buffers(_) | Self::Unsent(_) => None,
        }
    }
}

impl<T> Completion<T> {
    /// Returns the same completion under another name.
    pub fn with_token<U>(self, token: U) -> Completion<U> {
        Completion { token, result: self.result, output: self.output }
    }
}

new_key_type! {
    /// Names an operation that has not completed.
    struct OperationId;
}

/// Names an operation that goes on until it is ended, or may: a watch or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastingId(OperationId);

/// What an eventfd is written.
const ONE: [u8; 8] = 1_u64.to_ne_bytes();

/// Where a part of a read goes.
#[derive(Debug)]
pub(crate) enum Room {
    /// So many bytes into a buffer, which is empty and has room for them.
    Own(BytesMut, u32),
    /// Into all of a machine's memory there.
    Guest(GuestSlice),
}

impl Room {
    /// The bytes that it takes.
    fn len(&self) -> usize {
        match self {
            Self::Own(_, len) => *len as usize,
            Self::Guest(slice) => slice.len() as usize,
        }
    }
}

/// What an engine has to do on a descriptor.
#[derive(Debug)]
enum Operation {
    /// Read into each room, as much as it takes.
    Read { fd: Fd, offset: u64, into: Buffers<Room> },
    /// Write the buffers.
    Write { fd: Fd, offset: u64, from: Buffers<Bytes> },
    /// Make the file's data durable, or that of a range at least.
    Sync { fd: Fd, range: Option<Range<u64>> },
    /// Allocate, zero or free a range.
    Allocate { fd: Fd, mode: FallocateFlags, offset: u64, len: u64 },
    /// Receive at least a byte, behind what the buffer holds.
    Receive { fd: Fd, into: BytesMut },
    /// Send all of the buffers.
    Send { fd: Fd, from: Buffers<Bytes> },
    /// Accept one connection.
    Accept { fd: Fd },
    /// Wait until one of these is so; hang-ups and errors are always waited for.
    Poll { fd: Fd, events: PollFlags },
    /// Tell each time that it has become readable, and do not end by that.
    Watch { fd: Fd },
    /// Add 1 to an eventfd.
    Signal { fd: Fd },
    /// Nothing.
    Nop,
}

/// The ring of one thread. `T` names operations.
pub struct Ring<T> {
    engine: Engine<T>,
    spare: SpareBuffers,
}

enum Engine<T> {
    IoUring(Box<Uring<T>>),
    Threads(Box<Threads<T>>),
}

impl<T> Ring<T> {
    /// Makes a ring for the thread that calls this, and only for it.
    ///
    /// An error where the machine does not permit io_uring, or is short of descriptors, memory or
    /// threads.
    pub fn new(engine: IoEngine) -> io::Result<Self> {
        let engine = match engine {
            IoEngine::IoUring => Engine::IoUring(Box::new(Uring::new()?)),
            IoEngine::Threads => Engine::Threads(Box::new(Threads::new()?)),
        };
        Ok(Self { engine, spare: SpareBuffers::default() })
    }

    /// Returns by what operations are carried out.
    pub fn engine(&self) -> IoEngine {
        match self.engine {
            Engine::IoUring(_) => IoEngine::IoUring,
            Engine::Threads(_) => IoEngine::Threads,
        }
    }

    /// Returns the buffers that reads may take, rather than new ones.
    pub(crate) fn spare(&mut self) -> &mut SpareBuffers {
        &mut self.spare
    }

    /// An empty buffer with room for so many bytes, as reads have them.
    pub fn buffer(&mut self, len: usize) -> BytesMut {
        self.spare.take(len)
    }

    /// Keeps a buffer that nobody needs any more, for reads that come.
    pub fn give_back(&mut self, buffer: Bytes) {
        self.spare.give_back(buffer);
    }

    /// Returns the number of operations that have not completed.
    pub fn in_flight(&self) -> usize {
        match &self.engine {
            Engine::IoUring(uring) => uring.in_flight(),
            Engine::Threads(threads) => threads.in_flight(),
        }
    }

    /// Reads `parts` of so many bytes, one after the other, from `offset` of the file on: each into
    /// a buffer of its own, which comes back with what was read of it.
    pub fn read(&mut self, token: T, fd: &Fd, offset: u64, parts: &[u32]) {
        let room = |&len| Room::Own(self.spare.take(len as usize), len);
        let into = parts.iter().map(room).collect();
        self.read_into(token, fd, offset, into);
    }

    /// The same to each of these; buffers come back, with what was read of them.
    pub(crate) fn read_into(&mut self, token: T, fd: &Fd, offset: u64, into: Buffers<Room>) {
        let has_room = |room: &Room| match room {
            Room::Own(buffer, len) => buffer.is_empty() && buffer.capacity() >= *len as usize,
            Room::Guest(_) => true,
        };
        assert!(into.iter().all(has_room), "it has room");
        assert!(into.len() <= MAX_BUFFERS, "an operation takes at most 1024 buffers");
        self.start(token, Operation::Read { fd: fd.clone(), offset, into });
    }

    /// Writes `from`, one buffer after the other, at `offset` of the file on.
    pub fn write(&mut self, token: T, fd: &Fd, offset: u64, from: Buffers<Bytes>) {
        assert!(from.len() <= MAX_BUFFERS, "an operation takes at most 1024 buffers");
        self.start(token, Operation::Write { fd: fd.clone(), offset, from });
    }

    /// Makes the file's data durable (`fdatasync`), all of it or that of a range of bytes at least.
    pub fn sync(&mut self, token: T, fd: &Fd, range: Option<Range<u64>>) {
        self.start(token, Operation::Sync { fd: fd.clone(), range });
    }

    /// Allocates, zeroes or frees a range of the file: `fallocate` with that mode.
    pub fn allocate(&mut self, token: T, fd: &Fd, mode: FallocateFlags, offset: u64, len: u64) {
        self.start(token, Operation::Allocate { fd: fd.clone(), mode, offset, len });
    }

    /// Receives what has arrived on the socket, at least a byte, behind what `into` holds, as far
    /// as it has room. 0 bytes are the end of the stream.
    pub fn receive(&mut self, token: T, fd: &Fd, into: BytesMut) {
        self.start(token, Operation::Receive { fd: fd.clone(), into });
    }

    /// Sends `from` on the socket; it completes with the bytes sent, which may be less than all,
    /// and gives the others back.
    pub fn send(&mut self, token: T, fd: &Fd, from: Buffers<Bytes>) {
        assert!(from.len() <= MAX_BUFFERS, "an operation takes at most 1024 buffers");
        self.start(token, Operation::Send { fd: fd.clone(), from });
    }

    /// Accepts one connection.
    pub fn accept(&mut self, token: T, fd: &Fd) {
        self.start(token, Operation::Accept { fd: fd.clone() });
    }

    /// Waits until the descriptor can be read.
    pub fn poll_readable(&mut self, token: T, fd: &Fd) {
        self.start(token, Operation::Poll { fd: fd.clone(), events: PollFlags::IN });
    }

    /// Waits until the peer of the socket has hung up, or the socket has failed.
    pub fn poll_hang_up(&mut self, token: T, fd: &Fd) {
        self.start(token, Operation::Poll { fd: fd.clone(), events: PollFlags::empty() });
    }

    /// Completes each time that something has been written to the descriptor, which may be readable
    /// already and is never read; until [`end`](Self::end). That it is readable at the
    /// beginning may be told twice.
    pub fn watch(&mut self, token: T, fd: &Fd) -> LastingId {
        LastingId(self.start(token, Operation::Watch { fd: fd.clone() }))
    }

    /// Ends a watch or a signal: it completes no more. By threads a signal that waits in the kernel
    /// keeps one of 64 threads until it is over.
    pub fn end(&mut self, LastingId(id): LastingId) {
        match &mut self.engine {
            Engine::IoUring(uring) => uring.end(id),
            Engine::Threads(threads) => threads.end(id),
        }
    }

    /// Has receives, sends, accepts and waits on that descriptor complete, whatever comes: with
    /// what they have moved, or with ECANCELED where that is nothing.
    pub fn cancel(&mut self, fd: &Fd) {
        match &mut self.engine {
            Engine::IoUring(uring) => uring.cancel(fd),
            Engine::Threads(threads) => threads.cancel(fd),
        }
    }

    /// Adds 1 to an eventfd of somebody else: this thread does not wait, even if the kernel does
    /// for ever, or until [`end`](Self::end).
    pub fn signal(&mut self, token: T, fd: &Fd) -> LastingId {
        LastingId(self.start(token, Operation::Signal { fd: fd.clone() }))
    }

    /// Does nothing, and completes in the order of the others.
    pub fn nop(&mut self, token: T) {
        self.start(token, Operation::Nop);
    }

    /// Submits everything and waits for a completion, or until that moment of `CLOCK_MONOTONIC`
    /// in nanoseconds. It may return earlier.
    pub fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        match &mut self.engine {
            Engine::IoUring(uring) => uring.wait(until),
            Engine::Threads(threads) => threads.wait(until),
        }
    }

    /// Submits everything and has the kernel finish what it can, without waiting. Where there is
    /// nothing to do this takes no system call with io_uring, and one with threads.
    pub fn submit(&mut self) -> io::Result<()> {
        match &mut self.engine {
            Engine::IoUring(uring) => uring.submit(),
            Engine::Threads(threads) => threads.submit(),
        }
    }

    /// Returns whether something has completed, or would if the kernel were asked. This takes no
    /// system call with io_uring, and one with threads.
    pub fn has_completions(&mut self) -> bool {
        match &mut self.engine {
            Engine::IoUring(uring) => uring.has_completions(),
            Engine::Threads(threads) => threads.has_completions(),
        }
    }

    /// Takes what has completed since the last call.
    pub fn take_completions(&mut self, into: &mut Vec<Completion<T>>)
    where
        T: Clone,
    {
        let Self { engine, spare } = self;
        match engine {
            Engine::IoUring(uring) => {
                uring.take_completions(|name| Some(name.clone()), spare, into);
            }
            Engine::Threads(threads) => threads.take_completions(spare, into),
        }
    }

    fn start(&mut self, token: T, operation: Operation) -> OperationId {
        match &mut self.engine {
            Engine::IoUring(uring) => uring.start(token, operation),
            Engine::Threads(threads) => threads.start(token, operation),
        }
    }
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Ring");
        f.field("engine", &self.engine()).field("in_flight", &self.in_flight());
        f.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// io_uring sends all or nothing but after a signal or an error, so this is tried by itself.
    #[test]
    fn send_gives_back_what_has_not_gone() {
        let buffers = || ["abc", "defg", "h"].map(Bytes::from).into_iter().collect();
        let of_send = |result| {
            let unsent = Output::of_send(buffers(), result, &mut SpareBuffers::default());
            unsent.into_unsent().iter().map(|part| part.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(of_send(Ok(0)), [&b"abc"[..], b"defg", b"h"]);
        assert_eq!(of_send(Ok(1)), [&b"bc"[..], b"defg", b"h"]);
        assert_eq!(of_send(Ok(3)), [&b"defg"[..], b"h"]);
        assert_eq!(of_send(Ok(6)), [&b"g"[..], b"h"]);
        assert!(of_send(Ok(8)).is_empty());
        assert_eq!(of_send(Err(Errno::PIPE)).len(), 3, "nobody knows what has gone");
    }
}
