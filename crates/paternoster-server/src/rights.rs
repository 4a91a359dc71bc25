//! Messages with descriptors over unix sockets (`SCM_RIGHTS`).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Descriptors that one message takes at most (`SCM_MAX_FD`).
pub(crate) const MOST: usize = 253;

/// Receives into `room`, and the descriptors that come with that, as many as `space` takes; 0 bytes
/// are the end.
pub(crate) fn receive(
    socket: impl AsFd,
    room: &mut [u8],
    space: &mut [MaybeUninit<u8>],
    flags: RecvFlags,
) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut control = RecvAncillaryBuffer::new(space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let socket = socket.as_fd();
    let message =
        retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(room)], &mut control, flags))?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    Ok((message.bytes, rights.flatten().collect()))
}

/// Sends the bytes with the descriptors, [`MOST`] at most. Returns how many bytes went: of a stream
/// socket a part may be sent where the rest has no room.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let has_room = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(has_room, "there is room for so many");
    }
    let (socket, flags) = (socket.as_fd(), flags | SendFlags::NOSIGNAL);
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags))
}
