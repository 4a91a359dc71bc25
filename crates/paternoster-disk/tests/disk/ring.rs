//! The ring on real descriptors: what completes, when it wakes up, and that it ends.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use paternoster_disk::{Buffers, Completion, Fd, Ring};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::support::{new_ring, within_a_minute};

/// Turns of a ring until so many operations have completed, in the order of their tokens.
fn completions(ring: &mut Ring<u64>, wanted: usize) -> Vec<Completion<u64>> {
    let mut completed = Vec::new();
    ring.take_completions(&mut completed);
    while completed.len() < wanted {
        ring.wait(None).expect("the ring works");
        ring.take_completions(&mut completed);
    }
    completed.sort_by_key(|completion| completion.token);
    completed
}

fn only(ring: &mut Ring<u64>) -> Completion<u64> {
    let mut completed = completions(ring, 1);
    assert_eq!(completed.len(), 1);
    completed.remove(0)
}

fn socketpair() -> (Fd, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    (Arc::new(OwnedFd::from(ours)), theirs)
}

fn temporary_file() -> Fd {
    Arc::new(OwnedFd::from(tempfile::tempfile().expect("a temporary file")))
}

/// That many buffers, each of one value.
fn valued(count: usize, len: usize) -> Buffers<Bytes> {
    let value = |number: usize| number.to_le_bytes()[0];
    (0..count).map(|number| Bytes::from(vec![value(number); len])).collect()
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |part: i64| u64::try_from(part).expect("after the clock's zero");
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

const MILLISECOND: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MILLISECOND;

#[test]
fn what_is_written_from_several_buffers_is_read_into_others() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let file = temporary_file();
        for count in [1, 2, 7, 1024] {
            let from = valued(count, 100);
            let written = from.concat();
            ring.write(1, &file, 1000, from);
            assert_eq!(only(&mut ring).result, Ok(u32::try_from(count * 100).expect("small")));
            ring.read(2, &file, 1000, &vec![100; count]);
            assert_eq!(only(&mut ring).output.into_buffers().concat(), written);
        }
        for range in [None, Some(1000..2000), Some(0..u64::MAX)] {
            ring.sync(3, &file, range);
            assert_eq!(only(&mut ring).result, Ok(0));
        }
        assert_eq!(ring.in_flight(), 0);
    });
}

#[test]
fn read_past_the_end_is_short_and_gives_its_buffers_back() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let file = temporary_file();
        ring.write(1, &file, 0, valued(1, 100));
        only(&mut ring);
        ring.read(2, &file, 60, &[30; 3]);
        let read = only(&mut ring);
        let filled = read.output.into_buffers();
        let lens: Vec<_> = filled.iter().map(BytesMut::len).collect();
        assert_eq!((read.result, lens), (Ok(40), vec![30, 10, 0]));
        assert_eq!(filled.concat(), valued(1, 100)[0][60..]);
        ring.read(3, &file, 200, &[30]);
        let read = only(&mut ring);
        assert_eq!((read.result, read.output.into_buffers().concat()), (Ok(0), vec![]));
    });
}

#[test]
fn operation_that_fails_says_why_and_gives_its_buffers_back() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (socket, _theirs) = socketpair();
        ring.read(1, &socket, 100, &[30; 2]);
        let read = only(&mut ring);
        assert_eq!((read.result, read.output.into_buffers().len()), (Err(Errno::SPIPE), 2));
        ring.allocate(2, &socket, FallocateFlags::empty(), 0, 1);
        assert!(only(&mut ring).result.is_err());
    });
}

#[test]
fn receive_appends_what_has_arrived_and_0_is_the_end() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (socket, mut theirs) = socketpair();
        theirs.write_all(b"lower").expect("room in the socket");
        let mut buffer = BytesMut::with_capacity(64);
        buffer.extend_from_slice(b"head ");
        ring.receive(1, &socket, buffer);
        let received = only(&mut ring);
        assert_eq!(received.result, Ok(5));
        assert_eq!(&received.output.into_buffers()[0][..], b"head lower");
        drop(theirs);
        ring.receive(2, &socket, BytesMut::with_capacity(64));
        let end = only(&mut ring);
        assert_eq!((end.result, end.output.into_buffers()[0].len()), (Ok(0), 0));
    });
}

