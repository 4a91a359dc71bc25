//! Writes entries of a journal as a recording: blktrace's file, and the sidecar beside it.
//!
//! Records of a file have times that differ, by 1 ns at least, as tools of blktrace want it. A
//! request's completion is that of the device; one that was none of the device's (a flush, what was
//! refused) completes with its reply.
//!
//! Volumes of a pool lie far apart in the elevator's disk. In the files they lie one behind the
//! other, in the order in which their first clients came.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::SystemTime;

use paternoster::{Instant, IocId, MergeKind, Op, Sector, SectorCount};
use paternoster_disk::FrontTag;
use paternoster_trace::blktrace::{
    DEVICE, Record, SECTOR, category, category_of, code, process_note, timestamp_note,
};
use paternoster_trace::sidecar::{
    Block, Change, Lost, Meta, Party, RecordedRequest, RequestFlags, Writer,
};
use rustix::io::Errno;

use super::disguise::{Disguise, Scramble};
use super::{Arrival, Client, Entry, Io, Note, Part, Start, What, sync_of};

/// Requests of a block of the sidecar at most.
const BLOCK: usize = 4096;

/// What an entry takes at most, with the notes before it and the heads of blocks.
const HEADROOM: u64 = 4096;

/// Writes a recording.
#[derive(Debug)]
pub(super) struct Scribe<W: Write> {
    events: W,
    sidecar: Writer<W>,
    began: Instant,
    /// The time of the last record.
    last: u64,
    /// The sequence of the last record.
    sequence: u64,
    /// Clients that have not asked for anything since it began.
    clients: HashMap<IocId, Client>,
    /// The others.
    connections: HashMap<IocId, Connection>,
    /// How many of these there were.
    numbers: u32,
    places: Places,
    in_flight: HashMap<FrontTag, Pending>,
    /// Of this round.
    done: Vec<(Pending, u16)>,
    requests: Vec<RecordedRequest>,
    /// Of an anonymous recording.
    disguise: Option<Disguise>,
    /// The numbers of the first entry and of the next.
    first: u64,
    next: u64,
    /// The number of the last command; none where that is not known.
    commands: Option<u32>,
    /// Requests that are missing, of which nothing has been written, and since when.
    missing: u64,
    since: u64,
    written: Written,
    /// How many bytes may be written.
    most: u64,
}

/// What has been written, and what could not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) requests: u64,
    pub(super) lost: u64,
    pub(super) bytes: u64,
    /// Until when, in ns since the start.
    pub(super) until: u64,
}

/// Whether there is room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Left,
    Full,
}

#[derive(Debug)]
struct Connection {
    number: u32,
    /// The first sector of its volume in the elevator's disk.
    first: Sector,
    place: usize,
    /// How many replies it has got.
    replies: u32,
    /// When its last command came.
    came: Option<Instant>,
}

/// Where volumes lie in the files: one behind the other.
#[derive(Debug, Default)]
struct Places {
    all: Vec<Place>,
    /// Those of volumes that are there, by their first sectors in the elevator's disk.
    of: HashMap<Sector, usize>,
    /// In sectors.
    end: u64,
}

#[derive(Debug)]
struct Place {
    volume: String,
    bytes: u64,
    /// In sectors.
    first: u64,
    scramble: Scramble,
}

impl Places {
    /// That of a client's volume. One that has grown, or has come where another was, has a new one.
    fn find(&mut self, client: &Client) -> usize {
        let Client { party, first, bytes } = client;
        let is_it = |index: &usize| {
            let place = &self.all[*index];
            place.volume == party.volume && *bytes <= place.bytes
        };
        if let Some(known) = self.of.get(first).copied().filter(is_it) {
            return known;
        }
        let (volume, scramble) = (party.volume.clone(), Scramble::new(*bytes));
        self.all.push(Place { volume, bytes: *bytes, first: self.end, scramble });
        self.end += bytes.div_ceil(SECTOR);
        let new = self.all.len() - 1;
        self.of.insert(*first, new);
        new
    }
}

#[derive(Debug)]
struct Pending {
    sequence: u64,
    arrival: Arrival,
    after: u32,
    time: u64,
    is_one_read: bool,
}

