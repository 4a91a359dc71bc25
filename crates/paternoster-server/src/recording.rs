//! What the scheduler of a served disk tells: its accounts always, its journal if it has one, and a
//! recording while somebody reads one.
//!
//! ```text
//!   events ──▶ Sink ──┬──▶ TimeAccounts
//!                     ├──▶ Journal: what clients asked for, see ../journal
//!                     └──▶ Recording: a ring of events ──asked for every 50 ms──▶ Following
//! ```
//!
//! While nobody reads, an event costs one look more at whether there is a recording. While somebody
//! does, the owner of the disk copies events; what they say is put into words where they are read.

use std::collections::BTreeMap;
use std::sync::Weak;

use paternoster::{Event, GroupId, Instant, IocId, RingRecorder, TimeAccounts, TimedEvents, Trace};
use paternoster_trace::sidecar::Party;

use crate::journal::{Client, Journal, Note};

/// How many events a recording holds. A reader that does not come in time loses the oldest.
const EVENTS: usize = 1 << 15;

/// The sink of a served disk's scheduler.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) accounts: TimeAccounts,
    pub(crate) recording: Option<Box<Recording>>,
    pub(crate) journal: Option<Box<Journal>>,
}

impl Sink {
    /// Nobody reads. The journal has so many bytes.
    pub(crate) fn new(accounts: TimeAccounts, journal: u64) -> Self {
        Self { accounts, recording: None, journal: Journal::of_bytes(journal).map(Box::new) }
    }

    /// Whether somebody is to be told of clients that come.
    pub(crate) fn wants_clients(&self) -> bool {
        self.recording.is_some() || self.journal.is_some()
    }

    /// Notes a client that has an I/O context from now on.
    pub(crate) fn add_client(&mut self, ioc: IocId, client: Client) {
        if let Some(recording) = &mut self.recording {
            recording.add(ioc, client.party.clone());
        }
        if let Some(journal) = &mut self.journal {
            journal.note(Note::Client(ioc, client));
        }
    }
}

impl Trace for Sink {
    #[inline]
    fn event(&mut self, now: Instant, event: Event) {
        self.recording.event(now, event);
        if let Some(journal) = &mut self.journal {
            journal.event(now, event);
        }
        self.accounts.event(now, event);
    }
}

/// What is kept for a reader.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Gone with whoever reads.
    reader: Weak<()>,
    events: RingRecorder,
    /// Clients that have I/O contexts since the last reading.
    clients: Vec<(IocId, Party)>,
    /// Groups that have come since the last reading.
    groups: Paths,
}

/// What a reader gets.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) events: TimedEvents,
    /// Events that were lost before the first of these.
    pub(crate) lost: u64,
    pub(crate) clients: Vec<(IocId, Party)>,
    /// Groups that have come.
    pub(crate) groups: Paths,
}

/// The paths of a disk's groups.
pub(crate) type Paths = BTreeMap<GroupId, String>;

impl Recording {
    /// Begins for `reader`, with the clients that there are.
    pub(crate) fn new(reader: Weak<()>, clients: Vec<(IocId, Party)>) -> Self {
        Self { reader, events: RingRecorder::new(EVENTS), clients, groups: Paths::new() }
    }

    /// Returns whether the reader has gone.
    pub(crate) fn is_unread(&self) -> bool {
        self.reader.strong_count() == 0
    }

    /// Notes a group that has come.
    pub(crate) fn add_group(&mut self, group: GroupId, path: String) {
        self.groups.insert(group, path);
    }

    /// Notes a client that has an I/O context from now on.
    pub(crate) fn add(&mut self, ioc: IocId, client: Party) {
        self.clients.push((ioc, client));
    }

    /// Hands over what there is; `room` is for what comes next.
    pub(crate) fn take(&mut self, room: TimedEvents) -> Recorded {
        let (events, lost) = self.events.take(room);
        let (clients, groups) =
            (std::mem::take(&mut self.clients), std::mem::take(&mut self.groups));
        Recorded { events, lost, clients, groups }
    }
}

impl Trace for Recording {
    #[inline]
    fn event(&mut self, now: Instant, event: Event) {
        self.events.event(now, event);
    }
}
