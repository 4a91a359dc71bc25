//! What configurations mean, and what bad ones get.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use paternoster::{DeviceWeights, Hierarchy, IoPrio, Nanos, SchedulerKind, Weight};
use paternoster_disk::CacheChoice;
use paternoster_server::config::{
    BackendConfig, BackendKind, Config, Depth, DiskConfig, DiskKeys, GroupConfig, Listen,
    ListenAddress, ListenTls, Options, SchedulerChoice, SchedulerWord, VolumeConfig,
};

/// A device of the laboratory with 1 MiB.
const SMALL: &str = "kind = \"servers\"\nname = \"small\"\nabout = \"a\"\nvalid = \"v\"\n\
                     servers = 1\ndepth = 8\nsectors = 2048\nservice_us = 1\n";

/// A directory with a disk of 1 MiB, an empty one, a device, and things that are no disks.
struct Rig {
    dir: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        File::create(at("disk.img")).and_then(|file| file.set_len(1 << 20)).expect("a disk");
        File::create(at("empty.img")).expect("an empty disk");
        std::fs::write(at("small.toml"), SMALL).expect("a device");
        fs::hard_link(at("disk.img"), at("same.img")).expect("another name of the disk");
        fs::create_dir(at("dir")).expect("a directory");
        UnixListener::bind(at("socket")).expect("a socket");
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Reads a file in which `@` stands for the directory.
    fn read(&self, toml: &str) -> Result<Config, String> {
        let toml = toml.replace('@', self.dir.path().to_str().expect("UTF-8"));
        Config::from_toml(&toml, Path::new("test.toml")).map_err(|error| error.to_string())
    }

    fn options(&self, exports: &[&str]) -> Options {
        let exports = exports.iter().map(|&export| export.to_owned()).collect();
        Options { disk: self.path("disk.img"), exports, ..Options::default() }
    }
}

fn weight(value: u32) -> Weight {
    Weight::new(value).expect("within range")
}

const DISK: &str = "[disks.d]\npath = \"@/disk.img\"\n";

const EVERY_KEY: &str = r#"
unix = "@/nbd.sock"
unix_mode = "0660"
tcp = "127.0.0.1:10809"
ctl = "@/ctl.sock"
[disks.z]
path = "@/disk.img"
scheduler = "mq-deadline"
depth = 3
tunables = { read_expire = 20, fifo_batch = 4 }
[disks.a]
backend = "modelled"
size = "1G"
servers = 4
service_us = 200
ns_per_kib = 50
sync_us = 7
scheduler = "cfq"
hierarchy = "entities"
[disks.m]
backend = "memory"
size = 4096
[groups."/gold"]
weight = 400
leaf_weight = 30
weight_device = { m = 9, a = 700 }
leaf_weight_device.a = 1
[exports.vm1]
disk = "a"
offset = "1M"
size = 8192
group = "/gold"
ioprio = "rt/2"
description = "the first"
[exports.boot]
disk = "m"
read_only = true
weight = 7
[exports.below]
disk = "m"
read_only = true
group = "/gold/below"
"#;

