//! The doors by which commands come to the owner of a disk. Each names its commands as it likes.
//!
//! ```text
//!   NBD          Transport: sockets, on this thread or on others ──┐
//!   vhost-user   Devices: rings in guests' memory, on this one ────┴──▶ Connections ──▶ engine
//! ```

use paternoster::Instant;
use paternoster_disk::{Completion, FrontTag, FrontToken, Outcome};

use super::own_site::OwnSite;
use super::removal::{ClientsOf, End};
use super::transport::Transport;
use crate::clients::{ClientId, Gone, HeldConnection};
use crate::config::AtStop;
use crate::vhost::Devices;

/// The number of NBD's door.
const NBD: u8 = 0;
/// That of vhost-user.
const VHOST_USER: u8 = 1;
/// That of the owner.
const OWN: u8 = u8::MAX;

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// A client of NBD.
    Nbd,
    /// The device of a virtual machine.
    VhostUser,
    /// The owner itself: a flush that no client has asked for.
    Own,
}

impl Door {
    /// The engine's name for a command that has this one there.
    pub(crate) fn tag(self, key: u64) -> FrontTag {
        let door = match self {
            Self::Nbd => NBD,
            Self::VhostUser => VHOST_USER,
            Self::Own => OWN,
        };
        FrontTag { door, key }
    }

    /// By which one the command of that name came.
    pub(crate) fn of(tag: FrontTag) -> Self {
        match tag.door {
            NBD => Self::Nbd,
            VHOST_USER => Self::VhostUser,
            OWN => Self::Own,
            other => unreachable!("there is no door {other}"),
        }
    }
}

/// The doors of clients.
#[derive(Debug)]
pub(super) struct Doors {
    pub(super) nbd: Box<dyn Transport>,
    pub(super) devices: Devices,
}

impl Doors {
    /// With NBD as that has it, and no devices yet.
    pub(super) fn new(nbd: Box<dyn Transport>) -> Self {
        Self { nbd, devices: Devices::default() }
    }

    /// Gives the disk what has arrived, as much as fits into a round. Returns who is gone.
    pub(super) fn take_in(&mut self, site: &mut OwnSite<'_>) -> Vec<Gone> {
        let mut gone = self.nbd.take_in(site);
        gone.extend(self.devices.take_in(site));
        gone
    }

    /// Takes a completed operation on the owner's ring.
    pub(super) fn ring_completed(
        &mut self,
        site: &mut OwnSite<'_>,
        completion: Completion<FrontToken>,
    ) {
        if Devices::have(completion.token) {
            self.devices.ring_completed(site, &completion);
        } else {
            self.nbd.ring_completed(site, completion);
        }
    }

    /// Takes the outcome of a command that is not the owner's own.
    pub(super) fn command_done(&mut self, site: &mut OwnSite<'_>, outcome: Outcome) {
        match Door::of(outcome.tag) {
            Door::Nbd => self.nbd.command_done(outcome),
            Door::VhostUser => self.devices.command_done(site, outcome),
            Door::Own => unreachable!("it is no client's"),
        }
    }

    /// Ends a round: all that it has brought goes out.
    pub(super) fn round_over(&mut self, site: &mut OwnSite<'_>) {
        self.nbd.round_over(site);
        self.devices.round_over(site);
    }

    /// Returns when one wants its next round at the latest.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.nbd.poll_timeout(now).into_iter().chain(self.devices.poll_timeout(now)).min()
    }

    /// Ends clients of what takes no others.
    pub(super) fn end_clients(&mut self, site: &mut OwnSite<'_>, of: &ClientsOf, how: End) {
        self.nbd.end_clients(of, how);
        self.devices.end_clients(site, of);
    }

    /// The server is being stopped.
    pub(super) fn begin_shutdown(&mut self, at_stop: AtStop) {
        self.nbd.begin_shutdown(at_stop);
        self.devices.begin_shutdown();
    }

    /// Another server is to go on with the clients.
    pub(super) fn hold(&mut self) {
        self.nbd.hold();
        self.devices.begin_shutdown();
    }

    /// Returns whether nothing of any client is under way any more.
    pub(super) fn are_held(&self) -> bool {
        self.devices.is_drained() && self.nbd.are_held()
    }

    /// What that needs of NBD's clients.
    pub(super) fn held(&mut self) -> Vec<HeldConnection> {
        self.nbd.held()
    }

    /// No other server goes on. A device of which a request was given up finds that again when it
    /// reconnects.
    pub(super) fn go_on(&mut self, site: &mut OwnSite<'_>) {
        self.nbd.go_on();
        self.devices.go_on(site);
    }

    /// Returns whether every command is done and every reply sent.
    pub(super) fn is_drained(&self) -> bool {
        self.nbd.is_drained() && self.devices.is_drained()
    }

    /// Whose command that is; nobody's where it is the owner's own.
    pub(super) fn client_of(&self, tag: FrontTag) -> Option<ClientId> {
        match Door::of(tag) {
            Door::Nbd => self.nbd.client_of(tag.key),
            Door::VhostUser => self.devices.client_of(tag.key),
            Door::Own => None,
        }
    }

    /// Returns whether something has come that nothing wakes the owner for while it looks.
    pub(super) fn has_arrived(&self) -> bool {
        self.nbd.has_arrived() || self.devices.has_arrived()
    }

    /// Says that the owner is about to wait. Returns whether it may.
    pub(super) fn falls_asleep(&mut self) -> bool {
        // Both have to hear of it.
        let [nbd, devices] = [self.nbd.falls_asleep(), self.devices.falls_asleep()];
        nbd && devices
    }

    /// Says that the owner is awake.
    pub(super) fn awake(&mut self) {
        self.nbd.awake();
        self.devices.awake();
    }
}