/// The number of a socket that is closed goes to the next one.
#[test]
fn socket_that_has_the_number_of_a_closed_one_is_waited_for_as_well() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let mut numbers = Vec::new();
        for value in 0..20 {
            let (socket, mut theirs) = socketpair();
            numbers.push(socket.as_raw_fd());
            ring.receive(1, &socket, BytesMut::with_capacity(64));
            ring.submit().expect("the ring works");
            theirs.write_all(&[value; 3]).expect("room in the socket");
            let received = only(&mut ring).output.into_buffers();
            assert_eq!(received[0][..], [value; 3]);
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() < 20, "some number came twice");
    });
}

#[test]
fn receive_takes_no_more_than_there_is_room_for() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (socket, mut theirs) = socketpair();
        theirs.write_all(&[7; 1000]).expect("room in the socket");
        let buffer = BytesMut::with_capacity(100);
        let room = buffer.capacity();
        ring.receive(1, &socket, buffer);
        assert_eq!(only(&mut ring).output.into_buffers()[0].len(), room);
    });
}

/// What a client sent would be copied anew with each part that arrives, and the room for the rest
/// would be gone.
#[test]
fn receive_gives_back_the_buffer_that_it_was_given() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (socket, mut theirs) = socketpair();
        let mut buffer = BytesMut::with_capacity(1 << 20);
        let (address, room) = (buffer.as_ptr(), buffer.capacity());
        for part in 1..=10 {
            theirs.write_all(&[7; 1000]).expect("room in the socket");
            ring.receive(1, &socket, buffer);
            buffer = only(&mut ring).output.into_buffers().remove(0);
            let got = (buffer.as_ptr(), buffer.len(), buffer.capacity());
            assert_eq!(got, (address, 1000 * part, room), "part {part}");
        }
    });
}

#[test]
fn send_larger_than_the_socket_is_finished_as_the_peer_reads() {
    within_a_minute(|| {
        for count in [1, 64] {
            let mut ring = new_ring();
            let (socket, mut theirs) = socketpair();
            rustix::net::sockopt::set_socket_send_buffer_size(&socket, 8192).expect("a size");
            let from = valued(count, (4 << 20) / count);
            let sent = from.concat();
            let reader = std::thread::spawn(move || {
                let mut all = vec![0; 4 << 20];
                theirs.read_exact(&mut all).expect("all is sent");
                all
            });
            let mut rest = from;
            let mut left = sent.len();
            while left > 0 {
                ring.send(1, &socket, rest.clone());
                let gone = only(&mut ring).result.expect("the peer reads") as usize;
                assert!(gone > 0, "something is sent each time");
                left -= gone;
                rest = behind(rest, gone);
            }
            assert!(reader.join().expect("the reader ends") == sent, "all arrives in order");
        }
    });
}

/// What is left of the buffers behind that many bytes.
fn behind(buffers: Buffers<Bytes>, mut gone: usize) -> Buffers<Bytes> {
    let mut left = Buffers::new();
    for buffer in buffers {
        let skipped = gone.min(buffer.len());
        gone -= skipped;
        if skipped < buffer.len() {
            left.push(buffer.slice(skipped..));
        }
    }
    left
}

#[test]
fn send_to_a_peer_that_goes_away_ends_short_or_fails_without_a_signal() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (socket, theirs) = socketpair();
        ring.send(1, &socket, valued(16, 1 << 20));
        ring.submit().expect("the ring works");
        drop(theirs);
        match only(&mut ring).result {
            Ok(sent) => assert!(sent < 16 << 20),
            Err(error) => assert!(matches!(error, Errno::PIPE | Errno::CONNRESET), "{error}"),
        }
        ring.send(2, &socket, valued(1, 1));
        assert_eq!(only(&mut ring).result, Err(Errno::PIPE));
    });
}

