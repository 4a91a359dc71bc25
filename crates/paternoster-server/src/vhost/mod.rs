//! The second door to a disk: virtual machines that attach by shared memory (vhost-user-blk).
//!
//! ```text
//!   front-end (QEMU, …) ══ messages ══▶ thread `vhost`: FrontEnds, a Session each
//!        │                                 │ orders           ▲ answers, that a ring is broken
//!        │ memory, kick, call              ▼                  │
//!        └──────────────────────▶ the disk's owner: Devices, a Device each with its Queues
//! ```
//!
//! Whoever may connect to the unix socket of an export has that export: there is no name to ask
//! for. One thread has the sockets of all front-ends, as their messages may come slowly or never;
//! nothing that a request needs passes it. The owner of the disk works on the rings, beside the
//! connections of NBD, under the same tenants, weights and limits.
//!
//! No front-end and no guest is trusted: what each may hold is bounded, every order is checked by
//! the session, and memory that is taken away ends that device alone.

mod device;
mod devices;
mod front_ends;
mod listening;
mod orders;
mod queue;
mod socket;

use std::sync::Arc;

use paternoster_disk::{Capabilities, Granules};
use paternoster_vhost::{Answer, Memory, Order, blk};
use slotmap::new_key_type;

pub(crate) use self::devices::Devices;
use self::listening::{Handle, Listener};
pub(crate) use self::listening::{Listening, Sockets, VhostSocket};
use crate::admission::Admitted;
use crate::clients::{Export, Leave};
use crate::peer::Peer;

new_key_type! {
    /// Names the session of a front-end, on its thread and to the owner of its disk.
    pub(crate) struct SessionId;
}

/// A front-end that has connected to an export.
#[derive(Debug)]
pub(crate) struct NewDevice {
    pub(crate) export: Arc<Export>,
    /// The bytes of the export, and whether they may only be read.
    pub(crate) size: u64,
    pub(crate) read_only: bool,
    pub(crate) peer: Peer,
    pub(crate) admitted: Admitted,
    pub(crate) answers: Answers,
}

impl NewDevice {
    /// What its driver sees, on a volume that is capable of that.
    pub(crate) fn seen(&self, capabilities: &Capabilities) -> blk::Device {
        let Capabilities { fast_zero, block, granules, flushes, .. } = *capabilities;
        let discard = granules.map_or(block, Granules::bytes);
        let Self { size, read_only, .. } = *self;
        let queues = device::QUEUES;
        blk::Device { size, block, discard, queues, read_only, flushes, unmaps: fast_zero }
    }
}

/// What the thread of front-ends tells the owner of a disk of one of them.
#[derive(Debug)]
pub(crate) enum ToDevice {
    /// It has come. It is told what the device is.
    Attach(NewDevice),
    /// It wants this, and waits for the answer.
    Order(Order),
    /// Its export has so many bytes now.
    Resize(u64),
    /// It has gone.
    Detach(Leave),
}

/// What the owner of a disk tells the thread of front-ends of one of them.
#[derive(Debug)]
enum FromDevice {
    /// What the device is.
    Attached(blk::Device),
    /// What it has become.
    Changed(blk::Device),
    /// What has become of its order.
    Answer(Answer),
    /// A ring is broken, behind the chain before that one.
    Broken(u16, u16),
    /// Nothing uses that memory any more. To unmap it may take long.
    Retired(#[expect(dead_code, reason = "it is there to be dropped")] Arc<Memory>),
    /// The device is gone.
    Ended,
}

/// Where a session is told of its device; that it is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Answers {
    session: SessionId,
    to: Handle,
}

/// A message to the thread of front-ends.
#[derive(Debug)]
enum ToFrontEnds {
    Device(SessionId, FromDevice),
    Listen(Listener),
    Forget(u64),
    /// An export has so many bytes now.
    Resize(String, u64),
    End,
}

impl Answers {
    fn send(&self, message: FromDevice) {
        self.to.send(ToFrontEnds::Device(self.session, message));
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.send(FromDevice::Ended);
    }
}
