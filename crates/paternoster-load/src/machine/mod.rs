//! A virtual machine without a processor: a front-end and a driver, with which loads, tests and
//! benches attach to an export by shared memory, as QEMU and a guest do.
//!
//! ```text
//!   Machine ── FrontEnd ══ messages ══▶ the server's socket
//!      └────── Ring, Ring, … in Guest memory ◀══ shared ══▶ the server
//! ```
//!
//! A ring has slots: each is three descriptors (header, data, status) and room for the data of a
//! request. It may do anything that a front-end and a guest can: what is private here is only how.

mod front_end;
mod guest;
mod load;
mod ring;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use paternoster_vhost::proto::{Features, ProtocolFeatures, request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub use front_end::FrontEnd;
pub use guest::Guest;
pub(crate) use load::Asking;
pub use load::MachineLoad;
pub use ring::{Ask, Done, Ring};

/// How long a single request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a machine is made of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rings.
    pub queues: u16,
    /// Requests that each has at once.
    pub slots: u16,
    /// Bytes of data of a request at most.
    pub room: u32,
    /// Features that its driver accepts, of those that are offered.
    pub features: Features,
    /// Whether the file of its memory can never be made shorter.
    pub sealed: bool,
    /// Whether its front-end keeps what is in flight for the next server.
    pub inflight: bool,
}

impl Default for Shape {
    fn default() -> Self {
        let features = Features::all();
        Self { queues: 1, slots: 32, room: 64 << 10, features, sealed: true, inflight: true }
    }
}

/// A machine whose front-end is connected.
#[derive(Debug)]
pub struct Machine {
    /// Its front-end.
    pub front_end: FrontEnd,
    /// Its memory.
    pub guest: Guest,
    /// Its rings, which run.
    pub rings: Vec<Ring>,
    shape: Shape,
    features: Features,
    config: Vec<u8>,
    /// The memory of its requests in flight, with the message that says what it is; none where it
    /// or the server has none.
    inflight: Option<(Vec<u8>, OwnedFd)>,
}

impl Machine {
    /// Attaches a new machine to the export of a socket.
    pub fn attach(socket: &Path, shape: Shape) -> Result<Self> {
        let bytes = u64::from(shape.queues) * ring::bytes(shape.slots, shape.room);
        let guest = if shape.sealed { Guest::new(bytes)? } else { Guest::unsealed(bytes)? };
        let mut front_end = FrontEnd::connect(socket)?;
        let (features, protocol) = agree(&mut front_end, shape)?;
        let sizes = [shape.queues, ring::size(shape.slots), 0, 0].map(u16::to_ne_bytes).concat();
        let asked = [&[0; 16][..], &sizes].concat();
        let mut inflight = None;
        if shape.inflight && protocol.contains(ProtocolFeatures::INFLIGHT_SHMFD) {
            let (message, file) = front_end.ask_for_file(request::GET_INFLIGHT_FD, &asked)?;
            inflight = Some((message, file.context("no memory for requests in flight came")?));
        }
        let rings = (0..shape.queues).map(|number| Ring::new(number, shape.slots, shape.room));
        let rings = rings.collect::<Result<_>>()?;
        let config = Vec::new();
        let mut machine = Self { front_end, guest, rings, shape, features, config, inflight };
        machine.start()?;
        Ok(machine)
    }

    /// Attaches the same machine again, whose server has gone.
    pub fn attach_again(&mut self, socket: &Path) -> Result<()> {
        self.front_end = FrontEnd::connect(socket)?;
        (self.features, _) = agree(&mut self.front_end, self.shape)?;
        self.start()
    }

    /// The bytes of its disk.
    pub fn size(&self) -> u64 {
        let sectors = self.config[..8].try_into().expect("eight bytes");
        u64::from_le_bytes(sectors) * 512
    }

    /// The configuration of its device.
    pub fn config(&self) -> &[u8] {
        &self.config
    }

    /// The features that are in force.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Says whether the cache writes back.
    pub fn set_writeback(&mut self, writeback: bool) -> Result<()> {
        let body = [&[32, 1, 0].map(u32::to_ne_bytes).concat()[..], &[u8::from(writeback)]];
        self.front_end.tell(request::SET_CONFIG, &body.concat(), &[])
    }

    /// Says what the memory is, and starts all rings.
    fn start(&mut self) -> Result<()> {
        if let Some((message, file)) = &self.inflight {
            self.front_end.tell(request::SET_INFLIGHT_FD, message, &[file])?;
        }
        self.read_config()?;
        self.tell_memory()?;
        for ring in &mut self.rings {
            ring.start(&mut self.front_end, &self.guest, self.features)?;
        }
        Ok(())
    }

    /// Starts all rings where they were.
    pub fn start_again(&mut self) -> Result<()> {
        let Self { front_end, guest, rings, features, .. } = self;
        rings.iter_mut().try_for_each(|ring| ring.start(front_end, guest, *features))
    }

    /// Says what the memory is.
    pub fn tell_memory(&mut self) -> Result<()> {
        let Self { front_end, guest, .. } = self;
        front_end.tell(request::SET_MEM_TABLE, &guest.table(), &[guest.file()])
    }

