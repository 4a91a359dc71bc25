//! Virtual machines that attach to exports by shared memory, beside clients of NBD.

use std::time::Duration;

use paternoster_load::{Ask, Done, Machine, Shape};
use paternoster_vhost::proto::Features;

use crate::support::{PATIENCE, Rig};

/// The status of a request that is done, of one that failed, and of one that is not known.
const OK: u8 = 0;
const IO_ERR: u8 = 1;
const UNSUPPORTED: u8 = 2;

const SECTOR: usize = 512;

/// A disk of memory, half of which a machine has.
const ONE: &str = r#"
[disks.d]
backend = "memory"
size = "16M"
[exports.a]
disk = "d"
size = "8M"
[exports.gold]
disk = "d"
offset = "8M"
vhost_user = "DIR/gold.vhost"
"#;

fn attach(rig: &Rig, shape: Shape) -> Machine {
    Machine::attach(&rig.dir.path().join("gold.vhost"), shape).expect("it attaches")
}

/// The features with which a driver asks in each of its ways.
fn ways() -> [Features; 3] {
    let plain = Features::all() - Features::EVENT_IDX - Features::INDIRECT_DESC;
    [Features::all(), plain, Features::VERSION_1]
}

#[test]
fn machine_writes_and_reads_what_clients_do() {
    let rig = Rig::start(
        &ONE.replace("[exports.a]", "[exports.whole]\nread_only = true\ndisk = \"d\"\n[exports.a]"),
    );
    for features in ways() {
        let mut machine = attach(&rig, Shape { features, ..Shape::default() });
        assert_eq!(machine.size(), 8 << 20);
        let data: Vec<u8> = (0..=255).cycle().take(64 << 10).collect();
        assert_eq!(machine.do_one(&Ask::Write(8, &data)).expect("done"), (OK, vec![]));
        let read = machine.do_one(&Ask::Read(8, 64 << 10)).expect("done");
        assert_eq!(read, (OK, data.clone()));
        let mut client = rig.client("gold");
        assert_eq!(client.read(4096, 64 << 10), data[..]);
        assert_eq!(rig.client("whole").read((8 << 20) + 4096, 512), data[..512]);
        client.write(0, &[7; SECTOR]);
        assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("done"), (OK, vec![7; SECTOR]));
        assert_eq!(machine.do_one(&Ask::Flush).expect("done").0, OK);
        assert_eq!(machine.do_one(&Ask::GetId).expect("done").1[..5], *b"gold\0");
        // What is beyond its end, or no sectors, is nobody's.
        let end = machine.size() / 512;
        for ask in [Ask::Read(end, 512), Ask::Read(0, 100), Ask::Write(end - 1, &[1; 1024])] {
            assert_eq!(machine.do_one(&ask).expect("done").0, IO_ERR, "{ask:?}");
        }
        assert_eq!(machine.do_one(&Ask::Other(99, 0, &[], 0)).expect("done").0, UNSUPPORTED);
        assert_eq!(machine.do_one(&Ask::WriteZeroes(8, 1)).expect("done").0, OK);
        assert_eq!(client.read(4096, 1024)[..], [vec![0; 512], data[512..1024].to_vec()].concat());
        assert_eq!(machine.do_one(&Ask::Discard(9, 1)).expect("done").0, OK);
        drop((machine, client));
        rig.until_empty();
    }
    rig.end();
}

/// More rings and requests than fit into a round or a quantum, whose data differ.
#[test]
fn all_rings_are_served_at_once() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape { queues: 4, slots: 64, ..Shape::default() });
    for round in 0..3_u64 {
        for (block, ring) in (0..256_u64).zip((0..4).flat_map(|ring| [ring; 64])) {
            let value = u8::try_from((round + block) % 251).expect("it fits");
            machine.ask(ring, &Ask::Write(8 * block, &[value; 4096])).expect("room");
        }
        for ring in 0..4 {
            all_done(&mut machine, ring, 64);
        }
        let mut client = rig.client("gold");
        for block in 0..256_u64 {
            let value = u8::try_from((round + block) % 251).expect("it fits");
            assert_eq!(client.read(block * 4096, 4096), vec![value; 4096]);
        }
    }
    drop(machine);
    rig.until_empty();
    rig.end();
}

/// Waits for so many to be done, all well.
fn all_done(machine: &mut Machine, ring: usize, mut wanted: usize) -> Vec<Done> {
    let mut all = Vec::new();
    while wanted > 0 {
        let done = machine.wait(ring, PATIENCE).expect("it is served");
        assert!(!done.is_empty(), "{wanted} are not done");
        assert!(done.iter().all(|one| one.status == OK));
        wanted -= done.len();
        all.extend(done);
    }
    all
}

#[test]
fn one_machine_has_an_export_at_a_time() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape::default());
    let second = Machine::attach(&rig.dir.path().join("gold.vhost"), Shape::default());
    assert!(second.is_err(), "it is taken");
    assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("done").0, OK);
    drop(machine);
    rig.until_empty();
    attach(&rig, Shape::default()).do_one(&Ask::Read(0, 512)).expect("it is free again");
    rig.end();
}

#[test]
fn ring_stops_behind_what_it_has_done_and_goes_on_there() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape::default());
    for number in 1..=5 {
        machine.do_one(&Ask::Write(0, &[number; SECTOR])).expect("done");
    }
    assert_eq!(machine.stop(0).expect("it stops"), 5);
    // What comes now stays in the guest.
    machine.ask(0, &Ask::Read(0, 512)).expect("room");
    assert_eq!(machine.wait(0, Duration::from_millis(50)).expect("it waits"), []);
    machine.start_again().expect("it goes on");
    assert_eq!(all_done(&mut machine, 0, 1)[0].data, [5; SECTOR]);
    rig.end();
}
