//! Recordings of disks, each written by a thread of its own.
//!
//! The thread asks the disk's owner for what is new, writes it, and waits a little. Nothing waits
//! for it: neither the owner, nor clients. It ends when it is told to, when its time is over, when
//! its files are as long as they may be, or when they cannot be written.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::scribe::{Room, Scribe, Written};
use super::{Begin, From, Part, Wanted};
use crate::control::PATIENCE;
use crate::ctl::{RecordError, RecordQuestion, RecordingStatus};
use crate::following::be_nice;
use crate::messages::OwnerHandle;
use crate::sandbox;

/// How long a writer waits for more.
const INTERVAL: Duration = Duration::from_millis(50);

/// How many entries the owner copies at once: 256 KiB.
const ENTRIES: usize = 4096;

/// The newest recording of each disk.
#[derive(Debug, Default)]
pub(crate) struct Recordings(Mutex<BTreeMap<String, Recording>>);

#[derive(Debug)]
struct Recording {
    status: Arc<Mutex<RecordingStatus>>,
    /// Ends it, by being sent something or dropped.
    stop: mpsc::Sender<()>,
    /// Says by its end that all is written.
    written: mpsc::Receiver<()>,
}

/// Writes a recording.
struct Recorder {
    owner: OwnerHandle,
    status: Arc<Mutex<RecordingStatus>>,
    scribe: Scribe<BufWriter<File>>,
    stop: mpsc::Receiver<()>,
    ends: Option<Instant>,
    from: From,
    /// Why it is to end, once that is so.
    ending: Option<Why>,
    /// The number of the first entry that is not wanted, once that is known.
    until: Option<u64>,
}

/// Why a recording has ended well.
#[derive(Clone, Copy, Debug)]
enum Why {
    Stopped,
    TimeOver,
    Full,
    NothingLeft,
    DiskEnded,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Self::Stopped => "it was stopped",
            Self::TimeOver => "its time is over",
            Self::Full => "its files are as long as they may be",
            Self::NothingLeft => "it has all that the disk knew",
            Self::DiskEnded => "the disk has ended",
        }
    }
}

impl Recordings {
    /// Begins to record the disk of that owner.
    pub(crate) fn start(
        &self,
        owner: &OwnerHandle,
        question: &RecordQuestion,
    ) -> Result<RecordingStatus, RecordError> {
        let (max, span) = question.bounds()?;
        let paths = question.files()?;
        let disk = || question.disk.clone();
        // Until it has begun, as what ended before must have told the owner so. A disk that does
        // not answer keeps the others as long.
        let mut all = self.all();
        if let Some(before) = all.get(&question.disk) {
            let status = before.status();
            if status.runs {
                return Err(RecordError::Busy { disk: disk(), out: status.out.clone() });
            }
        }
        let wanted = if question.last { Wanted::UntilNow } else { Wanted::FromNow };
        let answer = owner.begin_journal(wanted).recv_timeout(PATIENCE);
        let begin = answer.map_err(|_| RecordError::Unanswered { disk: disk() })?;
        let begin = begin.ok_or_else(|| RecordError::NoRing { disk: disk() })?;
        let made = make(&paths).and_then(|files| {
            let bounds = (question.anonymous, max);
            let scribe = scribe(files, begin, bounds);
            let (scribe, from, until) = scribe.map_err(|error| unmade(&paths, &error))?;
            let out = question.out.clone();
            let status = RecordingStatus { disk: disk(), out, runs: true, ..Default::default() };
            let ends = span.map(|span| Instant::now() + span);
            let started = start(owner.clone(), status, (scribe, from), (ends, until));
            started.inspect_err(|_| paths.iter().for_each(remove))
        });
        match made {
            Ok(recording) => {
                let status = recording.status().clone();
                all.insert(disk(), recording);
                Ok(status)
            }
            Err(error) => {
                owner.end_journal();
                Err(error)
            }
        }
    }

    /// Has the recording of a disk end.
    pub(crate) fn stop(&self, disk: &str) -> Result<RecordingStatus, RecordError> {
        let not_recorded = || RecordError::NotRecorded { disk: disk.to_owned() };
        let all = self.all();
        let running = all.get(disk).filter(|recording| recording.status().runs);
        let recording = running.ok_or_else(not_recorded)?;
        if recording.end(PATIENCE) {
            Ok(recording.status().clone())
        } else {
            Err(RecordError::Unanswered { disk: disk.to_owned() })
        }
    }

    /// Has all of them end.
    pub(crate) fn end(&self) {
        let all = std::mem::take(&mut *self.all());
        for recording in all.values() {
            // It may have ended already.
            let _ = recording.stop.send(());
        }
        let begin = Instant::now();
        for recording in all.values() {
            recording.end(PATIENCE.saturating_sub(begin.elapsed()));
        }
    }