#[test]
fn every_key_of_sockets_and_disks_is_read() {
    let rig = Rig::new();
    let config = rig.read(EVERY_KEY).expect("valid");
    let tcp = ListenAddress::Tcp("127.0.0.1:10809".parse().expect("an address"));
    let unix = ListenAddress::Unix { path: rig.path("nbd.sock"), mode: 0o660 };
    let listen = |address| Listen { address, exports: None, tls: ListenTls::Off };
    assert_eq!(config.listen, [unix, tcp].map(listen));
    assert_eq!(config.ctl, Some(Listen::unix(rig.path("ctl.sock")).address));
    let disk = |name: &str, backend: BackendConfig, keys| {
        let (name, scheduler) = (name.to_owned(), SchedulerChoice::Auto { rotational: false });
        let volumes = vec![VolumeConfig { name: name.clone(), backend: backend.clone() }];
        DiskConfig { name, is_pool: false, backend, volumes, scheduler, keys }
    };
    let tunable = |name: &str, value: i64| (name.to_owned().into(), value.into());
    let tunables = vec![tunable("read_expire", 20), tunable("fifo_batch", 4)];
    let modelled = BackendConfig::Modelled {
        size: 1 << 30,
        servers: 4,
        service: Nanos::from_micros(200),
        per_kib: Nanos::new(50),
        sync: Nanos::from_micros(7),
    };
    let file = BackendConfig::File { path: rig.path("disk.img"), cache: CacheChoice::Auto };
    let by_file = DiskKeys {
        path: Some(rig.path("disk.img")),
        scheduler: SchedulerWord::Named(SchedulerKind::MqDeadline),
        depth: Some(Depth::Fixed(3)),
        tunables,
        ..DiskKeys::default()
    };
    let by_model = DiskKeys {
        backend: Some(BackendKind::Modelled),
        size: Some(1 << 30),
        servers: Some(4),
        service_us: Some(200),
        ns_per_kib: 50,
        sync_us: 7,
        scheduler: SchedulerWord::Named(SchedulerKind::Cfq),
        hierarchy: Some(Hierarchy::Entities),
        ..DiskKeys::default()
    };
    let in_memory =
        DiskKeys { backend: Some(BackendKind::Memory), size: Some(4096), ..DiskKeys::default() };
    let expected = [
        DiskConfig { scheduler: SchedulerKind::MqDeadline.into(), ..disk("z", file, by_file) },
        DiskConfig { scheduler: SchedulerKind::Cfq.into(), ..disk("a", modelled, by_model) },
        disk("m", BackendConfig::Memory { size: 4096 }, in_memory),
    ];
    assert_eq!(config.disks, expected);
}

#[test]
fn every_key_of_groups_and_exports_is_read() {
    let config = Rig::new().read(EVERY_KEY).expect("valid");
    let on_a = DeviceWeights { weight: Some(weight(700)), leaf: Some(weight(1)) };
    let on_m = DeviceWeights { weight: Some(weight(9)), leaf: None };
    let [gold, below, boot] = &config.groups[..] else { panic!("{:?}", config.groups) };
    assert_eq!(gold.device_weights, [(1, on_a), (2, on_m)].into());
    let on = |disk| (gold.weights_on(disk).weight.value(), gold.weights_on(disk).leaf.value());
    assert_eq!([0, 1, 2].map(on), [(400, 30), (700, 1), (9, 30)]);
    let seen = [gold, below, boot].map(|group| (&*group.path, group.parent, weights(group)));
    let expected =
        [("/gold", None, (400, 30)), ("/gold/below", Some(0), (100, 100)), ("/boot", None, (7, 7))];
    assert_eq!(seen, expected);
    let [vm1, boot, below] = &config.exports[..] else { panic!("{:?}", config.exports) };
    let seen = [vm1, boot, below].map(|export| (&*export.name, export.disk, export.group));
    assert_eq!(seen, [("vm1", 1, 0), ("boot", 2, 2), ("below", 2, 1)]);
    let bytes = [vm1, boot, below].map(|export| (export.offset, export.size));
    assert_eq!(bytes, [(1 << 20, 8192), (0, 4096), (0, 4096)]);
    assert_eq!(vm1.keys.ioprio, IoPrio::rt(2).expect("a level"));
    assert_eq!(vm1.keys.description.as_deref(), Some("the first"));
    assert_eq!([vm1, boot, below].map(|export| export.keys.read_only), [false, true, true]);
}

/// The weight of a group, and its leaf weight.
fn weights(group: &GroupConfig) -> (u32, u32) {
    (group.weights().weight.value(), group.weights().leaf.value())
}

fn groups(config: &Config) -> Vec<(&str, (u32, u32))> {
    config.groups.iter().map(|group| (&*group.path, weights(group))).collect()
}

#[test]
fn what_is_not_written_has_its_default() {
    let rig = Rig::new();
    let config = rig.read(&format!("{DISK}[exports.vm]\ndisk = \"d\"")).expect("valid");
    let address = ListenAddress::Unix { path: "paternoster.sock".into(), mode: 0o600 };
    assert_eq!(config.listen, [Listen { address, exports: None, tls: ListenTls::Off }]);
    assert_eq!(config.ctl, Some(Listen::unix(paternoster_server::ctl::default_path()).address));
    assert!(config.disks[0].scheduler.is_auto());
    assert_eq!(config.disks[0].keys.depth, None);
    assert_eq!(groups(&config), [("/vm", (100, 100))]);
    assert_eq!(config.exports[0].bytes(), 0..1 << 20);
    assert_eq!(config.exports[0].keys.ioprio.to_string(), "be/4");
}

