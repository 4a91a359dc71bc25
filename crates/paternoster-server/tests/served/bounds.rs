//! What a tenant's clients may take: connections, memory, and how long they may sit on it.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use paternoster_nbd::proto::rep;

use crate::support::{Client, PATIENCE, Rig, header, refusal, rest, simple_reply};

const MIB: u32 = 1 << 20;

const WRITE: u16 = 1;
const READ: u16 = 0;

/// Three exports of two tenants, `a` and `a2` of one.
fn rig(bounds: &str) -> Rig {
    Rig::start(&format!(
        "{bounds}\n[disks.d]\nbackend = \"memory\"\nsize = \"96M\"\n\
         [groups.\"/a\"]\nconnections = 3\n\
         [exports.a]\ndisk = \"d\"\nsize = \"32M\"\ngroup = \"/a\"\n\
         [exports.a2]\ndisk = \"d\"\nsize = \"32M\"\noffset = \"32M\"\ngroup = \"/a\"\n\
         [exports.b]\ndisk = \"d\"\nsize = \"32M\"\noffset = \"64M\"\n"
    ))
}

#[test]
fn tenant_has_as_many_connections_as_it_may_and_is_told_so() {
    let rig = rig("");
    let mut clients: Vec<_> = ["a", "a2", "a"].map(|export| rig.client(export)).into();
    for export in ["a", "a2"] {
        let (code, why) = refusal(rig.connect(), export);
        assert_eq!(code, rep::ERR_POLICY);
        assert_eq!(why, "tenant \"/a\" has 3 connections, which is all that it may have");
    }
    rig.client("b").check_served(1);
    drop(clients.pop());
    let begin = Instant::now();
    while rig.stat().disks[0].connections > 2 {
        assert!(begin.elapsed() < PATIENCE, "the client is gone");
    }
    rig.client("a").check_served(2);
    drop(clients);
    rig.end();
}

/// Begins a write of that many bytes, of which only the first half comes.
fn half_a_write(client: &mut Client, len: u32) {
    client.stream.write_all(&header(0, WRITE, 7, 0, len)).expect("taken");
    client.stream.write_all(&vec![9; len as usize / 2]).expect("taken");
}

/// Two of them stopped all other clients of their tenant for ever.
#[test]
fn stalled_write_leaves_memory_to_short_commands_and_is_closed_when_others_need_its_memory() {
    let rig = rig("memory = \"40M\"\npayload_timeout = \"1s\"");
    let [mut stalled, mut small, mut large] =
        ["a", "a2", "a2"].map(|export| Client::enter(rig.connect(), export, false));
    half_a_write(&mut stalled, 30 * MIB);
    for number in 0..100 {
        small.check_served(number);
    }
    let begin = Instant::now();
    large.stream.write_all(&header(0, WRITE, 8, 0, 20 * MIB)).expect("taken");
    // It is not received before there is memory for it.
    large.stream.write_all(&vec![8; 20 << 20]).expect("taken");
    assert_eq!(simple_reply(&mut large.stream, 8), 0);
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(500), "it waited: {took:?}");
    assert_eq!(rest(&mut stalled.stream), [0; 0], "it was closed");
    small.check_served(101);
    drop((small, large));
    rig.until_empty();
    rig.end();
}

/// A stopped virtual machine does not lose its disk, while others of its tenant have all that they
/// ask for: short commands, and long ones for which there is memory.
#[test]
fn stalled_write_that_nobody_waits_for_may_take_its_time() {
    let rig = rig("memory = \"40M\"\npayload_timeout = \"1s\"");
    let mut stalled = Client::enter(rig.connect(), "a", false);
    half_a_write(&mut stalled, 20 * MIB);
    let [mut small, mut large] = [rig.client("a2"), rig.client("a2")];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1_600) {
        small.check_served(1);
        for _ in 0..10 {
            large.read(0, MIB);
        }
    }
    stalled.stream.write_all(&vec![9; 10 << 20]).expect("taken");
    assert_eq!(simple_reply(&mut stalled.stream, 7), 0);
    drop((stalled, small, large));
    rig.until_empty();
    rig.end();
}

