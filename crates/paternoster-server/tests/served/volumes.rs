//! Volumes that are made, changed and removed while clients are served.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use paternoster_nbd::{Command, NbdError};
use paternoster_server::ControlHandle;
use paternoster_server::ctl::{
    CatalogueError, Control as _, Data, RemovalQuestion, VolumeAnswer, VolumeStage, VolumesQuestion,
};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Rig, refusal, rest};

const POOL: &str = r#"
[pools.fast]
path = "DIR/images"
scheduler = "wfq"
capacity = "64M"
volumes = 5
[pools.slow]
path = "DIR/images"
same_device = "warn"
scheduler = "cfq"
[groups."/gold"]
weight = 500
[volumes.declared]
pool = "fast"
group = "/gold"
read_only = true
[disks.d]
backend = "memory"
size = "1M"
[exports.x]
disk = "d"
"#;

fn pool() -> Rig {
    Rig::prepared(POOL, |dir| {
        fs::create_dir(dir.join("images")).expect("a directory");
        let declared = File::create(dir.join("images/declared.img")).expect("an image");
        declared.set_len(1 << 20).expect("room");
        declared.write_all_at(&[42; 4096], 4096).expect("it is written");
    })
}

fn remove(
    control: &ControlHandle,
    name: &str,
    drain: &str,
    data: Data,
) -> Result<(), CatalogueError> {
    let drain = Some(drain.to_owned());
    control.remove_volume(name, &RemovalQuestion { drain, data, wait: None })
}

impl Rig {
    fn make(&self, name: &str, body: &Value) -> VolumeAnswer {
        let put = self.control().put_volume(name, body, false).expect("it can be made");
        assert!(put.is_new);
        put.shown
    }

    fn refused(&self, name: &str, body: &Value) -> CatalogueError {
        self.control().put_volume(name, body, false).expect_err("it cannot be made")
    }

    fn remove(&self, name: &str, drain: &str, data: Data) -> Result<(), CatalogueError> {
        remove(&self.control(), name, drain, data)
    }

    /// The weights of the groups on the pool, by path.
    fn weights(&self) -> BTreeMap<String, u32> {
        let stat = self.stat();
        let fast = stat.disks.iter().find(|disk| disk.name == "fast").expect("the pool");
        fast.groups.iter().map(|group| (group.path.clone(), group.weight)).collect()
    }

    /// Why a client may not enter that export.
    fn refusal(&self, export: &str) -> String {
        refusal(self.connect(), export).1
    }

    fn image(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("images").join(name)
    }
}

