//! The seam between the owner of a disk and what brings it the commands of NBD's clients.
//!
//! ```text
//!                       ┌─ Clients: on the owner's own thread
//!   owner ◀─ Transport ─┤
//!                       └─ Hub: on connection threads (each with Clients of its own)
//! ```
//!
//! Of a client the owner knows what its register has: an export, a tenant, an I/O context. How its
//! commands come is the transport's.

use std::fmt;
use std::sync::Arc;

use paternoster::{Instant, Nanos};
use paternoster_disk::{Completion, FrontToken, Outcome, Waker};

use super::Door;
use super::own_site::OwnSite;
use super::removal::{ClientsOf, End};
use crate::clients::{ClientId, Clients, Gone, HeldConnection, Notices};
use crate::config::AtStop;
use crate::messages::NewConnection;
use crate::stat::ThreadsStat;
use crate::threads::{Hub, Plugged, ThreadHandle};

/// What brings commands of a disk's clients, and takes their outcomes.
pub(crate) trait Transport: fmt::Debug + Send {
    /// Takes a client in.
    fn connect(&mut self, now: Instant, client: ClientId, new: NewConnection);

    /// Gives the disk what has arrived, as much as fits into a round. Returns who is gone.
    fn take_in(&mut self, site: &mut OwnSite<'_>) -> Vec<Gone>;

    /// Takes the outcome of a command.
    fn command_done(&mut self, outcome: Outcome);

    /// Ends a round: all that it has brought is sent.
    fn round_over(&mut self, site: &mut OwnSite<'_>);

    /// Returns when it wants its next round at the latest.
    fn poll_timeout(&self, now: Instant) -> Option<Instant>;

    /// Ends clients of what takes no others.
    fn end_clients(&mut self, of: &ClientsOf, how: End);

    /// The server is being stopped: what has not been taken in waits, or is refused.
    fn begin_shutdown(&mut self, at_stop: AtStop);

    /// Another server is to go on with the clients: nothing is taken in or sent any more.
    fn hold(&mut self);

    /// Returns whether nothing of theirs is under way any more.
    fn are_held(&self) -> bool;

    /// What that needs of them; told once, when nothing of theirs is under way.
    fn held(&mut self) -> Vec<HeldConnection>;

    /// No other server goes on.
    fn go_on(&mut self);

    /// Returns whether every command is done and every reply sent.
    fn is_drained(&self) -> bool;

    /// The client whose command in flight has that key.
    fn client_of(&self, key: u64) -> Option<ClientId>;

    /// Takes a completed operation of its own on the owner's ring.
    fn ring_completed(&mut self, _: &mut OwnSite<'_>, _: Completion<FrontToken>) {
        unreachable!("it has none")
    }

    /// What has crossed threads; none where nothing does.
    fn stats(&self) -> Option<ThreadsStat> {
        None
    }

    /// Returns whether another thread has sent something.
    fn has_arrived(&self) -> bool {
        false
    }

    /// Says that the owner is about to wait. Returns whether it may.
    fn falls_asleep(&mut self) -> bool {
        true
    }

    /// Says that the owner is awake.
    fn awake(&mut self) {}

    /// Asserts what holds after every round; a connection thread does that for its clients.
    #[cfg(test)]
    fn check(&self) {}
}

/// NBD on these threads, which get the notices; on the owner's own, which `waker` wakes, where
/// there are none.
pub(crate) fn nbd(
    waker: &Waker,
    threads: &mut [ThreadHandle],
    notices: &Arc<Notices>,
    plugged: Plugged,
    stall_timeout: Nanos,
) -> Box<dyn Transport> {
    if threads.is_empty() {
        return Box::new(Clients::of_all(stall_timeout));
    }
    Box::new(Hub::new(waker, threads, notices, plugged, stall_timeout))
}

impl Transport for Clients {
    fn connect(&mut self, now: Instant, client: ClientId, new: NewConnection) {
        self.connect(now, client, new);
    }

    fn take_in(&mut self, site: &mut OwnSite<'_>) -> Vec<Gone> {
        self.take_in(site);
        self.take_gone()
    }

    fn command_done(&mut self, outcome: Outcome) {
        self.command_done(outcome);
    }

    fn round_over(&mut self, site: &mut OwnSite<'_>) {
        self.round_over(site);
        for (tenant, held_back) in self.take_changed() {
            site.note_outside(tenant, Door::Nbd, held_back);
        }
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.poll_timeout(now)
    }

    fn end_clients(&mut self, of: &ClientsOf, how: End) {
        self.end_clients(of, how);
    }

    fn begin_shutdown(&mut self, at_stop: AtStop) {
        self.begin_shutdown(at_stop);
    }

    fn hold(&mut self) {
        self.hold();
    }

    fn are_held(&self) -> bool {
        self.are_held()
    }

    fn held(&mut self) -> Vec<HeldConnection> {
        self.held()
    }

    fn go_on(&mut self) {
        self.go_on();
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn client_of(&self, key: u64) -> Option<ClientId> {
        self.client_of(key)
    }

    fn ring_completed(&mut self, site: &mut OwnSite<'_>, completion: Completion<FrontToken>) {
        self.ring_completed(site, completion);
    }

    #[cfg(test)]
    fn check(&self) {
        self.check();
    }
}