#[test]
fn options_and_file_make_the_same_configuration() {
    let rig = Rig::new();
    let options = Options {
        scheduler: Some("cfq".to_owned()),
        set: vec!["quantum=4".to_owned()],
        depth: Some("2".to_owned()),
        unix: Some("u".into()),
        tcp: Some("[::1]:0".to_owned()),
        ctl: Some("c".into()),
        metrics: Some("127.0.0.1:9870".to_owned()),
        ..rig.options(&["a,weight=300,size=64K", "b,read-only,offset=64K"])
    };
    let file = r#"
        unix = "u"
        tcp = "[::1]:0"
        ctl = "c"
        metrics = "127.0.0.1:9870"
        [disks.disk0]
        path = "@/disk.img"
        scheduler = "cfq"
        depth = 2
        tunables.quantum = 4
        [exports.a]
        disk = "disk0"
        size = "64KiB"
        weight = 300
        [exports.b]
        disk = "disk0"
        offset = 65536
        read_only = true
    "#;
    let from_options = Config::from_options(&options).map_err(|error| error.to_string());
    assert_eq!(from_options, rig.read(file));
}

#[test]
fn exports_share_a_group_whose_weight_is_written_once_anywhere() {
    let rig = Rig::new();
    let config = rig.read(&format!(
        "{DISK}cache = \"page\"\n[exports.b]\ndisk = \"d\"\ngroup = \"/a\"\nsize = 1\n\
         [exports.a]\ndisk = \"d\"\nweight = 250\noffset = 1\n"
    ));
    let config = config.expect("valid");
    assert_eq!(groups(&config), [("/a", (250, 250))]);
    assert_eq!(config.exports.iter().map(|export| export.group).collect::<Vec<_>>(), [0, 0]);
}

/// A group as a line: index of its parent, weight, leaf weight, path.
fn lines(groups: &[GroupConfig]) -> Vec<String> {
    let line = |group: &GroupConfig| {
        let parent = group.parent.map_or("-".to_owned(), |parent| parent.to_string());
        let (weight, leaf) = weights(group);
        format!("{parent} {weight} {leaf} {}", group.path)
    };
    groups.iter().map(line).collect()
}

#[test]
fn groups_above_are_there_unwritten_and_stand_before_those_below() {
    let rig = Rig::new();
    let config = rig.read(&format!(
        "{DISK}cache = \"page\"\n[exports.lab]\ndisk = \"d\"\nsize = 1\nweight = 20\n\
         [exports.deep]\ndisk = \"d\"\nsize = 1\noffset = 1\ngroup = \"/org/db/x\"\n\
         [exports.near]\ndisk = \"d\"\nsize = 1\noffset = 2\ngroup = \"/org-2/x\"\n\
         [exports.web]\ndisk = \"d\"\nsize = 1\noffset = 3\ngroup = \"/org/web\"\n\
         [exports.org]\ndisk = \"d\"\nsize = 1\noffset = 4\n\
         [groups.\"/org/web\"]\nleaf_weight = 30\n\
         [groups.\"/org/db\"]\nweight = 300\nleaf_weight = 1000\n\
         [groups.\"/lab\"]\nleaf_weight = 1\n"
    ));
    let config = config.expect("valid");
    let expected = [
        "- 100 100 /org",
        "0 100 30 /org/web",
        "0 300 1000 /org/db",
        "2 100 100 /org/db/x",
        "- 20 1 /lab",
        "- 100 100 /org-2",
        "5 100 100 /org-2/x",
    ];
    assert_eq!(lines(&config.groups), expected);
    let groups: Vec<_> = config.exports.iter().map(|export| export.group).collect();
    assert_eq!(groups, [4, 3, 6, 1, 0]);
    assert_eq!(config.lineage(3).collect::<Vec<_>>(), [3, 2, 0]);
}

