//! What several connections see of each other, and what one sees of its own beginning.

use std::fs;
use std::io::{Read as _, Write as _};

use fastrand::Rng;
use paternoster_nbd::Command;
use paternoster_nbd::client::Answer;

use crate::support::{Client, Rig, TWO_TENANTS, any_simple_reply, header, rest, simple_reply};

#[test]
fn flush_on_one_connection_covers_writes_on_all() {
    let rig = Rig::with_file(1 << 20, "[exports.e]\ndisk = \"d\"\n");
    let mut writers: Vec<Client> = (0..4).map(|_| rig.client("e")).collect();
    let mut flusher = rig.client("e");
    for round in 1..=5u8 {
        for (index, writer) in (0..).zip(&mut writers) {
            writer.write(index * 5000, &[round; 5000]);
        }
        let syncs = rig.stat().disks[0].syncs;
        assert_eq!(flusher.call(Command::Flush), Ok(Answer::Done));
        assert!(rig.stat().disks[0].syncs > syncs, "it has begun after the writes");
        let disk = fs::read(rig.dir.path().join("disk.img")).expect("the disk");
        assert!(disk[..20000].iter().all(|&byte| byte == round));
        assert_eq!(flusher.read(0, 20000), vec![round; 20000]);
    }
    rig.end();
}

#[test]
fn simple_and_structured_replies_carry_the_same_data() {
    let rig = Rig::start(TWO_TENANTS);
    let mut structured = Client::enter(rig.connect(), "a", true);
    let mut simple = Client::enter(rig.connect(), "a", false);
    let mut random = Rng::with_seed(1);
    for number in 0..100 {
        let offset = random.u64(..(8 << 20) - 9000);
        let data: Vec<u8> = (0..random.usize(1..9000)).map(|_| random.u8(..)).collect();
        let writer = if number % 2 == 0 { &mut simple } else { &mut structured };
        writer.write(offset, &data);
        let len = u32::try_from(data.len()).expect("a small number");
        assert_eq!(simple.read(offset, len), data);
        assert_eq!(structured.read(offset, len), data);
    }
    rig.end();
}

#[test]
fn commands_in_one_piece_with_the_handshake_are_served() {
    let rig = Rig::start(TWO_TENANTS);
    let mut stream = rig.connect();
    let mut all = 3u32.to_be_bytes().to_vec();
    // GO, with the name "a" and no requests for information.
    all.extend(b"IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01a\0\0");
    all.extend(header(0, 1, 1, 100, 3000));
    all.extend([8; 3000]);
    all.extend(header(0, 3, 2, 0, 0));
    stream.write_all(&all).expect("taken");
    stream.read_exact(&mut [0; 18]).expect("the greeting");
    loop {
        let mut reply = [0; 20];
        stream.read_exact(&mut reply).expect("a reply to GO");
        let len = u32::from_be_bytes([reply[16], reply[17], reply[18], reply[19]]);
        stream.read_exact(&mut vec![0; len as usize]).expect("its data");
        if reply[12..16] == [0, 0, 0, 1] {
            break;
        }
    }
    // A flush covers what was answered before it; of two outstanding either may be answered first.
    let mut replies = [any_simple_reply(&mut stream), any_simple_reply(&mut stream)];
    replies.sort_unstable();
    assert_eq!(replies, [(1, 0), (2, 0)]);
    stream.write_all(&header(0, 0, 3, 100, 3000)).expect("taken");
    assert_eq!(simple_reply(&mut stream, 3), 0);
    let mut data = [0; 3000];
    stream.read_exact(&mut data).expect("data");
    assert_eq!(data, [8; 3000]);
    rig.end();
}

#[test]
fn what_was_asked_before_a_farewell_is_answered() {
    let rig = Rig::start(TWO_TENANTS);
    for half_close in [false, true] {
        let mut stream = Client::enter(rig.connect(), "a", false).stream;
        let mut all = Vec::new();
        for cookie in 0..50 {
            all.extend(header(0, 0, cookie, 0, 10_000));
        }
        if !half_close {
            all.extend(header(0, 2, 50, 0, 0));
        }
        stream.write_all(&all).expect("taken");
        if half_close {
            stream.shutdown(std::net::Shutdown::Write).expect("so");
        }
        assert_eq!(rest(&mut stream).len(), 50 * 10_016);
    }
    rig.until_empty();
    rig.end();
}

#[test]
fn writes_of_every_size_up_to_32_mib_are_read_back() {
    let toml = "[disks.d]\nbackend = \"memory\"\nsize = \"40M\"\n[exports.e]\ndisk = \"d\"\n";
    let rig = Rig::start(toml);
    let mut client = rig.client("e");
    let mut random = Rng::with_seed(9);
    for len in [1, 511, 513, 65_507, 65_508, 65_509, 1 << 20, (32 << 20) - 1, 32 << 20] {
        let mut data = vec![0; len];
        random.fill(&mut data);
        let offset = random.u64(..8 << 20);
        client.write(offset, &data);
        let got = client.read(offset, u32::try_from(len).expect("at most 32 MiB"));
        assert!(got == data[..], "{len} bytes");
    }
    rig.end();
}
