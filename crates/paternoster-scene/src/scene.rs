//! What a scene is made of.

use paternoster::{Nanos, SectorCount};
use paternoster_model::{Described, Kind, Model, Op, Service, op_of_zeroes};
use thiserror::Error;

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

/// A tenant: connections with a number of requests outstanding on each, at all times but while
/// their client thinks. Each request is about a block anywhere.
#[allow(clippy::struct_excessive_bools, reason = "each is a key of the file that stands alone")]
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name, which is that of its group and of its export too. In virtual time tenants of one
    /// name are clients in one group.
    pub name: String,
    /// Its weight, 1 to 1000.
    pub weight: u32,
    /// Its connections.
    pub connections: u32,
    /// Requests outstanding on each.
    pub depth: u32,
    /// Bytes of a request: whole sectors, but a live client may ask for a single byte.
    pub block: u32,
    /// The percentage of requests that are discards, which NBD calls `TRIM`.
    pub trim_percent: u32,
    /// The percentage of the others that write.
    pub write_percent: u32,
    /// Its writes are durable (FUA).
    pub fua: bool,
    /// Its writes are of zeroes, without data: `WRITE_ZEROES`.
    pub zeroes: bool,
    /// Its reads are the command `CACHE`, which brings no data. In virtual time they are reads.
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

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// It reads.
    Read,
    /// It reads for a cache.
    Cache,
    /// It writes data, durably or not.
    Write {
        /// With FUA.
        fua: bool,
    },
    /// It writes zeroes.
    Zeroes,
    /// It discards.
    Trim,
}

/// The error of a scene that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("tenant {tenant:?} {what}")]
pub struct Unfit {
    /// The tenant.
    pub tenant: String,
    /// What it does, and what is allowed.
    pub what: String,
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

    /// What its next request does. `happens` draws whether something of that percentage happens;
    /// it is not asked for what never does.
    pub fn next_ask(&self, mut happens: impl FnMut(u32) -> bool) -> Ask {
        let mut is = |percent| percent > 0 && happens(percent);
        match (is(self.trim_percent), self.caches, self.zeroes) {
            (true, ..) => Ask::Trim,
            (false, caches, zeroes) => match is(self.write_percent) {
                false if caches => Ask::Cache,
                false => Ask::Read,
                true if zeroes => Ask::Zeroes,
                true => Ask::Write { fua: self.fua },
            },
        }
    }

    /// Refuses a tenant whose connections cannot do what it says.
    pub fn check(&self) -> Result<(), Unfit> {
        if self.reconnects.is_none() || self.depth == 1 {
            return Ok(());
        }
        let depth = self.depth;
        Err(self.unfit(format!("reconnects with a depth of {depth}: 1 is allowed there")))
    }

    /// Refuses a tenant that asks for what the device does not take.
    fn check_ops(&self, model: &dyn Model) -> Result<(), Unfit> {
        let [reads, writes, discards] = self.does();
        let zeroes = writes && self.zeroes;
        for (asks, op, what) in [
            (reads, Op::Read, "reads"),
            (writes && !zeroes, Op::Write, "writes"),
            (zeroes, op_of_zeroes(model), "writes zeroes"),
            (discards, Op::Discard, "discards (trim_percent)"),
        ] {
            if asks && !model.takes(op) {
                return Err(self.unfit(format!("{what}, which the device does not take")));
            }
        }
        Ok(())
    }

    fn unfit(&self, what: String) -> Unfit {
        Unfit { tenant: self.name.clone(), what }
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
    /// How long live tenants ask before anything counts, and how long counts at least.
    pub const WARM_UP: Nanos = Nanos::from_millis(500);
    const LEAST: Nanos = Nanos::from_millis(200);

    /// How long a scene warms up and is counted that does not say so.
    pub(crate) const SPANS: [Nanos; 2] = [Nanos::from_secs(1), Nanos::from_secs(4)];

    /// A scene without a name, as long as one in a file that does not say how long.
    pub fn new(device: impl Into<Described>, tenants: Vec<Tenant>) -> Self {
        let [warm_up, counted] = Self::SPANS;
        let (name, about, device) = (String::new(), String::new(), device.into());
        Self { name, about, device, tenants, warm_up, counted }
    }

    /// The same for so long in all.
    #[must_use]
    pub fn lasting(self, span: Nanos) -> Self {
        let counted = span.saturating_sub(Self::WARM_UP).max(Self::LEAST);
        Self { warm_up: Self::WARM_UP, counted, ..self }
    }

    /// Refuses tenants that the device cannot serve, where each has so many bytes of it.
    pub fn check(&self, model: &dyn Model, bytes: u64) -> Result<(), Unfit> {
        for tenant in &self.tenants {
            tenant.check()?;
            tenant.check_ops(model)?;
            if u64::from(tenant.block) > bytes {
                let block = tenant.block;
                let what = format!("has blocks of {block} bytes, and {bytes} of the device");
                return Err(tenant.unfit(what));
            }
        }
        Ok(())
    }

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
