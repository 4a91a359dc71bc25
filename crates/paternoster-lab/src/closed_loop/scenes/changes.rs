//! Devices that become faster or slower under load, once: how long until that is found out.

use paternoster::Nanos;

use super::{Entry, Set, us, with_victim};
use paternoster_model::{Kind, Pace, ServersParameters, Service, Spread};
use paternoster_scene::Tenant;

/// A device that has the one number of servers, then the other.
fn change(name: &'static str, about: &'static str, servers: [u32; 2], service: Service) -> Entry {
    let parameters = ServersParameters::new(servers[0], service);
    let every = at(service);
    let kind = Kind::Servers(ServersParameters { servers: servers.to_vec(), every, ..parameters });
    scene(name, about, service, kind)
}

fn scene(name: &'static str, about: &'static str, service: Service, kind: Kind) -> Entry {
    let weights = [100, 200, 400].into_iter();
    let tenants = weights.map(|weight| Tenant::reads(weight, 4, 32)).collect();
    let tenants = with_victim(tenants, 400);
    Entry::lasting(Set::Changes, name, about, (at(service), at(service)), tenants, kind)
}

/// When a device of that service changes.
fn at(service: Service) -> Nanos {
    Nanos::from_secs(if service.fixed < us(4000) { 5 } else { 60 })
}

/// Changes of servers, then one of speed.
pub(super) fn scenes() -> Vec<Entry> {
    let constant = Service::constant(us(200));
    let lognormal = Service::varying(us(1000), Spread::LogNormal(0.8));
    let slow = Service::varying(us(5000), Spread::Rare { part: 0.05, times: 10.0 });
    let pace = Pace::Slows { from: at(constant), times: 4.0 };
    let slower = Kind::Servers(ServersParameters { pace, ..ServersParameters::new(16, constant) });
    vec![
        change("up", "16 → 64 × 200 µs", [16, 64], constant),
        change("up-lognormal", "8 → 32 × 1 ms lognormal 0.8", [8, 32], lognormal),
        change("up-slow", "3 → 12 × 5 ms, 5 % × 10", [3, 12], slow),
        change("down", "16 → 4 × 200 µs", [16, 4], constant),
        change("down-lognormal", "32 → 8 × 1 ms lognormal 0.8", [32, 8], lognormal),
        change("down-slow", "12 → 3 × 5 ms, 5 % × 10", [12, 3], slow),
        scene("slower", "16 × 200 µs, then 800 µs", constant, slower),
    ]
}
