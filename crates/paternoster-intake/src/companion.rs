//! What a recording of the server has beside blktrace's file: which replies its clients had, and
//! who they are.
//!
//! Requests stand there in the order of their replies, and come here in the order of their
//! arrivals: those that are read before their turn are kept.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use paternoster_trace::sidecar::{
    Block, Change, Lost, Meta, Party, Reader, RecordedRequest, RequestFlags, SidecarError,
};

use crate::error::{Error, Place};
use crate::request::{Replied, Request};

/// How many requests are kept whose turn has not come.
const AHEAD: usize = 500_000;

/// What a recording says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// What recorded, under which scheduler, on what.
    pub meta: Meta,
    /// Connections by their numbers.
    pub parties: BTreeMap<u32, Party>,
    /// What was set meanwhile.
    pub changes: Vec<Change>,
    /// Requests that were left out.
    pub lost: Vec<Lost>,
}

/// The file, as far as it was read.
pub(crate) struct Companion {
    reader: Reader<Box<dyn BufRead + Send>>,
    /// By the lower half of the sequence of their Q, as blktrace has it.
    ahead: HashMap<u32, RecordedRequest>,
    pub(crate) recorded: Recorded,
    /// When requests began, in ns since the recording did.
    begin: u64,
    has_ended: bool,
}

impl Companion {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>) -> Result<Self, Error> {
        Ok(Self {
            reader: Reader::new(bytes).map_err(of_sidecar)?,
            ahead: HashMap::new(),
            recorded: Recorded::default(),
            begin: 0,
            has_ended: false,
        })
    }

    /// The same, whose times are since that moment of the recording, as those of requests are.
    pub(crate) fn since(self, begin: u64) -> Self {
        Self { begin, ..self }
    }

    /// Whether the request of that Q had its reply by then, or will have none.
    pub(crate) fn has_answered(&mut self, sequence: u32, time: u64) -> Result<bool, Error> {
        let is_there = self.has(sequence)?;
        let found = self.ahead.get(&sequence).filter(|_| is_there);
        Ok(found.is_some_and(|found| {
            let has_none = found.flags.contains(RequestFlags::NO_REPLY);
            has_none || found.reply.saturating_sub(self.begin) <= time
        }))
    }

    /// Whether it has the request of that Q. Reads on until it is known, or too much is kept.
    fn has(&mut self, sequence: u32) -> Result<bool, Error> {
        while !self.ahead.contains_key(&sequence) {
            if self.ahead.len() >= AHEAD || !self.read()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds to a request what the file has of it, by the sequence of its Q. Returns whether it has
    /// something.
    pub(crate) fn complete(&mut self, sequence: u32, request: &mut Request) -> Result<bool, Error> {
        if !self.has(sequence)? {
            return Ok(false);
        }
        let found = self.ahead.remove(&sequence).expect("it is there");
        request.op = found.op;
        request.len = found.len.into();
        request.offset += u64::from(found.within);
        request.error = Some(found.error).filter(|&errno| errno != 0);
        if found.flags.contains(RequestFlags::NO_REPLY) {
            request.completed = None;
            return Ok(true);
        }
        // No device was done with a flush, or with what was refused.
        let reply = found.reply.saturating_sub(self.begin);
        request.completed = request.completed.or(Some(reply));
        request.replied = Some(Replied { at: reply, after: found.after });
        Ok(true)
    }

    /// Reads it to its end.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        while self.read()? {
            self.ahead.clear();
        }
        Ok(())
    }

    /// Reads a block. False at the end.
    fn read(&mut self) -> Result<bool, Error> {
        if self.has_ended {
            return Ok(false);
        }
        let Some(block) = self.reader.next_block().map_err(of_sidecar)? else {
            self.has_ended = true;
            return Ok(false);
        };
        match block {
            Block::Meta(meta) => self.recorded.meta = meta,
            Block::Names(parties) => {
                let by_number = parties.into_iter().map(|party| (party.connection, party));
                self.recorded.parties.extend(by_number);
            }
            Block::Change(mut change) => {
                change.at_ns = change.at_ns.saturating_sub(self.begin);
                self.recorded.changes.push(change);
            }
            Block::Lost(mut lost) => {
                lost.from_ns = lost.from_ns.saturating_sub(self.begin);
                lost.until_ns = lost.until_ns.saturating_sub(self.begin);
                self.recorded.lost.push(lost);
            }
            Block::Requests(requests) => {
                let lower = |request: &RecordedRequest| (request.sequence & 0xffff_ffff) as u32;
                self.ahead.extend(requests.into_iter().map(|it| (lower(&it), it)));
            }
        }
        Ok(true)
    }
}

fn of_sidecar(error: SidecarError) -> Error {
    match error {
        SidecarError::Unreadable(error) => error.into(),
        other => Error::at(Place::File, format!("the sidecar: {other}")),
    }
}
