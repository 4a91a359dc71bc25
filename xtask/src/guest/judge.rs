//! Whether what was promised durable is on the device, at every mark of its log.
//!
//! A FLUSH promises what was *answered* before it was *sent*, on any connection; a command with FUA
//! promises itself when it is answered. Such a change is *kept*. At a mark a sector must hold what
//! one of the changes that were sent made of it, save those that were answered before a kept one
//! was sent. So a kept change may be missing only where a newer one is there in its place, or one
//! that was in flight at the same time.
//!
//! ```text
//!   a ──sent──answered                       b is kept by the flush, and a was answered before b
//!   b ────────────────sent──answered         was sent: the sector may hold b or c, not a
//!   flush ──────────────────────────sent──answered
//!   c ───────────────────────────────────sent───────  ▲ mark
//! ```
//!
//! After a power cut, what the device had not flushed may be there or not. So the device is judged
//! twice at each mark: with all of that lost, and with all of it there that the log has by then.
//! The log has a write with FUA before older ones that were not flushed then, whose replay would go
//! over it where they meet: our server sends no FUA to a disk, it syncs.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use anyhow::{Context as _, Result, bail, ensure};

use super::log::{Entry, SECTOR, Sent};
use super::record::{Ask, Change, Event, fill};

/// The mark that ends every log that is whole.
const LAST_MARK: &str = "dm-log-writes-end";

/// What a sector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Nothing but zeroes, as at the start.
    Zeroes,
    /// What the write of that number has written there.
    Of(u64),
    /// Anything else.
    Foreign,
}

/// A change that a sector may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    /// Of the request of this number; 0 for the start.
    number: u64,
    /// What is there then; none for anything.
    content: Option<Content>,
}

/// A change that was sent.
struct Sending {
    /// The line of the record at which it was.
    asked: usize,
    /// That at which it was answered.
    answered: Option<usize>,
    /// Its first sector and the one behind its last.
    sectors: std::ops::Range<usize>,
    /// Whether it is to be durable when it is answered.
    fua: bool,
    /// Whether it has to be there after a power cut.
    kept: bool,
}

/// What the clients were promised, line by line of their record.
struct Promises {
    sent: HashMap<u64, Sending>,
    /// Flushes without an answer, and the lines at which they were sent.
    flushes: HashMap<u64, usize>,
    /// What each sector may show.
    sectors: Vec<Vec<Shown>>,
}

/// The device after a power cut, as the log has it up to some entry.
struct Device<'a> {
    /// Each sector, with all lost that was not flushed.
    durable: Vec<Content>,
    /// What was not flushed, in its order.
    volatile: Vec<&'a Sent>,
}

/// What was looked at, and what was not there.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Marks at which the device was judged.
    pub(super) marks: u64,
    /// Marks at which something was missing.
    pub(super) bad_marks: u64,
    /// Flushes that reached the device.
    pub(super) flushes: u64,
    /// Writes of the device that have the data of several requests.
    pub(super) merged: u64,
    /// Changes that had to be there at the last mark.
    pub(super) kept: u64,
    /// Changes in flight, summed over the marks.
    pub(super) in_flight: u64,
    /// Changes that were answered before one that was sent earlier.
    pub(super) overtakings: u64,
    /// The first sectors that hold what they must not.
    pub(super) losses: Vec<String>,
}

