//! Ways to have the server hold memory.

use crate::arena::{Attack, PROGRAM, disk, modelled};
use crate::client::{CACHE, ILLEGAL, NO_HOLE, READ, WRITE_ZEROES, request, write};
use crate::flood::Flood;
use crate::verdict::Entitled;

/// Nobody, on a disk without attackers: what everything else stands on.
#[test]
fn nobody() {
    Attack {
        name: "nobody",
        config: modelled(16),
        attackers: Vec::new(),
        entitled: Entitled::Part(1.0),
        ceiling: PROGRAM + 32,
    }
    .run();
}

#[test]
fn cache_of_four_gigabytes() {
    let cache = request(0, CACHE, 1, 0, u32::MAX - 0xffff);
    Attack {
        name: "CACHE 4 GiB, 4 connections, unread",
        config: modelled(4096),
        attackers: vec![Flood::unread(4, &cache).attacker()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 64,
    }
    .run();
}

#[test]
fn zeroes_over_the_whole_disk() {
    let zeroes = |flags| request(flags, WRITE_ZEROES, 1, 0, 48 << 20);
    Attack {
        name: "WRITE_ZEROES 48 MiB, 16 connections, unread",
        config: modelled(48),
        attackers: vec![Flood::unread(16, &[zeroes(0), zeroes(NO_HOLE)].concat()).attacker()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 64 + 64,
    }
    .run();
}

#[test]
fn writes_of_a_byte() {
    Attack {
        name: "WRITE 1 byte, 32 connections, unread",
        config: modelled(16),
        attackers: vec![Flood::unread(32, &write(0, 1)).attacker()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 32 + 64,
    }
    .run();
}

/// Each once kept the buffer of 64 KiB that it had come in, which is full of a write that is
/// refused. The attackers' weight is low, so that what they have queued stays.
#[test]
fn writes_of_a_byte_in_large_buffers() {
    let beyond_the_end = write(1 << 40, (64 << 10) - 85);
    Attack {
        name: "WRITE 1 byte, each beside 64 KiB that are refused, 32 connections",
        config: modelled(16) + "weight = 10\n",
        attackers: vec![
            Flood::of(16, &[write(0, 1), beyond_the_end.clone()].concat()).attacker(),
            Flood::of(16, &[write(0, 1), beyond_the_end].concat()).attacker(),
        ],
        entitled: Entitled::Part(100.0 / 110.0),
        ceiling: PROGRAM + 32 + 64,
    }
    .run();
}

/// Where the disk is fast, replies pile up: each of 17 bytes once held ten times as much.
#[test]
fn reads_of_a_byte_of_memory() {
    let disk = disk("backend = \"memory\"\nsize = \"17M\"");
    Attack {
        name: "READ 1 byte of memory, 32 connections, unread, memory = 32M",
        config: "memory = \"32M\"\n".to_owned() + &disk,
        attackers: vec![Flood::unread(32, &request(0, READ, 1, 1, 1)).attacker()],
        entitled: Entitled::AsBesideEqual,
        ceiling: PROGRAM + 32,
    }
    .run();
}

#[test]
fn reads_of_a_byte() {
    Attack {
        name: "READ 1 byte, 32 connections, unread",
        config: modelled(16),
        attackers: vec![Flood::unread(32, &request(0, READ, 1, 1, 1)).attacker()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 32 + 64,
    }
    .run();
}

#[test]
fn large_reads() {
    large("READ 32 MiB, 16 connections, unread", &request(0, READ, 1, 0, 32 << 20), 1);
}

#[test]
fn large_writes() {
    large("WRITE 32 MiB, 16 connections, unread", &write(0, 32 << 20), 1);
}

/// All threads together hold what one may.
#[test]
fn large_reads_and_writes_on_two_connection_threads() {
    let both = [request(0, READ, 1, 0, 32 << 20), write(0, 32 << 20)].concat();
    large("READ and WRITE 32 MiB, 16 connections on two threads, unread", &both, 2);
}

fn large(name: &'static str, commands: &[u8], threads: usize) {
    Attack {
        name,
        config: format!("threads = {threads}\n{}", modelled(32)),
        attackers: vec![Flood::unread(16, commands).attacker()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 48 + 64,
    }
    .run();
}

#[test]
fn illegal_commands_unread() {
    Attack {
        name: "illegal commands, 16 connections, unread",
        config: modelled(16),
        attackers: vec![Flood::unread(16, &request(0, ILLEGAL, 1, 0, 0)).attacker()],
        entitled: Entitled::Part(1.0),
        ceiling: PROGRAM + 32 + 64,
    }
    .run();
}
