//! No log of I/O makes the laboratory panic: neither where it is checked nor where it is replayed,
//! also where it is another by then.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::recorder::recorder;
use paternoster::{Nanos, SchedulerKind};
use paternoster_lab::fio::{JobFileError, Jobs, ReadAt, Surroundings};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{JobRunError, Outcome, PageCacheParameters, run_jobs};
use proptest::prelude::*;

/// A log whose bytes may change.
#[derive(Debug)]
struct Changing(Mutex<Vec<u8>>);

impl ReadAt for Changing {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").read_at(offset, into)
    }
}

/// Reads a job file for a device of 1 GiB.
fn read(text: &str, log: &Arc<Changing>) -> Result<Jobs, JobFileError> {
    let surroundings = Surroundings {
        log: &|_: &Path| Ok(Arc::<Changing>::clone(log)),
        ..Surroundings::without_files(1 << 30, 1)
    };
    Jobs::parse("a.fio", text.as_bytes(), &surroundings)
}

/// Checks `first`, and replays `then` if the former can be replayed.
fn replay(options: &str, first: &[u8], then: &[u8]) -> Option<Result<Outcome, JobRunError>> {
    let log = Arc::new(Changing(Mutex::new(first.to_vec())));
    let jobs = read(&format!("[j]\nread_iolog=l\n{options}"), &log).ok()?;
    *log.0.lock().expect("nobody panics with it") = then.to_vec();
    let (device, _) = recorder(2, Nanos::from_micros(100), Nanos::ZERO);
    let (setup, page_cache) = (Setup::new(SchedulerKind::None), PageCacheParameters::default());
    Some(run_jobs(&jobs, &setup, page_cache, device, |_| {}))
}

const FILES: [&str; 3] = ["a", "b", "/dev/c"];
const TRANSFERS: [&str; 3] = ["read", "write", "trim"];

/// Lines of I/O of three files that are open, as a log has them.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = (0..FILES.len(), 0..8_usize, 0..300_u64, 1..40_u64, any::<bool>());
    let line = line.prop_map(|(file, action, block, blocks, is_whole)| {
        let (name, bytes) = (FILES[file], if is_whole { 4096 } else { 511 });
        match action {
            0..3 => format!("{name} {} {} {}", TRANSFERS[action], block * bytes, blocks * bytes),
            3 => format!("{name} sync 0 0"),
            4 => format!("{name} datasync 0 0"),
            5 => format!("{name} close\n{name} open"),
            // What is most common is so here.
            _ => format!("{name} read {} 4096", block * 4096),
        }
    });
    // A log has at least one I/O.
    let last = "a read 0 512".to_owned();
    prop::collection::vec(line, 0..30).prop_map(move |lines| [lines, vec![last.clone()]].concat())
}

/// The log with those lines, one each so many µs in version 3.
fn log(version: u32, every_us: usize, lines: &[String]) -> String {
    let opened = FILES.iter().map(|name| format!("{name} add\n{name} open"));
    let text: Vec<_> = opened.chain(lines.iter().cloned()).collect();
    let text = text.join("\n");
    let stamped = |(number, line): (usize, &str)| match version {
        3 => format!("{} {line}", number * every_us),
        _ => line.to_owned(),
    };
    let stamped: Vec<_> = text.lines().enumerate().map(stamped).collect();
    format!("fio version {version} iolog\n{}\n", stamped.join("\n"))
}

/// Options of a job, as a regular expression.
const OPTIONS: &str = "ioengine=(psync|libaio|io_uring|posixaio|mmap|null)\niodepth=[1-9]\n\
                       direct=[01]\n(sync=1\n)?(invalidate=0\n)?(thinktime=1ms\n)?\
                       (replay_no_stall=1\n)?(replay_redirect=/dev/d\n)?";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_io_of_a_right_log_is_done(
        options in OPTIONS,
        version in 2..4_u32,
        every_us in 0..300_usize,
        lines in lines(),
    ) {
        let text = log(version, every_us, &lines);
        let outcome = replay(&options, text.as_bytes(), text.as_bytes()).expect(&text);
        let did = outcome.expect("the log is as it was").results[0].directions.clone();
        let has = |name: &str| lines.iter().filter(|line| line.contains(name)).count() as u64;
        prop_assert_eq!(did.map(|did| did.ios), TRANSFERS.map(|name| has(&format!(" {name} "))));
    }

    /// It is replayed to its end, or its change is found.
    #[test]
    fn no_log_that_changes_makes_it_panic(
        options in OPTIONS,
        version in 2..4_u32,
        first in lines(),
        then in lines(),
    ) {
        let [first, then] = [first, then].map(|lines| log(version, 100, &lines));
        if let Some(Err(error)) = replay(&options, first.as_bytes(), then.as_bytes()) {
            prop_assert!(matches!(error, JobRunError::Log(_)), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_log_makes_it_panic(
        lines in prop::collection::vec(
            "[0-9]{0,3} ?(a|b|/dev/c)? ?\
             (add|open|close|read|write|trim|sync|datasync|wait)?( [0-9]{1,20}){0,3}",
            0..12,
        ),
        is_open in any::<bool>(),
        version in 2..4_u32,
        options in "(replay_scale=[0-9]{1,3}\n)?(replay_align=4k\n)?(replay_time_scale=[1-9]\n)?",
    ) {
        let text = if is_open {
            log(version, 0, &lines)
        } else {
            format!("fio version {version} iolog\n{}", lines.join("\n"))
        };
        let _ = replay(&options, text.as_bytes(), text.as_bytes());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = replay("", &bytes, &bytes);
    }
}
