//! The modelled disk and the laboratory's device of the kind `servers` are one model: the same
//! commands at the same times end at the same times.

use paternoster::{Instant, Nanos, RequestId, Sector, SectorCount};
use paternoster_disk::{
    Backend, IoEngine, Model, ModelledBackend, Parts, Ring, Transfer, TransferId,
};
use paternoster_model::{Command, Model as _, Op, Room, Servers};
use slotmap::{Key, KeyData};

fn at(micros: u64) -> Instant {
    Instant::START + Nanos::from_micros(micros)
}

fn id(number: u32) -> TransferId {
    TransferId::Request(RequestId::from(KeyData::from_ffi(1 << 32 | u64::from(number))))
}

/// What ends by then: when, and what.
fn ends_of_disk(disk: &mut ModelledBackend, until: Instant) -> Vec<(Instant, u64)> {
    let mut ends = Vec::new();
    while let Some(due) = disk.poll_timeout().filter(|due| *due <= until) {
        let TransferId::Request(rq) = disk.take_done(due).expect("it is due").id else {
            unreachable!("there are no syncs")
        };
        ends.push((due, rq.data().as_ffi() & 0xFFFF_FFFF));
    }
    ends
}

fn ends_of_device(device: &mut Servers, until: Instant) -> Vec<(Instant, u64)> {
    let mut ends = Vec::new();
    while let Some(due) = device.poll_timeout().filter(|due| *due <= until) {
        ends.push((due, device.poll(due).expect("it is due").tag.into()));
    }
    ends
}

/// Reads of many lengths, some while servers are free and some while all are busy.
#[test]
fn same_reads_at_the_same_times_end_at_the_same_times() {
    let model =
        Model { servers: 3, service: Nanos::from_micros(50), per_kib: Nanos::from_micros(1) };
    let mut disk = ModelledBackend::new(1 << 20, model);
    let mut device = Servers::constant(
        3,
        Room { depth: 256, end: Sector(1 << 11) },
        Nanos::from_micros(50),
        Nanos::from_micros(1),
    );
    let mut ring = Ring::new(IoEngine::Threads).expect("a ring");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for tag in 0..200_u32 {
        let now = at(u64::from(tag * 20 + tag * tag % 17));
        ours.extend(ends_of_disk(&mut disk, now));
        theirs.extend(ends_of_device(&mut device, now));
        let sectors = 1 + tag * 7 % 64;
        let parts = Parts::from_elem(512 * sectors, 1);
        disk.start(&mut ring, now, id(tag), Transfer::Read { offset: 0, parts });
        let (sector, sectors) = (Sector(0), SectorCount(sectors));
        device.submit(now, Command { tag, op: Op::Read, durable: false, sector, sectors });
    }
    ours.extend(ends_of_disk(&mut disk, at(1_000_000)));
    theirs.extend(ends_of_device(&mut device, at(1_000_000)));
    assert_eq!(ours.len(), 200);
    assert_eq!(ours, theirs);
}
