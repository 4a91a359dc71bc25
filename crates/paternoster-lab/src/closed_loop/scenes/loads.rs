//! Loads that would take a device from others: many tenants, many connections.

use super::{Entry, Set, Speed, servers, throttle, with_victim};
use paternoster_scene::Tenant;

/// Many tenants or connections on 16 servers of 80 µs.
pub(super) fn crowds() -> Vec<Entry> {
    let crowd = |name, about, tenants| {
        let tenants = with_victim(tenants, 100);
        Entry::of(Set::Crowds, name, about, Speed::Fast, tenants, servers(16, 80))
    };
    let alike = |count| vec![Tenant::reads(100, 1, 8); count];
    let connections = vec![Tenant::reads(100, 1000, 1), Tenant::reads(100, 4, 16)];
    let weighted = vec![Tenant::reads(100, 1000, 1), Tenant::reads(300, 4, 32)];
    vec![
        crowd("c1", "1000 connections × 1 against 4 × 16, 1 : 1", connections),
        crowd("c2", "1000 connections × 1 against 4 × 32, 1 : 3", weighted),
        crowd("c20", "20 tenants × 8, 1 : 1", alike(20)),
        crowd("c100", "100 tenants × 8, 1 : 1", alike(100)),
        crowd("c400", "400 tenants × 8, 1 : 1", alike(400)),
    ]
}

/// A tenant of ever more connections with eight requests each, against a victim of its weight.
pub(super) fn victims() -> Vec<Entry> {
    let victim = |name, about, connections, speed, device| {
        let tenants = with_victim(vec![Tenant::reads(100, connections, 8)], 100);
        Entry::of(Set::Victims, name, about, speed, tenants, device)
    };
    let fast = |name, about, connections| {
        victim(name, about, connections, Speed::Middling, servers(4, 200))
    };
    let slow = |name, about, connections| victim(name, about, connections, Speed::Slow, throttle());
    vec![
        fast("v1", "4 × 200 µs, 1 connection × 8", 1),
        fast("v4", "4 × 200 µs, 4 × 8", 4),
        fast("v16", "4 × 200 µs, 16 × 8", 16),
        fast("v64", "4 × 200 µs, 64 × 8", 64),
        slow("s1", "2000 IOPS in slices of 100 ms, 1 × 8", 1),
        slow("s4", "2000 IOPS in slices of 100 ms, 4 × 8", 4),
        slow("s16", "2000 IOPS in slices of 100 ms, 16 × 8", 16),
        slow("s64", "2000 IOPS in slices of 100 ms, 64 × 8", 64),
    ]
}