#[test]
fn clients_that_wait_for_memory_and_hang_up_are_let_go() {
    let rig = rig("memory = \"40M\"\n");
    let mut holder = Client::enter(rig.connect(), "a", false);
    half_a_write(&mut holder, 30 * MIB);
    // Two more do not fit.
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let mut client = Client::enter(rig.connect(), "a2", false);
            client.stream.write_all(&header(0, WRITE, 9, 0, 30 * MIB)).expect("taken");
            client
        })
        .collect();
    drop(waiting);
    let begin = Instant::now();
    while rig.stat().disks[0].connections > 1 {
        assert!(begin.elapsed() < PATIENCE, "they are gone");
    }
    holder.stream.write_all(&vec![9; 15 << 20]).expect("taken");
    assert_eq!(simple_reply(&mut holder.stream, 7), 0);
    rig.end();
}

/// Reads whose replies are not taken hold memory too.
#[test]
fn replies_that_are_not_read_are_given_up_when_others_need_the_memory() {
    let rig = rig("memory = \"40M\"\npayload_timeout = \"1s\"");
    let mut lazy = Client::enter(rig.connect(), "a", false);
    lazy.stream.write_all(&header(0, READ, 1, 0, 30 * MIB)).expect("taken");
    assert_eq!(simple_reply(&mut lazy.stream, 1), 0, "it has the memory first");
    let mut other = Client::enter(rig.connect(), "a2", false);
    other.stream.write_all(&header(0, READ, 2, 0, 20 * MIB)).expect("taken");
    assert_eq!(simple_reply(&mut other.stream, 2), 0);
    other.stream.read_exact(&mut vec![0; 20 << 20]).expect("data");
    let read = rest(&mut lazy.stream);
    assert!(read.len() < 30 << 20, "it was cut off: {} bytes", read.len());
    drop(other);
    rig.until_empty();
    rig.end();
}

/// It was: whatever a client sent counted for what it did not read.
#[test]
fn to_send_a_byte_now_and_then_is_no_way_to_keep_replies_unread() {
    let rig = rig("memory = \"40M\"\npayload_timeout = \"1s\"");
    let mut lazy = Client::enter(rig.connect(), "a", false);
    lazy.stream.write_all(&header(0, READ, 1, 0, 30 * MIB)).expect("taken");
    assert_eq!(simple_reply(&mut lazy.stream, 1), 0, "it has the memory first");
    let mut other = Client::enter(rig.connect(), "a2", false);
    other.stream.write_all(&header(0, READ, 2, 0, 20 * MIB)).expect("taken");
    let (begin, stream) = (Instant::now(), lazy.stream.try_clone().expect("a descriptor"));
    let drip = std::thread::spawn(move || {
        let rubbish = header(0, READ, 3, 0, 1);
        let sent = rubbish.iter().take_while(|&&byte| {
            std::thread::sleep(Duration::from_millis(300));
            (&stream).write_all(&[byte]).is_ok()
        });
        sent.count()
    });
    assert_eq!(simple_reply(&mut other.stream, 2), 0);
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    other.stream.read_exact(&mut vec![0; 20 << 20]).expect("data");
    assert!(drip.join().expect("no panic") < 28, "it was cut off");
    drop((lazy, other));
    rig.until_empty();
    rig.end();
}

#[test]
fn clients_that_wait_for_memory_do_not_hold_the_end() {
    let rig = rig("memory = \"40M\"\n");
    let mut clients: Vec<_> =
        ["a", "a2", "a2"].map(|export| Client::enter(rig.connect(), export, false)).into();
    half_a_write(&mut clients[0], 30 * MIB);
    for client in &mut clients[1..] {
        client.stream.write_all(&header(0, READ, 9, 0, 30 * MIB)).expect("taken");
    }
    // On each thread what was sent before is taken in before: what comes later would be refused.
    let mut others = [rig.client("b"), rig.client("b")];
    for other in &mut others {
        other.check_served(1);
    }
    let took = rig.end();
    assert!(took < Duration::from_secs(3), "nothing is in flight, no reply unsent: {took:?}");
    for mut client in clients {
        assert_eq!(rest(&mut client.stream), [0; 0], "it is closed, not answered by half");
    }
}
