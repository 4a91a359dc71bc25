//! Logs of I/O that are replayed over simple devices, against what can be worked out by hand.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::common::jobs::jobs_with_logs;
use crate::common::recorder::recorder;
use paternoster::{Nanos, SchedulerKind};
use paternoster_lab::fio::{DataDirection, ReadAt};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{
    JobRunError, Outcome, PageCacheParameters, Sinks, run_jobs, run_jobs_into,
};
use paternoster_model::{Command, Op};

/// The reads and writes that the device was given: when, in µs, what, and on which byte.
type Commands = Vec<(u64, char, u64)>;

/// Runs jobs over a server of so many µs. Commands that it has at once wait for each other.
fn run(text: &str, logs: &[(&str, &str)], fixed_us: u64) -> (Outcome, Commands) {
    let logs: Vec<_> = logs.iter().map(|(path, text)| (*path, source(text))).collect();
    let jobs = jobs_with_logs(text, &logs).expect("a good job file");
    let (device, commands) = recorder(64, Nanos::from_micros(fixed_us), Nanos::ZERO);
    let setup = Setup::new(SchedulerKind::None);
    let outcome =
        run_jobs(&jobs, &setup, PageCacheParameters::default(), device, |_| {}).expect("a run");
    let commands = commands.borrow();
    let told = commands.iter().map(|(at, command)| {
        let op = match command.op {
            Op::Read => 'r',
            Op::Write => 'w',
            Op::Discard => 't',
            Op::Flush => 'f',
        };
        (at.as_nanos() / 1000, op, command.sector.0 * 512)
    });
    (outcome, told.collect())
}

fn source(text: &str) -> Arc<dyn ReadAt> {
    Arc::new(text.as_bytes().to_vec())
}

/// What the job `[r]` does that replays `log` directly, on a server of 100 µs.
fn replayed(log: &str, options: &str) -> Commands {
    let text = format!("[r]\ndirect=1\nioengine=libaio\nread_iolog=a.log\n{options}\n");
    run(&text, &[("a.log", log)], 100).1
}

/// The ends of files: 1 MiB is what files are aligned to.
const MIB: u64 = 1 << 20;

const EVERY_ACTION: &str = "\
fio version 3 iolog
0 a add
0 /b add
10 a open
20 /b open
1000 a read 4096 8192
2000 /b write 512 512
2500 a trim 65536 4096
3000 a datasync 0 0
3001 /b close
5000 /b open
7000 /b read 1048575 1
9000 a close
";

/// The file `a` reaches 69,632 bytes and starts the device; `/b` is 1 MiB long and lies behind it
/// at 1 MiB. A sync waits for what is under way, and holds up what is behind it until its flush is
/// done: the flush goes out at 3,000, and all behind it comes later by what is left of its 100 µs,
/// 99. The job ends when its last line is due.
#[test]
fn every_action_of_a_log_is_done_at_its_time() {
    let text = "[r]\ndirect=1\nioengine=libaio\niodepth=4\nread_iolog=a.log\n";
    let (outcome, commands) = run(text, &[("a.log", EVERY_ACTION)], 100);
    let read = (MIB + 1_048_575) / 512 * 512;
    let wanted = [
        (1000, 'r', 4096),
        (2000, 'w', MIB + 512),
        (2500, 't', 65536),
        (3000, 'f', 0),
        (7099, 'r', read),
    ];
    assert_eq!(commands, wanted);
    assert_eq!(outcome.end.since_start(), Nanos::from_micros(9099));
    let [reads, writes, trims] = DataDirection::ALL.map(|direction| {
        let did = &outcome.results[0].directions[direction as usize];
        (did.ios, did.bytes)
    });
    assert_eq!((reads, writes, trims), ((2, 8193), (1, 512), (1, 4096)));
}

const PAIR: &str = "\
fio version 3 iolog
0 a add
0 a open
0 a read 0 4096
50 a read 4096 4096
1050 a read 8192 4096
";

/// With one I/O under way the second read starts when the first is done, at 100 instead of 50. The
/// third comes 1,000 behind it, as in the log: what was late is not caught up.
#[test]
fn depth_bounds_a_replay_and_delays_are_those_between_two_lines() {
    assert_eq!(replayed(PAIR, ""), [(0, 'r', 0), (100, 'r', 4096), (1100, 'r', 8192)]);
    let deep = [(0, 'r', 0), (50, 'r', 4096), (1050, 'r', 8192)];
    assert_eq!(replayed(PAIR, "iodepth=2"), deep);
}

#[test]
fn replay_without_stalls_is_bound_by_depth_alone() {
    let wanted = [(0, 'r', 0), (100, 'r', 4096), (200, 'r', 8192)];
    assert_eq!(replayed(PAIR, "replay_no_stall=1"), wanted);
    let wanted = [(0, 'r', 0), (0, 'r', 4096), (100, 'r', 8192)];
    assert_eq!(replayed(PAIR, "replay_no_stall=1\niodepth=2"), wanted);
}

