//! Two tenants of one weight whose requests differ: each should get as much of the device as the
//! other, by what they get of it alone.

use paternoster::Nanos;

use super::{Entry, Set, cleaning, pool, sized, slow_writes, us};
use paternoster_model::{FlashParameters, Kind, Service, Spread, VolumeParameters};
use paternoster_scene::Tenant;

/// What a tenant asks for, so many KiB each.
#[derive(Clone, Copy)]
enum Asks {
    Reads(u32),
    Writes(u32),
    /// Writes with FUA.
    Durable(u32),
}
use Asks::{Durable, Reads, Writes};

impl From<Asks> for Tenant {
    fn from(asks: Asks) -> Self {
        let (kib, write_percent, fua) = match asks {
            Reads(kib) => (kib, 0, false),
            Writes(kib) => (kib, 100, false),
            Durable(kib) => (kib, 100, true),
        };
        Self { block: kib << 10, write_percent, fua, ..Self::reads(100, 4, 8) }
    }
}

fn scene(name: &'static str, about: &'static str, asks: [Asks; 2], kind: Kind) -> Entry {
    let tenants = asks.map(Tenant::from).to_vec();
    let spans = (Nanos::from_secs(8), Nanos::from_secs(4));
    Entry::lasting(Set::Prices, name, about, spans, tenants, kind)
}

/// All of them, in the order of the table.
pub(super) fn scenes() -> Vec<Entry> {
    let small = Reads(4);
    [
        vec![
            scene("k64", "8 × (100 µs + 2 µs/KiB), 4 : 64 KiB", [small, Reads(64)], sized()),
            scene("k256", "the same, 4 : 256 KiB", [small, Reads(256)], sized()),
            scene("k1024", "the same, 4 KiB : 1 MiB", [small, Reads(1024)], sized()),
            scene("prior", "8 × (100 + 6.25 µs/KiB), 4 : 64 KiB", [small, Reads(64)], as_prior()),
            scene(
                "spread",
                "8 × (1 ms lognormal 0.8 + 20 µs/KiB), 4 : 64",
                [small, Reads(64)],
                spread(),
            ),
        ],
        volumes(),
        writes(),
    ]
    .concat()
}

fn volumes() -> Vec<Entry> {
    let small = Reads(4);
    vec![
        scene("b64", "16 k IOPS, 250 MiB/s, 4 : 64 KiB", [small, Reads(64)], volume(Some(250))),
        scene("b256", "the same, 4 : 256 KiB", [small, Reads(256)], volume(Some(250))),
        scene("b1024", "the same, 4 KiB : 1 MiB", [small, Reads(1024)], volume(Some(250))),
        scene("i64", "16 k IOPS alone, 4 : 64 KiB", [small, Reads(64)], volume(None)),
        scene("i256", "the same, 4 : 256 KiB", [small, Reads(256)], volume(None)),
        scene("i1024", "the same, 4 KiB : 1 MiB", [small, Reads(1024)], volume(None)),
    ]
}

fn writes() -> Vec<Entry> {
    let small = Reads(4);
    vec![
        scene("w5", "8 × 80 µs, writes × 5, reads : writes", [small, Writes(4)], slow_writes()),
        scene(
            "fua",
            "8 × 100 µs, FUA 400 µs more, writes : FUA",
            [Writes(4), Durable(4)],
            durable(),
        ),
        scene("gc", "8 channels, GC 8 ms, reads : writes", [small, Writes(4)], cleaning(8)),
        scene("bus-r", "flash with a bus, 4 KiB : 1 MiB", [small, Reads(1024)], flash(0.0)),
        scene("bus-w", "the same, reads : writes of 4 KiB", [small, Writes(4)], flash(0.0)),
        scene(
            "bus-w256",
            "the same, 4 KiB reads : 256 KiB writes",
            [small, Writes(256)],
            flash(0.0),
        ),
        scene("bus-ww", "the same, writes of 4 : 256 KiB", [Writes(4), Writes(256)], flash(0.0)),
        scene("bus-gc", "the same with GC 8 ms, reads : writes", [small, Writes(4)], flash(0.01)),
    ]
}

/// 16 KiB cost as much as one request without any, as `wfq` takes it at the start.
fn as_prior() -> Kind {
    pool(8, Service { per_kib: Nanos::new(6250), ..Service::constant(us(100)) })
}

/// The same as [`sized`], ten times as slow and at random.
fn spread() -> Kind {
    let varying = Service::varying(us(1000), Spread::LogNormal(0.8));
    pool(8, Service { per_kib: us(20), ..varying })
}

/// A volume without credit, whose latency varies a little.
fn volume(mib_rate: Option<u32>) -> Kind {
    let latency = Service::varying(us(800), Spread::LogNormal(0.2));
    let (rate, kib_rate) = (16_000, mib_rate.map(|rate| rate << 10));
    Kind::Volume(VolumeParameters { rate, kib_rate, fast_rate: rate, credit: 0, latency })
}

/// A write with FUA takes five times as long as another.
fn durable() -> Kind {
    pool(8, Service { durable: us(400), ..Service::constant(us(100)) })
}

/// Reads of 4 KiB lack channels, long ones the bus.
fn flash(clean_ups: f64) -> Kind {
    let service = Service { per_kib: us(1), write_times: 2.5, ..Service::constant(us(60)) };
    Kind::Flash(FlashParameters {
        channels: 16,
        service,
        bus_per_kib: Nanos::new(500),
        clean_ups,
        clean_up: Nanos::from_millis(8),
    })
}