#[test]
fn volume_is_made_used_grown_and_removed() {
    let rig = pool();
    assert_eq!(rig.weights(), [("/gold".to_owned(), 500)].into());
    let made = rig.make("vm7", &json!({"pool": "fast", "size": "8M", "weight": 200}));
    assert_eq!((made.size, made.group.as_str(), made.state), (8 << 20, "/vm7", VolumeStage::Ready));
    assert_eq!(made.uris.len(), 1, "{:?}", made.uris);
    assert_eq!(rig.weights()["/vm7"], 200);
    let mut client = rig.client("vm7");
    client.write((8 << 20) - 4096, &[7; 4096]);
    client.call(Command::Flush).expect("it is durable");

    let patch =
        json!({"size": "16M", "weight": 300, "description": "x", "limits": {"riops": 5000}});
    let grown = rig.control().patch_volume("vm7", &patch).expect("it may change");
    assert_eq!((grown.size, grown.weight, grown.clients), (16 << 20, Some(300), 1));
    assert_eq!(grown.limits, Some(json!({"riops": 5000})));
    assert_eq!(rig.weights()["/vm7"], 300);
    assert_eq!(client.export().size, 8 << 20, "a session keeps the size that it was told");
    let mut second = rig.client("vm7");
    assert_eq!(second.export().size, 16 << 20);
    assert_eq!(second.export().description.as_deref(), Some("x"));
    second.write((16 << 20) - 4096, &[9; 4096]);
    assert_eq!(second.read((8 << 20) - 4096, 4096), [7; 4096][..]);

    let begun = Instant::now();
    rig.remove("vm7", "0s", Data::Keep).expect("it is gone");
    assert!(begun.elapsed() < Duration::from_secs(2), "nobody is waited for");
    assert_eq!([rest(&mut client.stream), rest(&mut second.stream)], [[0; 0]; 2]);
    assert_eq!(rig.weights(), [("/gold".to_owned(), 500)].into(), "its group is gone too");
    let mut bytes = [0; 4096];
    let image = File::open(rig.image("vm7.img")).expect("its image is kept");
    image.read_exact_at(&mut bytes, (16 << 20) - 4096).expect("it has its size");
    assert_eq!(bytes, [9; 4096]);
    assert!(rig.refusal("vm7").contains("vm7"));
    assert_eq!(
        rig.control().volume("vm7").expect_err("it is gone"),
        CatalogueError::NoSuchVolume("vm7".to_owned())
    );
    // What is there is not made anew, and can be taken as it is.
    let body = json!({"pool": "fast", "size": "8M"});
    assert!(matches!(rig.refused("vm7", &body), CatalogueError::ImageExists { .. }));
    let body = json!({"pool": "fast", "source": {"path": ".new-x.img"}});
    assert!(rig.refused("vm8", &body).to_string().contains("rename it"));
    let body = json!({"pool": "fast", "source": {"path": "../images/vm7.img"}});
    assert!(rig.refused("vm8", &body).to_string().contains("without \"..\""));
    let taken = rig.make("vm7", &json!({"pool": "fast", "source": {"path": "vm7.img"}}));
    assert_eq!(taken.size, 16 << 20);
    assert_eq!(rig.client("vm7").read((8 << 20) - 4096, 4096), [7; 4096][..]);
    let not_made = rig.remove("vm7", "0s", Data::Delete).expect_err("it was there before");
    assert_eq!(not_made, CatalogueError::NotMadeHere(rig.image("vm7.img").display().to_string()));
    rig.end();
}

#[test]
fn clients_are_served_while_a_volume_drains_and_no_others_come() {
    let rig = pool();
    rig.make("vm7", &json!({"pool": "fast", "size": "8M"}));
    rig.make("vm8", &json!({"pool": "fast", "size": "8M"}));
    let (mut client, mut other) = (rig.served_client("vm7"), rig.served_client("vm8"));
    let control = rig.control();
    thread::scope(|scope| {
        let removal = scope.spawn(|| remove(&control, "vm7", "60s", Data::Delete));
        let begun = Instant::now();
        while rig.control().volume("vm7").expect("it is there").state != VolumeStage::Draining {
            assert!(begun.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(1));
        }
        let why = rig.refusal("vm7");
        assert!(why.contains("is being removed"), "{why}");
        for seed in 0..20 {
            client.check_served(seed);
            other.check_served(seed);
        }
        assert!(!removal.is_finished());
        client.ask(Command::Disconnect);
        removal.join().expect("no panic").expect("it is gone");
        assert!(begun.elapsed() < PATIENCE, "nobody is waited for who has left");
    });
    assert!(!rig.image("vm7.img").exists());
    other.check_served(99);
    rig.end();
}

