//! All that is wrong with a configuration is told in one run, and only what is wrong.

use std::fs::File;
use std::path::Path;

use paternoster_server::config::{Config, Options};
use tempfile::TempDir;

/// A directory with a disk of 1 MiB.
fn dir() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let disk = File::create(dir.path().join("disk.img")).expect("a disk");
    disk.set_len(1 << 20).expect("room");
    dir
}

/// What is said of a file in which `@` stands for a directory with a disk: a line each mistake.
fn mistakes(toml: &str) -> Vec<String> {
    let dir = dir();
    let toml = toml.replace('@', dir.path().to_str().expect("UTF-8"));
    let refused = Config::from_toml(&toml, Path::new("c")).expect_err("mistakes").to_string();
    refused.lines().map(str::to_owned).collect()
}

/// Asserts that these are all mistakes, each by how it begins.
fn assert_mistakes(toml: &str, expected: &[&str]) {
    let found = mistakes(toml);
    let are_those = found.iter().zip(expected).all(|(found, begin)| found.starts_with(begin));
    assert!(are_those && found.len() == expected.len(), "{toml}\n{}", found.join("\n"));
}

#[test]
fn all_mistakes_are_told_in_one_run_in_the_order_of_the_file() {
    let toml = r#"unix = ""
unix_mode = "0999"
tcp = "localhost"
colour = 1
[disks.a]
path = "@/none.img"
depth = 0
scheduler = "noop"
tunables = { quantum = 0 }
[disks.b]
backend = "modelled"
size = "1M"
servers = "four"
service_us = 0
tunables = { keep_slots = 101, magic = 1, slice_idle = "8" }
[groups."/g"]
weight = 1001
leaf_weight = 0
weight_device = { b = 0, x = 5 }
[groups."gold"]
[exports.one]
disk = "a"
group = "/g"
weight = 7
ioprio = "be/9"
[exports.two]
disk = "b"
group = "/g"
offset = "512K"
size = "1M"
[exports.three]
disk = "c"
read_only = "no"
[exports.four]
size = 1.5
"#;
    let expected = [
        "c:1: socket \"\" has 0 bytes",
        "c:2: unix_mode = \"0999\"",
        "c:3: \"localhost\"",
        "c:4: unknown key `colour`; there are: `unix`, `unix_mode`, `tcp`, `ctl`, ",
        "c:6: disk file \"/",
        "c:7: depth = 0: 1 to 1024",
        "c:8: ",
        "c:13: servers = \"four\": a whole number is allowed",
        "c:14: service_us = 0",
        "c:15: slice_idle = \"8\": a whole number is allowed",
        "c:15: keep_slots = 101: 0 to 100",
        "c:15: ",
        "c:17: weight = 1001: 1 to 1000",
        "c:18: leaf_weight = 0: 1 to 1000",
        "c:19: weight_device = 0",
        "c:19: no export of disk \"x\"",
        "c:20: group \"gold\": one name or more",
        "c:24: export \"one\" has a weight and a group",
        "c:25: ",
        "c:30: export \"two\" is offset 524288 and size 1048576, 524288 bytes past",
        "c:32: there is no disk \"c\"; there are: \"a\", \"b\"",
        "c:33: read_only = \"no\": true or false is allowed",
        "c:34: missing key `disk`",
        "c:35: size = 1.5: a whole number, or one in quotes, is allowed",
    ];
    assert_mistakes(toml, &expected);
}

#[test]
fn root_takes_caps_alone_where_a_scheduler_has_them() {
    let toml = r#"[disks.a]
backend = "memory"
size = "1M"
scheduler = "cfq"
[groups."/"]
weight = 5
iops = 100
min_iops = 7
memory = "64M"
[exports.one]
disk = "a"
"#;
    let caps = "which has nobody beside it; caps are allowed: riops, wiops, rbps, wbps, iops, bps";
    let expected = [
        &format!("c:6: weight of group \"/\", {caps}"),
        "c:7: iops of group \"/\", which is on disk \"a\": its scheduler cfq has no caps, ",
        &format!("c:8: min_iops of group \"/\", {caps}"),
        &format!("c:9: memory of group \"/\", {caps}"),
    ];
    assert_mistakes(toml, &expected);
}

