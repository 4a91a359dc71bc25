//! Devices whose times are random, small enough to be understood: they stand for a kind of device,
//! and not for one that exists.
//!
//! ```text
//!   pool       k servers, one queue; k, pace and crowd may change
//!   channels   a queue each, chosen by chance; clean-ups
//!   flash      channels that share a bus
//!   volume     so many a second, then a latency; credit
//!   slices     so many in each 100 ms
//!   batch      all that is there in one turn
//!   named      a device of the laboratory, held against a real one
//!     + network, + pauses
//! ```

mod batch;
mod channels;
mod ends;
mod flash;
mod network;
mod pauses;
mod pool;
mod serves;
mod slices;
mod timed;
mod volume;

use paternoster::Nanos;

use super::chance::Chance;
use crate::model::{DeviceError, Model, open_device};

use batch::Batch;
use channels::Channels;
use flash::Flash;
use network::Network;
use pauses::Pausing;
use pool::Pool;
use slices::Slices;
use timed::Timed;
use volume::Volume;

pub use batch::BatchParameters;
pub use channels::ChannelsParameters;
pub use flash::FlashParameters;
pub(super) use pauses::Pauses;
pub use pauses::PausesParameters;
pub use pool::{Crowd, Pace, PoolParameters};
pub use slices::SlicesParameters;
pub use volume::VolumeParameters;

/// What kind of device it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Servers with one queue.
    Pool(PoolParameters),
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
    /// A device that comes with the laboratory.
    Named(&'static str),
}

/// A device, as it is described.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceParameters {
    /// What kind it is.
    pub kind: Kind,
    /// By how much later each answer comes.
    pub network: Nanos,
    /// When it answers nothing.
    pub pauses: Option<PausesParameters>,
}

impl From<Kind> for DeviceParameters {
    fn from(kind: Kind) -> Self {
        Self { kind, network: Nanos::ZERO, pauses: None }
    }
}

impl DeviceParameters {
    /// Makes the device, idle, for a run of that length.
    pub fn open(&self, seed: u64, run: Nanos) -> Result<Box<dyn Model>, DeviceError> {
        let chance = Chance::new(seed, 1);
        let mut device: Box<dyn Model> = match &self.kind {
            Kind::Pool(parameters) => Box::new(Pool::new(parameters.clone(), chance)),
            Kind::Channels(parameters) => Box::new(Timed::new(Channels::new(*parameters, chance))),
            Kind::Flash(parameters) => Box::new(Flash::new(*parameters, chance)),
            Kind::Volume(parameters) => Box::new(Timed::new(Volume::new(*parameters, chance))),
            Kind::Slices(parameters) => Box::new(Timed::new(Slices::new(*parameters, chance))),
            Kind::Batch(parameters) => Box::new(Batch::new(*parameters)),
            Kind::Named(name) => open_device(name, seed)?,
        };
        if self.network > Nanos::ZERO {
            device = Box::new(Network::new(device, self.network));
        }
        if let Some(parameters) = self.pauses {
            let pauses = Pauses::new(parameters, run, &mut Chance::new(seed, 2));
            device = Box::new(Pausing::new(device, pauses));
        }
        Ok(device)
    }
}

#[cfg(test)]
mod tests {
    use paternoster::{Instant, Sector, SectorCount};

    use super::*;
    use crate::model::{Command, Op};

    /// So many microseconds after the start.
    pub(super) fn at(us: u64) -> Instant {
        Instant::START + Nanos::from_micros(us)
    }

    pub(super) fn read(tag: u32) -> Command {
        command(tag, Op::Read)
    }

    pub(super) fn write(tag: u32) -> Command {
        command(tag, Op::Write)
    }

    fn command(tag: u32, op: Op) -> Command {
        Command { tag, op, durable: false, sector: Sector(0), sectors: SectorCount(8) }
    }

    /// All completions that are to come, by tag, with their times in microseconds.
    pub(super) fn ends(device: &mut impl Model) -> Vec<(u32, u64)> {
        let mut ends = Vec::new();
        while let Some(now) = device.poll_timeout() {
            while let Some(done) = device.poll(now) {
                ends.push((done.tag, now.since_start().as_nanos() / 1000));
            }
        }
        ends
    }
}
