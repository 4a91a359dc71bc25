//! Volumes and groups that are made by request and outlive a restart.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use paternoster_nbd::Command;
use paternoster_server::ctl::{
    CatalogueError, Control as _, Data, ExportAnswer, ExportsQuestion, ReloadMode, RemovalQuestion,
    ServedGroup, VolumeAnswer, VolumeStage, VolumesQuestion,
};
use rustix::fs::{FlockOperation, flock, statvfs};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Rig, refusal, start_in};
use crate::turnover::eventually;

const POOL: &str = r#"
state_dir = "DIR/state"
[pools.fast]
path = "DIR/images"
scheduler = "wfq"
"#;

fn pool() -> Rig {
    Rig::prepared(POOL, |dir| fs::create_dir(dir.join("images")).expect("a directory"))
}

impl Rig {
    /// Shuts the server down: its folder.
    pub(crate) fn stopped(self) -> TempDir {
        self.server.shut_down().expect("no thread failed");
        self.dir
    }

    /// Shuts the server down and starts another one in its folder.
    pub(crate) fn restarted(self, toml: &str) -> Self {
        let dir = self.stopped();
        let server = start_in(dir.path(), toml).expect("a server");
        Self { dir, server }
    }
}

/// Makes a volume, or has it be as the body says. Whether it is new.
fn put(rig: &Rig, name: &str, body: &Value) -> bool {
    rig.control().put_volume(name, body, false).expect("it can be made").is_new
}

fn remove(rig: &Rig, name: &str, data: Data) -> Result<(), CatalogueError> {
    let question = RemovalQuestion { drain: Some("0s".to_owned()), data, wait: None };
    rig.control().remove_volume(name, &question)
}

fn names(rig: &Rig) -> Vec<String> {
    let all = rig.control().volumes(&VolumesQuestion::default()).expect("the pool answers");
    all.volumes.into_iter().map(|volume| volume.name).collect()
}

