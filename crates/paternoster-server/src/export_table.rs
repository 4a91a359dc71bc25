//! The exports that a socket offers to NBD clients, and the disks behind them.

use std::cell::RefCell;
use std::sync::Arc;

use indexmap::IndexMap;
use paternoster_nbd::proto::TransmissionFlags;
use paternoster_nbd::{BlockSize, ExportInfo, Exports};

use crate::admission::TenantRoom;
use crate::clients::Export;
use crate::config::{Config, ExportConfig, Listen};
use crate::messages::OwnerHandle;

/// The exports of one socket, and who serves each.
#[derive(Debug)]
pub(crate) struct ExportTable {
    /// By their names, in the order of the configuration.
    entries: IndexMap<String, Entry>,
}

/// An export of the configuration, as it is served.
#[derive(Clone, Debug)]
pub(crate) struct ServedExport {
    pub(crate) export: Arc<Export>,
    /// The owner of its disk.
    pub(crate) owner: OwnerHandle,
    /// Whether its disk flushes.
    pub(crate) flushes: bool,
}

/// An export that a socket offers.
#[derive(Debug)]
pub(crate) struct Entry {
    info: ExportInfo,
    pub(crate) served: ServedExport,
    /// The room of its tenant.
    pub(crate) room: Arc<TenantRoom>,
}

impl ExportTable {
    /// What this socket offers, of the configuration's exports and groups as they are served.
    pub(crate) fn new(
        config: &Config,
        socket: &Listen,
        served: &[ServedExport],
        rooms: &[Arc<TenantRoom>],
    ) -> Self {
        let exports = config.exports.iter().zip(served).enumerate();
        let offered = exports.filter(|(index, _)| socket.offers(*index));
        let entries = offered.map(|(_, (export, served))| {
            let info = export_info(export, served.flushes);
            let room = Arc::clone(&rooms[export.group]);
            (export.name.clone(), Entry { info, served: served.clone(), room })
        });
        Self { entries: entries.collect() }
    }

    /// The empty name is the default export: the one of that name, else the only one offered.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        let only = || {
            let is_only = name.is_empty() && self.entries.len() == 1;
            self.entries.values().next().filter(|_| is_only)
        };
        self.entries.get(name).or_else(only)
    }
}

impl Exports for ExportTable {
    fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        self.entry(name).map(|entry| entry.info.clone())
    }

    fn may_enter(&self, name: &str) -> Result<(), String> {
        let room = self.entry(name).map_or(Ok(()), |entry| entry.room.check());
        room.map_err(|no_room| no_room.to_string())
    }
}

/// The exports as one client asks for them; it notes why it refuses one.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    table: &'a ExportTable,
    refusal: RefCell<Option<String>>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(table: &'a ExportTable) -> Self {
        Self { table, refusal: RefCell::default() }
    }

    /// Why it was last refused an export.
    pub(crate) fn refusal(self) -> Option<String> {
        self.refusal.into_inner()
    }
}

impl Exports for Asked<'_> {
    fn names(&self) -> Vec<String> {
        self.table.names()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        let found = self.table.find(name);
        if found.is_none() {
            let name: String = name.chars().take(64).collect();
            self.refusal.replace(Some(format!("there is none of the name {name:?}")));
        }
        found
    }

    fn may_enter(&self, name: &str) -> Result<(), String> {
        self.table.may_enter(name).inspect_err(|why| {
            self.refusal.replace(Some(why.clone()));
        })
    }
}

fn export_info(export: &ExportConfig, flushes: bool) -> ExportInfo {
    let durable = TransmissionFlags::SEND_FLUSH | TransmissionFlags::SEND_FUA;
    let mut flags = TransmissionFlags::HAS_FLAGS
        | TransmissionFlags::SEND_DF
        | TransmissionFlags::SEND_CACHE
        // One owner orders all connections: a flush on one covers what completed on all.
        | TransmissionFlags::CAN_MULTI_CONN;
    flags.set(durable, flushes);
    if export.keys.read_only {
        flags |= TransmissionFlags::READ_ONLY;
    } else {
        flags |= TransmissionFlags::SEND_TRIM
            | TransmissionFlags::SEND_WRITE_ZEROES
            | TransmissionFlags::SEND_FAST_ZERO;
    }
    ExportInfo {
        name: export.name.clone(),
        description: export.keys.description.clone(),
        size: export.size,
        flags,
        block_size: BlockSize::default(),
    }
}
