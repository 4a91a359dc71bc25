//! What the engine tells of a disk that fails, beside the outcomes of commands.

use paternoster::SchedulerKind;
use paternoster_disk::{CommandOp, DiskOp, Fault, FaultyPiece, InDevice, TransferId};
use rustix::io::Errno;

use crate::support::{Rig, read, write};

fn fault(rig: &Rig, op: DiskOp, errno: Errno, (tag, offset, len): (u64, u64, u64)) -> Fault {
    let volume = rig.volume;
    Fault {
        volume,
        op,
        errno,
        poisons: false,
        piece: Some(FaultyPiece { tag: tag.into(), offset, len }),
    }
}

/// Fails everything in the device, again where it is issued again, until nothing is left.
fn fail_all(rig: &mut Rig, errno: Errno) {
    while !rig.in_device.is_empty() {
        rig.finish_nth(0, Err(errno));
    }
}

#[test]
fn fault_names_the_piece_before_its_command_is_done() {
    // A read in two pieces, of which the second is still in the device.
    let mut rig = Rig::with_short_requests(SchedulerKind::None, 4, 8);
    rig.submit(0, 7, read(4096, 8192));
    assert_eq!(rig.in_device.len(), 2);
    rig.finish_nth(0, Err(Errno::IO));
    assert_eq!(rig.engine.take_faults(), [fault(&rig, DiskOp::Read, Errno::IO, (7, 4096, 4096))]);
    assert!(rig.results().is_empty(), "the command goes on");
    fail_all(&mut rig, Errno::IO);
    assert_eq!(rig.results(), [(7, Err(Errno::IO))]);
}

#[test]
fn faults_that_nobody_takes_are_kept_once_for_each_operation_and_errno() {
    let mut rig = Rig::new(SchedulerKind::None, 4);
    for tag in 0..100 {
        rig.submit(0, tag, write(tag << 20, 512, 1));
        fail_all(&mut rig, Errno::NOSPC);
        rig.submit(0, tag, read(tag << 20, 512));
        fail_all(&mut rig, Errno::IO);
    }
    let first = [
        fault(&rig, DiskOp::Write, Errno::NOSPC, (0, 0, 512)),
        fault(&rig, DiskOp::Read, Errno::IO, (0, 0, 512)),
    ];
    assert_eq!(rig.engine.take_faults(), first);
    assert_eq!(rig.engine.take_faults(), []);
}

#[test]
fn failed_sync_is_a_fault_without_a_place() {
    let mut rig = Rig::new(SchedulerKind::None, 4);
    rig.submit(0, 1, CommandOp::Flush);
    fail_all(&mut rig, Errno::IO);
    assert_eq!(
        rig.engine.take_faults(),
        [Fault {
            volume: rig.volume,
            op: DiskOp::Sync,
            errno: Errno::IO,
            poisons: true,
            piece: None
        }]
    );
}

#[test]
fn what_is_refused_at_the_end_is_no_fault() {
    let mut rig = Rig::held_back();
    rig.submit(0, 1, read(0, 512));
    rig.engine.cancel_queued(rig.clock.now());
    assert_eq!(rig.results(), [(1, Err(Errno::SHUTDOWN))]);
    assert_eq!(rig.engine.take_faults(), []);
}

#[test]
fn what_the_device_has_is_told_with_its_range() {
    let mut rig = Rig::new(SchedulerKind::None, 4);
    rig.submit(0, 1, write(8192, 1024, 1));
    assert!(!rig.engine.is_syncing());
    rig.submit(0, 2, CommandOp::Flush);
    let told: Vec<_> = rig.engine.in_device().collect();
    assert_eq!(told, [InDevice { op: DiskOp::Write, offset: 8192, len: 1024 }]);
    assert!(rig.engine.is_syncing());
    rig.finish_next();
    assert!(rig.in_device.iter().all(|(id, _)| matches!(id, TransferId::Sync(_))));
    assert_eq!(rig.engine.in_device().count(), 0);
}
