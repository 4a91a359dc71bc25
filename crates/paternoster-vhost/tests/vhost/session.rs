//! What front-ends say, in the order in which QEMU and others do, and in orders in which none does.

use std::os::fd::OwnedFd;

use paternoster_vhost::blk::Device;
use paternoster_vhost::proto::{Features, RingAddresses, request};
use paternoster_vhost::{
    Answer, Offer, Order, Output, Progress, Sealed, Session, SessionError, Start,
};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, memfd_create};

use crate::driver::memfd;

/// The bits of every feature of the protocol that is offered, as the design has them.
const PROTOCOL: u64 = 1 | 1 << 3 | 1 << 5 | 1 << 9 | 1 << 12 | 1 << 13 | 1 << 15;
/// Bits 32, 30 and 12.
const FEATURES: u64 = 1 << 32 | 1 << 30 | 1 << 12;

const NEED_REPLY: u32 = 1 << 3;

fn session() -> Session {
    let device = Device {
        size: 1 << 20,
        block: 512,
        discard: 512,
        queues: 4,
        read_only: false,
        flushes: true,
        unmaps: false,
    };
    let features = device.features();
    let (config, queues, sealed) = (device.config(true), device.queues, Sealed::Required);
    Session::new(Offer { features, config, queues, sealed })
}

/// A session in which all features are in force.
fn agreed() -> Session {
    let mut session = session();
    ask(&mut session, request::SET_PROTOCOL_FEATURES, 0, &PROTOCOL.to_ne_bytes());
    let order = send(&mut session, request::SET_FEATURES, 0, &FEATURES.to_ne_bytes(), vec![]);
    let Ok(Progress::Order(Order::Features(features))) = order else { panic!("{order:?}") };
    assert_eq!(features.bits(), FEATURES);
    session.answer(Answer::Done).expect("it goes on");
    session
}

/// Sends a message in one piece.
fn send(
    session: &mut Session,
    request: u32,
    flags: u32,
    body: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<Progress, SessionError> {
    let size = u32::try_from(body.len()).expect("it is short");
    let header = [request, 1 | flags, size].map(u32::to_ne_bytes).concat();
    assert_eq!(session.wanted(), 12);
    let progress = session.receive(&header, descriptors)?;
    if body.is_empty() {
        return Ok(progress);
    }
    assert!(matches!(progress, Progress::NeedMore), "{progress:?}");
    assert_eq!(session.wanted(), body.len());
    session.receive(body, vec![])
}

/// Sends a message of which nothing comes but perhaps a reply, which is returned.
fn ask(session: &mut Session, request: u32, flags: u32, body: &[u8]) -> Option<Vec<u8>> {
    let progress = send(session, request, flags, body, vec![]);
    assert!(matches!(progress, Ok(Progress::NeedMore)), "{progress:?}");
    reply(session, request)
}

/// The body of the reply to a message, if there is one.
fn reply(session: &mut Session, request: u32) -> Option<Vec<u8>> {
    let Output { bytes, .. } = session.take_output()?;
    let (header, body) = bytes.split_at(12);
    let size = u32::try_from(body.len()).expect("it is short");
    assert_eq!(header, [request, 1 | 1 << 2, size].map(u32::to_ne_bytes).concat());
    Some(body.to_vec())
}

/// The answer to a message that asks for one.
fn acknowledged(session: &mut Session, request: u32) -> u64 {
    let body = reply(session, request).expect("it asks for an answer");
    u64::from_ne_bytes(body.try_into().expect("a code"))
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_ne_bytes()).collect()
}

fn addresses(ring: u32, at: u64) -> Vec<u8> {
    [words(&[ring, 0]), longs(&[at, at + 0x2000, at + 0x1000, 0])].concat()
}

/// Says of the first ring all but what kicks it.
fn set_up(session: &mut Session) {
    ask(session, request::SET_VRING_NUM, 0, &words(&[0, 8]));
    ask(session, request::SET_VRING_ADDR, 0, &addresses(0, 0));
}

/// What kicks, or is called.
fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC).expect("an event")
}

