//! Another NBD server as a disk that is reached and does not do what it is asked: what waits for it
//! ends in bounded time, and the server is not stormed.

use std::time::{Duration, Instant};

use paternoster::Nanos;
use paternoster_disk::{AfterReconnect, CommandOp, NbdBackend, NbdDialer, NbdOptions, Notice};
use paternoster_nbd::TransmissionFlags;
use rustix::io::Errno;

use crate::support::far_server::{AtWrite, FarServer};
use crate::support::front::{Answers, play_told};
use crate::support::{read, within_a_minute, write};

const DISK: usize = 64 << 10;
const BLOCK: u64 = 4096;

const DONE: Result<Vec<u8>, Errno> = Ok(Vec::new());
const FAILED: Result<Vec<u8>, Errno> = Err(Errno::IO);

/// A server that does this at each write.
fn server(at_write: AtWrite) -> FarServer {
    let flags = TransmissionFlags::all() - TransmissionFlags::READ_ONLY;
    let server = FarServer::new(DISK, flags, 1);
    server.set(|state| state.at_write = at_write);
    server
}

fn options(server: &FarServer) -> NbdOptions {
    NbdOptions {
        uri: server.uri(),
        connections: 1,
        reconnect: Nanos::from_millis(30_000),
        resends: 1000,
        answer_timeout: Nanos::from_millis(30_000),
        after_reconnect: AfterReconnect::Doubt,
    }
}

fn play(
    options: NbdOptions,
    phases: Vec<Vec<CommandOp>>,
    mut before: impl FnMut(usize),
) -> (Vec<Answers>, Vec<Notice>) {
    let dialer = NbdDialer::new().expect("a thread");
    let backend = Box::new(NbdBackend::open(options, &dialer).expect("it is there"));
    play_told(backend, phases, |answers| before(answers.len()))
}

fn asked(server: &FarServer, what: &str) -> usize {
    server.state().asked.iter().filter(|asked| asked.what == what).count()
}

/// A server that was reached and hung up began the time until requests fail anew, and was connected
/// to thousands of times a second.
#[test]
fn write_at_which_the_server_hangs_up_fails_in_time_and_the_server_is_not_stormed() {
    within_a_minute(|| {
        for several in [1, 3] {
            let server = server(AtWrite::HangsUp);
            let reconnect = Nanos::from_millis(700);
            let options = NbdOptions { reconnect, connections: several, ..options(&server) };
            let began = Instant::now();
            let (answers, notices) = play(options, vec![vec![write(0, 4096, 1)]], |_| {});
            assert_eq!(answers, [[FAILED]]);
            assert!(began.elapsed() >= Duration::from_millis(700), "not before");
            // At 50, 150, 350 and 750 ms after the first loss.
            let entered = server.state().entered;
            let most = 6 * usize::try_from(several).expect("few");
            assert!((3..=most).contains(&entered), "{entered} connections");
            let most = began.elapsed().as_secs() + 2;
            assert!(notices.len() as u64 <= most, "a line a second: {notices:?}");
        }
    });
}

#[test]
fn write_that_is_refused_by_a_server_that_is_always_shutting_down_fails_in_time() {
    within_a_minute(|| {
        let server = server(AtWrite::Writes);
        server.set(|state| state.shuts_down = true);
        let options = NbdOptions { reconnect: Nanos::from_millis(400), ..options(&server) };
        let (answers, _) = play(options, vec![vec![write(0, 4096, 1)]], |_| {});
        assert_eq!(answers, [[FAILED]]);
        let entered = server.state().entered;
        assert!(entered <= 6, "{entered} connections");
    });
}

#[test]
fn write_that_alone_is_never_carried_out_fails_though_reads_are_answered() {
    within_a_minute(|| {
        let server = server(AtWrite::ShutsDown);
        let options = NbdOptions { reconnect: Nanos::from_millis(400), ..options(&server) };
        let mut commands = vec![write(0, 4096, 1)];
        commands.extend((0..1000).map(|at| read(BLOCK * (1 + at % 8), 512)));
        let (answers, _) = play(options, vec![commands], |_| {});
        assert_eq!(answers[0][0], FAILED);
        assert!(answers[0][1..].iter().any(Result::is_ok), "reads are answered meanwhile");
    });
}

