//! What arrives in one round, and what becomes of it: all of it is in the scheduler before the disk
//! is given anything, all replies of a round leave each connection in one send, and who asks for
//! what is no request is charged for that.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use bytes::BytesMut;
use paternoster::{AnyScheduler, Device, Elevator, Instant, IoPrio, Nanos, SchedulerKind};
use paternoster_disk::{
    Backend, Capabilities, Engine, Extent, IoEngine, MonotonicClock, Owner, Payload, Ring, Token,
    Transfer, TransferDone, TransferId, Transferred, Waker,
};
use paternoster_nbd::proto::TransmissionFlags;
use paternoster_nbd::{BlockSize, ExportInfo, Session};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};

use super::{Connections, DiskLabel, Tenants};
use crate::admission::Rooms;
use crate::clients::{Clients, Export};
use crate::config::AtStop;
use crate::messages::{NewConnection, NewExport, NewTenant, OwnerHandle};
use crate::peer::Peer;
use crate::recording::Sink;

/// Bytes of a block; a command reads one.
const BLOCK: u64 = 512;

/// Blocks of the disk that are one client's.
const SHARE: u64 = 1000;

/// A disk that is done with a read as soon as it is started, and notes which block it reads.
#[derive(Debug)]
struct AtOnce {
    started: Arc<Mutex<Vec<u64>>>,
    done: VecDeque<(Instant, TransferDone)>,
}

impl Backend for AtOnce {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1 << 20, 4)
    }

    fn start(&mut self, _: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        let result = Ok(transfer.len());
        let mut read = Payload::new();
        if let Transfer::Read { offset, parts } = transfer {
            self.started.lock().expect("nobody has panicked").push(offset / BLOCK);
            read = parts.iter().map(|&part| vec![0; part as usize].into()).collect();
        }
        self.done
            .push_back((now, TransferDone { id, transferred: Transferred::new(result, read) }));
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        self.poll_timeout().filter(|started| *started <= now)?;
        self.done.pop_front().map(|(_, done)| done)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.done.front().map(|&(started, _)| started)
    }

    fn extents(&self, _: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len: len / 4, hole: false }; 4])
    }
}

const READ: u8 = 0;
const DISCONNECT: u8 = 2;
const BLOCK_STATUS: u8 = 7;

/// A command for that block of the export.
fn command(code: u8, block: u64) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, code]);
    bytes.extend(block.to_be_bytes());
    bytes.extend((block * BLOCK).to_be_bytes());
    bytes.extend(512_u32.to_be_bytes());
    bytes
}

fn reads(blocks: &[u64]) -> Vec<u8> {
    blocks.iter().flat_map(|&block| command(READ, block)).collect()
}

/// Serves two tenants of equal weight, whose clients have sent these commands before the owner
/// begins, on a disk that has `depth` reads at once. Returns the blocks of the disk in the order in
/// which it started them, and for each client the bytes of each send.
fn serve(kind: SchedulerKind, depth: u32, sent: &[Vec<u8>; 2]) -> (Vec<u64>, [Vec<usize>; 2]) {
    let device = Device::solid_state(depth);
    let elevator = Elevator::new(AnyScheduler::new(kind, Sink::default()), device, Instant::START);
    let started = Arc::new(Mutex::new(Vec::new()));
    let backend: Box<dyn Backend> =
        Box::new(AtOnce { started: started.clone(), done: VecDeque::new() });
    let mut engine = Engine::new(elevator);
    let volume = engine.add_volume(&backend.capabilities()).expect("there is room");
    let mut tenants = Tenants::new(&Arc::default());
    let place = engine.place(volume);
    let exports = [("/a", 0), ("/b", 1)].map(|(path, index)| {
        let new = NewExport {
            name: format!("e{index}"),
            volume,
            offset: index * SHARE * BLOCK,
            io_prio: IoPrio::default(),
            is_offered: true,
            lineage: vec![NewTenant::plain(path, 64 << 20)],
        };
        engine.administer(|elevator| tenants.add_export(elevator, Instant::START, new, place))
    });
    let label = DiskLabel::in_memory(kind, volume);
    let (sender, inbox) = mpsc::channel();
    let waker = Waker::new().expect("an event");
    let handle = OwnerHandle::new(sender, waker.clone());
    let patience = Nanos::from_millis(60_000);
    let transport = Box::new(Clients::of_all(patience));
    let mut connections = Connections::new(label, tenants, inbox, transport);
    let clients = [0, 1].map(|client| connect(&handle, &exports[client], &sent[client]));
    let thread = thread::spawn(move || {
        let (ring, clock) = (Ring::new(IoEngine::fastest())?, MonotonicClock::start());
        Owner::new(engine, [(volume, backend)], ring, clock, waker)?.run(&mut connections)?;
        connections.ended()
    });
    let sends = clients.map(|socket| sends(&socket));
    handle.shut_down(AtStop::Close);
    thread.join().expect("nothing is amiss").expect("a good end");
    let started = started.lock().expect("nobody has panicked").clone();
    (started, sends)
}