    /// How far they are.
    pub(crate) fn status(&self) -> Vec<RecordingStatus> {
        self.all().values().map(|recording| recording.status().clone()).collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Recording>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    fn status(&self) -> MutexGuard<'_, RecordingStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it end, and waits so long for that. Returns whether it has.
    fn end(&self, patience: Duration) -> bool {
        // It may have ended already.
        let _ = self.stop.send(());
        self.written.recv_timeout(patience) != Err(mpsc::RecvTimeoutError::Timeout)
    }
}

/// Makes both files, or none.
fn make(paths: &[PathBuf; 2]) -> Result<[BufWriter<File>; 2], RecordError> {
    // A link is not followed, and nothing is overwritten.
    let open = |path: &PathBuf| {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        made.map(BufWriter::new).map_err(|error| RecordError::File {
            path: path.clone(),
            why: sandbox::explained(&error),
        })
    };
    let [first, second] = paths;
    let events = open(first)?;
    match open(second) {
        Ok(sidecar) => Ok([events, sidecar]),
        Err(error) => {
            remove(first);
            Err(error)
        }
    }
}

/// Removes files that were just made; the error that this is told with.
fn unmade(paths: &[PathBuf; 2], error: &io::Error) -> RecordError {
    paths.iter().for_each(remove);
    RecordError::File { path: paths[0].clone(), why: error.to_string() }
}

fn remove(path: &PathBuf) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!("cannot remove {path:?}: {error}");
    }
}

type Begun = (Scribe<BufWriter<File>>, From, Option<u64>);

/// Begins the files.
fn scribe(files: [BufWriter<File>; 2], begin: Begin, bounds: (bool, u64)) -> io::Result<Begun> {
    let Begin { meta, clients, start } = begin;
    let mut scribe = Scribe::new(files, meta, &start, bounds)?;
    for (ioc, client) in clients {
        scribe.add(ioc, client);
    }
    Ok((scribe, start.from, start.until))
}

/// Starts the thread.
fn start(
    owner: OwnerHandle,
    status: RecordingStatus,
    (scribe, from): (Scribe<BufWriter<File>>, From),
    (ends, until): (Option<Instant>, Option<u64>),
) -> Result<Recording, RecordError> {
    let status = Arc::new(Mutex::new(status));
    let (stop, stopped) = mpsc::channel();
    let (writing, written) = mpsc::channel();
    let recording = Recording { status: Arc::clone(&status), stop, written };
    let ending = until.map(|_| Why::NothingLeft);
    let mut recorder = Recorder { owner, status, scribe, stop: stopped, ends, from, ending, until };
    let thread = thread::Builder::new().name("record".to_owned()).spawn(move || {
        be_nice();
        let why = recorder.run().and_then(|why| recorder.scribe.finish().map(|()| why));
        let why = why.map_err(|error| format!("cannot write: {error}"));
        recorder.over(why);
        drop(writing);
    });
    thread.map(|_| recording).map_err(|error| RecordError::NoThread { why: error.to_string() })
}

impl Recorder {
    /// Writes until it ends: why that was.
    fn run(&mut self) -> io::Result<Why> {
        let mut room = Vec::with_capacity(ENTRIES);
        loop {
            // However long it takes: whoever stops it does not wait for ever.
            let Ok(part) = self.owner.take_journal(self.from, room).recv() else {
                return Ok(Why::DiskEnded);
            };
            if let Some(why) = self.write(&part)? {
                return Ok(why);
            }
            room = part.entries;
        }
    }

    /// Writes a part, and waits if there is no more. Returns why it ends, if it does.
    fn write(&mut self, part: &Part) -> io::Result<Option<Why>> {
        let Part { then, next, .. } = *part;
        let room = self.scribe.write(part)?;
        self.from = then;
        self.tell(|_| {});
        if room == Room::Full {
            return Ok(Some(Why::Full));
        }
        let Some(why) = self.ending else {
            let wait = if then.entry < next { Duration::ZERO } else { INTERVAL };
            self.ending = self.is_to_end(wait);
            return Ok(None);
        };
        // All that had happened by the first look after that.
        let until = *self.until.get_or_insert(next);
        Ok((then.entry >= until).then_some(why))
    }

    /// Whether it is to end, by the end of a wait.
    fn is_to_end(&self, wait: Duration) -> Option<Why> {
        match self.stop.recv_timeout(wait) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let is_over = self.ends.is_some_and(|ends| Instant::now() >= ends);
                is_over.then_some(Why::TimeOver)
            }
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => Some(Why::Stopped),
        }
    }

    /// Says how far it is.
    fn tell(&self, also: impl FnOnce(&mut RecordingStatus)) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let Written { requests, lost, bytes, until } = self.scribe.written();
        (status.requests, status.lost) = (requests, lost);
        (status.bytes, status.span_ns) = (bytes, until);
        also(&mut status);
    }

    fn over(&self, why: Result<Why, String>) {
        self.owner.end_journal();
        self.tell(|status| {
            let RecordingStatus { disk, out, requests, lost, .. } = status;
            match &why {
                Ok(why) => {
                    let why = why.text();
                    tracing::info!(disk, out, requests, lost, "a recording has ended: {why}");
                }
                Err(why) => {
                    tracing::warn!(disk, out, requests, lost, "a recording has ended: {why}");
                }
            }
            status.runs = false;
            status.failed = why.is_err();
            status.ended = why.map_or_else(|why| why, |why| why.text().to_owned());
        });
    }
}