#[test]
fn depth_is_learned_under_wfq_alone() {
    let toml = r#"[disks.a]
backend = "memory"
size = "1M"
scheduler = "cfq"
depth = "learned"
[disks.b]
backend = "memory"
size = "1M"
depth = "learned"
[disks.c]
backend = "memory"
size = "1M"
rotational = true
depth = "learned"
[exports.one]
disk = "a"
[exports.two]
disk = "b"
[exports.three]
disk = "c"
"#;
    let expected = [
        "c:5: depth = \"learned\": cfq learns none; 1 to 1024 requests is allowed",
        "c:14: depth = \"learned\": cfq learns none; 1 to 1024 requests is allowed; scheduler = \
         \"auto\", the default, takes this one (auto: cfq, as the disk rotates)",
    ];
    assert_mistakes(toml, &expected);
}

#[test]
fn hierarchy_is_one_of_those_of_cfq_and_of_a_disk() {
    let toml = r#"[disks.a]
backend = "memory"
size = "1M"
hierarchy = "deep"
[disks.b]
backend = "memory"
size = "1M"
scheduler = "bfq"
hierarchy = "flat"
[disks.c]
backend = "memory"
size = "1M"
use_hierarchy = 1
[groups."/one"]
hierarchy = "flat"
[exports.one]
disk = "a"
[exports.two]
disk = "b"
[exports.three]
disk = "c"
"#;
    let expected = [
        "c:4: hierarchy = \"deep\": \"leaf-weight\", \"flat\" or \"entities\" is allowed",
        "c:9: bfq has no hierarchy to choose; cfq has: leaf-weight, flat, entities",
        "c:13: unknown key `use_hierarchy`; there are: `path`, ",
        "c:15: unknown key `hierarchy`; there are: `weight`, ",
    ];
    assert_mistakes(toml, &expected);
}

#[test]
fn every_wrong_option_is_told() {
    let dir = dir();
    let options = Options {
        disk: dir.path().join("none.img"),
        scheduler: Some("noop".to_owned()),
        set: vec!["quantum".to_owned(), "q=x".to_owned()],
        depth: Some("0".to_owned()),
        cache: Some("none".to_owned()),
        exports: ["a,weight=0", "b,colour=1", "c,size=0"].map(str::to_owned).into(),
        unix: Some("".into()),
        tcp: Some("nowhere".to_owned()),
        ctl: Some("".into()),
        metrics: Some(String::new()),
        threads: Some(0),
        engine: Some("aio".to_owned()),
    };
    let refused = Config::from_options(&options).expect_err("mistakes").to_string();
    let mut places: Vec<_> =
        refused.lines().map(|line| line.split(": ").next().expect("a place")).collect();
    places.sort_unstable();
    let expected = [
        "--cache",
        "--ctl",
        "--depth",
        "--disk",
        "--engine",
        "--export",
        "--export",
        "--export",
        "--metrics",
        "--scheduler",
        "--set",
        "--set",
        "--tcp",
        "--threads",
        "--unix",
    ];
    assert_eq!(places, expected, "{refused}");
}

#[test]
fn weights_are_checked_even_where_it_is_open_whose_they_are() {
    let toml = format!(
        "{MEMORY}[groups.g]\nweight = 0\nleaf_weight = 0\nweight_device.d = 0\n\
         leaf_weight_device.d = 0\n[exports.\"a/b\"]\ndisk = \"d\"\nweight = 0\n"
    );
    let expected = ["c:4: group \"g\"", "c:5: w", "c:6: l", "c:7: w", "c:8: l", "c:9: ", "c:11: w"];
    assert_mistakes(&toml, &expected);
}

const MEMORY: &str = "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n";

#[test]
fn what_follows_from_a_disk_that_is_wrong_is_not_told() {
    for (disk, mistake) in [
        ("path = \"@/none.img\"", "c:2: disk file"),
        ("path = 7", "c:2: path = 7: a text in quotes is allowed"),
        ("pth = \"@/disk.img\"", "c:2: unknown key `pth`"),
        ("backend = \"ram\"", "c:2: backend = \"ram\""),
        (
            "backend = true",
            "c:2: backend = true: \"file\", \"memory\", \"modelled\" or \"nbd\" is allowed",
        ),
        ("backend = \"memory\"", "c:1: disk \"d\" has no size"),
        ("backend = \"memory\"\nsize = \"1X\"", "c:3: size = \"1X\""),
        ("backend = \"memory\"\nsize = 0", "c:3: disk \"d\" has 0 bytes"),
    ] {
        // With a size none of these exports would fit, nor stand beside the other.
        let toml = format!(
            "[disks.d]\n{disk}\n[groups.\"/g\"]\nweight_device.d = 5\n[exports.a]\ndisk = \"d\"\n\
             group = \"/g\"\noffset = \"1T\"\n[exports.b]\ndisk = \"d\"\nsize = \"1T\"\n"
        );
        assert_mistakes(&toml, &[mistake]);
    }
}

