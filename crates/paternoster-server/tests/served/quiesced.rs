//! Far volumes whose server restarts while their clients are connected.

use std::path::Path;

use paternoster_nbd::Command;
use paternoster_nbd::client::Answer;
use paternoster_server::Server;
use paternoster_server::ctl::{CatalogueError, Control as _, RemovalQuestion, VolumeStage};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Rig, start_in};

/// A server of two images, which restarts.
struct Far {
    dir: TempDir,
    server: Option<Server>,
}

impl Far {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["one.img", "two.img"] {
            let image = std::fs::File::create(dir.path().join(name)).expect("an image");
            image.set_len(1 << 20).expect("room");
        }
        let server = Some(serve(dir.path()));
        Self { dir, server }
    }

    fn stop(&mut self) {
        let server = self.server.take().expect("it runs");
        server.shut_down().expect("a good end");
    }

    fn start_again(&mut self) {
        self.server = Some(serve(self.dir.path()));
    }

    fn socket(&self) -> String {
        self.dir.path().join("nbd.sock").display().to_string()
    }
}

fn serve(dir: &Path) -> Server {
    let text = "[pools.p]\npath = \"DIR\"\n[volumes.one]\npool = \"p\"\n[volumes.two]\n\
                pool = \"p\"\n";
    start_in(dir, &text.replace("DIR", dir.to_str().expect("UTF-8"))).expect("a server")
}

/// Ours in front of it, with the volumes `a` and `b`.
fn front(far: &Far) -> Rig {
    let socket = far.socket();
    Rig::start(&format!(
        "[pools.far]\nbackend = \"nbd\"\nreconnect = \"2s\"\n\
         [volumes.a]\npool = \"far\"\nuri = \"nbd+unix:///one?socket={socket}\"\n\
         [volumes.b]\npool = \"far\"\nuri = \"nbd+unix:///two?socket={socket}\"\n\
         [pools.slow]\nbackend = \"modelled\"\nservers = 1\nservice_us = 1\n\
         [volumes.m]\npool = \"slow\"\nsize = \"1M\"\n"
    ))
}

#[test]
fn clients_wait_for_a_server_that_restarts_and_nothing_is_in_doubt() {
    let mut far = Far::start();
    let rig = front(&far);
    let (mut a, mut b) = (rig.client("a"), rig.client("b"));
    for round in 0..20_u8 {
        a.write(4096, &[round; 512]);
        b.write(0, &[round; 512]);
        for name in ["a", "b"] {
            let left = rig.control().quiesce_volume(name).expect("it is connected");
            assert_eq!(left.state, VolumeStage::Quiesced);
            assert!(left.why.is_some_and(|why| why.contains("requests wait")));
        }
        a.ask(Command::Read { offset: 4096, len: 512, df: false });
        far.stop();
        b.call(Command::Flush).expect("everything is durable");
        far.start_again();
        for name in ["a", "b"] {
            rig.control().resume_volume(name).expect("it was quiesced");
        }
        assert_eq!(a.reply().result, Ok(Answer::Data(vec![round; 512].into())));
        assert_eq!(b.read(0, 512), [round; 512][..]);
    }
    for name in ["a", "b"] {
        let volume = rig.control().volume(name).expect("it is there");
        let of = volume.far.expect("it is far");
        assert_eq!((volume.state, of.in_doubt, of.lost), (VolumeStage::Ready, false, 0));
        assert!(of.usual_p50_ns.is_some_and(|nanos| nanos > 0), "{of:?}");
        assert!(of.p50_ns <= of.p99_ns, "{of:?}");
    }
    a.call(Command::Flush).expect("nothing is in doubt");
    rig.end();
    far.stop();
}

#[test]
fn volume_is_quiesced_where_it_can_be() {
    let mut far = Far::start();
    let rig = front(&far);
    let refused = |error: CatalogueError| error.to_string();
    let control = rig.control();
    let none = refused(control.quiesce_volume("m").expect_err("it is a model"));
    assert!(none.ends_with("it is not backed by a remote NBD server"), "{none}");
    let none = refused(control.resume_volume("m").expect_err("it is a model"));
    assert!(none.contains("cannot be quiesced"), "{none}");
    assert!(control.quiesce_volume("x").is_err());
    control.resume_volume("a").expect("there is nothing to do");
    control.quiesce_volume("a").expect("it is connected");
    control.quiesce_volume("a").expect("once more does nothing");
    control.resume_volume("a").expect("its server is there");
    rig.end();
    far.stop();
}

/// Whether its server is quiesced or lost: what waits for it keeps no place in the device.
#[test]
fn volume_whose_server_is_away_stops_no_other_volume_of_its_pool() {
    let (mut away, there) = (Far::start(), Far::start());
    let rig = Rig::start(&format!(
        "[pools.p]\nbackend = \"nbd\"\ndevice = \"all\"\ndepth = 4\nreconnect = \"1m\"\n\
         [volumes.a]\npool = \"p\"\nuri = \"nbd+unix:///one?socket={}\"\n\
         [volumes.b]\npool = \"p\"\nuri = \"nbd+unix:///one?socket={}\"\n",
        away.socket(),
        there.socket()
    ));
    let (mut a, mut b) = (rig.client("a"), rig.client("b"));
    b.write(0, &[7; 512]);
    for is_quiesced in [true, false] {
        if is_quiesced {
            rig.control().quiesce_volume("a").expect("it is connected");
        }
        away.stop();
        for _ in 0..64 {
            a.ask(Command::Read { offset: 0, len: 512, df: false });
        }
        for _ in 0..64 {
            assert_eq!(b.read(0, 512), [7; 512][..]);
        }
        b.call(Command::Flush).expect("its server is there");
        away.start_again();
        if is_quiesced {
            rig.control().resume_volume("a").expect("it was quiesced");
        }
        for _ in 0..64 {
            assert!(a.reply().result.is_ok());
        }
    }
    rig.end();
    [away, there].iter_mut().for_each(Far::stop);
}

/// Where a client waits, its volume has to be resumed for that; else its server is not needed.
#[test]
fn volume_whose_server_was_left_can_be_removed() {
    let mut far = Far::start();
    let rig = Rig::start("[pools.far]\nbackend = \"nbd\"\nreconnect = \"500ms\"\n");
    for (name, export) in [("a", "one"), ("b", "two")] {
        let uri = format!("nbd+unix:///{export}?socket={}", far.socket());
        let body = json!({"pool": "far", "source": {"uri": uri}});
        rig.control().put_volume(name, &body, true).expect("it can be made");
    }
    let (mut a, mut b) = (rig.served_client("a"), rig.served_client("b"));
    for (client, name) in [(&mut a, "a"), (&mut b, "b")] {
        client.write(0, &[1; 512]);
        rig.control().quiesce_volume(name).expect("it is connected");
    }
    far.stop();
    b.ask(Command::Read { offset: 0, len: 512, df: false });
    let question = RemovalQuestion { drain: Some("0s".to_owned()), ..RemovalQuestion::default() };
    rig.control().remove_volume("a", &question).expect("everything is durable");
    rig.control().remove_volume("b", &question).expect("nothing was written since");
    assert!(b.reply().result.is_err(), "its read came too late");
    rig.end();
}