#[test]
fn request_that_ends_the_server_is_sent_again_so_often_and_takes_no_other_with_it() {
    within_a_minute(|| {
        for resends in [0, 3] {
            let server = server(AtWrite::HangsUp);
            let options = NbdOptions { resends, ..options(&server) };
            let commands = vec![write(0, 4096, 1), read(2 * BLOCK, 512), read(4 * BLOCK, 512)];
            let (answers, _) = play(options, vec![commands, vec![read(0, 512)]], |_| {});
            assert_eq!(answers[0][0], FAILED);
            assert_eq!(asked(&server, "write"), 1 + resends as usize);
            if resends > 0 {
                let zeroes = Ok(vec![0; 512]);
                assert_eq!(answers[0][1..], [zeroes.clone(), zeroes], "they end nobody");
            }
            assert_eq!(answers[1], [Ok(vec![0; 512])], "the server is of use again");
        }
    });
}

#[test]
fn request_that_is_not_answered_in_time_fails_and_is_not_sent_again() {
    within_a_minute(|| {
        let server = server(AtWrite::Writes);
        server.set(|state| state.held = Some(BLOCK..2 * BLOCK));
        let options = NbdOptions { answer_timeout: Nanos::from_millis(200), ..options(&server) };
        let phases = vec![vec![write(BLOCK, 4096, 1)], vec![read(0, 512)], vec![write(0, 512, 2)]];
        let began = Instant::now();
        let (answers, notices) = play(options, phases, |_| {});
        assert_eq!(answers, [vec![FAILED], vec![Ok(vec![0; 512])], vec![DONE]]);
        assert!(began.elapsed() >= Duration::from_millis(200), "not before");
        assert_eq!(asked(&server, "write"), 2, "each of them once");
        let told = |notice: &Notice| match notice {
            Notice::Warning(text) => text.contains("(answer_timeout)"),
            Notice::Info(_) => false,
        };
        assert!(notices.iter().any(told), "{notices:?}");
    });
}

#[test]
fn server_that_takes_connections_and_answers_nothing_is_not_waited_for() {
    within_a_minute(|| {
        let server = server(AtWrite::Writes);
        server.set(|state| state.held = Some(0..DISK as u64));
        let (answer_timeout, reconnect) = (Nanos::from_millis(100), Nanos::from_millis(400));
        let options = NbdOptions { answer_timeout, reconnect, ..options(&server) };
        let phases = vec![vec![read(0, 512)], vec![read(0, 512)], vec![read(0, 512)]];
        let (answers, _) = play(options, phases, |_| {});
        assert_eq!(answers, [[FAILED], [FAILED], [FAILED]]);
    });
}

#[test]
fn answer_that_never_ends_is_none() {
    within_a_minute(|| {
        let server = server(AtWrite::Babbles);
        let options = NbdOptions { answer_timeout: Nanos::from_millis(300), ..options(&server) };
        let phases = vec![vec![write(0, 4096, 1)], vec![read(0, 512)]];
        let (answers, _) = play(options, phases, |_| {});
        assert_eq!(answers, [vec![FAILED], vec![Ok(vec![0; 512])]]);
    });
}

/// Requests are let in on trial when the server answers the probe; it hangs up at the first.
#[test]
fn server_that_hangs_up_at_the_first_request_after_an_outage_is_not_back() {
    within_a_minute(|| {
        let server = server(AtWrite::HangsUp);
        let options = NbdOptions { reconnect: Nanos::from_millis(300), ..options(&server) };
        let mut phases = vec![vec![write(0, 4096, 1)]; 8];
        phases.extend(vec![vec![read(0, 512)]; 100]);
        phases.push(vec![write(0, 4096, 2)]);
        let (answers, _) = play(options, phases, |phase| {
            std::thread::sleep(Duration::from_millis(20));
            if phase == 8 {
                server.set(|state| state.at_write = AtWrite::Writes);
            }
        });
        assert!(answers[..8].iter().all(|answer| *answer == [FAILED]), "{answers:?}");
        assert_eq!(answers.last(), Some(&vec![DONE]), "it is back");
    });
}
