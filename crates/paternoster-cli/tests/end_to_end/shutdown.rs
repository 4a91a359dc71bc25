//! SIGTERM: what is promised to clients, to the disk and to whoever waits for the exit.
//! `restart.rs` has other people's clients connect again.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::stat::stat;
use crate::support::{Place, Served, check_found, eventually, temp_dir, tool_command};
use crate::wire::{Wire, address, request};

const MIB: u64 = 1 << 20;

/// Bytes of a write.
const BLOCK: usize = 4096;

/// Writes that a client has in flight.
const DEPTH: u64 = 16;

/// Blocks of a client's part of the disk.
const BLOCKS: usize = 256;

/// A client that writes one block after the other, each with its own number in it, until the
/// server ends: how many were acknowledged, and which were refused by ESHUTDOWN.
struct Writer {
    wire: Wire,
    /// Where its own part of the disk starts.
    base: u64,
}

#[derive(Default)]
struct Acknowledged {
    /// By block, the highest number that was acknowledged there.
    newest: Vec<u64>,
    refused: u64,
    done: u64,
}

/// The content of write `number`.
fn content(number: u64) -> Vec<u8> {
    number.to_be_bytes().repeat(BLOCK / 8)
}

/// The block that write `number` goes to.
fn block_of(number: u64) -> usize {
    usize::try_from(number).expect("a small number") % BLOCKS
}

impl Writer {
    fn ask(&mut self, number: u64) -> bool {
        let offset = self.base + (block_of(number) * BLOCK) as u64;
        let len = u32::try_from(BLOCK).expect("a block is small");
        let header = request(0, 1, number, offset, len);
        self.wire.try_send(&[header, content(number)].concat())
    }

    /// Writes until the connection ends. A block is written again only when the last write to it
    /// was answered, as there are more blocks than writes in flight.
    fn run(mut self, started: &mpsc::Sender<()>) -> Acknowledged {
        let mut got = Acknowledged { newest: vec![0; BLOCKS], ..Default::default() };
        let mut next = 1;
        while next <= DEPTH && self.ask(next) {
            next += 1;
        }
        // Replies come in any order: block by block the order is that of the numbers.
        while let Some(reply) = self.wire.try_take::<16>() {
            let error = u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]]);
            let number = u64::from_be_bytes(reply[8..].try_into().expect("eight bytes"));
            match error {
                0 => {
                    let newest = &mut got.newest[block_of(number)];
                    *newest = number.max(*newest);
                    got.done += 1;
                    if got.done == 200 {
                        started.send(()).expect("the test waits");
                    }
                }
                108 => got.refused += 1,
                other => panic!("error {other}"),
            }
            // What cannot be sent any more will not be answered either.
            let _ = self.ask(next);
            next += 1;
        }
        got
    }
}

/// The key of a file that says where clients connect.
fn listen(place: Place) -> &'static str {
    match place {
        Place::Unix => "unix = \"nbd.sock\"",
        Place::Tcp => "tcp = \"127.0.0.1:0\"",
    }
}

/// Serves an empty file with four requests in the device at once, from a configuration.
fn serve(place: Place, bytes: u64, more: &str) -> Served {
    let dir = temp_dir();
    let disk = File::create(dir.path().join("disk.img")).expect("a disk");
    disk.set_len(bytes).expect("room for it");
    let toml = format!(
        "{}\n{more}\n[disks.d]\npath = \"disk.img\"\ndepth = 4\n\
         [exports.disk]\ndisk = \"d\"\n",
        listen(place)
    );
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    Served::start(dir, &["c.toml"], 1)
}

#[test]
fn sigterm_keeps_every_acknowledged_write_and_leaves_the_others_unanswered_or_refuses_them() {
    const CLIENTS: u64 = 8;
    for (place, more, refuses) in [
        (Place::Unix, "", false),
        (Place::Tcp, "threads = 2", false),
        (Place::Unix, "at_stop = \"refuse\"", true),
        (Place::Tcp, "at_stop = \"refuse\"\nthreads = 2", true),
    ] {
        let mut served = serve(place, CLIENTS * MIB, more);
        let (started, all) = mpsc::channel();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|index| {
                let wire = Wire::enter(&served, place);
                let writer = Writer { wire, base: index * MIB };
                let started = started.clone();
                thread::spawn(move || writer.run(&started))
            })
            .collect();
        for _ in 0..CLIENTS {
            all.recv_timeout(Duration::from_secs(30)).expect("every client writes");
        }
        served.terminate();
        let (status, took) = served.wait(Duration::from_secs(20));
        assert_eq!(status.code(), Some(0), "{}", served.log());
        assert!(took < Duration::from_secs(8), "{took:?}");
        let disk = File::open(served.path("disk.img")).expect("the disk");
        let mut found = vec![0; BLOCK];
        let mut refused = 0;
        for (index, client) in (0..).zip(clients) {
            let got = client.join().expect("every answer is 0 or ESHUTDOWN");
            refused += got.refused;
            for (block, &newest) in (0..).zip(&got.newest) {
                let at = index * MIB + block * BLOCK as u64;
                disk.read_exact_at(&mut found, at).expect("the disk");
                let number = u64::from_be_bytes(found[..8].try_into().expect("eight bytes"));
                assert!(number >= newest, "block {block}: {number} is there, not {newest}");
                assert!(found == content(number), "block {block} of client {index} is torn");
            }
        }
        assert_eq!(refused > 0, refuses, "{refused} were refused, with {more:?}");
        assert!(!served.path("nbd.sock").exists(), "the socket is gone");
    }
}

