//! Bounds how many clients are connected: of each tenant, and in all.
//!
//! Every connection is a descriptor, and a virtual machine has several: those of its memory and its
//! rings are counted as they come. A process may have so many, and the last ones are for those
//! who would mend things: the control socket, and the acceptor, which has to take a client in to
//! tell it that there is no room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

use crate::config::Config;

/// Descriptors that are not for clients in the transmission phase: 256 that negotiate, those of
/// the control plane, listeners, standard streams; for each disk its file, ring and events; and for
/// each connection thread its ring and event.
const RESERVED: u32 = 256 + 64;
pub(crate) const RESERVED_FOR_DISK: u32 = 4;
const RESERVED_FOR_THREAD: u32 = 3;

/// Why a client may not enter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum NoRoom {
    #[error("tenant {tenant:?} has {limit} connections, which is all that it may have")]
    OfTenant { tenant: String, limit: u32 },
    #[error(
        "there are {limit} connections, volumes and files of machines, which is all that the \
         server has descriptors for"
    )]
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

/// The room of all tenants together, in which each has its own.
#[derive(Clone, Debug)]
pub(crate) struct Rooms {
    in_all: Arc<Count>,
}

impl Rooms {
    /// `descriptors` is how many the process may have.
    pub(crate) fn new(config: &Config, descriptors: u32) -> Self {
        let disks = config.disks.iter().map(|disk| {
            let volumes = disk.volumes.iter().map(|volume| volume.backend.descriptors());
            volumes.fold(RESERVED_FOR_DISK - 1, u32::saturating_add)
        });
        let threads = config.keys.threads;
        let reserved = RESERVED
            .saturating_add(disks.fold(0, u32::saturating_add))
            .saturating_add(threads.saturating_sub(1).saturating_mul(RESERVED_FOR_THREAD));
        Self::of(descriptors.saturating_sub(reserved))
    }

    /// So many clients in all; however few there are, somebody is served.
    pub(crate) fn of(in_all: u32) -> Self {
        Self { in_all: Arc::new(Count::new(in_all.max(16))) }
    }

    /// The room of a tenant, for so many of them.
    pub(crate) fn tenant(&self, path: &str, limit: u32) -> Arc<TenantRoom> {
        let (tenant, in_all) = (path.to_owned(), Arc::clone(&self.in_all));
        Arc::new(TenantRoom { tenant, of_tenant: Count::new(limit), in_all })
    }

    /// Takes the descriptors of a volume, which are clients' no more.
    pub(crate) fn volume(&self, descriptors: u32) -> Result<Descriptors, NoRoom> {
        let mut held = Descriptors { in_all: Arc::clone(&self.in_all), count: 0 };
        held.hold(descriptors)?;
        Ok(held)
    }
}

/// Descriptors that a volume or a machine holds, and which are free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Descriptors {
    in_all: Arc<Count>,
    count: u32,
}

impl Descriptors {
    /// Holds so many descriptors from now on; as many as before where there are fewer.
    pub(crate) fn hold(&mut self, count: u32) -> Result<(), NoRoom> {
        if !self.in_all.take(count.saturating_sub(self.count)) {
            return Err(NoRoom::InAll { limit: self.in_all.limit });
        }
        self.in_all.now.fetch_sub(self.count.saturating_sub(count), Ordering::Relaxed);
        self.count = count;
        Ok(())
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        self.in_all.now.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl TenantRoom {
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

    /// The path of the tenant.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The descriptors of a machine beside its socket: none yet.
    pub(crate) fn descriptors(&self) -> Descriptors {
        Descriptors { in_all: Arc::clone(&self.in_all), count: 0 }
    }

    /// Admits a client of the tenant. One thread admits, others let go.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admitted, NoRoom> {
        self.check()?;
        // Of the tenant's own no other thread takes any; of all, volumes do.
        if !self.in_all.take(1) {
            return Err(NoRoom::InAll { limit: self.in_all.limit });
        }
        self.of_tenant.now.fetch_add(1, Ordering::Relaxed);
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

    /// Counts so many more, unless there is no room for all of them.
    fn take(&self, count: u32) -> bool {
        let more = |now: u32| now.checked_add(count).filter(|&sum| count == 0 || sum <= self.limit);
        self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
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

/// Descriptors that the kernel has a place for from the start, 8 bytes each. Where it has to make
/// its table larger, all threads that open something wait until each processor has passed through
/// the kernel's scheduler: 13 ms were measured, and every doubling is one.
const PLACES: u32 = 1 << 16;

/// Has the process open as many descriptors as it may: how many that is.
pub(crate) fn raise_descriptors() -> u32 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Where it cannot be raised, what there is has to do.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = if raised.is_ok() { maximum } else { current };
    let limit = limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(u32::MAX);
    make_places(limit.min(PLACES));
    limit
}

/// Has the kernel's table have places for so many descriptors. It never becomes smaller.
fn make_places(count: u32) {
    let highest = i32::try_from(count.saturating_sub(1)).unwrap_or(i32::MAX);
    // Where this fails, the table grows when it has to.
    let any = eventfd(0, EventfdFlags::CLOEXEC);
    let _ = any.and_then(|any| fcntl_dupfd_cloexec(any, highest));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The rooms of the tenants `/a` and `/b`.
    fn rooms(descriptors: u32) -> (Rooms, [Arc<TenantRoom>; 2]) {
        let toml = "threads = 1\n[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
                    [exports.a]\ndisk = \"d\"\n";
        let config = Config::from_toml(toml, Path::new("test.toml")).expect("a configuration");
        let rooms = Rooms::new(&config, descriptors);
        let tenants = [("/a", 2), ("/b", 30)].map(|(path, limit)| rooms.tenant(path, limit));
        (rooms, tenants)
    }

    #[test]
    fn descriptors_have_places_before_they_are_opened() {
        let limit = raise_descriptors();
        let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
        let places = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        let places: u32 = places.expect("it is said").trim().parse().expect("a number");
        assert!(places >= limit.min(PLACES), "{places} of {limit}");
    }

    #[test]
    fn tenant_has_as_many_connections_as_it_may() {
        let (_, [a, b]) = rooms(1024);
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
        let (rooms, [a, b]) = rooms(320 + 4 + 20);
        let volume = rooms.volume(1).expect("room");
        let admitted: Vec<_> = (0..19).map(|_| b.admit().expect("room")).collect();
        assert_eq!(a.check(), Err(NoRoom::InAll { limit: 20 }));
        assert_eq!(rooms.volume(1).expect_err("no room"), NoRoom::InAll { limit: 20 });
        drop(volume);
        a.check().expect("there is room again");
        drop(admitted);
        assert_eq!(rooms.volume(21).expect_err("one is short"), NoRoom::InAll { limit: 20 });
        rooms.volume(20).expect("there is room again, and none was lost");
    }
}
