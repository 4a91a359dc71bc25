//! NBD clients, and machines that attach by shared memory, which always have something to ask: the
//! load of the demo, of tests and benches. A [`Tenant`] says what they do, and [`Live`] plays whole
//! scenes with them.
//!
//! ```text
//!   tenant ── connection ── depth requests outstanding, a new one for each reply
//!        └─── connection ── …                     all connections on one thread and one ring
//!   tenant ── machine ───── a queue for each connection, on a thread of its own
//! ```
//!
//! Everything is real but the application: sockets, the handshake, the protocol.

mod ask;
mod habit;
mod judging;
mod live;
mod local;
mod machine;
mod measure;
mod one_by_one;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::{Bytes, BytesMut};
use fastrand::Rng;
use hdrhistogram::Histogram;
use paternoster_disk::{Buffers, Completion, Fd, IoEngine, MonotonicClock, Ring};
use paternoster_nbd::client::Transmission;
use paternoster_scene::Tenant;

pub use judging::{STARVED, judges_figures, least_part, report_too_busy};
pub use live::{Layout, Live, server_toml};
pub use local::LocalServer;
use machine::Asking;
pub use machine::{Ask, Done, FrontEnd, Guest, Machine, MachineLoad, Ring as MachineRing, Shape};
use one_by_one::enter;
pub use one_by_one::{OneByOne, read_once};

/// Room for replies that arrive at once.
const RECEIVE_ROOM: usize = 256 << 10;

/// Longest latency that is distinguished, in nanoseconds: a minute.
const LATENCY_MAX: u64 = 60_000_000_000;

/// The replies that the clients of one tenant got.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Requests answered.
    pub replies: u64,
    /// From a request's sending to its reply, in nanoseconds.
    pub latency: Histogram<u64>,
}

impl Measured {
    fn new() -> Self {
        let latency = Histogram::new_with_bounds(1_000, LATENCY_MAX, 3);
        Self { replies: 0, latency: latency.expect("the bounds are far apart") }
    }

    /// Counts answers that took so many nanoseconds.
    fn count(&mut self, latencies: &[u64]) {
        for &latency in latencies {
            self.replies += 1;
            self.latency.saturating_record(latency);
        }
    }

    /// Returns the sum of both.
    pub fn and(&self, more: &Self) -> Self {
        let mut sum = self.clone();
        sum.replies += more.replies;
        sum.latency.add(&more.latency).expect("both have the same bounds");
        sum
    }
}

/// An operation on the ring: the connection and what it does.
#[derive(Clone, Copy, Debug)]
enum Token {
    Received(usize),
    Sent(usize),
}

struct Client {
    tenant: usize,
    socket: Fd,
    transmission: Transmission,
    /// Requests to be sent.
    output: BytesMut,
    /// What the send in flight was given.
    sending: Option<Bytes>,
    /// When the request of each number was sent; numbers are taken again.
    sent_at: Vec<u64>,
}

/// The clients of some tenants.
pub struct Load {
    /// Where the server is.
    socket: PathBuf,
    ring: Ring<Token>,
    /// Each with what it got since that was last taken.
    tenants: Vec<(Tenant, Measured)>,
    clients: Vec<Client>,
    /// Tenants that are machines, by their places.
    machines: Vec<(usize, Asking)>,
    /// Clients that think, or would ask but for a pause: until when, which, and the number of their
    /// next request.
    due: BinaryHeap<Reverse<(u64, usize, u64)>>,
    random: Rng,
    /// Whether replies are answered with new requests.
    asking: bool,
    outstanding: u64,
}

impl Load {
    /// Connects all clients over the unix socket, each to the export of its tenant's name; nothing
    /// is asked yet. `seed` decides what will be.
    pub fn connect(socket: &Path, tenants: &[Tenant], seed: u64) -> Result<Self> {
        tenants.iter().try_for_each(habit::check)?;
        let mut clients = Vec::new();
        for (index, tenant) in tenants.iter().enumerate() {
            for _ in 0..tenant.connections {
                clients.push(Client::connect(socket, index, tenant)?);
            }
        }
        Ok(Self {
            socket: socket.to_owned(),
            ring: Ring::new(IoEngine::fastest())?,
            tenants: tenants.iter().map(|tenant| (tenant.clone(), Measured::new())).collect(),
            clients,
            machines: Vec::new(),
            due: BinaryHeap::new(),
            random: Rng::with_seed(seed),
            asking: true,
            outstanding: 0,
        })
    }

    /// Attaches a machine to that socket, a further tenant: it asks on a thread of its own.
    pub fn attach(&mut self, socket: &Path, tenant: &Tenant, seed: u64) -> Result<()> {
        let machine = MachineLoad::attach(socket, tenant, seed)?;
        self.machines.push((self.tenants.len(), Asking::new(machine)));
        self.tenants.push((tenant.clone(), Measured::new()));
        Ok(())
    }

