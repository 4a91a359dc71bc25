//! Clients that come in crowds: to die at once, to sit, or never to finish the handshake.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use crate::arena::{Attack, Attacker, Orders, PROGRAM, modelled, two_tenants};
use crate::client::{CACHE, LIST, Socket, Target, greeting, option, request};
use crate::support::Place;
use crate::verdict::Entitled;

/// How long to wait where the server takes no more.
const PAUSE: Duration = Duration::from_millis(1);

/// Connects, does that, and dies, again and again.
fn again_and_again(
    place: Place,
    what: impl Fn(&Target, Place) -> io::Result<()> + Send + 'static,
) -> Attacker {
    Box::new(move |target: &Target, orders: &Orders| {
        while orders.go_on() {
            if what(target, place).is_err() {
                thread::sleep(PAUSE);
            }
        }
    })
}

/// Connects so many times, does that on each, and stays.
fn crowd(
    count: usize,
    what: impl Fn(&Target) -> io::Result<Box<dyn Socket>> + Send + 'static,
) -> Attacker {
    Box::new(move |target: &Target, orders: &Orders| {
        let mut sockets = Vec::new();
        while orders.go_on() {
            // Who is refused tries again.
            match (sockets.len() < count).then(|| what(target)) {
                Some(Ok(socket)) => sockets.push(socket),
                _ => thread::sleep(PAUSE),
            }
        }
    })
}

#[test]
fn clients_that_die_at_once() {
    let silent = |place| again_and_again(place, |target, place| target.connect(place).map(drop));
    let entered =
        |place| again_and_again(place, |target, place| target.enter(place, "evil").map(drop));
    Attack {
        name: "clients that die at once, unix and TCP",
        config: modelled(16),
        attackers: vec![
            silent(Place::Unix),
            silent(Place::Tcp),
            entered(Place::Unix),
            entered(Place::Tcp),
        ],
        entitled: Entitled::Part(1.0),
        ceiling: PROGRAM + 32 + 8,
    }
    .run();
}

#[test]
fn clients_that_die_with_commands_under_way() {
    let commands = request(0, CACHE, 1, 0, 16 << 20).repeat(100);
    let dying = |place| {
        let commands = commands.clone();
        again_and_again(place, move |target, place| {
            target.enter(place, "evil")?.write_all(&commands)
        })
    };
    Attack {
        name: "clients that die with 100 × CACHE 16 MiB in flight",
        config: modelled(16),
        attackers: vec![dying(Place::Unix), dying(Place::Tcp)],
        entitled: Entitled::Part(0.5),
        ceiling: PROGRAM + 32 + 64,
    }
    .run();
}

/// The server's soft limit of descriptors is 1,024; two tenants may have as many clients each.
#[test]
fn clients_that_sit() {
    let sit = |export| crowd(1100, move |target| target.enter(Place::Unix, export));
    Attack {
        name: "idle clients, 2 × 1100, soft limit of 1024 descriptors",
        config: two_tenants(),
        attackers: vec![sit("evil"), sit("worse")],
        entitled: Entitled::Part(1.0),
        ceiling: PROGRAM + 80 + 32,
    }
    .run();
}

#[test]
fn clients_that_never_enter() {
    let list = [greeting(), option(LIST, &[]).repeat(4096)].concat();
    let listing = move |target: &Target| {
        let mut socket = target.connect(Place::Unix)?;
        socket.do_not_block()?;
        // As much as fits: the answers are not read.
        let _ = socket.write(&list);
        Ok(socket)
    };
    Attack {
        name: "clients that ask for the list for ever, 500",
        config: modelled(16),
        attackers: vec![crowd(500, listing)],
        entitled: Entitled::Part(1.0),
        ceiling: PROGRAM + 32 + 16,
    }
    .run();
}
