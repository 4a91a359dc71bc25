//! Another NBD server as a disk: what it is asked, and what becomes of that where connections are
//! lost, given up, or lead to another one.

use std::sync::Arc;
use std::time::Duration;

use paternoster::{Nanos, SchedulerKind};
use paternoster_disk::{
    AfterReconnect, Backend as _, CommandOp, NbdBackend, NbdDialer, NbdOptions, Notice,
};
use paternoster_nbd::TransmissionFlags;
use rustix::io::Errno;

use crate::support::far_server::{Asked, Cache, FarServer, GARBAGE_AT, State};
use crate::support::front::{Answers, play_after};
use crate::support::{read, trim, within_a_minute, write, write_fua, zero};

const DISK: usize = 64 << 10;

const BLOCK: u64 = 4096;

/// All that a server can say that it can.
fn able() -> TransmissionFlags {
    TransmissionFlags::all() - TransmissionFlags::READ_ONLY - TransmissionFlags::ROTATIONAL
}

fn options(server: &FarServer) -> NbdOptions {
    NbdOptions {
        uri: server.uri(),
        connections: 1,
        reconnect: Nanos::from_millis(30_000),
        resends: 10,
        answer_timeout: Nanos::from_millis(30_000),
        after_reconnect: AfterReconnect::Doubt,
    }
}

fn open(options: NbdOptions) -> Box<NbdBackend> {
    let dialer = NbdDialer::new().expect("a thread");
    Box::new(NbdBackend::open(options, &dialer).expect("it is there"))
}

/// Plays phases against the server; `before` the phase of each number, and once at the end,
/// something else is done.
fn play(
    options: NbdOptions,
    phases: Vec<Vec<CommandOp>>,
    mut before: impl FnMut(usize),
) -> Vec<Answers> {
    let before = |answers: &[Answers]| before(answers.len());
    play_after(open(options), SchedulerKind::None, phases, before).0
}

const FLUSH: CommandOp = CommandOp::Flush;

/// What a command answers that brings nothing.
const DONE: Result<Vec<u8>, Errno> = Ok(Vec::new());
const FAILED: Result<Vec<u8>, Errno> = Err(Errno::IO);

fn asked(what: &'static str, at: u64, len: u64) -> Asked {
    Asked { what, bytes: at..at + len }
}

#[test]
fn what_the_server_cannot_do_is_written_or_left() {
    within_a_minute(|| {
        let commands = || {
            vec![vec![write(0, 8192, 7)], vec![trim(0, 4096, false)], vec![zero(4096, 4096, false)]]
        };
        let server = FarServer::new(DISK, able(), 1);
        play(options(&server), commands(), |_| {});
        let names = |server: &FarServer| -> Vec<_> {
            server.state().asked.iter().map(|asked| asked.what).collect()
        };
        assert_eq!(names(&server), ["write", "trim", "zero"]);
        let flags = TransmissionFlags::HAS_FLAGS | TransmissionFlags::SEND_FLUSH;
        let server = FarServer::new(DISK, flags, 1);
        play(options(&server), commands(), |_| {});
        assert_eq!(names(&server), ["write", "write"], "zeroes are written, a trim is a hint");
        assert_eq!(server.state().cache[..8192], [[7; 4096], [0; 4096]].concat());
    });
}

#[test]
fn there_is_one_connection_unless_the_server_says_that_there_may_be_more() {
    within_a_minute(|| {
        let server = FarServer::new(DISK, able(), 1);
        let several = NbdOptions { connections: 3, ..options(&server) };
        play(several, vec![vec![read(0, 512)], vec![read(0, 512)]], |phase| {
            if phase == 1 {
                server.wait_until(|state| state.entered == 3);
            }
        });
        let one = FarServer::new(DISK, able() - TransmissionFlags::CAN_MULTI_CONN, 1);
        let several = NbdOptions { connections: 3, ..options(&one) };
        let mut backend = open(several.clone());
        let notices = backend.take_notices();
        let is_told = |notice: &Notice| match notice {
            Notice::Info(text) => text.contains("CAN_MULTI_CONN"),
            Notice::Warning(_) => false,
        };
        assert!(notices.iter().any(is_told), "{notices:?}");
        drop(backend);
        play(several, vec![vec![read(0, 512)]], |_| {});
        // The first one may be noted late, as nothing is asked on it.
        one.wait_until(|state| state.entered >= 2);
        assert_eq!(one.state().entered, 2, "one each time");
    });
}

#[test]
fn server_without_flush_is_asked_for_none_and_promises_none() {
    within_a_minute(|| {
        let flags = able() - TransmissionFlags::SEND_FLUSH - TransmissionFlags::SEND_FUA;
        let server = FarServer::new(DISK, flags, 1);
        let mut backend = open(options(&server));
        assert!(!backend.capabilities().flushes, "so clients are offered none");
        let notices = backend.take_notices();
        let is_told = |notice: &Notice| match notice {
            Notice::Warning(text) => text.contains("cannot flush"),
            Notice::Info(_) => false,
        };
        assert!(notices.iter().any(is_told), "{notices:?}");
    });
}