#[test]
fn time_scale_is_a_percentage_of_the_rate() {
    let slow = [(0, 'r', 0), (100, 'r', 4096), (2100, 'r', 8192)];
    assert_eq!(replayed(PAIR, "replay_time_scale=50\niodepth=2"), slow);
    let fast = [(0, 'r', 0), (25, 'r', 4096), (525, 'r', 8192)];
    assert_eq!(replayed(PAIR, "replay_time_scale=200\niodepth=2"), fast);
}

const WAITS: &str = "\
fio version 2 iolog
a add
a open
a read 0 4096
a wait 3 0
a write 4096 4096
a wait 2 0
a write 8192 4096
a wait 10 0
a read 12288 4096
";

/// Waits are milliseconds from the start: the second has passed when it is met.
#[test]
fn waits_of_version_2_count_from_the_start() {
    let wanted = [(0, 'r', 0), (3000, 'w', 4096), (3100, 'w', 8192), (10_000, 'r', 12288)];
    assert_eq!(replayed(WAITS, ""), wanted);
    let halved = [(0, 'r', 0), (1500, 'w', 4096), (1600, 'w', 8192), (5000, 'r', 12288)];
    assert_eq!(replayed(WAITS, "replay_time_scale=200"), halved);
    let [.., last] = replayed(WAITS, "replay_no_stall=1").try_into().unwrap_or([(0, 'r', 0); 4]);
    assert_eq!(last, (300, 'r', 12288));
}

/// Positions are divided by 3, and rounded down to 4,096: 16,384 is 5,461 and then 4,096.
#[test]
fn positions_are_scaled_and_aligned() {
    let log = "fio version 2 iolog\na add\na open\na read 16384 512\na read 49152 512\n";
    let wanted = [(0, 'r', 4096), (100, 'r', 16384)];
    assert_eq!(replayed(log, "replay_scale=3\nreplay_align=4k"), wanted);
    let wanted = [(0, 'r', 8192), (100, 'r', 24576)];
    assert_eq!(replayed(log, "replay_scale=2"), wanted);
}

/// What is left out takes no time, and what is behind it comes when it would have come.
#[test]
fn what_is_skipped_leaves_its_time() {
    let options = "iodepth=4\nreplay_skip=write,trim,sync";
    assert_eq!(replayed(EVERY_ACTION, options), [(1000, 'r', 4096), (7000, 'r', 2 * MIB - 512)]);
    let reads = replayed(EVERY_ACTION, "iodepth=4\nreplay_skip=read");
    assert_eq!(reads.iter().map(|(_, op, _)| op).collect::<String>(), "wtf");
}

/// All files become the whole device: positions of both are from its start.
#[test]
fn redirected_log_is_on_one_file() {
    let log = "fio version 2 iolog\na add\nb add\na open\nb open\na read 0 512\nb read 4096 512\n";
    assert_eq!(replayed(log, ""), [(0, 'r', 0), (100, 'r', MIB + 4096)]);
    let wanted = [(0, 'r', 0), (100, 'r', 4096)];
    assert_eq!(replayed(log, "replay_redirect=/dev/sdc"), wanted);
    assert_eq!(replayed(log, "replay_redirect=/dev/sdc\n; lab: at=50%"), wanted);
}

#[test]
fn clones_replay_the_logs_in_turns() {
    let log = |at| format!("fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a read {at} 512\n");
    let text = "[r]\ndirect=1\nnumjobs=3\nread_iolog=a:b\n";
    let (outcome, commands) = run(text, &[("a", &log(0)), ("b", &log(4096))], 100);
    assert_eq!(outcome.results.len(), 3);
    assert_eq!(commands, [(0, 'r', 0), (0, 'r', 4096), (0, 'r', 0)]);
}

/// Half a second of a log of two: reads at 0 and 400 ms are done.
#[test]
fn runtime_ends_a_replay() {
    let log = "fio version 3 iolog\n0 a add\n0 a open\n0 a read 0 512\n400000 a read 512 512\n\
               2000000 a read 1024 512\n";
    let text = "[r]\ndirect=1\nread_iolog=a.log\nruntime=500ms\n";
    let (outcome, commands) = run(text, &[("a.log", log)], 100);
    assert_eq!(commands, [(0, 'r', 0), (400_000, 'r', 512)]);
    assert_eq!(outcome.end.since_start(), Nanos::from_millis(500));
}