/// The order that a message brings.
fn order(session: &mut Session, request: u32, body: &[u8], fds: Vec<OwnedFd>) -> Order {
    match send(session, request, 0, body, fds) {
        Ok(Progress::Order(order)) => order,
        other => panic!("{other:?}"),
    }
}

fn done(session: &mut Session) {
    let progress = session.answer(Answer::Done).expect("it goes on");
    assert!(matches!(progress, Progress::NeedMore), "{progress:?}");
}

/// As QEMU begins with one ring; then it stops the ring.
#[test]
fn ring_is_set_up_started_and_stopped() {
    let mut session = session();
    let features = ask(&mut session, request::GET_FEATURES, 0, &[]).expect("a reply");
    let expected = [2, 6, 9, 10, 11, 12, 13, 14, 28, 29, 30, 32].map(|bit| 1u64 << bit);
    assert_eq!(features, expected.iter().sum::<u64>().to_ne_bytes());
    let protocol = ask(&mut session, request::GET_PROTOCOL_FEATURES, 0, &[]);
    assert_eq!(protocol, Some(longs(&[PROTOCOL])));
    ask(&mut session, request::SET_PROTOCOL_FEATURES, 0, &longs(&[PROTOCOL]));
    assert_eq!(ask(&mut session, request::GET_QUEUE_NUM, 0, &[]), Some(longs(&[4])));
    assert_eq!(ask(&mut session, request::GET_MAX_MEM_SLOTS, 0, &[]), Some(longs(&[509])));
    assert_eq!(ask(&mut session, request::SET_OWNER, 0, &[]), None);
    let call = order_free(&mut session, request::SET_VRING_CALL, &longs(&[0]), vec![event()]);
    assert!(call, "a ring that has not started only remembers it");
    let config = [words(&[0, 60, 0]), vec![0; 60]].concat();
    let reply_of = send(&mut session, request::GET_CONFIG, 0, &config[..12], vec![]);
    assert!(matches!(reply_of, Ok(Progress::NeedMore)));
    let config = reply(&mut session, request::GET_CONFIG).expect("a reply");
    assert_eq!((&config[..12], config.len()), (&words(&[0, 60, 0])[..], 72));
    assert_eq!(config[12..20], 2048u64.to_ne_bytes());

    assert!(matches!(
        order(&mut session, request::SET_FEATURES, &longs(&[FEATURES]), vec![]),
        Order::Features(features) if features == Features::from_bits_retain(FEATURES)
    ));
    done(&mut session);
    let table = [words(&[2, 0]), longs(&[0, 4096, 1 << 40, 0, 8192, 4096, 1 << 41, 0])].concat();
    let Order::Memory(memory) =
        order(&mut session, request::SET_MEM_TABLE, &table, vec![memfd(4096), memfd(4096)])
    else {
        panic!("it is the memory")
    };
    let there = [(0, 4096), (8192, 4096), (4096, 1), (12287, 2)];
    let there = there.map(|(addr, len)| memory.check(addr, len).is_ok());
    assert_eq!(there, [true, true, false, false]);
    assert_eq!(session.wanted(), 0, "the order is to be answered first");
    done(&mut session);
    assert_eq!(ask(&mut session, request::SET_VRING_NUM, 0, &words(&[0, 128])), None);
    assert_eq!(ask(&mut session, request::SET_VRING_BASE, 0, &words(&[0, 7])), None);
    assert_eq!(ask(&mut session, request::SET_VRING_ADDR, 0, &addresses(0, 1 << 40)), None);
    let kick = order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    let Order::Start(0, Start { size, addresses: at, base, call, enabled, .. }) = kick else {
        panic!("{kick:?}")
    };
    assert_eq!((size, base, call.is_some(), enabled), (128, 7, true, false));
    let [descriptors, used, available] = [0, 0x2000, 0x1000].map(|at| (1 << 40) + at);
    assert_eq!(at, RingAddresses { descriptors, available, used });
    done(&mut session);
    let enable = order(&mut session, request::SET_VRING_ENABLE, &words(&[0, 1]), vec![]);
    assert!(matches!(enable, Order::Enable(0, true)));
    done(&mut session);

    let stop = order(&mut session, request::GET_VRING_BASE, &words(&[0, 0]), vec![]);
    assert!(matches!(stop, Order::Stop(0)));
    session.answer(Answer::Base(77)).expect("it goes on");
    assert_eq!(reply(&mut session, request::GET_VRING_BASE), Some(words(&[0, 77])));
    // It has no kick any more, and begins with the next one where it ended.
    let again = ask(&mut session, request::GET_VRING_BASE, 0, &words(&[0, 0]));
    assert_eq!(again, Some(words(&[0, 77])));
    let kick = order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    assert!(matches!(kick, Order::Start(0, Start { base: 77, call: None, enabled: true, .. })));
}

