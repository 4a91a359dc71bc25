//! Pools whose volumes are no files: exports of other servers, or memory behind one model.

use paternoster_nbd::Command;
use paternoster_server::ctl::{
    CatalogueError, Control as _, ReloadMode, RemovalQuestion, VolumeStage,
};
use serde_json::{Value, json};

use crate::support::Rig;
use crate::turnover::{eventually, reload};

/// The server of the far volumes.
const SERVER: &str = r#"
[pools.p]
path = "DIR"
[volumes.one]
pool = "p"
[volumes.two]
pool = "p"
[disks.d]
backend = "memory"
size = "3M"
[exports.three]
disk = "d"
read_only = true
"#;

/// `FAR` is the directory of that server.
const POOLS: &str = r#"
[pools.far]
backend = "nbd"
scheduler = "wfq"
[pools.slow]
backend = "modelled"
servers = 1
service_us = 100
sync_us = 300
scheduler = "wfq"
[volumes.a]
pool = "far"
uri = "nbd+unix:///one?socket=FAR/nbd.sock"
weight = 300
[volumes.m]
pool = "slow"
size = "1M"
[exports.part]
volume = "m"
offset = "4K"
size = "4K"
read_only = true
"#;

fn server() -> Rig {
    Rig::prepared(SERVER, |dir| {
        for name in ["one.img", "two.img"] {
            let image = std::fs::File::create(dir.join(name)).expect("an image");
            image.set_len(1 << 20).expect("room");
        }
    })
}

fn uri(far: &Rig, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", far.socket().display())
}

fn pools(far: &Rig) -> Rig {
    Rig::start(&file(far))
}

fn file(far: &Rig) -> String {
    POOLS.replace("FAR", far.dir.path().to_str().expect("UTF-8"))
}

fn made(rig: &Rig, name: &str, body: &Value) -> u64 {
    rig.control().put_volume(name, body, false).expect("it can be made").shown.size
}

fn refused(rig: &Rig, name: &str, body: &Value) -> String {
    rig.control().put_volume(name, body, false).expect_err("it cannot be made").to_string()
}

fn remove(rig: &Rig, name: &str) -> Result<(), CatalogueError> {
    rig.control().remove_volume(name, &RemovalQuestion::default())
}

#[test]
fn far_volumes_are_exports_of_a_server_and_share_one_disk() {
    let far = server();
    let rig = pools(&far);
    assert_eq!(
        made(&rig, "b", &json!({"pool": "far", "source": {"uri": uri(&far, "two")}})),
        1 << 20
    );
    for (name, value) in [("a", 1), ("b", 2)] {
        let mut client = rig.client(name);
        client.write(4096, &[value; 4096]);
        client.call(Command::Flush).expect("it is durable");
    }
    for (name, value) in [("one", 1), ("two", 2)] {
        assert_eq!(far.client(name).read(4096, 4096), [value; 4096][..]);
    }
    let stat = rig.stat();
    let disk = &stat.disks[0];
    assert_eq!(
        (disk.name.as_str(), disk.backend.as_str(), disk.size_bytes),
        ("far", "nbd", 2 << 20)
    );
    let weights: Vec<_> = disk.groups.iter().map(|of| (of.path.as_str(), of.weight)).collect();
    assert_eq!(weights, [("/a", 300), ("/b", 100)]);
    let b = rig.control().volume("b").expect("it is there");
    assert_eq!((b.path, b.uri), (None, Some(uri(&far, "two"))));
    assert_eq!(b.source, Some(json!({"uri": uri(&far, "two")})));
    remove(&rig, "b").expect("it is gone");
    assert_eq!(
        made(&rig, "b", &json!({"pool": "far", "source": {"uri": uri(&far, "two")}})),
        1 << 20
    );
    rig.end();
    far.end();
}

