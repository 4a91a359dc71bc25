//! The server behind a disk is killed at each of its events: what was answered and flushed is not
//! lost, no old write comes over a newer one, and no flush calls durable what is not.

use bytes::Bytes;
use paternoster::{Nanos, SchedulerKind};
use paternoster_disk::{AfterReconnect, CommandOp, NbdBackend, NbdDialer, NbdOptions};
use paternoster_nbd::TransmissionFlags;

use crate::support::far_server::{Cache, FarServer};
use crate::support::front::{Answers, play_after};
use crate::support::random::Random;
use crate::support::{read, within_a_minute};

/// Blocks of the disk, and their bytes.
const BLOCKS: usize = 16;
const BLOCK: usize = 512;

/// Phases of a run, each of which begins when the one before is answered.
const PHASES: usize = 24;

/// What a command of a phase does: versions count up over the whole run.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write { block: usize, version: u8, fua: bool },
    Flush,
}

/// Phases of up to five commands, which write different blocks.
fn phases(seed: u64) -> Vec<Vec<Step>> {
    let mut random = Random::new(seed);
    let mut version = 0;
    let mut phase = || {
        let first = random.index(BLOCKS);
        let writes = (0..=random.index(4)).map(|index| {
            version += 1;
            let block = (first + index) % BLOCKS;
            Step::Write { block, version, fua: random.once_in(8) }
        });
        let mut steps: Vec<_> = writes.collect();
        if random.once_in(3) {
            steps.insert(random.index(steps.len() + 1), Step::Flush);
        }
        steps
    };
    (0..PHASES).map(|_| phase()).collect()
}

fn command(step: &Step) -> CommandOp {
    match *step {
        Step::Write { block, version, fua } => CommandOp::Write {
            offset: (block * BLOCK) as u64,
            data: Bytes::from(vec![version; BLOCK]),
            fua,
        },
        Step::Flush => CommandOp::Flush,
    }
}

/// What a run has shown.
struct Run {
    /// Events of the server.
    events: u64,
    phases: Vec<Vec<Step>>,
    answers: Vec<Answers>,
    /// How often the server had been killed when each phase began, and at the end.
    deaths: Vec<u64>,
    /// What each block reads as at the end.
    read: Vec<u8>,
    /// What it has when the server has lost its cache then.
    durable: Vec<u8>,
}

fn run(seed: u64, killed_at: Option<u64>, cache: Cache, after_reconnect: AfterReconnect) -> Run {
    let server =
        FarServer::new(BLOCKS * BLOCK, TransmissionFlags::all() - TransmissionFlags::READ_ONLY, 1);
    server.set(|state| state.killed_at = killed_at.map(|at| (at, cache)));
    let phases = phases(seed);
    let mut commands: Vec<Vec<_>> =
        phases.iter().map(|phase| phase.iter().map(command).collect()).collect();
    let all = u32::try_from(BLOCKS * BLOCK).expect("it is small");
    commands.push(vec![read(0, all)]);
    let options = NbdOptions {
        uri: server.uri(),
        connections: 3,
        reconnect: Nanos::from_millis(30_000),
        resends: 10,
        answer_timeout: Nanos::from_millis(30_000),
        after_reconnect,
    };
    let dialer = NbdDialer::new().expect("a thread");
    let backend = Box::new(NbdBackend::open(options, &dialer).expect("it is there"));
    let kinds = SchedulerKind::ALL;
    let kind = kinds[usize::try_from(killed_at.unwrap_or(0)).expect("few") % kinds.len()];
    let mut deaths = Vec::new();
    let (mut answers, _) =
        play_after(backend, kind, commands, |_| deaths.push(server.state().deaths));
    let bytes = answers.pop().expect("it is read").remove(0).expect("it can be read");
    let blocks = |bytes: &[u8]| bytes.chunks(BLOCK).map(|block| block[0]).collect::<Vec<_>>();
    let state = server.state();
    Run {
        events: state.events,
        phases,
        answers,
        deaths,
        read: blocks(&bytes),
        durable: blocks(&state.durable),
    }
}

/// What was answered in a run; no flush may have been while something was in doubt.
fn judge(run: &Run, after_reconnect: AfterReconnect, context: &str) -> Judge {
    let mut judge = Judge::default();
    for (number, steps) in run.phases.iter().enumerate() {
        let before = judge.blocks;
        judge.phase(steps, &run.answers[number], context);
        if run.deaths[number + 1] > run.deaths[number] {
            judge.died(&before, after_reconnect);
        }
    }
    if run.deaths[PHASES + 1] > run.deaths[PHASES] {
        // While all was read.
        judge.died(&judge.blocks.clone(), after_reconnect);
    }
    judge
}