/// Sends a message with descriptors of which no order comes.
fn order_free(session: &mut Session, request: u32, body: &[u8], fds: Vec<OwnedFd>) -> bool {
    matches!(send(session, request, 0, body, fds), Ok(Progress::NeedMore))
}

#[test]
fn kick_may_come_first() {
    let mut session = agreed();
    assert!(order_free(&mut session, request::SET_VRING_KICK, &longs(&[3]), vec![event()]));
    ask(&mut session, request::SET_VRING_ENABLE, 0, &words(&[3, 1]));
    ask(&mut session, request::SET_VRING_ADDR, 0, &addresses(3, 0));
    let start = order(&mut session, request::SET_VRING_NUM, &words(&[3, 8]), vec![]);
    assert!(matches!(start, Order::Start(3, Start { size: 8, enabled: true, .. })));
    done(&mut session);
    // Of a ring that has started the descriptors may change, and the rest may be said again.
    for (request, body) in
        [(request::SET_VRING_KICK, 3), (request::SET_VRING_CALL, 3), (request::SET_VRING_ERR, 3)]
    {
        let changed = order(&mut session, request, &longs(&[body]), vec![event()]);
        assert!(matches!(
            changed,
            Order::Kick(3, _) | Order::Call(3, Some(_)) | Order::Err(3, Some(_))
        ));
        done(&mut session);
    }
    let none = order(&mut session, request::SET_VRING_CALL, &longs(&[3 | 1 << 8]), vec![]);
    assert!(matches!(none, Order::Call(3, None)));
    done(&mut session);
    ask(&mut session, request::SET_VRING_NUM, 0, &words(&[3, 8]));
    ask(&mut session, request::SET_VRING_ADDR, 0, &addresses(3, 0));
    let moves = [
        (request::SET_VRING_NUM, words(&[3, 16])),
        (request::SET_VRING_ADDR, addresses(3, 16)),
        (request::SET_VRING_BASE, words(&[3, 0])),
    ];
    for (request, body) in moves {
        let progress = send(&mut session, request, NEED_REPLY, &body, vec![]);
        assert!(matches!(progress, Ok(Progress::Refused(_))), "{progress:?}");
        assert_eq!(acknowledged(&mut session, request), 1);
    }
}

#[test]
fn ring_that_cannot_start_may_be_set_up_anew() {
    let mut session = agreed();
    ask(&mut session, request::SET_VRING_NUM, 0, &words(&[0, 8]));
    ask(&mut session, request::SET_VRING_ADDR, 0, &addresses(0, 1));
    for request in [request::SET_VRING_CALL, request::SET_VRING_ERR] {
        assert!(order_free(&mut session, request, &longs(&[0]), vec![event()]));
    }
    let kick = send(&mut session, request::SET_VRING_KICK, NEED_REPLY, &longs(&[0]), vec![event()]);
    assert!(matches!(kick, Ok(Progress::Order(Order::Start(..)))));
    let refused = session.answer(Answer::Refused("it is not aligned".to_owned()));
    let Ok(Progress::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.to_string(), "message 12: it is not aligned");
    assert_eq!(acknowledged(&mut session, request::SET_VRING_KICK), 1);
    // With the kick that it has, and with what it has to call by.
    let start = order(&mut session, request::SET_VRING_ADDR, &addresses(0, 0), vec![]);
    assert!(matches!(start, Order::Start(0, Start { call: Some(_), err: Some(_), .. })));
}