#[test]
fn requests_keep_to_the_blocks_and_the_longest_payload_of_the_server() {
    within_a_minute(|| {
        let server = FarServer::new(4 << 20, able(), 4096);
        let long = CommandOp::Read { offset: 0, len: 4 << 20 };
        let phases = vec![vec![write(100, 50, 9)], vec![long]];
        let answers = play(options(&server), phases, |_| {});
        assert_eq!(answers[0], [DONE]);
        let data = answers[1][0].as_ref().expect("it is read");
        assert!(
            data[..200] == [&[0; 100][..], &[9; 50], &[0; 50]].concat()[..],
            "a read-modify-write"
        );
        let state = server.state();
        assert_eq!(state.asked[..2], [asked("read", 0, 4096), asked("write", 0, 4096)]);
        let longest = state.asked.iter().map(|asked| asked.bytes.end - asked.bytes.start).max();
        assert_eq!(longest, Some(1 << 20), "though a request may have 1.25 MiB");
    });
}

#[test]
fn after_the_cache_is_lost_no_flush_and_no_fua_succeeds() {
    within_a_minute(|| {
        let server = FarServer::new(DISK, able(), 1);
        let phases = vec![
            vec![write(0, 4096, 1)],
            vec![FLUSH],
            vec![write(4096, 4096, 2)],
            vec![write(8192, 4096, 3)],
            vec![FLUSH],
            vec![write_fua(0, 4096, 4)],
            vec![read(8192, 4096)],
            vec![FLUSH],
        ];
        let answers = play(options(&server), phases, |phase| {
            if phase == 3 {
                server.kill(Cache::Lost);
            }
        });
        let answers: Vec<_> = answers.into_iter().flatten().collect();
        let read = Ok(vec![3; 4096]);
        let expected = [DONE, DONE, DONE, DONE, FAILED, FAILED, read, FAILED];
        assert_eq!(answers, expected);
    });
}

#[test]
fn nothing_is_in_doubt_that_was_flushed_or_whose_cache_is_trusted() {
    within_a_minute(|| {
        for (after_reconnect, flushed) in
            [(AfterReconnect::Doubt, true), (AfterReconnect::Trust, false)]
        {
            let server = FarServer::new(DISK, able(), 1);
            let mut phases = vec![vec![write(0, 4096, 1)], vec![read(0, 512)], vec![FLUSH]];
            if flushed {
                phases[1] = vec![FLUSH];
            }
            let options = NbdOptions { after_reconnect, ..options(&server) };
            let answers = play(options, phases, |phase| {
                if phase == 2 {
                    server.kill(Cache::Kept);
                }
            });
            assert_eq!(answers[2], [DONE], "{after_reconnect:?}");
            assert_eq!(server.state().deaths, 1);
        }
    });
}

#[test]
fn what_was_outstanding_is_sent_again_and_what_overlaps_a_write_waits_for_its_answer() {
    within_a_minute(|| {
        let server = Arc::new(FarServer::new(DISK, able(), 1));
        server.set(|state| state.held = Some(BLOCK..DISK as u64));
        let meanwhile = {
            let server = server.clone();
            std::thread::spawn(move || {
                server.wait_until(|state| state.asked.len() == 3);
                // Then what does not overlap the write goes on; the server is looked at too.
                server.set(|state| {
                    state.held = Some(BLOCK..2 * BLOCK);
                    state.die(Cache::Kept);
                });
                server.wait_until(|state| state.asked.len() == 6);
                std::thread::sleep(Duration::from_millis(50));
                let again = server.state().asked[3..].to_vec();
                server.set(|state| state.held = None);
                again
            })
        };
        let commands = vec![write(BLOCK, 4096, 5), read(6144, 4096), read(12_288, 4096)];
        let answers = play(options(&server), vec![commands], |_| {});
        let overlapping = Ok([[5; 2048], [0; 2048]].concat());
        assert_eq!(answers[0], [DONE, overlapping, Ok(vec![0; 4096])]);
        let mut again = meanwhile.join().expect("it sees what it waits for");
        again.sort_by_key(|asked| asked.bytes.start);
        let looked_at = asked("read", 0, 512);
        let held = asked("write", 4096, 4096);
        assert_eq!(again, [looked_at, held, asked("read", 12_288, 4096)], "while it is held");
        let last = server.state().asked.last().cloned();
        assert_eq!(last, Some(asked("read", 6144, 4096)), "after its answer");
    });
}

#[test]
fn connection_that_this_side_gives_up_has_its_requests_fail_and_nothing_sent_again() {
    within_a_minute(|| {
        let server = FarServer::new(DISK, able(), 1);
        server.set(|state| state.sends_garbage = true);
        // Neighbours, which merge: were they issued again one by one, they would be asked again.
        let garbage = vec![write(GARBAGE_AT, 4096, 1), write(GARBAGE_AT + 4096, 4096, 2)];
        let phases = vec![garbage, vec![read(0, 512)]];
        let answers = play(options(&server), phases, |_| {});
        assert_eq!(answers, [vec![FAILED, FAILED], vec![Ok(vec![0; 512])]]);
        let state = server.state();
        let writes = state.asked.iter().filter(|asked| asked.what == "write").count();
        assert!(writes <= 2, "each at most once: {:?}", state.asked);
    });
}

