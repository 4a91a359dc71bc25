//! Many devices under the same load: three tenants of weights 100, 200 and 400 beside a victim.
//!
//! Four sets. `wfq`'s constants were chosen on the first, once with the second in view; the third
//! was looked at last; nobody has tuned anything on the fourth. Times are round numbers, as nothing
//! here stands for a product.

use paternoster::Nanos;

use super::{
    Entry, Set, Speed, cleaning, named, pool, servers, sized, slow_writes, throttle, us,
    with_victim,
};
use paternoster_model::{
    BatchParameters, ChannelsParameters, Crowd, Described, Kind, Pace, PausesParameters,
    ServersParameters, Service, Spread, Stages, VolumeParameters,
};
use paternoster_scene::Tenant;

/// Bytes of a large request.
const LARGE: u32 = 64 << 10;
/// The weights of the tenants.
const WEIGHTS: [u32; 3] = [100, 200, 400];
/// The weight of the victim, of which it uses little.
const VICTIM_WEIGHT: u32 = 400;
/// The connections of a tenant.
const CONNECTIONS: u32 = 4;

/// All of them, in the order of the table.
pub(super) fn scenes() -> Vec<Entry> {
    [first().to_vec(), hold_outs().to_vec(), fresh().to_vec(), new().to_vec()].concat()
}

impl Entry {
    /// A scene of 4 KiB reads, so many outstanding of each tenant.
    fn new(
        name: &'static str,
        about: &'static str,
        outstanding: u32,
        speed: Speed,
        device: impl Into<Described>,
    ) -> Self {
        let tenant = |weight| Tenant::reads(weight, CONNECTIONS, outstanding / CONNECTIONS);
        let tenants = with_victim(WEIGHTS.map(tenant).to_vec(), VICTIM_WEIGHT);
        Self::of(Set::Devices, name, about, speed, tenants, device)
    }

    /// The same with a shorter time in which nothing is counted.
    fn counted_from(mut self, warm_up: Nanos) -> Self {
        self.scene.warm_up = warm_up;
        self
    }

    /// The same where this many of a hundred requests write.
    fn with_writes(mut self, percent: u32) -> Self {
        for tenant in &mut self.scene.tenants {
            tenant.write_percent = percent;
        }
        self
    }
}

/// On these the constants were chosen.
fn first() -> [Entry; 6] {
    use Speed::{Fast, Middling, Slow};
    let lognormal = pool(8, Service::varying(us(1000), Spread::LogNormal(0.8)));
    let rare = pool(32, Service::varying(us(100), Spread::Rare { part: 0.02, times: 20.0 }));
    let channels = Kind::Channels(ChannelsParameters {
        channels: 32,
        service: Service::constant(us(80)),
        clean_ups: 0.0,
        clean_up: Nanos::ZERO,
    });
    [
        Entry::new("16x80us", "16 × 80 µs", 32, Fast, servers(16, 80)),
        Entry::new("4x200us", "4 × 200 µs", 32, Middling, servers(4, 200)),
        Entry::new("1x50us", "1 × 50 µs", 32, Middling, servers(1, 50)),
        Entry::new("lognormal", "8 × 1 ms lognormal 0.8", 32, Slow, lognormal),
        Entry::new("rare", "32 × 100 µs, 2 % × 20", 32, Fast, rare),
        Entry::new("channels", "32 random channels × 80 µs", 32, Fast, channels),
    ]
}

/// These were in view once.
fn hold_outs() -> [Entry; 7] {
    use Speed::{Fast, Middling, Slow, VerySlow};
    let rare = pool(3, Service::varying(us(5000), Spread::Rare { part: 0.05, times: 10.0 }));
    [
        Entry::new("h1", "48 × 250 µs + net 400 µs", 128, Fast, behind_net(48, 250, 400)),
        Entry::new("h2", "cloud, 16 k IOPS, 0.8 ms", 128, Middling, cloud(16_000, 800)),
        Entry::new("h3", "2000 IOPS in slices of 100 ms", 128, Slow, throttle()),
        Entry::new("h4", "disk, NCQ", 128, VerySlow, named("hdd-7200")),
        Entry::new("h5", "batch 15 + 4 µs", 128, Fast, batch(15_000, 4000)),
        Entry::new("h6", "3 × 5 ms, 5 % × 10", 128, VerySlow, rare),
        Entry::new("h7", "8 channels, 30 % writes, GC 8 ms", 128, Middling, cleaning(8))
            .with_writes(30),
    ]
}

