//! Bounds how many clients are connected: of each tenant, and in all.
//!
//! Every connection is a descriptor. A process may have so many, and the last ones are for those
//! who would mend things: the control socket, and the acceptor, which has to take a client in to
//! tell it that there is no room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

use crate::config::Config;

/// Descriptors that are not for clients in the transmission phase: 256 that negotiate, those of
/// the control plane, listeners, standard streams; for each disk its file, ring and events; and for
/// each connection thread its ring and event.
const RESERVED: u32 = 256 + 64;
const RESERVED_FOR_DISK: u32 = 4;
const RESERVED_FOR_THREAD: u32 = 3;

/// Why a client may not enter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum NoRoom {
    #[error("tenant {tenant:?} has {limit} connections, which is all that it may have")]
    OfTenant { tenant: String, limit: u32 },
    #[error("there are {limit} connections, which is all that the server has descriptors for")]
    InAll { limit: u32 },
}

/// The room that a tenant has for connections.
#[derive(Debug)]
pub(crate) struct TenantRoom {
    tenant: String,
    of_tenant: Count,
    in_all: Arc<Count>,
}

/// The connections that there are, and how many there may be.
#[derive(Debug)]
struct Count {
    now: AtomicU32,
    limit: u32,
}

/// A connection's place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted(Arc<TenantRoom>);

impl TenantRoom {
    /// The room of each group of the configuration. `descriptors` is how many the process may have.
    pub(crate) fn of_groups(config: &Config, descriptors: u32) -> Vec<Arc<Self>> {
        let disks = u32::try_from(config.disks.len()).unwrap_or(u32::MAX);
        let threads = config.keys.threads;
        let reserved = RESERVED
            .saturating_add(disks.saturating_mul(RESERVED_FOR_DISK))
            .saturating_add(threads.saturating_sub(1).saturating_mul(RESERVED_FOR_THREAD));
        // However few there are, somebody is served.
        let in_all = Arc::new(Count::new(descriptors.saturating_sub(reserved).max(16)));
        let rooms = config.groups.iter().map(|group| {
            let limit = group.keys.connections.unwrap_or(config.keys.connections);
            let (tenant, in_all) = (group.path.clone(), Arc::clone(&in_all));
            Arc::new(Self { tenant, of_tenant: Count::new(limit), in_all })
        });
        rooms.collect()
    }

    /// Returns whether a client of the tenant would be admitted.
    pub(crate) fn check(&self) -> Result<(), NoRoom> {
        let Self { tenant, of_tenant, in_all } = self;
        if of_tenant.is_full() {
            return Err(NoRoom::OfTenant { tenant: tenant.clone(), limit: of_tenant.limit });
        }
        if in_all.is_full() {
            return Err(NoRoom::InAll { limit: in_all.limit });
        }
        Ok(())
    }

    /// Admits a client of the tenant. One thread admits, others let go.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admitted, NoRoom> {
        self.check()?;
        for count in self.counts() {
            count.now.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Admitted(Arc::clone(self)))
    }

    fn counts(&self) -> [&Count; 2] {
        [&self.of_tenant, &self.in_all]
    }
}

impl Count {
    fn new(limit: u32) -> Self {
        Self { now: AtomicU32::new(0), limit }
    }

    fn is_full(&self) -> bool {
        self.now.load(Ordering::Relaxed) >= self.limit
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        for count in self.0.counts() {
            count.now.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Has the process open as many descriptors as it may: how many that is.
pub(crate) fn raise_descriptors() -> u32 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Where it cannot be raised, what there is has to do.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = if raised.is_ok() { maximum } else { current };
    limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The rooms of the tenants `/a` and `/b`.
    fn rooms(descriptors: u32) -> [Arc<TenantRoom>; 2] {
        let toml = "connections = 30\nthreads = 1\n[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
                    [groups.\"/a\"]\nconnections = 2\n[exports.a]\ndisk = \"d\"\nsize = 4096\n\
                    [exports.b]\ndisk = \"d\"\noffset = 4096\n";
        let config = Config::from_toml(toml, Path::new("test.toml")).expect("a configuration");
        assert_eq!([&config.groups[0].path, &config.groups[1].path], ["/a", "/b"]);
        TenantRoom::of_groups(&config, descriptors).try_into().expect("there are two groups")
    }

    #[test]
    fn tenant_has_as_many_connections_as_it_may() {
        let [a, b] = rooms(1024);
        let first = a.admit().expect("room");
        let _second = a.admit().expect("room");
        let full = NoRoom::OfTenant { tenant: "/a".to_owned(), limit: 2 };
        assert_eq!(a.admit().expect_err("no room"), full);
        b.check().expect("another tenant has room");
        drop(first);
        a.check().expect("there is room again");
    }

    #[test]
    fn all_tenants_together_leave_descriptors_to_others() {
        let [a, b] = rooms(320 + 4 + 20);
        let admitted: Vec<_> = (0..20).map(|_| b.admit().expect("room")).collect();
        assert_eq!(a.check(), Err(NoRoom::InAll { limit: 20 }));
        drop(admitted);
        a.check().expect("there is room again");
    }
}
