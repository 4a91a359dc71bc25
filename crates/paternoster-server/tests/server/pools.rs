//! Pools and their volumes in a configuration: what each file is, whose the exports are, and what
//! is refused.

use std::fs::{self, File};
use std::path::PathBuf;

use paternoster_server::config::{BackendConfig, Config};
use tempfile::TempDir;

/// A directory with images of 1 MiB, as many as there are names.
fn dir(images: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(dir.path().join("images")).expect("a directory");
    for image in images {
        let image = File::create(dir.path().join(image)).expect("an image");
        image.set_len(1 << 20).expect("room");
    }
    dir
}

/// A file in which `@` stands for the directory.
fn read(dir: &TempDir, toml: &str) -> Result<Config, Vec<String>> {
    let toml = toml.replace('@', dir.path().to_str().expect("UTF-8"));
    let read = Config::from_toml(&toml, &dir.path().join("c"));
    let shown = |error: String| {
        let here = format!("{}/", dir.path().display());
        error.lines().map(|line| line.replace(&here, "")).collect()
    };
    read.map_err(|error| shown(error.to_string()))
}

const IMAGES: [&str; 3] = ["images/vm1.img", "images/two.raw", "vm3.img"];

const POOL: &str = r#"
[pools.fast]
path = "images"
cache = "page"
sync_depth = 2
[volumes.vm1]
pool = "fast"
weight = 300
[volumes.vm2]
pool = "fast"
path = "two.raw"
group = "/gold"
[volumes.vm3]
pool = "fast"
path = "@/vm3.img"
read_only = true
[exports.part]
volume = "vm3"
offset = "64K"
size = "4K"
read_only = true
"#;

#[test]
fn volumes_are_files_of_the_pool_and_exports_of_their_names() {
    let dir = dir(&IMAGES);
    let config = read(&dir, POOL).expect("it is right");
    let [pool] = &config.disks[..] else { panic!("{:?}", config.disks) };
    assert!(pool.is_pool);
    assert_eq!((pool.name.as_str(), pool.keys.sync_depth), ("fast", 2));
    let files = pool.volumes.iter().map(|volume| {
        let BackendConfig::File { path, .. } = &volume.backend else { panic!("{volume:?}") };
        (volume.name.as_str(), path.strip_prefix(dir.path()).expect("below it").to_owned())
    });
    let names = ["vm1", "vm2", "vm3"];
    assert!(files.eq(names.into_iter().zip(IMAGES.map(PathBuf::from))));
    let exports = config.exports.iter().map(|export| {
        let group = config.groups[export.group].path.as_str();
        (export.name.as_str(), export.volume, export.bytes(), group)
    });
    let expected = [
        ("vm1", 0, 0..1 << 20, "/vm1"),
        ("vm2", 1, 0..1 << 20, "/gold"),
        ("vm3", 2, 0..1 << 20, "/vm3"),
        ("part", 2, 65_536..69_632, "/part"),
    ];
    let mut exports: Vec<_> = exports.collect();
    exports.sort_by_key(|(name, ..)| expected.iter().position(|(other, ..)| other == name));
    assert_eq!(exports, expected);
}

/// What is said of the pool with this in place of that.
fn said(from: &str, to: &str) -> Vec<String> {
    assert!(POOL.contains(from), "{from}");
    let dir = dir(&IMAGES);
    read(&dir, &POOL.replacen(from, to, 1)).expect_err("it is wrong")
}

