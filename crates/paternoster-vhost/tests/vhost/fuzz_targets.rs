//! The fuzz targets: each takes any bytes and panics if a promise is broken. The tests call them
//! here, and the fuzzer in `fuzz/`.
//!
//! The promises: no panic; however a message is cut, the same comes of it; nothing outside the
//! guest's memory is touched; every chain that is taken can be given back, once; memory for
//! requests in flight that says anything gives no chain twice and none that is not there.

#![allow(dead_code, reason = "each fuzzer uses some of it")]

use std::os::fd::OwnedFd;

use paternoster_vhost::blk::{Device, Request, Status};
use paternoster_vhost::proto::{Features, RegionPlace, RingAddresses};
use paternoster_vhost::{
    Answer, Inflight, Memory, Offer, Order, Progress, Region, Sealed, Session, SplitRing,
};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

const FRONT_END: u64 = 0x7f00_0000_0000;
const GUEST: u64 = 0x1_0000;
const RING: u16 = 8;

fn device() -> Device {
    Device {
        size: 1 << 20,
        block: 4096,
        discard: 4096,
        queues: 2,
        read_only: false,
        flushes: true,
        unmaps: true,
    }
}

fn memfd(bytes: u64) -> OwnedFd {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, bytes).expect("room");
    file
}

fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC).expect("an event")
}

/// A guest's memory that begins with these bytes.
fn memory(bytes: &[u8]) -> Memory {
    let mut memory = Memory::default();
    let place = RegionPlace { guest: 0, size: GUEST, front_end: FRONT_END, offset: 0 };
    memory.add(Region::map(place, memfd(GUEST), Sealed::Any).expect("memory")).expect("the first");
    let len = bytes.len().min(usize::try_from(GUEST).expect("64 KiB"));
    memory.write(0, &bytes[..len]).expect("it is there");
    memory
}

/// A front-end's messages. The first byte says how many descriptors come with each piece.
pub(crate) fn vhost_session(data: &[u8]) {
    let Some((&descriptors, stream)) = data.split_first() else { return };
    let whole = session(descriptors % 4, stream, usize::MAX);
    let in_bytes = session(descriptors % 4, stream, 1);
    assert_eq!(whole, in_bytes);
}

/// What comes of a stream that is cut into pieces of at most so many bytes.
fn session(descriptors: u8, mut stream: &[u8], cut: usize) -> Vec<String> {
    let device = device();
    let (features, config) = (device.features(), device.config(true));
    let (queues, sealed) = (device.queues, Sealed::Any);
    let mut session = Session::new(Offer { features, config, queues, sealed });
    let mut events = Vec::new();
    while !stream.is_empty() {
        let is_first = !session.is_within_message();
        let (piece, rest) = stream.split_at(stream.len().min(session.wanted()).min(cut));
        stream = rest;
        let fds = if is_first { descriptors } else { 0 };
        let file = if matches!(piece, [12..=14, ..]) { event } else { || memfd(GUEST) };
        let progress = session.receive(piece, (0..fds).map(|_| file()).collect());
        let answered = match progress {
            Ok(Progress::Order(order)) => {
                events.push(name(&order));
                session.answer(answer(&order))
            }
            other => other,
        };
        match answered {
            Ok(Progress::Refused(refusal)) => events.push(refusal.to_string()),
            Ok(_) => {}
            Err(error) => {
                events.push(error.to_string());
                return events;
            }
        }
        if let Some(output) = session.take_output() {
            events.push(format!("{:?}", output.bytes));
        }
    }
    events
}

/// An order without addresses and the numbers of descriptors.
fn name(order: &Order) -> String {
    match order {
        Order::Memory(_) => "Memory".to_owned(),
        Order::Inflight(inflight) => format!("{:?}", inflight.place()),
        other => format!("{other:?}").split("OwnedFd").next().unwrap_or_default().to_owned(),
    }
}