#[test]
fn accept_gives_one_connection() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("socket");
        let listener: Fd = Arc::new(UnixListener::bind(&path).expect("a listener").into());
        ring.accept(1, &listener);
        ring.submit().expect("the ring works");
        let mut client = UnixStream::connect(&path).expect("somebody listens");
        let accepted = only(&mut ring).output.into_socket().expect("a descriptor");
        client.write_all(b"x").expect("room in the socket");
        let accepted: Fd = Arc::new(accepted);
        ring.receive(2, &accepted, BytesMut::with_capacity(1));
        assert_eq!(&only(&mut ring).output.into_buffers()[0][..], b"x");
    });
}

#[test]
fn accept_ends_when_the_socket_is_shut_down() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("socket")).expect("a listener");
        let listener: Fd = Arc::new(listener.into());
        ring.accept(1, &listener);
        ring.submit().expect("the ring works");
        rustix::net::shutdown(&*listener, rustix::net::Shutdown::Both).expect("it is a socket");
        let Completion { token, result, .. } = only(&mut ring);
        assert_eq!((token, result), (1, Err(Errno::INVAL)));
        assert_eq!(Arc::strong_count(&listener), 1);
    });
}

#[test]
fn poll_completes_when_there_is_something_to_read() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (socket, mut theirs) = socketpair();
        ring.poll_readable(1, &socket);
        ring.submit().expect("the ring works");
        let mut completed = Vec::new();
        ring.take_completions(&mut completed);
        assert!(completed.is_empty());
        theirs.write_all(b"x").expect("room in the socket");
        assert!(only(&mut ring).result.is_ok());
    });
}

#[test]
fn more_operations_than_the_queues_have_room_for_complete_once_each() {
    within_a_minute(|| {
        let mut ring = new_ring();
        for token in 0..10_000 {
            ring.nop(token);
        }
        let completed = completions(&mut ring, 10_000);
        let tokens: Vec<u64> = completed.iter().map(|completion| completion.token).collect();
        assert_eq!(tokens, (0..10_000).collect::<Vec<u64>>());
        assert_eq!(ring.in_flight(), 0);
    });
}

#[test]
fn wait_ends_at_its_moment_and_not_before() {
    within_a_minute(|| {
        let mut ring: Ring<u64> = new_ring();
        let moments = [20, 10, 15, 5, 30].map(|later| monotonic() + later * MILLISECOND);
        for until in moments {
            // Other moments may end a wait early, as any completion may; then it is called again.
            while monotonic() < until {
                ring.wait(Some(until)).expect("the ring works");
                ring.take_completions(&mut Vec::new());
            }
        }
        let late = monotonic() - moments[4];
        assert!(late < 10_000 * MILLISECOND, "{late} ns late");
    });
}

#[test]
fn wait_for_a_moment_that_is_over_ends_at_once() {
    within_a_minute(|| {
        let mut ring: Ring<u64> = new_ring();
        ring.wait(Some(monotonic() - MILLISECOND)).expect("the ring works");
        ring.wait(Some(0)).expect("the ring works");
    });
}

#[test]
fn earlier_moment_than_the_one_under_way_wakes_up_too() {
    within_a_minute(|| {
        let mut ring = new_ring();
        ring.nop(1);
        ring.wait(Some(monotonic() + HOUR)).expect("the ring works");
        ring.take_completions(&mut Vec::new());
        let until = monotonic() + 2 * MILLISECOND;
        while monotonic() < until {
            ring.wait(Some(until)).expect("the ring works");
            ring.take_completions(&mut Vec::new());
        }
    });
}

/// A connection's deadline seconds away, and requests that each come and go at once: every one
/// left another wake-up for that deadline behind.
#[test]
fn wake_ups_do_not_pile_up_while_near_and_far_moments_alternate() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let far = monotonic() + HOUR;
        for token in 0..50 {
            ring.nop(token);
            ring.wait(Some(far)).expect("the ring works");
            ring.take_completions(&mut Vec::new());
            let near = monotonic() + MILLISECOND / 10;
            while monotonic() < near {
                ring.wait(Some(near)).expect("the ring works");
                ring.take_completions(&mut Vec::new());
            }
        }
        assert!(ring.in_flight() <= 2, "{} wake-ups are in flight", ring.in_flight());
    });
}