/// What is written in place of what, and what is said of it first.
const WRONG: [(&str, &str, &str); 24] = [
    (
        "read_only = true\n[exports",
        "read_only = true\nexport = false\n[exports",
        "c:16: volume \"vm3\" has read_only and export = false: its exports have read_only of \
         their own",
    ),
    (
        "weight = 300",
        "export = false",
        "c:6: volume \"vm1\" has export = false, and there is no export on it: an [exports.NAME] \
         table with volume = \"vm1\" is needed",
    ),
    ("size = \"4K\"", "export = false", "c:20: export \"part\" has export, which no export takes"),
    (
        "pool = \"fast\"\nweight",
        "pool = \"fsat\"\nweight",
        "c:7: there is no pool \"fsat\"; there are: \"fast\"",
    ),
    (
        "volume = \"vm3\"",
        "volume = \"vm9\"",
        "c:18: there is no volume \"vm9\"; there are: \"vm1\", \"vm2\", \"vm3\"",
    ),
    (
        "volume = \"vm3\"",
        "disk = \"fast\"",
        "c:18: \"fast\" is a pool: volume = NAME is needed, the name of one of its volumes",
    ),
    (
        "volume = \"vm3\"",
        "disk = \"disk\"\nvolume = \"vm3\"",
        "c:19: export \"part\" has disk and volume; one of them is allowed",
    ),
    ("volume = \"vm3\"", "", "c:17: missing key `disk`"),
    (
        "two.raw",
        "vm1.img",
        "c:11: disk file \"images/vm1.img\" is that of volume \"vm1\" too; one disk a file \
             is allowed",
    ),
    (
        "two.raw",
        "none.img",
        "c:11: disk file \"images/none.img\": No such file or directory (os error 2)",
    ),
    ("weight = 300", "offset = 4096", "c:8: volume \"vm1\" has offset, which no volume takes"),
    ("size = \"4K\"", "pool = \"fast\"", "c:20: export \"part\" has pool, which no export takes"),
    ("sync_depth = 2", "uri = \"nbd://h/e\"", "c:5: pool \"fast\" has uri, which no pool takes"),
    ("sync_depth = 2", "sync_depth = 0", "c:5: sync_depth = 0: 1 to 64 volumes is allowed"),
    (
        "sync_depth = 2",
        "same_device = \"no\"",
        "c:5: same_device = \"no\": \"require\" or \"warn\" is allowed",
    ),
    ("path = \"images\"", "path = \"vm3.img\"", "c:3: pool directory \"vm3.img\": not a directory"),
    (
        "[volumes.vm2]",
        "[volumes.\"../vm2\"]",
        "c:9: \"../vm2\": the name of a volume is 1 to 128 of A-Z a-z 0-9 . _ -, and \
             begins with a letter or digit",
    ),
    (
        "[pools.fast]",
        "[pools.empty]\n[pools.fast]",
        "c:2: pool \"empty\" has no volume and no path; a path is needed, or a [volumes.NAME] \
             table with pool = \"empty\"",
    ),
    (
        "sync_depth = 2",
        "volumes = 2",
        "c:5: pool \"fast\" has 3 volumes; volumes = 2 allows no more than that",
    ),
    (
        "sync_depth = 2",
        "capacity = \"2M\"",
        "c:5: the volumes of pool \"fast\" have 3145728 bytes; capacity = 2097152 allows no more",
    ),
    (
        "sync_depth = 2",
        "keep_free = 5",
        "c:5: keep_free = 5: \"0%\" to \"99%\", such as \"5%\", is allowed",
    ),
    (
        "[pools.fast]",
        "[disks.fast]\nbackend = \"memory\"\nsize = \"1M\"\n[pools.fast]",
        "c:5: \"fast\" is the name of a disk and of a pool; a name is allowed once",
    ),
    (
        "size = \"4K\"",
        "size = \"1M\"",
        "c:20: export \"part\" is offset 65536 and size 1048576, 65536 bytes past the end \
             of volume \"vm3\", which has 1048576 bytes",
    ),
    (
        "read_only = true\n[exports.part]\nvolume = \"vm3\"\noffset = \"64K\"\nsize = \
             \"4K\"\nread_only = true\n",
        "[exports.part]\nvolume = \"vm3\"\noffset = \"64K\"\nsize = \"4K\"\n",
        "c:16: exports \"part\" and \"vm3\" share the bytes 65536 to 69631 of volume \
             \"vm3\"; that is \
             allowed if one of them or both are read-only",
    ),
];

#[test]
fn what_is_wrong_with_a_pool_or_a_volume_is_told_with_what_is_allowed() {
    for (from, to, expected) in WRONG {
        let found = said(from, to);
        assert!(found[0].starts_with(expected), "{to}\n{expected}\n{}", found.join("\n"));
    }
}

const OTHERS: &str = r#"
[pools.far]
backend = "nbd"
[volumes.a]
pool = "far"
uri = "nbd+unix:///a?socket=/none.sock"
size = "1M"
[volumes.b]
pool = "far"
uri = "nbd+unix:///b?socket=/none.sock"
size = "1M"
[pools.slow]
backend = "modelled"
servers = 4
service_us = 200
[volumes.m]
pool = "slow"
size = "1M"
"#;

#[test]
fn pools_of_exports_of_servers_and_of_memory_are_read() {
    let dir = dir(&[]);
    let config = read(&dir, OTHERS).expect("it is right");
    let [far, slow] = &config.disks[..] else { panic!("{config:?}") };
    assert_eq!([far.backend.kind(), slow.backend.kind()], ["nbd", "modelled"]);
    let connections = far.volumes.iter().map(|volume| match &volume.backend {
        BackendConfig::Nbd { options, size, .. } => (options.connections, *size),
        other => panic!("{other:?}"),
    });
    assert_eq!(connections.collect::<Vec<_>>(), [(1, 1 << 20); 2]);
    let several = OTHERS.replacen("\"nbd\"", "\"nbd\"\nconnections = 3\ndevice = \"ceph\"", 1);
    let on_two = several.replacen("/b?socket=/none", "/b?socket=/other", 1);
    let config = read(&dir, &on_two).expect("they have a device in common");
    let BackendConfig::Nbd { options, .. } = &config.disks[0].volumes[1].backend else { panic!() };
    assert_eq!(options.connections, 3);
    // Neither needs a volume.
    let empty = "[pools.far]\nbackend = \"nbd\"\n[pools.m]\nbackend = \"modelled\"\n\
                 model = \"nvme-980pro\"\n";
    assert_eq!(read(&dir, empty).expect("it is right").disks.len(), 2);
}

