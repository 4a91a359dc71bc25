//! The journal of the disk, which whoever records it takes entries of.

use paternoster::IocId;
use paternoster_trace::sidecar::{Change, Meta, Party};

use super::register::Registered;
use super::stat::elevator_now;
use super::{Connections, DiskOwner, Tenant, Volumes};
use crate::clients::Export;
use crate::ctl;
use crate::journal::{Begin, Client, Journal, Note, Wanted};
use crate::messages::JournalMessage;

impl Connections {
    /// Does what a recorder wants of the journal.
    pub(super) fn tell_journal(&self, owner: &mut DiskOwner, message: JournalMessage) {
        // Whoever asked may have gone.
        match message {
            JournalMessage::Begin(wanted, sender) => {
                let _ = sender.send(self.begin_journal(owner, wanted));
            }
            JournalMessage::Take(from, room, sender) => {
                if let Some(journal) = &owner.trace().journal {
                    let _ = sender.send(journal.take(from, room));
                }
            }
            JournalMessage::End => {
                owner.trace().journal.take_if(|journal| journal.is_of_a_recording());
            }
        }
    }

    /// What a recorder begins with; none where the past is wanted and not kept.
    fn begin_journal(&self, owner: &mut DiskOwner, wanted: Wanted) -> Option<Begin> {
        let now = elevator_now(owner);
        let journal = &mut owner.trace().journal;
        if wanted == Wanted::FromNow {
            journal.get_or_insert_with(|| Box::new(Journal::of_a_recording()));
        }
        let start = journal.as_ref()?.start(wanted, now);
        Some(Begin { meta: self.meta(owner), clients: self.recorded(owner), start })
    }

    /// The clients that have I/O contexts.
    pub(super) fn recorded(&self, owner: &DiskOwner) -> Vec<(IocId, Client)> {
        let clients = self.register.by_io_context().into_iter();
        let recorded = clients.map(|(ioc, client)| {
            let tenant = &self.tenants[client.export.tenant];
            (ioc, recorded(owner, client, tenant, &self.label.volumes))
        });
        recorded.collect()
    }

    fn meta(&self, owner: &DiskOwner) -> Meta {
        let elevator = owner.engine().elevator();
        let set = elevator.tunables_set().iter();
        let set = set.filter(|(name, _)| elevator.tunable(name).is_ok());
        let set: Vec<_> = set.map(|(name, value)| format!("{name}={value}")).collect();
        let scheduler = elevator.scheduler().kind().name();
        let scheduler = [scheduler, &set.join(",")].join(":");
        Meta {
            version: 1,
            disk: self.label.config.name.clone(),
            size: owner.engine().bytes(),
            rotational: elevator.device().rotational,
            scheduler: scheduler.trim_end_matches(':').to_owned(),
            depth: Some(elevator.device().queue_depth),
        }
    }
}

/// A client of a tenant, as recordings have it.
pub(super) fn recorded(
    owner: &DiskOwner,
    client: &Registered,
    tenant: &Tenant,
    volumes: &Volumes,
) -> Client {
    let Export { volume, place, .. } = *client.export;
    let party = Party {
        connection: 0,
        name: client.name(),
        group: tenant.path.clone(),
        weight: owner.engine().elevator().groups()[tenant.group].weight().value(),
        volume: volumes.name(volume).unwrap_or_default().to_owned(),
    };
    Client { party, first: place.first, bytes: owner.backend(volume).capabilities().size }
}

/// Notes what was set.
pub(super) fn note_changes(owner: &mut DiskOwner, changes: &[ctl::Change]) {
    let at_ns = elevator_now(owner).as_nanos();
    let Some(journal) = &mut owner.trace().journal else { return };
    for ctl::Change { place, what, to, .. } in changes {
        let value = to.as_str().map_or_else(|| to.to_string(), str::to_owned);
        journal.note(Note::Change(Change { at_ns, what: format!("{place} {what}"), value }));
    }
}