impl<W: Write> Scribe<W> {
    /// Begins there. Names and offsets say nothing where it is anonymous.
    pub(super) fn new(
        [events, sidecar]: [W; 2],
        mut meta: Meta,
        start: &Start,
        (is_anonymous, most): (bool, u64),
    ) -> io::Result<Self> {
        let disguise = is_anonymous.then(Disguise::default);
        if is_anonymous {
            "disk".clone_into(&mut meta.disk);
        }
        let mut scribe = Self {
            events,
            sidecar: Writer::new(sidecar)?,
            began: start.at,
            last: 0,
            sequence: 0,
            clients: HashMap::new(),
            connections: HashMap::new(),
            numbers: 0,
            places: Places::default(),
            in_flight: HashMap::new(),
            done: Vec::new(),
            requests: Vec::new(),
            disguise,
            first: start.from.entry,
            next: start.from.entry,
            commands: start.commands,
            missing: 0,
            since: 0,
            written: Written::default(),
            most,
        };
        scribe.write_block(&Block::Meta(meta))?;
        scribe.write_record(&timestamp_note(SystemTime::now() - start.ago))?;
        Ok(scribe)
    }

    pub(super) fn written(&self) -> Written {
        self.written
    }

    /// A client is there, and may ask for something.
    pub(super) fn add(&mut self, ioc: IocId, client: Client) {
        // Of two, the first: what there is when it begins is told first, and as it is then.
        if !self.connections.contains_key(&ioc) {
            self.clients.entry(ioc).or_insert(client);
        }
    }

    /// The connection of a client, which is named at its first command; none of one that is not
    /// known.
    fn connection(&mut self, ioc: IocId) -> io::Result<Option<&mut Connection>> {
        if let Some(client) = self.clients.remove(&ioc) {
            self.numbers += 1;
            let number = self.numbers;
            let (place, first) = (self.places.find(&client), client.first);
            let mut party = Party { connection: number, ..client.party };
            if let Some(disguise) = &mut self.disguise {
                disguise.party(&mut party);
            }
            self.write_record(&process_note(self.last, number, &party.name))?;
            self.write_block(&Block::Names(vec![party]))?;
            let connection = Connection { number, first, place, replies: 0, came: None };
            self.connections.insert(ioc, connection);
        }
        Ok(self.connections.get_mut(&ioc))
    }

    /// Writes a part, as far as there is room.
    pub(super) fn write(&mut self, part: &Part) -> io::Result<Room> {
        if part.first > self.next {
            self.lose();
        }
        let mut notes = part.notes.iter().cloned().peekable();
        for (entry, number) in part.entries.iter().zip(part.first..) {
            while let Some((at, note)) = notes.next_if(|(at, _)| *at <= number) {
                self.note(at, note)?;
            }
            if self.write_entry(entry)? == Room::Full {
                return self.flush().map(|()| Room::Full);
            }
        }
        notes.try_for_each(|(at, note)| self.note(at, note))?;
        self.write_missing(self.written.until)?;
        self.next = part.first + part.entries.len() as u64;
        self.flush()?;
        Ok(Room::Left)
    }

    /// Writes a note that stands before the entry of that number.
    fn note(&mut self, at: u64, note: Note) -> io::Result<()> {
        match note {
            Note::Client(ioc, client) => self.add(ioc, client),
            Note::Gone(ioc) => {
                self.clients.remove(&ioc);
                self.connections.remove(&ioc);
            }
            Note::Changed { mut change, .. } => {
                self.reweigh(&change);
                // It names what nobody is to know, or was before the first entry.
                if self.disguise.is_some() || at < self.first {
                    return Ok(());
                }
                change.at_ns = change.at_ns.saturating_sub(self.began.as_nanos());
                self.write_block(&Block::Change(change))?;
            }
        }
        Ok(())
    }

    /// Clients that have not asked yet have the weight that is set now.
    fn reweigh(&mut self, change: &Change) {
        let Ok(weight) = change.value.parse() else { return };
        for Client { party, .. } in self.clients.values_mut() {
            if change.what == format!("group {:?} weight", party.group) {
                party.weight = weight;
            }
        }
    }

