//! Writes entries of a journal as a recording: blktrace's file, and the sidecar beside it.
//!
//! Records of a file have times that differ, by 1 ns at least, as tools of blktrace want it. A
//! request's completion is that of the device; one that was none of the device's (a flush, what was
//! refused) completes with its reply.
//!
//! Volumes of a pool lie far apart in the elevator's disk. In the files they lie one behind the
//! other, in the order in which their first clients came.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::SystemTime;

use paternoster::{BioFlags, Instant, IocId, MergeKind, Op, Sector, SectorCount};
use paternoster_disk::FrontTag;
use paternoster_trace::blktrace::{
    DEVICE, Record, SECTOR, category, category_of, code, process_note, timestamp_note,
};
use paternoster_trace::sidecar::{Block, Lost, Meta, Party, RecordedRequest, RequestFlags, Writer};
use rustix::io::Errno;

use super::scramble::Scramble;
use super::{Arrival, Client, Entry, Io, Note, Part, Start, What};

/// Requests of a block of the sidecar at most.
const BLOCK: usize = 4096;

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
    connections: HashMap<IocId, Connection>,
    /// How many connections have been named.
    numbers: u32,
    /// Where volumes lie in the elevator's disk, and where in the files.
    places: HashMap<Sector, u64>,
    /// The end of the last of them.
    end: u64,
    in_flight: HashMap<FrontTag, Pending>,
    /// Of this round.
    done: Vec<(Pending, u16)>,
    requests: Vec<RecordedRequest>,
    /// Of a recording that is anonymous.
    disguise: Option<Disguise>,
    /// The number of the next entry.
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

#[derive(Debug, Default)]
struct Connection {
    number: u32,
    /// As the server calls it.
    name: String,
    /// The first sector of its volume in the elevator's disk, and in the files.
    first: Sector,
    place: u64,
    /// How many replies it has got.
    replies: u32,
    /// When its last command came.
    came: Option<Instant>,
}

#[derive(Debug)]
struct Pending {
    sequence: u64,
    arrival: Arrival,
    connection: u32,
    after: u32,
    time: u64,
    is_one_read: bool,
}

/// What names and offsets are in a recording that tells nothing of them.
#[derive(Debug)]
struct Disguise {
    offsets: Scramble,
    exports: HashMap<String, usize>,
    groups: HashMap<String, usize>,
}

impl Disguise {
    /// Of a disk of so many bytes.
    fn of_bytes(bytes: u64) -> Self {
        let offsets = Scramble::new(bytes);
        Self { offsets, exports: HashMap::new(), groups: HashMap::new() }
    }

    fn party(&mut self, party: &mut Party) {
        let export = party.name.rsplit_once('#').map_or(&*party.name, |(export, _)| export);
        let known = self.exports.len();
        let export = *self.exports.entry(export.to_owned()).or_insert(known);
        party.name = format!("export{export}#{}", party.connection);
        party.volume.clear();
        let mut path = String::new();
        for name in party.group.split('/').filter(|name| !name.is_empty()) {
            let known = self.groups.len();
            let group = *self.groups.entry(name.to_owned()).or_insert(known);
            let _ = write!(path, "/group{group}");
        }
        party.group = if path.is_empty() { "/".to_owned() } else { path };
    }
}

impl<W: Write> Scribe<W> {
    /// Begins there. Names and offsets say nothing where it is anonymous.
    pub(super) fn new(
        [events, sidecar]: [W; 2],
        mut meta: Meta,
        start: &Start,
        (is_anonymous, most): (bool, u64),
    ) -> io::Result<Self> {
        let disguise = is_anonymous.then(|| Disguise::of_bytes(meta.size));
        if is_anonymous {
            "disk".clone_into(&mut meta.disk);
        }
        let mut scribe = Self {
            events,
            sidecar: Writer::new(sidecar)?,
            began: start.at,
            last: 0,
            sequence: 0,
            connections: HashMap::new(),
            numbers: 0,
            places: HashMap::new(),
            end: 0,
            in_flight: HashMap::new(),
            done: Vec::new(),
            requests: Vec::new(),
            disguise,
            next: start.from.entry,
            commands: start.commands,
            missing: 0,
            since: 0,
            written: Written::default(),
            most,
        };
        scribe.write_block(&Block::Meta(meta))?;
        scribe.write_record(&timestamp_note(SystemTime::now()))?;
        Ok(scribe)
    }

    pub(super) fn written(&self) -> Written {
        self.written
    }

