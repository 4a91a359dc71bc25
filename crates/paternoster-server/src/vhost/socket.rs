//! Messages and descriptors over the socket of a front-end, without waiting.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use paternoster_vhost::Output;
use paternoster_vhost::proto::MAX_DESCRIPTORS;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::rights;

/// Receives into `room`, and the descriptors that come with that; 0 bytes are the end.
pub(super) fn receive(socket: &OwnedFd, room: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    rights::receive(socket, room, &mut space, RecvFlags::DONTWAIT)
}

/// Sends all of it. A front-end that lets the socket fill up with replies which it does not read
/// gets EAGAIN.
pub(super) fn send(socket: &OwnedFd, output: &Output) -> Result<(), Errno> {
    let descriptor = output.descriptor.as_ref().map(|descriptor| [descriptor.as_fd()]);
    let descriptors = descriptor.as_ref().map_or(&[][..], |one| one);
    let sent = rights::send(socket, &output.bytes, descriptors, SendFlags::DONTWAIT)?;
    if sent == output.bytes.len() { Ok(()) } else { Err(Errno::AGAIN) }
}
