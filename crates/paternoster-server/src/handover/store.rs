//! What a server leaves in the descriptor store of its service manager, for the one that it starts
//! next: `FDSTORE=1` of `sd_notify(3)`.
//!
//! ```text
//!   SIGTERM ──▶ stopped ──▶ pn-descriptor-0, …, pn-client-7, …, pn-offer, pn-state ──▶ store
//!   start   ◀── LISTEN_FDS, in any order ◀─────────────────────────────────────────────┘
//! ```
//!
//! There is no way back: a server that cannot read it ends, and the manager starts it again.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// What a descriptor in the store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// A socket that listens, or a file, as in a hand-over.
    Descriptor,
    /// A client's socket.
    Client,
    Offer,
    State,
}

/// How all names begin.
const OURS: &str = "pn-";

impl Stored {
    const ALL: [Self; 4] = [Self::Descriptor, Self::Client, Self::Offer, Self::State];

    /// The number of the one of that name, if it is one of these.
    fn number(self, name: &str) -> Option<usize> {
        name.strip_prefix(OURS)?.strip_prefix(self.word())?.strip_prefix('-')?.parse().ok()
    }

    fn word(self) -> &'static str {
        match self {
            Self::Descriptor => "descriptor",
            Self::Client => "client",
            Self::Offer => "offer",
            Self::State => "state",
        }
    }

    /// The name of the one of that number, which says their order.
    pub(super) fn name(self, number: usize) -> String {
        format!("{OURS}{}-{number}", self.word())
    }
}

/// What was found in the store.
#[derive(Debug, Default)]
pub(crate) struct DescriptorStore {
    /// By their names.
    all: BTreeMap<String, OwnedFd>,
}

impl DescriptorStore {
    /// Takes a descriptor that the manager has passed, or returns it if it is no store's.
    pub(crate) fn take(&mut self, name: &str, descriptor: OwnedFd) -> Option<OwnedFd> {
        let of = |kind: &Stored| kind.number(name).is_some();
        if !Stored::ALL.iter().any(of) {
            return Some(descriptor);
        }
        self.all.insert(name.to_owned(), descriptor);
        None
    }

    /// The names of all that there is, for the manager to forget them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.all.keys().cloned().collect()
    }

    /// Returns whether a server has left all that it had: the state comes last.
    pub(crate) fn is_whole(&self) -> bool {
        self.all.contains_key(&Stored::State.name(0))
    }

    /// Takes those of a kind, in their order.
    pub(super) fn all_of(&mut self, kind: Stored) -> Vec<OwnedFd> {
        let number = |name: &String| kind.number(name);
        let names: Vec<_> =
            self.all.keys().filter(|name| number(name).is_some()).cloned().collect();
        let mut numbered: Vec<_> =
            names.into_iter().filter_map(|name| self.all.remove_entry(&name)).collect();
        numbered.sort_by_key(|(name, _)| number(name));
        numbered.into_iter().map(|(_, descriptor)| descriptor).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Seek as _, Write as _};

    use super::*;

    #[test]
    fn descriptors_come_back_in_their_order_whatever_the_manager_passes_first() {
        let mut store = DescriptorStore::default();
        let file = |text: &str| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(text.as_bytes()).expect("room");
            OwnedFd::from(file)
        };
        for number in [10, 2, 0] {
            let (name, number) = (Stored::Client.name(number), number.to_string());
            assert!(store.take(&name, file(&number)).is_none());
        }
        for other in ["nbd", "pn-nbd", "pn-client-", "pn-client-x"] {
            assert!(store.take(other, file("")).is_some(), "{other:?} is a socket unit's");
        }
        assert!(!store.is_whole(), "there is no state");
        assert!(store.all_of(Stored::State).is_empty());
        let read = |fd: OwnedFd| {
            let (mut text, mut file) = (String::new(), File::from(fd));
            file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("text");
            text
        };
        let clients: Vec<_> = store.all_of(Stored::Client).into_iter().map(read).collect();
        assert_eq!(clients, ["0", "2", "10"]);
        assert!(store.names().is_empty());
    }
}