#[test]
fn the_default_export_has_a_group_of_its_own() {
    let rig = Rig::new();
    let config = rig.read(&format!("{DISK}[exports.\"\"]\ndisk = \"d\"\nweight = 7\n"));
    assert_eq!(groups(&config.expect("valid")), [("/default", (7, 7))]);
    let both = |keys: &str| {
        format!(
            "{DISK}[exports.\"\"]\ndisk = \"d\"\nread_only = true\n\
             [exports.default]\ndisk = \"d\"\nread_only = true\n{keys}"
        )
    };
    assert_refused(&[(&both(""), 3, &["\"\" and \"default\"", "\"/default\"", "allowed"])]);
    rig.read(&both("group = \"/default\"")).expect("one says that it means that group");
}

#[test]
fn modes_are_octal_in_quotes_and_out_of_them() {
    let rig = Rig::new();
    let unix = ListenAddress::Unix { path: "u".into(), mode: 0o660 };
    for mode in ["\"0660\"", "\"660\"", "\"0o660\"", "0o660"] {
        let toml = format!("unix = \"u\"\nunix_mode = {mode}\n{DISK}[exports.vm]\ndisk = \"d\"");
        assert_eq!(rig.read(&toml).expect(mode).listen[0].address, unix);
    }
}

#[test]
fn read_only_exports_may_share_bytes_also_with_one_that_is_written() {
    let rig = Rig::new();
    for exports in [["a,read-only", "b,read-only"], ["a", "b,read-only"], ["a,read-only", "b"]] {
        let config = Config::from_options(&rig.options(&exports));
        assert_eq!(config.expect("valid").exports.len(), 2, "{exports:?}");
    }
}

/// Asserts that each text is refused in its line, with these words.
fn assert_refused(cases: &[(&str, usize, &[&str])]) {
    let rig = Rig::new();
    for &(toml, line, words) in cases {
        let refused = rig.read(toml).expect_err(toml);
        let place =
            if line == 0 { "test.toml: ".to_owned() } else { format!("test.toml:{line}: ") };
        assert!(refused.starts_with(&place), "not {place}\n{toml}\n{refused}");
        for word in words {
            assert!(refused.contains(word), "no {word}\n{toml}\n{refused}");
        }
        assert!(!refused.contains('\n'), "{refused}");
    }
}

/// Asserts the same of texts that lack what a configuration needs.
fn assert_refused_beside_what_is_needed(cases: &[(&str, usize, &[&str])]) {
    const NEEDED: &str = "[disks.rest]\nbackend = \"memory\"\nsize = 2\n\
                          [exports.rest]\ndisk = \"rest\"\noffset = 1\ngroup = \"/g\"";
    for &(toml, line, words) in cases {
        assert_refused(&[(&format!("{toml}\n{NEEDED}\n"), line, words)]);
    }
}

#[test]
fn keys_that_there_are_not_are_refused_with_those_that_there_are() {
    let export = "[exports.e]\n\ndisk = \"rest\"\nsize = 1\nreadonly = true";
    assert_refused_beside_what_is_needed(&[
        ("unix = \"u\"\nport = 1", 2, &["unknown key `port`", "`tcp`"]),
        ("[disks.d]\nbackend = \"memory\"\nsched = \"cfq\"", 3, &["`sched`", "`scheduler`"]),
        ("[groups.\"/g\"]\nweigth = 1", 2, &["`weigth`", "`weight`", "`leaf_weight`"]),
        (export, 5, &["`readonly`", "`read_only`"]),
        ("[disk.d]\npath = \"p\"", 1, &["`disk`", "`disks`"]),
        ("[exports.e]\nsize = 1", 1, &["missing key `disk`"]),
    ]);
}

