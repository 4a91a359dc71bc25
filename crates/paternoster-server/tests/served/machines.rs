//! Virtual machines that attach to exports by shared memory, beside clients of NBD.

use std::thread;
use std::time::{Duration, Instant};

use paternoster_load::{Ask, Done, Machine, MachineRing, Shape};
use paternoster_vhost::proto::{Features, request};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use paternoster_server::Server;
use paternoster_server::ctl::Control as _;
use paternoster_server::stat::Detail;

use crate::hostile_machines::check_neighbours;
use crate::support::{PATIENCE, Rig, start_in};

/// The status of a request that is done, of one that failed, and of one that is not known.
pub(crate) const OK: u8 = 0;
const IO_ERR: u8 = 1;
const UNSUPPORTED: u8 = 2;

pub(crate) const SECTOR: usize = 512;

/// A disk of memory, half of which a machine has.
pub(crate) const ONE: &str = r#"
[disks.d]
backend = "memory"
size = "16M"
[exports.whole]
disk = "d"
read_only = true
[exports.a]
disk = "d"
size = "8M"
[exports.gold]
disk = "d"
offset = "8M"
vhost_user = "DIR/gold.vhost"
"#;

/// The same of a file, whose reads go straight into the machine.
pub(crate) fn one_file(cache: &str) -> Rig {
    let memory = "[disks.d]\nbackend = \"memory\"\nsize = \"16M\"";
    let (_, exports) = ONE.split_once(memory).expect("it begins with its disk");
    Rig::with_file(16 << 20, &format!("cache = \"{cache}\"{exports}"))
}

pub(crate) fn attach(rig: &Rig, shape: Shape) -> Machine {
    Machine::attach(&rig.dir.path().join("gold.vhost"), shape).expect("it attaches")
}

/// The features with which a driver asks in each of its ways.
fn ways() -> [Features; 3] {
    let plain = Features::all() - Features::EVENT_IDX - Features::INDIRECT_DESC;
    [Features::all(), plain, Features::VERSION_1]
}

#[test]
fn machine_writes_and_reads_what_clients_do() {
    for rig in [Rig::start(ONE), one_file("page"), one_file("direct")] {
        writes_and_reads_what_clients_do(&rig);
        rig.end();
    }
}

