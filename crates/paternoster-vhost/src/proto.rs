//! The numbers of vhost-user and of virtio's block device, and what travels in a message.
//!
//! Names follow the texts without their prefixes: `VHOST_USER_SET_MEM_TABLE` is
//! [`request::SET_MEM_TABLE`], `VIRTIO_BLK_F_MQ` is [`Features::MQ`]. The messages of vhost-user
//! are in the machine's byte order, what lies in the guest's memory is little-endian.

use bitflags::bitflags;

/// Bytes of a message before its body: request, flags, length of the body.
pub const HEADER_LEN: usize = 12;
/// Longest body that is taken.
pub const MAX_BODY: u32 = 4096;
/// Most descriptors that are kept of a message.
pub const MAX_DESCRIPTORS: usize = 32;
/// Most regions in one table.
pub const MAX_TABLE: usize = 32;
/// Most regions that are added one by one.
pub const MAX_SLOTS: usize = 509;
/// Most descriptors of a ring.
pub const MAX_RING: u16 = 1024;

/// What a front-end asks of us, and we of it.
pub mod request {
    /// Which features of the device there are.
    pub const GET_FEATURES: u32 = 1;
    /// Which of them are in force.
    pub const SET_FEATURES: u32 = 2;
    /// The front-end takes the device.
    pub const SET_OWNER: u32 = 3;
    /// Deprecated: disables all rings.
    pub const RESET_OWNER: u32 = 4;
    /// The guest's memory, all of it.
    pub const SET_MEM_TABLE: u32 = 5;
    /// How many descriptors a ring has.
    pub const SET_VRING_NUM: u32 = 8;
    /// Where its areas are.
    pub const SET_VRING_ADDR: u32 = 9;
    /// Which of its chains is the next.
    pub const SET_VRING_BASE: u32 = 10;
    /// Stops a ring, and asks for that.
    pub const GET_VRING_BASE: u32 = 11;
    /// What says that a chain has come; it starts the ring.
    pub const SET_VRING_KICK: u32 = 12;
    /// What is told that chains are done.
    pub const SET_VRING_CALL: u32 = 13;
    /// What is told that a ring is broken.
    pub const SET_VRING_ERR: u32 = 14;
    /// Which features of the protocol there are.
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    /// Which of them are in force.
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    /// How many rings a device may have.
    pub const GET_QUEUE_NUM: u32 = 17;
    /// Whether a ring is read.
    pub const SET_VRING_ENABLE: u32 = 18;
    /// Where the front-end takes our messages.
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    /// Reads the device's configuration.
    pub const GET_CONFIG: u32 = 24;
    /// Writes to it.
    pub const SET_CONFIG: u32 = 25;
    /// Asks for memory in which requests in flight outlive us.
    pub const GET_INFLIGHT_FD: u32 = 31;
    /// Gives us that of a server before us.
    pub const SET_INFLIGHT_FD: u32 = 32;
    /// Makes the device new.
    pub const RESET_DEVICE: u32 = 34;
    /// How many regions memory may have.
    pub const GET_MAX_MEM_SLOTS: u32 = 36;
    /// One more region of memory.
    pub const ADD_MEM_REG: u32 = 37;
    /// One less.
    pub const REM_MEM_REG: u32 = 38;
}

/// What we tell the front-end: that the configuration has changed.
pub(crate) const BACKEND_CONFIG_CHANGE: u32 = 2;

/// The version of the protocol, in the flags of a message.
pub(crate) const VERSION: u32 = 1;
/// The bits of the version.
pub(crate) const VERSION_MASK: u32 = 3;
/// The message answers one.
pub(crate) const REPLY: u32 = 1 << 2;
/// The message is to be answered, whatever it is.
pub(crate) const NEED_REPLY: u32 = 1 << 3;
/// In the number of a ring: no descriptor comes with it.
pub(crate) const NO_DESCRIPTOR: u64 = 1 << 8;

bitflags! {
    /// Features of the device (virtio 1.2, 5.2.3 and 6; the vhost-user text for bit 30).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Features: u64 {
        /// `seg_max` is said.
        const SEG_MAX = 1 << 2;
        /// The device is read-only.
        const RO = 1 << 5;
        /// `blk_size` is said.
        const BLK_SIZE = 1 << 6;
        /// It takes flushes.
        const FLUSH = 1 << 9;
        /// `topology` is said.
        const TOPOLOGY = 1 << 10;
        /// The driver may say whether the cache writes back.
        const CONFIG_WCE = 1 << 11;
        /// It has several rings.
        const MQ = 1 << 12;
        /// It takes discards.
        const DISCARD = 1 << 13;
        /// It writes zeroes.
        const WRITE_ZEROES = 1 << 14;
        /// A chain's descriptors may be in a table of their own.
        const INDIRECT_DESC = 1 << 28;
        /// Either side says from which chain on it wants to be told.
        const EVENT_IDX = 1 << 29;
        /// The protocol has features too.
        const PROTOCOL_FEATURES = 1 << 30;
        /// It is as virtio 1.0 and later have it.
        const VERSION_1 = 1 << 32;
    }
}

