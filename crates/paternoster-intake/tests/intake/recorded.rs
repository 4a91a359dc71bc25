//! Recordings of the server, as far as they are otherwise than what blktrace records.

use std::fs;

use paternoster::Op;
use paternoster_intake::Request;
use paternoster_trace::blktrace::{DEVICE, Record, category, code};
use paternoster_trace::sidecar::{Block, RecordedRequest, RequestFlags, Writer};

use crate::read;

/// As the server records a trim of less than the disk trims: no device is done with it. Nor has one
/// that was given up a completion, whatever its device says. Times are since the first request.
#[test]
fn sidecar_says_what_became_of_a_request_and_not_the_device() {
    const READS: u32 = 3000;
    let (mut events, mut requests, mut sequence) = (Vec::new(), Vec::new(), 0);
    let mut record = |time: u64, code: u32, point: u32, kind: u32, sector: u64| {
        sequence += 1;
        let action = code | (kind | point | category::FS) << 16;
        let (bytes, pid, device) = (512, 1, DEVICE);
        let event =
            Record { sequence, time, sector, bytes, action, pid, device, ..Record::default() };
        events.extend(event.to_bytes());
        sequence
    };
    let ended = |sequence: u32, reply: u64, op: Op, flags: RequestFlags| RecordedRequest {
        sequence: sequence.into(),
        reply,
        len: 512,
        op,
        flags,
        error: 0,
        after: Some(0),
        within: 0,
    };
    let trim = record(1, code::QUEUE, category::QUEUE, category::DISCARD, 0);
    requests.push(ended(trim, 5, Op::Discard, RequestFlags::empty()));
    for number in 0..READS {
        let (time, sector) = (u64::from(number) * 10 + 10, u64::from(number) * 8);
        let queued = record(time, code::QUEUE, category::QUEUE, category::READ, sector);
        record(time + 1, code::ISSUE, category::ISSUE, category::READ, sector);
        record(time + 2, code::COMPLETE, category::COMPLETE, category::READ, sector);
        let is_last = number == READS - 1;
        let flags = if is_last { RequestFlags::NO_REPLY } else { RequestFlags::empty() };
        requests.push(ended(queued, time + 3, Op::Read, flags));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monday.blktrace.0");
    fs::write(&path, &events).expect("a file");
    let mut sidecar = Writer::new(Vec::new()).expect("memory");
    for requests in requests.chunks(1000) {
        sidecar.write(&Block::Requests(requests.to_vec())).expect("memory");
    }
    fs::write(folder.path().join("monday.pater"), sidecar.into_inner()).expect("a file");
    let found = read(&path);
    assert_eq!(found.warnings(), [""; 0]);
    let [first, reads @ .., last] = &found.requests[..] else { panic!("there are many") };
    assert_eq!((first.op, first.dispatched, first.completed), (Op::Discard, None, Some(4)));
    assert_eq!(reads.len() + 1, READS as usize);
    let is_whole = |it: &&Request| {
        let replied = it.replied.map(|reply| reply.at);
        it.completed == Some(it.arrived + 2) && replied == Some(it.arrived + 3)
    };
    assert_eq!(reads.iter().filter(is_whole).count(), reads.len());
    assert_eq!((last.completed, last.replied), (None, None));
}
