//! The rings of a session: what is known of each, until all is and it starts.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::obey::one;
use super::{Order, Session, Start, Step, Then};
use crate::proto::{Body, Features, MAX_RING, NO_DESCRIPTOR, RingAddresses, request};
use crate::ring::RingError;

/// What is known of a ring.
#[derive(Debug, Default)]
pub(super) struct RingState {
    size: Option<u16>,
    addresses: Option<RingAddresses>,
    base: u16,
    kick: Option<Arc<OwnedFd>>,
    call: Option<Arc<OwnedFd>>,
    err: Option<Arc<OwnedFd>>,
    enabled: bool,
    started: bool,
}

impl RingState {
    pub(super) fn descriptors_held(&self) -> usize {
        [&self.kick, &self.call, &self.err].into_iter().flatten().count()
    }
}

impl Session {
    /// Rings as they are before anything is said of them; but each keeps by what it says that it is
    /// broken, which a front-end says once.
    pub(super) fn forget_rings(&mut self) {
        for ring in &mut self.rings {
            *ring = RingState { err: ring.err.take(), ..RingState::default() };
        }
    }

    /// None is read until it is enabled.
    pub(super) fn disable_rings(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.enabled = false);
    }

    /// The ring has started.
    pub(super) fn started(&mut self, ring: u16) {
        self.rings[usize::from(ring)].started = true;
    }

    /// A ring that has stopped has no kick and no call any more, and goes on at `base`.
    pub(super) fn stopped(&mut self, ring: u16, base: u16) {
        let state = &mut self.rings[usize::from(ring)];
        (state.kick, state.call, state.started, state.base) = (None, None, false, base);
    }

    /// A ring is broken: it has stopped behind the chain before `base`, and may be set up anew.
    pub fn ring_broken(&mut self, ring: u16, base: u16) {
        self.stopped(ring, base);
    }

    /// Does what a message says of a ring, or says what has to be done.
    pub(super) fn obey_of_ring(
        &mut self,
        request: u32,
        body: Body<'_>,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Step, String> {
        match request {
            request::SET_VRING_KICK | request::SET_VRING_CALL | request::SET_VRING_ERR => {
                let [number] = body.longs()?;
                self.set_descriptor(request, number, descriptors)
            }
            request::SET_VRING_NUM
            | request::SET_VRING_BASE
            | request::GET_VRING_BASE
            | request::SET_VRING_ENABLE => {
                let [ring, value] = body.words()?;
                self.set_ring(request, self.ring(ring)?, value)
            }
            request::SET_VRING_ADDR => {
                let (numbers, addresses) = body.split(8)?;
                let [ring, _flags] = numbers.words()?;
                let [descriptors, used, available, _log] = addresses.longs()?;
                let addresses = RingAddresses { descriptors, available, used };
                self.set_addresses(self.ring(ring)?, addresses)
            }
            _ => Err("it is not known here".to_owned()),
        }
    }

    /// The ring of a number.
    fn ring(&self, number: u32) -> Result<u16, String> {
        let queues = self.offer.queues;
        let ring = u16::try_from(number).ok().filter(|ring| *ring < queues);
        ring.ok_or_else(|| format!("it is of ring {number}: there are {queues}, from 0 on"))
    }

    fn set_ring(&mut self, request: u32, ring: u16, value: u32) -> Result<Step, String> {
        let state = &mut self.rings[usize::from(ring)];
        let short = || u16::try_from(value).map_err(|_| format!("{value} is beyond 65535"));
        match request {
            request::SET_VRING_NUM => {
                let size = short()?;
                if !size.is_power_of_two() || size > MAX_RING {
                    return Err(RingError::Size(size).to_string());
                }
                if state.started && state.size != Some(size) {
                    return Err("it changes the size of a ring that has started".to_owned());
                }
                state.size = Some(size);
                Ok(self.start_if_ready(ring))
            }
            request::SET_VRING_BASE if state.started => {
                Err("it moves a ring that has started".to_owned())
            }
            request::SET_VRING_BASE => {
                state.base = short()?;
                Ok(Step::Done)
            }
            request::SET_VRING_ENABLE => {
                state.enabled = value != 0;
                let order = Order::Enable(ring, state.enabled);
                Ok(if state.started { Step::Order(order, Then::Nothing) } else { Step::Done })
            }
            _ if state.started => Ok(Step::Order(Order::Stop(ring), Then::Stopped(ring))),
            _ => {
                let base = state.base;
                let body = [u32::from(ring), base.into()].map(u32::to_ne_bytes).concat();
                self.stopped(ring, base);
                Ok(Step::Reply(body, None))
            }
        }
    }

    fn set_addresses(&mut self, ring: u16, addresses: RingAddresses) -> Result<Step, String> {
        let state = &mut self.rings[usize::from(ring)];
        if state.started && state.addresses != Some(addresses) {
            return Err("it moves the areas of a ring that has started".to_owned());
        }
        state.addresses = Some(addresses);
        Ok(self.start_if_ready(ring))
    }

    fn set_descriptor(
        &mut self,
        request: u32,
        number: u64,
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<Step, String> {
        let ring = self.ring(u32::try_from(number & !NO_DESCRIPTOR).unwrap_or(u32::MAX))?;
        let descriptor = match number & NO_DESCRIPTOR {
            0 => Some(event(one(&mut descriptors)?)?),
            _ => None,
        };
        let file = descriptor.map(Arc::new);
        let state = &mut self.rings[usize::from(ring)];
        let order = match (request, &file) {
            (request::SET_VRING_KICK, None) => {
                return Err("it comes without a descriptor: rings are not polled here".to_owned());
            }
            (request::SET_VRING_KICK, Some(kick)) => {
                state.kick.clone_from(&file);
                if !state.started {
                    return Ok(self.start_if_ready(ring));
                }
                Order::Kick(ring, Arc::clone(kick))
            }
            (request::SET_VRING_CALL, _) => {
                state.call.clone_from(&file);
                Order::Call(ring, file)
            }
            _ => {
                state.err.clone_from(&file);
                Order::Err(ring, file)
            }
        };
        Ok(if state.started { Step::Order(order, Then::Nothing) } else { Step::Done })
    }

    /// Starts a ring that has not started and of which all is known.
    fn start_if_ready(&mut self, ring: u16) -> Step {
        let has_enable = self.features.contains(Features::PROTOCOL_FEATURES);
        let state = &mut self.rings[usize::from(ring)];
        let (Some(size), Some(addresses), false) = (state.size, state.addresses, state.started)
        else {
            return Step::Done;
        };
        let Some(kick) = state.kick.clone() else { return Step::Done };
        let start = Start {
            size,
            addresses,
            base: state.base,
            kick,
            call: state.call.clone(),
            err: state.err.clone(),
            // Without features of the protocol there is no message that enables it.
            enabled: state.enabled || !has_enable,
        };
        Step::Order(Order::Start(ring, start), Then::Started(ring))
    }
}

/// What the kernel calls an eventfd.
const EVENT: &str = "anon_inode:[eventfd]";

/// Takes an eventfd and nothing else: to wait for a file, or to write to it, may take for ever. It
/// is the front-end's too; that it does not block saves time as long as that leaves it so.
fn event(file: OwnedFd) -> Result<OwnedFd, String> {
    let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let link = link.map_err(|error| format!("its descriptor cannot be looked at: {error}"))?;
    if link.as_os_str() != EVENT {
        return Err(format!("its descriptor is {}: an eventfd is allowed", link.display()));
    }
    let flags = fcntl_getfl(&file).map_err(|errno| errno.to_string())?;
    fcntl_setfl(&file, flags | OFlags::NONBLOCK).map_err(|errno| errno.to_string())?;
    Ok(file)
}
