//! What a scene is made of.

use paternoster::{Nanos, SectorCount};
use paternoster_model::{Described, Kind, Service};

/// Bytes of a sector.
const SECTOR: u32 = 512;

/// Tenants that share a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    pub about: String,
    /// The device.
    pub device: Described,
    /// The tenants; at least one.
    pub tenants: Vec<Tenant>,
    /// For how long nothing is counted.
    pub warm_up: Nanos,
    /// For how long then is.
    pub counted: Nanos,
}

/// A tenant: connections, on each of which so many requests are always outstanding but for the time
/// in which their client thinks. Each request is about a block anywhere.
#[allow(clippy::struct_excessive_bools, reason = "each is a key of the file that stands alone")]
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name, which no other tenant of the scene has, and that of its export.
    pub name: String,
    /// Its weight, 1 to 1000.
    pub weight: u32,
    /// Its connections.
    pub connections: u32,
    /// Requests outstanding on each.
    pub depth: u32,
    /// Bytes of a request: whole sectors, as every device has them; live clients may ask for a
    /// byte.
    pub block: u32,
    /// Of a hundred requests so many are discards, which NBD calls `TRIM`.
    pub trim_percent: u32,
    /// Of a hundred others so many write.
    pub write_percent: u32,
    /// Its writes are durable (FUA).
    pub fua: bool,
    /// Its writes are of zeroes, without data: `WRITE_ZEROES`.
    pub zeroes: bool,
    /// Its reads are for a cache, without data: `CACHE`.
    pub caches: bool,
    /// How long a client waits between an answer and the next request, at least.
    pub think: Nanos,
    /// How much longer it waits at most: each time a part of this, drawn anew.
    pub think_more: Nanos,
    /// Each request is on a connection of its own, which ends so long after the answer; none where
    /// connections stay. Such a tenant has one request outstanding on each.
    pub reconnects: Option<Nanos>,
    /// It asks for less than its share. Nothing is promised to it but to be served soon, and its
    /// share is not counted.
    pub light: bool,
}

impl Tenant {
    /// A tenant without a name that reads 4 KiB and does not think.
    pub const fn reads(weight: u32, connections: u32, depth: u32) -> Self {
        Self {
            name: String::new(),
            weight,
            connections,
            depth,
            block: 4096,
            trim_percent: 0,
            write_percent: 0,
            fua: false,
            zeroes: false,
            caches: false,
            think: Nanos::ZERO,
            think_more: Nanos::ZERO,
            reconnects: None,
            light: false,
        }
    }

    /// The same with a name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Whether some of its requests read, write and discard.
    pub fn does(&self) -> [bool; 3] {
        let others = self.trim_percent < 100;
        [
            others && self.write_percent < 100,
            others && self.write_percent > 0,
            self.trim_percent > 0,
        ]
    }

    /// The sectors of a request.
    pub fn sectors(&self) -> SectorCount {
        SectorCount(self.block / SECTOR)
    }
}

impl Scene {
    /// The law of what a command costs the device. There is none for devices in which a command's
    /// cost depends on the others, such as a volume with rates or a disk with seeks. Of flash it is
    /// the channel's time, without the bus.
    pub fn service(&self) -> Option<Service> {
        let law = match &self.device.kind {
            Kind::Servers(parameters) => parameters.service,
            Kind::Channels(parameters) => parameters.service,
            Kind::Flash(parameters) => parameters.service,
            _ => return None,
        };
        Some(law).filter(|law| law.fixed > Nanos::ZERO)
    }

    /// The same with that tenant alone.
    #[must_use]
    pub fn alone(&self, tenant: usize) -> Self {
        Self { tenants: vec![self.tenants[tenant].clone()], ..self.clone() }
    }
}
