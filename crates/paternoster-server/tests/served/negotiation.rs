//! Clients that do not get through the option phase.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::support::{Client, Rig, TWO_TENANTS, rest};

/// Waits until the server has closed the connection; when that was.
fn closed_after(stream: &mut UnixStream, since: Instant) -> Duration {
    rest(stream);
    since.elapsed()
}

#[test]
fn sockets_that_never_negotiate_are_closed_after_ten_seconds_and_lock_nobody_out() {
    let rig = Rig::start(TWO_TENANTS);
    let since = Instant::now();
    let mut idle: Vec<UnixStream> = (0..20).map(|_| rig.connect()).collect();
    // These have said half of what they have to say.
    let beginnings: [&[u8]; 4] = [
        &[0, 0],
        &[0, 0, 0, 3],
        b"\0\0\0\x03IHAVEOPT\0\0",
        b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\xff\0x",
    ];
    for beginning in beginnings {
        let mut stream = rig.connect();
        stream.write_all(beginning).expect("taken");
        idle.push(stream);
    }

    let asked = Instant::now();
    let mut client = Client::enter(rig.connect(), "a", true);
    client.check_served(1);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());

    // One that goes on asking in time is closed as well: what counts is to enter.
    let mut busy = rig.connect();
    busy.read_exact(&mut [0; 18]).expect("a greeting");
    busy.write_all(&3u32.to_be_bytes()).expect("taken");
    busy.set_nonblocking(true).expect("so");
    while since.elapsed() < Duration::from_secs(9) {
        busy.write_all(b"IHAVEOPT\0\0\0\x63\0\0\0\0").expect("taken");
        let _ = busy.read(&mut [0; 4096]);
        std::thread::sleep(Duration::from_millis(100));
    }
    busy.set_nonblocking(false).expect("so");
    busy.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    for stream in idle.iter_mut().chain([&mut busy]) {
        let after = closed_after(stream, since);
        assert!((9..13).contains(&after.as_secs()), "{after:?}");
    }
    client.check_served(2);
    rig.end();
}

#[test]
fn hundred_idle_sockets_beyond_the_bound_close_the_oldest() {
    let rig = Rig::start(TWO_TENANTS);
    let mut idle: Vec<UnixStream> = (0..300).map(|_| rig.connect()).collect();
    let asked = Instant::now();
    rig.client("a").check_served(1);
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert!(rest(&mut idle[0]).len() <= 18, "the first had its greeting at most");
    rig.end();
}
