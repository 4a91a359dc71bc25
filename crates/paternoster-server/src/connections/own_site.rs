//! The owner's thread as a site: nothing crosses a thread.

use std::io;

use paternoster::scheduler::Work;
use paternoster::{Instant, IocId, PlugRules};
use paternoster_disk::{Command, CommandOp, Extent, FrontToken, Ring, Token};

use super::journal::recorded;
use super::register::Register;
use super::stat::elevator_now;
use super::{DiskOwner, Door, Tenants, Volumes};
use crate::clients::{ClientId, Export, HeldBack, Question, Site, TenantId};

/// The owner, as it serves clients itself.
pub(crate) struct OwnSite<'a> {
    pub(crate) owner: &'a mut DiskOwner,
    pub(super) tenants: &'a mut Tenants,
    pub(super) register: &'a mut Register,
    pub(super) volumes: &'a Volumes,
}

impl OwnSite<'_> {
    /// The export of a client.
    pub(crate) fn export(&mut self, client: ClientId) -> &Export {
        &self.register.client(client).export
    }

    /// The I/O context of a client, made at its first command.
    pub(crate) fn io_context(&mut self, client: ClientId) -> IocId {
        let client = self.register.client(client);
        if let Some(ioc) = client.ioc {
            return ioc;
        }
        let (tenants, volumes) = (&*self.tenants, self.volumes);
        let tenant = &tenants[client.export.tenant];
        let (prio, group) = (client.export.io_prio, tenant.group);
        let ioc = self.owner.administer(|elevator, now| elevator.add_io_context(now, prio, group));
        if self.owner.trace().wants_clients() {
            let recorded = recorded(self.owner, client, tenant, volumes);
            self.owner.trace().add_client(ioc, recorded);
        }
        client.ioc = Some(ioc);
        ioc
    }

    /// Notes in the journal, if there is one, that a command has come.
    pub(crate) fn note_arrival(&mut self, command: &Command) {
        if self.owner.trace().journal.is_some() {
            let now = elevator_now(self.owner);
            if let Some(journal) = &mut self.owner.trace().journal {
                journal.arrived(now, command);
            }
        }
    }

    /// What the disk's elevator says of merging.
    pub(crate) fn plug_rules(&self) -> PlugRules {
        self.owner.engine().elevator().plug_rules()
    }

    /// Gives a command of the client, whose export that is, to the disk, under that key of the
    /// door.
    pub(crate) fn submit_by(
        &mut self,
        door: Door,
        client: ClientId,
        export: &Export,
        key: u64,
        op: CommandOp,
    ) {
        let ioc = self.io_context(client);
        let command = Command { tag: door.tag(key), volume: export.volume, ioc, op };
        self.note_arrival(&command);
        self.owner.submit(command);
    }

    /// Tells the accounts of the scheduler what holds a tenant's commands back before they reach
    /// it, of those that come by that door.
    pub(crate) fn note_outside(&mut self, tenant: TenantId, door: Door, held_back: HeldBack) {
        // What is told may be older than that the tenant has gone.
        let Some(tenant) = self.tenants.get_mut(tenant) else { return };
        let (group, held_back) = (tenant.group, tenant.hold_back(door, held_back));
        let now = elevator_now(self.owner);
        self.owner.trace().accounts.note_outside(now, group, held_back.outside());
    }
}

impl Site for OwnSite<'_> {
    type Token = Token;

    fn now(&self) -> Instant {
        self.owner.now()
    }

    fn ring(&mut self) -> &mut Ring<Token> {
        self.owner.ring()
    }

    fn token(&self, operation: FrontToken) -> Token {
        Token::Front(operation)
    }

    fn submit(&mut self, client: ClientId, export: &Export, tag: u64, op: CommandOp) {
        self.submit_by(Door::Nbd, client, export, tag, op);
    }

    /// Asks the back end. No data moves: the tenant is charged as for a read of no bytes each
    /// extent.
    fn extents(&mut self, question: Question) -> Option<io::Result<Vec<Extent>>> {
        let Question { client, offset, len, .. } = question;
        let &Export { volume, tenant, .. } = self.export(client);
        let answer = self.owner.backend(volume).extents(offset, len.into());
        if let Ok(extents) = &answer {
            let looks = u32::try_from(extents.len()).expect("a look has few extents");
            let group = self.tenants[tenant].group;
            self.owner.administer(|elevator, now| elevator.charge(now, group, Work::Ops(looks)));
        }
        Some(answer)
    }

    fn visit_over(&mut self, _: ClientId) {}
}