bitflags! {
    /// Features of the protocol.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ProtocolFeatures: u64 {
        /// There may be several rings.
        const MQ = 1 << 0;
        /// Any message may ask for an answer.
        const REPLY_ACK = 1 << 3;
        /// We may send messages.
        const BACKEND_REQ = 1 << 5;
        /// The configuration is read and written by messages.
        const CONFIG = 1 << 9;
        /// Requests in flight are in memory that outlives us.
        const INFLIGHT_SHMFD = 1 << 12;
        /// The device is made new by a message.
        const RESET_DEVICE = 1 << 13;
        /// Regions come and go one by one.
        const CONFIGURE_MEM_SLOTS = 1 << 15;
    }
}

/// A region of a guest's memory, as a message has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionPlace {
    /// Its address in the guest.
    pub guest: u64,
    /// Its bytes.
    pub size: u64,
    /// Its address in the front-end, in which ring areas are given.
    pub front_end: u64,
    /// Where in the descriptor it begins.
    pub offset: u64,
}

/// Where the areas of a ring are, by the front-end's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingAddresses {
    /// Its descriptors.
    pub descriptors: u64,
    /// The chains that the driver has made available.
    pub available: u64,
    /// Those that the device has used.
    pub used: u64,
}

/// The memory in which requests in flight outlive us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightPlace {
    /// Its bytes.
    pub size: u64,
    /// Where in the descriptor it begins.
    pub offset: u64,
    /// Of how many rings.
    pub queues: u16,
    /// Of how many descriptors each.
    pub ring_size: u16,
}

/// The body of a message, which is consumed exactly, or the message is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a>(pub(crate) &'a [u8]);

/// A body that is too short, or too long.
const LENGTH: &str = "its body is of another length";

impl Body<'_> {
    /// Cuts so many bytes off.
    pub(crate) fn split(self, bytes: usize) -> Result<(Self, Self), String> {
        let (first, rest) = self.0.split_at_checked(bytes).ok_or(LENGTH)?;
        Ok((Self(first), Self(rest)))
    }

    /// All of it, as numbers of 32 bits.
    pub(crate) fn words<const N: usize>(self) -> Result<[u32; N], String> {
        self.numbers::<4, N>().map(|numbers| numbers.map(u32::from_ne_bytes))
    }

    /// All of it, as numbers of 64 bits.
    pub(crate) fn longs<const N: usize>(self) -> Result<[u64; N], String> {
        self.numbers::<8, N>().map(|numbers| numbers.map(u64::from_ne_bytes))
    }

    fn numbers<const BYTES: usize, const N: usize>(self) -> Result<[[u8; BYTES]; N], String> {
        let (numbers, rest) = self.0.as_chunks();
        let whole = if rest.is_empty() { numbers.try_into().ok() } else { None };
        whole.ok_or_else(|| LENGTH.to_owned())
    }

    pub(crate) fn region(self) -> Result<RegionPlace, String> {
        let [guest, size, front_end, offset] = self.longs()?;
        Ok(RegionPlace { guest, size, front_end, offset })
    }

    /// It ends with padding where the front-end sends a structure of C as it is in memory.
    pub(crate) fn inflight(self) -> Result<InflightPlace, String> {
        let (longs, rest) = self.split(16)?;
        let (shorts, padding) = rest.split(4)?;
        if !matches!(padding.0.len(), 0 | 4) {
            return Err(LENGTH.to_owned());
        }
        let [size, offset] = longs.longs()?;
        let [queues, ring_size] = shorts.numbers()?.map(u16::from_ne_bytes);
        Ok(InflightPlace { size, offset, queues, ring_size })
    }
}

impl InflightPlace {
    /// As it is in a message: a structure of C, padded.
    pub(crate) fn encoded(self) -> Vec<u8> {
        let Self { size, offset, queues, ring_size } = self;
        let mut body = [size, offset].map(u64::to_ne_bytes).concat();
        body.extend([queues, ring_size, 0, 0].map(u16::to_ne_bytes).concat());
        body
    }
}

/// The header of a message with a body of so many bytes.
pub(crate) fn header(request: u32, flags: u32, body: usize) -> [u8; HEADER_LEN] {
    let size = u32::try_from(body).expect("a body is short");
    let mut header = [0; HEADER_LEN];
    for (place, word) in header.chunks_exact_mut(4).zip([request, flags | VERSION, size]) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    header
}
