//! Where a disk's clients are served: on the thread of its owner, or on connection threads.

use std::sync::Arc;

use paternoster::{Instant, Nanos};
use paternoster_disk::{Completion, FrontToken, Outcome, Waker};

use super::Tenant;
use super::own_site::OwnSite;
use crate::clients::{ClientId, Clients, Export, Gone, HeldBack, Pools};
use crate::config::AtStop;
use crate::messages::NewConnection;
use crate::stat::ThreadsStat;
use crate::threads::{Hub, Plugged, Thread};

/// Where the clients are.
#[derive(Debug)]
pub(crate) enum Served {
    /// On the owner's thread: nothing crosses a thread.
    Here(Clients),
    /// On connection threads.
    OnThreads(Hub),
}

impl Served {
    /// Has the threads serve a disk's clients, or its owner where there are none; `waker` wakes the
    /// owner.
    pub(crate) fn new(
        waker: &Waker,
        threads: &mut [Thread],
        exports: &Arc<[Export]>,
        tenants: &[Tenant],
        plugged: Plugged,
        payload_timeout: Nanos,
    ) -> Self {
        if threads.is_empty() {
            return Self::here(exports, tenants, payload_timeout);
        }
        let memory: Vec<_> = tenants.iter().map(|tenant| tenant.memory).collect();
        Self::OnThreads(Hub::new(waker, threads, exports, &memory, plugged, payload_timeout))
    }

    /// Has the owner serve them itself.
    pub(crate) fn here(exports: &Arc<[Export]>, tenants: &[Tenant], timeout: Nanos) -> Self {
        let memory: Vec<_> = tenants.iter().map(|tenant| tenant.memory).collect();
        Self::Here(Clients::new(exports.clone(), &Pools::new(&memory, vec![]), 0, timeout))
    }

    pub(super) fn connect(
        &mut self,
        now: Instant,
        client: ClientId,
        export: usize,
        new: NewConnection,
    ) {
        match self {
            Self::Here(clients) => clients.connect(now, client, export, new),
            Self::OnThreads(hub) => hub.connect(client, export, new),
        }
    }

    pub(super) fn ring_completed(&mut self, site: &OwnSite<'_>, done: Completion<FrontToken>) {
        match self {
            Self::Here(clients) => clients.ring_completed(site, done),
            Self::OnThreads(_) => unreachable!("the sockets are on other threads' rings"),
        }
    }

    /// Gives the disk what has arrived, as much as fits into a round. Returns who is gone.
    pub(super) fn take_in(&mut self, site: &mut OwnSite<'_>) -> Vec<Gone> {
        match self {
            Self::Here(clients) => {
                clients.take_in(site);
                clients.take_gone()
            }
            Self::OnThreads(hub) => hub.take_in(site),
        }
    }

    pub(super) fn command_done(&mut self, outcome: Outcome) {
        match self {
            Self::Here(clients) => clients.command_done(outcome),
            Self::OnThreads(hub) => hub.command_done(outcome),
        }
    }

    /// Ends a round: all that it has brought is sent.
    pub(super) fn round_over(&mut self, site: &mut OwnSite<'_>) {
        match self {
            Self::Here(clients) => clients.round_over(site),
            Self::OnThreads(hub) => hub.round_over(site.owner.engine().elevator().plug_rules()),
        }
    }

    /// Takes what holds each tenant's commands back now, of those of which it may have changed.
    pub(super) fn take_changed(&mut self) -> Vec<(usize, HeldBack)> {
        match self {
            Self::Here(clients) => clients.take_changed(),
            Self::OnThreads(hub) => hub.take_changed(),
        }
    }

    /// The server is being stopped: what has not been taken in waits, or is refused.
    pub(super) fn begin_shutdown(&mut self, at_stop: AtStop) {
        match self {
            Self::Here(clients) => clients.begin_shutdown(at_stop),
            Self::OnThreads(hub) => hub.begin_shutdown(at_stop),
        }
    }

    /// Returns whether every command is done and every reply sent.
    pub(super) fn is_drained(&self) -> bool {
        match self {
            Self::Here(clients) => clients.is_drained(),
            Self::OnThreads(hub) => hub.is_drained(),
        }
    }

    /// The client whose command in flight has that tag.
    pub(super) fn client_of(&self, tag: u64) -> Option<ClientId> {
        match self {
            Self::Here(clients) => clients.client_of(tag),
            Self::OnThreads(hub) => hub.client_of(tag),
        }
    }

    /// Returns when it wants its next round at the latest.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Here(clients) => clients.poll_timeout(now),
            Self::OnThreads(hub) => hub.poll_timeout(now),
        }
    }

    /// What has crossed threads; none where nothing does.
    pub(super) fn stats(&self) -> Option<ThreadsStat> {
        match self {
            Self::Here(_) => None,
            Self::OnThreads(hub) => Some(hub.stats()),
        }
    }

    /// Asserts what holds after every round; a connection thread does that for its clients.
    #[cfg(test)]
    pub(super) fn check(&self) {
        if let Self::Here(clients) = self {
            clients.check();
        }
    }

    /// Returns whether a connection thread has sent something.
    pub(super) fn has_arrived(&self) -> bool {
        match self {
            Self::Here(_) => false,
            Self::OnThreads(hub) => hub.has_mail(),
        }
    }

    /// Says that the owner is about to wait. Returns whether it may.
    pub(super) fn falls_asleep(&mut self) -> bool {
        match self {
            Self::Here(_) => true,
            Self::OnThreads(hub) => hub.falls_asleep(),
        }
    }

    /// Says that the owner is awake.
    pub(super) fn awake(&mut self) {
        if let Self::OnThreads(hub) = self {
            hub.awake();
        }
    }
}
