//! Random byte ranges from eight connections, disjoint but sharing sectors, against a model.

use std::fs;
use std::thread;

use bytes::Bytes;
use fastrand::Rng;
use paternoster_nbd::Command;

use crate::support::{Client, Rig};

const CONNECTIONS: usize = 8;
const SIZE: usize = 1 << 20;
const DEPTH: usize = 16;
const ROUNDS: usize = 4;

/// Cuts the disk into ranges of 1 to 9000 bytes.
fn cut(random: &mut Rng) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < SIZE {
        let end = (start + random.usize(1..=9000)).min(SIZE);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Writes its ranges, many at once, in an order of its own; each with its own bytes.
fn write_all(client: &mut Client, mut ranges: Vec<(std::ops::Range<usize>, Bytes)>, seed: u64) {
    Rng::with_seed(seed).shuffle(&mut ranges);
    let mut in_flight = 0;
    for (range, data) in ranges {
        if in_flight == DEPTH {
            client.reply().result.expect("written");
            in_flight -= 1;
        }
        let fua = range.start % 13 == 0;
        client.ask(Command::Write { offset: range.start as u64, data, fua });
        in_flight += 1;
    }
    for _ in 0..in_flight {
        client.reply().result.expect("written");
    }
}

/// Runs the rounds; the disk as it should be, which it was each time.
fn check(rig: &Rig, seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let mut model = vec![0; SIZE];
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| rig.client("e")).collect();
    for round in 0..ROUNDS {
        let mut shares = vec![Vec::new(); CONNECTIONS];
        for (index, range) in cut(&mut random).into_iter().enumerate() {
            // Runs of neighbours on one connection, so that some merge.
            random.fill(&mut model[range.clone()]);
            let data = Bytes::copy_from_slice(&model[range.clone()]);
            shares[index / 3 % CONNECTIONS].push((range, data));
        }
        thread::scope(|scope| {
            for (number, (client, share)) in (0..).zip(clients.iter_mut().zip(shares)) {
                scope.spawn(move || write_all(client, share, seed + number));
            }
        });
        let len = u32::try_from(SIZE).expect("a small disk");
        let found = clients[round % CONNECTIONS].read(0, len);
        let differs = (0..SIZE).find(|&at| found[at] != model[at]);
        assert_eq!(differs, None, "seed {seed}, round {round}: first byte that differs");
        for range in cut(&mut random) {
            let len = u32::try_from(range.len()).expect("a short range");
            assert_eq!(clients[0].read(range.start as u64, len), model[range]);
        }
    }
    model
}

#[test]
fn byte_ranges_that_share_sectors_keep_every_byte_in_memory() {
    let disk = "[disks.d]\nbackend = \"memory\"\nsize = 1048576\n";
    for (seed, scheduler) in (0..).zip(["none", "mq-deadline", "kyber", "cfq", "bfq"]) {
        let rig = Rig::start(&format!(
            "{disk}scheduler = \"{scheduler}\"\ndepth = 2\n[exports.e]\ndisk = \"d\"\n"
        ));
        check(&rig, seed);
        rig.end();
    }
}

#[test]
fn byte_ranges_that_share_sectors_keep_every_byte_in_a_file() {
    for (seed, scheduler) in (10..).zip(["none", "mq-deadline", "kyber", "cfq", "bfq"]) {
        let more = format!("scheduler = \"{scheduler}\"\ndepth = 2\n[exports.e]\ndisk = \"d\"\n");
        let rig = Rig::with_file(SIZE as u64, &more);
        let model = check(&rig, seed);
        let disk = fs::read(rig.dir.path().join("disk.img")).expect("the disk");
        assert!(disk == model, "seed {seed}: the file has what clients read");
        rig.end();
    }
}