#[test]
fn what_cannot_be_a_far_volume_is_refused() {
    let (far, other) = (server(), server());
    let rig = pools(&far);
    let far_body = |uri: String| json!({"pool": "far", "source": {"uri": uri}});
    let cases = [
        (far_body(uri(&far, "one")), "is \"a\" already"),
        (far_body(uri(&other, "two")), "is on another server than"),
        (far_body(uri(&far, "none")), "does not show its export"),
        (far_body(uri(&far, "three")), "is read-only: exports of this volume need read_only"),
        (far_body(uri(&rig, "m")), "is this server itself"),
        (far_body("nbd+unix:///x?socket=y".to_owned()), "relative"),
        (far_body("http://x".to_owned()), "uri = \"http://x\""),
        (json!({"pool": "far", "size": "1M"}), "\"source\": {\"uri\": URI} is needed"),
        (
            json!({"pool": "slow", "size": "1M", "source": {"uri": uri(&far, "two")}}),
            "\"source\": {\"new\": \"sparse\"} is allowed",
        ),
        (json!({"pool": "slow", "size": 7}), "size = 7"),
        (json!({"pool": "slow"}), "missing key `size`"),
        (json!({"pool": "slow", "size": "4096T"}), "pool \"slow\": "),
        (json!({"pool": "slow", "size": "1M", "copy": true}), "copy: a template is copied"),
        (json!({"pool": "slow", "size": "1M", "durable": true}), "there is no state_dir"),
    ];
    for (body, expected) in cases {
        let said = refused(&rig, "x", &body);
        assert!(said.contains(expected), "{body}\n{said}");
    }
    let grown = rig.control().patch_volume("x", &json!({"size": "1M"})).expect_err("none is there");
    assert!(grown.to_string().contains("there is no volume"), "{grown}");
    let mut sized = far_body(uri(&far, "two"));
    sized["size"] = "2M".into();
    let said = refused(&rig, "x", &sized);
    assert!(said.contains("has 1048576 bytes, not the 2097152 of size"), "{said}");
    let mut read_only = far_body(uri(&far, "three"));
    read_only["read_only"] = true.into();
    assert_eq!(made(&rig, "x", &read_only), 3 << 20);
    assert!(rig.control().volume("y").is_err());
    rig.end();
    far.end();
    other.end();
}

/// It has the size that its server shows. A client that is connected is served on.
#[test]
fn far_volume_grows_when_its_server_has_more() {
    let far = server();
    let rig = pools(&far);
    made(&rig, "b", &json!({"pool": "far", "source": {"uri": uri(&far, "two")}}));
    let mut client = rig.served_client("b");
    let image = std::fs::OpenOptions::new().write(true).open(far.dir.path().join("two.img"));
    image.expect("it is there").set_len(3 << 20).expect("room");
    // The server is told by its file.
    let grown = SERVER.replace("DIR", far.dir.path().to_str().expect("UTF-8"));
    reload(&far, ReloadMode::Apply, &grown).expect("a good file");
    let patch = json!({"size": 3 << 20});
    client.write(0, &[5; 512]);
    let larger = rig.control().patch_volume("b", &json!({"size": 4 << 20})).expect_err("too much");
    assert!(larger.to_string().contains("3145728 bytes, and the volume 4194304"), "{larger}");
    assert_eq!(client.read(0, 512), [5; 512][..], "it is as it was");
    rig.control().quiesce_volume("b").expect("it is connected");
    let left = rig.control().patch_volume("b", &patch).expect_err("it would be connected");
    assert!(left.to_string().contains("is quiesced: resume it first"), "{left}");
    rig.control().resume_volume("b").expect("it was quiesced");
    client.read(0, 512);
    assert_eq!(rig.control().patch_volume("b", &patch).expect("it has as many").size, 3 << 20);
    assert_eq!(client.read(0, 512), [5; 512][..]);
    client.call(Command::Flush).expect("nothing is in doubt");
    client.ask(Command::Disconnect);
    let mut client = rig.client("b");
    assert_eq!(client.export().size, 3 << 20);
    client.write((3 << 20) - 512, &[6; 512]);
    let smaller = rig.control().patch_volume("b", &json!({"size": "2M"})).expect_err("it is less");
    assert!(smaller.to_string().contains("does not become smaller"), "{smaller}");
    assert_eq!(far.client("two").read((3 << 20) - 512, 512), [6; 512][..]);
    rig.end();
    far.end();
}

