//! The exports that a socket offers to NBD clients, and the disks behind them.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError, RwLock};

use indexmap::{IndexMap, IndexSet};
use paternoster_nbd::proto::TransmissionFlags;
use paternoster_nbd::{BlockSize, ExportInfo, Exports};

use crate::admission::TenantRoom;
use crate::clients::Export;
use crate::config::{Config, Identity, Listen, ListenTls};
use crate::messages::OwnerHandle;
use crate::tls::{Identities, InForce, Loaded};
use crate::vhost::Listening;

/// All exports that are served, by their names, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct ServedExports {
    all: RwLock<IndexMap<String, Arc<Entry>>>,
    /// What each socket offers, in the order of the configuration.
    offers: RwLock<Vec<Offer>>,
    /// The files of TLS, for the sockets that require it.
    pub(crate) tls: InForce,
    /// Whose certificates enter what there.
    identities: Arc<Identities>,
}

/// Who asks for exports.
#[derive(Clone, Debug)]
pub(crate) enum Visitor {
    /// Somebody who has not been asked for a certificate.
    Anyone,
    /// Whoever has a certificate of these names.
    Known(Arc<[Identity]>),
}

/// The names of the exports that a socket offers; all of them if it names none.
pub(crate) type Offer = Option<IndexSet<String>>;

/// What a socket of this configuration offers.
pub(crate) fn offer_of(config: &Config, socket: &Listen) -> Offer {
    let name = |export: &usize| config.exports[*export].name.clone();
    socket.exports.as_ref().map(|exports| exports.iter().map(name).collect())
}

/// An export that is served.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) info: ExportInfo,
    pub(crate) export: Arc<Export>,
    /// The owner of its disk.
    pub(crate) owner: OwnerHandle,
    /// The room of its tenant.
    pub(crate) room: Arc<TenantRoom>,
    /// Whether it is being removed: nobody enters any more.
    pub(crate) is_leaving: bool,
    /// The socket of its device, if virtual machines attach to it.
    pub(crate) listening: Option<Arc<Listening>>,
}

/// The entry of that name that clients may see: a volume that is no export has one too.
fn seen<'e>((name, entry): (&'e String, &'e Arc<Entry>)) -> Option<(&'e String, &'e Arc<Entry>)> {
    entry.export.is_offered.then_some((name, entry))
}

impl Entry {
    /// Whether a client may use it as it was told: it is no smaller, and written to or not.
    pub(crate) fn is_as_told(&self, told: &ExportInfo) -> bool {
        let is_read_only = |of: &ExportInfo| of.flags.contains(TransmissionFlags::READ_ONLY);
        told.size <= self.info.size && is_read_only(told) == is_read_only(&self.info)
    }

    /// Whether its volume flushes.
    pub(crate) fn flushes(&self) -> bool {
        self.info.flags.contains(TransmissionFlags::SEND_FLUSH)
    }
}

impl ServedExports {
    /// None, on sockets that offer this, with these files of TLS, to whom groups know.
    pub(crate) fn on(offers: Vec<Offer>, tls: InForce, identities: Arc<Identities>) -> Self {
        Self { all: RwLock::default(), offers: RwLock::new(offers), tls, identities }
    }

    /// Returns whether clients show certificates anywhere.
    pub(crate) fn asks_for_certificates(&self) -> bool {
        self.tls.get().is_some_and(|tls| tls.asks_for_certificates)
    }

    /// What the socket of that number offers.
    pub(crate) fn offer(&self, socket: usize) -> Offer {
        let offers = self.offers.read().unwrap_or_else(PoisonError::into_inner);
        offers.get(socket).cloned().flatten()
    }

    /// Has the socket of that number offer that from now on.
    pub(crate) fn set_offer(&self, socket: usize, offer: Offer) {
        self.offers.write().unwrap_or_else(PoisonError::into_inner)[socket] = offer;
    }

