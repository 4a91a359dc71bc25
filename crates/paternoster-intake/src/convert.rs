//! Writes the requests of a trace in another format.
//!
//! | target | has | leaves out |
//! |---|---|---|
//! | csv | all: this crate reads it again as it was | – |
//! | blktrace | arrival, dispatch, completion; a process a context | parts of sectors, long names |
//! | with a sidecar | those, too | – |
//! | iolog3 | arrival in whole µs; a file a context | dispatch, completion, flags |

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::str::FromStr;

use paternoster::{BioFlags, Op};
use paternoster_trace::blktrace::{
    DEVICE, LAST_PROCESS, Record, SECTOR, category, category_of, code, process_note,
};
use paternoster_trace::sidecar::{Block, Meta, Party, RecordedRequest, RequestFlags, Writer};

use crate::iolog::{IoOp, MAX_BYTES, MAX_TRIM};
use crate::request::{ContextId, Request};

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// blktrace's, version 7, one file.
    Blktrace,
    /// fio's `read_iolog`, version 3.
    Iolog3,
    /// CSV, with all that is known of a request.
    Csv,
}

impl Target {
    const ALL: [Self; 3] = [Self::Blktrace, Self::Iolog3, Self::Csv];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blktrace => "blktrace",
            Self::Iolog3 => "iolog3",
            Self::Csv => "csv",
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names: Vec<_> = Self::ALL.into_iter().map(Self::name).collect();
        let known = Self::ALL.into_iter().find(|target| target.name() == name);
        known.ok_or_else(|| format!("one of {} is allowed", names.join(", ")))
    }
}

/// Writes requests, which come in the order of their arrival.
pub struct Converter<'a, W: Write> {
    out: W,
    form: Form<'a>,
}

enum Form<'a> {
    Csv,
    Iolog3(Files),
    Blktrace(Box<Events<'a>>),
}

impl<'a, W: Write> Converter<'a, W> {
    /// Writes in that format.
    pub fn new(target: Target, mut out: W) -> io::Result<Self> {
        let form = match target {
            Target::Csv => {
                let names = "time:ns,context,rwbs,offset:bytes,size:bytes,dispatched:ns,\
                             completed:ns,error";
                writeln!(out, "{names}")?;
                Form::Csv
            }
            Target::Iolog3 => {
                writeln!(out, "fio version 3 iolog")?;
                Form::Iolog3(Files::default())
            }
            Target::Blktrace => Form::Blktrace(Box::default()),
        };
        Ok(Self { out, form })
    }

    /// Has what blktrace's file cannot have written beside it, as the server does.
    pub fn with_sidecar(mut self, sidecar: &'a mut dyn Write) -> io::Result<Self> {
        if let Form::Blktrace(events) = &mut self.form {
            let mut sidecar = Writer::new(sidecar)?;
            sidecar.write(&Block::Meta(Meta { version: 1, ..Meta::default() }))?;
            events.sidecar = Some(sidecar);
        }
        Ok(self)
    }

    /// Writes a request of the context of that name.
    ///
    /// The error is of the kind `InvalidData` if the format cannot have such a request.
    pub fn add(&mut self, request: &Request, context: &str) -> io::Result<()> {
        match &mut self.form {
            Form::Csv => csv_row(&mut self.out, request, context),
            Form::Iolog3(files) => files.add(&mut self.out, request, context),
            Form::Blktrace(events) => events.add(&mut self.out, request, context),
        }
    }

