//! The scenes: which device, under which load, for how long.
//!
//! ```text
//!   devices   many devices, one load
//!   crowds    one device, many tenants or connections
//!   victims   one tenant of ever more connections against a victim of the same weight
//!   changes   a device that becomes faster or slower
//!   prices    two tenants whose requests differ
//! ```

mod changes;
mod devices;
mod loads;
mod prices;

use std::sync::LazyLock;

use paternoster::Nanos;

use paternoster_model::{
    ChannelsParameters, Described, Kind, ServersParameters, Service, SlicesParameters,
    describe_device,
};
use paternoster_scene::{Scene, Tenant};

/// What a scene belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Many devices, one load.
    Devices,
    /// One device, many tenants or connections.
    Crowds,
    /// A victim against ever more connections.
    Victims,
    /// A device that changes when the counting begins.
    Changes,
    /// Two tenants whose requests differ.
    Prices,
}

impl Set {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Devices, Self::Crowds, Self::Victims, Self::Changes, Self::Prices];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Devices => "devices",
            Self::Crowds => "crowds",
            Self::Victims => "victims",
            Self::Changes => "changes",
            Self::Prices => "prices",
        }
    }
}

/// A scene of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it belongs to.
    pub set: Set,
    /// The scene, by whose name the command line calls it.
    pub scene: Scene,
}

/// All scenes, in the order of the tables.
pub fn scenes() -> &'static [Entry] {
    static SCENES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let [crowds, victims] = [loads::crowds(), loads::victims()];
        [devices::scenes(), crowds, victims, changes::scenes(), prices::scenes()].concat()
    });
    &SCENES
}

/// How long scenes last: fast devices decide in less time.
#[derive(Clone, Copy)]
enum Speed {
    /// 100,000 requests a second and more.
    Fast,
    /// From 10,000 on.
    Middling,
    /// From 1000 on.
    Slow,
    /// Below that.
    VerySlow,
}

impl Entry {
    fn of(
        set: Set,
        name: &'static str,
        about: &'static str,
        speed: Speed,
        tenants: Vec<Tenant>,
        device: impl Into<Described>,
    ) -> Self {
        let (warm_up, counted) = match speed {
            Speed::Fast => (2, 4),
            Speed::Middling => (4, 8),
            Speed::Slow => (10, 20),
            Speed::VerySlow => (30, 60),
        };
        let spans = (Nanos::from_secs(warm_up), Nanos::from_secs(counted));
        Self::lasting(set, name, about, spans, tenants, device)
    }

    /// One that warms up and is counted for so long. Its tenants are named by their numbers.
    fn lasting(
        set: Set,
        name: &'static str,
        about: &'static str,
        (warm_up, counted): (Nanos, Nanos),
        mut tenants: Vec<Tenant>,
        device: impl Into<Described>,
    ) -> Self {
        for (number, tenant) in tenants.iter_mut().enumerate() {
            tenant.name = number.to_string();
        }
        let (name, about, device) = (name.to_owned(), about.to_owned(), device.into());
        Self { set, scene: Scene { name, about, device, tenants, warm_up, counted } }
    }
}

/// The tenants, and a victim of that weight with one request outstanding, which is as the first
/// tenant's.
fn with_victim(mut tenants: Vec<Tenant>, weight: u32) -> Vec<Tenant> {
    let (connections, depth, light) = (1, 1, true);
    tenants.push(Tenant { weight, connections, depth, light, ..tenants[0].clone() });
    tenants
}

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// A device that comes along.
fn named(name: &str) -> Described {
    describe_device(name).expect("it comes along")
}

fn servers(servers: u32, service: u64) -> Kind {
    pool(servers, Service::constant(us(service)))
}

fn pool(servers: u32, service: Service) -> Kind {
    Kind::Servers(ServersParameters::new(servers, service))
}

/// Servers that long requests keep busy for longer: 50 KiB cost as much as one request without any.
fn sized() -> Kind {
    pool(8, Service { per_kib: us(2), ..Service::constant(us(100)) })
}

/// Servers that take five times as long for a write.
fn slow_writes() -> Kind {
    pool(8, Service { write_times: 5.0, ..Service::constant(us(80)) })
}

/// 2000 requests a second, in slices of 100 ms.
fn throttle() -> Kind {
    Kind::Slices(SlicesParameters {
        commands: 200,
        slice: Nanos::from_millis(100),
        service: Service::constant(us(100)),
    })
}

/// Channels that clean up for 8 ms after one of 100 writes. A read takes 60 µs, and a write 150 and
/// 80 for clean-ups on average: 383 % of a read.
fn cleaning(channels: u32) -> Kind {
    Kind::Channels(ChannelsParameters {
        channels,
        service: Service { write_times: 2.5, ..Service::constant(us(60)) },
        clean_ups: 0.01,
        clean_up: Nanos::from_millis(8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_have_names_of_their_own_and_devices_that_can_be_made() {
        let mut names: Vec<_> = scenes().iter().map(|entry| entry.scene.name.as_str()).collect();
        names.extend(Set::ALL.map(Set::name));
        let count = names.len();
        for Entry { scene, .. } in scenes() {
            let device = scene.device.open(1).expect(&scene.name);
            assert!(device.depth() > 0, "{}", scene.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