/// The warning of disks on one device is of pools on other servers too, which say what it is.
#[test]
fn pools_with_one_device_are_told() {
    let two = "[pools.a]\nbackend = \"nbd\"\ndevice = \"ceph\"\n\
               [pools.b]\nbackend = \"nbd\"\ndevice = \"ceph\"\n";
    let notices = read(&dir(&[]), two).expect("it is right").notices();
    let start = "pool \"a\" and pool \"b\" are on the same device (ceph)";
    assert!(notices.iter().any(|notice| notice.starts_with(start)), "{notices:?}");
}

/// What is written in place of what, and what is said of it first.
const WRONG_OTHERS: [(&str, &str, &str); 14] = [
    (
        "\"nbd\"",
        "\"memory\"",
        "c:3: pool \"far\": backend = \"memory\": \"file\", \"modelled\" or \"nbd\" is allowed; a \
         disk may be \"memory\"",
    ),
    (
        "\"nbd\"",
        "\"nbd\"\npath = \"images\"",
        "c:4: pool \"far\" has path, which no far pool takes",
    ),
    ("\"nbd\"", "\"nbd\"\nsize = 7", "c:4: pool \"far\" has size, which no pool takes"),
    ("\"nbd\"", "\"nbd\"\nservers = 7", "c:4: pool \"far\" has servers, which no far pool takes"),
    ("\"nbd\"", "\"file\"", "c:4: volume \"a\": pool \"far\" has no path, so an absolute path"),
    ("uri = \"nbd+unix:///a?socket=/none.sock\"\n", "", "c:4: volume \"a\" has no uri"),
    ("uri", "path = \"x\"\nuri", "c:6: volume \"a\" has path, which no far volume takes"),
    (
        "/b?socket=/none",
        "/b?socket=/other",
        "c:10: pool \"far\": nbd+unix:///a?socket=/none.sock and nbd+unix:///b?socket=/other.sock \
         are on different servers: a pool is one device; device = NAME says that they are",
    ),
    ("/b?socket", "/a?socket", "c:10: nbd+unix:///a?socket=/none.sock is volume \"a\" already"),
    (
        "uri = \"nbd+unix:///a?socket=/none.sock\"\nsize = \"1M\"",
        "uri = \"nbd+unix:///a?socket=/none.sock\"",
        "c:6: nbd+unix:///a?socket=/none.sock does not show its export: ",
    ),
    ("service_us = 200\n", "", "c:12: pool \"slow\" has no service_us"),
    ("\"slow\"\nsize = \"1M\"", "\"slow\"", "c:16: volume \"m\" has no size"),
    ("\"slow\"\nsize = \"1M\"", "\"slow\"\nsize = 0", "c:16: volume \"m\" has 0 bytes"),
    (
        "servers = 4\nservice_us = 200\n[volumes.m]\npool = \"slow\"\nsize = \"1M\"",
        "model = \"nvme-980pro\"\nsync_us = 3\n[volumes.m]\npool = \"slow\"\nsize = \"1M\"",
        "c:15: pool \"slow\" has sync_us beside model, which says how fast it is",
    ),
];

#[test]
fn what_is_wrong_with_pools_of_servers_or_memory_is_told() {
    for (from, to, expected) in WRONG_OTHERS {
        assert!(OTHERS.contains(from), "{from}");
        let found = read(&dir(&[]), &OTHERS.replacen(from, to, 1)).expect_err("it is wrong");
        assert!(found[0].starts_with(expected), "{to}\n{expected}\n{}", found.join("\n"));
    }
}

#[test]
fn volume_that_is_no_export_is_offered_nowhere() {
    let dir = dir(&IMAGES);
    let listen = |offered: &str| {
        let no_export = POOL.replacen("read_only = true\n[exports", "export = false\n[exports", 1);
        format!("[[listen]]\nunix = \"s\"\nexports = [{offered}]\n{no_export}")
    };
    let found = read(&dir, &listen("\"vm1\", \"vm2\", \"vm3\"")).expect_err("it is no export");
    let expected = "c:3: volume \"vm3\" has export = false, so no socket offers it; its exports \
                    are allowed";
    assert_eq!(found[0], expected);
    let config = read(&dir, &listen("\"vm1\", \"vm2\", \"part\"")).expect("it is right");
    let vm3 = config.exports.iter().find(|export| export.name == "vm3").expect("it is kept");
    let [group, part] =
        [vm3.group, config.exports[3].group].map(|group| config.groups[group].path.as_str());
    assert_eq!((group, part), ("/.volumes", "/part"), "it needs no group of its own");
}

#[test]
fn volumes_without_a_directory_need_paths() {
    let found = said("path = \"images\"\n", "");
    assert_eq!(
        found,
        [
            "c:5: volume \"vm1\": pool \"fast\" has no path, so an absolute path is needed",
            "c:10: volume \"vm2\": pool \"fast\" has no path, so an absolute path is needed",
        ]
    );
}