/// A client that connects anew must find the next server.
#[test]
fn server_that_ends_answers_what_is_in_the_disk_and_is_reached_by_nobody() {
    for (place, threads) in [(Place::Unix, 1), (Place::Tcp, 2)] {
        let dir = temp_dir();
        let toml = format!(
            "{}\nctl = \"ctl.sock\"\nthreads = {threads}\n[disks.d]\nbackend = \"modelled\"\n\
             size = \"1M\"\nservers = 1\nservice_us = 1_000_000\ndepth = 1\n\
             [exports.disk]\ndisk = \"d\"\n",
            listen(place)
        );
        fs::write(dir.path().join("c.toml"), toml).expect("a file");
        let mut served = Served::start(dir, &["c.toml"], 1);
        let mut wire = Wire::enter(&served, place);
        for cookie in 1..=3 {
            wire.send(&request(0, 0, cookie, (cookie - 1) << 17, 4096));
        }
        eventually("one read is in the device", || stat(&served)["disks"][0]["in_device"] == 1);
        served.terminate();
        eventually("the end has begun", || !served.path("ctl.sock").exists());
        let reached = match place {
            Place::Unix => UnixStream::connect(served.path("nbd.sock")).is_ok(),
            Place::Tcp => TcpStream::connect(address(served.uri())).is_ok(),
        };
        assert!(!reached, "it listens no longer");
        assert!(served.is_running(), "the disk takes a second for the read");
        assert_eq!(wire.simple_reply(1), 0);
        wire.skip(4096);
        assert_eq!(wire.rest(), [0; 0], "the others wait, and get no answer");
        let (status, _) = served.wait(Duration::from_secs(10));
        assert_eq!(status.code(), Some(0), "{}", served.log());
    }
}

#[test]
fn sigterm_while_fio_writes_ends_with_0() {
    let mut served = Served::empty_file(Place::Unix, 16 * MIB, &[]);
    let mut fio = tool_command("fio", served.dir.path());
    fio.args(["--name=load", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=16"]);
    fio.args(["--size=16M", "--numjobs=4", "--time_based", "--runtime=30"]);
    let log = File::create(served.path("fio.log")).expect("a log");
    fio.arg(format!("--uri={}", served.uri())).stdout(log.try_clone().expect("a log")).stderr(log);
    let mut fio = fio.spawn().expect("timeout runs");
    thread::sleep(Duration::from_secs(2));
    if let Some(status) = fio.try_wait().expect("a child") {
        check_found("fio", "fio", status);
        panic!("{}", fs::read_to_string(served.path("fio.log")).unwrap_or_default());
    }
    served.terminate();
    let (status, took) = served.wait(Duration::from_secs(20));
    assert_eq!(status.code(), Some(0), "{}", served.log());
    assert!(took < Duration::from_secs(8), "{took:?}");
    let status = fio.wait().expect("a child");
    check_found("fio", "fio", status);
    assert!(!status.success(), "fio does not connect again");
}

#[test]
fn sigterm_with_idle_clients_ends_at_once() {
    for place in [Place::Unix, Place::Tcp] {
        let mut served = Served::empty_file(place, MIB, &["--ctl", "ctl.sock"]);
        let mut idle: Vec<Wire> = (0..10).map(|_| Wire::enter(&served, place)).collect();
        let mut negotiating = Wire::connect(&served, place);
        // With its greeting it has been accepted.
        let magic: [u8; 8] = negotiating.take();
        assert_eq!(&magic, b"NBDMAGIC");
        served.terminate();
        let (status, took) = served.wait(Duration::from_secs(20));
        assert_eq!(status.code(), Some(0), "{}", served.log());
        assert!(took < Duration::from_secs(2), "{took:?}");
        for wire in &mut idle {
            assert_eq!(wire.rest(), [0; 0]);
        }
        // The rest of the greeting.
        assert_eq!(negotiating.rest().len(), 10);
        for socket in ["nbd.sock", "ctl.sock"] {
            assert!(!served.path(socket).exists(), "{socket} is gone");
        }
    }
}

#[test]
fn sigterm_waits_five_seconds_for_a_client_that_does_not_read() {
    let mut served = Served::empty_file(Place::Unix, 16 * MIB, &[]);
    let mut lazy = Wire::enter(&served, Place::Unix);
    for cookie in 0..64 {
        lazy.send(&request(0, 0, cookie, 0, 1 << 20));
    }
    let _begun: [u8; 16] = lazy.take();
    served.terminate();
    let (status, took) = served.wait(Duration::from_secs(20));
    assert_eq!(status.code(), Some(0), "{}", served.log());
    assert!((4..8).contains(&took.as_secs()), "{took:?}");
}