#[test]
fn what_is_no_toml_is_refused_in_its_line() {
    let memory = |rest: &str| format!("[disks.d]\nbackend = \"memory\"\nsize = {rest}");
    assert_refused_beside_what_is_needed(&[
        ("unix = ", 1, &[]),
        ("\nunix = u", 2, &[]),
        ("tcp = 10809", 1, &["tcp = 10809", "a text in quotes is allowed"]),
        (&memory("1\ndepth = \"16\""), 4, &["depth = \"16\"", "1 to 1024 requests, or"]),
        ("unix = \"u\"\nunix = \"v\"", 2, &["unix is written twice"]),
        ("[groups.\"/g\"]\nweight = 1\n[groups.\"/g\"]", 3, &["\"/g\" is written twice"]),
        ("[exports.e]\ndisk = \"rest\"\nsize = 1\n[exports.e]", 4, &["e is written twice"]),
        (
            "[groups.\"/g\"]\nweight = 99999999999999999999",
            2,
            &["weight = 99999999999999999999", "1 to 1000 is allowed"],
        ),
        ("unix = \"u\"\nunix_mode = true", 2, &["unix_mode = true", "one in quotes, is allowed"]),
        (&memory("1.5"), 3, &["size = 1.5", "a whole number, or one in quotes, is allowed"]),
    ]);
}

#[test]
fn disks_that_cannot_be_served_are_refused() {
    let more = "[exports.e]\ndisk = \"d\"\n";
    let disk = |keys: &str| format!("[disks.d]\n{keys}\n{more}");
    let file = |keys: &str| disk(&format!("path = \"@/disk.img\"\n{keys}"));
    let model = |keys: &str| disk(&format!("backend = \"modelled\"\nsize = 1\n{keys}"));
    let twice = format!("{DISK}[disks.e]\npath = \"@/same.img\"\n{more}");
    assert_refused(&[
        (more, 0, &["no disk", "[disks.NAME]"]),
        (&disk(""), 1, &["\"d\"", "path", "\"memory\", \"modelled\" or \"nbd\""]),
        (&disk("path = \"@/none.img\""), 2, &["none.img", "No such file"]),
        (&disk("path = \"@/dir\""), 2, &["is a directory", "regular file"]),
        (&disk("path = \"@/socket\""), 2, &["is a socket", "regular file"]),
        (&disk("path = \"/dev/null\""), 2, &["is a character device", "block device"]),
        (&disk("path = \"@/empty.img\""), 1, &["\"d\"", "0 bytes"]),
        (&twice, 4, &["same.img", "disk \"d\" too"]),
        (&disk("backend = \"ram\""), 2, &["\"ram\"", "\"memory\", \"modelled\" or \"nbd\""]),
        (&disk("backend = \"memory\""), 1, &["no size", "memory"]),
        (&disk("backend = \"memory\"\nsize = 0"), 3, &["\"d\"", "0 bytes"]),
        (&disk("backend = \"memory\"\nsize = \"1X\""), 3, &["size = \"1X\"", "\"10G\""]),
        (&disk("backend = \"memory\"\nsize = -1"), 3, &["size = -1", "\"10G\""]),
        (&disk("backend = \"memory\"\nsize = \"9999999T\""), 3, &["9223372036854775807"]),
        (&disk("backend = \"memory\"\nsize = 1\nservers = 1"), 4, &["servers", "memory"]),
        (&disk("backend = \"memory\"\nsize = 1\npath = \"p\""), 4, &["path", "memory"]),
        (&file("size = 1"), 3, &["size", "a file disk does not take"]),
        (&model("service_us = 1"), 1, &["no servers"]),
        (&model("servers = 1"), 1, &["no service_us"]),
        (&model("service_us = 1\nservers = 0"), 5, &["servers = 0", "1 to 512"]),
        (&model("servers = 1\nservice_us = 10000001"), 5, &["10000001", "1 to 10000000 µs"]),
        (&model("servers = 1\nservice_us = 1\nns_per_kib = -1"), 6, &["-1", "0 to 1000000 ns"]),
        (&model("model = \"floppy\""), 4, &["floppy", "no such file", "hdd-7200"]),
        (
            &model("model = \"hdd-7200\"\nservers = 4"),
            5,
            &["servers beside model", "one of both is allowed"],
        ),
        (
            &disk("backend = \"modelled\"\nsize = \"2M\"\nmodel = \"@/small.toml\""),
            3,
            &["small.toml\" has 1048576 bytes", "at most these are allowed"],
        ),
        (&model("model = \"table-980pro\""), 4, &["\"table-980pro\": it takes no writes"]),
        (&disk("backend = \"memory\"\nsize = 1\nmodel = \"hdd-7200\""), 4, &["model", "memory"]),
        (&file("depth = 0"), 3, &["depth = 0", "1 to 1024 requests"]),
        (&file("\ndepth = 5000000000"), 4, &["depth = 5000000000", "1 to 1024 requests"]),
        (
            &file("scheduler = \"noop\""),
            3,
            &["\"noop\"", "\"auto\", \"none\", \"mq-deadline\", \"kyber\", \"cfq\""],
        ),
        (
            &file("scheduler = \"cfq\"\n[disks.d.tunables]\nquantum = 1\nq = 1"),
            6,
            &["cfq", "\"q\"", "quantum"],
        ),
        (
            &file("scheduler = \"cfq\"\ntunables.quantum = 0"),
            4,
            &["quantum = 0", "1 to 4294967295 requests"],
        ),
        (
            "[disks.\"a\\u0007\"]\nbackend = \"memory\"\nsize = 1\n\
             [exports.e]\ndisk = \"a\\u0007\"",
            1,
            &["disk", "control characters"],
        ),
    ]);
}