#[test]
fn what_follows_from_a_table_that_is_wrong_is_not_told() {
    let export = "[exports.a]\ndisk = \"d\"\ngroup = \"/g\"\n";
    let group = "[groups.\"/g\"]\nweight_device.d = 5\n";
    assert_mistakes(&format!("[disk.d]\n{group}{export}"), &["c:1: unknown key `disk`"]);
    assert_mistakes(&format!("disks = 3\n{group}{export}"), &["c:1: disks = 3: a table"]);
    assert_mistakes(&format!("disks.d = 3\n{group}{export}"), &["c:1: disks.d = 3: a table"]);
    let exports = format!("{MEMORY}[export.a]\ndisk = \"d\"\n{group}");
    assert_mistakes(&exports, &["c:4: unknown key `export`"]);
    let exports = format!("exports.a = \"d\"\n{MEMORY}{group}");
    assert_mistakes(&exports, &["c:1: exports.a = \"d\": a table"]);
}

#[test]
fn what_follows_from_an_export_that_is_wrong_is_not_told() {
    let rest = format!("{MEMORY}[groups.\"/g\"]\nweight_device.d = 5\n");
    for (export, mistakes) in [
        ("disk = \"d\"\ngroup = \"g\"", &["c:3: group \"g\""][..]),
        ("disk = \"d\"\ngroup = 7", &["c:3: group = 7: a text in quotes"]),
        ("disk = \"d\"\ngrop = \"/g\"", &["c:3: unknown key `grop`"]),
        ("disk = \"x\"\ngroup = \"/g\"", &["c:2: there is no disk \"x\""]),
        ("dsk = \"d\"\ngroup = \"/g\"", &["c:2: unknown key `dsk`"]),
        ("disk = 7\ngroup = \"/g\"", &["c:2: disk = 7"]),
        ("disk = \"d\"\ngroup = \"/g\"\nsize = \"2M\"", &["c:4: export"]),
    ] {
        assert_mistakes(&format!("[exports.a]\n{export}\n{rest}"), mistakes);
    }
    let beside = format!("[exports.b]\ndisk = \"d\"\nread_only = true\n{MEMORY}");
    for read_only in ["read_only = 1", "readonly = true"] {
        let toml = format!("[exports.a]\ndisk = \"d\"\n{read_only}\n{beside}");
        assert_mistakes(&toml, &["c:3: "]);
    }
    let twice = Options {
        disk: dir().path().join("disk.img"),
        exports: ["a", "a"].map(str::to_owned).into(),
        ..Options::default()
    };
    let refused = Config::from_options(&twice).expect_err("twice").to_string();
    assert!(refused.contains("two exports \"a\"") && !refused.contains("share"), "{refused}");
}

#[test]
fn what_follows_from_a_socket_that_is_wrong_is_not_told() {
    let rest = format!("{MEMORY}[exports.a]\ndisk = \"d\"\n");
    for unix in ["unix = 7", "unix = \"\""] {
        assert_mistakes(&format!("{unix}\nunix_mode = \"0660\"\n{rest}"), &["c:1: "]);
        assert_mistakes(&format!("{unix}\ntcp = \"127.0.0.1:1\"\n{rest}"), &["c:1: "]);
    }
}

#[test]
fn every_line_that_is_not_in_utf_8_is_told() {
    let dir = dir();
    let path = dir.path().join("c.toml");
    std::fs::write(&path, b"unix = \"u\"\n# gr\xfcn\n\n# \xc3\xbc\ntcp = \"\xe9\xe8\"\n")
        .expect("a file");
    let refused = Config::from_file(&path).expect_err("no text").to_string();
    let path = path.display();
    let expected = format!(
        "{path}:2: the byte 0xfc is not UTF-8; text in UTF-8 is allowed\n\
         {path}:5: the byte 0xe9 is not UTF-8; text in UTF-8 is allowed"
    );
    assert_eq!(refused, expected);
}

/// It was read as a whole, as long as that took, and memory it needed.
#[test]
fn disk_image_in_the_place_of_the_file_is_refused_without_being_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk.img");
    let image = std::fs::File::create(&path).expect("a file");
    image.set_len(1 << 40).expect("room for it, as a hole");
    let refused = Config::from_file(&path).expect_err("no configuration").to_string();
    let expected = format!(
        "{} has more than 16777216 bytes, which a configuration may have at most; a disk image is \
         named with --disk",
        path.display()
    );
    assert_eq!(refused, expected);
}

