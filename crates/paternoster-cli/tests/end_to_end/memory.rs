//! Memory is bounded by tenant, whatever its clients send and do not read.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::support::{Place, Served};
use crate::wire::{Wire, request};

const MIB: u64 = 1 << 20;

/// The credit of a tenant whose file does not say `memory`.
const CREDIT: u64 = 64 * MIB;
/// What the program itself holds, at most.
const PROGRAM: u64 = 32 * MIB;

/// Bytes of memory that the server has.
fn resident(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// A client of the export `disk` that is entered by name.
fn entered(served: &Served) -> UnixStream {
    let mut stream = UnixStream::connect(served.path("nbd.sock")).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk").expect("taken");
    stream.read_exact(&mut [0; 28]).expect("the greeting and the export");
    stream.set_nonblocking(true).expect("so");
    stream
}

/// Has so many connections send these bytes, so often in all, and read nothing, until the server
/// has taken no more of them for a second. All the while it may hold the tenant's credit twice, as
/// buffers are larger than what is in them, and the program itself.
fn stuff(served: &Served, credit: u64, connections: usize, bytes: &[u8], times: usize) {
    let ceiling = 2 * credit + PROGRAM;
    let mut streams: Vec<_> = (0..connections).map(|_| (entered(served), 0)).collect();
    let end = Instant::now() + Duration::from_secs(30);
    let mut last_taken = Instant::now();
    while last_taken.elapsed() < Duration::from_secs(1) {
        assert!(Instant::now() < end, "the server reads on and on");
        for (stream, sent) in &mut streams {
            if *sent < bytes.len() * times
                && let Ok(taken) = stream.write(&bytes[*sent % bytes.len()..])
            {
                *sent += taken;
                last_taken = Instant::now();
            }
        }
        let held = resident(served);
        assert!(held < ceiling, "{} MiB are held", held / MIB);
        std::thread::yield_now();
    }
}

#[test]
fn refusals_that_nobody_reads_end_the_reading() {
    let served = Served::memory(Place::Unix, MIB);
    stuff(&served, CREDIT, 4, &request(0, 99, 1, 0, 0).repeat(2000), usize::MAX >> 32);
}

#[test]
fn acknowledgements_that_nobody_reads_end_the_reading() {
    let credit = 32 * MIB;
    let served = Served::memory_with("memory = \"32M\"\n", Place::Unix, MIB);
    let write = [request(0, 1, 1, 0, 1), vec![1]].concat();
    stuff(&served, credit, 4, &write.repeat(2000), usize::MAX >> 32);
}

#[test]
fn large_writes_that_never_end_are_not_all_taken_in() {
    let served = Served::memory(Place::Unix, 32 * MIB);
    let len = 32 << 20;
    let mut write = [request(0, 1, 1, 0, len), vec![1; len as usize]].concat();
    write.pop();
    stuff(&served, CREDIT, 16, &write, 1);
}

#[test]
fn large_writes_on_many_connections_at_once_are_all_done() {
    let served = Served::memory(Place::Unix, 32 * MIB);
    let len: u32 = 20 << 20;
    let write = [request(0, 1, 1, 0, len), vec![1; len as usize]].concat();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let mut wire = Wire::enter(&served, Place::Unix);
            let write = &write;
            scope.spawn(move || {
                for _ in 0..2 {
                    wire.send(write);
                    assert_eq!(wire.simple_reply(1), 0);
                }
            });
        }
    });
    served.end();
}