    /// Returns whether the socket of that number offers an export of that name.
    pub(crate) fn offers(&self, socket: usize, name: &str) -> bool {
        let offers = self.offers.read().unwrap_or_else(PoisonError::into_inner);
        let offer = offers.get(socket).and_then(Option::as_ref);
        offer.is_none_or(|offer| offer.contains(name))
    }

    /// Serves an export from now on, in place of one of the same name.
    pub(crate) fn insert(&self, entry: Entry) {
        self.write(|all| _ = all.insert(entry.info.name.clone(), Arc::new(entry)));
    }

    /// Changes what new clients see of an export, if it is served.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Entry)) {
        self.write(|all| {
            if let Some(entry) = all.get_mut(name) {
                change(Arc::make_mut(entry));
            }
        });
    }

    /// The sockets on which virtual machines attach.
    pub(crate) fn listening(&self) -> Vec<Arc<Listening>> {
        self.read(|all| all.values().filter_map(|entry| entry.listening.clone()).collect())
    }

    /// No virtual machine attaches any more.
    pub(crate) fn stop_listening(&self) {
        self.write(|all| all.values_mut().for_each(|entry| Arc::make_mut(entry).listening = None));
    }

    /// The export of that name, if it is served.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.read(|all| all.get(name).cloned())
    }

    /// Serves an export no more.
    pub(crate) fn remove(&self, name: &str) {
        self.write(|all| _ = all.shift_remove(name));
    }

    fn read<T>(&self, look: impl FnOnce(&IndexMap<String, Arc<Entry>>) -> T) -> T {
        look(&self.all.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, change: impl FnOnce(&mut IndexMap<String, Arc<Entry>>)) {
        change(&mut self.all.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The exports of one socket.
#[derive(Debug)]
pub(crate) struct ExportTable {
    served: Arc<ServedExports>,
    /// The number of the socket.
    socket: usize,
    /// Whether clients have to begin TLS there.
    pub(crate) tls: ListenTls,
}

impl ExportTable {
    /// What this socket offers of those that are served.
    pub(crate) fn new(socket: usize, tls: ListenTls, served: Arc<ServedExports>) -> Self {
        Self { served, socket, tls }
    }

    /// The files of TLS that hold now.
    pub(crate) fn tls_in_force(&self) -> Option<Arc<Loaded>> {
        self.served.tls.get()
    }

    /// What the visitor gets by that name. The empty name is the default export: the one of that
    /// name, else the only one that it may enter.
    pub(crate) fn entry(&self, name: &str, visitor: &Visitor) -> Option<Arc<Entry>> {
        self.served.read(|all| {
            let named = all.get_key_value(name).and_then(seen);
            let named = named.filter(|one| self.shows(*one, visitor)).map(|(_, entry)| entry);
            let only = || {
                let all = all.iter().filter_map(seen);
                let mut offered = all.filter(|one| self.shows(*one, visitor));
                let first = offered.next().filter(|_| name.is_empty());
                first.filter(|_| offered.next().is_none()).map(|(_, entry)| entry)
            };
            named.or_else(only).cloned()
        })
    }

    /// Whether the visitor is shown an export: it hears nothing of one that it may not enter.
    fn shows(&self, (name, entry): (&String, &Arc<Entry>), visitor: &Visitor) -> bool {
        let may_enter = match visitor {
            Visitor::Anyone => true,
            Visitor::Known(identities) => self.identity_in(entry, identities).is_some(),
        };
        may_enter && self.served.offers(self.socket, name)
    }

    /// By which of these identities an export may be entered, if by any.
    pub(crate) fn identity_in(&self, entry: &Entry, of: &[Identity]) -> Option<Identity> {
        self.served.identities.known_in(entry.room.tenant(), of)
    }

    /// Whether the visitor has shown a certificate of which no group knows a name.
    fn is_of_no_tenant(&self, visitor: &Visitor) -> bool {
        matches!(visitor, Visitor::Known(of) if !self.served.identities.know(of))
    }

    /// Why the visitor is told that there is no export of that name.
    fn why_none(&self, name: &str, visitor: &Visitor) -> String {
        let name: String = name.chars().take(64).collect();
        match visitor {
            Visitor::Known(_) if self.is_of_no_tenant(visitor) => of_no_tenant(visitor),
            Visitor::Known(_) => format!("there is none of the name {name:?} for its certificate"),
            Visitor::Anyone => format!("there is none of the name {name:?}"),
        }
    }
}

/// Names of a certificate that are told, and how much of each.
const NAMES_TOLD: usize = 4;
const NAME_TOLD: usize = 100;

fn of_no_tenant(visitor: &Visitor) -> String {
    let Visitor::Known(of) = visitor else { return String::new() };
    let told = |identity: &Identity| identity.to_string().chars().take(NAME_TOLD).collect();
    let names: Vec<String> = of.iter().take(NAMES_TOLD).map(told).collect();
    let more = if of.len() > NAMES_TOLD { ", …" } else { "" };
    format!("the certificate is of no tenant: its names are {}{more}", names.join(", "))
}

/// The exports as one client asks for them; it notes why it refuses one.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    table: &'a ExportTable,
    visitor: &'a Visitor,
    refusal: RefCell<Option<String>>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(table: &'a ExportTable, visitor: &'a Visitor) -> Self {
        Self { table, visitor, refusal: RefCell::default() }
    }

    /// Why it was last refused an export.
    pub(crate) fn refusal(self) -> Option<String> {
        self.refusal.into_inner()
    }
}

impl Exports for Asked<'_> {
    fn names(&self) -> Vec<String> {
        let Self { table, visitor, .. } = self;
        if table.is_of_no_tenant(visitor) {
            self.refusal.replace(Some(of_no_tenant(visitor)));
        }
        table.served.read(|all| {
            let all = all.iter().filter_map(seen);
            let entered = all.filter(|one| table.shows(*one, visitor) && !one.1.is_leaving);
            entered.map(|(name, _)| name.clone()).collect()
        })
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        let Some(entry) = self.table.entry(name, self.visitor) else {
            self.refusal.replace(Some(self.table.why_none(name, self.visitor)));
            return None;
        };
        Some(entry.info.clone())
    }

    fn may_enter(&self, name: &str) -> Result<(), String> {
        let Some(entry) = self.table.entry(name, self.visitor) else { return Ok(()) };
        let entered = match entry.room.check() {
            _ if entry.is_leaving => {
                Err(format!("the export {:?} is being removed", entry.info.name))
            }
            checked => checked.map_err(|no_room| no_room.to_string()),
        };
        entered.inspect_err(|why| _ = self.refusal.replace(Some(why.clone())))
    }
}

/// What clients are told of an export.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) size: u64,
    pub(crate) read_only: bool,
    /// Whether its volume flushes.
    pub(crate) flushes: bool,
}

impl Told<'_> {
    /// The same, as the protocol has it.
    pub(crate) fn info(self) -> ExportInfo {
        let durable = TransmissionFlags::SEND_FLUSH | TransmissionFlags::SEND_FUA;
        let mut flags = TransmissionFlags::HAS_FLAGS
            | TransmissionFlags::SEND_DF
            | TransmissionFlags::SEND_CACHE
            // One owner orders all connections: a flush on one covers what completed on all.
            | TransmissionFlags::CAN_MULTI_CONN;
        flags.set(durable, self.flushes);
        if self.read_only {
            flags |= TransmissionFlags::READ_ONLY;
        } else {
            flags |= TransmissionFlags::SEND_TRIM
                | TransmissionFlags::SEND_WRITE_ZEROES
                | TransmissionFlags::SEND_FAST_ZERO;
        }
        ExportInfo {
            name: self.name.to_owned(),
            description: self.description.map(str::to_owned),
            size: self.size,
            flags,
            block_size: BlockSize::default(),
        }
    }
}
