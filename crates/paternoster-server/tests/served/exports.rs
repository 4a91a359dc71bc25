//! Several disks and exports: who sees what, and where bytes land.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use bytes::BytesMut;
use paternoster_nbd::client::{ClientOptions, Handshake, Progress, Replies, Target};
use paternoster_nbd::{Command, NbdError, TransmissionFlags};

use paternoster_server::ctl::{Control as _, ReloadMode};
use serde_json::json;

use crate::support::{Rig, receive, refusal};

/// Two files, five exports, three tenants. Through the page cache borders lie anywhere.
const SEVERAL: &str = r#"
[disks.one]
path = "DIR/one.img"
cache = "page"
[disks.two]
path = "DIR/two.img"
cache = "page"
scheduler = "mq-deadline"
[groups."/gold"]
weight = 400
[exports.first]
disk = "one"
size = 5000
group = "/gold"
description = "the first"
[exports.second]
disk = "one"
offset = 5000
size = "512K"
group = "/gold"
[exports.third]
disk = "two"
offset = 777
size = 1000
group = "/gold"
[exports.low]
disk = "two"
offset = 4096
size = 8192
read_only = true
[exports.high]
disk = "two"
offset = 8192
read_only = true
"#;

fn several() -> Rig {
    Rig::prepared(SEVERAL, |dir| {
        for name in ["one.img", "two.img"] {
            let disk = fs::File::create(dir.join(name)).expect("a disk");
            disk.set_len(1 << 20).expect("room");
        }
        let two = fs::File::options().write(true).open(dir.join("two.img")).expect("the disk");
        two.write_all_at(&[2; 4096], 8192).expect("written");
    })
}

#[test]
fn list_tells_every_export_of_every_disk() {
    let rig = several();
    let mut stream = rig.connect();
    let options = ClientOptions { target: Target::List, replies: Replies::Structured };
    let mut handshake = Handshake::new(options);
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let listed = loop {
        let progress = handshake.receive(&mut input, &mut output).expect("the server agrees");
        stream.write_all(&output.split()).expect("taken");
        match progress {
            Progress::Listed(listed) => break listed,
            Progress::NeedMore => receive(&mut stream, &mut input),
            other => panic!("{other:?}"),
        }
    };
    let names: Vec<_> = listed.iter().map(|listed| listed.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "third", "low", "high"]);
    rig.end();
}

#[test]
fn bytes_land_at_their_export_s_offset_and_nowhere_else() {
    let rig = several();
    let mut expected = vec![0; 1 << 20];
    expected[..5000].fill(10);
    expected[5000..9000].fill(20);
    expected[5000 + (512 << 10) - 1] = 21;
    rig.client("first").write(0, &[10; 5000]);
    let mut second = rig.client("second");
    second.write(0, &[20; 4000]);
    second.write((512 << 10) - 1, &[21]);
    let past = second.call(Command::Write { offset: 512 << 10, data: vec![1].into(), fua: false });
    assert_eq!(past, Err(NbdError::NoSpace));
    rig.client("third").write(999, &[30]);
    let dir = rig.dir.path().to_owned();
    assert!(fs::read(dir.join("one.img")).expect("the disk") == expected);
    let mut expected = vec![0; 1 << 20];
    expected[777 + 999] = 30;
    expected[8192..12288].fill(2);
    assert!(fs::read(dir.join("two.img")).expect("the disk") == expected);
    rig.end();
}

#[test]
fn overlapping_read_only_exports_show_the_same_bytes() {
    let rig = several();
    let (mut low, mut high) = (rig.client("low"), rig.client("high"));
    assert!(low.export().flags.contains(TransmissionFlags::READ_ONLY));
    assert_eq!(low.export().size, 8192);
    assert_eq!(high.export().size, (1 << 20) - 8192);
    assert_eq!(low.read(4096, 4096), high.read(0, 4096));
    assert_eq!(high.read(0, 4096), [2; 4096][..]);
    assert_eq!(high.read(4096, 10), [0; 10][..]);
    rig.end();
}

/// For a backup: it reads what the writer's clients were answered, and may not write.
#[test]
fn read_only_export_over_a_writable_one_shows_what_was_written() {
    let rig = Rig::prepared(
        "[disks.d]\npath = \"DIR/disk.img\"\ncache = \"page\"\n[exports.volume]\ndisk = \"d\"\n\
         [exports.backup]\ndisk = \"d\"\noffset = 4096\nsize = 8192\nread_only = true\n",
        |dir| {
            let disk = fs::File::create(dir.join("disk.img")).expect("a disk");
            disk.set_len(1 << 20).expect("room");
        },
    );
    let (mut volume, mut backup) = (rig.client("volume"), rig.client("backup"));
    for value in [1, 2] {
        volume.write(4096, &[value; 4096]);
        assert_eq!(backup.read(0, 4096), [value; 4096][..]);
    }
    let write = Command::Write { offset: 0, data: vec![3].into(), fua: false };
    assert_eq!(backup.call(write), Err(NbdError::NotPermitted));
    rig.end();
}

#[test]
fn exports_of_one_group_are_one_tenant_a_disk() {
    let rig = several();
    let mut clients = ["first", "second", "third"].map(|name| rig.client(name));
    for client in &mut clients {
        client.write(0, &[1; 512]);
    }
    let stat = rig.stat();
    let groups = |disk: usize| {
        let groups = stat.disks[disk].groups.iter();
        groups
            .map(|group| (group.path.as_str(), group.weight, group.connections))
            .collect::<Vec<_>>()
    };
    assert_eq!(groups(0), [("/gold", 400, 2)]);
    assert_eq!(groups(1), [("/gold", 400, 1), ("/low", 100, 0), ("/high", 100, 0)]);
    assert_eq!(stat.disks[0].groups[0].exports, ["first", "second"]);
    assert_eq!(stat.disks[0].groups[0].ops["write"].completed, 2);
    assert_eq!(stat.disks[1].scheduler, "mq-deadline");
    assert!(!stat.disks[1].weights_apply);
    rig.end();
}