/// Bytes of a modelled volume stay through all changes; a request of one waits for the other's.
#[test]
fn modelled_volumes_keep_their_bytes_and_share_their_servers() {
    let far = server();
    let rig = pools(&far);
    made(&rig, "n", &json!({"pool": "slow", "size": "1M"}));
    assert!(!rig.control().volume("n").expect("it is there").durable);
    let (mut m, mut n) = (rig.client("m"), rig.client("n"));
    m.write(4096, &[1; 4096]);
    n.write(4096, &[2; 4096]);
    assert_eq!(rig.client("part").read(0, 4096), [1; 4096][..]);
    let grown = rig.control().patch_volume("n", &json!({"size": "2M"})).expect("it may");
    assert_eq!((grown.size, rig.client("n").export().size), (2 << 20, 2 << 20));
    let too_large = rig.control().patch_volume("n", &json!({"size": "4000T"})).expect_err("no");
    assert!(matches!(too_large, CatalogueError::Size { .. }), "{too_large}");
    assert_eq!(rig.control().volume("n").expect("it is there").size, 2 << 20);
    n.ask(Command::Disconnect);
    m.ask(Command::Disconnect);
    rig.until_empty();
    let patch = json!({"read_only": true, "ioprio": "idle"});
    rig.control().patch_volume("n", &patch).expect("nobody uses it");
    rig.control().reopen_volume("n").expect("nobody uses it");
    let mut n = rig.client("n");
    assert_eq!(
        (n.read(4096, 4096), n.read((2 << 20) - 512, 512)),
        ([2; 4096][..].into(), [0; 512][..].into())
    );
    let smaller = rig.control().patch_volume("n", &json!({"size": "1M"})).expect_err("it is less");
    assert!(smaller.to_string().contains("does not become smaller"), "{smaller}");
    // 20 reads each of 100 µs by one server take 4 ms together, whoever asks.
    let begun = std::time::Instant::now();
    let mut m = rig.client("m");
    for _ in 0..20 {
        m.ask(Command::Read { offset: 0, len: 4096, df: false });
        n.ask(Command::Read { offset: 0, len: 4096, df: false });
    }
    for client in [&mut m, &mut n] {
        (0..20).for_each(|_| _ = client.reply());
    }
    assert!(begun.elapsed() >= std::time::Duration::from_millis(4), "{:?}", begun.elapsed());
    let disk = &rig.stat().disks[1];
    let modelled = disk.modelled.as_ref().expect("it is modelled");
    assert_eq!((disk.name.as_str(), modelled.servers), ("slow", Some(1)));
    drop(n);
    remove(&rig, "n").expect("it is gone");
    rig.end();
    far.end();
}

/// Whoever declares what a request has made by its URI does not serve it a second time: no lock is
/// there that would tell.
#[test]
fn export_of_another_server_is_served_once() {
    let far = server();
    let rig = pools(&far);
    let two = uri(&far, "two");
    made(&rig, "b", &json!({"pool": "far", "source": {"uri": two}}));
    let disk =
        format!("[disks.x]\nbackend = \"nbd\"\nuri = \"{two}\"\n[exports.x]\ndisk = \"x\"\n");
    let pool =
        format!("[pools.x]\nbackend = \"nbd\"\n[volumes.x]\npool = \"x\"\nuri = \"{two}\"\n");
    let volume = format!("[volumes.x]\npool = \"far\"\nuri = \"{two}\"\n");
    for more in [disk, pool, volume] {
        let answer = reload(&rig, ReloadMode::Apply, &format!("{}{more}", file(&far)));
        let failed = answer.expect("a good file").failed;
        assert!(failed.len() == 1 && failed[0].why.contains("is \"b\" already"), "{failed:?}");
    }
    assert!(rig.control().volume("x").is_err());
    // What is refused here may be the file's when the other has gone.
    remove(&rig, "b").expect("it is gone");
    reload(
        &rig,
        ReloadMode::Apply,
        &format!("{}[volumes.x]\npool = \"far\"\nuri = \"{two}\"\n", file(&far)),
    )
    .expect("a good file");
    assert_eq!(rig.client("x").export().size, 1 << 20);
    rig.end();
    far.end();
}