fn writes_and_reads_what_clients_do(rig: &Rig) {
    for features in ways() {
        let mut machine = attach(rig, Shape { features, ..Shape::default() });
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
pub(crate) fn all_done(machine: &mut Machine, ring: usize, mut wanted: usize) -> Vec<Done> {
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
    let mut client = rig.client("gold");
    client.read(0, 512);
    // Connections, and machines among them, of the disk and of the tenant.
    let counts = || {
        let disk = &rig.stat().disks[0];
        let gold = disk.groups.iter().find(|group| group.path == "/gold").expect("it has a group");
        [(disk.connections, disk.machines), (gold.connections, gold.machines)]
    };
    assert_eq!(counts(), [(2, 1); 2]);
    drop(client);
    drop(machine);
    rig.until_empty();
    assert_eq!(counts(), [(0, 0); 2]);
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
    let done = all_done(&mut machine, 0, 1);
    assert_eq!(machine.data(0, &done[0]), [5; SECTOR]);
    rig.end();
}

/// Waits until the server has said that a ring is broken.
pub(crate) fn until_broken(ring: &MachineRing) {
    let begun = Instant::now();
    while !ring.is_broken() {
        assert!(begun.elapsed() < PATIENCE, "it is not told");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A disk that is at a request for a while, and a machine that has asked it for one.
fn machine_in_the_middle_of_a_read() -> (Rig, Machine) {
    let slow = "backend = \"modelled\"\nservers = 1\nservice_us = 2000000";
    let rig = Rig::start(&ONE.replace("backend = \"memory\"", slow));
    let mut machine = attach(&rig, Shape::default());
    machine.ask(0, &Ask::Read(0, 4096)).expect("room");
    assert_eq!(machine.wait(0, Duration::from_millis(50)).expect("it waits"), []);
    (rig, machine)
}

/// The disk may be reading into the guest: whoever is told that a ring is still must be right,
/// whether he hears that it is broken or stops it. Others have the disk's thread go on meanwhile.
#[test]
fn ring_that_is_broken_is_still_when_the_disk_is_done_with_it() {
    for stops in [false, true] {
        let (rig, mut machine) = machine_in_the_middle_of_a_read();
        let asked = Instant::now();
        let Machine { rings, guest, .. } = &mut machine;
        rings[0].run_ahead(guest, 1000).expect("it kicks");
        thread::scope(|scope| {
            let still = scope.spawn(|| {
                if !stops {
                    until_broken(&machine.rings[0]);
                }
                assert_eq!(machine.stop(0).expect("it is answered"), 1);
                asked.elapsed()
            });
            let mut rounds = 0;
            while !still.is_finished() {
                rig.stat();
                rounds += 1;
            }
            // Many thousands, unless what is to be looked at doubles in each: then not 30.
            assert!(rounds > 40, "{rounds}");
            let took = still.join().expect("it is told");
            assert!(took > Duration::from_millis(150), "{took:?}");
        });
        drop(machine);
        rig.end();
    }
}

/// As QEMU stops a device: its rings are disabled, and then each is stopped. What has been taken of
/// them and has no room yet is done all the same.
#[test]
fn rings_that_are_disabled_stop_when_what_was_taken_of_them_is_done() {
    let slow = "backend = \"modelled\"\nservers = 1\nservice_us = 50000";
    let rig = Rig::start(&ONE.replace("backend = \"memory\"", slow));
    let shape = Shape { queues: 2, slots: 8, room: 1 << 20, ..Shape::default() };
    let mut machine = attach(&rig, shape);
    let data = vec![7; 1 << 20];
    for slot in 0..8 {
        for ring in 0..2 {
            machine.ask(ring, &Ask::Write(slot * 2048, &data)).expect("room");
        }
    }
    // Some are done, so the first 8 MiB are held and more is taken.
    let mut done = machine.wait_for_any(PATIENCE).expect("it is served").len();
    for ring in 0..2_u32 {
        let body = [ring, 0].map(u32::to_ne_bytes).concat();
        machine.front_end.tell(request::SET_VRING_ENABLE, &body, &[]).expect("it is obeyed");
    }
    let stopped = [0, 1].map(|ring| usize::from(machine.stop(ring).expect("it stops")));
    while done < stopped.iter().sum() {
        let more = machine.wait_for_any(PATIENCE).expect("it is served");
        assert!(!more.is_empty() && more.iter().all(|(_, one)| one.status == OK), "{more:?}");
        done += more.len();
    }
    assert!(done < 16, "what comes behind them stays in the guest: {stopped:?}");
    machine.start_again().expect("it goes on");
    while done < 16 {
        done += machine.wait_for_any(PATIENCE).expect("it is served").len();
    }
    drop(machine);
    rig.until_empty();
    rig.end();
}

/// A ring may start before there is memory: then it waits, and all that is said of it holds.
#[test]
fn ring_that_waits_for_memory_is_called_by_what_comes_meanwhile() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape::default());
    machine.stop(0).expect("it stops");
    machine.front_end.tell(request::SET_MEM_TABLE, &[0; 8], &[]).expect("it is obeyed");
    machine.start_again().expect("it is obeyed");
    let call = eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd");
    let number = 0_u64.to_ne_bytes();
    machine.front_end.tell(request::SET_VRING_CALL, &number, &[&call]).expect("it is obeyed");
    machine.tell_memory().expect("it is obeyed");
    let called = |within: Duration| {
        let timeout = Timespec::try_from(within).expect("it fits");
        poll(&mut [PollFd::new(&call, PollFlags::IN)], Some(&timeout)) == Ok(1)
    };
    assert!(called(PATIENCE), "a ring that starts owes a call");
    drop(machine);
    rig.until_empty();
    rig.end();
}

/// Another file for kicks: what was asked for before is served, kicked for by either or by none.
#[test]
fn what_is_there_when_the_file_of_kicks_changes_is_served() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape::default());
    // It is looked at for some ten milliseconds, and not in the round that comes then.
    thread::sleep(Duration::from_millis(50));
    rig.stat();
    let kick = eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd");
    machine.ask_without_a_kick(0, &Ask::Read(0, 512)).expect("room");
    machine.front_end.tell(request::SET_VRING_KICK, &[0; 8], &[&kick]).expect("it is obeyed");
    assert_eq!(machine.wait(0, PATIENCE).expect("it is served").len(), 1);
    drop(machine);
    rig.until_empty();
    rig.end();
}

/// Its session does not read meanwhile, and there is nobody to answer.
#[test]
fn front_end_that_hangs_up_while_it_waits_is_missed() {
    let slow = "backend = \"modelled\"\nservers = 1\nservice_us = 4000000";
    let rig = Rig::start(&ONE.replace("backend = \"memory\"", slow));
    let mut machine = attach(&rig, Shape::default());
    machine.ask(0, &Ask::Read(0, 4096)).expect("room");
    assert_eq!(machine.wait(0, Duration::from_millis(50)).expect("it waits"), []);
    let stop = [request::GET_VRING_BASE, 1, 8, 0, 0].map(u32::to_ne_bytes).concat();
    machine.front_end.send_bytes(&stop, &[]).expect("the socket takes it");
    drop(machine);
    // The next is refused for no longer than that takes, though its device is to wait for what the
    // first had in the disk.
    let (path, dropped) = (rig.dir.path().join("gold.vhost"), Instant::now());
    let mut refused = dropped;
    let mut next = loop {
        match Machine::attach(&path, Shape::default()) {
            Ok(machine) => break machine,
            Err(_) => refused = Instant::now(),
        }
    };
    assert!(refused - dropped < Duration::from_secs(2), "{:?}", refused - dropped);
    assert_eq!(next.do_one(&Ask::GetId).expect("done").0, OK);
    drop(next);
    rig.end();
}