#[test]
fn disk_that_is_only_read_need_not_be_writable() {
    let toml = "[disks.d]\npath = \"DIR/disk.img\"\n[exports.e]\ndisk = \"d\"\nread_only = true\n";
    let rig = Rig::prepared(toml, |dir| {
        let path = dir.join("disk.img");
        fs::write(&path, [6; 4096]).expect("a disk");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("so");
    });
    assert_eq!(rig.client("e").read(0, 4096), [6; 4096][..]);
    rig.end();
}

/// A volume that two VMs have a partition of, and nobody all of it.
const PARTITIONS: &str = r#"
[pools.p]
path = "DIR"
[volumes.disk]
pool = "p"
export = false
[exports.root]
volume = "disk"
size = "1M"
weight = 300
[exports.data]
volume = "disk"
offset = "1M"
group = "/b"
"#;

fn partitions() -> Rig {
    Rig::prepared(PARTITIONS, |dir| {
        let image = fs::File::create(dir.join("disk.img")).expect("an image");
        image.set_len(3 << 20).expect("room");
    })
}

#[test]
fn volume_that_is_no_export_has_its_exports_alone() {
    let rig = partitions();
    let (mut root, mut data) = (rig.client("root"), rig.client("data"));
    assert_eq!((root.export().size, data.export().size), (1 << 20, 2 << 20));
    root.write((1 << 20) - 512, &[1; 512]);
    data.write(0, &[2; 512]);
    let image = fs::read(rig.dir.path().join("disk.img")).expect("it is there");
    assert_eq!((image[(1 << 20) - 1], image[1 << 20]), (1, 2));
    let why = refusal(rig.connect(), "disk").1;
    assert!(why.contains("no export"), "{why}");
    let stat = rig.stat();
    let groups = stat.disks[0].groups.iter();
    let groups: Vec<_> = groups.map(|group| (group.path.as_str(), group.exports.clone())).collect();
    let exports = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let expected =
        [("/.volumes", exports(&[])), ("/root", exports(&["root"])), ("/b", exports(&["data"]))];
    assert_eq!(groups, expected);
    let weight =
        stat.disks[0].groups.iter().find(|group| group.path == "/root").map(|of| of.weight);
    assert_eq!(weight, Some(300));
    let disk = rig.control().volume("disk").expect("it is there");
    assert_eq!((disk.export, disk.uris, disk.read_only, disk.clients), (None, vec![], false, 2));
    let body = json!({"volume": "disk", "read_only": true});
    rig.control().put_export("backup", &body, false).expect("it reads");
    assert_eq!(rig.client("backup").read((1 << 20) - 512, 1024), [[1; 512], [2; 512]].concat()[..]);
    let template = json!({"pool": "p", "source": {"template": "disk"}, "copy": true});
    let refused = rig.control().put_volume("vm", &template, false).expect_err("somebody writes");
    assert!(refused.to_string().contains("not read-only"), "{refused}");
    rig.end();
}

#[test]
fn volume_that_is_no_export_comes_and_goes_with_its_exports() {
    let rig = partitions();
    let more = "[volumes.two]\npool = \"p\"\nexport = false\npath = \"two.img\"\n\
                [exports.all]\nvolume = \"two\"\n";
    fs::File::create(rig.dir.path().join("two.img")).expect("it").set_len(1 << 20).expect("room");
    let apply = |file: &str| {
        let answer = crate::turnover::reload(&rig, ReloadMode::Apply, file);
        let answer = answer.expect("a good file");
        assert_eq!((&answer.failed[..], &answer.needs_restart[..]), (&[][..], &[][..]));
        answer.changed.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let lines = apply(&format!("{PARTITIONS}{more}"));
    assert_eq!(lines, ["volumes none -> \"two\"", "exports none -> \"all\""]);
    rig.client("all").write(0, &[3; 512]);
    assert!(refusal(rig.connect(), "two").1.contains("no export"));
    rig.until_empty();
    assert_eq!(apply(PARTITIONS).len(), 2);
    assert!(rig.control().volume("two").is_err());
    // Whichever export is written first, and whoever comes before it.
    let more = "[exports.new]\nvolume = \"disk\"\nread_only = true\n[exports.root]";
    let first = PARTITIONS.replacen("[exports.root]", more, 1);
    assert_eq!(apply(&first), ["exports none -> \"new\""]);
    let (before, root) =
        PARTITIONS.split_at(PARTITIONS.find("[exports.root]").expect("it is there"));
    let (_, data) = root.split_at(root.find("[exports.data]").expect("it is there"));
    let lines = apply(&format!("{before}{data}"));
    assert_eq!(lines, ["exports \"new\" -> none", "exports \"root\" -> none"], "by their names");
    // An export of its own it gets with a restart, and nothing is told but that.
    let whole = PARTITIONS.replacen("export = false\n", "", 1);
    let whole = whole.replacen("[exports.root]", "[exports.root]\nread_only = true", 1);
    let whole = whole.replacen("group = \"/b\"", "group = \"/b\"\nread_only = true", 1);
    let answer = crate::turnover::reload(&rig, ReloadMode::DryRun, &whole).expect("a good file");
    let waits = answer.needs_restart.iter().map(ToString::to_string);
    let of_disk: Vec<_> = waits.filter(|line| line.starts_with("volume")).collect();
    assert_eq!(of_disk, ["volume \"disk\": export false -> true"]);
    rig.end();
}