/// A client that has sent these commands with the end of its handshake, and disconnects when it has
/// been answered. Its socket keeps sends apart.
pub(super) fn connect(handle: &OwnerHandle, export: &Arc<Export>, commands: &[u8]) -> OwnedFd {
    let kind = SocketType::SEQPACKET;
    let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.expect("sockets");
    let info = ExportInfo {
        name: export.name.clone(),
        description: None,
        size: SHARE * BLOCK,
        flags: TransmissionFlags::HAS_FLAGS,
        block_size: BlockSize::default(),
    };
    let input = [commands, &command(DISCONNECT, 0)].concat();
    let session = Session { export: info, structured_replies: true, allocation_context: Some(1) };
    handle.connect(NewConnection {
        tls: None,
        identity: None,
        socket: Arc::new(theirs),
        session,
        input: BytesMut::from(&input[..]),
        export: Arc::clone(export),
        peer: Peer::Unknown,
        admitted: Rooms::of(16).tenant("/a", 16).admit().expect("room"),
        resumed: None,
    });
    ours
}

/// Receives until the server closes the connection: the bytes of each send.
fn sends(socket: &OwnedFd) -> Vec<usize> {
    let mut room = [0; 16 << 10];
    let receive = || recv(socket, &mut room[..], RecvFlags::empty()).expect("replies").0;
    std::iter::repeat_with(receive).take_while(|&received| received > 0).collect()
}

/// mq-deadline begins with the oldest and goes on upwards, from one client to the other. Where the
/// commands of the first were dispatched before those of the second were there, it went 500, 900,
/// 100, 1300, …
#[test]
fn commands_of_all_clients_are_in_the_scheduler_before_the_first_dispatch() {
    let sent = [reads(&[500, 100, 900]), reads(&[300, 700])];
    let (started, _) = serve(SchedulerKind::MqDeadline, 1, &sent);
    assert_eq!(started, [500, 900, SHARE + 300, SHARE + 700, 100]);
}

/// Twenty from each client, more than a visit of the rotation takes.
#[test]
fn clients_that_have_sent_much_are_in_the_scheduler_before_the_first_dispatch() {
    let blocks: Vec<u64> = (0..20).map(|n| 980 - 20 * n).collect();
    let (started, _) = serve(SchedulerKind::MqDeadline, 1, &[reads(&blocks), reads(&blocks)]);
    let upwards = |from: u64, to: u64| (from..=to).step_by(20);
    // A batch of mq-deadline is 16; from the second batch on it goes by the oldest.
    let first: Vec<u64> = [980].into_iter().chain(upwards(SHARE + 600, SHARE + 880)).collect();
    assert_eq!(started[..16], first);
}

/// The disk does four in a round, of whichever client: each gets its own by one send. A reply is a
/// chunk of a header of 20 bytes, an offset of 8 and the data.
#[test]
fn replies_of_a_round_leave_each_connection_in_one_send() {
    let sent = [reads(&[0, 2, 4, 6, 8, 10]), reads(&[0, 2, 4, 6])];
    let (started, sends) = serve(SchedulerKind::MqDeadline, 4, &sent);
    assert_eq!(started.len(), 10);
    let replies = sends.map(|sends| sends.iter().map(|bytes| bytes / 540).collect::<Vec<_>>());
    assert_eq!(replies, [[4, 2], [2, 2]]);
}

/// The disk says four extents: the tenant is charged as for four reads of no bytes. A read of 512
/// bytes costs 1 1/32 of one. So it is behind the first four reads of the other, not the fifth.
#[test]
fn who_asks_what_is_allocated_is_charged_for_it() {
    let asks = [command(BLOCK_STATUS, 0), reads(&[0, 10])].concat();
    let other = reads(&[100, 110, 120, 130, 140]);
    let (started, _) = serve(SchedulerKind::Wfq, 1, &[asks, other]);
    let expected = [SHARE + 100, SHARE + 110, SHARE + 120, SHARE + 130, 0, SHARE + 140, 10];
    assert_eq!(started, expected);
    let (started, _) = serve(SchedulerKind::Wfq, 1, &[reads(&[0, 10]), reads(&[100, 110])]);
    assert_eq!(started, [0, SHARE + 100, 10, SHARE + 110], "nobody is charged for nothing");
}
