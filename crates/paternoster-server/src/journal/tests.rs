//! What a scribe writes of a journal that has lost some, and of commands that fail.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use paternoster::{Instant, IocId, Nanos, Op, Sector};

use paternoster_disk::{Command, CommandOp, Outcome, Payload, VolumeId};
use paternoster_trace::blktrace::{RECORD, code};
use paternoster_trace::sidecar::{
    Block, Change, Meta, Party, Reader, RecordedRequest, RequestFlags,
};
use rustix::io::Errno;
use slotmap::KeyData;

use super::scribe::{Room, Scribe};
use super::{Client, Entry, From, Journal, Note, Wanted};

/// What was written, which the test reads while the scribe has it.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Recording {
    journal: Journal,
    scribe: Scribe<Memory>,
    from: From,
    events: Memory,
    sidecar: Memory,
}

impl Recording {
    /// Of a journal of so many entries.
    fn begin(entries: u64) -> Self {
        let journal = Journal::of_bytes(entries * size_of::<Entry>() as u64).expect("it has room");
        let start = journal.start(Wanted::FromNow, Instant::START);
        let [events, sidecar] = [Memory::default(), Memory::default()];
        let files = [events.clone(), sidecar.clone()];
        let meta = Meta { version: 1, size: 1 << 30, ..Meta::default() };
        let scribe = Scribe::new(files, meta, &start, (false, u64::MAX)).expect("memory");
        let mut recording = Self { journal, scribe, from: start.from, events, sidecar };
        recording.client("a#1", 0);
        recording
    }

    /// A client of a volume that lies there.
    fn client(&mut self, name: &str, first: u64) {
        let party = Party { name: name.to_owned(), ..Party::default() };
        let client = Client { party, first: Sector(first), bytes: 1 << 20 };
        self.journal.note(Note::Client(ioc(first), client));
    }

    fn ask(&mut self, at: u64, tag: u64, op: CommandOp) {
        self.ask_of(0, at, tag, op);
    }

    fn ask_of(&mut self, first: u64, at: u64, tag: u64, op: CommandOp) {
        let volume = VolumeId::default();
        let command = Command { tag: tag.into(), volume, ioc: ioc(first), op };
        self.journal.arrived(at_nanos(at), &command);
    }

    fn answer(&mut self, at: u64, tag: u64, result: Result<(), Errno>) {
        let result = result.map(|()| Payload::default());
        self.journal.done(&Outcome::new(tag.into(), result));
        self.journal.round_over(at_nanos(at));
    }

    fn write(&mut self) {
        let part = self.journal.take(self.from, Vec::with_capacity(100));
        self.from = part.then;
        assert_eq!(self.scribe.write(&part).expect("memory"), Room::Left);
    }

    fn blocks(&self) -> Vec<Block> {
        let bytes = self.sidecar.0.borrow().clone();
        let mut reader = Reader::new(&bytes[..]).expect("it begins as one");
        std::iter::from_fn(|| reader.next_block().expect("it is whole")).collect()
    }

    /// Those that have had a reply, and the sequences of the others.
    fn ended(&self) -> (Vec<RecordedRequest>, Vec<u64>) {
        let has_reply = |it: &RecordedRequest| !it.flags.contains(RequestFlags::NO_REPLY);
        let (ended, others): (Vec<_>, Vec<_>) = self.all().into_iter().partition(has_reply);
        let mut others: Vec<_> = others.iter().map(|it| it.sequence).collect();
        others.sort_unstable();
        (ended, others)
    }

    fn requests(&self) -> Vec<RecordedRequest> {
        self.ended().0
    }

    fn all(&self) -> Vec<RecordedRequest> {
        let blocks = self.blocks().into_iter();
        let requests = blocks.filter_map(|block| match block {
            Block::Requests(requests) => Some(requests),
            _ => None,
        });
        requests.flatten().collect()
    }
}

fn at_nanos(nanos: u64) -> Instant {
    Instant::START + Nanos::new(nanos)
}

/// The I/O context of the client of the volume that lies there.
fn ioc(first: u64) -> IocId {
    KeyData::from_ffi((1 << 32) | (first + 1)).into()
}

fn read(page: u64) -> CommandOp {
    CommandOp::Read { offset: page * 4096, len: 4096 }
}

/// The events of blktrace's file without notes: code, time, sector, error.
fn events(bytes: &[u8]) -> Vec<(u32, u64, u64, u16)> {
    let mut events = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let long = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u16::from_le_bytes([rest[at], rest[at + 1]]);
        let code = u32::from(half(28));
        if long(0) >> 32 > 0 {
            events.push((code, long(8), long(16), half(44)));
        }
        rest = &rest[RECORD + usize::from(half(46))..];
    }
    events
}