#[test]
fn ring_that_is_broken_may_be_set_up_anew() {
    let mut session = agreed();
    set_up(&mut session);
    assert!(order_free(&mut session, request::SET_VRING_ERR, &longs(&[0]), vec![event()]));
    order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    done(&mut session);
    session.ring_broken(0, 9);
    let base = ask(&mut session, request::GET_VRING_BASE, 0, &words(&[0, 0]));
    assert_eq!(base, Some(words(&[0, 9])));
    ask(&mut session, request::SET_VRING_NUM, 0, &words(&[0, 16]));
    ask(&mut session, request::SET_VRING_BASE, 0, &words(&[0, 0]));
    let start = order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    assert!(matches!(start, Order::Start(0, Start { size: 16, base: 0, err: Some(_), .. })));
}

#[test]
fn nothing_changes_by_an_order_that_is_refused() {
    let mut session = agreed();
    let bits = longs(&[1 << 32]);
    let refuse = |session: &mut Session, request, body: &[u8]| {
        let order = send(session, request, NEED_REPLY, body, vec![]);
        assert!(matches!(order, Ok(Progress::Order(_))), "{order:?}");
        let refused = session.answer(Answer::Refused("not now".to_owned()));
        assert!(matches!(refused, Ok(Progress::Refused(_))), "{refused:?}");
        assert_eq!(acknowledged(session, request), 1);
    };
    refuse(&mut session, request::SET_FEATURES, &bits);
    assert_eq!(session.features().bits(), FEATURES);
    let cache = [words(&[32, 1, 0]), vec![0]].concat();
    refuse(&mut session, request::SET_CONFIG, &cache);
    set_up(&mut session);
    refuse(&mut session, request::RESET_DEVICE, &[]);
    let config = ask(&mut session, request::GET_CONFIG, 0, &words(&[32, 1, 0])).expect("a reply");
    assert_eq!(config[12..], [1]);
    let start = order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    assert!(matches!(start, Order::Start(..)));
}

#[test]
fn cache_that_is_said_not_to_write_back_is_told_so_from_then_on() {
    let mut session = agreed();
    let cache = [words(&[32, 1, 0]), vec![0]].concat();
    assert!(matches!(
        order(&mut session, request::SET_CONFIG, &cache, vec![]),
        Order::Writeback(false)
    ));
    done(&mut session);
    let config = ask(&mut session, request::GET_CONFIG, 0, &words(&[32, 1, 0])).expect("a reply");
    assert_eq!(config[12..], [0]);
}

#[test]
fn owner_that_is_reset_has_no_ring_enabled() {
    let mut session = agreed();
    set_up(&mut session);
    ask(&mut session, request::SET_VRING_ENABLE, 0, &words(&[0, 1]));
    assert!(matches!(order(&mut session, request::RESET_OWNER, &[], vec![]), Order::DisableAll));
    done(&mut session);
    let start = order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    assert!(matches!(start, Order::Start(0, Start { enabled: false, .. })));
}

#[test]
fn nothing_is_wanted_until_a_reply_is_taken() {
    let mut session = agreed();
    let progress = send(&mut session, request::GET_QUEUE_NUM, 0, &[], vec![]);
    assert!(matches!(progress, Ok(Progress::NeedMore)));
    assert_eq!(session.wanted(), 0);
    assert!(session.take_output().is_some());
    assert_eq!(session.wanted(), 12);
}

#[test]
fn ring_that_is_stopped_forgets_its_descriptors() {
    let mut session = agreed();
    assert!(order_free(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]));
    assert!(order_free(&mut session, request::SET_VRING_CALL, &longs(&[0]), vec![event()]));
    ask(&mut session, request::GET_VRING_BASE, 0, &words(&[0, 0]));
    set_up(&mut session);
    let start = order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    assert!(matches!(start, Order::Start(0, Start { call: None, .. })));
}