    fn write_entry(&mut self, entry: &Entry) -> io::Result<Room> {
        // What an entry may take, and what has yet to be written of those before.
        let without = self.requests.len() + self.in_flight.len();
        let waiting = self.done.len() as u64 * 80 + without as u64 * 32;
        if self.written.bytes + waiting + HEADROOM > self.most {
            return Ok(Room::Full);
        }
        let time = self.since_began(entry.at);
        match entry.what {
            What::Arrived(arrival) => self.arrived(entry.at, arrival)?,
            // What was permuted and what was merged do not go together.
            What::Merged(..) | What::Dispatched(_) | What::Completed(_)
                if self.disguise.is_some() => {}
            What::Merged(io, MergeKind::Back) => {
                self.device(time, io, code::BACK_MERGE, category::QUEUE)?;
            }
            What::Merged(io, MergeKind::Front) => {
                self.device(time, io, code::FRONT_MERGE, category::QUEUE)?;
            }
            What::Dispatched(io) => self.device(time, io, code::ISSUE, category::ISSUE)?,
            What::Completed(io) => self.device(time, io, code::COMPLETE, category::COMPLETE)?,
            What::Done { tag, error } => {
                // Those that came before are nobody's here.
                let pending = self.in_flight.remove(&tag);
                self.done.extend(pending.map(|pending| (pending, error)));
            }
            What::GivenUp(tag) => {
                let pending = self.in_flight.remove(&tag);
                self.requests.extend(pending.as_ref().map(without_reply));
            }
            What::RoundOver => self.round_over(time)?,
        }
        self.written.until = self.written.until.max(time);
        Ok(Room::Left)
    }

    fn since_began(&self, at: Instant) -> u64 {
        at.as_nanos().saturating_sub(self.began.as_nanos())
    }

    /// Entries are missing: the ends of those in flight may be among them.
    fn lose(&mut self) {
        self.since = self.written.until;
        // Before anything was written, it begins later than it could.
        if self.commands.is_some() {
            self.missing += (self.in_flight.len() + self.done.len()) as u64;
            self.give_up_all();
        }
    }

    /// What is in flight has no reply in the recording.
    fn give_up_all(&mut self) {
        let in_flight = self.in_flight.drain().map(|(_, pending)| pending);
        let all = in_flight.chain(self.done.drain(..).map(|(pending, _)| pending));
        self.requests.extend(all.map(|pending| without_reply(&pending)));
    }