/// These were looked at last.
fn fresh() -> [Entry; 7] {
    use Speed::{Fast, Middling};
    let lognormal = pool(24, Service::varying(us(150), Spread::LogNormal(1.0)));
    let rare = pool(6, Service::varying(us(300), Spread::Rare { part: 0.1, times: 8.0 }));
    [
        Entry::new("f1", "24 × 150 µs lognormal 1.0", 64, Fast, lognormal),
        Entry::new("f2", "100 × 1 ms + net 1 ms", 64, Fast, behind_net(100, 1000, 1000)),
        Entry::new("f3", "16 channels, 30 % writes, GC 8 ms", 64, Middling, cleaning(16))
            .with_writes(30),
        Entry::new("f4", "6 × 300 µs, 10 % × 8", 64, Middling, rare),
        Entry::new("f5", "batch 6 + 1.5 µs", 64, Fast, batch(6000, 1500)),
        Entry::new("f6", "cloud, 100 k IOPS, 0.4 ms", 64, Fast, cloud(100_000, 400)),
        Entry::new("f7", "2 × 120 µs", 64, Middling, servers(2, 120)),
    ]
}

/// On these nothing was tuned.
fn new() -> [Entry; 11] {
    use Speed::{Fast, Middling, Slow};
    let pareto = Service::varying(us(100), Spread::Pareto { shape: 1.5, most: 100.0 });
    let tiers = Service::varying(us(60), Spread::Rare { part: 0.2, times: 20.0 });
    let store = Service::varying(us(4000), Spread::LogNormal(0.5));
    [
        Entry::new("n1", "a real NVMe drive (nvme-980pro)", 64, Fast, named("nvme-980pro")),
        Entry::new("n2", "16 × 100 µs Pareto 1.5", 64, Middling, pool(16, pareto)),
        Entry::new("n3", "8 × 100 µs, swings by half in 3 s", 64, Middling, swinging()),
        Entry::new("n4", "16 × 100 µs, stands still 20 ms of 500", 64, Fast, standing_still()),
        Entry::new("n5", "24 × 60 µs, 20 % × 20 (two tiers)", 64, Middling, pool(24, tiers)),
        Entry::new("n6", "8 × 100 µs, 2 % slower for each beyond 24", 64, Middling, crowded()),
        Entry::new("n7", "8 × 80 µs, half writes × 5", 64, Middling, slow_writes()).with_writes(50),
        Entry::new("n8", "volume, 3000 IOPS, at first 12,000 on credit", 64, Slow, on_credit())
            .counted_from(Nanos::from_secs(1)),
        Entry::new("n9", "16, then 4, then 16 × 200 µs, each 5 s", 64, Middling, changing()),
        Entry::new(
            "n10",
            "256 × 4 ms lognormal 0.5 (object store)",
            256,
            Middling,
            pool(256, store),
        ),
        sizes(),
    ]
}

fn behind_net(servers: u32, service: u64, net: u64) -> Described {
    let stages = Stages { latency: us(net), pauses: None };
    Described { kind: self::servers(servers, service), stages }
}

/// A volume without credit, whose latency varies a little.
fn cloud(rate: u32, service: u64) -> Kind {
    let latency = Service::varying(us(service), Spread::LogNormal(0.2));
    Kind::Volume(VolumeParameters { rate, kib_rate: None, fast_rate: rate, credit: 0, latency })
}

fn batch(fixed_ns: u64, each_ns: u64) -> Kind {
    Kind::Batch(BatchParameters { fixed: Nanos::new(fixed_ns), each: Nanos::new(each_ns) })
}

fn swinging() -> Kind {
    let pace = Pace::Swings { period: Nanos::from_secs(3), part: 0.5 };
    Kind::Servers(ServersParameters {
        pace,
        ..ServersParameters::new(8, Service::constant(us(100)))
    })
}

fn standing_still() -> Described {
    let (period, pause) = (Nanos::from_millis(500), Nanos::from_millis(20));
    let pauses = Some(PausesParameters::Periodic { period, pause });
    let stages = Stages { latency: Nanos::ZERO, pauses };
    Described { kind: servers(16, 100), stages }
}

fn crowded() -> Kind {
    let crowd = Crowd { beyond: 24, each: 0.02 };
    Kind::Servers(ServersParameters {
        crowd,
        ..ServersParameters::new(8, Service::constant(us(100)))
    })
}

fn on_credit() -> Kind {
    let latency = Service::varying(us(500), Spread::LogNormal(0.3));
    Kind::Volume(VolumeParameters {
        rate: 3000,
        kib_rate: None,
        fast_rate: 12_000,
        credit: 30_000,
        latency,
    })
}

fn changing() -> Kind {
    let parameters = ServersParameters::new(16, Service::constant(us(200)));
    let (servers, every) = (vec![16, 4], Nanos::from_secs(5));
    Kind::Servers(ServersParameters { servers, every, ..parameters })
}

/// A tenant of requests of 64 KiB between two of 4 KiB: shares are of what they cost the device.
fn sizes() -> Entry {
    let about = "8 × (100 µs + 2 µs/KiB), 4, 64, 4 KiB";
    let mut entry = Entry::new("n11", about, 64, Speed::Middling, sized());
    entry.scene.tenants[1].block = LARGE;
    entry
}
