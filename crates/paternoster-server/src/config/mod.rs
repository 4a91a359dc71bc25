//! The configuration: disks, their exports, and the groups that share them.
//!
//! A configuration comes from a TOML file or from the command line. Both are first read into one
//! draft, in which every value remembers where it was written, and one validation makes the
//! [`Config`] of it, so that the same mistake gets the same answer in both. All mistakes are
//! reported in one run. Nothing is changed; files are looked at, other NBD servers asked for their
//! exports, and notices read how images begin.
//!
//! ```text
//!   FILE.toml ─▶ keys/written.rs ─┐                      ┌─ listen.rs   sockets
//!                                 ├─▶ draft.rs ─▶ check ─┼─ disk.rs     disks, with scheduler.rs
//!   --disk … ──▶ options.rs ──────┘      ▲               ├─ group.rs    groups and weights
//!                                        │               └─ export.rs   exports
//!                               keys/: a row each key        with machine.rs and nbd.rs
//! ```
//!
//! What of a disk may change while it is served, `live.rs` changes by the same checks.
//!
//! A new key is a row in a table of `keys/`, and what makes use of it. What keys mean beside one
//! another is checked in the file of their object.
//!
//! Relative paths in a file are relative to the file's directory, those on the command line and the
//! default sockets to the current directory.

mod container;
mod devices;
mod difference;
mod disk;
mod draft;
mod error;
mod export;
mod group;
mod keys;
mod listen;
mod live;
mod locations;
mod machine;
mod mistakes;
mod modelled;
mod nbd;
pub(crate) mod new_group;
mod options;
mod polling;
mod pool;
mod reference;
mod scheduler;
mod tls;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use paternoster::{GroupLimits, Weight};

pub use crate::depth::Depth;
pub use crate::tls::Identity;
pub(crate) use devices::{
    OneDevice, apart_from, claims_to_rotate, of as devices_of, shared as sharing_devices,
};
pub(crate) use difference::{Tables, needs_restart, place_of, sockets_in, waits_for_restart};
pub use disk::{BackendConfig, DiskConfig, VolumeConfig};
pub use error::{ConfigError, Mistake, Place, Problem};
pub use export::ExportConfig;
pub use group::GroupConfig;
pub(crate) use group::{is_in, parent_of};
pub use keys::kinds::parse_span;
pub(crate) use keys::kinds::shown_span;
pub use keys::{
    About, At, AtStop, BackendKind, DiskKeys, EngineChoice, ExportKeys, GroupKeys, KeyInfo,
    ListenTls, PoolKind, RequestKeys, SameDevice, Sandbox, SchedulerWord, ServerKeys, Source,
    TlsKeys, VhostMemory, limit_names, parse_size,
};
pub(crate) use keys::{
    DEPTH_MAX, EXPORT, IDENTITIES, Key, Keys, LEAST, MULTIPLE, ROOT, VOLUME, differing, group_kind,
    limits_in_numbers,
};
use listen::is_fd_name;
pub use listen::{Listen, ListenAddress};
pub(crate) use nbd::{
    SILENT as FAR_SILENT, ask as ask_far, check_far, far_size, options as far_options,
    server as far_server,
};
pub use options::Options;
pub use polling::{PollMode, Polling};
pub use reference::{TableInfo, help, reference, schema};
pub use scheduler::SchedulerChoice;
pub(crate) use wanted::{Wanted, check_name as check_volume_name, schemas as wanted_schemas};

use crate::uri;
use disk::Beside;
use draft::Draft;
use group::Members;
use mistakes::Mistakes;

/// A validated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where clients connect: at least one socket.
    pub listen: Vec<Listen>,
    /// The files of TLS, where a socket needs them.
    pub tls: TlsKeys,
    /// Where the control socket is, a unix socket: [`default_path`](crate::ctl::default_path) if
    /// nothing was written. None is none.
    pub ctl: Option<ListenAddress>,
    /// The disks, in the order in which they were written; at least one.
    pub disks: Vec<DiskConfig>,
    /// The groups: those written, then those that exports name or make, each behind its parent and
    /// at once followed by those below it. An export is in each or below it.
    pub groups: Vec<GroupConfig>,
    /// The caps of the root, `/`, which hold for all that use a disk, on each disk.
    pub root: GroupLimits,
    /// The exports, in the order in which they were written; at least one.
    pub exports: Vec<ExportConfig>,
    /// What is set of the server.
    pub keys: ServerKeys,
}