/// A volume whose server is away stays as it is, and whose connection was lost with writes that
/// were not flushed is as new when it is reopened, by a request or of the file.
#[test]
fn far_volume_whose_server_was_lost_is_reopened() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "[disks.d]\npath = \"DIR/one.img\"\ncache = \"page\"\n[exports.one]\ndisk = \"d\"\n";
    let text = text.replace("DIR", dir.path().to_str().expect("UTF-8"));
    let start = || crate::support::start_in(dir.path(), &text).expect("a server");
    std::fs::File::create(dir.path().join("one.img")).expect("it").set_len(1 << 20).expect("room");
    let server = start();
    let socket = dir.path().join("nbd.sock");
    let rig = Rig::start(&format!(
        "[pools.far]\nbackend = \"nbd\"\nreconnect = \"2s\"\n[volumes.a]\npool = \"far\"\n\
         uri = \"nbd+unix:///one?socket={}\"\n",
        socket.display()
    ));
    let mut client = rig.client("a");
    client.write(0, &[3; 512]);
    server.shut_down().expect("a good end");
    eventually("it is lost", || {
        let far = rig.control().volume("a").expect("it is there").far.expect("it is far");
        far.lost > 0
    });
    client.ask(Command::Disconnect);
    rig.until_empty();
    let away = rig.control().reopen_volume("a").expect_err("nobody is there");
    assert!(away.to_string().contains("does not show its export"), "{away}");
    assert_eq!(rig.control().volume("a").expect("it stays").state, VolumeStage::Ready);
    let server = start();
    eventually("it is in doubt, and there", || {
        let far = rig.control().volume("a").expect("it is there").far.expect("it is far");
        far.in_doubt && far.connections > 0
    });
    let why = rig.control().volume("a").expect("it is there").why;
    assert!(why.is_some_and(|why| why.contains("not flushed")));
    let opened = rig.control().reopen_volume("a").expect("its server is back");
    assert_eq!((opened.why, opened.far.map(|far| far.in_doubt)), (None, Some(false)));
    let mut client = rig.client("a");
    assert_eq!(client.read(0, 512), [3; 512][..]);
    client.call(Command::Flush).expect("nothing is in doubt");
    rig.end();
    server.shut_down().expect("a good end");
}

#[test]
fn volumes_of_other_pools_come_and_go_with_the_file() {
    let far = server();
    let rig = pools(&far);
    let old = file(&far);
    rig.served_client("m").write(0, &[7; 512]);
    // The first volume of a model, behind which there is none.
    let larger = old.replacen("size = \"1M\"", "size = \"2M\"", 1);
    let answer = reload(&rig, ReloadMode::Apply, &larger).expect("a good file");
    assert_eq!(answer.failed, [], "{answer:?}");
    let old = larger;
    let b = format!("[volumes.b]\npool = \"far\"\nuri = \"{}\"\n", uri(&far, "two"));
    let more = format!("{old}{b}[volumes.n]\npool = \"slow\"\nsize = \"2M\"\n");
    let answer = reload(&rig, ReloadMode::Apply, &more).expect("a good file");
    assert_eq!(answer.changed.len(), 2, "{answer:?}");
    assert_eq!([rig.client("b"), rig.client("n")].map(|of| of.export().size), [1 << 20, 2 << 20]);
    rig.until_empty();
    // A modelled volume grows, and keeps its bytes; another URI waits.
    let grown = old.replacen("size = \"2M\"", "size = \"4M\"", 1);
    let moved = grown.replacen("/one?", "/two?", 1);
    let answer = reload(&rig, ReloadMode::Apply, &moved).expect("a good file");
    let waits: Vec<_> = answer.needs_restart.iter().map(ToString::to_string).collect();
    assert!(waits.len() == 1 && waits[0].starts_with("volume \"a\": uri"), "{answer:?}");
    assert_eq!(rig.client("m").export().size, 4 << 20, "{answer:?}");
    assert_eq!(rig.client("m").read(0, 512), [7; 512][..]);
    assert_eq!(rig.control().volume("a").expect("it stays").state, VolumeStage::Ready);
    rig.until_empty();
    let faster = old.replacen("servers = 1", "servers = 2", 1);
    let answer = reload(&rig, ReloadMode::Apply, &faster).expect("a good file");
    let waits: Vec<_> = answer.needs_restart.iter().map(ToString::to_string).collect();
    assert!(waits.contains(&"pool \"slow\": servers 1 -> 2".to_owned()), "{answer:?}");
    rig.end();
    far.end();
}