fn answer(order: &Order) -> Answer {
    match order {
        Order::Stop(ring) => Answer::Base(*ring),
        Order::Reset => Answer::Refused("not now".to_owned()),
        _ => Answer::Done,
    }
}

/// A ring in memory that holds anything, with requests that want anything. The first byte says what
/// was agreed on.
pub(crate) fn vhost_chain(data: &[u8]) {
    let Some((&kind, image)) = data.split_first() else { return };
    let memory = memory(image);
    let mut features = Features::VERSION_1;
    features.set(Features::EVENT_IDX, kind & 1 != 0);
    features.set(Features::INDIRECT_DESC, kind & 2 != 0);
    let Some(mut ring) = ring(&memory, features) else { return };
    serve(&mut ring, &memory);
}

fn ring(memory: &Memory, features: Features) -> Option<SplitRing> {
    let [descriptors, available, used] = [0, 0x80, 0x100].map(|at| FRONT_END + at);
    let addresses = RingAddresses { descriptors, available, used };
    SplitRing::new(memory, RING, addresses, 0, features).ok()
}

/// Takes all chains that are there, and ends what they want.
fn serve(ring: &mut SplitRing, memory: &Memory) {
    // What is written may be a ring again: there is an end to it.
    for _ in 0..64 {
        let Ok(Some(taken)) = ring.pop(memory) else { break };
        let request = taken.chain.as_ref().ok();
        let request = request.and_then(|chain| Request::parse(chain, memory, &device()).ok());
        let written = request.and_then(|request| {
            let mut data = vec![0; 1 << 12];
            let _ = request.copy_out(memory, &mut data);
            let status = match request.op {
                Ok(_) => request.copy_in(memory, 0, &data).map_or(Status::IoErr, |()| Status::Ok),
                Err(status) => status,
            };
            request.finish(memory, status).ok()
        });
        ring.push_used(taken.head, written.unwrap_or(0));
    }
    let (_, _) = (ring.publish(), ring.allow_kicks());
}

/// Memory for requests in flight that says anything. The first two bytes are the used index, behind
/// which the driver has offered eight.
pub(crate) fn vhost_inflight(data: &[u8]) {
    recovered(data);
}

/// How many chains of what the memory says are taken again, if it is valid.
pub(crate) fn recovered(data: &[u8]) -> Option<usize> {
    let (used, image) = data.split_first_chunk::<2>()?;
    let memory = memory(&[]);
    memory.write(0x102, used).expect("it is there");
    let used = u16::from_le_bytes(*used);
    memory.write(0x82, &used.wrapping_add(RING).to_le_bytes()).expect("it is there");
    for head in 0..RING {
        let entry = used.wrapping_add(head) % RING;
        memory.write(0x84 + 2 * u64::from(entry), &head.to_le_bytes()).expect("it is there");
    }
    let mut ring = ring(&memory, Features::VERSION_1)?;
    let (inflight, file) = Inflight::create(1, RING, 1).expect("memory");
    let len = image.len().min(usize::try_from(inflight.place().size).expect("small"));
    rustix::io::pwrite(&file, &image[..len], 0).expect("it is there");
    let is_valid = ring.recover(inflight.ring(0, RING).expect("it has one")).is_ok();
    let again = ring.in_flight();
    let mut heads = Vec::new();
    while let Ok(Some(taken)) = ring.pop(&memory) {
        assert!(taken.head < RING && !heads.contains(&taken.head), "no chain is taken twice");
        heads.push(taken.head);
    }
    assert!(heads.len() >= again);
    for head in heads {
        ring.push_used(head, 0);
    }
    ring.publish();
    // The next server finds nothing in flight.
    let mut next = self::ring(&memory, Features::VERSION_1)?;
    assert_eq!(next.recover(inflight.ring(0, RING).expect("it has one")), Ok(()));
    assert_eq!(next.in_flight(), 0);
    is_valid.then_some(again)
}