/// What a server has that reads its file again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Served<'s> {
    /// What is known of them need not be asked for.
    pub(crate) disks: &'s [DiskConfig],
    /// Where clients find it: no far disk is there.
    pub(crate) places: &'s [uri::Place],
}

/// The largest file that is read, in bytes: room for a hundred thousand exports.
const FILE_MAX: u64 = 16 << 20;

/// What is in a file. No more than [`FILE_MAX`] is read: a disk image that was taken for a
/// configuration may be larger than memory.
fn read_bounded(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes))
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    if read as u64 > FILE_MAX {
        return Err(ConfigError::TooLarge { path: path.to_owned(), max: FILE_MAX });
    }
    Ok(bytes)
}

impl Config {
    /// Reads and validates a TOML file.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        Self::from_file_with(path, Served::default())
    }

    /// Validates the text of a TOML file; `path` is what errors call it, and its relative paths are
    /// relative to that one's directory.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ConfigError> {
        Self::from_toml_beside(text, path, Served::default())
    }

    /// The same of a file that a server reads again.
    pub(crate) fn from_file_beside(path: &Path, served: Served<'_>) -> Result<Self, ConfigError> {
        Self::from_file_with(path, served)
    }

    fn from_file_with(path: &Path, served: Served<'_>) -> Result<Self, ConfigError> {
        let bytes = read_bounded(path)?;
        let mut mistakes = Mistakes::default();
        match keys::written::decode(&bytes, path, &mut mistakes) {
            Some(text) => Self::from_toml_beside(text, path, served),
            None => mistakes.end(None),
        }
    }

    fn from_toml_beside(text: &str, path: &Path, served: Served<'_>) -> Result<Self, ConfigError> {
        let mut mistakes = Mistakes::default();
        match Draft::of_file(text, path, &mut mistakes) {
            Some(draft) => draft.check(served, mistakes),
            None => mistakes.end(None),
        }
    }

    /// Validates the options of the command line.
    pub fn from_options(options: &Options) -> Result<Self, ConfigError> {
        let mut mistakes = Mistakes::default();
        options.draft(&mut mistakes).check(Served::default(), mistakes)
    }

    /// Returns how many threads serve clients beside the owners of disks.
    pub(crate) fn connection_threads(&self) -> usize {
        let threads = usize::try_from(self.keys.threads).expect("there are few");
        if threads > 1 { threads } else { 0 }
    }

    /// Returns the exports of each volume that has some, by the indices of its disk and its own.
    pub(crate) fn exports_by_volume(&self) -> BTreeMap<(usize, usize), Vec<&ExportConfig>> {
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for export in &self.exports {
            all.entry((export.disk, export.volume)).or_default().push(export);
        }
        all
    }

    /// Returns a group and those above it, as indices into [`Config::groups`].
    pub fn lineage(&self, group: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(group), |&group| self.groups[group].parent)
    }

    /// Returns the groups that have an export of the disk, and those above them, as indices into
    /// [`Config::groups`] in its order.
    pub fn groups_on(&self, disk: usize) -> Vec<usize> {
        let exports = self.exports.iter().filter(|export| export.disk == disk);
        let mut groups: Vec<_> = exports.flat_map(|export| self.lineage(export.group)).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Returns notices about what is allowed but may surprise, a sentence each: weights and leaf
    /// weights that have no effect under their disk's scheduler, a plug that has none, images that
    /// seem to be of another format than raw, disks that are on one device, sockets whose paths are
    /// too long for clients, and those that other machines reach without TLS. The beginning
    /// of each image is read for that.
    pub fn notices(&self) -> Vec<String> {
        let disks = self.disks.iter().enumerate();
        let ignored = disks.filter_map(|(index, disk)| {
            let on_disk = self.groups_on(index);
            let groups = || on_disk.iter().map(|&group| &self.groups[group]);
            let has_leaf = || groups().any(|group| group.has_leaf_weight(index));
            let has_any = || {
                has_leaf()
                    || groups().any(|group| group.weights_on(index).weight != Weight::default())
            };
            let scheduler = disk.scheduler.kind();
            let what = match scheduler {
                kind if !kind.has_weights() => has_any().then_some("weights"),
                kind if !kind.has_leaf_weights() => has_leaf().then_some("leaf weights"),
                _ => None,
            };
            what.map(|what| {
                let of = disk.what();
                format!("{of} {:?}: {what} have no effect under {scheduler}", disk.name)
            })
        });
        let volumes = self
            .disks
            .iter()
            .flat_map(|disk| disk.volumes.iter().map(|volume| (disk.what_of_volume(), volume)));
        let containers = volumes.filter_map(|(what, volume)| match &volume.backend {
            BackendConfig::File { path, .. } => container::notice(what, &volume.name, path),
            BackendConfig::Memory { .. }
            | BackendConfig::Modelled { .. }
            | BackendConfig::Device { .. }
            | BackendConfig::Nbd { .. }
            | BackendConfig::NbdPool => None,
        });
        let apart = self.disks.iter().filter_map(devices::apart);
        let unplugged = self.disks.iter().filter(|disk| !disk.keys.plug && self.keys.threads == 1);
        let unplugged = unplugged.map(|disk| {
            let (what, name) = (disk.what(), &disk.name);
            format!(
                "{what} {name:?}: plug has no effect with threads = 1, where nothing is plugged"
            )
        });
        let unpolled = self.disks.iter().filter(|disk| {
            let polls = matches!(disk.keys.polling.poll, PollMode::Classic | PollMode::Hybrid);
            polls && matches!(disk.backend, BackendConfig::Memory { .. })
        });
        let unpolled = unpolled.map(|disk| {
            format!(
                "disk {:?}: poll = {:?} has no effect on a memory disk, whose requests take no \
                 time",
                disk.name,
                disk.keys.polling.poll.name()
            )
        });
        // Each sentence once, not for each of its disks.
        let on = |disk: &DiskConfig| {
            (disk.what(), disk.name.clone(), devices::of(disk).unwrap_or_default())
        };
        let shared: BTreeSet<_> =
            devices::shared(self.disks.iter().map(on)).into_values().collect();
        let exports = self.exports.iter().filter(|export| export.keys.export).count();
        let asks = self.tls.client_ca.is_some();
        let sockets = self.listen.iter().filter_map(|listen| listen.notice(exports, asks));
        let notices = ignored.chain(containers).chain(unplugged).chain(unpolled);
        notices.chain(apart).chain(shared).chain(sockets).collect()
    }
}