/// With the end of the drain its commands in the device are answered, and the client is closed; the
/// neighbour notices nothing.
#[test]
fn clients_that_do_not_leave_in_time_are_closed() {
    let rig = pool();
    for name in ["vm7", "vm8"] {
        rig.make(name, &json!({"pool": "fast", "size": "8M"}));
    }
    let (mut client, mut other) = (rig.served_client("vm7"), rig.served_client("vm8"));
    for index in 0..64_u64 {
        let data = Bytes::from(vec![7; 64 << 10]);
        client.ask(Command::Write { offset: index * (64 << 10), data, fua: index % 2 == 0 });
    }
    let control = rig.control();
    thread::scope(|scope| {
        let removal = scope.spawn(|| remove(&control, "vm7", "100ms", Data::Keep));
        for seed in 0..50 {
            other.check_served(seed);
        }
        removal.join().expect("no panic").expect("it is gone");
    });
    // It was answered or not, and then the end came: nothing that is no reply.
    let replies = rest(&mut client.stream).len();
    assert!(replies <= 64 * 32, "{replies} bytes");
    other.check_served(99);
    let answered = rig.control().volumes(&VolumesQuestion::default()).expect("they are there");
    let names: Vec<_> = answered.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["declared", "vm8"]);
    rig.end();
}

#[test]
fn equal_requests_at_once_make_one_volume() {
    let rig = pool();
    let body = json!({"pool": "fast", "size": "4M", "weight": 7});
    let control = rig.control();
    let made = thread::scope(|scope| {
        let put = || control.put_volume("vm7", &body, false).expect("it is there").is_new;
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(put)).collect();
        let joined = threads.into_iter().map(|one| one.join().expect("no panic"));
        joined.collect::<Vec<_>>()
    });
    assert_eq!(made.iter().filter(|is_new| **is_new).count(), 1, "{made:?}");
    let images = fs::read_dir(rig.dir.path().join("images")).expect("the directory");
    assert_eq!(images.count(), 2, "the one, and that of the file");
    let again = rig.control().put_volume("vm7", &body, true).expect_err("it is there");
    assert_eq!(again, CatalogueError::NotNew { what: "volume", name: "vm7".to_owned() });
    let other = json!({"pool": "slow", "size": "4M", "weight": 7});
    let error = rig.refused("vm7", &other).to_string();
    assert!(error.starts_with("volume \"vm7\" is there, and was made as {"), "{error}");
    // Without its size it is as it is; a weight that is left out is the usual one.
    let put = rig.control().put_volume("vm7", &json!({"pool": "fast"}), false).expect("the same");
    assert_eq!((put.is_new, put.shown.size, put.shown.weight), (false, 4 << 20, Some(100)));
    assert_eq!(rig.weights()["/vm7"], 100);
    rig.end();
}

#[test]
fn volumes_of_a_group_are_one_tenant_which_goes_with_the_last() {
    let rig = pool();
    for name in ["a", "b"] {
        rig.make(name, &json!({"pool": "fast", "size": "1M", "group": "/silver/vms"}));
    }
    let gold = rig.make("c", &json!({"pool": "fast", "size": "1M", "group": "/gold"}));
    assert_eq!((gold.weight, gold.limits), (None, None));
    let usual = [("/gold", 500), ("/silver", 100), ("/silver/vms", 100)];
    let usual = usual.map(|(path, weight)| (path.to_owned(), weight));
    assert_eq!(rig.weights(), BTreeMap::from(usual.clone()));
    rig.remove("a", "0s", Data::Delete).expect("it is gone");
    assert_eq!(rig.weights(), BTreeMap::from(usual));
    let mut b = rig.client("b");
    b.check_served(1);
    // In use it stays where it is.
    let patch = json!({"group": "/gold"});
    let in_use = rig.control().patch_volume("b", &patch).expect_err("it has a client");
    assert_eq!(
        in_use.to_string(),
        "volume \"b\" has 1 clients; group changes without clients alone"
    );
    b.check_served(2);
    b.ask(Command::Disconnect);
    rig.until_empty();
    let moved = rig.control().patch_volume("b", &patch).expect("nobody uses it");
    assert_eq!(moved.group, "/gold");
    assert_eq!(rig.weights(), [("/gold".to_owned(), 500)].into());
    // Out of it, it has a group of its own, and that one a weight.
    let alone = json!({"group": null, "weight": 7});
    let alone = rig.control().patch_volume("b", &alone).expect("nobody uses it");
    assert_eq!((alone.group.as_str(), alone.weight, rig.weights()["/b"]), ("/b", Some(7), 7));
    rig.control().patch_volume("b", &json!({"weight": 9})).expect("it may change");
    assert_eq!(rig.weights()["/b"], 9);
    let back = json!({"group": "/gold", "weight": null});
    rig.control().patch_volume("b", &back).expect("nobody uses it");
    assert_eq!(rig.weights(), [("/gold".to_owned(), 500)].into());
    let mut b = rig.client("b");
    assert_eq!(b.read(4096, 8), 2_u64.to_be_bytes()[..]);
    rig.end();
}

