//! Clients that ask and do not read, or that vanish.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use paternoster_nbd::client::Answer;
use paternoster_nbd::{Command, StatusQuery};

use crate::support::{Rig, TWO_TENANTS, header};

const MIB: u32 = 1 << 20;

#[test]
fn tenant_that_does_not_read_its_replies_does_not_stop_another() {
    let rig = Rig::start(TWO_TENANTS);
    let mut lazy = rig.client("a");
    for _ in 0..64 {
        lazy.ask(Command::Read { offset: 0, len: MIB, df: false });
    }
    let mut other = rig.client("b");
    let begin = Instant::now();
    for number in 0..1000 {
        other.check_served(number);
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let took = rig.end();
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[test]
fn client_that_reads_late_gets_every_reply() {
    let rig = Rig::start(TWO_TENANTS);
    let mut late = rig.client("a");
    late.write(0, &vec![5; 1 << 20]);
    // Twice the credit of a tenant.
    for _ in 0..128 {
        late.ask(Command::Read { offset: 0, len: MIB, df: false });
    }
    let mut other = rig.client("b");
    other.check_served(1);
    for _ in 0..128 {
        let answer = late.reply().result.expect("read");
        let paternoster_nbd::client::Answer::Data(data) = answer else { panic!("{answer:?}") };
        assert!(data.len() == 1 << 20 && data.iter().all(|&byte| byte == 5));
    }
    late.check_served(2);
    rig.end();
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let toml = "[disks.d]\nbackend = \"modelled\"\nsize = \"16M\"\nservers = 1\n\
                service_us = 2000\ndepth = 2\n[exports.a]\ndisk = \"d\"\n";
    let rig = Rig::start(toml);
    for round in 0..6 {
        let mut clients: Vec<_> = (0..4).map(|_| rig.client("a")).collect();
        for client in &mut clients {
            for number in 0..16 {
                let offset = 65536 * number;
                client.ask(match round % 3 {
                    0 => Command::Read { offset, len: 65536, df: false },
                    1 => Command::Write { offset, data: Bytes::from(vec![1; 4096]), fua: false },
                    _ => Command::Flush,
                });
            }
            if round >= 3 {
                // Half of a write is all that comes.
                client.stream.write_all(&header(0, 1, 99, 0, 16 << 20)).expect("taken");
                client.stream.write_all(&vec![0; 100_000]).expect("taken");
            }
        }
        drop(clients);
        rig.until_empty();
    }
    rig.client("a").check_served(1);
    rig.end();
}

/// A tenant's `BLOCK_STATUS` once had the owner look up all of its questions, thousands of extents
/// each, before anybody else had a turn.
#[test]
fn questions_for_many_extents_take_turns_with_another_tenant() {
    const QUESTIONS: u64 = 2000;
    const SIZE: u32 = 8 << 20;
    let toml = "[disks.d]\npath = \"DIR/disk.img\"\n[exports.a]\ndisk = \"d\"\nsize = \"8M\"\n\
                [exports.b]\ndisk = \"d\"\noffset = \"8M\"\n";
    let rig = Rig::prepared(toml, |dir| {
        let disk = File::create(dir.join("disk.img")).expect("a disk");
        disk.set_len(2 * u64::from(SIZE)).expect("room");
        for block in (0..u64::from(SIZE)).step_by(16 << 10) {
            disk.write_all_at(&[1; 4096], block).expect("room");
        }
    });
    let (mut asker, mut other) = (rig.client("a"), rig.client("b"));
    let query = StatusQuery { offset: 0, len: SIZE, one: false };
    let mut questions = Vec::new();
    for _ in 0..QUESTIONS {
        questions.extend_from_slice(&asker.encode(Command::BlockStatus(query)).1);
    }
    let mut writer = asker.stream.try_clone().expect("a descriptor");
    let writing = thread::spawn(move || writer.write_all(&questions).expect("they are taken"));

    for number in 1..=QUESTIONS {
        let reply = asker.reply();
        assert_eq!(reply.cookie, number, "in their order");
        let Ok(Answer::Extents(extents)) = reply.result else { panic!("{:?}", reply.result) };
        assert!((1..=64).contains(&extents.len()), "{} extents", extents.len());
        if number % 100 == 0 {
            other.check_served(number);
        }
    }
    writing.join().expect("all were asked");
    rig.end();
}
