//! The bounds of a tenant's clients: memory, connections, and the timeout of payloads.

use paternoster::Nanos;

use super::draft::{At, Bounds, Draft, DraftGroup, Key, Number};
use super::error::{Mistake, Problem};
use super::mistakes::Mistakes;
use super::size;

/// The bounds of one tenant's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantBounds {
    /// Bytes that its clients may hold on each disk: commands in flight, payloads, unsent replies.
    pub memory: usize,
    /// Clients that may be connected, on all disks.
    pub connections: u32,
}

impl Default for TenantBounds {
    /// 64 MiB and 1024 connections.
    fn default() -> Self {
        Self { memory: 64 << 20, connections: 1024 }
    }
}

/// The least `memory`: the largest request.
const MEMORY_MIN: u64 = 32 << 20;

const MEMORY_MAX: u64 = 1 << 40;

const CONNECTIONS: Bounds =
    Bounds { key: "connections", min: 1, max: 1_000_000, unit: "connections" };

const PAYLOAD_TIMEOUT: Bounds =
    Bounds { key: "payload_timeout", min: 1, max: 86_400, unit: "seconds" };

/// How long a client may make no progress where nothing is written.
pub(super) const DEFAULT_PAYLOAD_TIMEOUT: Nanos = Nanos::from_millis(30_000);

/// What holds for groups that say nothing else.
pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Option<TenantBounds> {
    within(TenantBounds::default(), &draft.memory, &draft.connections, mistakes)
}

/// What holds for a group.
pub(super) fn check_group(
    general: TenantBounds,
    group: &DraftGroup,
    mistakes: &mut Mistakes,
) -> Option<TenantBounds> {
    within(general, &group.memory, &group.connections, mistakes)
}

pub(super) fn check_payload_timeout(draft: &Draft, mistakes: &mut Mistakes) -> Option<Nanos> {
    draft.payload_timeout.check_or(DEFAULT_PAYLOAD_TIMEOUT, mistakes, |found| {
        PAYLOAD_TIMEOUT.check(found).map(|seconds| Nanos::from_millis(u64::from(seconds) * 1000))
    })
}

fn within(
    default: TenantBounds,
    memory: &Key<Number>,
    connections: &Key<i64>,
    mistakes: &mut Mistakes,
) -> Option<TenantBounds> {
    let memory = memory.check_or(default.memory, mistakes, check_memory);
    let connections =
        connections.check_or(default.connections, mistakes, |found| CONNECTIONS.check(found));
    Some(TenantBounds { memory: memory?, connections: connections? })
}

fn check_memory(found: &At<Number>) -> Result<usize, Mistake> {
    let bytes = size::check("memory", found)?;
    if (MEMORY_MIN..=MEMORY_MAX).contains(&bytes) {
        return Ok(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    found.refuse(Problem::OutOfRange {
        key: "memory",
        value: i64::try_from(bytes).unwrap_or(i64::MAX),
        min: i64::try_from(MEMORY_MIN).unwrap_or(i64::MAX),
        max: i64::try_from(MEMORY_MAX).unwrap_or(i64::MAX),
        unit: "bytes",
    })
}