#[test]
fn exports_that_cannot_be_served_are_refused() {
    let export = |keys: &str| format!("{DISK}[exports.e]\ndisk = \"d\"\n{keys}\n");
    let beside = |keys: &str| {
        let other = "[exports.f]\ndisk = \"d\"\nread_only = false\n";
        format!("{DISK}{other}[exports.e]\ndisk = \"d\"\n{keys}\n")
    };
    let long = format!("{DISK}[exports.\"{}\"]\ndisk = \"d\"\n", "x".repeat(4097));
    assert_refused(&[
        (DISK, 0, &["no export", "[exports.NAME]"]),
        (&export("").replace("\"d\"", "\"x\""), 4, &["no disk \"x\"", "there are: \"d\""]),
        (&export("size = 0"), 5, &["\"e\"", "0 bytes"]),
        (&export("offset = \"1M\""), 5, &["\"e\"", "0 bytes"]),
        (&export("offset = \"1M\"\nsize = 1"), 6, &["1 bytes past", "\"d\"", "1048576 bytes"]),
        (&export("offset = \"2M\""), 5, &["1048576 bytes past"]),
        (&export("offset = 1\nsize = 9223372036854775807"), 6, &["past the end"]),
        (&export("offset = \"x\""), 5, &["offset = \"x\"", "K, M, G or T"]),
        (&beside(""), 6, &["\"e\" and \"f\"", "0 to 1048575", "read-only"]),
        (&beside("offset = 4096\nsize = 4096"), 6, &["4096 to 8191"]),
        (&export("ioprio = \"be/8\""), 5, &["\"be/8\"", "be/0 to be/7"]),
        (&long, 3, &["export", "4096 bytes"]),
        (&export("description = \"a\\nb\""), 5, &["description", "control characters"]),
    ]);
}

