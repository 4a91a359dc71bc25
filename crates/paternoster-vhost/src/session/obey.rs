//! What each message says.

use std::os::fd::OwnedFd;

use super::{Order, Session, Step, Then};
use crate::blk::WRITEBACK;
use crate::inflight::Inflight;
use crate::memory::{Memory, Region, RegionError};
use crate::proto::{
    Body, Features, InflightPlace, MAX_SLOTS, MAX_TABLE, ProtocolFeatures, RegionPlace, request,
};

/// Longest configuration that a front-end may ask for; zeroes come behind what there is.
const MAX_CONFIG: u32 = 256;

impl Session {
    /// Does what a message says, or says what has to be done.
    pub(super) fn obey(
        &mut self,
        request: u32,
        body: Body<'_>,
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<Step, String> {
        let nothing = |body: Body<'_>| body.longs().map(|[]| ());
        Ok(match request {
            request::GET_FEATURES => {
                nothing(body)?;
                Step::reply(self.offer.features.bits())
            }
            request::SET_FEATURES => {
                let [bits] = body.longs()?;
                self.set_features(bits)?
            }
            request::SET_OWNER => {
                nothing(body)?;
                Step::Done
            }
            request::RESET_OWNER => {
                nothing(body)?;
                Step::Order(Order::DisableAll, Then::DisabledAll)
            }
            request::GET_PROTOCOL_FEATURES => {
                nothing(body)?;
                Step::reply(ProtocolFeatures::all().bits())
            }
            request::SET_PROTOCOL_FEATURES => {
                let [bits] = body.longs()?;
                self.protocol = ProtocolFeatures::from_bits(bits)
                    .ok_or_else(|| unknown(bits, ProtocolFeatures::all().bits()))?;
                Step::Done
            }
            request::GET_QUEUE_NUM => {
                nothing(body)?;
                Step::reply(self.offer.queues.into())
            }
            request::GET_MAX_MEM_SLOTS => {
                nothing(body)?;
                Step::reply(MAX_SLOTS as u64)
            }
            request::SET_MEM_TABLE
            | request::ADD_MEM_REG
            | request::REM_MEM_REG
            | request::GET_INFLIGHT_FD
            | request::SET_INFLIGHT_FD => self.obey_of_memory(request, body, descriptors)?,
            request::GET_CONFIG => self.get_config(body)?,
            request::SET_CONFIG => set_config(body)?,
            request::SET_BACKEND_REQ_FD => {
                nothing(body)?;
                self.channel = Some(one(&mut descriptors)?);
                Step::Done
            }
            request::RESET_DEVICE => {
                nothing(body)?;
                Step::Order(Order::Reset, Then::Reset)
            }
            _ => return self.obey_of_ring(request, body, descriptors),
        })
    }

    /// The same of a message that is about memory.
    fn obey_of_memory(
        &mut self,
        request: u32,
        body: Body<'_>,
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<Step, String> {
        Ok(match request {
            request::SET_MEM_TABLE => {
                let mut memory = Memory::default();
                for (place, file) in memory_table(body, descriptors)? {
                    memory.add(self.map(place, file)?).map_err(told)?;
                }
                self.remember(memory)
            }
            request::ADD_MEM_REG => {
                let region = self.map(body.split(8)?.1.region()?, one(&mut descriptors)?)?;
                let mut memory = self.memory.clone();
                memory.add(region).map_err(told)?;
                self.remember(memory)
            }
            request::REM_MEM_REG => {
                let mut memory = self.memory.clone();
                memory.remove(body.split(8)?.1.region()?).map_err(told)?;
                self.remember(memory)
            }
            request::GET_INFLIGHT_FD => self.make_inflight(body.inflight()?),
            _ => {
                let (place, file) = (body.inflight()?, one(&mut descriptors)?);
                let inflight = Inflight::map(place, file, self.offer.queues, self.offer.sealed);
                let inflight = inflight.map_err(|error| error.to_string())?;
                if inflight.writes_through() {
                    self.offer.config[WRITEBACK as usize] = 0;
                }
                Step::Order(Order::Inflight(inflight), Then::Nothing)
            }
        })
    }

    fn set_features(&mut self, bits: u64) -> Result<Step, String> {
        let offered = self.offer.features;
        let features = Features::from_bits(bits).filter(|features| offered.contains(*features));
        let features = features.ok_or_else(|| unknown(bits, offered.bits()))?;
        if !features.contains(Features::VERSION_1) {
            return Err("it does not accept VERSION_1 (bit 32), and has to".to_owned());
        }
        Ok(Step::Order(Order::Features(features), Then::Agreed(features)))
    }

    fn map(&self, place: RegionPlace, file: OwnedFd) -> Result<Region, String> {
        Region::map(place, file, self.offer.sealed).map_err(told)
    }

    /// The memory is this from now on.
    fn remember(&mut self, memory: Memory) -> Step {
        self.memory = memory.clone();
        Step::Order(Order::Memory(memory), Then::Nothing)
    }

    /// Makes memory for requests in flight. Where there can be none, the answer is a size of none.
    fn make_inflight(&self, asked: InflightPlace) -> Step {
        let InflightPlace { queues, ring_size, .. } = asked;
        let none = InflightPlace { size: 0, offset: 0, queues: 0, ring_size: 0 };
        match Inflight::create(queues, ring_size, self.offer.queues) {
            Ok((made, file)) => Step::Reply(made.place().encoded(), Some(file)),
            Err(_) => Step::Reply(none.encoded(), None),
        }
    }

    fn get_config(&self, body: Body<'_>) -> Result<Step, String> {
        // The bytes that it wants come as zeroes behind, from some.
        let [offset, size, _flags] = body.split(12)?.0.words()?;
        let end = offset.checked_add(size).filter(|end| size > 0 && *end <= MAX_CONFIG);
        // An error is a size of none.
        let Some(end) = end else {
            return Ok(Step::Reply([offset, 0, 0].map(u32::to_ne_bytes).concat(), None));
        };
        let mut reply = [offset, size, 0].map(u32::to_ne_bytes).concat();
        let config = |at| self.offer.config.get(at as usize).copied().unwrap_or(0);
        reply.extend((offset..end).map(config));
        Ok(Step::Reply(reply, None))
    }
}

/// The one descriptor that comes with a message; further ones are closed.
pub(super) fn one(descriptors: &mut Vec<OwnedFd>) -> Result<OwnedFd, String> {
    descriptors.drain(..).next().ok_or_else(|| "it comes without its descriptor".to_owned())
}

/// What is said of a region that is not taken.
#[allow(clippy::needless_pass_by_value, reason = "it is mapped over errors")]
fn told(error: RegionError) -> String {
    error.to_string()
}

/// What is said of bits that are not offered.
fn unknown(bits: u64, offered: u64) -> String {
    format!("it accepts {bits:#x}, of which {:#x} was not offered", bits & !offered)
}

fn memory_table(
    body: Body<'_>,
    descriptors: Vec<OwnedFd>,
) -> Result<Vec<(RegionPlace, OwnedFd)>, String> {
    let (head, mut table) = body.split(8)?;
    let [regions, _padding] = head.words()?;
    let count = usize::try_from(regions).ok().filter(|count| *count <= MAX_TABLE);
    let Some(count) = count else {
        return Err(format!("it has {regions} regions: at most {MAX_TABLE} are allowed"));
    };
    if descriptors.len() < count {
        let came = descriptors.len();
        return Err(format!("it has {count} regions and comes with {came} descriptors"));
    }
    let mut places = Vec::new();
    for _ in 0..count {
        let (region, rest) = table.split(32)?;
        places.push(region.region()?);
        table = rest;
    }
    let [] = table.longs()?;
    Ok(places.into_iter().zip(descriptors).collect())
}

/// Only the byte of the cache may be written.
fn set_config(body: Body<'_>) -> Result<Step, String> {
    let (head, bytes) = body.split(12)?;
    let [offset, size, _flags] = head.words()?;
    match (offset, size, bytes.0) {
        (WRITEBACK, 1, &[byte @ (0 | 1)]) => {
            let writeback = byte == 1;
            Ok(Step::Order(Order::Writeback(writeback), Then::WritesBack(writeback)))
        }
        _ => Err(format!(
            "it writes {size} bytes at {offset} of the configuration: a 0 or 1 at {WRITEBACK} is \
             allowed"
        )),
    }
}