impl Draft {
    fn check(&self, served: Served<'_>, mut mistakes: Mistakes) -> Result<Config, ConfigError> {
        let sockets = listen::check(self, &mut mistakes);
        let tls = tls::check(self, &mut mistakes);
        let ctl = sockets.check_ctl(self, &mut mistakes);
        mistakes.note(sockets.check_metrics(self));
        sockets.check_vhost(self, ctl.as_ref(), &mut mistakes);
        sockets.check_reached(self, &mut mistakes);
        let disks = disk::check(self, Beside { served, sockets: &sockets }, &mut mistakes);
        machine::check_memory(self, &disks, &mut mistakes);
        export::check_names(&self.exports, &mut mistakes);
        let members = Members::of(self, &mut mistakes);
        let groups = group::check(self, &members, &disks, &mut mistakes);
        let root = group::check_root(self, &members, &disks, &mut mistakes);
        let exports = export::check(self, &members, &disks, groups.as_deref(), &mut mistakes);
        let disks: Option<_> = disks.into_iter().map(|checked| checked.config).collect();
        let keys = self.server.keys.clone();
        let listen = sockets.into_sockets();
        let made = disks.zip(groups).zip(exports);
        let made = made.map(|((disks, groups), exports)| Config {
            listen,
            tls,
            ctl,
            disks,
            groups,
            root,
            exports,
            keys,
        });
        mistakes.end(made)
    }
}
