//! Who may enter over TLS, as a file says that is read again.
//!
//! ```text
//!   before what goes has gone   identities are taken away, other files of TLS hold
//!   afterwards                  identities are added, certificates are not asked for any more
//! ```
//!
//! So nobody enters meanwhile what is another's. What would show an export otherwise than the file
//! means it waits for the restart, as that export does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::catalogue::Catalogue;
use crate::config::{Config, IDENTITIES, Identity, ListenTls, is_in};
use crate::ctl::{Change, ReloadError, ReloadNote};
use crate::tls::{self, Loaded, Unusable};

/// What a reload changes of that.
pub(crate) struct NewAccess {
    tls: NewTls,
    groups: Vec<NewIdentities>,
    /// What waits for a restart.
    pub(crate) later: Vec<Change>,
}

/// Which files of TLS are to hold.
enum NewTls {
    /// These, from the beginning on, or only when what goes has gone.
    Loaded { files: Option<Loaded>, is_wider: bool },
    /// Those that do.
    Same,
}

/// The identities that a group is to have.
struct NewIdentities {
    group: String,
    now: Vec<Identity>,
    wanted: Vec<Identity>,
}

impl NewAccess {
    /// What the file says, with which the server was not started; `stale` are the names of what is
    /// served otherwise than it means until a restart.
    pub(crate) fn of<'n>(
        file: &Config,
        served: &Config,
        catalogue: &Catalogue,
        stale: impl Iterator<Item = &'n str>,
    ) -> Result<(Self, Vec<Change>), ReloadError> {
        let unusable = |error| ReloadError::Unusable(Unusable::into_error(error).to_string());
        let files = tls::load(&file.tls).map_err(unusable)?;
        let stale = groups_of(catalogue, stale);
        let before = catalogue.exports.tls.get();
        let of_files = changes_of_files(before.as_deref(), files.as_ref());
        let asks = |loaded: Option<&Loaded>| loaded.is_some_and(|tls| tls.asks_for_certificates);
        let is_wider = asks(before.as_deref()) && !asks(files.as_ref());
        let is_needed = served.listen.iter().any(|listen| listen.tls == ListenTls::Require);
        let waits = is_needed && files.is_none() || is_wider && !stale.is_empty();
        let (tls, mut changes, mut later) = if waits {
            (NewTls::Same, Vec::new(), of_files)
        } else {
            (NewTls::Loaded { files, is_wider }, of_files, Vec::new())
        };
        let mut groups = Vec::new();
        for mut group in NewIdentities::all(file, catalogue) {
            if group.adds() && stale.iter().any(|of| is_in(of, &group.group)) {
                let kept = group.kept();
                later.push(group.change(&kept, &group.wanted));
                group.wanted = kept;
            }
            if group.now != group.wanted {
                changes.push(group.change(&group.now, &group.wanted));
                groups.push(group);
            }
        }
        Ok((Self { tls, groups, later }, changes))
    }

    /// Takes away what somebody is to have no more.
    pub(crate) fn narrow(&self, catalogue: &Catalogue) {
        for group in &self.groups {
            catalogue.change_groups(|all| all.set_identities(&group.group, &group.kept()));
        }
        if let NewTls::Loaded { files, is_wider: false } = &self.tls {
            catalogue.exports.tls.set(files.clone());
        }
    }

    /// Gives what somebody is to have, but where something is `left` that could not go. Returns
    /// what that was.
    pub(crate) fn widen<'n>(
        self,
        catalogue: &Catalogue,
        left: impl Iterator<Item = &'n str>,
    ) -> Vec<ReloadNote> {
        let left = groups_of(catalogue, left);
        let mut failed = Vec::new();
        let why = "it would let others enter what could not be removed";
        if let NewTls::Loaded { files, is_wider: true } = self.tls {
            if left.is_empty() {
                catalogue.exports.tls.set(files);
            } else {
                failed.push(ReloadNote { place: "tls".to_owned(), why: why.to_owned() });
            }
        }
        for group in self.groups {
            if group.adds() && left.iter().any(|of| is_in(of, &group.group)) {
                failed.push(ReloadNote { place: group.place(), why: why.to_owned() });
                continue;
            }
            catalogue.change_groups(|all| all.set_identities(&group.group, &group.wanted));
        }
        failed
    }
}

impl NewIdentities {
    /// Those of the groups of the file that there are, and of those that it has no more.
    fn all(file: &Config, catalogue: &Catalogue) -> Vec<Self> {
        let in_file: BTreeMap<_, _> =
            file.groups.iter().map(|group| (&*group.path, &group.keys.identities)).collect();
        catalogue.groups(|groups| {
            let known = groups
                .all()
                .filter(|(path, _)| in_file.contains_key(path) || groups.is_of_file(path));
            let new = known.map(|(path, keys)| Self {
                group: path.to_owned(),
                now: keys.identities.clone(),
                wanted: in_file.get(path).map(|&wanted| wanted.clone()).unwrap_or_default(),
            });
            new.collect()
        })
    }

    fn adds(&self) -> bool {
        self.wanted.iter().any(|identity| !self.now.contains(identity))
    }

    /// Those that stay.
    fn kept(&self) -> Vec<Identity> {
        self.now.iter().filter(|identity| self.wanted.contains(identity)).cloned().collect()
    }

    fn place(&self) -> String {
        format!("group {:?}", self.group)
    }

    fn change(&self, from: &[Identity], to: &[Identity]) -> Change {
        let [from, to] = [from, to].map(|of| of.iter().map(ToString::to_string).collect::<Value>());
        Change { place: self.place(), what: IDENTITIES.to_owned(), from, to }
    }
}

/// The groups that these exports are in.
fn groups_of<'n>(catalogue: &Catalogue, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let entries = names.filter_map(|name| catalogue.exports.get(name));
    entries.map(|entry| entry.room.tenant().to_owned()).collect()
}

/// In what files of TLS are not as they were.
fn changes_of_files(before: Option<&Loaded>, now: Option<&Loaded>) -> Vec<Change> {
    let files = |loaded: Option<&Loaded>| -> BTreeMap<_, _> {
        loaded.into_iter().flat_map(|loaded| loaded.files.iter().cloned()).collect()
    };
    let (before, now) = (files(before), files(now));
    let keys: BTreeSet<_> = before.keys().chain(now.keys()).copied().collect();
    let changes = keys.into_iter().map(|key| {
        let shown = |files: &BTreeMap<_, String>| files.get(key).cloned().into();
        let (place, what) = ("tls".to_owned(), key.to_owned());
        Change { place, what, from: shown(&before), to: shown(&now) }
    });
    changes.filter(|change| change.from != change.to).collect()
}