/// Judges the log of a device of so many sectors by the record of its clients.
pub(super) fn judge(entries: &[Entry], events: &[Event], sectors: usize) -> Result<Verdict> {
    let last = entries.last() == Some(&Entry::Mark(LAST_MARK.to_owned()));
    ensure!(last, "the log does not end with the mark {LAST_MARK}: it is not whole");
    let mut verdict = Verdict::default();
    let mut device = Device { durable: vec![Content::Zeroes; sectors], volatile: vec![] };
    let mut promises = Promises::new(sectors);
    let mut rest = entries.iter();
    for (line, event) in events.iter().enumerate() {
        let Event::Mark(mark) = event else {
            promises.note(line, event, &mut verdict)?;
            continue;
        };
        let text = format!("mark-{mark}");
        loop {
            match rest.next().with_context(|| format!("the log lacks the mark {text}"))? {
                Entry::Sent(sent) => {
                    verdict.flushes += u64::from(sent.flush);
                    verdict.merged += u64::from(is_merged(sent));
                    device.take(sent)?;
                }
                Entry::Mark(found) if *found == text => break,
                Entry::Mark(found) => bail!("the log has the mark {found} before {text}"),
            }
        }
        verdict.marks += 1;
        verdict.in_flight += promises.in_flight();
        let before = verdict.losses.len();
        promises.check(&text, "dropped", &device.durable, &mut verdict.losses);
        promises.check(&text, "written", &device.with_volatile()?, &mut verdict.losses);
        verdict.bad_marks += u64::from(verdict.losses.len() > before);
    }
    verdict.kept = count(promises.sent.values(), |sending| sending.kept);
    Ok(verdict)
}

impl Promises {
    /// Nothing was sent yet, and every sector is zeroes.
    fn new(sectors: usize) -> Self {
        let start = Shown { number: 0, content: Some(Content::Zeroes) };
        Self { sent: HashMap::new(), flushes: HashMap::new(), sectors: vec![vec![start]; sectors] }
    }

    /// Takes a line of the record that is no mark.
    fn note(&mut self, line: usize, event: &Event, verdict: &mut Verdict) -> Result<()> {
        match *event {
            Event::Mark(_) => {}
            Event::Asked(number, Ask::Flush) => {
                self.flushes.insert(number, line);
            }
            Event::Asked(number, Ask::Change { how, sector, sectors, fua }) => {
                let content = match how {
                    Change::Write => Some(Content::Of(number)),
                    Change::Zero => Some(Content::Zeroes),
                    Change::Trim => None,
                };
                let sectors = range(sector, sectors, self.sectors.len())?;
                for sector in &mut self.sectors[sectors.clone()] {
                    sector.push(Shown { number, content });
                }
                let sending = Sending { asked: line, answered: None, sectors, fua, kept: false };
                self.sent.insert(number, sending);
            }
            Event::Answered(number) => {
                let flush = self.flushes.remove(&number);
                if let Some(asked) = flush {
                    self.keep_answered_before(asked);
                } else {
                    verdict.overtakings += u64::from(self.answer(number, line)?);
                }
            }
        }
        Ok(())
    }

    /// A change was answered. Returns whether before one that was sent earlier.
    fn answer(&mut self, number: u64, line: usize) -> Result<bool> {
        let sending = self.sent.get_mut(&number).context("an answer to nothing")?;
        sending.answered = Some(line);
        let (asked, fua) = (sending.asked, sending.fua);
        if fua {
            self.keep(number);
        }
        let waits = |other: &Sending| other.answered.is_none() && other.asked < asked;
        Ok(self.sent.values().any(waits))
    }

    /// A flush that was sent at that line was answered.
    fn keep_answered_before(&mut self, asked: usize) {
        let is_covered = |sending: &Sending| sending.answered.is_some_and(|line| line < asked);
        let covered = self.sent.iter().filter(|(_, sending)| !sending.kept && is_covered(sending));
        let covered: Vec<u64> = covered.map(|(number, _)| *number).collect();
        for number in covered {
            self.keep(number);
        }
    }

    /// A change has to be there from now on: what was answered before it was sent cannot be.
    fn keep(&mut self, number: u64) {
        let sending = self.sent.get_mut(&number).expect("the caller has looked it up");
        sending.kept = true;
        let (asked, sectors) = (sending.asked, sending.sectors.clone());
        let is_newer = |shown: &Shown| match self.sent.get(&shown.number) {
            None => false,
            Some(other) => other.answered.is_none_or(|line| line > asked),
        };
        self.sectors[sectors].iter_mut().for_each(|sector| sector.retain(is_newer));
    }

