//! The modelled disk keeps its schedule: numbers by hand, in virtual time.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos, RequestId, SchedulerKind, Sector, SectorCount};
use paternoster_disk::{
    Backend, Buffers, BusyDepth, CommandOp, ModelledBackend, ModelledDevice, Parts, Ring,
    ServersTime, SyncRange, Token, Transfer, TransferId, VolumeId,
};
use paternoster_model::{
    Chance, Command, Kind, Model as _, Op, ServersParameters, Service, describe_device,
};
use slotmap::{Key, KeyData};

use crate::support::{Rig, new_ring, read};

/// Bytes of a sector.
const SECTOR: u32 = 512;

/// A modelled disk alone. Transfers are named by numbers, times are in µs.
struct Disk {
    backend: ModelledBackend,
    ring: Ring<Token>,
}

fn at(micros: u64) -> Instant {
    Instant::START + Nanos::from_micros(micros)
}

fn id(number: u64) -> TransferId {
    TransferId::Request(VolumeId::null(), RequestId::from(KeyData::from_ffi(1 << 32 | number)))
}

/// Servers that take 50 µs a transfer, and 1 µs a sector; a sync takes so many.
fn times(servers: u32, sync: u64) -> ServersTime {
    let [fixed, per_kib, sync] = [50, 2, sync].map(Nanos::from_micros);
    ServersTime { servers, fixed, per_kib, sync }
}

impl Disk {
    /// Servers that take 50 µs a transfer, and 1 µs a sector.
    fn new(servers: u32) -> Self {
        Self::of(ModelledBackend::of_servers(1 << 20, times(servers, 0)))
    }

    fn of(backend: ModelledBackend) -> Self {
        Self { backend, ring: new_ring() }
    }

    fn start(&mut self, micros: u64, number: u64, len: u32) {
        let transfer = Transfer::Read { offset: 0, parts: Parts::from_elem(len, 1) };
        self.backend.start(&mut self.ring, at(micros), id(number), transfer);
    }

    /// What is delivered to an owner that wakes up then.
    fn done(&mut self, micros: u64) -> Vec<u64> {
        let backend = &mut self.backend;
        let done = std::iter::from_fn(|| backend.take_done(at(micros)));
        done.map(|done| match done.id {
            TransferId::Request(_, rq) => rq.data().as_ffi() & 0xFFFF_FFFF,
            TransferId::Sync(_) => 0,
        })
        .collect()
    }

    fn due(&self) -> Option<Instant> {
        self.backend.poll_timeout()
    }

    fn idle(&mut self, micros: u64) -> Nanos {
        self.done(micros);
        self.backend.modelled(at(micros)).expect("it is modelled").idle
    }
}

#[test]
fn transfer_takes_its_fixed_time_and_its_time_for_the_bytes() {
    let mut disk = Disk::new(1);
    disk.start(0, 1, 4 * SECTOR);
    assert_eq!(disk.due(), Some(at(54)));
    assert!(disk.done(53).is_empty());
    assert_eq!(disk.done(54), [1]);
    assert_eq!(disk.due(), None);
}

#[test]
fn transfer_starts_when_it_is_dispatched_or_when_a_server_is_free() {
    let mut disk = Disk::new(1);
    disk.start(0, 1, SECTOR); //      0 to  51
    disk.start(10, 2, 2 * SECTOR); //    51 to 103
    disk.start(200, 3, 3 * SECTOR); //  200 to 253
    disk.start(201, 4, 0); //     253 to 303
    for (number, end) in [(1, 51), (2, 103), (3, 253), (4, 303)] {
        assert_eq!(disk.due(), Some(at(end)));
        assert!(disk.done(end - 1).is_empty());
        assert_eq!(disk.done(end), [number]);
    }
    assert_eq!(disk.idle(303), Nanos::from_micros(97), "from 103 to 200");
}

#[test]
fn all_that_is_due_is_delivered_at_once_in_the_order_of_its_ends() {
    let mut disk = Disk::new(2);
    disk.start(0, 1, 9 * SECTOR); //  first:   0 to  59
    disk.start(0, 2, SECTOR); //  second:  0 to  51
    disk.start(0, 3, SECTOR); //  second: 51 to 102
    disk.start(0, 4, SECTOR); //  first:  59 to 110
    assert_eq!(disk.done(105), [2, 1, 3]);
    assert_eq!(disk.done(1000), [4]);
}