#[test]
fn template_is_copied_or_shares_blocks_and_both_go_their_own_ways() {
    let rig = pool();
    let body = json!({"pool": "fast", "size": "2M", "source": {"template": "declared"}});
    match rig.control().put_volume("vm7", &body, false) {
        // A file system that can share blocks.
        Ok(_) => rig.remove("vm7", "0s", Data::Delete).expect("it is gone"),
        Err(error) => assert!(matches!(error, CatalogueError::NoReflink { .. }), "{error}"),
    }
    assert!(!rig.image("vm7.img").exists(), "nothing is left behind");
    let mut body = body;
    body["copy"] = true.into();
    let made = rig.make("vm7", &body);
    assert_eq!(made.size, 2 << 20);
    let mut client = rig.client("vm7");
    assert_eq!(client.read(4096, 4096), [42; 4096][..]);
    assert_eq!(client.read(1 << 20, 4096), [0; 4096][..]);
    client.write(4096, &[1; 4096]);
    assert_eq!(rig.client("declared").read(4096, 4096), [42; 4096][..]);
    let of_used = json!({"pool": "fast", "source": {"template": "vm7"}});
    let error = rig.refused("vm8", &of_used).to_string();
    assert!(error.contains("volume \"vm7\" is not read-only, as a template is"), "{error}");
    let of_open = json!({"pool": "fast", "source": {"template": "vm7.img"}, "copy": true});
    let error = rig.refused("vm8", &of_open).to_string();
    assert!(error.contains("somebody may write to it"), "{error}");
    rig.end();
}

