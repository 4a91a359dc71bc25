//! What a ring of io_uring may be asked for: what [`Operation`](super::Operation) needs.
//!
//! The filter of system calls under which a server may run does not see what a ring does. So each
//! is restricted before it is enabled, and nothing ends that: no ring of the server opens a file or
//! connects, whoever has it. (Who runs code of his own may make another ring, where he may.)

use std::io;

use io_uring::register::Restriction;
use io_uring::{IoUring, opcode};

/// The operations.
const OPERATIONS: [u8; 14] = [
    opcode::Read::CODE,
    opcode::Readv::CODE,
    opcode::Write::CODE,
    opcode::Writev::CODE,
    opcode::Fsync::CODE,
    opcode::Fallocate::CODE,
    opcode::Recv::CODE,
    opcode::Send::CODE,
    opcode::SendMsg::CODE,
    opcode::Accept::CODE,
    opcode::PollAdd::CODE,
    opcode::AsyncCancel::CODE,
    opcode::Timeout::CODE,
    opcode::Nop::CODE,
];

/// What the end of a ring asks of it: `IORING_REGISTER_SYNC_CANCEL`.
const SYNC_CANCEL: u8 = 24;

/// Enables a ring that does this and nothing else.
pub(super) fn restrict(disabled: &IoUring) -> io::Result<()> {
    let operations = OPERATIONS.into_iter().map(Restriction::sqe_op);
    let mut allowed: Vec<_> = operations.chain([Restriction::register_op(SYNC_CANCEL)]).collect();
    let submitter = disabled.submitter();
    submitter.register_restrictions(&mut allowed)?;
    submitter.register_enable_rings()
}
