//! What the acceptor offers: the exports of all disks, as NBD clients see them.

use std::cell::RefCell;

use paternoster_nbd::proto::TransmissionFlags;
use paternoster_nbd::{BlockSize, ExportInfo, Exports};

use crate::config::{Config, ExportConfig};

/// The exports and the disk behind each.
#[derive(Debug)]
pub(crate) struct ExportTable {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    info: ExportInfo,
    place: ExportPlace,
}

/// Where an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExportPlace {
    /// Its disk, as an index into the configuration's.
    pub(crate) disk: usize,
    /// The export, as an index into the configuration's.
    pub(crate) export: usize,
}

impl ExportTable {
    pub(crate) fn new(config: &Config) -> Self {
        let entries = config.exports.iter().enumerate().map(|(index, export)| Entry {
            info: export_info(export),
            place: ExportPlace { disk: export.disk, export: index },
        });
        Self { entries: entries.collect() }
    }

    /// Where the export is that a session has entered.
    pub(crate) fn place(&self, name: &str) -> Option<ExportPlace> {
        self.entries.iter().find(|entry| entry.info.name == name).map(|entry| entry.place)
    }
}

impl Exports for ExportTable {
    fn names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.info.name.clone()).collect()
    }

    /// The empty name is the default export: the one of that name, else the only one there is.
    fn find(&self, name: &str) -> Option<ExportInfo> {
        let named = self.entries.iter().find(|entry| entry.info.name == name);
        let only = || match self.entries.as_slice() {
            [only] if name.is_empty() => Some(only),
            _ => None,
        };
        named.or_else(only).map(|entry| entry.info.clone())
    }
}

/// The exports as one client asks for them; it notes a name that there is not.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    table: &'a ExportTable,
    missing: RefCell<Option<String>>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(table: &'a ExportTable) -> Self {
        Self { table, missing: RefCell::default() }
    }

    /// The last name that was asked for and is not there, at most its first 64 characters.
    pub(crate) fn missing(self) -> Option<String> {
        self.missing.into_inner()
    }
}

impl Exports for Asked<'_> {
    fn names(&self) -> Vec<String> {
        self.table.names()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        let found = self.table.find(name);
        if found.is_none() {
            self.missing.replace(Some(name.chars().take(64).collect()));
        }
        found
    }
}

fn export_info(export: &ExportConfig) -> ExportInfo {
    let mut flags = TransmissionFlags::HAS_FLAGS
        | TransmissionFlags::SEND_FLUSH
        | TransmissionFlags::SEND_FUA
        | TransmissionFlags::SEND_DF
        | TransmissionFlags::SEND_CACHE
        // One owner orders all connections: a flush on one covers what completed on all.
        | TransmissionFlags::CAN_MULTI_CONN;
    if export.read_only {
        flags |= TransmissionFlags::READ_ONLY;
    } else {
        flags |= TransmissionFlags::SEND_TRIM
            | TransmissionFlags::SEND_WRITE_ZEROES
            | TransmissionFlags::SEND_FAST_ZERO;
    }
    ExportInfo {
        name: export.name.clone(),
        description: export.description.clone(),
        size: export.size,
        flags,
        block_size: BlockSize::default(),
    }
}
