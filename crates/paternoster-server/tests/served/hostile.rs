//! Illegal traffic: the protocol's error or a closed connection, and no trouble for anybody else.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use fastrand::Rng;

use crate::support::{Client, Rig, TWO_TENANTS, header, rest, simple_reply};

const MIB: u32 = 1 << 20;
const EPERM: u32 = 1;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

/// Flags, command, offset, length, bytes of payload, and the error that it gets.
type Illegal = (u16, u16, u64, u32, u32, u32);

const ON_ANY: [Illegal; 9] = [
    (0, 99, 0, 0, 0, EINVAL),              // an unknown command
    (0x80, 0, 0, 512, 0, EINVAL),          // an unknown flag
    (4, 0, 0, 512, 0, EINVAL),             // DF without structured replies
    (0, 0, 8 << 20, 1, 0, EINVAL),         // a read behind the end
    (0, 0, u64::MAX, u32::MAX, 0, EINVAL), // a read whose end overflows
    (0, 0, 0, 33 << 20, 0, EINVAL),        // a read of more than 32 MiB
    (0, 3, 0, 1, 0, EINVAL),               // a flush of something
    (0, 7, 0, 512, 0, EINVAL),             // a block status without its context
    (0, 0, (8 << 20) - 1, 2, 0, EINVAL),   // a read across the end
];

const ON_WRITABLE: [Illegal; 6] = [
    (0, 1, (8 << 20) - 1, 2, 2, ENOSPC),   // a write across the end
    (0, 1, u64::MAX, 10, 10, ENOSPC),      // a write whose end overflows
    (0, 1, 0, 33 << 20, 33 << 20, EINVAL), // a write of more than 32 MiB
    (16, 1, 0, 512, 512, EINVAL),          // a flag of another command
    (0, 6, 8 << 20, 512, 0, ENOSPC),       // zeroes behind the end
    (0, 4, 8 << 20, 512, 0, EINVAL),       // a trim behind the end
];

const ON_READ_ONLY: [Illegal; 3] =
    [(0, 1, 0, 512, 512, EPERM), (0, 4, 0, 512, 0, EPERM), (0, 6, 0, 512, 0, EPERM)];

fn refused_and_served_on(rig: &Rig, export: &str, cases: &[Illegal], other: &mut Client) {
    let mut stream = Client::enter(rig.connect(), export, false).stream;
    for (cookie, &(flags, code, offset, len, payload, error)) in (0..).zip(cases) {
        stream.write_all(&header(flags, code, cookie, offset, len)).expect("taken");
        stream.write_all(&vec![7; payload as usize]).expect("taken");
        let got = simple_reply(&mut stream, cookie);
        assert_eq!(got, error, "{export}: {flags:#x} {code} {offset} {len}");
        // The next request is understood, and so is anybody else's.
        stream.write_all(&header(0, 0, 1000, 0, 512)).expect("taken");
        assert_eq!(simple_reply(&mut stream, 1000), 0);
        stream.read_exact(&mut [0; 512]).expect("data");
        other.check_served(cookie);
    }
}

#[test]
fn illegal_requests_get_the_errors_of_the_protocol_and_disturb_nobody() {
    let rig = Rig::start(TWO_TENANTS);
    let mut other = rig.client("b");
    refused_and_served_on(&rig, "a", &ON_ANY, &mut other);
    refused_and_served_on(&rig, "a", &ON_WRITABLE, &mut other);
    refused_and_served_on(&rig, "r", &ON_READ_ONLY, &mut other);
    assert_eq!(rig.client("a").read(0, 8 * MIB), vec![0; 8 << 20], "nothing was written");
    drop(other);
    rig.until_empty();
    rig.end();
}

#[test]
fn request_without_its_magic_closes_the_connection() {
    let rig = Rig::start(TWO_TENANTS);
    let mut other = rig.client("b");
    let mut stream = Client::enter(rig.connect(), "a", false).stream;
    let mut bytes = header(0, 0, 1, 0, 512);
    bytes[0] ^= 1;
    stream.write_all(&bytes).expect("taken");
    assert_eq!(rest(&mut stream), [0; 0]);
    other.check_served(1);
    drop(other);
    rig.until_empty();
    rig.end();
}

/// How long it is.
fn short(data: &[u8]) -> u32 {
    u32::try_from(data.len()).expect("it is short")
}

/// Sends it all and reads whatever comes, until either side has had enough.
fn throw(stream: &mut UnixStream, bytes: &[u8]) {
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
}

#[test]
fn random_bytes_in_the_option_phase_disturb_nobody() {
    let rig = Rig::start(TWO_TENANTS);
    let mut other = rig.client("b");
    for seed in 0..150 {
        let mut random = Rng::with_seed(seed);
        let mut bytes = Vec::new();
        if seed % 3 > 0 {
            bytes.extend(3u32.to_be_bytes());
        }
        for _ in 0..random.usize(1..40) {
            let data: Vec<u8> = (0..random.usize(..64)).map(|_| random.u8(..)).collect();
            if seed % 3 == 2 {
                // An option with a plausible head.
                bytes.extend(b"IHAVEOPT");
                bytes.extend(random.u32(..13).to_be_bytes());
                let len = if random.u8(..8) == 0 { random.u32(..) } else { short(&data) };
                bytes.extend(len.to_be_bytes());
            }
            bytes.extend(data);
        }
        throw(&mut rig.connect(), &bytes);
        if seed % 10 == 0 {
            other.check_served(seed);
        }
    }
    drop(other);
    rig.until_empty();
    rig.end();
}

#[test]
fn random_requests_disturb_nobody() {
    let rig = Rig::start(TWO_TENANTS);
    let mut other = rig.client("b");
    other.write(0, &[9; 4096]);
    for seed in 0..150 {
        let mut random = Rng::with_seed(seed);
        let structured = random.bool();
        let mut stream = Client::enter(rig.connect(), "a", structured).stream;
        let mut bytes = Vec::new();
        for cookie in 0..random.u64(1..30) {
            let offset = match random.u8(..3) {
                0 => random.u64(..),
                1 => (8 << 20) - random.u64(..9000),
                _ => random.u64(..8 << 20),
            };
            let len = if random.u8(..6) == 0 { random.u32(..) } else { random.u32(..9000) };
            let flags = if random.bool() { 0 } else { random.u16(..64) };
            bytes.extend(header(flags, random.u16(..10), cookie, offset, len));
            bytes.extend((0..random.usize(..3) * 4096).map(|_| random.u8(..)));
        }
        throw(&mut stream, &bytes);
        if seed % 10 == 0 {
            assert_eq!(other.read(0, 4096), [9; 4096][..], "seed {seed}");
            other.check_served(seed);
        }
    }
    drop(other);
    rig.until_empty();
    rig.end();
}
