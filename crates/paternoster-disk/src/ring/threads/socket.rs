//! The operations on sockets, each tried without blocking when its socket may be ready.

use std::io::IoSlice;
use std::mem::take;

use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, accept_with, recv, sendmsg,
};
use smallvec::SmallVec;

use super::readiness::Side;
use crate::ring::{Buffers, Fd, Operation, Output};

/// An operation on a socket, or a wait for any descriptor.
#[derive(Debug)]
pub(super) enum SocketOperation {
    Receive { fd: Fd, into: BytesMut },
    Send { fd: Fd, from: Buffers<Bytes>, sent: usize },
    Accept { fd: Fd },
    Poll { fd: Fd, events: PollFlags },
    Watch { fd: Fd },
}

/// What came of a trial.
pub(super) enum Tried {
    /// It is done, and the next one may be too.
    Done(Result<u32, Errno>, Output),
    /// It is done, and has taken all that there was.
    DoneAndDrained(Result<u32, Errno>, Output),
    /// It has something to tell, and goes on.
    Again(Result<u32, Errno>),
    /// The socket is not ready.
    Blocked,
}

impl SocketOperation {
    /// The operation, if it is one of these, or what it is otherwise.
    pub(super) fn of(operation: Operation) -> Result<Self, Operation> {
        match operation {
            Operation::Receive { fd, into } => Ok(Self::Receive { fd, into }),
            Operation::Send { fd, from } => Ok(Self::Send { fd, from, sent: 0 }),
            Operation::Accept { fd } => Ok(Self::Accept { fd }),
            Operation::Poll { fd, events } => Ok(Self::Poll { fd, events }),
            Operation::Watch { fd } => Ok(Self::Watch { fd }),
            other => Err(other),
        }
    }

    pub(super) fn fd(&self) -> &Fd {
        match self {
            Self::Receive { fd, .. }
            | Self::Send { fd, .. }
            | Self::Accept { fd }
            | Self::Poll { fd, .. }
            | Self::Watch { fd } => fd,
        }
    }

    /// On which side of its socket it waits.
    pub(super) fn side(&self) -> Side {
        match self {
            Self::Receive { .. } | Self::Accept { .. } | Self::Watch { .. } => Side::Read,
            Self::Send { .. } => Side::Write,
            Self::Poll { events, .. } if events.contains(PollFlags::IN) => Side::Read,
            Self::Poll { .. } => Side::HangUp,
        }
    }

    /// Ends it with what it has moved, or as cancelled.
    pub(super) fn given_up(self) -> (Result<u32, Errno>, Output) {
        let cancelled = Err(Errno::CANCELED);
        match self {
            Self::Receive { into, .. } => (cancelled, Output::Buffers(Buffers::from_buf([into]))),
            Self::Send { from, sent: 0, .. } => (cancelled, Output::Unsent(from)),
            Self::Send { from, sent, .. } => (Ok(count(sent)), Output::Unsent(from)),
            Self::Accept { .. } | Self::Poll { .. } | Self::Watch { .. } => {
                (cancelled, Output::None)
            }
        }
    }

    /// Does it if that does not block. `arrived` is room for what is received.
    pub(super) fn try_once(&mut self, arrived: &mut [u8]) -> Tried {
        match self {
            Self::Receive { fd, into } => receive(fd, into, arrived),
            Self::Send { fd, from, sent } => send(fd, from, sent),
            Self::Accept { fd } => accept(fd),
            Self::Poll { fd, events } => look(fd, *events),
            Self::Watch { fd } => match look(fd, PollFlags::IN) {
                Tried::Done(Ok(_), _) => Tried::Again(Ok(0)),
                other => other,
            },
        }
    }
}

fn receive(fd: &Fd, into: &mut BytesMut, arrived: &mut [u8]) -> Tried {
    let room = arrived.len().min(into.capacity() - into.len());
    let result = again_after_signal(|| recv(fd, &mut arrived[..room], RecvFlags::DONTWAIT));
    let (len, result) = match result {
        Err(Errno::WOULDBLOCK) => return Tried::Blocked,
        Ok((len, _)) => (len, Ok(count(len))),
        Err(errno) => (0, Err(errno)),
    };
    let mut into = take(into);
    into.extend_from_slice(&arrived[..len]);
    let output = Output::Buffers(Buffers::from_buf([into]));
    // The end and an error stay, and what comes next is announced.
    if result.is_ok() && (1..room).contains(&len) {
        Tried::DoneAndDrained(result, output)
    } else {
        Tried::Done(result, output)
    }
}

/// Gives all of the buffers back once it is done.
fn send(fd: &Fd, from: &mut Buffers<Bytes>, sent: &mut usize) -> Tried {
    let len: usize = from.iter().map(Bytes::len).sum();
    while *sent < len {
        let slices = slices_from(from, *sent);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let result =
            again_after_signal(|| sendmsg(fd, &slices, &mut SendAncillaryBuffer::default(), flags));
        drop(slices);
        match result {
            Err(Errno::WOULDBLOCK) => return Tried::Blocked,
            Err(errno) => return Tried::Done(Err(errno), Output::Unsent(take(from))),
            Ok(more) => *sent += more,
        }
    }
    Tried::Done(Ok(count(len)), Output::Unsent(take(from)))
}

/// What of the buffers is behind so many bytes.
fn slices_from(buffers: &[Bytes], mut skip: usize) -> SmallVec<[IoSlice<'_>; 8]> {
    let mut slices = SmallVec::new();
    for buffer in buffers {
        if skip < buffer.len() {
            slices.push(IoSlice::new(&buffer[skip..]));
        }
        skip = skip.saturating_sub(buffer.len());
    }
    slices
}

fn accept(fd: &Fd) -> Tried {
    // The client may be gone before it is accepted, and nobody else is to be waited for.
    let accepted = ioctl_fionbio(fd, true)
        .and_then(|()| again_after_signal(|| accept_with(fd, SocketFlags::CLOEXEC)));
    match accepted {
        // Of a unix socket that was shut down Linux says the same for ever; but not to poll.
        Err(Errno::WOULDBLOCK) => match look(fd, PollFlags::empty()) {
            Tried::Done(Ok(_), _) => Tried::Done(Err(Errno::INVAL), Output::None),
            other => other,
        },
        Ok(socket) => Tried::Done(Ok(0), Output::Socket(socket)),
        Err(errno) => Tried::Done(Err(errno), Output::None),
    }
}

/// Looks whether the descriptor is so now: epoll has told only that it changed.
fn look(fd: &Fd, events: PollFlags) -> Tried {
    let mut polled = [PollFd::new(fd, events)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match again_after_signal(|| poll(&mut polled, Some(&now))) {
        Ok(0) => Tried::Blocked,
        Ok(_) => Tried::Done(Ok(polled[0].revents().bits().into()), Output::None),
        Err(errno) => Tried::Done(Err(errno), Output::None),
    }
}

fn again_after_signal<R>(call: impl FnMut() -> Result<R, Errno>) -> Result<R, Errno> {
    rustix::io::retry_on_intr(call)
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("an operation moves less than 4 GiB")
}