#[test]
fn groups_that_cannot_be_served_are_refused() {
    let grouped = |path: &str, keys: &str| {
        format!("{DISK}[exports.e]\ndisk = \"d\"\ngroup = \"{path}\"\n{keys}\n")
    };
    let written =
        |path: &str, keys: &str| format!("{}[groups.\"{path}\"]\n{keys}\n", grouped("/g", ""));
    let own =
        |name: &str, keys: &str| format!("{DISK}[exports.\"{name}\"]\ndisk = \"d\"\n{keys}\n");
    let unused_beside = written("/g", "").replacen("\"/g\"", "\"/gold\"", 1);
    assert_refused(&[
        (&grouped("gold", ""), 5, &["\"gold\"", "\"/gold\""]),
        (&grouped("/", ""), 5, &["\"/\"", "\"/gold\""]),
        (&grouped("/g/", ""), 5, &["\"/g/\"", "\"/gold\""]),
        (&grouped("", ""), 5, &["group \"\"", "\"/org/db\""]),
        (&grouped("a/b", ""), 5, &["\"a/b\"", "\"/org/db\""]),
        (&grouped("/a//b", ""), 5, &["\"/a//b\"", "\"/org/db\""]),
        (&grouped("/a/b/", ""), 5, &["\"/a/b/\"", "\"/org/db\""]),
        (&grouped("/a/b\\u0007", ""), 5, &["group", "control characters"]),
        (&written("/g//", ""), 7, &["\"/g//\"", "\"/org/db\""]),
        (&grouped(&"/x".repeat(9), ""), 5, &["\"/x/x/x", "9 names", "1 to 8"]),
        (&grouped(&"/x".repeat(2049), ""), 5, &["group", "4096 bytes"]),
        (&written("/g", "weight = 0"), 8, &["weight = 0", "1 to 1000"]),
        (&written("/g", "weight = 1001"), 8, &["weight = 1001", "1 to 1000"]),
        (&own("e", "weight = -5"), 5, &["weight = -5", "1 to 1000"]),
        (&written("/g", "leaf_weight = 0"), 8, &["leaf_weight = 0", "1 to 1000"]),
        (&written("/g", "leaf_weight = 1001"), 8, &["leaf_weight = 1001", "1 to 1000"]),
        (&written("/h", ""), 7, &["\"/h\"", "no export", "\"/g\""]),
        (&written("/g/x", ""), 7, &["\"/g/x\" or below", "no export", "\"/g\""]),
        (&unused_beside, 7, &["\"/g\" or below", "\"/gold\""]),
        (&grouped("/g", "weight = 5"), 6, &["weight and a group", "[groups.\"/g\"]"]),
        (&own("e", "weight = 5\n[groups.\"/e\"]\nweight = 6"), 5, &["\"/e\"", "one is allowed"]),
        (&own("a/b", ""), 3, &["\"a/b\" needs a group", "group = \"/gold\"", "no \"/\""]),
        (&own(&"x".repeat(4096), ""), 3, &["needs a group", "at most 4095 bytes"]),
    ]);
}

#[test]
fn weights_on_disks_where_the_group_is_not_are_refused_with_those_where_it_is() {
    let with = |keys: &str| {
        format!(
            "[disks.d]\nbackend = \"memory\"\nsize = 1\n[disks.e]\nbackend = \"memory\"\n\
             size = 1\n[disks.f]\nbackend = \"memory\"\nsize = 1\n\
             [exports.x]\ndisk = \"e\"\ngroup = \"/g/x\"\n[exports.y]\ndisk = \"f\"\n\
             group = \"/g\"\n[exports.g2]\ndisk = \"d\"\n[groups.\"/g\"]\n{keys}\n"
        )
    };
    for (keys, words) in [
        ("weight_device = { e = 5, d = 7 }", ["disk \"d\"", "group \"/g\"", "\"e\", \"f\""]),
        ("weight_device.sda = 5", ["no export of disk \"sda\"", "or below", "\"e\", \"f\""]),
        ("leaf_weight_device.d = 5", ["\"d\"", "group \"/g\"", "\"e\", \"f\""]),
        ("weight_device.e = 0", ["weight_device = 0", "1 to 1000", "allowed"]),
        ("leaf_weight_device.f = 1001", ["leaf_weight_device = 1001", "1 to 1000", "allowed"]),
        ("weight_device.e = \"5\"", ["e = \"5\"", "a whole number", "allowed"]),
        ("weight_device = 5", ["weight_device = 5", "a table", "allowed"]),
        ("weight_device = { e = 1, e = 2 }", ["written twice", "once", "allowed"]),
    ] {
        assert_refused(&[(&with(keys), 19, &words)]);
    }
}

