//! Other mixes: two attackers, groups below groups, TCP, and commands by chance.

use fastrand::Rng;

use crate::arena::{Attack, PROGRAM, modelled, two_tenants};
use crate::client::{
    BLOCK_STATUS, CACHE, FLUSH, FUA, ILLEGAL, NO_HOLE, READ, TRIM, WRITE, WRITE_ZEROES, request,
    write,
};
use crate::flood::Flood;
use crate::verdict::Entitled;

#[test]
fn two_kinds_of_attackers() {
    let status = request(0, BLOCK_STATUS, 1, 0, 32 << 20);
    Attack {
        name: "CACHE, WRITE 1 byte unread; another tenant's BLOCK_STATUS",
        config: two_tenants(),
        attackers: vec![
            Flood::of(8, &request(0, CACHE, 1, 0, 32 << 20)).attacker(),
            Flood::unread(16, &write(5, 1)).attacker(),
            Flood::of_block_status(100, &status).on("worse").attacker(),
        ],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 80 + 64 + 64,
    }
    .run();
}

#[test]
fn attackers_in_groups_below_groups() {
    let nested = two_tenants() + "group = \"/evil/a/b/c\"\n";
    let zeroes = request(NO_HOLE, WRITE_ZEROES, 1, 0, 32 << 20);
    Attack {
        name: "WRITE_ZEROES of /evil, FLUSH of /evil/a/b/c",
        config: nested,
        attackers: vec![
            Flood::of(16, &zeroes).attacker(),
            Flood::of(200, &request(0, FLUSH, 1, 0, 0)).on("worse").attacker(),
        ],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 80 + 64 + 64,
    }
    .run();
}

#[test]
fn over_tcp() {
    Attack {
        name: "WRITE 1 byte unread, CACHE and illegal commands, over TCP",
        config: modelled(32),
        attackers: vec![
            Flood::unread(16, &write(5, 1)).over_tcp().attacker(),
            Flood::of(8, &request(0, CACHE, 1, 0, 32 << 20)).over_tcp().attacker(),
            Flood::of(32, &request(0, ILLEGAL, 1, 0, 0)).over_tcp().attacker(),
        ],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 48 + 64,
    }
    .run();
}

/// Commands of all kinds and lengths, most of them legal.
fn by_chance(seed: u64, count: u32) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let mut commands = Vec::new();
    for _ in 0..count {
        let code = random.choice([READ, WRITE, FLUSH, TRIM, CACHE, WRITE_ZEROES, ILLEGAL]);
        let code = code.expect("there are some");
        let flags = random.choice([0, 0, 0, FUA, NO_HOLE]).expect("there are some");
        let len = 1 << random.u32(0..25);
        let offset = random.u64(..(33 << 20) - u64::from(len));
        commands.extend(request(flags, code, 1, offset, len));
        if code == WRITE {
            commands.resize(commands.len() + len as usize, 3);
        }
    }
    commands
}

#[test]
fn commands_by_chance() {
    let seed = 20_260;
    Attack {
        name: "commands by chance, 32 connections, half of them unread",
        config: two_tenants(),
        attackers: vec![
            Flood::of(16, &by_chance(seed, 200)).on("worse").attacker(),
            Flood::unread(16, &by_chance(seed + 1, 200)).attacker(),
        ],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 80 + 64 + 64,
    }
    .run();
}
