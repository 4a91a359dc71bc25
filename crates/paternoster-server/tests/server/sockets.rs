//! Listening sockets: what is taken and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use paternoster_server::sockets::{BindError, bind_tcp, bind_unix};

#[test]
fn new_socket_has_its_mode_and_accepts() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    for mode in [0o600, 0o666] {
        let listener = bind_unix(&path, mode).expect("a socket");
        let seen = fs::metadata(&path).expect("the socket").permissions().mode();
        assert_eq!(seen & 0o7777, mode);
        UnixStream::connect(&path).expect("a connection");
        drop(listener);
    }
}

#[test]
fn socket_left_behind_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists());
    let _listener = bind_unix(&path, 0o600).expect("the dead one is replaced");
    UnixStream::connect(&path).expect("a connection");
}

#[test]
fn socket_in_use_is_refused_and_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let first = bind_unix(&path, 0o600).expect("a socket");
    let refused = bind_unix(&path, 0o600).expect_err("in use");
    assert!(matches!(refused, BindError::UnixInUse { .. }), "{refused}");
    UnixStream::connect(&path).expect("the first still listens");
    drop(first);

    let path = dir.path().join("datagrams");
    let _other = UnixDatagram::bind(&path).expect("a socket");
    let refused = bind_unix(&path, 0o600).expect_err("in use");
    assert!(matches!(refused, BindError::UnixInUse { .. }), "{refused}");
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notes.txt");
    fs::write(&path, "precious").expect("a file");
    let refused = bind_unix(&path, 0o600).expect_err("a file");
    assert!(refused.to_string().contains("is not a socket"), "{refused}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "precious");

    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let refused = bind_unix(&link, 0o600).expect_err("a link");
    assert!(matches!(refused, BindError::NotASocket { .. }), "{refused}");
}

#[test]
fn socket_that_cannot_be_made_is_named_with_the_cause() {
    let dir = tempfile::tempdir().expect("a directory");
    let long = dir.path().join("x".repeat(108));
    for path in [dir.path().join("no/s"), long] {
        let refused = bind_unix(&path, 0o600).expect_err("no place for it");
        assert!(matches!(refused, BindError::Unix { .. }), "{refused}");
    }
}

#[test]
fn many_starters_leave_one_listener() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    drop(UnixListener::bind(&path).expect("a socket"));
    let bound = std::thread::scope(|scope| {
        let starters: Vec<_> = (0..8).map(|_| scope.spawn(|| bind_unix(&path, 0o600))).collect();
        starters.into_iter().map(|starter| starter.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert_eq!(bound.iter().filter(|bound| bound.is_ok()).count(), 1);
    UnixStream::connect(&path).expect("the one that is left listens");
}

#[test]
fn tcp_port_in_use_is_refused_with_its_number() {
    let first = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = first.local_addr().expect("an address");
    let refused = bind_tcp(address).expect_err("in use");
    assert!(refused.to_string().contains(&format!("{address} is in use")), "{refused}");
    let elsewhere = "192.0.2.1:1".parse().expect("an address");
    let refused = bind_tcp(elsewhere).expect_err("not our address");
    assert!(matches!(refused, BindError::Tcp { .. }), "{refused}");
}
