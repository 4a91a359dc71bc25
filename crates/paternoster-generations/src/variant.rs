//! The ways by their names.

use std::fmt;
use std::str::FromStr;

use paternoster::PlugLimits;

use crate::direct::Direct;
use crate::global::Global;
use crate::load::{Figures, Load};
use crate::locked::{BATCH_DISPATCH, Locked};
use crate::percpu::PerCpu;
use crate::perdev::PerDevice;
use crate::rings::Rings;

/// A way, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// A direct call to devices of one's own: the floor.
    Direct,
    /// One list and lock for the machine (2.6.0 to 2.6.3).
    Global,
    /// A list and lock for each processor (the patch of March 2004).
    PerCpu,
    /// A bit of each device (2.6.5 to 2.6.38).
    PerDevice,
    /// A plug of the task before a lock of the device, one request dispatched under it.
    PlugLock,
    /// The same with a batch dispatched under it (2025).
    PlugLockBatch,
    /// A plug of the task before a ring to the device's owner: this project's.
    Rings,
    /// Each request by itself, before a lock of the device.
    OffLock,
    /// Each request by itself, over a ring to the device's owner.
    OffRings,
}

impl Variant {
    /// All of them, by their generations.
    pub const ALL: [Self; 9] = [
        Self::Direct,
        Self::Global,
        Self::PerCpu,
        Self::PerDevice,
        Self::PlugLock,
        Self::PlugLockBatch,
        Self::Rings,
        Self::OffLock,
        Self::OffRings,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Global => "global",
            Self::PerCpu => "percpu",
            Self::PerDevice => "perdev",
            Self::PlugLock => "plug+lock",
            Self::PlugLockBatch => "plug+lock-batch",
            Self::Rings => "plug+rings",
            Self::OffLock => "off+lock",
            Self::OffRings => "off+rings",
        }
    }

    /// Whether submitters share locks.
    pub const fn has_locks(self) -> bool {
        !matches!(self, Self::Direct | Self::Rings | Self::OffRings)
    }

    /// Runs the load over it.
    pub fn run(self, load: &Load) -> Figures {
        match self {
            Self::Direct => load.run::<Direct>(|_| {}),
            Self::Global => load.run::<Global>(|_| {}),
            Self::PerCpu => load.run::<PerCpu>(|_| {}),
            Self::PerDevice => load.run::<PerDevice>(|_| {}),
            Self::PlugLock => load.run::<Locked>(|_| {}),
            Self::PlugLockBatch => load.run::<Locked>(|setup| setup.per_lock = BATCH_DISPATCH),
            Self::Rings => load.run::<Rings>(|_| {}),
            Self::OffLock => load.run::<Locked>(|setup| setup.plug = PlugLimits::OFF),
            Self::OffRings => load.run::<Rings>(|setup| setup.plug = PlugLimits::OFF),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no way of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoVariant(String);

impl fmt::Display for NoVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Variant::ALL.map(Variant::name).to_vec();
        write!(f, "there is no way {:?}; there are: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for NoVariant {}

impl FromStr for Variant {
    type Err = NoVariant;

    fn from_str(name: &str) -> Result<Self, NoVariant> {
        let found = Self::ALL.into_iter().find(|variant| variant.name() == name);
        found.ok_or_else(|| NoVariant(name.to_owned()))
    }
}