#[test]
fn server_that_comes_back_as_another_one_is_asked_for_nothing_more() {
    within_a_minute(|| {
        let server = FarServer::new(DISK, able(), 1);
        let phases = vec![vec![write(0, 4096, 1)], vec![write(0, 4096, 2)], vec![read(0, 512)]];
        let answers = play(options(&server), phases, |phase| {
            if phase == 1 {
                server.set(|state| {
                    state.export.flags.insert(TransmissionFlags::READ_ONLY);
                    state.die(Cache::Kept);
                });
            }
        });
        assert_eq!(answers, [vec![DONE], vec![FAILED], vec![FAILED]]);
        assert_eq!(server.state().cache[..4096], [1; 4096]);
    });
}

#[test]
fn requests_fail_when_the_server_is_away_too_long_and_go_on_when_it_is_back() {
    within_a_minute(|| {
        let server = FarServer::new(DISK, able(), 1);
        let options = NbdOptions { reconnect: Nanos::from_millis(200), ..options(&server) };
        // The server is looked at before it is asked again: the owner has some rounds for that.
        let rounds = vec![vec![read(0, 512)]; 8];
        let mut phases = vec![vec![read(0, 512), FLUSH], vec![read(0, 512), write(0, 512, 1)]];
        phases.extend(rounds);
        phases.extend([vec![write(0, 512, 2)], vec![FLUSH]]);
        let answers = play(options, phases, |phase| match phase {
            0 => server.set(|state| {
                state.is_away = true;
                state.die(Cache::Kept);
            }),
            2 => {
                let entered = server.state().entered;
                server.set(|state| state.is_away = false);
                server.wait_until(|state| state.entered > entered);
                std::thread::sleep(Duration::from_millis(50));
            }
            3..10 => std::thread::sleep(Duration::from_millis(20)),
            _ => {}
        });
        assert_eq!(answers[0], [FAILED, FAILED], "after 200 ms");
        assert_eq!(answers[1], [FAILED, FAILED], "at once");
        assert_eq!(answers[10], [DONE]);
        assert_eq!(answers[11], [DONE], "a flush that could not be asked for lost nothing");
    });
}

#[test]
fn requests_that_a_server_refuses_as_it_goes_are_asked_of_the_next_one() {
    within_a_minute(|| {
        let server = Arc::new(FarServer::new(DISK, able(), 1));
        server.set(|state| state.shuts_down = true);
        let next = {
            let server = server.clone();
            std::thread::spawn(move || {
                server.wait_until(|state| !state.asked.is_empty());
                server.set(|state| {
                    state.shuts_down = false;
                    state.die(Cache::Kept);
                });
            })
        };
        let answers = play(options(&server), vec![vec![write(0, 4096, 6)]], |_| {});
        assert_eq!(answers[0], [DONE]);
        assert_eq!(server.state().cache[..4096], [6; 4096]);
        next.join().expect("it was asked");
    });
}

#[test]
fn one_lost_connection_ends_all_so_that_no_flush_is_asked_of_another_server() {
    within_a_minute(|| {
        let server = FarServer::new(DISK, able(), 1);
        let several = NbdOptions { connections: 3, ..options(&server) };
        let mut phases = vec![vec![read(0, 512)]; 3];
        phases.extend([vec![write(0, 4096, 1)], vec![read(0, 512)], vec![FLUSH]]);
        phases.push(vec![read(0, 512)]);
        let answers = play(several, phases, |phase| match phase {
            1 => server.wait_until(|state| state.entered == 3),
            2 => std::thread::sleep(Duration::from_millis(20)),
            4 => server.set(State::cut_one),
            _ => {}
        });
        assert_eq!(answers[3], [DONE]);
        assert_eq!(answers[5], [FAILED], "the server may have been another one in between");
        assert!(server.state().entered >= 4, "the others were closed, and there is a new one");
    });
}

#[test]
fn server_that_goes_and_never_ends_what_it_began_is_waited_for_no_longer_than_a_lost_one() {
    within_a_minute(|| {
        let server = Arc::new(FarServer::new(DISK, able(), 1));
        server.set(|state| state.held = Some(0..DISK as u64));
        let goes = {
            let server = server.clone();
            std::thread::spawn(move || {
                server.wait_until(|state| state.asked.len() == 2);
                server.set(|state| {
                    state.shuts_down = true;
                    state.held = Some(0..512);
                });
            })
        };
        let options = NbdOptions { reconnect: Nanos::from_millis(200), ..options(&server) };
        let answers = play(options, vec![vec![read(0, 512), write(8192, 512, 1)]], |_| {});
        assert_eq!(answers[0], [FAILED, FAILED], "neither is waited for");
        goes.join().expect("it was asked");
    });
}
