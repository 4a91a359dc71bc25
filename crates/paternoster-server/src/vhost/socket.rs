//! Messages and descriptors over the socket of a front-end, without waiting.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use paternoster_vhost::Output;
use paternoster_vhost::proto::MAX_DESCRIPTORS;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Receives into `room`, and the descriptors that come with that; 0 bytes are the end.
pub(super) fn receive(socket: &OwnedFd, room: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message =
        retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(room)], &mut control, flags))?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    Ok((message.bytes, rights.flatten().collect()))
}

/// Sends all of it. A front-end that lets the socket fill up with replies which it does not read
/// gets EAGAIN.
pub(super) fn send(socket: &OwnedFd, output: &Output) -> Result<(), Errno> {
    let descriptor = output.descriptor.as_ref().map(|descriptor| [descriptor.as_fd()]);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        let has_room = control.push(SendAncillaryMessage::ScmRights(descriptor));
        assert!(has_room, "there is room for one");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let bytes = [IoSlice::new(&output.bytes)];
    let sent = retry_on_intr(|| sendmsg(socket, &bytes, &mut control, flags))?;
    // Of a stream socket a part may be sent where the rest has no room.
    if sent == output.bytes.len() { Ok(()) } else { Err(Errno::AGAIN) }
}