/// Else a server of many volumes would wait for each of them.
#[test]
fn locked_images_are_waited_for_together() {
    let rig = pool();
    let all = ["vm1", "vm2", "vm3"];
    let body = json!({"pool": "fast", "size": "1M"});
    assert!(all.iter().all(|name| put(&rig, name, &body)));
    let dir = rig.stopped();
    let locked = all.map(|name| {
        let image = fs::File::open(dir.path().join(format!("images/{name}.img")));
        let image = image.expect("its image");
        flock(&image, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
        image
    });
    let began = Instant::now();
    let server = start_in(dir.path(), POOL).expect("it serves what it can");
    let took = began.elapsed();
    let whole = Duration::from_secs(4)..Duration::from_secs(9);
    assert!(whole.contains(&took), "5 s, not 15: {took:?}");
    drop(locked);
    let rig = Rig { dir, server };
    for name in all {
        let volume = rig.control().volume(name).expect("it is recorded");
        assert_eq!(volume.state, VolumeStage::Missing, "{name}");
    }
    rig.end();
}

/// The files of a directory of the rig.
fn files(dir: &Path, of: &str) -> Vec<String> {
    let files = fs::read_dir(dir.join(of)).into_iter().flatten();
    let name = |file: fs::DirEntry| file.file_name().into_string().expect("UTF-8");
    let mut files: Vec<_> = files.map(|file| name(file.expect("a file"))).collect();
    files.sort_unstable();
    files
}

/// Why a server does not start in the folder.
fn refused(dir: &Path, toml: &str) -> String {
    format!("{:#}", start_in(dir, toml).expect_err("it cannot start"))
}

fn weight(rig: &Rig, path: &str) -> Option<u32> {
    let stat = rig.stat();
    let mut groups = stat.disks[0].groups.iter();
    groups.find(|group| group.path == path).map(|group| group.weight)
}

#[test]
fn what_was_answered_is_there_after_a_restart() {
    let rig = pool();
    let gold = json!({"weight": 300, "limits": {"riops": 9000}, "capacity": "32M"});
    assert!(rig.control().put_group("/gold", &gold).expect("it can be made").is_new);
    assert!(put(&rig, "a", &json!({"pool": "fast", "size": "2M", "group": "/gold"})));
    let own = json!({"pool": "fast", "size": "2M", "weight": 200, "limits": {"wbps": "1G"},
                     "description": "x", "ioprio": "idle"});
    assert!(put(&rig, "b", &own));
    // It names the group of a volume that has its own: that one says what is set of it.
    assert!(put(&rig, "aa", &json!({"pool": "fast", "size": "1M", "group": "/b"})));
    assert!(put(&rig, "c", &json!({"pool": "fast", "size": "1M", "durable": false})));
    let mut client = rig.client("b");
    client.write(4096, &[5; 4096]);
    client.call(Command::Flush).expect("it is durable");
    drop(client);
    let grown = json!({"size": "4M", "weight": 250, "limits": {"wbps": null, "riops": 7}});
    let before = rig.control().patch_volume("b", &grown).expect("it may change");
    let group = rig.control().patch_group("/gold", &json!({"volumes": 1})).expect("it may");
    let backup = json!({"volume": "b", "offset": 4096, "read_only": true, "weight": 9});
    let backup = rig.control().put_export("backup", &backup, false).expect("it can be made").shown;
    let brief = json!({"volume": "b", "read_only": true, "durable": false});
    rig.control().put_export("brief", &brief, false).expect("it can be made");
    assert_eq!(files(rig.dir.path(), "state/volumes"), ["a.json", "aa.json", "b.json"]);
    assert_eq!(files(rig.dir.path(), "state/exports"), ["backup.json"]);
    assert_eq!(files(rig.dir.path(), "state/groups"), ["%2Fgold.json"]);

    let rig = rig.restarted(POOL);
    assert_eq!(names(&rig), ["a", "aa", "b"]);
    let after = rig.control().volume("b").expect("it is there");
    assert_eq!((after.size, after.limits.clone()), (4 << 20, Some(json!({"riops": 7}))));
    assert_eq!(VolumeAnswer { clients: 0, ..before }, after);
    assert_eq!(rig.control().served_group("/gold").expect("it is there"), group);
    assert_eq!([weight(&rig, "/b"), weight(&rig, "/gold")], [Some(250), Some(300)]);
    assert_eq!(rig.client("b").read(4096, 4096), [5; 4096][..]);
    assert_eq!(rig.control().export("backup").expect("it is there"), backup);
    assert_eq!(weight(&rig, "/backup"), Some(9));
    assert_eq!(rig.client("backup").read(0, 4096), [5; 4096][..]);
    assert!(refusal(rig.connect(), "brief").1.contains("brief"), "it went with the server");
    let question = RemovalQuestion { drain: Some("0s".to_owned()), ..RemovalQuestion::default() };
    rig.control().remove_export("backup", &question).expect("it is gone");
    assert!(refusal(rig.connect(), "c").1.contains('c'), "it went with the server");
    // Said again it is as it is, and no more than the quota comes into the group.
    assert!(!put(
        &rig,
        "b",
        &json!({"pool": "fast", "size": "4M", "weight": 250,
        "limits": {"riops": 7}, "description": "x", "ioprio": "idle"})
    ));
    let over = json!({"pool": "fast", "size": "1M", "group": "/gold"});
    let over = rig.control().put_volume("d", &over, false).expect_err("it is full");
    assert!(matches!(over, CatalogueError::OverQuota { .. }), "{over}");

    // Smaller and moved, without clients.
    let moved = json!({"size": "1M", "weight": null, "limits": null, "group": "/new/b"});
    rig.control().patch_volume("b", &moved).expect("it has no clients");
    remove(&rig, "a", Data::Delete).expect("it is gone");
    rig.control().remove_group("/gold").expect("it is empty");
    let rig = rig.restarted(POOL);
    assert_eq!(names(&rig), ["aa", "b"]);
    let after = rig.control().volume("b").expect("it is there");
    assert_eq!((after.size, after.group.as_str()), (1 << 20, "/new/b"));
    assert_eq!(files(rig.dir.path(), "images"), ["aa.img", "b.img", "c.img"]);
    // Another volume is in the group that b had brought along.
    assert_eq!(files(rig.dir.path(), "state/groups"), ["%2Fb.json"]);
    assert_eq!(weight(&rig, "/b"), Some(250));
    assert!(files(rig.dir.path(), "state/exports").is_empty());
    assert_eq!(weight(&rig, "/backup"), None);
    rig.end();
}

#[test]
fn records_that_do_not_go_together_with_the_file_are_named_before_anything_is_served() {
    let rig = pool();
    rig.control().put_group("/gold", &json!({"weight": 300})).expect("it can be made");
    put(&rig, "vm1", &json!({"pool": "fast", "size": "1M", "limits": {"riops": 5}}));
    let other = refused(rig.dir.path(), POOL);
    assert!(other.contains("another server has it"), "{other}");
    let dir = rig.stopped();
    let dir = dir.path();
    for (toml, said) in [
        (
            format!("{POOL}[volumes.vm1]\npool = \"fast\"\n"),
            "volume \"vm1\": a volume of that name was made by request",
        ),
        (
            format!("{POOL}[volumes.x]\npool = \"fast\"\npath = \"vm1.img\"\ngroup = \"/gold\"\n"),
            "group \"/gold\": a group of that name was made by request",
        ),
        (
            POOL.replace("pools.fast", "pools.slow"),
            "in pool \"fast\", and the configuration has no such pool; there are: \"slow\"",
        ),
        (
            POOL.replace("wfq", "cfq"),
            "has limits, which cfq, the scheduler of pool \"fast\", does not support; wfq does",
        ),
    ] {
        let refused = refused(dir, &toml);
        assert!(refused.contains(said), "{refused}");
    }
    let record = dir.join("state/volumes/vm1.json");
    let good = fs::read_to_string(&record).expect("it is there");
    for (bad, said) in [
        ("{", "vm1.json: EOF while parsing"),
        (&*good.replace("vm1", "vm2"), "it is the record of \"vm2\", whose file is \"vm2.json\""),
        (&*good.replace("\"riops\": 5", "\"riops\": 0"), "riops = 0"),
        (&*good.replace("own_group", "own_grup"), "unknown field `own_grup`"),
        (&*good.replace("\"size\": 1048576", "\"copy\": false"), "missing key `size`"),
    ] {
        fs::write(&record, bad).expect("it is written");
        let refused = refused(dir, POOL);
        assert!(refused.contains(said), "{refused}");
    }
    fs::write(&record, good).expect("it is written");
    fs::write(dir.join("state/format"), "2\n").expect("it is written");
    let refused = refused(dir, POOL);
    assert!(refused.contains("is of format \"2\", and this is paternoster"), "{refused}");
    fs::write(dir.join("state/format"), "1\n").expect("it is written");
    start_in(dir, POOL).expect("all is right again").shut_down().expect("a good end");
}

#[test]
fn volume_whose_image_is_gone_is_missing_until_it_is_back_and_reopened() {
    let rig = pool();
    put(&rig, "vm1", &json!({"pool": "fast", "size": "1M", "weight": 7}));
    let image = rig.dir.path().join("images/vm1.img");
    let aside = rig.dir.path().join("vm1.img");
    fs::rename(&image, &aside).expect("it is moved");
    let rig = rig.restarted(POOL);
    let missing = rig.control().volume("vm1").expect("it is known");
    assert_eq!(missing.state, VolumeStage::Missing);
    assert!(missing.why.as_ref().is_some_and(|why| why.contains("No such file")), "{missing:?}");
    fs::rename(&aside, &image).expect("it is moved back");
    let ready = rig.control().reopen_volume("vm1").expect("it is there");
    assert_eq!((ready.state, weight(&rig, "/vm1")), (VolumeStage::Ready, Some(7)));
    drop(rig.client("vm1"));
    rig.end();
}

#[test]
fn removal_that_had_begun_goes_on_and_what_was_never_told_is_cleared_away() {
    let rig = pool();
    for (name, durable) in [("gone", true), ("kept", true), ("orphan", false)] {
        put(&rig, name, &json!({"pool": "fast", "size": "1M", "durable": durable}));
    }
    let dir = rig.dir.path().to_owned();
    let volumes = dir.join("state/volumes");
    // As a crash has it behind the record, and before the image had its name.
    let images = dir.join("images");
    fs::rename(images.join("kept.img"), images.join(".new-kept.img")).expect("it is moved");
    for (name, data) in [("gone", "delete"), ("kept", "keep")] {
        let path = volumes.join(format!("{name}.json"));
        let text = fs::read_to_string(&path).expect("it is there");
        let mut record: Value = serde_json::from_str(&text).expect("JSON");
        record["removing"] = data.into();
        fs::write(&path, record.to_string()).expect("it is written");
    }
    fs::write(volumes.join(".new-x"), "{").expect("it is written");
    let rig = rig.restarted(POOL);
    assert!(names(&rig).is_empty() && files(&dir, "state/volumes").is_empty());
    assert_eq!(files(&dir, "images"), ["kept.img", "orphan.img"]);
    rig.end();
}

#[test]
fn volume_that_cannot_be_recorded_is_not_made_changed_or_removed() {
    let rig = pool();
    let body = |size: &str| json!({"pool": "fast", "size": size});
    put(&rig, "a", &body("1M"));
    // Root may write to any directory, so there is none.
    let (volumes, aside) = (rig.dir.path().join("state/volumes"), rig.dir.path().join("aside"));
    fs::rename(&volumes, &aside).expect("it is moved");
    fs::write(&volumes, "").expect("it is written");
    let control = rig.control();
    let errors = [
        control.put_volume("b", &body("1M"), false).map(drop),
        control.patch_volume("a", &json!({"size": "2M"})).map(drop),
        remove(&rig, "a", Data::Delete),
    ];
    for error in errors {
        let error = error.expect_err("it cannot be recorded");
        assert!(matches!(error, CatalogueError::NotRecorded { .. }), "{error}");
    }
    assert_eq!(files(rig.dir.path(), "images"), ["a.img"]);
    assert_eq!(control.volume("a").expect("it is there").size, 1 << 20);
    assert_eq!(rig.client("a").export().size, 1 << 20, "nobody has seen more");
    fs::remove_file(&volumes).expect("it is removed");
    fs::rename(&aside, &volumes).expect("it is moved back");
    remove(&rig, "a", Data::Delete).expect("it is gone");
    assert!(files(rig.dir.path(), "images").is_empty());
    rig.end();
}

#[test]
fn what_requests_have_made_is_the_same_in_a_file() {
    let rig = pool();
    let control = rig.control();
    let gold = json!({"weight": 300, "limits": {"riops": 9000}, "capacity": "32M"});
    control.put_group("/gold", &gold).expect("it can be made");
    control.put_group("/none", &json!({})).expect("it can be made");
    for (name, body) in [
        ("a", json!({"group": "/gold", "ioprio": "idle"})),
        ("b", json!({"weight": 7, "description": "\"x\"", "read_only": true})),
        ("c", json!({"weight": 8, "limits": {"wbps": "1M", "latency_target": "5ms"}})),
        ("d", json!({})),
    ] {
        let mut body = body;
        (body["pool"], body["size"]) = ("fast".into(), "1M".into());
        put(&rig, name, &body);
    }
    remove(&rig, "d", Data::Keep).expect("its image stays");
    put(&rig, "e", &json!({"pool": "fast", "source": {"path": "d.img"}, "durable": false}));
    let backup = json!({"volume": "b", "offset": 4096, "size": 8192, "read_only": true,
                        "limits": {"rbps": "1M"}});
    control.put_export("backup", &backup, false).expect("it can be made");
    let exports = |rig: &Rig| {
        let all = rig.control().exports(&ExportsQuestion::default()).expect("the pool answers");
        let told = |of: ExportAnswer| (of.name, of.volume, of.offset, of.size, of.group);
        all.exports.into_iter().map(told).collect::<Vec<_>>()
    };
    let shown = |rig: &Rig| {
        let all = rig.control().volumes(&VolumesQuestion::default()).expect("the pool answers");
        let told = |volume: VolumeAnswer| {
            let VolumeAnswer { name, path, size, group, ioprio, read_only, description, .. } =
                volume;
            (name, path, size, group, ioprio, read_only, description)
        };
        all.volumes.into_iter().map(told).collect::<Vec<_>>()
    };
    let groups = |rig: &Rig| {
        let groups = rig.control().all_groups().groups.into_iter();
        let told = |group: ServedGroup| (group.path, group.settings);
        groups.map(told).filter(|(path, _)| path != "/none").collect::<Vec<_>>()
    };
    let (volumes, parts, before) = (shown(&rig), exports(&rig), groups(&rig));
    let toml = control.export_config();
    assert!(toml.starts_with("# group \"/none\" has no volumes\n[groups.\"/backup\"]\n"), "{toml}");
    assert!(!toml.contains("memory") && !toml.contains("pool = \"\""), "{toml}");
    fs::remove_dir_all(rig.dir.path().join("state")).expect("it is removed");
    let rig = rig.restarted(&format!("{POOL}{toml}"));
    assert_eq!(shown(&rig), volumes, "{toml}");
    assert_eq!(exports(&rig), parts, "{toml}");
    assert_eq!(groups(&rig), before, "{toml}");
    assert_eq!(rig.control().export_config(), "");
    rig.end();
}

#[test]
fn removal_that_failed_is_asked_for_again_or_taken_back() {
    let rig = pool();
    for name in ["a", "b"] {
        put(&rig, name, &json!({"pool": "fast", "size": "1M"}));
    }
    let images = rig.dir.path().join("images");
    // What has the image's name cannot be removed as a file.
    let aside = |name: &str| {
        fs::rename(images.join(name), images.join("aside")).expect("it is moved");
        fs::create_dir(images.join(name)).expect("a directory");
    };
    let back = |name: &str| {
        fs::remove_dir(images.join(name)).expect("it is empty");
        fs::rename(images.join("aside"), images.join(name)).expect("it is moved back");
    };
    for (name, is_kept) in [("a", true), ("b", false)] {
        let image = format!("{name}.img");
        aside(&image);
        remove(&rig, name, Data::Delete).expect_err("it is a directory");
        let missing = rig.control().volume(name).expect("it is known");
        assert_eq!(missing.state, VolumeStage::Missing);
        assert!(missing.why.as_ref().is_some_and(|why| why.contains("its removal failed")));
        back(&image);
        if is_kept {
            rig.control().reopen_volume(name).expect("it is there");
            rig.client(name).write(0, &[3; 512]);
        }
    }
    let rig = rig.restarted(POOL);
    assert_eq!(
        (names(&rig), files(rig.dir.path(), "images")),
        (vec!["a".into()], vec!["a.img".into()])
    );
    assert_eq!(rig.client("a").read(0, 512), [3; 512][..]);
    rig.end();
}

#[test]
fn change_whose_record_failed_is_recorded_when_it_is_asked_for_again() {
    let rig = pool();
    put(&rig, "a", &json!({"pool": "fast", "size": "1M"}));
    let export = json!({"volume": "a", "read_only": true});
    rig.control().put_export("b", &export, false).expect("it can be made");
    let state = rig.dir.path().join("state");
    for of in ["volumes", "exports"] {
        fs::rename(state.join(of), state.join(format!("{of}-aside"))).expect("it is moved");
        fs::write(state.join(of), "").expect("it is written");
    }
    let weight_7 = json!({"weight": 7});
    let control = rig.control();
    for error in [
        control.patch_volume("a", &weight_7).map(drop).expect_err("it cannot be recorded"),
        control.patch_export("b", &weight_7).map(drop).expect_err("it cannot be recorded"),
    ] {
        assert!(matches!(error, CatalogueError::NotRecorded { .. }), "{error}");
    }
    for of in ["volumes", "exports"] {
        fs::remove_file(state.join(of)).expect("it is removed");
        fs::rename(state.join(format!("{of}-aside")), state.join(of)).expect("it is moved back");
    }
    control.patch_volume("a", &weight_7).expect("it is recorded");
    control.patch_export("b", &weight_7).expect("it is recorded");
    drop(control);
    let rig = rig.restarted(POOL);
    assert_eq!([weight(&rig, "/a"), weight(&rig, "/b")], [Some(7); 2]);
    rig.end();
}

#[test]
fn what_is_on_a_missing_volume_stays_and_is_served_with_it_again() {
    let rig = pool();
    let control = rig.control();
    control.put_group("/gold", &json!({"weight": 300})).expect("it can be made");
    put(&rig, "a", &json!({"pool": "fast", "size": "1M", "group": "/gold"}));
    let export = json!({"volume": "a", "read_only": true, "size": 4096, "weight": 9});
    control.put_export("b", &export, false).expect("it can be made");
    drop(control);
    let image = rig.dir.path().join("images/a.img");
    fs::rename(&image, rig.dir.path().join("aside")).expect("it is moved");
    let rig = rig.restarted(POOL);
    let control = rig.control();
    let missing = control.export("b").expect("it is known");
    assert_eq!((missing.state, missing.size), (VolumeStage::Missing, 4096));
    assert_eq!(missing.disk, "fast", "its volume's pool");
    let error = control.remove_group("/gold").expect_err("a volume is in it");
    assert!(matches!(error, CatalogueError::NotEmpty { exports: 1, .. }), "{error}");
    fs::rename(rig.dir.path().join("aside"), &image).expect("it is moved back");
    control.reopen_volume("a").expect("it is there");
    assert_eq!(control.export("b").expect("it is known").state, VolumeStage::Ready);
    assert_eq!([weight(&rig, "/gold"), weight(&rig, "/b")], [Some(300), Some(9)]);
    drop(rig.client("b"));
    rig.end();
}

#[test]
fn what_is_set_of_a_group_outlives_who_set_it_and_a_restart() {
    let rig = pool();
    let control = rig.control();
    for name in ["a", "b", "c"] {
        put(&rig, name, &json!({"pool": "fast", "size": "1M"}));
    }
    // Of one that has come with a volume; of one that stays since; of one whose volume goes.
    let settings = json!({"weight": 7, "limits": {"riops": 5000}});
    let changed = control.patch_group("/a", &settings).expect("it may change");
    assert_eq!(control.volume("a").expect("it is there").weight, Some(7));
    control.put_group("/b", &json!({})).expect("it stays");
    control.patch_volume("b", &json!({"weight": 8})).expect("it may change");
    control.patch_volume("c", &settings).expect("it may change");
    put(&rig, "d", &json!({"pool": "fast", "size": "1M", "group": "/c"}));
    remove(&rig, "c", Data::Keep).expect("it is gone");
    // Of one that is above a volume's, and a quota of one that has come with a volume.
    put(&rig, "e", &json!({"pool": "fast", "size": "1M", "group": "/org/e"}));
    control.patch_group("/org", &json!({"weight": 9})).expect("it may change");
    put(&rig, "f", &json!({"pool": "fast", "size": "1M"}));
    control.patch_group("/f", &json!({"volumes": 3})).expect("it may change");
    drop(control);
    let rig = rig.restarted(POOL);
    let control = rig.control();
    let weights = ["/a", "/b", "/c", "/org"].map(|path| weight(&rig, path));
    assert_eq!(weights, [7, 8, 7, 9].map(Some));
    assert_eq!(control.served_group("/f").expect("it is there").settings["volumes"], 3);
    let after = control.served_group("/a").expect("it is there").settings;
    assert_eq!(after["limits"], changed.settings["limits"]);
    let kept = control.served_group("/c").expect("it is there").settings;
    assert_eq!(kept["limits"], json!({"riops": 5000}));
    // A file that is read again may not have one of them.
    let file = rig.dir.path().join("c.toml");
    let toml = format!(
        "unix = \"x.sock\"\n{POOL}[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
         [groups.\"/c\"]\n[exports.x]\ndisk = \"d\"\ngroup = \"/c\"\n"
    );
    fs::write(&file, toml.replace("DIR", ".")).expect("a file");
    let error = control.with_file(&file).reload(ReloadMode::DryRun).expect_err("it may not");
    assert!(error.to_string().contains("group \"/c\": a group of that name"), "{error}");
    rig.end();
}

#[test]
fn change_of_what_is_being_changed_waits_for_two_seconds_and_is_refused() {
    let rig = pool();
    assert!(put(&rig, "a", &json!({"pool": "fast", "size": "1M"})));
    let mut client = rig.served_client("a");
    thread::scope(|scope| {
        let drain = Some("1m".to_owned());
        let question = RemovalQuestion { drain, data: Data::Delete, wait: None };
        let control = rig.control();
        let removal = scope.spawn(move || control.remove_volume("a", &question));
        let state = || rig.control().volume("a").map(|of| of.state);
        eventually("it drains", || state() == Ok(VolumeStage::Draining));
        let begun = Instant::now();
        let refused = rig.control().patch_volume("a", &json!({"size": "2M"}));
        assert_eq!(refused.map(drop), Err(CatalogueError::Busy("a".to_owned())));
        assert!(begun.elapsed() >= Duration::from_secs(2));
        client.ask(Command::Disconnect);
        removal.join().expect("no panic").expect("it is gone");
    });
    rig.end();
}

#[test]
fn volume_that_leaves_too_little_free_is_refused() {
    let toml = POOL.to_owned() + "keep_free = \"99%\"\n";
    let rig = Rig::prepared(&toml, |dir| fs::create_dir(dir.join("images")).expect("a directory"));
    let seen = statvfs(rig.dir.path()).expect("a file system");
    let size = seen.f_blocks * seen.f_frsize / 50 / 4096 * 4096;
    let body = json!({"pool": "fast", "size": size, "source": {"new": "allocated"}});
    let refused = rig.control().put_volume("a", &body, false).expect_err("there is too little");
    assert!(matches!(refused, CatalogueError::NoSpace { keep_free: 99, .. }), "{refused}");
    // Whoever asks is told before that.
    let is_full = seen.f_bavail < seen.f_blocks / 100 * 99;
    let warnings = rig.stat().disks.remove(0).warnings;
    assert_eq!(warnings.iter().any(|of| of.contains("keep_free is 99%")), is_full, "{warnings:?}");
    assert_eq!(files(rig.dir.path(), "images"), [""; 0]);
    rig.end();
}