#[test]
fn front_end_that_comes_back_is_attached_when_the_disk_is_done_with_what_it_had() {
    let (rig, machine) = machine_in_the_middle_of_a_read();
    drop(machine);
    let asked = Instant::now();
    let path = rig.dir.path().join("gold.vhost");
    let mut again = loop {
        // It is refused as long as the server has not seen that the first is gone.
        if let Ok(machine) = Machine::attach(&path, Shape::default()) {
            break machine;
        }
        assert!(asked.elapsed() < PATIENCE, "it may attach");
    };
    assert!(asked.elapsed() > Duration::from_millis(150), "{:?}", asked.elapsed());
    assert_eq!(again.do_one(&Ask::Read(0, 512)).expect("done"), (OK, vec![0; SECTOR]));
    rig.end();
}

#[test]
fn memory_changes_under_requests_and_a_ring_that_is_in_none_is_broken() {
    for rig in [Rig::start(ONE), one_file("page")] {
        memory_changes_under_requests(&rig);
        check_neighbours(&rig);
        rig.end();
    }
}

fn memory_changes_under_requests(rig: &Rig) {
    let mut machine = attach(rig, Shape { queues: 2, ..Shape::default() });
    let table = machine.guest.table();
    for round in 0..20_u8 {
        for block in 0..16 {
            machine.ask(0, &Ask::Write(8 * block, &[round; 4096])).expect("room");
            machine.ask(1, &Ask::Read(8 * block, 4096)).expect("room");
        }
        let Machine { front_end, guest, .. } = &mut machine;
        front_end.tell(request::SET_MEM_TABLE, &table, &[guest.file()]).expect("it is obeyed");
        for ring in 0..2 {
            all_done(&mut machine, ring, 16);
        }
    }
    assert_eq!(machine.do_one(&Ask::Read(0, 4096)).expect("done"), (OK, vec![19; 4096]));
    machine.front_end.tell(request::SET_MEM_TABLE, &[0; 8], &[]).expect("it is obeyed");
    machine.rings.iter().for_each(until_broken);
}

/// A disk of a file, whose syncs are counted.
const ON_FILE: &str = r#"
[exports.a]
disk = "d"
size = "1M"
[exports.gold]
disk = "d"
offset = "1M"
vhost_user = "DIR/gold.vhost"
"#;

/// How many syncs of the disk four writes of a machine bring.
fn syncs_of_writes(server: &Server, machine: &mut Machine) -> u64 {
    let syncs = || server.control().stat(Detail::Groups).expect("it answers").disks[0].syncs;
    let before = syncs();
    for block in 0..4 {
        machine.do_one(&Ask::Write(8 * block, &[1; 4096])).expect("done");
    }
    syncs() - before
}

/// A driver that has no flush, or that was told that it needs none, is answered what is durable;
/// also by the next server, which nobody tells so.
#[test]
fn write_is_durable_before_its_answer_where_no_flush_follows() {
    let rig = Rig::with_file(2 << 20, ON_FILE);
    let path = rig.dir.path().join("gold.vhost");
    let without = Features::all() - Features::FLUSH - Features::CONFIG_WCE;
    let mut machine = attach(&rig, Shape { features: without, ..Shape::default() });
    assert_eq!(syncs_of_writes(&rig.server, &mut machine), 4);
    drop(machine);
    rig.until_empty();
    let mut machine = attach(&rig, Shape::default());
    assert_eq!(machine.config()[32], 1, "it writes back");
    assert_eq!(syncs_of_writes(&rig.server, &mut machine), 0);
    machine.do_one(&Ask::Flush).expect("done");
    machine.set_writeback(false).expect("it is obeyed");
    assert_eq!(syncs_of_writes(&rig.server, &mut machine), 4);
    let Rig { dir, server } = rig;
    server.shut_down().expect("a good end");
    let text = format!("[disks.d]\npath = \"DIR/disk.img\"\n{ON_FILE}");
    let server = start_in(dir.path(), &text).expect("the next server");
    machine.attach_again(&path).expect("it attaches again");
    assert_eq!(machine.config()[32], 0, "it does not write back");
    assert_eq!(syncs_of_writes(&server, &mut machine), 4);
    machine.set_writeback(true).expect("it is obeyed");
    assert_eq!(syncs_of_writes(&server, &mut machine), 0);
    server.shut_down().expect("a good end");
}

/// Nothing that it asks for is done; it may read.
#[test]
fn machine_of_a_read_only_export_only_reads() {
    let rig = Rig::start(&format!("{ONE}read_only = true\n"));
    let mut machine = attach(&rig, Shape::default());
    assert!(machine.features().contains(Features::RO));
    for ask in [Ask::Write(0, &[1; SECTOR]), Ask::Discard(0, 8), Ask::WriteZeroes(0, 8)] {
        assert_eq!(machine.do_one(&ask).expect("done").0, IO_ERR, "{ask:?}");
    }
    assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("done"), (OK, vec![0; SECTOR]));
    rig.end();
}