#[test]
fn rings_are_enabled_where_no_message_enables_them() {
    let mut session = session();
    let features = 1u64 << 32;
    order(&mut session, request::SET_FEATURES, &longs(&[features]), vec![]);
    done(&mut session);
    set_up(&mut session);
    let kick = order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    assert!(matches!(kick, Order::Start(0, Start { enabled: true, .. })));
}

#[test]
fn what_is_not_obeyed_is_answered_or_ends_the_session() {
    let wrong: [(u32, Vec<u8>); 18] = [
        (request::SET_FEATURES, longs(&[1 << 33 | FEATURES])),
        (request::SET_FEATURES, longs(&[1 << 30])),
        (request::SET_FEATURES, words(&[0])),
        (request::SET_PROTOCOL_FEATURES, longs(&[1 << 8])),
        (request::SET_VRING_NUM, words(&[4, 8])),
        (request::SET_VRING_NUM, words(&[0, 1 << 16])),
        (request::SET_VRING_NUM, words(&[0, 12])),
        (request::SET_VRING_NUM, words(&[0, 2048])),
        (request::SET_VRING_KICK, longs(&[1 << 8])),
        (request::SET_VRING_KICK, longs(&[0])),
        (request::SET_VRING_CALL, longs(&[1 << 32])),
        (request::SET_MEM_TABLE, words(&[33, 0])),
        (request::SET_MEM_TABLE, [words(&[1, 0]), longs(&[0, 4096, 0, 0])].concat()),
        (request::ADD_MEM_REG, longs(&[0, 0, 4096, 0, 0])),
        (request::SET_CONFIG, [words(&[32, 1, 0]), vec![2]].concat()),
        (request::SET_CONFIG, [words(&[0, 1, 0]), vec![1]].concat()),
        (request::SET_INFLIGHT_FD, longs(&[0, 0])),
        (20, longs(&[0])),
    ];
    for (request, body) in wrong {
        let mut session = agreed();
        let progress = send(&mut session, request, NEED_REPLY, &body, vec![]);
        let Ok(Progress::Refused(refusal)) = progress else { panic!("{request}: {progress:?}") };
        assert_eq!(refusal.request, request);
        assert_eq!(acknowledged(&mut session, request), 1);
        assert_eq!(ask(&mut session, request::GET_QUEUE_NUM, 0, &[]), Some(longs(&[4])));
        let over = send(&mut session, request, 0, &body, vec![]);
        assert_eq!(over.expect_err("nobody is told"), SessionError::Refused(refusal));
    }
    // Of a body that is too long or too short nothing is taken.
    let mut session = agreed();
    for body in [longs(&[1 << 32, 0]), words(&[0])] {
        let progress = send(&mut session, request::SET_FEATURES, NEED_REPLY, &body, vec![]);
        assert!(matches!(progress, Ok(Progress::Refused(_))));
        assert_eq!(acknowledged(&mut session, request::SET_FEATURES), 1);
        assert_eq!(session.features().bits(), FEATURES);
    }
    // What is obeyed is answered too, where an answer is asked for.
    let mut session = agreed();
    assert!(ask(&mut session, request::SET_OWNER, NEED_REPLY, &[]).is_some());
    let cache = [words(&[32, 1, 0]), vec![0]].concat();
    let progress = send(&mut session, request::SET_CONFIG, NEED_REPLY, &cache, vec![]);
    assert!(matches!(progress, Ok(Progress::Order(Order::Writeback(false)))));
    done(&mut session);
    assert_eq!(acknowledged(&mut session, request::SET_CONFIG), 0);
}

#[test]
fn configuration_beyond_its_end_is_zeroes_and_a_wrong_range_has_no_size() {
    let mut session = agreed();
    let all = ask(&mut session, request::GET_CONFIG, 0, &words(&[56, 200, 0])).expect("a reply");
    assert_eq!((all.len(), &all[12..]), (212, &[0; 200][..]));
    for (offset, size) in [(0, 257), (200, 57), (u32::MAX, 1), (0, 0)] {
        let none = ask(&mut session, request::GET_CONFIG, 0, &words(&[offset, size, 0]));
        assert_eq!(none, Some(words(&[offset, 0, 0])));
    }
}

