//! Connection threads: they have the sockets, so that the owner of a disk has its core for that.
//!
//! ```text
//!   thread 0   sockets ─▶ Clients ─▶ plug ─┐ batches        ┌──────▶ owner of disk a: Hub, engine
//!   thread 1   sockets ─▶ Clients ─▶ plug ─┼───── rings ────┤
//!   …                                      │                └──────▶ owner of disk b: Hub, engine
//!              replies ◀──────────────────  outcomes of a round ◀──────┘
//! ```
//!
//! A client stays with the thread that its disk's owner has chosen. What it sends crosses to the
//! owner in its order: reads and writes that need nothing special in batches of a plug, everything
//! else alone behind them. The owner takes in the work of tenants in rotation, as a thread takes in
//! that of connections. Nothing crosses by a lock: each pair of threads has a ring each way. What
//! threads share is each tenant's memory (`clients/pool.rs`).
//!
//! With `threads = 1` there are none of these, and the owner serves the clients itself.

mod far_site;
mod hub;
mod post;
mod thread;

use std::io;

use paternoster::{Batch, PlugLimits, PlugRules};
use paternoster_crossing::{Inbox, Wake};
use paternoster_disk::{CommandOp, Extent, Outcome, Waker};

pub(crate) use self::hub::Hub;
pub(crate) use self::thread::{Thread, ThreadHandle};
use crate::clients::{ClientId, Gone, HeldBack, HeldConnection, Question, TenantId};
use crate::config::AtStop;
use crate::connections::{ClientsOf, End};
use crate::messages::NewConnection;

/// How threads hold bios of a disk back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plugged {
    /// For how long, and how many.
    pub(crate) limits: PlugLimits,
    /// What the disk's elevator says of merging.
    pub(crate) rules: PlugRules,
}

/// What a thread sends to the owner of a disk.
#[derive(Debug)]
pub(crate) enum ToOwner {
    /// A client's work for the disk.
    Work(ClientId, Work),
    /// A client is served no more.
    Gone(Gone),
    /// What holds a tenant's commands back on this thread is another thing now.
    HeldBack(TenantId, HeldBack),
    /// The disk shuts down, and no client of this thread waits for anything any more.
    Drained,
    /// What another server needs of this thread's clients, which were held by that order.
    Held(u32, Vec<HeldConnection>),
}

/// What a client wants of the disk.
#[derive(Debug)]
pub(crate) enum Work {
    /// What was in its plug: the user data of a bio is the index of its command.
    Batch(Batch, Vec<NewCommand>),
    /// A command that may not wait in a plug.
    Command(NewCommand),
    /// Which parts of a range are holes.
    Extents(Question),
}

/// A command, as its thread names it.
#[derive(Debug)]
pub(crate) struct NewCommand {
    pub(crate) tag: u64,
    pub(crate) op: CommandOp,
}

/// What the owner of a disk sends to a thread.
#[derive(Debug)]
pub(crate) enum ToThread {
    /// A client to serve.
    Connect(ClientId, Box<NewConnection>),
    /// Outcomes of a round, under the names of the thread.
    Done(Vec<Outcome>),
    /// The answer to the question of that tag.
    Extents(u64, io::Result<Vec<Extent>>),
    /// What the disk's elevator says of merging now.
    Rules(PlugRules),
    /// A volume is closed: its clients end.
    EndClients(ClientsOf, End),
    /// The disk shuts down: no further command is taken in.
    Stop(AtStop),
    /// Another server is to go on with the clients: the order of that number.
    Hold(u32),
    /// No other server goes on.
    GoOn,
    /// The disk is gone.
    End,
}

/// Wakes a thread that waits in its ring.
struct WakeBy(Waker);

impl Wake for WakeBy {
    fn wake(&self) {
        self.0.wake();
    }
}

/// Messages that a ring between two threads holds; what is more is kept by the sender.
const RING: usize = 256;

/// An inbox of the thread that `waker` wakes.
pub(crate) fn inbox<T>(waker: &Waker) -> Inbox<T> {
    Inbox::new(WakeBy(waker.clone()))
}