    /// How many changes have no answer yet.
    fn in_flight(&self) -> u64 {
        count(self.sent.values(), |sending| sending.answered.is_none())
    }

    /// Notes each sector that holds what it must not, where what was not flushed was dropped or
    /// written.
    fn check(&self, mark: &str, volatile: &str, device: &[Content], losses: &mut Vec<String>) {
        for (sector, (found, allowed)) in device.iter().zip(&self.sectors).enumerate() {
            let may_be = |shown: &Shown| shown.content.is_none_or(|content| content == *found);
            if !allowed.iter().any(may_be) {
                let allowed: Vec<u64> = allowed.iter().map(|shown| shown.number).collect();
                losses.push(format!(
                    "{mark}, with what was not flushed {volatile}: sector {sector} holds {found}; \
                     what may be there is of {allowed:?} (0: the start)"
                ));
            }
        }
    }
}

impl<'a> Device<'a> {
    /// Takes the next entry of the log.
    fn take(&mut self, sent: &'a Sent) -> Result<()> {
        if sent.flush {
            for earlier in std::mem::take(&mut self.volatile) {
                write(&mut self.durable, earlier)?;
            }
        }
        if sent.fua {
            return write(&mut self.durable, sent);
        }
        if sent.sectors > 0 {
            self.volatile.push(sent);
        }
        Ok(())
    }

    /// The sectors with all there that was not flushed.
    fn with_volatile(&self) -> Result<Vec<Content>> {
        let mut sectors = self.durable.clone();
        self.volatile.iter().try_for_each(|sent| write(&mut sectors, sent))?;
        Ok(sectors)
    }
}

/// Writes the data of an entry to the sectors; a discard leaves zeroes.
fn write(device: &mut [Content], sent: &Sent) -> Result<()> {
    let sectors = range(sent.sector, sent.sectors, device.len())?;
    if sent.discard {
        device[sectors].fill(Content::Zeroes);
        return Ok(());
    }
    for (sector, bytes) in sectors.zip(sent.data.chunks_exact(SECTOR)) {
        device[sector] = Content::of(bytes, sector);
    }
    Ok(())
}

/// How many are so.
fn count<'a>(sendings: impl Iterator<Item = &'a Sending>, is_so: impl Fn(&Sending) -> bool) -> u64 {
    sendings.map(|sending| u64::from(is_so(sending))).sum()
}

/// Whether the data is that of several requests.
fn is_merged(sent: &Sent) -> bool {
    let mut numbers = sent.data.chunks_exact(SECTOR).map(|sector| sector.first_chunk::<8>());
    let first = numbers.next();
    numbers.any(|number| Some(number) != first)
}

/// The sectors, which must be on the device.
fn range(sector: u64, sectors: u64, device: usize) -> Result<std::ops::Range<usize>> {
    let (first, len) = (usize::try_from(sector)?, usize::try_from(sectors)?);
    let end = first.saturating_add(len);
    ensure!(end <= device, "sectors {first} to {end} of a device of {device}");
    Ok(first..end)
}

impl Content {
    /// What these bytes of a sector are.
    fn of(bytes: &[u8], sector: usize) -> Self {
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::Zeroes;
        }
        let number = bytes.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        if bytes == fill(number, sector as u64) { Self::Of(number) } else { Self::Foreign }
    }
}