#[test]
fn volume_becomes_smaller_or_read_only_without_clients_and_opens_again() {
    let rig = pool();
    rig.make("vm7", &json!({"pool": "fast", "size": "8M"}));
    let control = rig.control();
    let mut client = rig.client("vm7");
    client.write(0, &[5; 4096]);
    let patch = json!({"size": "4M", "read_only": true});
    let error = rig.control().patch_volume("vm7", &patch).expect_err("it has a client");
    assert!(error.to_string().contains("read_only, a smaller size"), "{error}");
    let error = rig.control().reopen_volume("vm7").expect_err("it has a client");
    assert!(matches!(error, CatalogueError::InUse { clients: 1, .. }), "{error}");
    client.ask(Command::Disconnect);
    rig.until_empty();
    let changed = rig.control().patch_volume("vm7", &patch).expect("nobody uses it");
    assert_eq!((changed.size, changed.read_only), (4 << 20, true));
    let mut client = rig.client("vm7");
    assert_eq!((client.export().size, client.read(0, 4096)), (4 << 20, Bytes::from(vec![5; 4096])));
    let data = Bytes::from(vec![5; 4096]);
    let write = client.call(Command::Write { offset: 0, data, fua: false });
    assert_eq!(write.map(drop), Err(NbdError::NotPermitted));
    client.ask(Command::Disconnect);
    rig.until_empty();
    // Somebody else reads it under a lock: it cannot be opened for writing, and stays as it is.
    let reader = File::open(rig.image("vm7.img")).expect("its image");
    flock(&reader, FlockOperation::NonBlockingLockShared).expect("it is read-only");
    let error = control.patch_volume("vm7", &json!({"read_only": false})).expect_err("a lock");
    assert!(error.to_string().contains("has locked it"), "{error}");
    let as_before = control.volume("vm7").expect("it is there");
    assert_eq!((as_before.state, as_before.read_only), (VolumeStage::Ready, true));
    drop(reader);
    // Somebody has cut its image: clients would be told of bytes that are not there.
    let resize = |size| File::options().write(true).open(rig.image("vm7.img"))?.set_len(size);
    resize(2 << 20).expect("it is cut");
    let error = control.reopen_volume("vm7").expect_err("it is too short");
    assert!(error.to_string().contains("it has 2097152 bytes, and the volume 4194304"), "{error}");
    let smaller = control.patch_volume("vm7", &json!({"size": "1M"})).expect_err("not served");
    assert!(smaller.to_string().contains("reopen it first"), "{smaller}");
    resize(4 << 20).expect("room");
    control.reopen_volume("vm7").expect("it has its bytes again");
    // Somebody has taken its image away; it can be brought back.
    fs::rename(rig.image("vm7.img"), rig.image("away.img")).expect("it is moved");
    let error = rig.control().reopen_volume("vm7").expect_err("there is no image");
    assert!(matches!(error, CatalogueError::Image { .. }), "{error}");
    let missing = rig.control().volume("vm7").expect("it is known");
    assert_eq!(missing.state, VolumeStage::Missing);
    assert!(missing.why.expect("a reason").contains("No such file"));
    fs::rename(rig.image("away.img"), rig.image("vm7.img")).expect("it is moved");
    let back = rig.control().reopen_volume("vm7").expect("it is there");
    assert_eq!(back.state, VolumeStage::Ready);
    assert_eq!(rig.client("vm7").read(0, 4096), [5; 4096][..]);
    rig.end();
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing_behind() {
    let rig = pool();
    std::os::unix::fs::symlink(rig.dir.path(), rig.image("link")).expect("a link");
    File::create(rig.dir.path().join("outside.img")).expect("a file").set_len(4096).expect("room");
    let size = |size: &str| json!({"pool": "fast", "size": size});
    let path = |path: &str| json!({"pool": "fast", "source": {"path": path}});
    let cases: Vec<(&str, Value, &str)> = vec![
        ("a/b", size("1M"), "\"a/b\": the name of a volume is 1 to 128 of A-Z"),
        ("..", size("1M"), "\"..\": the name of a volume"),
        ("x", size("1M"), "export \"x\" is declared in the server's file"),
        ("declared", size("1M"), "volume \"declared\" is declared in the server's file"),
        (
            "n",
            json!({"pool": "fsat", "size": "1M"}),
            "there is no pool \"fsat\"; there are: \"fast\", \"slow\"",
        ),
        ("n", json!({"pool": "fast"}), "missing key `size`"),
        ("n", size("1000"), "size = \"1000\": 1048576 to"),
        (
            "n",
            json!({"pool": "fast", "size": 1_048_577}),
            "size 1048577: whole blocks of 4096 bytes",
        ),
        (
            "n",
            size("65M"),
            "pool \"fast\" has 66060288 bytes left of 67108864; 68157440 were asked",
        ),
        ("n", json!({"pool": "fast", "size": "1M", "durable": true}), "there is no state_dir"),
        (
            "n",
            json!({"pool": "slow", "size": "1M", "limits": {"riops": 5}}),
            "pool \"slow\" has the scheduler cfq",
        ),
        (
            "gold",
            json!({"pool": "fast", "size": "1M", "weight": 5}),
            "group \"/gold\" was there before the volume, so",
        ),
        ("n", json!({"pool": "fast", "source": {"template": "none.img"}}), "image \""),
        ("n", path("../outside.img"), "image \""),
        ("n", path("link/outside.img"), "image \""),
        ("n", path("/etc/passwd"), "image \"/etc/passwd\": a path that is relative to the pool's"),
        ("n", path("declared.img"), "image \""),
        (
            "n",
            json!({"pool": "fast", "size": "2M", "source": {"path": "declared.img"}}),
            "size 2097152: the image has 1048576 bytes",
        ),
    ];
    let used = || {
        let pools = rig.control().pools().pools;
        pools.iter().map(|pool| (pool.used, pool.volumes)).collect::<Vec<_>>()
    };
    let before = used();
    for (name, body, said) in cases {
        let shown = body.to_string();
        let error = rig.refused(name, &body).to_string();
        assert!(error.starts_with(said), "{name} {shown}\n{error}");
    }
    assert_eq!(used(), before);
    let files = fs::read_dir(rig.dir.path().join("images")).expect("the directory").count();
    assert_eq!(files, 2);
    for index in 0..4 {
        rig.make(&format!("n{index}"), &size("1M"));
    }
    let full = rig.refused("n5", &size("1M")).to_string();
    assert_eq!(full, "pool \"fast\" has 5 volumes, which is all that it may have");
    let declared = rig.remove("declared", "0s", Data::Keep).expect_err("it is the file's");
    assert!(matches!(declared, CatalogueError::DeclaredInFile { .. }));
    rig.end();
}

#[test]
fn volumes_are_listed_by_name_a_page_at_a_time() {
    let rig = pool();
    for name in ["c", "a", "b"] {
        let pool = if name == "b" { "slow" } else { "fast" };
        rig.make(name, &json!({"pool": pool, "size": "1M"}));
    }
    let list = |question: VolumesQuestion| {
        let answer = rig.control().volumes(&question).expect("they are there");
        let names = answer.volumes.into_iter().map(|volume| volume.name);
        (names.collect::<Vec<_>>().join(" "), answer.next)
    };
    let all = VolumesQuestion::default();
    assert_eq!(list(all.clone()), ("a b c declared".to_owned(), None));
    let page = VolumesQuestion { limit: Some(2), ..all.clone() };
    assert_eq!(list(page.clone()), ("a b".to_owned(), Some("b".to_owned())));
    let second = VolumesQuestion { after: Some("b".to_owned()), ..page };
    assert_eq!(list(second), ("c declared".to_owned(), None));
    let of_slow = VolumesQuestion { pool: Some("slow".to_owned()), ..all.clone() };
    assert_eq!(list(of_slow), ("b".to_owned(), None));
    let of_gold = VolumesQuestion { group: Some("/gold".to_owned()), ..all.clone() };
    assert_eq!(list(of_gold), ("declared".to_owned(), None));
    let too_many = VolumesQuestion { limit: Some(0), ..all };
    assert!(rig.control().volumes(&too_many).is_err());
    let pools = rig.control().pools().pools;
    let fast = &pools[0];
    assert_eq!((fast.name.as_str(), fast.used, fast.volumes), ("fast", 3 << 20, 3));
    assert_eq!((fast.capacity, fast.volumes_max), (Some(64 << 20), 5));
    assert!(fast.free.expect("a file system") > 0);
    rig.end();
}

#[test]
fn limits_of_a_group_are_refused_where_they_would_have_no_effect() {
    let rig = pool();
    let control = rig.control();
    let limited = json!({"limits": {"riops": 9000}});
    control.put_group("/silver", &limited).expect("it is on no disk yet");
    let of_slow = |group: &str| json!({"pool": "slow", "size": "1M", "group": group});
    let below = rig.refused("a", &of_slow("/silver/vms"));
    assert!(matches!(below, CatalogueError::NoLimits { .. }), "{below}");
    rig.make("a", &of_slow("/tin"));
    let moved = control.patch_volume("a", &json!({"group": "/silver"})).expect_err("cfq");
    assert!(matches!(moved, CatalogueError::NoLimits { .. }), "{moved}");
    for result in [
        control.patch_group("/tin", &limited).map(drop),
        control.put_group("/tin", &limited).map(drop),
    ] {
        let refused = result.expect_err("cfq has no limits").to_string();
        assert!(refused.starts_with("disk \"slow\" has the scheduler cfq"), "{refused}");
    }
    let tin = control.served_group("/tin").expect("it is there");
    assert_eq!(tin.settings["limits"], json!({}));
    // What was refused has not made the group stay.
    rig.remove("a", "0s", Data::Delete).expect("it is gone");
    assert!(matches!(control.served_group("/tin"), Err(CatalogueError::NoSuchGroup { .. })));
    rig.end();
}

#[test]
fn group_is_made_bounds_its_volumes_and_goes_when_it_is_empty() {
    let rig = pool();
    let control = rig.control();
    let body = json!({"weight": 300, "capacity": "4M", "volumes": 2, "limits": {"riops": 9000}});
    let made = control.put_group("/silver", &body).expect("it can be made");
    assert!(made.is_new && !made.shown.of_file);
    assert!(!control.put_group("/silver", &body).expect("it is there").is_new);
    assert_eq!(rig.weights(), [("/gold".to_owned(), 500)].into(), "it has no export");
    let volume = |size: &str| json!({"pool": "fast", "size": size, "group": "/silver/vms"});
    rig.make("a", &volume("3M"));
    assert_eq!(rig.weights()["/silver"], 300);
    let error = rig.refused("b", &volume("2M")).to_string();
    let expected = "group \"/silver\" has 1 volumes and 1048576 bytes left of its quota; 2097152 \
                    were asked for";
    assert_eq!(error, expected);
    rig.make("b", &volume("1M"));
    assert!(matches!(rig.refused("c", &volume("1M")), CatalogueError::OverQuota { .. }));
    let grown = control.patch_volume("b", &json!({"size": "2M"})).expect_err("the quota");
    assert!(matches!(grown, CatalogueError::OverQuota { .. }), "{grown}");
    rig.make("alone", &json!({"pool": "fast", "size": "2M"}));
    let into = control.patch_volume("alone", &json!({"group": "/silver"})).expect_err("the quota");
    assert!(matches!(into, CatalogueError::OverQuota { .. }), "{into}");
    rig.remove("alone", "0s", Data::Delete).expect("it is gone");
    let memory = control.patch_group("/silver", &json!({"memory": "32M"})).expect_err("in use");
    assert!(memory.to_string().contains("memory and connections of a group that has"), "{memory}");
    let patch = json!({"weight": 700, "capacity": null, "volumes": null});
    let patched = control.patch_group("/silver", &patch).expect("it may change");
    assert_eq!((patched.exports, patched.volumes_used, patched.used), (2, 2, 4 << 20));
    assert_eq!(patched.settings["limits"], json!({"riops": 9000}));
    assert_eq!(rig.weights()["/silver"], 700);
    control.patch_volume("b", &json!({"size": "2M"})).expect("there is no quota");
    let full = control.remove_group("/silver").expect_err("it has exports");
    assert!(matches!(full, CatalogueError::NotEmpty { exports: 2, .. }), "{full}");
    for name in ["a", "b"] {
        rig.remove(name, "0s", Data::Delete).expect("it is gone");
    }
    assert_eq!(rig.weights(), [("/gold".to_owned(), 500)].into());
    let kept = control.served_group("/silver").expect("it stays without exports");
    assert_eq!((kept.exports, &kept.settings["weight"]), (0, &json!(700)));
    control.remove_group("/silver").expect("it is empty");
    assert!(matches!(control.served_group("/silver"), Err(CatalogueError::NoSuchGroup { .. })));
    // The file's is the file's, and may be tuned.
    let declared = control.put_group("/gold", &json!({})).expect_err("it is declared");
    assert!(matches!(declared, CatalogueError::DeclaredInFile { what: "group", .. }));
    control.patch_group("/gold", &json!({"weight": 50})).expect("it may change");
    assert_eq!(rig.weights()["/gold"], 50);
    for (path, body) in [("gold", json!({})), ("/", json!({})), ("/s", json!({"weight": 0}))] {
        assert!(control.put_group(path, &body).is_err(), "{path} {body}");
    }
    rig.end();
}