#[test]
fn header_that_is_none_ends_the_session_before_its_body() {
    let header = |request: u32, flags: u32, size: u32| words(&[request, flags, size]);
    let cases = [
        (header(1, 2, 0), SessionError::Version(2)),
        (header(1, 1 | 1 << 2, 0), SessionError::Reply(1)),
        (header(5, 1, 4097), SessionError::TooLong { request: 5, size: 4097 }),
        (header(5, 1, u32::MAX), SessionError::TooLong { request: 5, size: u32::MAX }),
    ];
    for (bytes, error) in cases {
        assert_eq!(session().receive(&bytes, vec![]).expect_err("it is none"), error);
    }
}

#[test]
fn messages_may_come_byte_by_byte_and_further_descriptors_are_closed() {
    let mut session = agreed();
    let message = [words(&[request::SET_VRING_CALL, 1, 8]), longs(&[1])].concat();
    let named = || memfd_create("too many", MemfdFlags::CLOEXEC).expect("memory");
    for (place, byte) in message.iter().enumerate() {
        let first = if place == 0 { event() } else { named() };
        let progress = session.receive(&[*byte], vec![first, named(), named()]);
        assert!(matches!(progress, Ok(Progress::NeedMore)));
        assert_eq!(session.is_within_message(), place + 1 < message.len());
        assert!(open_descriptors("/memfd:too many (deleted)") <= 32);
    }
    assert_eq!(open_descriptors("/memfd:too many (deleted)"), 0, "the message has one");
    assert_eq!(session.wanted(), 12);
}

/// How many descriptors this process has of a file.
fn open_descriptors(file: &str) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("Linux has it").flatten();
    let links = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.as_os_str() == file).count()
}

#[test]
fn memory_for_requests_in_flight_goes_there_and_back() {
    let mut session = agreed();
    // A structure of C, with its padding; and what the text says, without.
    let padded = [longs(&[0, 0]), [2u16, 128, 0, 0].map(u16::to_ne_bytes).concat()].concat();
    let asked = send(&mut session, request::GET_INFLIGHT_FD, 0, &padded, vec![]);
    assert!(matches!(asked, Ok(Progress::NeedMore)), "{asked:?}");
    let Output { bytes, descriptor } = session.take_output().expect("a reply");
    // A ring of 128 has a header and 128 entries of 16 bytes, on whole lines of 64 bytes.
    // One line more is ours.
    assert_eq!(bytes[12..], [longs(&[2 * 2112 + 64, 0]), padded[16..].to_vec()].concat());
    let body = bytes[12..32].to_vec();
    let file = descriptor.expect("it comes with its file");
    let ours = file.try_clone().expect("another");
    let taken = order(&mut session, request::SET_INFLIGHT_FD, &body, vec![file]);
    let Order::Inflight(inflight) = taken else { panic!("{taken:?}") };
    assert_eq!((inflight.place().queues, inflight.place().ring_size), (2, 128));
    done(&mut session);
    // The next server says of the cache what this one was told.
    let writeback = |session: &mut Session| {
        let config = ask(session, request::GET_CONFIG, 0, &words(&[32, 1, 0])).expect("a reply");
        config[12]
    };
    assert_eq!(writeback(&mut session), 1);
    inflight.set_writes_through(true);
    let mut next = agreed();
    let taken = order(&mut next, request::SET_INFLIGHT_FD, &body, vec![ours]);
    assert!(matches!(taken, Order::Inflight(inflight) if inflight.writes_through()));
    done(&mut next);
    assert_eq!(writeback(&mut next), 0);
    // What cannot be had is answered as well, by no size.
    let body = [longs(&[0, 0]), [5u16, 128].map(u16::to_ne_bytes).concat()].concat();
    assert_eq!(ask(&mut session, request::GET_INFLIGHT_FD, 0, &body), Some(vec![0; 24]));
}