/// What has to be so of each block, and of flushes.
fn check(run: &Run, cache: Cache, after_reconnect: AfterReconnect, context: &str) {
    let judge = judge(run, after_reconnect, context);
    let is_lost = cache == Cache::Lost;
    for (block, of) in judge.blocks.iter().enumerate() {
        let (durable, read) = (run.durable[block], run.read[block]);
        assert!(durable >= of.flushed, "{context}: block {block}: {of:?}, durable is {durable}");
        assert!(durable <= of.written && read <= of.written, "{context}: block {block}");
        let is_safe = !is_lost || of.answered_since_death || run.deaths[PHASES + 1] == 0;
        if is_safe {
            assert!(read >= of.answered, "{context}: block {block}: {of:?}, and {read} is read");
        }
        assert!(read >= of.flushed, "{context}: block {block}: {of:?}, and {read} is read");
    }
    if after_reconnect == AfterReconnect::Trust {
        assert_eq!(judge.failed, 0, "{context}: the cache survived");
    }
}

#[derive(Debug, Default)]
struct Judge {
    blocks: [Block; BLOCKS],
    /// Whether something was in doubt before this phase.
    doubt: bool,
    /// Commands that got an error.
    failed: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// The newest version that was asked for, that was answered, and that was called durable.
    written: u8,
    answered: u8,
    flushed: u8,
    /// The newest that a sync may have covered, be it that of another block's FUA.
    covered: u8,
    answered_since_death: bool,
}

impl Judge {
    fn phase(&mut self, steps: &[Step], answers: &Answers, context: &str) {
        let before = self.blocks;
        for (step, answer) in steps.iter().zip(answers) {
            self.failed += usize::from(answer.is_err());
            match *step {
                Step::Write { block, version, fua } => {
                    let of = &mut self.blocks[block];
                    of.written = version;
                    if answer.is_ok() {
                        of.answered = version;
                        of.answered_since_death = true;
                        if fua {
                            assert!(!self.doubt, "{context}: FUA is answered in doubt");
                            of.flushed = version;
                        }
                    }
                }
                Step::Flush if answer.is_ok() => {
                    assert!(!self.doubt, "{context}: FLUSH is answered in doubt");
                    for (of, before) in self.blocks.iter_mut().zip(&before) {
                        of.flushed = of.flushed.max(before.answered);
                    }
                }
                Step::Flush => {}
            }
        }
        let syncs = |step: &Step| matches!(step, Step::Flush | Step::Write { fua: true, .. });
        if steps.iter().zip(answers).any(|(step, answer)| syncs(step) && answer.is_ok()) {
            for of in &mut self.blocks {
                of.covered = of.answered;
            }
        }
    }

    /// The server was killed in the phase that is over. What had been answered before that phase
    /// began and was not flushed is in doubt; of what was answered in it nobody here knows when.
    fn died(&mut self, before: &[Block; BLOCKS], after_reconnect: AfterReconnect) {
        for (of, before) in self.blocks.iter_mut().zip(before) {
            of.answered_since_death = false;
            self.doubt |= after_reconnect == AfterReconnect::Doubt && before.answered > of.covered;
        }
    }
}

/// A run with each event as the last.
fn kill_at_each(seed: u64, cache: Cache, after_reconnect: AfterReconnect) {
    let whole = run(seed, None, cache, after_reconnect);
    check(&whole, cache, after_reconnect, "not killed");
    assert!(whole.events > 100, "{} events", whole.events);
    assert!(whole.answers.iter().flatten().all(Result::is_ok), "nothing fails by itself");
    let (mut with_errors, mut killed) = (0, 0);
    for event in 0..whole.events {
        let run = run(seed, Some(event), cache, after_reconnect);
        check(&run, cache, after_reconnect, &format!("seed {seed}, killed at event {event}"));
        killed += run.deaths[PHASES + 1];
        with_errors += u64::from(run.answers.iter().flatten().any(Result::is_err));
    }
    // How many requests merge, and so the number of events, depends on time.
    assert!(killed * 10 >= whole.events * 9, "{killed} of {} runs were killed", whole.events);
    let is_expected = after_reconnect == AfterReconnect::Doubt;
    assert_eq!(with_errors > 0, is_expected, "{with_errors} of {} runs had errors", whole.events);
}

#[test]
fn what_was_flushed_survives_a_server_that_loses_its_cache_at_any_event() {
    within_a_minute(|| kill_at_each(1, Cache::Lost, AfterReconnect::Doubt));
}

#[test]
fn what_was_answered_survives_a_server_whose_cache_does() {
    within_a_minute(|| kill_at_each(2, Cache::Kept, AfterReconnect::Trust));
}

#[test]
fn server_that_is_trusted_and_loses_its_cache_is_found_out() {
    within_a_minute(|| {
        let (cache, after_reconnect) = (Cache::Lost, AfterReconnect::Trust);
        let whole = run(3, None, cache, after_reconnect);
        let found = (0..whole.events).step_by(4).filter(|&event| {
            let run = run(3, Some(event), cache, after_reconnect);
            let judge = judge(&run, after_reconnect, "trusted");
            let mut blocks = judge.blocks.iter().zip(&run.durable);
            blocks.any(|(of, durable)| *durable < of.flushed)
        });
        assert!(found.count() > 0, "what was called durable is lost");
    });
}
