//! What each message says.

use std::os::fd::OwnedFd;

use super::{Order, Session, Step, Then};
use crate::blk::WRITEBACK;
use crate::proto::{Body, Features, MAX_SLOTS, MAX_TABLE, ProtocolFeatures, RegionPlace, request};

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
            request::SET_MEM_TABLE => {
                Step::Order(Order::Memory(memory_table(body, descriptors)?), Then::Nothing)
            }
            request::ADD_MEM_REG => {
                let region = body.split(8)?.1.region()?;
                Step::Order(Order::AddRegion(region, one(&mut descriptors)?), Then::Nothing)
            }
            request::REM_MEM_REG => {
                Step::Order(Order::RemoveRegion(body.split(8)?.1.region()?), Then::Nothing)
            }
            request::GET_CONFIG => self.get_config(body)?,
            request::SET_CONFIG => set_config(body)?,
            request::SET_BACKEND_REQ_FD => {
                nothing(body)?;
                Step::Order(Order::BackendChannel(one(&mut descriptors)?), Then::Nothing)
            }
            request::GET_INFLIGHT_FD => {
                Step::Order(Order::GiveInflight(body.inflight()?), Then::Nothing)
            }
            request::SET_INFLIGHT_FD => {
                let place = body.inflight()?;
                Step::Order(Order::TakeInflight(place, one(&mut descriptors)?), Then::Nothing)
            }
            request::RESET_DEVICE => {
                nothing(body)?;
                Step::Order(Order::Reset, Then::Reset)
            }
            _ => return self.obey_of_ring(request, body, descriptors),
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

    fn get_config(&self, body: Body<'_>) -> Result<Step, String> {
        // The bytes that it wants come as zeroes behind, from some.
        let [offset, size, _flags] = body.split(12)?.0.words()?;
        let end = offset.checked_add(size).filter(|end| size > 0 && *end <= MAX_CONFIG);
        // An error is a size of none.
        let Some(end) = end else {
            return Ok(Step::Reply([offset, 0, 0].map(u32::to_ne_bytes).concat()));
        };
        let mut reply = [offset, size, 0].map(u32::to_ne_bytes).concat();
        let config = |at| self.offer.config.get(at as usize).copied().unwrap_or(0);
        reply.extend((offset..end).map(config));
        Ok(Step::Reply(reply))
    }
}

/// The one descriptor that comes with a message; further ones are closed.
pub(super) fn one(descriptors: &mut Vec<OwnedFd>) -> Result<OwnedFd, String> {
    descriptors.drain(..).next().ok_or_else(|| "it comes without its descriptor".to_owned())
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
