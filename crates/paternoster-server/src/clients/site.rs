//! Where clients are served: what they need there of the thread and of their disk.

use std::io;

use paternoster::Instant;
use paternoster_disk::{CommandOp, Extent, FrontToken, Ring};
use slotmap::new_key_type;

use super::Export;

new_key_type! {
    /// Names a client to the owner of its disk, whichever thread serves it.
    pub(crate) struct ClientId;
}

/// A thread that serves clients of a disk: the owner's own, or another.
pub(crate) trait Site {
    /// Names an operation on the thread's ring.
    type Token;

    /// The moment now.
    fn now(&self) -> Instant;

    /// The thread's ring, which carries out operations on the clients' sockets.
    fn ring(&mut self) -> &mut Ring<Self::Token>;

    /// The name on the ring of an operation on a client's socket.
    fn token(&self, operation: FrontToken) -> Self::Token;

    /// Gives a command of the client, whose export that is, to the disk, under that tag.
    fn submit(&mut self, client: ClientId, export: &Export, tag: u64, op: CommandOp);

    /// Asks which parts of a range of the disk are holes, for the client's command of that tag.
    /// Where the answer takes time, it comes by [`Clients::extents_found`](super::Clients).
    fn extents(&mut self, question: Question) -> Option<io::Result<Vec<Extent>>>;

    /// A visit to the client is over: what it has submitted goes on now.
    fn visit_over(&mut self, client: ClientId);
}

/// Which parts of a range of the disk are holes?
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// Who asks.
    pub(crate) client: ClientId,
    /// Its command.
    pub(crate) tag: u64,
    /// First byte of the range on the disk.
    pub(crate) offset: u64,
    /// Bytes of the range.
    pub(crate) len: u32,
}
