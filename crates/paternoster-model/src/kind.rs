//! Devices as they are described: by numbers, from which a device is made with a seed.

use paternoster::Nanos;

use crate::Model;
use crate::array::{Array, ArrayParameters};
use crate::batch::{Batch, BatchParameters};
use crate::channels::{Channels, ChannelsParameters};
use crate::disk::{Disk, LayoutError, Parameters};
use crate::flash::{Flash, FlashParameters};
use crate::parameter_file::{Keys, ParameterError, micros};
use crate::random::Who;
use crate::servers::{Servers, ServersParameters};
use crate::slices::{Slices, SlicesParameters};
use crate::ssd::{Ssd, SsdParameters};
use crate::stages::{Behind, Latency, Pauses, PausesParameters};
use crate::table::{Table, TableParameters};
use crate::timed::Timed;
use crate::volume::{Volume, VolumeParameters};

/// What a device is, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Servers with one queue.
    Servers(ServersParameters),
    /// Channels with a queue each.
    Channels(ChannelsParameters),
    /// Channels that share a bus.
    Flash(FlashParameters),
    /// A volume in a cloud.
    Volume(VolumeParameters),
    /// A throttle in slices of time.
    Slices(SlicesParameters),
    /// All that is there in one turn.
    Batch(BatchParameters),
    /// A disk with moving parts.
    Disk(Box<Parameters>),
    /// A solid-state drive.
    Ssd(Box<SsdParameters>),
    /// An array of disks.
    Array(Box<ArrayParameters>),
    /// A device by a table of times.
    Table(Box<TableParameters>),
}

/// What stands before a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// By how much later each answer comes.
    pub latency: Nanos,
    /// When it answers nothing.
    pub pauses: Option<PausesParameters>,
}

/// A device and its stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The device.
    pub kind: Kind,
    /// What stands before it.
    pub stages: Stages,
}

impl From<Kind> for Described {
    fn from(kind: Kind) -> Self {
        Self { kind, stages: Stages::default() }
    }
}

impl Stages {
    /// Reads the table `stages`.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let latency = micros(keys.number_or("latency_us", 0.0, 0.0..=1e9)?);
        let pauses = if keys.has("pauses") {
            Some(keys.table("pauses", PausesParameters::read)?)
        } else {
            None
        };
        Ok(Self { latency, pauses })
    }
}

impl Described {
    /// Makes the device, idle.
    pub fn open(&self, seed: u64) -> Result<Box<dyn Model + Send>, LayoutError> {
        let mut device = self.kind.open(seed)?;
        if self.stages.latency > Nanos::ZERO {
            device = Box::new(Behind::new(Latency::new(self.stages.latency), device));
        }
        if let Some(parameters) = self.stages.pauses {
            device = Box::new(Behind::new(Pauses::new(parameters, seed, Who::Pauses), device));
        }
        Ok(device)
    }
}

impl Kind {
    fn open(&self, seed: u64) -> Result<Box<dyn Model + Send>, LayoutError> {
        Ok(match self {
            Self::Servers(parameters) => Box::new(Servers::new(parameters.clone(), seed)),
            Self::Channels(parameters) => Box::new(Timed::new(Channels::new(*parameters, seed))),
            Self::Flash(parameters) => Box::new(Flash::new(*parameters, seed)),
            Self::Volume(parameters) => Box::new(Timed::new(Volume::new(*parameters, seed))),
            Self::Slices(parameters) => Box::new(Timed::new(Slices::new(*parameters, seed))),
            Self::Batch(parameters) => Box::new(Batch::new(*parameters)),
            Self::Disk(parameters) => Box::new(Disk::new((**parameters).clone())?),
            Self::Ssd(parameters) => Box::new(Ssd::new((**parameters).clone(), seed)),
            Self::Array(parameters) => Box::new(Array::new((**parameters).clone())?),
            Self::Table(parameters) => Box::new(Table::new((**parameters).clone())),
        })
    }
}
