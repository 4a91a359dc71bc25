//! Clients that begin a large write and do not go on with it.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use crate::arena::{alone, modelled, serve};
use crate::client::{READ, Socket, Target, WRITE, request, write};
use crate::support::{Place, Served};

const LARGE: u32 = 32 << 20;

/// A client of `evil` that has sent the header and one byte of a large write.
fn begin_write(target: &Target) -> Box<dyn Socket> {
    let mut socket = target.enter(Place::Unix, "evil").expect("it gets in");
    socket.write_all(&request(0, WRITE, 1, 0, LARGE)).expect("taken");
    socket.write_all(&[1]).expect("taken");
    socket
}

/// The reply's error.
fn reply(socket: &mut dyn Socket) -> u32 {
    let mut reply = [0; 16];
    socket.read_exact(&mut reply).expect("it is answered");
    u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"))
}

fn end(mut served: Served) {
    served.terminate();
    let (status, exit) = served.wait(Duration::from_secs(30));
    assert!(status.success(), "{status}:\n{}", served.log());
    assert!(exit < Duration::from_secs(10), "{exit:?}");
}

#[test]
fn two_stalled_writes_leave_their_tenants_others_alone() {
    let _alone = alone();
    let (served, target) = serve(&modelled(64), |_| {});
    let _stalled = [begin_write(&target), begin_write(&target)];
    thread::sleep(Duration::from_millis(200));
    let begin = Instant::now();
    let mut other = target.enter(Place::Unix, "evil").expect("it gets in");
    for _ in 0..1000 {
        other.write_all(&[request(0, READ, 1, 0, 4096), write(0, 4096)].concat()).expect("taken");
        // In either order; the first of all is what matters.
        other.read_exact(&mut [0; 16 + 4096 + 16]).expect("they are answered");
    }
    let took = begin.elapsed();
    println!("two stalled writes: 2,000 small commands of the same tenant in {took:.1?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    end(served);
}

#[test]
fn stalled_writes_are_closed_when_others_wait_and_left_alone_when_nobody_does() {
    let _alone = alone();
    let (served, target) =
        serve(&("payload_timeout = \"1s\"\n".to_owned() + &modelled(64)), |_| {});
    let mut lone = begin_write(&target);
    thread::sleep(Duration::from_millis(2500));
    lone.write_all(&vec![1; LARGE as usize - 1]).expect("it is not closed");
    assert_eq!(reply(&mut *lone), 0);

    let mut stalled = [begin_write(&target), begin_write(&target)];
    thread::sleep(Duration::from_millis(200));
    let begin = Instant::now();
    lone.write_all(&write(0, LARGE)).expect("it is taken in the end");
    assert_eq!(reply(&mut *lone), 0);
    let took = begin.elapsed();
    println!("two stalled writes, payload_timeout = 1s: a third one waited {took:.1?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    for socket in &mut stalled {
        // A reset, as what it had sent was not all read, or an end.
        assert!(matches!(socket.read(&mut [0; 1]), Ok(0) | Err(_)), "it is closed");
    }
    end(served);
}