#[test]
fn request_comes_behind_the_replies_that_its_connection_had_and_times_rise() {
    let mut recording = Recording::begin(100);
    recording.client("b#2", 1 << 20);
    recording.ask(10, 1, read(1));
    recording.ask(10, 2, read(2));
    recording.ask_of(1 << 20, 10, 3, read(0));
    recording.answer(20, 2, Ok(()));
    recording.ask(20, 4, read(4));
    recording.answer(30, 3, Ok(()));
    recording.answer(40, 4, Err(Errno::IO));
    recording.ask(50, 5, CommandOp::Flush);
    recording.answer(60, 5, Err(Errno::INVAL));
    recording.write();
    let requests = recording.requests();
    let told = requests.iter().map(|it| (it.sequence, it.reply, it.after, it.error, it.flags));
    let (none, one_read) = (RequestFlags::empty(), RequestFlags::ONE_READ);
    let io = u16::try_from(Errno::IO.raw_os_error()).expect("it is small");
    let invalid = u16::try_from(Errno::INVAL.raw_os_error()).expect("it is small");
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (2, 20, Some(0), 0, one_read),
            (3, 30, Some(0), 0, none),
            (4, 40, Some(1), io, none),
            (5, 60, Some(2), invalid, RequestFlags::REFUSED),
        ]
    );
    assert_eq!(requests[3].op, Op::Flush);
    let events = events(&recording.events.0.borrow());
    assert!(events.is_sorted_by(|one, next| one.1 < next.1), "{events:?}");
    // The second volume lies behind the first, of 1 MiB.
    let asked: Vec<_> = events.iter().filter(|it| it.0 == code::QUEUE).map(|it| it.2).collect();
    assert_eq!(asked, [8, 16, 2048, 32, 0]);
    // No device was done with this; what its device failed has had its completion from there.
    let ended = events.iter().filter(|it| it.0 == code::COMPLETE).map(|it| it.3);
    assert_eq!(ended.collect::<Vec<_>>(), [invalid]);
}

/// Of a ring of 10 entries, a request takes three here.
#[test]
fn what_the_ring_has_lost_is_counted_and_said() {
    let mut recording = Recording::begin(10);
    recording.ask(1, 1, read(1));
    recording.ask(2, 2, read(2));
    recording.answer(3, 2, Ok(()));
    recording.write();
    for number in 3..10 {
        recording.ask(number * 10, number, read(number));
        recording.answer(number * 10 + 5, number, Ok(()));
    }
    recording.write();
    // The first was in flight, and its end may be among what is lost.
    let lost = recording.scribe.written().lost;
    let recorded: Vec<_> = recording.requests().iter().map(|it| it.reply).collect();
    assert_eq!(recorded, [3, 75, 85, 95]);
    assert_eq!(recording.ended().1, [1], "what became of it is not known");
    assert_eq!(lost, 1 + 4);
    let blocks = recording.blocks();
    let said = blocks.iter().find_map(|block| match block {
        Block::Lost(lost) => Some((lost.requests, lost.from_ns, lost.until_ns)),
        _ => None,
    });
    assert_eq!(said, Some((5, 3, 70)));
    // What comes then comes behind the replies that are recorded.
    recording.ask(100, 10, read(10));
    recording.answer(101, 10, Ok(()));
    recording.write();
    assert_eq!(recording.requests().last().expect("it is there").after, Some(4));
    assert_eq!(recording.scribe.written().lost, lost);
}

/// Entries of ends alone can be lost, too.
#[test]
fn loss_of_ends_alone_is_a_loss() {
    let mut recording = Recording::begin(4);
    for number in 1..5 {
        recording.ask(number, number, read(number));
    }
    recording.write();
    for number in 1..5 {
        recording.answer(10 + number, number, Ok(()));
    }
    recording.write();
    assert_eq!(recording.scribe.written().lost, 4);
    assert_eq!(recording.ended(), (vec![], vec![1, 2, 3, 4]));
    let said = recording.blocks().into_iter().filter(|block| matches!(block, Block::Lost(_)));
    assert_eq!(said.count(), 1);
}

/// As when another server was to take over, and did not: the same command comes once more.
#[test]
fn command_that_was_given_up_has_no_reply_and_counts_for_none() {
    let mut recording = Recording::begin(100);
    recording.ask(1, 1, read(1));
    recording.journal.done(&Outcome::cancelled(1.into(), read(1)));
    recording.ask(2, 2, read(1));
    recording.answer(3, 2, Ok(()));
    recording.write();
    let (ended, unanswered) = recording.ended();
    let after: Vec<_> = ended.iter().map(|it| (it.sequence, it.after)).collect();
    assert_eq!((after, unanswered), (vec![(2, Some(0))], vec![1]));
    assert_eq!(recording.scribe.written().lost, 0);
}

/// `last` begins with the oldest entry: what was set since had other values then.
#[test]
fn what_was_in_force_when_a_recording_begins_is_told() {
    let mut journal = Recording::begin(3).journal;
    journal.changed(Vec::new(), "none".to_owned());
    let set = |journal: &mut Journal, what: &str, from: &str, to: &str, scheduler: &str| {
        let (what, value) = (what.to_owned(), to.to_owned());
        let change = Change { at_ns: 0, what, value };
        journal.changed(vec![(change, from.to_owned())], scheduler.to_owned());
    };
    set(&mut journal, "disk scheduler", "none", "bfq", "bfq");
    for at in 1..4 {
        journal.round_over(at_nanos(at));
    }
    set(&mut journal, "weight", "100", "300", "bfq");
    set(&mut journal, "weight", "300", "400", "bfq");
    set(&mut journal, "disk scheduler", "bfq", "wfq", "wfq");
    let told = |journal: &Journal| {
        let from = journal.start(Wanted::UntilNow, at_nanos(9)).from;
        let weight = journal.value_at(from, "weight").map(str::to_owned);
        // Whoever begins now has what is in force now.
        let now = journal.start(Wanted::FromNow, at_nanos(9)).from;
        assert_eq!(
            (journal.scheduler_at(now), journal.value_at(now, "weight")),
            (&*journal.scheduler, None)
        );
        (from.entry, journal.scheduler_at(from).to_owned(), weight)
    };
    assert_eq!(told(&journal), (0, "none".to_owned(), Some("100".to_owned())));
    journal.round_over(at_nanos(4));
    assert_eq!(told(&journal), (1, "bfq".to_owned(), Some("100".to_owned())));
    for at in 5..8 {
        journal.round_over(at_nanos(at));
    }
    assert_eq!(told(&journal), (4, "wfq".to_owned(), None));
}