/// fio's own log: `recorded.iolog`, of which `replay.txt` says how it came about. On a server of
/// 200 µs each line keeps its distance to the one before, and only what is not done when the next
/// line is due moves all behind it: the datasync of 2,609 waits for the write of 2,492 until 2,692;
/// the write of 2,773, 164 behind it, for that flush until 2,892; 2,093 later is 4,985. The close
/// of 4,987 is passed when that write is done, at 5,185, and 6, 2,106 + 2, 1,217 + 6 and 3,995
/// later come the others and the end.
#[test]
fn log_that_fio_wrote_is_replayed() {
    let log = include_str!("../data/fio-3.33/recorded.iolog");
    let text = "[r]\ndirect=1\nread_iolog=a.log\n";
    let (outcome, commands) = run(text, &[("a.log", log)], 200);
    let wanted = [
        (126, 'w', 0),
        (412, 'w', MIB),
        (2492, 'w', 4096),
        (2692, 'f', 0),
        (2892, 'w', 8192),
        (4985, 'w', MIB + 4096),
        (5191, 'w', MIB + 8192),
        (7299, 'f', 0),
        (8522, 'f', 0),
    ];
    assert_eq!(commands, wanted);
    assert_eq!(outcome.end.since_start(), Nanos::from_micros(12_517));
}

/// Pages that were read are cached until the file is opened again.
#[test]
fn opened_file_is_not_cached() {
    let log = "fio version 2 iolog\na add\na open\na read 0 4096\na read 0 4096\na close\na open\n\
               a read 0 4096\n";
    let read = |options: &str| {
        let text = format!("[r]\nread_iolog=a.log\n{options}\n");
        run(&text, &[("a.log", log)], 100).1.len()
    };
    assert_eq!((read("fadvise_hint=0"), read("fadvise_hint=0\ninvalidate=0")), (2, 1));
}

/// A log that is another when it is read again.
#[derive(Debug)]
struct Fickle {
    first: Vec<u8>,
    then: Vec<u8>,
    reads: std::sync::atomic::AtomicUsize,
}

impl ReadAt for Fickle {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        // A log this short is read by two calls.
        let reads = self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if reads < 2 { self.first.read_at(offset, into) } else { self.then.read_at(offset, into) }
    }
}