    /// Ends it.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.give_up_all();
        self.flush()
    }

    fn arrived(&mut self, at: Instant, mut arrival: Arrival) -> io::Result<()> {
        let time = self.since_began(at);
        if let Some(before) = self.commands.replace(arrival.number) {
            self.missing += u64::from(arrival.number.wrapping_sub(before) - 1);
        }
        self.write_missing(time)?;
        let Some(connection) = self.connection(arrival.ioc)? else {
            self.missing += 1;
            return Ok(());
        };
        let is_one_read = connection.came.replace(at) == Some(at);
        let (number, after) = (connection.number, connection.replies);
        let place = connection.place;
        let Place { first, scramble, .. } = &self.places.all[place];
        if self.disguise.is_some() {
            arrival.offset = scramble.offset(arrival.offset, arrival.len.into());
        }
        arrival.offset += first * SECTOR;
        let action = code::QUEUE | (kind_of(&arrival) | category::QUEUE) << 16;
        let sequence = self.command(time, &arrival, (number, action, 0))?;
        let time = self.last;
        let pending = Pending { sequence, arrival, after, time, is_one_read };
        self.in_flight.insert(arrival.tag, pending);
        Ok(())
    }

    /// Says how many requests are missing until then.
    fn write_missing(&mut self, until_ns: u64) -> io::Result<()> {
        let requests = std::mem::take(&mut self.missing);
        if requests == 0 {
            return Ok(());
        }
        self.written.lost += requests;
        self.write_block(&Block::Lost(Lost { requests, from_ns: self.since, until_ns }))
    }

    /// Writes a record of a client's command.
    fn command(
        &mut self,
        time: u64,
        arrival: &Arrival,
        (pid, action, error): (u32, u32, u16),
    ) -> io::Result<u64> {
        let within = arrival.offset % SECTOR;
        let bytes = (within + u64::from(arrival.len)).next_multiple_of(SECTOR);
        self.record(Record {
            time,
            sector: arrival.offset / SECTOR,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            action,
            pid,
            error,
            ..Record::default()
        })
    }

    fn device(&mut self, time: u64, io: Io, what: u32, point: u32) -> io::Result<()> {
        // Those of before are nobody's here.
        let Some(connection) = self.connections.get(&io.ioc) else { return Ok(()) };
        let place = self.places.all[connection.place].first;
        let sector = io.sector.0.saturating_sub(connection.first.0) + place;
        let pid = connection.number;
        let kind = category_of(io.op, sync_of(io.op), false);
        let bytes = u64::from(io.sectors.0) * u64::from(SectorCount::SECTOR_BYTES);
        self.record(Record {
            time,
            sector,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            action: what | (kind | point) << 16,
            pid,
            ..Record::default()
        })
        .map(drop)
    }

    /// The commands that are done have had their replies.
    fn round_over(&mut self, time: u64) -> io::Result<()> {
        for (pending, error) in std::mem::take(&mut self.done) {
            let arrival = pending.arrival;
            let Some(connection) = self.connections.get_mut(&arrival.ioc) else { continue };
            connection.replies = connection.replies.saturating_add(1);
            let number = connection.number;
            let is_no_device = arrival.op == Op::Flush || arrival.len == 0 || is_refused(error);
            if is_no_device || self.disguise.is_some() {
                let action = code::COMPLETE | (kind_of(&arrival) | category::COMPLETE) << 16;
                self.command(time, &arrival, (number, action, error))?;
            }
            self.written.requests += 1;
            self.requests.push(recorded(&pending, error, time));
            if self.requests.len() == BLOCK {
                self.write_requests()?;
            }
        }
        Ok(())
    }

    fn record(&mut self, record: Record) -> io::Result<u64> {
        self.sequence += 1;
        self.last = record.time.max(self.last + 1);
        // As blktrace's files have it: its lower half.
        let sequence = u32::try_from(self.sequence & 0xffff_ffff).expect("it is 32 bits");
        let record = Record { sequence, time: self.last, device: DEVICE, ..record };
        self.write_record(&record.to_bytes())?;
        Ok(self.sequence)
    }

    fn write_record(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written.bytes += bytes.len() as u64;
        self.events.write_all(bytes)
    }

    fn write_requests(&mut self) -> io::Result<()> {
        for requests in std::mem::take(&mut self.requests).chunks(BLOCK) {
            self.write_block(&Block::Requests(requests.to_vec()))?;
        }
        Ok(())
    }

    fn write_block(&mut self, block: &Block) -> io::Result<()> {
        self.written.bytes += self.sidecar.write(block)?;
        Ok(())
    }

    /// Has all of it in the files. Each is whole up to here, whatever becomes of the server.
    fn flush(&mut self) -> io::Result<()> {
        self.write_requests()?;
        self.events.flush()?;
        self.sidecar.flush()
    }
}

fn kind_of(arrival: &Arrival) -> u32 {
    category_of(arrival.op, arrival.flags(), arrival.ahead)
}

/// Whether a command with that error was none that could be done.
fn is_refused(error: u16) -> bool {
    let refuses = [Errno::INVAL, Errno::OPNOTSUPP, Errno::SHUTDOWN];
    refuses.iter().any(|errno| errno.raw_os_error() == i32::from(error))
}

fn without_reply(pending: &Pending) -> RecordedRequest {
    let request = recorded(pending, 0, pending.time);
    RecordedRequest { flags: request.flags | RequestFlags::NO_REPLY, ..request }
}

fn recorded(pending: &Pending, error: u16, time: u64) -> RecordedRequest {
    let arrival = &pending.arrival;
    let (within, len) = (arrival.offset % SECTOR, arrival.len);
    let is_whole = within == 0 && u64::from(len).is_multiple_of(SECTOR);
    let flags = [
        (pending.is_one_read, RequestFlags::ONE_READ),
        (!is_whole, RequestFlags::PARTS_OF_SECTORS),
        (is_refused(error), RequestFlags::REFUSED),
    ];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag);
    RecordedRequest {
        sequence: pending.sequence,
        reply: time.max(pending.time),
        len,
        op: arrival.op,
        flags: flags.collect(),
        error,
        after: Some(pending.after),
        within: u16::try_from(within).expect("it is below 512"),
    }
}
