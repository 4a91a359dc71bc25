//! The device as schedulers know it.

use crate::time::Hz;

/// The device as schedulers see it. At first its clock has 1000 ticks a second, and whether it has
/// native queueing is unknown.
///
/// ```
/// use paternoster::{Device, Hz};
///
/// let disk = Device::disk(32).with_native_queueing(true);
/// assert_eq!((disk.rotational, disk.queue_depth, disk.hz), (true, 32, Hz::MILLI));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Device {
    /// Whether a seek costs milliseconds (`queue/rotational`).
    pub rotational: bool,
    /// How many requests may be in flight at once.
    pub queue_depth: u32,
    /// Whether it queues requests itself and serves them in an order of its own; none if that is
    /// unknown. A scheduler that needs to know then finds out as Linux does, which may be wrong
    /// about a device that never has many requests in flight.
    pub native_queueing: Option<bool>,
    /// Ticks a second of the jiffies clock.
    pub hz: Hz,
}

impl Device {
    /// Makes a non-rotational device.
    pub const fn solid_state(queue_depth: u32) -> Self {
        Self::new(false, queue_depth)
    }

    /// Makes a rotational device.
    pub const fn disk(queue_depth: u32) -> Self {
        Self::new(true, queue_depth)
    }

    const fn new(rotational: bool, queue_depth: u32) -> Self {
        Self { rotational, queue_depth, native_queueing: None, hz: Hz::MILLI }
    }

    /// Sets whether it has native queueing; `None` is unknown.
    #[must_use]
    pub fn with_native_queueing(self, native_queueing: impl Into<Option<bool>>) -> Self {
        Self { native_queueing: native_queueing.into(), ..self }
    }

    /// Sets its jiffies clock.
    #[must_use]
    pub const fn with_hz(self, hz: Hz) -> Self {
        Self { hz, ..self }
    }
}
