//! Guests and front-ends that do what no well-behaved one would: their device ends, or is broken,
//! and nobody else notices.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::fd::AsRawFd as _;
use std::thread;
use std::time::{Duration, Instant};

use paternoster_load::{Ask, Machine, Shape};
use paternoster_vhost::proto::{Features, request};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::ioctl_fionbio;

use crate::machines::{OK, ONE, SECTOR, all_done, attach, one_file, until_broken};
use crate::support::{PATIENCE, Rig};

/// Waits until the server has closed the socket of a front-end.
fn until_cut_off(machine: &mut Machine) {
    let socket = &mut machine.front_end.socket;
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    match socket.read(&mut [0; 64]) {
        Ok(0) => {}
        // It has not read all that was sent.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
}

/// Its neighbours, and clients of NBD, notice nothing.
pub(crate) fn check_neighbours(rig: &Rig) {
    rig.client("a").check_served(7);
}

/// It ends in the middle of a visit, while two of its rings wait for room: the third has its next
/// entry in the page that goes, and zeroes name a chain that is in flight.
#[test]
fn memory_that_is_taken_away_while_rings_wait_for_room_ends_its_device_alone() {
    let slow = "backend = \"modelled\"\nservers = 16\nservice_us = 500000";
    let rig = Rig::start(&ONE.replace("backend = \"memory\"", slow));
    // Without what is behind the entries.
    let features = Features::all() - Features::EVENT_IDX;
    let shape = Shape { queues: 3, slots: 8, room: 1 << 20, features, ..Shape::default() };
    let mut machine = attach(&rig, Shape { sealed: false, ..shape });
    machine.stop(2).expect("it stops");
    let Machine { front_end, guest, rings, .. } = &mut machine;
    let end = rings[2].end() - 4096;
    rings[2].move_available(end - 4);
    rings[2].start(front_end, guest, features).expect("it starts anew");
    machine.ask(2, &Ask::Read(0, 4096)).expect("room");
    // The disk has all that fits for half a second: the first ring waits, and then the second too.
    let data = vec![7; 1 << 20];
    for (ring, slots) in [(0, 8), (1, 1)] {
        for slot in 0..slots {
            machine.ask(ring, &Ask::Write(slot * 2048, &data)).expect("room");
        }
        thread::sleep(Duration::from_millis(50));
    }
    rustix::fs::ftruncate(machine.guest.file(), end).expect("nobody forbids it");
    let Machine { rings, guest, .. } = &mut machine;
    rings[2].run_ahead(guest, 1).expect("it kicks");
    until_cut_off(&mut machine);
    drop(machine);
    rig.until_empty();
    check_neighbours(&rig);
    rig.end();
}

#[test]
fn ring_whose_index_runs_ahead_is_broken_alone_and_can_be_mended() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape { queues: 2, ..Shape::default() });
    machine.do_one(&Ask::Write(0, &[1; SECTOR])).expect("done");
    let Machine { rings, guest, .. } = &mut machine;
    rings[0].run_ahead(guest, 1000).expect("it kicks");
    until_broken(&machine.rings[0]);
    machine.ask(1, &Ask::Read(0, 512)).expect("room");
    let done = all_done(&mut machine, 1, 1);
    assert_eq!(machine.data(1, &done[0]), [1; SECTOR], "the other ring goes on");
    assert_eq!(machine.stop(0).expect("it is answered"), 1, "behind what it had done");
    machine.rings[0].forget(&machine.guest);
    let Machine { front_end, guest, rings, .. } = &mut machine;
    rings[0].start(front_end, guest, Features::all()).expect("it starts anew");
    assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("done"), (OK, vec![1; SECTOR]));
    check_neighbours(&rig);
    rig.end();
}

/// What reads it would be killed; the server is not.
#[test]
fn memory_that_is_taken_away_ends_its_device_alone() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape { sealed: false, ..Shape::default() });
    machine.do_one(&Ask::Write(0, &[1; SECTOR])).expect("done");
    rustix::fs::ftruncate(machine.guest.file(), 0).expect("nobody forbids it");
    machine.rings[0].kick().expect("it counts");
    until_cut_off(&mut machine);
    drop(machine);
    rig.until_empty();
    check_neighbours(&rig);
    let mut next = attach(&rig, Shape::default());
    assert_eq!(next.do_one(&Ask::Read(0, 512)).expect("done"), (OK, vec![1; SECTOR]));
    rig.end();
}

/// What is read has no place to go to: by the kernel, which says so, or by a copy of ours.
#[test]
fn place_of_a_read_that_is_taken_away_ends_its_device_alone() {
    for cache in ["page", "direct"] {
        let rig = one_file(cache);
        let mut machine = attach(&rig, Shape { sealed: false, ..Shape::default() });
        let [.., slots] = machine.rings[0].places();
        let end_of_first_header = slots + 4096;
        rustix::fs::ftruncate(machine.guest.file(), end_of_first_header).expect("it may be");
        machine.ask(0, &Ask::Read(0, 4096)).expect("room");
        until_cut_off(&mut machine);
        drop(machine);
        rig.until_empty();
        check_neighbours(&rig);
        rig.end();
    }
}