/// Everything that waits for somebody else, in flight on a ring: what it holds.
fn start_what_never_ends(ring: &mut Ring<u64>) -> (Vec<Fd>, Bytes, Vec<UnixStream>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("socket");
    let listener: Fd = Arc::new(UnixListener::bind(path).expect("a listener").into());
    let (receiving, first) = socketpair();
    let (sending, second) = socketpair();
    let (polled, third) = socketpair();
    let data = Bytes::from(vec![1; 4 << 20]);
    ring.receive(1, &receiving, BytesMut::with_capacity(4096));
    ring.send(2, &sending, Buffers::from_elem(data.clone(), 1));
    ring.send(3, &sending, Buffers::from_elem(data.clone(), 2));
    ring.poll_readable(4, &polled);
    ring.accept(5, &listener);
    (vec![receiving, sending, polled, listener], data, vec![first, second, third])
}

fn assert_all_is_let_go(fds: &[Fd], data: &Bytes, mut peers: Vec<UnixStream>) {
    assert!(data.is_unique(), "buffers are let go");
    for fd in fds {
        assert_eq!(Arc::strong_count(fd), 1, "descriptors are let go");
    }
    for peer in &mut peers {
        peer.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        peer.write_all(b"late").expect("the sockets are open still");
    }
}

#[test]
fn ring_that_is_dropped_lets_go_of_what_is_under_way() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (fds, data, peers) = start_what_never_ends(&mut ring);
        ring.nop(9);
        ring.wait(Some(monotonic() + HOUR)).expect("the ring works");
        drop(ring);
        assert_all_is_let_go(&fds, &data, peers);
    });
}

/// What had not been handed to the kernel could not be cancelled, was handed to it afterwards,
/// and waited for ever.
#[test]
fn ring_that_is_dropped_lets_go_of_what_was_not_submitted() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (fds, data, peers) = start_what_never_ends(&mut ring);
        drop(ring);
        assert_all_is_let_go(&fds, &data, peers);
    });
}

#[test]
fn ring_that_is_dropped_finishes_what_cannot_be_cancelled() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let file = temporary_file();
        let data = Bytes::from(vec![1; 8 << 20]);
        for number in 0..8 {
            ring.write(number, &file, number << 23, Buffers::from_elem(data.clone(), 1));
            ring.sync(number, &file, None);
        }
        ring.submit().expect("the ring works");
        drop(ring);
        assert!(data.is_unique(), "buffers are let go");
        assert_eq!(Arc::strong_count(&file), 1, "descriptors are let go");
    });
}

fn event(count: u32, flags: EventfdFlags) -> Fd {
    Arc::new(eventfd(count, flags | EventfdFlags::CLOEXEC).expect("an event"))
}

fn add_one(event: &Fd) {
    rustix::io::write(event, &1_u64.to_ne_bytes()).expect("it counts");
}

/// The names of what completes in that time.
fn told_within(ring: &mut Ring<u64>, span: u64) -> Vec<u64> {
    let mut completed = Vec::new();
    let until = monotonic() + span;
    while monotonic() < until {
        ring.wait(Some(until)).expect("the ring works");
        ring.take_completions(&mut completed);
    }
    completed.into_iter().map(|completion| completion.token).collect()
}

/// Nobody reads it: it is readable all the time.
#[test]
fn watch_completes_for_each_write_and_not_in_between() {
    let mut ring = new_ring();
    let [watched, other] = [event(1, EventfdFlags::empty()), event(0, EventfdFlags::empty())];
    let watch = ring.watch(7, &watched);
    // It was readable from the start, which may be told twice.
    let first = told_within(&mut ring, 20 * MILLISECOND);
    assert!(matches!(first[..], [7] | [7, 7]), "{first:?}");
    assert_eq!(ring.in_flight(), 1);
    for _ in 0..3 {
        ring.nop(1);
        assert_eq!(only(&mut ring).token, 1, "nothing was written");
        add_one(&watched);
        let Completion { token, result, .. } = only(&mut ring);
        assert_eq!((token, result), (7, Ok(0)));
    }
    add_one(&watched);
    ring.end(watch);
    add_one(&watched);
    ring.watch(8, &other);
    add_one(&other);
    let after = told_within(&mut ring, 20 * MILLISECOND);
    assert_eq!((after[0], after.contains(&7)), (8, false), "it ended, with what it had to tell");
    assert_eq!(told_within(&mut ring, 20 * MILLISECOND), [0; 0]);
    assert_eq!(ring.in_flight(), 1);
    drop(ring);
    assert_eq!([&watched, &other].map(Arc::strong_count), [1, 1], "nobody keeps them open");
}