#[test]
fn late_owner_does_not_slow_what_had_been_dispatched() {
    let mut disk = Disk::new(1);
    for number in 0..10 {
        disk.start(0, number, 0); // Each 50 µs after the one before.
    }
    assert_eq!(disk.done(499), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    disk.start(499, 10, 0); // 500 to 550
    assert_eq!(disk.done(549), [9]);
    assert_eq!(disk.done(550), [10]);
    assert_eq!(disk.idle(550), Nanos::ZERO);
}

#[test]
fn servers_work_in_parallel() {
    let mut disk = Disk::new(4);
    for number in 0..9 {
        disk.start(0, number, 0);
    }
    assert_eq!(disk.done(50), [0, 1, 2, 3]);
    assert_eq!(disk.done(100), [4, 5, 6, 7]);
    assert!(disk.done(149).is_empty());
    assert_eq!(disk.done(150), [8]);
}

#[test]
fn idle_time_is_summed_over_servers_up_to_now() {
    let mut disk = Disk::new(2);
    disk.start(0, 1, 0); //    first:    0 to  50
    disk.start(30, 2, 0); //   second:  30 to  80, idle for 30
    disk.start(100, 3, 0); //  first:  100 to 150, idle for 50
    disk.start(100, 4, 0); //  second: 100 to 150, idle for 20
    assert_eq!(disk.idle(150), Nanos::from_micros(100));
    assert_eq!(disk.idle(160), Nanos::from_micros(120), "both stand free for 10");
}

#[test]
fn sync_takes_no_time_and_no_server() {
    let mut disk = Disk::new(1);
    disk.start(0, 1, 0);
    let sync = Transfer::Sync { range: SyncRange::Whole };
    disk.backend.start(&mut disk.ring, at(7), TransferId::Sync(VolumeId::null()), sync);
    assert!(disk.due().is_some_and(|due| due <= at(7)));
    assert_eq!(disk.done(7), [0]);
    assert_eq!(disk.due(), Some(at(50)));
}

#[test]
fn trims_zeroes_and_cache_take_time_by_size_as_reads_do() {
    let mut disk = Disk::new(1);
    let transfers = [
        Transfer::Trim { offset: 0, len: 10 * u64::from(SECTOR) },
        Transfer::Zero { offset: 0, len: 20 * u64::from(SECTOR), allocate: false },
        Transfer::Cache { offset: 0, len: 10 * u64::from(SECTOR) },
    ];
    for (number, transfer) in (1..).zip(transfers) {
        disk.backend.start(&mut disk.ring, at(0), id(number), transfer);
    }
    assert_eq!(disk.done(59), [0; 0]);
    assert_eq!(disk.done(60), [1]);
    assert_eq!(disk.done(129), [0; 0]);
    assert_eq!(disk.done(130), [2]);
    assert_eq!(disk.done(189), [0; 0]);
    assert_eq!(disk.done(190), [3]);
}

#[test]
fn what_is_read_is_what_had_been_written_when_it_was_dispatched() {
    let mut disk = Disk::new(1);
    let from = Buffers::from_elem(vec![7; 10].into(), 1);
    let write = Transfer::Write { offset: 100, from };
    disk.backend.start(&mut disk.ring, at(0), id(1), write);
    let read = Transfer::Read { offset: 99, parts: Parts::from_elem(12, 1) };
    disk.backend.start(&mut disk.ring, at(0), id(2), read);
    assert_eq!(disk.backend.take_done(at(100)).map(|done| done.id), Some(id(1)));
    let read = disk.backend.take_done(at(102)).expect("it is done").transferred;
    assert_eq!((read.result, &read.read[0][..2]), (Ok(12), &[0, 7][..]));
}

/// The engine on a modelled disk whose owner wakes up exactly when something is due, under a
/// scheduler that never keeps the device free on purpose.
#[test]
fn backlogged_engine_keeps_every_server_busy() {
    let mut disk = Disk::new(2);
    let mut rig = Rig::new(SchedulerKind::MqDeadline, disk.backend.capabilities().depth.unshared);
    for tag in 0..100 {
        let connection = usize::try_from(tag).expect("small") % 4;
        rig.submit(connection, tag, read(tag * 8192, SECTOR));
    }
    let mut started = VecDeque::from(std::mem::take(&mut rig.in_device));
    loop {
        for (id, transfer) in started.drain(..) {
            disk.backend.start(&mut disk.ring, rig.clock.now(), id, transfer);
        }
        let Some(due) = disk.due() else { break };
        rig.clock.advance_to(due);
        while let Some(done) = disk.backend.take_done(due) {
            rig.engine.transfer_done(due, done.id, done.transferred);
            rig.step();
            started.extend(rig.in_device.drain(..));
        }
    }
    assert_eq!(rig.outcomes().len(), 100);
    assert_eq!(rig.clock.now(), at(50 * 51), "100 transfers of 51 µs by 2 servers");
    assert_eq!(disk.idle(550), Nanos::ZERO);
    rig.submit(0, 1, CommandOp::Flush);
    assert_eq!(rig.in_device.len(), 1);
}

/// A disk of the laboratory, served: what it is given at once ends when the device alone says, one
/// command more than it takes at once included, which waits before it.
#[test]
fn device_of_the_laboratory_keeps_its_times_and_takes_no_more_than_its_depth() {
    let device = describe_device("hdd-7200").expect("it comes along");
    let mut disk = ModelledBackend::new(1 << 20, Some("hdd-7200"), &device).expect("a layout");
    let mut model = device.open(1).expect("a layout");
    assert_eq!(disk.capabilities().depth, BusyDepth::any(model.depth()));
    assert!(disk.capabilities().rotational, "{}", disk.rotational_because());
    let mut ring = new_ring();
    for number in 0..=model.depth() {
        let offset = u64::from(number) * 8 * u64::from(SECTOR);
        let transfer = Transfer::Read { offset, parts: Parts::from_elem(8 * SECTOR, 1) };
        disk.start(&mut ring, at(0), id(number.into()), transfer);
        if number < model.depth() {
            let (sector, sectors) = (Sector(u64::from(number) * 8), SectorCount(8));
            let chance = Chance::default();
            let read =
                Command { tag: number, op: Op::Read, durable: false, sector, sectors, chance };
            model.submit(at(0), read);
        }
    }
    let first = model.poll_timeout().expect("it has commands");
    assert_eq!(disk.poll_timeout(), Some(first));
    let mut done = 0;
    while let Some(due) = disk.poll_timeout() {
        done += std::iter::from_fn(|| disk.take_done(due)).count();
    }
    assert_eq!(done, 1 + model.depth() as usize);
    assert_eq!(disk.modelled(at(0)).expect("it is modelled").name.as_deref(), Some("hdd-7200"));
}

/// What one volume asks for keeps the server from the other.
#[test]
fn volumes_of_a_pool_wait_for_one_device() {
    let device = ModelledDevice::of_servers(times(1, 0));
    let volume = || Disk::of(device.volume(1 << 20).expect("servers have no end"));
    let (mut a, mut b) = (volume(), volume());
    a.start(0, 1, SECTOR); //         0 to  51
    b.start(10, 2, 2 * SECTOR); //   51 to 103
    a.start(20, 3, SECTOR); //      103 to 154
    assert_eq!((a.done(60), b.done(60)), (vec![1], vec![]));
    assert_eq!(volume().due(), None, "it waits for nothing");
    assert_eq!((a.due(), b.due()), (Some(at(103)), Some(at(103))));
    // It is told of its end by whoever looks first.
    assert_eq!(a.done(154), [3]);
    assert_eq!((b.due(), b.done(154)), (Some(at(103)), vec![2]));
    // Idle from 154 on, whichever of them is asked.
    assert_eq!([a.idle(200), b.idle(204)].map(Nanos::as_nanos), [46_000, 50_000]);
}

#[test]
fn sync_takes_its_time_and_keeps_no_server() {
    let mut disk = Disk::of(ModelledBackend::of_servers(1 << 20, times(1, 200)));
    let sync = TransferId::Sync(VolumeId::null());
    let transfer = Transfer::Sync { range: SyncRange::Whole };
    disk.backend.start(&mut disk.ring, at(0), sync, transfer);
    disk.start(10, 1, SECTOR); //     10 to  61
    assert_eq!(disk.done(61), [1]);
    assert_eq!(disk.due(), Some(at(200)));
    assert_eq!((disk.done(199), disk.done(200)), (vec![], vec![0]));
}

/// A device of 100 sectors, cut by hand.
#[test]
fn volumes_have_the_first_sectors_that_are_free() {
    let servers = ServersParameters::new(1, Service::constant(Nanos::from_micros(50)));
    let servers = Kind::Servers(servers.with_room(8, Sector(100)));
    let device = ModelledDevice::new(None, &servers.into()).expect("servers have no layout");
    let volume = |sectors: usize| device.volume(sectors * SECTOR as usize);
    let (first, mut second) = (volume(40).expect("room"), volume(40).expect("room"));
    assert!(volume(21).is_none(), "20 are left");
    drop(first);
    assert!(volume(41).is_none(), "40 and 20 are left");
    let third = volume(40).expect("those of the first");
    second.grow(61 * u64::from(SECTOR)).expect_err("there are 60 behind its beginning");
    second.grow(1 << 62).expect_err("there is no memory of so many");
    second.grow(60 * u64::from(SECTOR)).expect("these are free");
    assert_eq!(second.capabilities().size, 60 * u64::from(SECTOR));
    assert!(volume(1).is_none(), "none is left");
    drop(third);
}
