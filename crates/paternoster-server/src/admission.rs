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

/// The connections that there are.
#[derive(Debug)]
pub(crate) struct Admission {
    tenants: Vec<Count>,
    names: Vec<String>,
    all: Count,
}

#[derive(Debug)]
struct Count {
    now: AtomicU32,
    limit: u32,
}

/// A connection's place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    tenant: usize,
}

impl Admission {
    /// `descriptors` is how many the process may have.
    pub(crate) fn new(config: &Config, descriptors: u32) -> Arc<Self> {
        let disks = u32::try_from(config.disks.len()).unwrap_or(u32::MAX);
        let threads = config.keys.threads;
        let reserved = RESERVED
            .saturating_add(disks.saturating_mul(RESERVED_FOR_DISK))
            .saturating_add(threads.saturating_sub(1).saturating_mul(RESERVED_FOR_THREAD));
        // However few there are, somebody is served.
        let limit = descriptors.saturating_sub(reserved).max(16);
        let tenants = config
            .groups
            .iter()
            .map(|group| Count::new(group.keys.connections.unwrap_or(config.keys.connections)));
        Arc::new(Self {
            tenants: tenants.collect(),
            names: config.groups.iter().map(|group| group.path.clone()).collect(),
            all: Count::new(limit),
        })
    }

    /// Returns whether a client of the tenant would be admitted.
    pub(crate) fn check(&self, tenant: usize) -> Result<(), NoRoom> {
        let Count { limit, .. } = self.tenants[tenant];
        if self.tenants[tenant].is_full() {
            return Err(NoRoom::OfTenant { tenant: self.names[tenant].clone(), limit });
        }
        if self.all.is_full() {
            return Err(NoRoom::InAll { limit: self.all.limit });
        }
        Ok(())
    }

    /// Admits a client of the tenant. One thread admits, others let go.
    pub(crate) fn admit(self: &Arc<Self>, tenant: usize) -> Result<Admitted, NoRoom> {
        self.check(tenant)?;
        for count in [&self.tenants[tenant], &self.all] {
            count.now.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Admitted { admission: Arc::clone(self), tenant })
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
        for count in [&self.admission.tenants[self.tenant], &self.admission.all] {
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

    fn admission(descriptors: u32) -> Arc<Admission> {
        let toml = "connections = 30\nthreads = 1\n[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
                    [groups.\"/a\"]\nconnections = 2\n[exports.a]\ndisk = \"d\"\nsize = 4096\n\
                    [exports.b]\ndisk = \"d\"\noffset = 4096\n";
        let config = Config::from_toml(toml, Path::new("test.toml")).expect("a configuration");
        assert_eq!([&config.groups[0].path, &config.groups[1].path], ["/a", "/b"]);
        Admission::new(&config, descriptors)
    }

    #[test]
    fn tenant_has_as_many_connections_as_it_may() {
        let admission = admission(1024);
        let first = admission.admit(0).expect("room");
        let _second = admission.admit(0).expect("room");
        let full = NoRoom::OfTenant { tenant: "/a".to_owned(), limit: 2 };
        assert_eq!(admission.admit(0).expect_err("no room"), full);
        admission.check(1).expect("another tenant has room");
        drop(first);
        admission.check(0).expect("there is room again");
    }

    #[test]
    fn all_tenants_together_leave_descriptors_to_others() {
        let admission = admission(320 + 4 + 20);
        let admitted: Vec<_> = (0..20).map(|_| admission.admit(1).expect("room")).collect();
        assert_eq!(admission.check(0), Err(NoRoom::InAll { limit: 20 }));
        drop(admitted);
        admission.check(0).expect("there is room again");
    }
}