/// More at once than the kernel's queue of completions has room for: a watch that it ends goes on.
#[test]
fn watches_go_on_when_more_is_told_than_there_is_room_for() {
    let mut ring = new_ring();
    let events: Vec<_> = (0..3000).map(|_| event(0, EventfdFlags::empty())).collect();
    for (token, event) in (0..).zip(&events) {
        ring.watch(token, event);
    }
    ring.submit().expect("the ring works");
    for _ in 0..3 {
        events.iter().for_each(add_one);
        let told = completions(&mut ring, events.len());
        let told: Vec<_> = told.into_iter().map(|completion| completion.token).collect();
        assert_eq!(told, (0..3000).collect::<Vec<_>>());
    }
}

#[test]
fn signal_adds_one_to_an_event() {
    let mut ring = new_ring();
    let other = event(0, EventfdFlags::empty());
    for token in 0..3 {
        ring.signal(token, &other);
        assert!(only(&mut ring).result.is_ok());
    }
    let mut count = [0; 8];
    rustix::io::read(&other, &mut count).expect("it counts");
    assert_eq!(u64::from_ne_bytes(count), 3);
}

/// It is somebody else's too, who has made it block and has filled it. By threads it is not
/// written, as it tells all that it can; the kernel's waiting ends when it is told to.
#[test]
fn signal_that_blocks_holds_nothing_else_up_and_can_be_ended() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let file = temporary_file();
        let full = event(0, EventfdFlags::empty());
        rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).expect("it counts");
        let signals: Vec<_> = (0..100).map(|token| ring.signal(token, &full)).collect();
        ring.write(1000, &file, 0, valued(1, 4096));
        while !told_within(&mut ring, MILLISECOND).contains(&1000) {}
        for signal in signals {
            ring.end(signal);
        }
        // Nobody keeps it open.
        while ring.in_flight() > 0 || Arc::strong_count(&full) > 1 {
            told_within(&mut ring, MILLISECOND);
        }
        drop(ring);
    });
}

/// What has moved is told, and the socket stays as it is for whoever goes on with it.
#[test]
fn operations_on_a_socket_can_be_cancelled_and_begun_again() {
    within_a_minute(|| {
        let mut ring = new_ring();
        let (socket, mut theirs) = socketpair();
        let sent = Bytes::from(vec![7; 4 << 20]);
        ring.receive(1, &socket, BytesMut::with_capacity(100));
        ring.send(2, &socket, Buffers::from_buf([sent.clone()]));
        ring.poll_hang_up(3, &socket);
        ring.submit().expect("the ring works");
        ring.cancel(&socket);
        let mut completions = completions(&mut ring, 3);
        assert_eq!(completions[0].result, Err(Errno::CANCELED));
        assert_eq!(completions[2].result, Err(Errno::CANCELED));
        let Completion { result, output, .. } = completions.remove(1);
        let gone = result.expect("a part has room in the socket") as usize;
        assert!(gone < sent.len(), "the peer reads nothing");
        let unsent = output.into_unsent();
        assert_eq!(unsent.concat().len(), sent.len() - gone);
        ring.send(4, &socket, unsent);
        let read = std::thread::spawn(move || {
            let mut all = vec![0; 4 << 20];
            theirs.read_exact(&mut all).expect("all of it comes");
            all
        });
        only(&mut ring).result.expect("the peer reads");
        assert!(read.join().expect("it reads") == sent, "nothing is missing, nothing is twice");
    });
}
