//! Exports of volumes beside their own, which are made, changed and removed while clients are
//! served.

use std::fs;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use paternoster_nbd::Command;
use paternoster_server::ControlHandle;
use paternoster_server::ctl::{
    CatalogueError, Control as _, Data, ExportsQuestion, RemovalQuestion, VolumeStage,
};
use serde_json::{Value, json};

use crate::support::{Rig, refusal, rest};

const POOL: &str = r#"
state_dir = "DIR/state"
[pools.fast]
path = "DIR/images"
scheduler = "wfq"
[pools.slow]
path = "DIR/images"
scheduler = "bfq"
[disks.d]
backend = "memory"
size = "1M"
[exports.x]
disk = "d"
"#;

fn pool() -> Rig {
    let rig = Rig::prepared(POOL, |dir| fs::create_dir(dir.join("images")).expect("a directory"));
    for (name, pool) in [("vm1", "fast"), ("vm2", "slow")] {
        let body = json!({"pool": pool, "size": "1M"});
        rig.control().put_volume(name, &body, false).expect("it can be made");
    }
    rig
}

fn refused(rig: &Rig, name: &str, body: &Value) -> CatalogueError {
    rig.control().put_export(name, body, false).expect_err("it cannot be made")
}

fn remove(control: &ControlHandle, name: &str, drain: &str) -> Result<(), CatalogueError> {
    let drain = Some(drain.to_owned());
    control.remove_export(name, &RemovalQuestion { drain, data: Data::Keep, wait: None })
}

fn paths(rig: &Rig) -> Vec<(String, u32)> {
    let stat = rig.stat();
    let fast = stat.disks.iter().find(|disk| disk.name == "fast").expect("the pool");
    fast.groups.iter().map(|group| (group.path.clone(), group.weight)).collect()
}