#[test]
fn log_that_changes_ends_the_run_with_its_line() {
    let first = "fio version 2 iolog\na add\na open\na read 0 512\n";
    let failed = |then: &str| {
        let [first, then] = [first, then].map(|text| text.as_bytes().to_vec());
        let log: Arc<dyn ReadAt> = Arc::new(Fickle { first, then, reads: 0.into() });
        let jobs =
            jobs_with_logs("[r]\nread_iolog=a.log\n", &[("a.log", log)]).expect("it is good");
        let (device, _) = recorder(1, Nanos::from_micros(100), Nanos::ZERO);
        let setup = Setup::new(SchedulerKind::None);
        match run_jobs(&jobs, &setup, PageCacheParameters::default(), device, |_| {}) {
            Err(JobRunError::Log(mistake)) => mistake.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let changed = "(the log has changed since it was checked)";
    let far = format!("a.log:4:1: a was not there, or not that far {changed}");
    assert_eq!(failed("fio version 2 iolog\na add\na open\na read 512 512\n"), far);
    let other = format!("a.log:2:1: b was not there, or not that far {changed}");
    assert_eq!(failed("fio version 2 iolog\nb add\n"), other);
    // The job is buffered, and nothing of it was to write.
    let write = format!("a.log:4:1: the log had no write {changed}");
    assert_eq!(failed("fio version 2 iolog\na add\na open\na write 0 512\n"), write);
    // Lines of 20, 6, 7 and 13 bytes.
    let short = format!("a.log:4:1: the log ends here, after 33 bytes instead of 46 {changed}");
    assert_eq!(failed("fio version 2 iolog\na add\na open\n"), short);
    let cut = format!("a.log:5:1: the log ends here, after 44 bytes instead of 46 {changed}");
    assert_eq!(failed("fio version 2 iolog\na add\na open\na read 0 51"), cut);
    let long = format!("a.log:6:1: the log ends here, after 52 bytes instead of 46 {changed}");
    assert_eq!(failed(&format!("{first}a add\n")), long);
}

/// A sink whose bytes stay.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("one writes").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs jobs over two servers of so many ns. Returns each command with its time in ns, and what
/// each job wrote of itself.
fn written(text: &str, logs: &[(&str, &str)], fixed: u64) -> (Vec<(u64, Command)>, Vec<String>) {
    let logs: Vec<_> = logs.iter().map(|(path, text)| (*path, source(text))).collect();
    let jobs = jobs_with_logs(text, &logs).expect("a good job file");
    let (device, commands) = recorder(2, Nanos::new(fixed), Nanos::ZERO);
    let setup = Setup::new(SchedulerKind::None);
    let mut kept = vec![];
    let sinks = Sinks::open(&jobs, |_| -> Result<Box<dyn Write + Send>, ()> {
        let sink = Kept::default();
        kept.push(sink.clone());
        Ok(Box::new(sink))
    });
    let (sinks, page_cache) = (sinks.expect("a vector opens"), PageCacheParameters::default());
    run_jobs_into(sinks, &jobs, &setup, page_cache, device, |_| {}).expect("a run");
    let commands = commands.borrow().iter().map(|(at, did)| (at.as_nanos(), *did)).collect();
    let text = |Kept(bytes): Kept| {
        String::from_utf8(bytes.lock().expect("all was written").clone()).expect("text")
    };
    (commands, kept.into_iter().map(text).collect())
}

/// Two writes to each of two files, of 100 µs each, with a sync of the file that is next after
/// three of them, and two at the end: the flush of a sync takes 100 µs, too. The job starts 1 ms
/// late, and its log with it.
#[test]
fn log_has_what_a_job_did_since_it_started() {
    let text = "[j]\nrw=write\nbs=4k\nsize=16k\nnrfiles=2\nfsync=3\nend_fsync=1\ndirect=1\n\
                startdelay=1ms\nwrite_iolog=j.log\n";
    let wanted = "\
fio version 3 iolog
0 j.0.0 add
0 j.0.1 add
0 j.0.0 open
0 j.0.1 open
0 j.0.0 write 0 4096
100 j.0.1 write 0 4096
200 j.0.0 write 4096 4096
300 j.0.1 sync 0 0
400 j.0.1 write 4096 4096
500 j.0.0 sync 0 0
600 j.0.1 sync 0 0
700 j.0.0 close
700 j.0.1 close
";
    assert_eq!(written(text, &[], 100_000).1, [wanted]);
}

/// The jobs that are recorded and replayed: one past the page cache in two passes, with pauses and
/// syncs, and one through it. Each reaches the ends of its files, which the log's files have.
const RECORDED: &str = "\
[global]
nrfiles=2
size=2m
[direct]
ioengine=libaio
direct=1
iodepth=4
PATTERN
[cached]
bs=16k
fsync=20
fadvise_hint=0
PATTERN
";

/// Records the jobs with one more line each, and returns the commands with those of their replay.
fn round_trip(line: [&str; 2], fixed: u64) -> [Vec<(u64, Command)>; 2] {
    let [direct, cached] = line;
    let with = |direct: &str, cached: &str| {
        RECORDED.replacen("PATTERN", direct, 1).replacen("PATTERN", cached, 1)
    };
    let (direct, cached) =
        (format!("{direct}\nwrite_iolog=a.log"), format!("{cached}\nwrite_iolog=b.log"));
    let (commands, logs) = written(&with(&direct, &cached), &[], fixed);
    let logs = [("a.log", logs[0].as_str()), ("b.log", logs[1].as_str())];
    let replay = with("read_iolog=a.log", "read_iolog=b.log");
    [commands, written(&replay, &logs, fixed).0]
}

#[test]
fn replay_of_a_written_log_has_its_requests_at_their_times() {
    let direct = "rw=randrw\nbs=64k\nloops=2\nfdatasync=7\nthinktime=3ms\nthinktime_blocks=5";
    let [recorded, replayed] = round_trip([direct, "rw=randrw\nthinktime=1ms"], 100_000);
    // 2 × 32 direct I/Os, and at least 1 MiB that is read into the page cache or written from it.
    assert!(recorded.len() > 64 + 8, "{}", recorded.len());
    assert_eq!(recorded, replayed);
}

/// Stamps are whole microseconds, and a device need not be.
#[test]
fn replay_is_exact_where_depth_alone_says_when() {
    let [recorded, replayed] = round_trip(["rw=randrw\nbs=64k", "rw=randrw"], 100_700);
    assert_eq!(recorded, replayed);
}

#[test]
fn log_needs_a_place_that_takes_it() {
    let jobs = jobs_with_logs("[j]\nsize=8k\nwrite_iolog=dir/j.log\n", &[]).expect("it is good");
    assert_eq!(jobs.written_files().into_iter().collect::<Vec<_>>(), ["dir/j.log"]);
    let (device, _) = recorder(1, Nanos::from_micros(100), Nanos::ZERO);
    let (setup, page_cache) = (Setup::new(SchedulerKind::None), PageCacheParameters::default());
    let full = |_: &str| -> Result<Box<dyn Write + Send>, ()> { Ok(Box::new(&mut [][..])) };
    let sinks = Sinks::open(&jobs, full).expect("it opens");
    let error = run_jobs_into(sinks, &jobs, &setup, page_cache, device, |_| {});
    let error = error.expect_err("it takes nothing").to_string();
    assert!(error.starts_with("cannot write dir/j.log: failed to write"), "{error}");
}