#[test]
fn sockets_that_cannot_be_are_refused() {
    let long = format!("unix = \"/{}\"", "x".repeat(107));
    assert_refused_beside_what_is_needed(&[
        (&long, 1, &["108 bytes", "1 to 107"]),
        ("ctl = \"\"", 1, &["0 bytes", "1 to 107"]),
        ("unix = \"a\\u0000b\"", 1, &["none of them 0"]),
        ("tcp = \"localhost:10809\"", 1, &["\"localhost:10809\"", "127.0.0.1:10809"]),
        ("tcp = \"127.0.0.1\"", 1, &["[::1]:10809"]),
        ("tcp = \"127.0.0.1:99999\"", 1, &["99999", "[::1]:10809"]),
        ("unix = \"u\"\nunix_mode = 660", 2, &["unix_mode = 660", "0o000 to 0o777"]),
        ("unix = \"u\"\nunix_mode = \"rw\"", 2, &["\"rw\"", "\"0777\""]),
        ("unix = \"u\"\nunix_mode = \"01777\"", 2, &["\"01777\""]),
        ("tcp = \"0.0.0.0:1\"\nunix_mode = 0o600", 2, &["no use without unix"]),
        ("unix = \"u\"\nctl = \"u\"", 2, &["\"u\"", "one of its own"]),
    ]);
}

#[test]
fn options_that_cannot_be_served_are_refused_by_name() {
    let rig = Rig::new();
    let text = |text: &str| Some(text.to_owned());
    let base = || Options { scheduler: text("cfq"), ..rig.options(&["a"]) };
    let set = |text: &str| Options { set: vec![text.to_owned()], ..base() };
    let twice = vec!["quantum=1".to_owned(), "quantum=2".to_owned()];
    let cases: &[(Options, &[&str])] = &[
        (Options { disk: "none.img".into(), ..base() }, &["--disk: ", "\"none.img\""]),
        (
            Options { scheduler: text("noop"), ..base() },
            &["--scheduler: ", "\"none\", \"mq-deadline\""],
        ),
        (Options { depth: Some("-1".to_owned()), ..base() }, &["--depth: ", "-1", "1 to 1024"]),
        (Options { tcp: text(":1"), ..base() }, &["--tcp: ", "\":1\""]),
        (Options { unix: Some("".into()), ..base() }, &["--unix: ", "0 bytes"]),
        (Options { ctl: Some("x".repeat(200).into()), ..base() }, &["--ctl: ", "200 bytes"]),
        (set("quantum"), &["--set: ", "\"quantum\"", "TUNABLE=VALUE"]),
        (set("quantum=many"), &["--set: ", "quantum = \"many\"", "a whole number"]),
        (set("quantum=0"), &["--set: ", "quantum = 0", "1 to 4294967295 requests"]),
        (set("back_seek_penalty=0"), &["--set: ", "= 0: 1 to 4294967295 is allowed"]),
        (set("depth=1"), &["--set: ", "\"depth\"", "quantum"]),
        (Options { set: twice, ..base() }, &["--set: ", "quantum", "twice"]),
        (rig.options(&[]), &["command line: ", "no export"]),
        (rig.options(&["a,size=1", "a,offset=1"]), &["--export: ", "two exports \"a\""]),
        (rig.options(&["a", "b"]), &["--export: ", "\"b\" and \"a\" share the bytes 0 to 1048575"]),
        (rig.options(&["a", "r,read-only", "b"]), &["--export: ", "\"b\" and \"a\" share the"]),
        (rig.options(&["a,weight=0"]), &["--export: ", "weight = 0", "1 to 1000"]),
        (rig.options(&["a,weight=x"]), &["--export: ", "\"weight=x\" in \"a,weight=x\""]),
        (rig.options(&["a,wieght=1"]), &["--export: ", "\"wieght=1\"", "=PATH are allowed"]),
        (rig.options(&["a,weight=1,weight=2"]), &["--export: ", "\"weight=2\"", "once"]),
        (rig.options(&["a,size=2M"]), &["--export: ", "1048576 bytes past the end"]),
        (rig.options(&["/a"]), &["--export: ", "\"/a\" needs a group"]),
    ];
    for (options, words) in cases {
        let refused = Config::from_options(options).expect_err("bad").to_string();
        assert!(refused.starts_with(words[0]), "not {}\n{refused}", words[0]);
        for word in &words[1..] {
            assert!(refused.contains(word), "no {word}\n{refused}");
        }
    }
}

#[test]
fn file_that_cannot_be_read_is_named_with_the_cause() {
    let missing = Config::from_file(&Rig::new().path("none.toml")).expect_err("missing");
    let shown = format!("{:#}", anyhow::Error::from(missing));
    assert!(shown.contains("none.toml") && shown.contains("No such file"), "{shown}");
}
