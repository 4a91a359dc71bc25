//! One of two servers between which clients are handed over, and a test in the place of the other
//! one, which is gone at each step.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
    connect, listen, recvmsg, sendmsg, socket_with,
};
use serde_json::{Value, json};

use crate::support::{Served, paternoster};
use crate::take_over::prepared;
use crate::wire::Wire;

const HANDOVER: &str = "handover.sock";

/// One end of a conversation between two servers.
struct Other(OwnedFd);

impl Other {
    fn socket() -> OwnedFd {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        socket_with(AddressFamily::UNIX, kind, flags, None).expect("a socket")
    }

    /// Connects as a server that takes over.
    fn successor(at: &Path) -> Self {
        let socket = Self::socket();
        let address = SocketAddrUnix::new(at).expect("a short path");
        connect(&socket, &address).expect("somebody waits there");
        Self(socket)
    }

    fn say(&self, message: &Value, with: &[BorrowedFd<'_>]) {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(with)), "one fits");
        }
        let bytes = message.to_string();
        let bytes = [IoSlice::new(bytes.as_bytes())];
        sendmsg(&self.0, &bytes, &mut control, SendFlags::empty()).expect("it is there");
    }

    /// What it says next.
    fn hear(&self) -> Value {
        self.hear_with().0
    }

    /// The same, with how many descriptors, which are closed.
    fn hear_with(&self) -> (Value, usize) {
        let mut room = [0; 4096];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [IoSliceMut::new(&mut room)];
        let heard = recvmsg(&self.0, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC);
        let len = heard.expect("it is there").bytes;
        let with = control.drain().map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => rights.count(),
            _ => 0,
        });
        let with = with.sum();
        (serde_json::from_slice(&room[..len]).unwrap_or_default(), with)
    }

    /// Takes descriptors, which come with that message, and says so.
    fn take(&self, message: &str) -> u64 {
        let (said, descriptors) = self.hear_with();
        assert_eq!(said, json!(message));
        self.say(&json!({"taken": {"descriptors": descriptors}}), &[]);
        descriptors as u64
    }
}

/// Says hello and the rest, up to that step, and is gone then.
fn take_over_up_to(step: usize, at: &Path) {
    let other = Other::successor(at);
    if step == 0 {
        return;
    }
    other.say(&json!({"hello": {"formats": [1], "version": "test"}}), &[]);
    let offer = other.hear();
    let mut left = offer["offer"]["descriptors"].as_u64().expect("an offer");
    while step > 1 && left > 0 {
        left -= other.take("descriptors");
    }
    if step > 2 {
        other.say(&json!("prepared"), &[]);
    }
    if step > 3 {
        other.take("clients");
    }
    if step > 4 {
        assert_eq!(other.hear(), json!("state"));
    }
}

#[test]
fn server_goes_on_wherever_the_one_that_takes_over_is_killed() {
    let mut served = Served::start(prepared(1 << 20, "", ""), &["c.toml"], 1);
    let mut wire = Wire::enter_at(&served.path("nbd.sock"), "disk");
    for step in 0..6 {
        take_over_up_to(step, &served.path(HANDOVER));
        wire.write_and_read_back(step as u64);
        Wire::enter_at(&served.path("nbd.sock"), "disk").write_and_read_back(step as u64);
    }
    // One that does not say that it is ready is not waited for.
    let slow = Other::successor(&served.path(HANDOVER));
    slow.say(&json!({"hello": {"formats": [2, 3], "version": "later"}}), &[]);
    let refused = slow.hear()["refuse"]["why"].as_str().unwrap_or_default().to_owned();
    assert!(refused.contains("reads states of formats [2, 3]"), "{refused}");
    let begun = Instant::now();
    let slow = Other::successor(&served.path(HANDOVER));
    slow.say(&json!({"hello": {"formats": [1], "version": "test"}}), &[]);
    let mut left = slow.hear()["offer"]["descriptors"].as_u64().expect("an offer");
    while left > 0 {
        left -= slow.take("descriptors");
    }
    slow.say(&json!("prepared"), &[]);
    slow.take("clients");
    assert_eq!(slow.hear(), json!("state"));
    wire.write_and_read_back(7);
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(1), "it waits for ready: {took:?}");
    let why = slow.hear()["abandoned"]["why"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("does not answer"), "{why}");
    assert!(served.is_running());
    let (served, _) = served.hand_over("c.toml");
    wire.write_and_read_back(8);
    drop(wire);
    served.end();
}

/// A file of what is in memory alone.
fn memory_file(text: &str) -> OwnedFd {
    let file = memfd_create("state", MemfdFlags::CLOEXEC).expect("a file");
    rustix::io::write(&file, text.as_bytes()).expect("room");
    file
}

#[test]
fn server_that_takes_over_ends_wherever_the_other_one_is_killed() {
    let dir = prepared(1 << 20, "", "");
    let waiting = Other::socket();
    let at = SocketAddrUnix::new(dir.path().join(HANDOVER)).expect("a short path");
    bind(&waiting, &at).and_then(|()| listen(&waiting, 1)).expect("a socket");
    for step in 0..5 {
        let mut child = paternoster(dir.path())
            .args(["serve", "c.toml", "--take-over"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let other = Other(accept(&waiting).expect("it connects"));
        assert_eq!(other.hear()["hello"]["formats"], json!([1]));
        if step > 0 {
            let offer =
                r#"{"format":1,"names":{},"records":{"volumes":[],"exports":[],"groups":[]}}"#;
            let offer = memory_file(&format!("{offer}\n"));
            let said = json!({"offer": {"format": 1, "version": "test", "descriptors": 0}});
            other.say(&said, &[offer.as_fd()]);
        }
        if step > 1 {
            assert_eq!(other.hear(), json!("prepared"));
            assert!(dir.path().join("nbd.sock").exists(), "it was not given one");
        }
        if step > 2 {
            let set = r#"{"disks":[],"groups":[]}"#;
            let state = format!(r#"{{"format":1,"disks":[],"set":{set},"connections":[]}}"#);
            other.say(&json!("state"), &[memory_file(&format!("{state}\n")).as_fd()]);
        }
        if step > 3 {
            assert_eq!(other.hear(), json!("ready"));
        }
        drop(other);
        let status = child.wait().expect("a child");
        assert_eq!(status.code(), Some(1), "step {step}");
        assert!(!dir.path().join("nbd.sock").exists(), "what it has made goes with it");
        assert!(dir.path().join(HANDOVER).exists(), "what it has not, does not");
    }
}