    /// Has every client ask for as much as it may.
    pub fn start(&mut self) -> Result<()> {
        self.machines.iter_mut().for_each(|(_, machine)| machine.start());
        for index in 0..self.clients.len() {
            let depth = self.tenants[self.clients[index].tenant].0.depth;
            for number in 0..depth {
                self.ask(index, u64::from(number))?;
            }
            self.send(index);
            self.receive(index, BytesMut::new());
        }
        Ok(())
    }

    /// Runs the clients for that long.
    pub fn run_for(&mut self, span: Duration) -> Result<()> {
        let nanos = u64::try_from(span.as_nanos()).context("a span of centuries")?;
        let until = MonotonicClock::monotonic_now().saturating_add(nanos);
        while MonotonicClock::monotonic_now() < until {
            self.round(Some(until))?;
        }
        let failed = self.machines.iter_mut().find(|(_, machine)| machine.has_failed());
        failed.map_or(Ok(()), |(_, machine)| machine.pause())
    }

    /// Takes what each tenant got since the last call.
    pub fn take_measured(&mut self) -> Vec<Measured> {
        for (place, machine) in &self.machines {
            self.tenants[*place].1 = machine.take_measured();
        }
        let tenants = self.tenants.iter_mut();
        tenants.map(|(_, measured)| std::mem::replace(measured, Measured::new())).collect()
    }

    /// Sends no more requests and waits for the last replies; the clients stay connected.
    pub fn pause(&mut self) -> Result<()> {
        self.asking = false;
        self.machines.iter().for_each(|(_, machine)| machine.begin_pause());
        while self.outstanding > 0 {
            self.round(None)?;
        }
        self.machines.iter_mut().try_for_each(|(_, machine)| machine.pause())
    }

    /// Has clients that paused go on as if they had thought until now.
    pub fn resume(&mut self) -> Result<()> {
        self.asking = true;
        self.machines.iter_mut().for_each(|(_, machine)| machine.start());
        self.ask_due()
    }

    /// Sends no more requests, waits for the last replies and disconnects.
    pub fn finish(mut self) -> Result<()> {
        self.pause()
    }

    fn round(&mut self, until: Option<u64>) -> Result<()> {
        let next = until.into_iter().chain(self.next_due().filter(|_| self.asking)).min();
        self.ring.wait(next)?;
        let mut completions = Vec::new();
        self.ring.take_completions(&mut completions);
        for Completion { token, result, output } in completions {
            match token {
                Token::Received(index) => {
                    if result.context("a connection is lost")? == 0 {
                        bail!("the server closed a connection");
                    }
                    let input =
                        output.into_buffers().pop().expect("a receive gives its buffer back");
                    self.take_replies(index, input)?;
                }
                Token::Sent(index) => {
                    let sent = result.context("a connection is lost")? as usize;
                    let mut left = self.clients[index].sending.take().unwrap_or_default();
                    let _ = left.split_to(sent);
                    self.send_rest(index, left);
                }
            }
        }
        self.ask_due()
    }

    fn take_replies(&mut self, index: usize, mut input: BytesMut) -> Result<()> {
        let mut answered = false;
        while let Some(reply) = self.clients[index].transmission.decode(&mut input)? {
            answered = true;
            reply.result.context("the server refuses a request")?;
            let number = usize::try_from(reply.cookie).context("a number that was not given")?;
            let client = &self.clients[index];
            let latency = MonotonicClock::monotonic_now() - client.sent_at[number];
            self.tenants[client.tenant].1.count(&[latency]);
            self.outstanding -= 1;
            self.ask_again(index, reply.cookie)?;
        }
        if answered && self.is_over(index) {
            return Ok(());
        }
        self.send(index);
        self.receive(index, input);
        Ok(())
    }

    fn send(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.sending.is_none() && !client.output.is_empty() {
            let output = client.output.split().freeze();
            self.send_rest(index, output);
        }
    }

    fn send_rest(&mut self, index: usize, rest: Bytes) {
        if rest.is_empty() {
            return self.send(index);
        }
        let client = &mut self.clients[index];
        client.sending = Some(rest.clone());
        self.ring.send(Token::Sent(index), &client.socket, Buffers::from_buf([rest]));
    }

    fn receive(&mut self, index: usize, mut input: BytesMut) {
        let client = &self.clients[index];
        input.reserve(client.transmission.wanted().max(RECEIVE_ROOM));
        self.ring.receive(Token::Received(index), &client.socket, input);
    }
}

impl Client {
    fn connect(socket: &Path, tenant: usize, load: &Tenant) -> Result<Self> {
        let (stream, session) = enter(socket, &load.name)?;
        if session.export.size < u64::from(load.block) {
            bail!("export {:?} is smaller than a block of {}", load.name, load.block);
        }
        Ok(Self {
            tenant,
            socket: Arc::new(OwnedFd::from(stream)),
            transmission: Transmission::new(session),
            output: BytesMut::new(),
            sending: None,
            sent_at: vec![0; load.depth as usize],
        })
    }
}