impl Display for Content {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeroes => write!(f, "zeroes"),
            Self::Of(number) => write!(f, "what request {number} wrote"),
            Self::Foreign => write!(f, "what nobody wrote there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Event = Event::Asked(90, Ask::Flush);

    fn write_of(number: u64, sector: u64, fua: bool) -> Event {
        Event::Asked(number, Ask::Change { how: Change::Write, sector, sectors: 1, fua })
    }

    fn entry(number: u64, sector: u64) -> Sent {
        let data = fill(number, sector).to_vec();
        Sent { sector, sectors: 1, data, ..Sent::default() }
    }

    fn flush() -> Entry {
        Entry::Sent(Sent { flush: true, ..Sent::default() })
    }

    fn mark(text: &str) -> Entry {
        Entry::Mark(text.to_owned())
    }

    /// How many sectors are lost, of a log that these entries begin and its end closes.
    fn losses(entries: &[Entry], events: &[Event]) -> usize {
        let log = [entries, &[mark(LAST_MARK)]].concat();
        judge(&log, events, 4).expect("log and record belong together").losses.len()
    }

    #[test]
    fn write_that_was_flushed_is_missed_where_the_flush_is() {
        let events = [write_of(1, 0, false), Event::Answered(1), FLUSH, Event::Answered(90)];
        let events = [&events[..], &[Event::Mark(1)]].concat();
        let write = Entry::Sent(entry(1, 0));
        assert_eq!(losses(&[write.clone(), flush(), mark("mark-1")], &events), 0);
        assert_eq!(losses(&[write.clone(), mark("mark-1")], &events), 1, "without the flush");
        assert_eq!(losses(&[flush(), write, mark("mark-1")], &events), 1, "flushed too early");
        assert_eq!(losses(&[flush(), mark("mark-1")], &events), 2, "without the write");
    }

    #[test]
    fn fua_is_missed_where_its_flag_is() {
        let events = [write_of(1, 0, true), Event::Answered(1), Event::Mark(1)];
        let durable = Entry::Sent(Sent { fua: true, ..entry(1, 0) });
        assert_eq!(losses(&[durable, mark("mark-1")], &events), 0);
        assert_eq!(losses(&[Entry::Sent(entry(1, 0)), mark("mark-1")], &events), 1);
    }

    #[test]
    fn flush_covers_what_was_answered_before_it_was_sent_and_no_more() {
        let late = [write_of(1, 0, false), FLUSH, Event::Answered(1), Event::Answered(90)];
        let late = [&late[..], &[Event::Mark(1)]].concat();
        assert_eq!(losses(&[flush(), mark("mark-1")], &late), 0);
        let never = [write_of(1, 0, false), FLUSH, Event::Answered(90), Event::Mark(1)];
        assert_eq!(losses(&[flush(), mark("mark-1")], &never), 0);
    }

    #[test]
    fn older_write_over_a_kept_one_is_a_loss_and_one_in_flight_with_it_is_not() {
        let after = [write_of(1, 0, false), Event::Answered(1), write_of(2, 0, true)];
        let end = [Event::Answered(2), Event::Mark(1)];
        let durable = |number| Entry::Sent(Sent { fua: true, ..entry(number, 0) });
        let log = [durable(2), durable(1), mark("mark-1")];
        assert_eq!(losses(&log, &[&after[..], &end].concat()), 2, "dropped and written");
        let beside = [write_of(1, 0, false), write_of(2, 0, true), Event::Answered(1)];
        assert_eq!(losses(&log, &[&beside[..], &end].concat()), 0);
    }

    #[test]
    fn foreign_data_is_a_loss_where_nothing_was_promised_too() {
        let log = [Entry::Sent(entry(7, 1)), flush(), mark("mark-1")];
        assert_eq!(losses(&log, &[Event::Mark(1)]), 2);
    }

    #[test]
    fn log_without_a_mark_or_its_end_is_refused() {
        let refused = |log: &[Entry]| judge(log, &[Event::Mark(1)], 4).is_err();
        assert!(refused(&[mark(LAST_MARK)]));
        assert!(refused(&[mark("mark-1")]));
        assert!(refused(&[mark("mark-2"), mark("mark-1"), mark(LAST_MARK)]));
    }
}
