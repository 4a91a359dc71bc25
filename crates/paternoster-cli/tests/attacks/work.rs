//! Ways to keep the owner's thread at work: what costs it more than it costs who asks.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::arena::{Attack, MIB, PROGRAM, disk, modelled};
use crate::client::{BLOCK_STATUS, CACHE, FLUSH, ILLEGAL, READ, request, write};
use crate::flood::Flood;
use crate::verdict::Entitled;

/// What the attackers' connections hold in MiB: 4 KiB of input and 4 KiB of output each.
const A_THOUSAND: u64 = 8;

/// A file of 16 MiB of data, then 32 MiB of which every other block is a hole.
fn fragment(dir: &Path) {
    let file = File::create(dir.join("disk.img")).expect("a file");
    file.write_all_at(&[1; 16 << 10].repeat(1 << 10), 0).expect("room");
    file.set_len(48 * MIB).expect("room");
    for at in (16 * MIB..48 * MIB).step_by(8192) {
        file.write_all_at(&[2; 4096], at).expect("room");
    }
}

/// A file in the page cache is as fast as the owner's thread, half of which is each tenant's.
#[test]
fn block_status_of_a_fragmented_file() {
    let query = request(0, BLOCK_STATUS, 1, 0, 32 << 20);
    let half = || Flood::of_block_status(250, &query).attacker();
    Attack {
        name: "BLOCK_STATUS of a fragmented file, 500 connections",
        config: disk("path = \"disk.img\""),
        attackers: vec![half(), half()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 64 + A_THOUSAND,
    }
    .run_in(fragment);
}

#[test]
fn flushes() {
    let half = || Flood::of(500, &request(0, FLUSH, 1, 0, 0)).attacker();
    Attack {
        name: "FLUSH, 1000 connections",
        config: modelled(16),
        attackers: vec![half(), half()],
        entitled: Entitled::Part(1.0),
        ceiling: PROGRAM + 32 + 64 + A_THOUSAND,
    }
    .run();
}

/// How long a file system keeps a read waiting while it syncs is not the server's doing: what has
/// to be left of the page cache is what the modelled disk can do.
#[test]
fn flushes_of_a_file() {
    let flush = [write(0, 1), request(0, FLUSH, 1, 0, 0).repeat(9)].concat();
    let half = || Flood::of(250, &flush).attacker();
    Attack {
        name: "FLUSH of a file that is written, 500 connections",
        config: disk("path = \"disk.img\""),
        attackers: vec![half(), half()],
        entitled: Entitled::Rate(20_000.0),
        ceiling: PROGRAM + 64 + A_THOUSAND,
    }
    .run_in(fragment);
}

#[test]
fn illegal_commands() {
    let half = || Flood::of(50, &request(0, ILLEGAL, 1, 0, 0)).attacker();
    Attack {
        name: "illegal commands, 100 connections",
        config: modelled(16),
        attackers: vec![half(), half()],
        entitled: Entitled::Part(1.0),
        ceiling: PROGRAM + 32 + 64,
    }
    .run();
}

/// A disk in memory is done with what it is given while the victim's next requests are on their
/// way. So the victim, with 64 outstanding, has them served in each of its turns and then waits for
/// a turn of the attackers, which is cfq's slice of 10 ms: 6,400 a second. It once had none.
#[test]
fn cache_on_a_disk_of_memory() {
    Attack {
        name: "CACHE 400 MiB of memory, 16 connections",
        config: disk("backend = \"memory\"\nsize = \"416M\""),
        attackers: vec![Flood::of(16, &request(0, CACHE, 1, 0, 400 << 20)).attacker()],
        entitled: Entitled::Rate(6400.0),
        ceiling: PROGRAM + 64,
    }
    .run();
}

#[test]
fn reads_of_a_disk_of_memory() {
    Attack {
        name: "READ 32 MiB of memory, 16 connections",
        config: disk("backend = \"memory\"\nsize = \"416M\""),
        attackers: vec![Flood::of(16, &request(0, READ, 1, 0, 32 << 20)).attacker()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 64,
    }
    .run();
}

#[test]
fn large_reads() {
    Attack {
        name: "READ 32 MiB, 16 connections",
        config: modelled(32),
        attackers: vec![Flood::of(16, &request(0, READ, 1, 0, 32 << 20)).attacker()],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 48 + 64,
    }
    .run();
}