#[test]
fn regions_come_and_go_one_by_one() {
    let mut session = agreed();
    let region = |guest: u64| longs(&[0, guest, 4096, 1 << 40 | guest, 0]);
    let mut of = |request, body: &[u8], fds| match order(&mut session, request, body, fds) {
        Order::Memory(memory) => {
            done(&mut session);
            [0, 4096].map(|addr| memory.check(addr, 4096).is_ok())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(of(request::ADD_MEM_REG, &region(0), vec![memfd(4096)]), [true, false]);
    assert_eq!(of(request::ADD_MEM_REG, &region(4096), vec![memfd(4096)]), [true, true]);
    assert_eq!(of(request::REM_MEM_REG, &region(0), vec![]), [false, true]);
    let unknown = send(&mut session, request::REM_MEM_REG, NEED_REPLY, &region(0), vec![]);
    assert!(matches!(unknown, Ok(Progress::Refused(_))), "{unknown:?}");
    assert_eq!(acknowledged(&mut session, request::REM_MEM_REG), 1);
    // A file that may be made shorter, and the offer wants none of those.
    let named = memfd_create("unsealed", MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&named, 4096).expect("room");
    let unsealed = send(&mut session, request::ADD_MEM_REG, NEED_REPLY, &region(0), vec![named]);
    let Ok(Progress::Refused(refusal)) = unsealed else { panic!("{unsealed:?}") };
    assert!(refusal.why.contains("F_SEAL_SHRINK"), "{refusal}");
}

#[test]
fn only_eventfds_kick_and_call_and_they_do_not_block() {
    for request in [request::SET_VRING_KICK, request::SET_VRING_CALL, request::SET_VRING_ERR] {
        let mut session = agreed();
        let (pipe, _) = std::io::pipe().expect("a pipe");
        let refused = send(&mut session, request, NEED_REPLY, &longs(&[0]), vec![pipe.into()]);
        let Ok(Progress::Refused(refusal)) = refused else { panic!("{refused:?}") };
        assert!(refusal.why.ends_with("an eventfd is allowed"), "{refusal}");
        assert_eq!(acknowledged(&mut session, request), 1);
    }
    let mut session = agreed();
    let call = event();
    let ours = call.try_clone().expect("another");
    assert!(order_free(&mut session, request::SET_VRING_CALL, &longs(&[0]), vec![call]));
    assert!(fcntl_getfl(&ours).expect("flags").contains(OFlags::NONBLOCK));
}

#[test]
fn front_end_that_asks_is_told_of_another_size() {
    let mut session = agreed();
    let mut config = [0; 60];
    config[0] = 9;
    config[32] = 1;
    assert!(session.reconfigure(config).is_none(), "it has not asked");
    let (theirs, ours) = std::io::pipe().expect("a pipe");
    assert!(order_free(&mut session, request::SET_BACKEND_REQ_FD, &[], vec![ours.into()]));
    config[0] = 10;
    let (message, channel) = session.reconfigure(config).expect("it has asked");
    assert_eq!(message, words(&[2, 1, 0]));
    rustix::io::write(channel, &message).expect("it is open");
    assert_eq!(rustix::io::read(&theirs, &mut [0; 32]), Ok(12));
    let size = ask(&mut session, request::GET_CONFIG, 0, &words(&[0, 1, 0])).expect("a reply");
    assert_eq!(size[12..], [10]);
}

#[test]
fn reset_makes_all_rings_new() {
    let mut session = agreed();
    set_up(&mut session);
    assert!(order_free(&mut session, request::SET_VRING_ERR, &longs(&[0]), vec![event()]));
    order(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]);
    done(&mut session);
    assert!(matches!(order(&mut session, request::RESET_DEVICE, &[], vec![]), Order::Reset));
    done(&mut session);
    assert!(order_free(&mut session, request::SET_VRING_KICK, &longs(&[0]), vec![event()]));
    ask(&mut session, request::SET_VRING_ADDR, 0, &addresses(0, 0));
    // A front-end says this once: it stays.
    let start = order(&mut session, request::SET_VRING_NUM, &words(&[0, 8]), vec![]);
    assert!(matches!(start, Order::Start(0, Start { err: Some(_), call: None, .. })));
}
