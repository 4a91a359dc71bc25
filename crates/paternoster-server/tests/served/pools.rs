//! A pool: each volume has its own bytes, syncs and size, and all are under one scheduler.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use paternoster_nbd::{Command, NbdError};
use paternoster_server::ctl::{Control as _, ReloadMode};
use serde_json::json;

use crate::support::Rig;
use crate::turnover::reload;

const POOL: &str = r#"
[pools.fast]
path = "DIR"
cache = "page"
scheduler = "cfq"
[volumes.one]
pool = "fast"
weight = 300
[volumes.two]
pool = "fast"
[volumes.three]
pool = "fast"
path = "small.img"
[exports.part]
volume = "two"
offset = "64K"
size = "4K"
read_only = true
"#;

fn pool() -> Rig {
    Rig::prepared(POOL, |dir| {
        for (name, bytes) in [("one.img", 1 << 20), ("two.img", 2 << 20), ("small.img", 70_000)] {
            File::create(dir.join(name)).expect("an image").set_len(bytes).expect("room");
        }
    })
}

#[test]
fn each_volume_is_its_own_file_and_all_are_one_disk() {
    let rig = pool();
    let [mut one, mut two, mut three] = ["one", "two", "three"].map(|name| rig.client(name));
    let sizes = [&one, &two, &three].map(|client| client.export().size);
    assert_eq!(sizes, [1 << 20, 2 << 20, 70_000]);
    for (client, value) in [(&mut one, 1), (&mut two, 2), (&mut three, 3)] {
        client.write(65_536, &[value; 4096]);
        client.call(Command::Flush).expect("it is durable");
    }
    assert_eq!(rig.client("part").read(0, 4096), [2; 4096][..]);
    for (client, value) in [(&mut one, 1), (&mut two, 2), (&mut three, 3)] {
        assert_eq!(client.read(65_536, 4096), [value; 4096][..]);
    }
    let stat = rig.stat();
    let [disk] = &stat.disks[..] else { panic!("{stat:?}") };
    assert_eq!((disk.name.as_str(), disk.backend.as_str()), ("fast", "file"));
    assert_eq!((disk.size_bytes, disk.syncs), ((3 << 20) + 70_000, 3));
    let weights = disk.groups.iter().map(|group| (group.path.as_str(), group.weight));
    let weights: Vec<_> = weights.collect();
    assert_eq!(weights, [("/one", 300), ("/two", 100), ("/three", 100), ("/part", 100)]);
    let dir = rig.dir.path().to_owned();
    for (name, value) in [("one.img", 1), ("two.img", 2), ("small.img", 3)] {
        let mut bytes = [0; 4096];
        let image = File::open(dir.join(name)).expect("the image");
        image.read_exact_at(&mut bytes, 65_536).expect("it has them");
        assert_eq!(bytes, [value; 4096], "{name}");
    }
    rig.end();
}

/// The first has its image cut short below it; the second has all of its own.
#[test]
fn image_that_is_cut_short_is_trouble_of_its_volume_alone() {
    let rig = pool();
    let [mut one, mut two] = ["one", "two"].map(|name| rig.client(name));
    for client in [&mut one, &mut two] {
        client.write(512 << 10, &[7; 4096]);
    }
    fs::File::options()
        .write(true)
        .open(rig.dir.path().join("one.img"))
        .and_then(|image| image.set_len(4096))
        .expect("it is cut");
    let read = Command::Read { offset: 512 << 10, len: 4096, df: false };
    assert_eq!(one.call(read.clone()).map(drop), Err(NbdError::Io));
    two.call(read).expect("it has its bytes");
    two.call(Command::Flush).expect("it is durable");
    rig.end();
}

/// `cfq` has fewer in a file past the page cache than `none`, and of no volume nothing is known.
#[test]
fn depth_follows_the_scheduler_and_the_volumes() {
    let file = |scheduler: &str, volumes: &str| {
        format!(
            "[pools.p]\npath = \"DIR\"\ncache = \"direct\"\nrotational = false\n\
             scheduler = \"{scheduler}\"\n{volumes}"
        )
    };
    let a = "[volumes.a]\npool = \"p\"\n";
    let rig = Rig::prepared(&file("none", ""), |dir| {
        File::create(dir.join("a.img")).expect("an image").set_len(1 << 20).expect("room");
    });
    let depth = || {
        let (stat, shown) = (rig.stat(), rig.control().settings().expect("its settings"));
        let [disk] = &stat.disks[..] else { panic!("{stat:?}") };
        let shown = shown.disks[0].settings.get("depth");
        assert_eq!(shown, Some(&json!(disk.depth)), "what is shown is in force");
        disk.depth
    };
    assert_eq!(depth(), 16);
    let mut depths = vec![];
    for (scheduler, volumes) in [("none", a), ("cfq", a), ("kyber", a), ("none", "")] {
        reload(&rig, ReloadMode::Apply, &file(scheduler, volumes)).expect("a good file");
        depths.push(depth());
    }
    assert_eq!(depths, [32, 16, 32, 16]);
    rig.end();
}
