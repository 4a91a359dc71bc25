//! A ring of io_uring, as only its own file can look at it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use std::sync::Arc;

use super::*;
use crate::clock::MonotonicClock;
use crate::ring::{Engine, Ring};

const MILLISECOND: u64 = 1_000_000;

/// What completes next on a ring that waits so.
fn next(ring: &mut Ring<u32>) -> u32 {
    let mut completions = Vec::new();
    while completions.is_empty() {
        ring.wait(None).expect("the ring works");
        ring.take_completions(&mut completions);
    }
    assert_eq!(completions.len(), 1);
    completions[0].token
}

fn ring(uring: Uring<u32>) -> Ring<u32> {
    Ring { engine: Engine::IoUring(Box::new(uring)), spare: SpareBuffers::default() }
}

#[test]
fn who_waits_for_a_signal_does_not_wait_for_bytes_of_a_file() {
    let mut ring = ring(Uring::new().expect("a ring"));
    let mut cached = tempfile::tempfile().expect("a file");
    cached.write_all(&[7; 4096]).expect("room");
    let file: Fd = Arc::new(cached.into());
    let signalled: Fd = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd"));
    ring.read(1, &file, 0, &[4096]);
    ring.write(2, &file, 0, Buffers::from_elem(Bytes::from(vec![7; 4096]), 1));
    ring.signal(3, &signalled);
    let mut completions = Vec::new();
    while completions.len() < 3 {
        ring.wait(None).expect("the ring works");
        ring.take_completions(&mut completions);
    }
    assert_eq!(completions[0].token, 3, "{completions:?}");
}

#[test]
fn whoever_gets_hold_of_a_ring_cannot_open_a_file_or_connect_by_it() {
    let here = types::Fd(rustix::fs::CWD.as_raw_fd());
    let open = opcode::OpenAt::new(here, c"/dev/null".as_ptr()).build();
    let unlink = opcode::UnlinkAt::new(here, c"nothing".as_ptr()).build();
    let socket = opcode::Socket::new(libc::AF_UNIX, libc::SOCK_STREAM, 0).build();
    let mut uring = Uring::new().expect("a ring");
    let (mut completions, mut spare) = (Vec::new(), SpareBuffers::default());
    for entry in [open, unlink, socket, opcode::Nop::new().build()] {
        uring.push(entry, Some(()), Held::Nothing, None, None);
        uring.submit_and_wait().expect("it is taken");
        uring.take_completions(|()| None, &mut spare, &mut completions);
    }
    let results: Vec<_> = completions.into_iter().map(|one| one.result).collect();
    assert_eq!(results, [Err(Errno::ACCESS), Err(Errno::ACCESS), Err(Errno::ACCESS), Ok(0)]);
    let probed = uring.kernel.submitter().register_probe(&mut io_uring::Probe::new());
    let denied = Errno::ACCESS.raw_os_error();
    assert_eq!(probed.expect_err("it is refused").raw_os_error(), Some(denied));
}

/// Both ways have to work where only one would be chosen.
#[test]
fn whatever_completes_ends_a_wait_in_the_ring_and_one_on_the_event() {
    let in_ring = Uring::new().expect("a ring");
    let on_event = Uring::that_waits(Waiting::on_event).expect("a ring");
    for mut ring in [in_ring, on_event].map(ring) {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let ours: Fd = Arc::new(OwnedFd::from(ours));
        let file: Fd = Arc::new(tempfile::tempfile().expect("a file").into());

        ring.nop(1);
        assert_eq!(next(&mut ring), 1);
        ring.write(2, &file, 0, Buffers::from_elem(Bytes::from(vec![7; 4096]), 1));
        assert_eq!(next(&mut ring), 2);
        ring.sync(3, &file, None);
        assert_eq!(next(&mut ring), 3);
        ring.poll_readable(4, &ours);
        let sender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            theirs.write_all(&[7]).expect("taken");
            theirs
        });
        assert_eq!(next(&mut ring), 4);
        ring.receive(5, &ours, BytesMut::with_capacity(10));
        assert_eq!(next(&mut ring), 5);
        let until = MonotonicClock::monotonic_now() + 20 * MILLISECOND;
        while MonotonicClock::monotonic_now() < until {
            ring.wait(Some(until)).expect("the ring works");
        }
        drop(sender);
    }
}