#[test]
fn every_line_that_is_no_toml_is_told_once_and_alone() {
    let toml = "unix = u\n[disks.d]\ndepth = 0\nsize = = 1\n[exports.\n";
    let found = mistakes(toml);
    let lines: Vec<_> = found.iter().map(|mistake| &mistake[..4]).collect();
    assert_eq!(lines, ["c:1:", "c:4:", "c:5:"], "{}", found.join("\n"));
    let twice =
        format!("unix = \"u\"\nunix = \"v\"\n{MEMORY}depth = 0\n[exports.a]\ndisk = \"d\"\n");
    assert_mistakes(&twice, &["c:2: unix is written twice", "c:6: depth = 0"]);
}

#[test]
fn whatever_is_changed_in_a_file_it_is_right_or_has_mistakes() {
    let toml = "unix = 'u'\nunix_mode = '0600'\ntcp = '[::1]:0'\nctl = 'c'\n[disks.d]\n\
                backend = 'modelled'\nsize = '1M'\nservers = 1\nservice_us = 1\nns_per_kib = 1\n\
                scheduler = 'bfq'\ndepth = 1\ntunables.slice_idle = 0\n[groups.'/g']\n\
                weight = 1\nleaf_weight = 1\nweight_device.d = 1\nleaf_weight_device.d = 1\n\
                [exports.e]\ndisk = 'd'\noffset = 1\nsize = 1\ngroup = '/g'\nioprio = 'be/1'\n\
                read_only = true\ndescription = 'x'\n[exports.f]\ndisk = 'd'\nweight = 1\n\
                read_only = true\n";
    let read = |toml: &str| match Config::from_toml(toml, Path::new("c")) {
        Ok(_) => true,
        Err(refused) => {
            assert!(refused.to_string().starts_with('c'), "{toml}");
            false
        }
    };
    assert!(read(toml));
    let lines: Vec<_> = toml.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let key = line.split_once(" = ").map_or(*line, |(key, _)| key);
        let with = |changed: String| {
            let mut lines: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
            lines[index] = changed;
            lines.join("\n")
        };
        for value in ["''", "'/'", "'none'", "0", "-1", "1.5", "true", "[]", "{}", "{ a = 0 }"] {
            read(&with(format!("{key} = {value}")));
        }
        for changed in ["", "x = 1", "[x]", "[disks]", "[exports.e]", "disks = 1", "= ="] {
            read(&with(changed.to_owned()));
        }
    }
}

/// `ctl set` tells a group from a disk by that.
#[test]
fn disk_is_not_named_as_a_group() {
    let toml = MEMORY.replace("disks.d", "disks.\"/d\"") + "[exports.e]\ndisk = \"/d\"\n";
    assert_mistakes(&toml, &["c:1: disk \"/d\": a name that begins with \"/\" is a group's; any"]);
}

#[test]
fn no_beginning_of_a_valid_file_panics() {
    let toml = "unix='ü'\nunix_mode='0600'\n[disks.d]\nbackend='memory'\nsize='1G'\n\
                tunables={burst=8}\n[groups.'/g']\nweight=1\n[exports.e]\ndisk='d'\ngroup='/g/h'";
    let read = |text: &str| Config::from_toml(text, Path::new("c"));
    read(toml).expect("valid as a whole");
    for (end, _) in toml.char_indices() {
        let _ = read(&toml[..end]);
        for other in ["0", "\"", "=", "]", "-", "é"] {
            let rest = toml[end..].chars().skip(1).collect::<String>();
            let _ = read(&format!("{}{other}{rest}", &toml[..end]));
        }
    }
}

#[test]
fn ways_past_the_page_cache_are_named() {
    let disk = |more: &str| {
        format!("[disks.d]\npath = \"@/disk.img\"\n{more}\n[exports.e]\ndisk = \"d\"\n")
    };
    assert_mistakes(
        &disk("cache = \"both\""),
        &["c:3: cache = \"both\": \"direct\" or \"page\" is allowed"],
    );
    assert_mistakes(
        &disk("rotational = 1"),
        &["c:3: rotational = 1: \"auto\", true or false is allowed"],
    );
    let memory = "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\ncache = \"page\"\n\
                  [exports.e]\ndisk = \"d\"\n";
    assert_mistakes(memory, &["c:4: disk \"d\" has cache, which a memory disk does not take"]);
}