    /// Writes what is still to be written.
    pub fn finish(mut self) -> io::Result<W> {
        match &mut self.form {
            Form::Csv => {}
            Form::Iolog3(files) => files.close(&mut self.out)?,
            Form::Blktrace(events) => {
                events.write_until(&mut self.out, u64::MAX)?;
                events.close_sidecar()?;
            }
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

fn refused(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn csv_row(out: &mut impl Write, request: &Request, context: &str) -> io::Result<()> {
    let Request { arrived, offset, .. } = *request;
    let len = if request.op == Op::Flush { 0 } else { request.len };
    write!(out, "{arrived},")?;
    // As RFC 4180 has it.
    if context.contains([',', '"', '\n', '\r']) {
        write!(out, "\"{}\"", context.replace('"', "\"\""))?;
    } else {
        write!(out, "{context}")?;
    }
    write!(out, ",{},{offset},{len}", rwbs(request))?;
    for time in [request.dispatched, request.completed] {
        match time {
            Some(time) => write!(out, ",{time}")?,
            None => write!(out, ",")?,
        }
    }
    let error = request.error.map(|errno| errno.to_string()).unwrap_or_default();
    writeln!(out, ",{error}")
}

/// The letters of blkparse.
fn rwbs(request: &Request) -> String {
    let is = |flag| request.flags.contains(flag);
    let op = match request.op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Flush => 'F',
        Op::WriteZeroes => 'Z',
        _ => 'D',
    };
    let letters = [
        (is(BioFlags::PREFLUSH) && request.op != Op::Flush, 'F'),
        (true, op),
        (is(BioFlags::FUA), 'F'),
        (request.ahead, 'A'),
        (is(BioFlags::SYNC), 'S'),
        (is(BioFlags::PRIO), 'M'),
    ];
    letters.into_iter().filter(|(is, _)| *is).map(|(_, letter)| letter).collect()
}

/// The files of a log of fio, which stand for contexts.
#[derive(Default)]
struct Files {
    names: BTreeMap<ContextId, String>,
    /// The last time, in us.
    at: u64,
}

impl Files {
    fn add(&mut self, out: &mut impl Write, request: &Request, context: &str) -> io::Result<()> {
        self.at = request.arrived / 1_000;
        let at = self.at;
        if let Entry::Vacant(new) = self.names.entry(request.context) {
            if context.is_empty() || context.contains(char::is_whitespace) {
                let what =
                    format!("context {context:?}: a log of fio has files whose names are words");
                return Err(refused(what));
            }
            writeln!(out, "{at} {context} add\n{at} {context} open")?;
            new.insert(context.to_owned());
        }
        let op = match request.op {
            Op::Read => IoOp::Read,
            Op::Write => IoOp::Write,
            Op::Flush => IoOp::Sync,
            _ => IoOp::Trim,
        };
        let Request { offset, len, .. } = *request;
        let most = if op == IoOp::Trim { MAX_TRIM } else { MAX_BYTES };
        if len > most {
            return Err(refused(format!("a {} of {len} bytes: {most} are allowed", op.name())));
        }
        writeln!(out, "{at} {context} {} {offset} {len}", op.name())
    }

    fn close(&self, out: &mut impl Write) -> io::Result<()> {
        self.names.values().try_for_each(|name| writeln!(out, "{} {name} close", self.at))
    }
}

/// How many requests are in a block of a sidecar.
const BLOCK: usize = 1_000;

/// Events by their times.
#[derive(Default)]
struct Events<'a> {
    /// Those that come after the last arrival, by their time and order.
    later: BTreeMap<(u64, u64), Later>,
    added: u64,
    sequence: u32,
    /// The process that stands for a context.
    processes: HashMap<ContextId, u32>,
    /// How many contexts are no processes.
    named: u32,
    sidecar: Option<Writer<&'a mut dyn Write>>,
    /// The numbers of requests that have not completed, by the order of their arrival.
    sequences: HashMap<u64, u32>,
    /// Those of the next block.
    completed: Vec<RecordedRequest>,
}

/// An event that is to come, of the request of that order.
struct Later {
    record: Record,
    of: u64,
    what: What,
}

/// What it is for the sidecar.
enum What {
    Arrival,
    Nothing,
    Completion(RecordedRequest),
}

impl Events<'_> {
    fn add(&mut self, out: &mut impl Write, request: &Request, context: &str) -> io::Result<()> {
        self.write_until(out, request.arrived)?;
        let pid = match self.processes.get(&request.context) {
            Some(&pid) => pid,
            None => self.new_process(out, request, context)?,
        };
        let len = if request.op == Op::Flush { 0 } else { request.len };
        let bytes = u32::try_from(len).map_err(|_| {
            refused(format!("a request of {len} bytes: blktrace has 32 bits for its length"))
        })?;
        let kind = category_of(request.op, request.flags, request.ahead);
        let record = |time, code, point, error| Record {
            sequence: 0,
            time,
            sector: request.offset / SECTOR,
            bytes,
            action: code | (kind | point) << 16,
            pid,
            device: DEVICE,
            error,
            follow: 0,
        };
        let of = self.added;
        let mut keep = |record: Record, what| {
            self.later.insert((record.time, self.added), Later { record, of, what });
            self.added += 1;
        };
        keep(record(request.arrived, code::QUEUE, category::QUEUE, 0), What::Arrival);
        if let Some(time) = request.dispatched {
            keep(record(time, code::ISSUE, category::ISSUE, 0), What::Nothing);
        }
        if let Some(time) = request.completed {
            let error = request.error.unwrap_or(0);
            let is_whole = (request.offset | len).is_multiple_of(SECTOR);
            let recorded = RecordedRequest {
                sequence: 0,
                reply: request.replied.map_or(time, |reply| reply.at),
                len: bytes,
                op: request.op,
                flags: if is_whole {
                    RequestFlags::empty()
                } else {
                    RequestFlags::PARTS_OF_SECTORS
                },
                error,
                after: request.replied.and_then(|reply| reply.after),
                within: u16::try_from(request.offset % SECTOR).expect("it is below 512"),
            };
            let what = What::Completion(recorded);
            keep(record(time, code::COMPLETE, category::COMPLETE, error), what);
        }
        Ok(())
    }

    /// Finds a process for a context: the one that it is the number of, or else a free one, with a
    /// note that names it.
    fn new_process(
        &mut self,
        out: &mut impl Write,
        request: &Request,
        context: &str,
    ) -> io::Result<u32> {
        let number = context.parse().ok().filter(|number: &u32| number.to_string() == context);
        let pid = if let Some(number) = number.filter(|number| *number <= LAST_PROCESS) {
            number
        } else {
            self.named += 1;
            let pid = LAST_PROCESS + self.named;
            out.write_all(&process_note(request.arrived, pid, context))?;
            pid
        };
        if let Some(sidecar) = &mut self.sidecar {
            let (name, group) = (context.to_owned(), "/".to_owned());
            let party = Party { connection: pid, name, group, ..Party::default() };
            sidecar.write(&Block::Names(vec![party]))?;
        }
        self.processes.insert(request.context, pid);
        Ok(pid)
    }

    /// Writes all events before that time.
    fn write_until(&mut self, out: &mut impl Write, time: u64) -> io::Result<()> {
        while let Some(first) = self.later.first_entry().filter(|first| first.key().0 < time) {
            let Later { mut record, of, what } = first.remove();
            self.sequence = self.sequence.wrapping_add(1);
            record.sequence = self.sequence;
            out.write_all(&record.to_bytes())?;
            match what {
                _ if self.sidecar.is_none() => {}
                What::Nothing => {}
                What::Arrival => drop(self.sequences.insert(of, self.sequence)),
                What::Completion(recorded) => {
                    let sequence = self.sequences.remove(&of).unwrap_or_default().into();
                    self.completed.push(RecordedRequest { sequence, ..recorded });
                    if self.completed.len() == BLOCK {
                        self.close_sidecar()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the block that is begun.
    fn close_sidecar(&mut self) -> io::Result<()> {
        let Some(sidecar) = &mut self.sidecar else { return Ok(()) };
        if !self.completed.is_empty() {
            sidecar.write(&Block::Requests(std::mem::take(&mut self.completed)))?;
        }
        sidecar.flush()
    }
}