    /// Reads again how the device is configured.
    pub fn read_config(&mut self) -> Result<()> {
        let asked = [[0, 60, 0].map(u32::to_ne_bytes).concat(), vec![0; 60]].concat();
        self.config = self.front_end.ask(request::GET_CONFIG, &asked)?.split_off(12);
        Ok(())
    }

    /// Asks for something on a ring. Returns the slot; an error where none is free.
    pub fn ask(&mut self, ring: usize, ask: &Ask<'_>) -> Result<u16> {
        let slot = self.rings[ring].prepare(&self.guest, ask)?;
        self.rings[ring].publish(&self.guest)?;
        Ok(slot)
    }

    /// The same of a driver that never kicks.
    pub fn ask_without_a_kick(&mut self, ring: usize, ask: &Ask<'_>) -> Result<u16> {
        let slot = self.rings[ring].prepare(&self.guest, ask)?;
        self.rings[ring].run_ahead_quietly(&self.guest, 0);
        Ok(slot)
    }

    /// Waits until something of a ring is done, or that long.
    pub fn wait(&mut self, ring: usize, timeout: Duration) -> Result<Vec<Done>> {
        let done = self.wait_for(ring..ring + 1, timeout)?;
        Ok(done.into_iter().map(|(_, done)| done).collect())
    }

    /// The same of all rings; each is told with its ring.
    pub fn wait_for_any(&mut self, timeout: Duration) -> Result<Vec<(usize, Done)>> {
        self.wait_for(0..self.rings.len(), timeout)
    }

    fn wait_for(&mut self, rings: Range<usize>, timeout: Duration) -> Result<Vec<(usize, Done)>> {
        let until = Instant::now() + timeout;
        loop {
            let mut all = Vec::new();
            for ring in rings.clone() {
                let done = self.rings[ring].take_done(&self.guest)?;
                all.extend(done.into_iter().map(|done| (ring, done)));
            }
            let left = until.saturating_duration_since(Instant::now());
            if !all.is_empty() || left.is_zero() {
                return Ok(all);
            }
            let asked = self.rings[rings.clone()].iter();
            let is_there: Vec<_> = asked.map(|ring| ring.wants_call(&self.guest)).collect();
            if is_there.contains(&true) {
                continue;
            }
            let calls = self.rings[rings.clone()].iter().map(Ring::call);
            let mut polled: Vec<_> = calls.map(|call| PollFd::new(call, PollFlags::IN)).collect();
            match poll(&mut polled, Some(&Timespec::try_from(left)?)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            drop(polled);
            self.rings[rings.clone()].iter_mut().for_each(Ring::take_calls);
        }
    }

    /// What was read for a request of a ring that is done, until its slot is taken again.
    pub fn data(&self, ring: usize, done: &Done) -> Vec<u8> {
        self.rings[ring].data(&self.guest, done)
    }

    /// Asks for something on the first ring, and waits until that is done: its status, and the data
    /// that came.
    pub fn do_one(&mut self, ask: &Ask<'_>) -> Result<(u8, Vec<u8>)> {
        let slot = self.ask(0, ask)?;
        let all = self.wait(0, PATIENCE)?;
        let [done] = &all[..] else { bail!("{} requests are done, of one", all.len()) };
        ensure!(done.slot == slot, "something else is done than what was asked for");
        Ok((done.status, self.data(0, done)))
    }

    /// Stops a ring. Returns its next chain.
    pub fn stop(&mut self, ring: u16) -> Result<u16> {
        let body = [u32::from(ring), 0].map(u32::to_ne_bytes).concat();
        let reply = self.front_end.ask(request::GET_VRING_BASE, &body)?;
        let base = reply[4..8].try_into().expect("four bytes");
        u16::try_from(u32::from_ne_bytes(base)).context("a base beyond 65535")
    }
}

/// Agrees on features of the device and of the protocol.
fn agree(front_end: &mut FrontEnd, shape: Shape) -> Result<(Features, ProtocolFeatures)> {
    let long = |reply: Vec<u8>| {
        let bytes = reply.try_into().ok().context("a reply that is no number")?;
        Ok::<_, anyhow::Error>(u64::from_ne_bytes(bytes))
    };
    front_end.ask_nothing(request::SET_OWNER, &[])?;
    let offered = Features::from_bits_retain(long(front_end.ask(request::GET_FEATURES, &[])?)?);
    let spoken = long(front_end.ask(request::GET_PROTOCOL_FEATURES, &[])?)?;
    let protocol = ProtocolFeatures::from_bits_truncate(spoken);
    let least = ProtocolFeatures::REPLY_ACK | ProtocolFeatures::CONFIG;
    ensure!(protocol.contains(least), "it speaks less: {spoken:#x}");
    front_end.ask_nothing(request::SET_PROTOCOL_FEATURES, &protocol.bits().to_ne_bytes())?;
    let needed = Features::VERSION_1 | Features::PROTOCOL_FEATURES;
    let features = offered & (shape.features | needed);
    front_end.tell(request::SET_FEATURES, &features.bits().to_ne_bytes(), &[])?;
    Ok((features, protocol))
}