#[test]
fn backup_reads_a_volume_beside_its_client_and_goes_again() {
    let rig = pool();
    let control = rig.control();
    let mut client = rig.client("vm1");
    client.write(8192, &[5; 4096]);
    let body = json!({"volume": "vm1", "offset": 4096, "size": 8192, "read_only": true,
                      "weight": 20, "description": "x"});
    let made = control.put_export("backup", &body, false).expect("it can be made");
    assert!(made.is_new && !control.put_export("backup", &body, false).expect("it may").is_new);
    let backup = &made.shown;
    assert_eq!((backup.disk.as_str(), backup.offset, backup.size), ("fast", 4096, 8192));
    assert_eq!((backup.durable, backup.state), (true, VolumeStage::Ready));
    let mut reader = rig.client("backup");
    assert_eq!(reader.export().size, 8192);
    assert_eq!(reader.read(4096, 4096), [5; 4096][..]);
    let data = Bytes::from_static(&[1; 512]);
    assert!(reader.call(Command::Write { offset: 0, fua: false, data }).is_err());
    let patch = json!({"weight": 30, "limits": {"riops": 5000}, "description": null});
    let changed = control.patch_export("backup", &patch).expect("it may change");
    assert_eq!((changed.weight, changed.clients, changed.description), (Some(30), 1, None));
    assert_eq!(paths(&rig), [("/vm1".to_owned(), 100), ("/backup".to_owned(), 30)]);
    let listed = control.exports(&ExportsQuestion::default()).expect("they answer").exports;
    let names: Vec<_> = listed.iter().map(|export| (&*export.name, export.of_file)).collect();
    assert_eq!(names, [("backup", false), ("x", true)]);

    // The volume is as it is while it has others' exports.
    let question = RemovalQuestion { data: Data::Keep, ..RemovalQuestion::default() };
    for error in [
        control.remove_volume("vm1", &question).expect_err("it is in use"),
        control.reopen_volume("vm1").map(drop).expect_err("it is in use"),
    ] {
        assert!(error.to_string().contains("exports beside its own: \"backup\""), "{error}");
    }

    // While it drains its client is served, and nobody else comes.
    let removing = thread::spawn(move || remove(&control, "backup", "20s"));
    let drains =
        || rig.control().export("backup").is_ok_and(|of| of.state == VolumeStage::Draining);
    while !drains() {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(reader.read(4096, 4096), [5; 4096][..]);
    assert!(refusal(rig.connect(), "backup").1.contains("being removed"));
    drop(reader);
    removing.join().expect("no panic").expect("it is gone");
    assert_eq!(paths(&rig), [("/vm1".to_owned(), 100)]);
    assert_eq!(client.read(8192, 4096), [5; 4096][..], "the volume's own client stays");
    let gone = rig.control().export("backup").expect_err("it is gone");
    assert_eq!(gone, CatalogueError::NoSuchExport("backup".to_owned()));

    // A client that does not leave in time is closed, and the volume's own is not.
    rig.control().put_export("backup", &body, false).expect("it can be made again");
    let mut stays = rig.client("backup");
    remove(&rig.control(), "backup", "0s").expect("it is gone");
    assert_eq!(rest(&mut stays.stream), [0; 0]);
    assert_eq!(client.read(8192, 4096), [5; 4096][..]);
    rig.end();
}

#[test]
fn export_that_cannot_be_is_refused_and_leaves_nothing_behind() {
    let rig = pool();
    let control = rig.control();
    let volatile = json!({"pool": "fast", "size": "1M", "durable": false});
    control.put_volume("vm3", &volatile, false).expect("it can be made");
    let before = paths(&rig);
    for (name, body, said) in [
        ("b", json!({"volume": "vm9", "read_only": true}), "there is no volume \"vm9\""),
        ("b", json!({"volume": "vm1"}), "\"read_only\": true is allowed"),
        ("b", json!({"volume": "vm1", "read_only": true, "offset": "1M"}), "not in volume \"vm1\""),
        ("b", json!({"volume": "vm1", "read_only": true, "offset": 512}), "whole blocks of 4096"),
        ("b", json!({"volume": "vm1", "read_only": true, "size": "2M"}), "not in volume \"vm1\""),
        ("vm1", json!({"volume": "vm1", "read_only": true}), "volume \"vm1\" is there"),
        ("x", json!({"volume": "vm1", "read_only": true}), "export \"x\" is declared in"),
        ("y", json!({"volume": "y", "read_only": true}), "there is no volume \"y\""),
        ("b", json!({"volume": "vm2", "read_only": true, "limits": {"riops": 5}}), "bfq"),
        ("b", json!({"volume": "vm3", "read_only": true, "durable": true}), "goes with the server"),
        ("a/b", json!({"volume": "vm1", "read_only": true}), "a/b"),
    ] {
        let error = refused(&rig, name, &body);
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
    let part = json!({"volume": "vm1", "read_only": true, "durable": false});
    control.put_export("b", &part, false).expect("it can be made");
    let moved = json!({"volume": "vm1", "read_only": true, "offset": 4096, "durable": false});
    let error = refused(&rig, "b", &moved);
    assert!(
        error.to_string().contains("only its weight, limits, identities and description"),
        "{error}"
    );
    let error = control.put_export("b", &part, true).expect_err("it is there");
    assert!(matches!(error, CatalogueError::NotNew { .. }), "{error}");
    let volume = json!({"pool": "fast", "size": "1M"});
    let error = control.put_volume("b", &volume, false).expect_err("an export is called so");
    assert!(matches!(error, CatalogueError::Exists { .. }), "{error}");
    remove(&control, "b", "0s").expect("it is gone");
    assert_eq!(paths(&rig), before);
    let left = control.exports(&ExportsQuestion::default()).expect("they answer").exports;
    assert_eq!(left.into_iter().map(|export| export.name).collect::<Vec<_>>(), ["x"]);
    let records = fs::read_dir(rig.dir.path().join("state/exports"));
    assert_eq!(records.map_or(0, Iterator::count), 0);
    rig.end();
}