    /// Names a client.
    pub(super) fn name(&mut self, ioc: IocId, client: Client) -> io::Result<()> {
        let Client { mut party, first, bytes } = client;
        if self.connections.get(&ioc).is_some_and(|known| known.name == party.name) {
            return Ok(());
        }
        self.numbers += 1;
        let (number, name) = (self.numbers, party.name.clone());
        party.connection = number;
        if let Some(disguise) = &mut self.disguise {
            disguise.party(&mut party);
        }
        let end = self.end;
        let place = *self.places.entry(first).or_insert(end);
        self.end = end.max(place + bytes.div_ceil(SECTOR));
        self.write_record(&process_note(self.last, number, &party.name))?;
        self.write_block(&Block::Names(vec![party]))?;
        let connection = Connection { number, name, first, place, ..Connection::default() };
        self.connections.insert(ioc, connection);
        Ok(())
    }

    /// Writes a part, as far as there is room.
    pub(super) fn write(&mut self, part: &Part) -> io::Result<Room> {
        if part.first > self.next {
            self.lose();
        }
        let mut notes = part.notes.iter().cloned().peekable();
        for (entry, number) in part.entries.iter().zip(part.first..) {
            while let Some((_, note)) = notes.next_if(|(at, _)| *at <= number) {
                self.note(note)?;
            }
            if self.write_entry(entry)? == Room::Full {
                return self.flush().map(|()| Room::Full);
            }
        }
        notes.try_for_each(|(_, note)| self.note(note))?;
        self.write_missing(self.written.until)?;
        self.next = part.first + part.entries.len() as u64;
        self.flush()?;
        Ok(Room::Left)
    }

    fn note(&mut self, note: Note) -> io::Result<()> {
        match note {
            Note::Client(ioc, client) => self.name(ioc, client),
            // It names what nobody is to know.
            Note::Change(_) if self.disguise.is_some() => Ok(()),
            Note::Change(mut change) => {
                change.at_ns = change.at_ns.saturating_sub(self.began.as_nanos());
                self.write_block(&Block::Change(change))
            }
        }
    }

    fn write_entry(&mut self, entry: &Entry) -> io::Result<Room> {
        // What an entry may take, and what has yet to be written of those before.
        let waiting = (self.done.len() + self.requests.len()) as u64 * 32;
        if self.written.bytes + waiting + 128 > self.most {
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
            self.missing += self.in_flight.drain().count() as u64;
        }
    }

    fn arrived(&mut self, at: Instant, mut arrival: Arrival) -> io::Result<()> {
        let time = self.since_began(at);
        if let Some(before) = self.commands.replace(arrival.number) {
            self.missing += u64::from(arrival.number.wrapping_sub(before) - 1);
        }
        self.write_missing(time)?;
        let Some(connection) = self.connections.get_mut(&arrival.ioc) else { return Ok(()) };
        let is_one_read = connection.came.replace(at) == Some(at);
        let (number, after) = (connection.number, connection.replies);
        arrival.offset += connection.place * SECTOR;
        if let Some(disguise) = &self.disguise {
            arrival.offset = disguise.offsets.offset(arrival.offset);
        }
        let action = code::QUEUE | (kind_of(&arrival) | category::QUEUE) << 16;
        let sequence = self.command(time, &arrival, (number, action, 0))?;
        let (connection, time) = (number, self.last);
        let pending = Pending { sequence, arrival, connection, after, time, is_one_read };
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
        // Those that came before are nobody's here.
        let Some(connection) = self.connections.get(&io.ioc) else { return Ok(()) };
        let sector = (io.sector.0 - connection.first.0) + connection.place;
        let pid = connection.number;
        let kind = category_of(io.op, BioFlags::empty(), false);
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
            let is_no_device = arrival.op == Op::Flush || arrival.len == 0 || error != 0;
            if is_no_device || self.disguise.is_some() {
                let action = code::COMPLETE | (kind_of(&arrival) | category::COMPLETE) << 16;
                self.command(time, &arrival, (pending.connection, action, error))?;
            }
            self.written.requests += 1;
            self.requests.push(recorded(&pending, error, time));
            if let Some(connection) = self.connections.get_mut(&arrival.ioc) {
                connection.replies = connection.replies.saturating_add(1);
            }
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
        let requests = std::mem::take(&mut self.requests);
        if requests.is_empty() { Ok(()) } else { self.write_block(&Block::Requests(requests)) }
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

fn recorded(pending: &Pending, error: u16, time: u64) -> RecordedRequest {
    let arrival = &pending.arrival;
    let (within, len) = (arrival.offset % SECTOR, arrival.len);
    let is_whole = within == 0 && u64::from(len).is_multiple_of(SECTOR);
    let refuses = [Errno::INVAL, Errno::OPNOTSUPP, Errno::SHUTDOWN];
    let is_refused = refuses.iter().any(|errno| errno.raw_os_error() == i32::from(error));
    let flags = [
        (pending.is_one_read, RequestFlags::ONE_READ),
        (!is_whole, RequestFlags::PARTS_OF_SECTORS),
        (is_refused, RequestFlags::REFUSED),
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