#[test]
fn memory_that_can_be_taken_away_is_refused_where_it_has_to_be_sealed() {
    let rig = Rig::start(&format!("{ONE}vhost_user_memory = \"sealed\"\n"));
    let path = rig.dir.path().join("gold.vhost");
    let unsealed = Machine::attach(&path, Shape { sealed: false, ..Shape::default() });
    let said = format!("{:#}", unsealed.expect_err("it is refused"));
    assert!(said.contains("message 5 was refused"), "{said}");
    rig.until_empty();
    assert_eq!(attach(&rig, Shape::default()).do_one(&Ask::Flush).expect("done").0, OK);
    rig.end();
}

#[test]
fn front_end_that_says_what_nobody_understands_is_cut_off() {
    let rig = Rig::start(ONE);
    let headers = [[99, 1, 0], [1, 2, 0], [5, 1, 1 << 20], [12, 1, 8]];
    for header in headers {
        let mut machine = attach(&rig, Shape::default());
        let bytes = [header.map(u32::to_ne_bytes).concat(), vec![0; 8]].concat();
        machine.front_end.send_bytes(&bytes, &[]).expect("the socket takes it");
        until_cut_off(&mut machine);
        drop(machine);
        rig.until_empty();
    }
    check_neighbours(&rig);
    rig.end();
}

/// A whole message may come whenever it likes.
#[test]
fn front_end_that_does_not_end_a_message_is_cut_off_after_ten_seconds() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape::default());
    let begun = Instant::now();
    machine.front_end.send_bytes(&request::GET_FEATURES.to_ne_bytes(), &[]).expect("it takes it");
    thread::sleep(Duration::from_secs(5));
    // More of it is no more time.
    machine.front_end.send_bytes(&1_u32.to_ne_bytes(), &[]).expect("it takes it");
    assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("its rings go on").0, OK);
    until_cut_off(&mut machine);
    assert!(begun.elapsed() >= Duration::from_secs(10), "{:?}", begun.elapsed());
    check_neighbours(&rig);
    drop(machine);
    rig.until_empty();
    rig.end();
}

/// It asks and never reads: the server does not hold what it is answered.
#[test]
fn front_end_that_reads_no_reply_is_cut_off() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape::default());
    let asked = [request::GET_CONFIG, 1, 12, 0, 256, 0].map(u32::to_ne_bytes).concat();
    let many = asked.repeat(1000);
    let begun = Instant::now();
    while machine.front_end.send_bytes(&many, &[]).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it takes all");
    }
    check_neighbours(&rig);
    drop(machine);
    rig.until_empty();
    rig.end();
}

/// Each time it breaks its ring, its error signal can be told to nobody, and it starts anew before
/// there is memory: what waits to be told goes with the ring.
#[test]
fn signals_that_are_never_taken_do_not_pile_up() {
    let rig = Rig::start(ONE);
    let mut machine = attach(&rig, Shape::default());
    let mut signals = BTreeSet::new();
    for _ in 0..20 {
        let full = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).expect("it is full");
        signals.insert(eventfd_id(full.as_raw_fd()).expect("it is one"));
        let Machine { front_end, guest, rings, .. } = &mut machine;
        front_end.tell(request::SET_VRING_ERR, &[0; 8], &[&full]).expect("it is obeyed");
        // Both have one open file: who writes to it waits.
        ioctl_fionbio(&full, false).expect("it may");
        rings[0].run_ahead(guest, 1000).expect("it kicks");
        // Nobody can be told.
        thread::sleep(Duration::from_millis(10));
        front_end.tell(request::SET_MEM_TABLE, &[0; 8], &[]).expect("it is obeyed");
        rings[0].forget(guest);
        rings[0].start(front_end, guest, Features::all()).expect("it waits for memory");
        machine.tell_memory().expect("it is obeyed");
        assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("done").0, OK);
    }
    drop(machine);
    rig.until_empty();
    let begun = Instant::now();
    while !eventfds().is_disjoint(&signals) {
        assert!(begun.elapsed() < PATIENCE, "the server keeps some of them");
        thread::sleep(Duration::from_millis(1));
    }
    rig.end();
}

/// The eventfds that this process has open, as the kernel counts them.
fn eventfds() -> BTreeSet<String> {
    let open = fs::read_dir("/proc/self/fd").expect("the process is there");
    let numbers = open.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(eventfd_id).collect()
}

/// The kernel's number of an eventfd; none of another file, or of one that is closed by now.
fn eventfd_id(fd: i32) -> Option<String> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    let line = about.lines().find_map(|line| line.strip_prefix("eventfd-id:"))?;
    Some(line.trim().to_owned())
}
