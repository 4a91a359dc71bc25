//! The journal of the disk, which whoever records it takes entries of.

use paternoster::{Elevator, IocId, SchedulerKind};
use paternoster_trace::sidecar::{Change, Meta, Party};
use serde_json::Value;

use super::register::Registered;
use super::stat::elevator_now;
use super::{Connections, DiskOwner, Scheduler, Tenant, Volumes};
use crate::clients::Export;
use crate::ctl;
use crate::depth::Depth;
use crate::journal::{Begin, Client, Journal, Wanted};
use crate::messages::JournalMessage;

impl Connections {
    /// Does what a recorder wants of the journal.
    pub(super) fn tell_journal(&self, owner: &mut DiskOwner, message: JournalMessage) {
        // Whoever asked may have gone.
        match message {
            JournalMessage::Begin(wanted, sender) => {
                if sender.send(self.begin_journal(owner, wanted)).is_err() {
                    end_journal(owner);
                }
            }
            JournalMessage::Take(from, room, sender) => {
                if let Some(journal) = &owner.trace().journal {
                    let _ = sender.send(journal.take(from, room));
                }
            }
            JournalMessage::End => end_journal(owner),
        }
    }

    /// What a recorder begins with; none where the past is wanted and not kept.
    fn begin_journal(&self, owner: &mut DiskOwner, wanted: Wanted) -> Option<Begin> {
        let now = elevator_now(owner);
        if wanted == Wanted::FromNow && owner.trace().journal.is_none() {
            let mut journal = Journal::of_a_recording();
            journal.changed(Vec::new(), scheduler_of(owner.engine().elevator()));
            owner.trace().journal = Some(Box::new(journal));
        }
        let (mut clients, elevator) = (self.recorded(owner), owner.engine().elevator());
        let depths = SchedulerKind::ALL.into_iter().filter_map(|kind| {
            let depth = Depth::in_force(kind, self.label.config.keys.depth, owner.depth());
            Some((kind.name().to_owned(), depth.fixed()?))
        });
        let mut meta = Meta {
            version: 1,
            disk: self.label.config.name.clone(),
            size: owner.engine().bytes(),
            rotational: elevator.device().rotational,
            scheduler: String::new(),
            depths: depths.collect(),
        };
        let journal = owner.trace().journal.as_ref()?;
        let start = journal.start(wanted, now);
        // As it was then.
        journal.scheduler_at(start.from).clone_into(&mut meta.scheduler);
        for (_, Client { party, .. }) in &mut clients {
            let weight = journal.value_at(start.from, &format!("group {:?} weight", party.group));
            party.weight = weight.and_then(|text| text.parse().ok()).unwrap_or(party.weight);
        }
        Some(Begin { meta, clients, start })
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
}

fn end_journal(owner: &mut DiskOwner) {
    owner.trace().journal.take_if(|journal| journal.is_of_a_recording());
}

/// The scheduler with those of its tunables that are set, as recordings have it.
pub(crate) fn scheduler_of(elevator: &Elevator<Scheduler>) -> String {
    let name = elevator.scheduler().kind().name();
    let set = elevator.tunables_set().iter();
    let set = set.filter(|(name, _)| elevator.tunable(name).is_ok());
    let set: Vec<_> = set.map(|(name, value)| format!("{name}={value}")).collect();
    if set.is_empty() { name.to_owned() } else { format!("{name}:{}", set.join(",")) }
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
    if owner.trace().journal.is_none() {
        return;
    }
    let at_ns = elevator_now(owner).as_nanos();
    let scheduler = scheduler_of(owner.engine().elevator());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let changes = changes.iter().map(|ctl::Change { place, what, from, to }| {
        let change = Change { at_ns, what: format!("{place} {what}"), value: text(to) };
        (change, text(from))
    });
    let changes = changes.collect();
    if let Some(journal) = &mut owner.trace().journal {
        journal.changed(changes, scheduler);
    }
}
