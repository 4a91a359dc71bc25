//! Disks, pools, volumes, exports and groups of the file, which come and go when it is read again.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use paternoster_nbd::Command;
use paternoster_server::ctl::{
    CatalogueError, Control as _, ReloadAnswer, ReloadError, ReloadMode, RemovalQuestion,
    VolumeStage,
};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::support::{PATIENCE, Rig, refusal, whole};

const FILE: &str = r#"
[[listen]]
unix = "DIR/one.sock"
exports = ["x"]
[pools.p]
path = "DIR"
cache = "page"
scheduler = "wfq"
[volumes.a]
pool = "p"
[volumes.b]
pool = "p"
[disks.d]
backend = "memory"
size = "1M"
scheduler = "wfq"
[exports.x]
disk = "d"
size = "512K"
[exports.y]
disk = "d"
offset = "512K"
[exports.part]
volume = "a"
size = "4K"
read_only = true
"#;

pub(crate) fn serve() -> Rig {
    Rig::prepared(FILE, |dir| {
        for name in ["a.img", "b.img", "c.img"] {
            File::create(dir.join(name)).expect("an image").set_len(1 << 20).expect("room");
        }
    })
}

/// The file with other text in these places.
fn with(replaced: &[(&str, &str)]) -> String {
    replaced.iter().fold(FILE.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    })
}

pub(crate) fn reload(rig: &Rig, mode: ReloadMode, toml: &str) -> Result<ReloadAnswer, ReloadError> {
    let file = rig.dir.path().join("c.toml");
    fs::write(&file, whole(rig.dir.path(), toml)).expect("a file");
    rig.control().with_file(&file).reload(mode)
}

/// What has changed, line by line.
fn apply(rig: &Rig, toml: &str) -> Vec<String> {
    let answer = reload(rig, ReloadMode::Apply, toml).expect("a good file");
    assert_eq!((&answer.under_way, &answer.failed), (&vec![], &vec![]), "{answer:?}");
    assert_eq!(answer.needs_restart, []);
    answer.changed.iter().map(ToString::to_string).collect()
}

/// The paths of groups and their weights on all disks, sorted.
fn groups(rig: &Rig) -> Vec<(String, u32)> {
    let stat = rig.stat();
    let groups = stat.disks.iter().flat_map(|disk| &disk.groups);
    let mut groups: Vec<_> = groups.map(|group| (group.path.clone(), group.weight)).collect();
    groups.sort_unstable();
    groups
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Where it is known on what devices files are.
#[test]
fn disk_that_comes_to_the_device_of_a_pool_has_both_tell_of_it() {
    let rig = serve();
    let known = !paternoster_disk::devices_of(rig.dir.path()).is_empty();
    let told = || {
        let said = |of: String| of.contains("are on the same device (");
        let disks = rig.stat().disks.into_iter();
        let told = disks.filter(|disk| disk.warnings.iter().cloned().any(said));
        told.map(|disk| disk.name).collect::<Vec<_>>()
    };
    assert_eq!(told(), [""; 0]);
    let more = "[disks.e]\npath = \"DIR/c.img\"\n[exports.e]\ndisk = \"e\"\n[disks.d]";
    apply(&rig, &with(&[("[disks.d]", more)]));
    assert_eq!(told(), if known { vec!["p", "e"] } else { vec![] });
    apply(&rig, FILE);
    eventually("it has gone, and with it what was told", || told().is_empty());
    rig.end();
}

#[test]
fn what_nobody_uses_comes_and_goes_at_once() {
    let rig = serve();
    let before = groups(&rig);
    let file = with(&[
        ("[volumes.b]\npool = \"p\"", "[volumes.c]\npool = \"p\"\ngroup = \"/gold/c\""),
        ("[disks.d]", "[groups.\"/gold\"]\nweight = 300\nriops = 9000\n[disks.d]"),
        (
            "[exports.y]\ndisk = \"d\"\noffset = \"512K\"",
            "[exports.z]\ndisk = \"d\"\noffset = \"768K\"",
        ),
    ]);
    let lines = [
        "exports \"y\" -> none",
        "volumes \"b\" -> none",
        "volumes none -> \"c\"",
        "exports none -> \"z\"",
    ];
    let dry = reload(&rig, ReloadMode::DryRun, &file).expect("a good file");
    assert_eq!(dry.changed.iter().map(ToString::to_string).collect::<Vec<_>>(), lines);
    assert_eq!(groups(&rig), before, "nothing has changed");
    assert_eq!(apply(&rig, &file), lines);
    let now = [("/a", 100), ("/gold", 300), ("/gold/c", 100), ("/part", 100), ("/x", 100)];
    let now = now.into_iter().chain([("/z", 100)]).map(|(path, weight)| (path.to_owned(), weight));
    assert_eq!(groups(&rig), now.collect::<Vec<_>>());
    for gone in ["b", "y"] {
        assert!(refusal(rig.connect(), gone).1.contains("no export"), "{gone}");
    }
    let mut client = rig.client("c");
    client.write(0, &[7; 4096]);
    client.call(Command::Flush).expect("it is durable");
    assert_eq!(rig.client("z").export().size, 256 << 10);
    let gold = rig.control().served_group("/gold").expect("it is there");
    assert!(gold.of_file && gold.exports == 1, "{gold:?}");
    let question = RemovalQuestion::default();
    let declared = rig.control().remove_volume("c", &question).expect_err("it is the file's");
    assert!(matches!(declared, CatalogueError::DeclaredInFile { .. }), "{declared}");
    drop(client);
    assert_eq!(apply(&rig, &file), [""; 0]);
    let back = [
        "exports \"z\" -> none",
        "volumes \"c\" -> none",
        "volumes none -> \"b\"",
        "exports none -> \"y\"",
    ];
    assert_eq!(apply(&rig, FILE), back);
    assert_eq!(groups(&rig), before);
    let mut bytes = [0; 4096];
    let image = File::open(rig.dir.path().join("c.img")).expect("it is kept");
    image.read_exact_at(&mut bytes, 0).expect("its bytes");
    assert_eq!(bytes, [7; 4096]);
    rig.end();
}

#[test]
fn clients_have_time_to_leave_and_what_takes_the_place_comes_behind_them() {
    let rig = serve();
    let [mut of_b, mut of_y] = ["b", "y"].map(|name| rig.served_client(name));
    of_b.write(0, &[3; 512]);
    let file = with(&[
        ("[volumes.b]\npool = \"p\"", "[volumes.n]\npool = \"p\"\npath = \"b.img\""),
        ("[exports.y]", "[exports.m]"),
        ("[exports.part]", "[exports.free]\nvolume = \"a\"\nread_only = true\n[exports.part]"),
    ]);
    let answer = reload(&rig, ReloadMode::Apply, &file).expect("a good file");
    let under_way: Vec<_> = answer.under_way.iter().map(ToString::to_string).collect();
    let leaving = "its clients have 30s to leave";
    let waiting = "it comes when what is in its way has gone";
    let expected = [
        format!("export \"y\": {leaving}"),
        format!("volume \"b\": {leaving}"),
        format!("volume \"n\": {waiting}"),
        format!("export \"m\": {waiting}"),
    ];
    assert_eq!((under_way, answer.failed), (expected.to_vec(), vec![]));
    // What waits for nobody is there.
    assert_eq!(rig.client("free").export().size, 1 << 20);
    assert!(refusal(rig.connect(), "b").1.contains("is being removed"));
    assert_eq!(rig.control().volume("b").expect("it is there").state, VolumeStage::Draining);
    of_b.write(512, &[4; 512]);
    assert_eq!(of_y.read(0, 512), [0; 512][..]);
    drop((of_b, of_y));
    eventually("both have come", || {
        rig.control().volume("n").is_ok_and(|volume| volume.state == VolumeStage::Ready)
            && rig.control().export("m").is_ok()
    });
    assert_eq!(rig.client("n").read(0, 1024), [[3; 512], [4; 512]].concat()[..]);
    assert_eq!(apply(&rig, &file), [""; 0]);
    rig.end();
}

#[test]
fn what_cannot_be_served_is_named_and_comes_with_the_next_reload() {
    let rig = serve();
    let locked = File::open(rig.dir.path().join("c.img")).expect("an image");
    flock(&locked, FlockOperation::LockExclusive).expect("nobody has it");
    let body = json!({"volume": "a", "read_only": true});
    rig.control().put_export("backup", &body, false).expect("it can be made");
    let file = with(&[
        ("[volumes.a]\npool = \"p\"", "[volumes.c]\npool = \"p\""),
        ("[exports.part]\nvolume = \"a\"\nsize = \"4K\"", "[exports.w]\nvolume = \"b\""),
    ]);
    let answer = reload(&rig, ReloadMode::Apply, &file).expect("a good file");
    let mut failed: Vec<_> = answer.failed.iter().map(ToString::to_string).collect();
    failed.sort_unstable();
    let [of_a, of_c] = &failed[..] else { panic!("{failed:?}") };
    assert!(of_a.starts_with("volume \"a\": ") && of_a.contains("\"backup\""), "{of_a}");
    assert!(of_c.starts_with("volume \"c\": ") && of_c.contains("c.img"), "{of_c}");
    assert_eq!(rig.client("w").export().size, 1 << 20, "the rest is done");
    rig.control().remove_export("backup", &RemovalQuestion::default()).expect("by request");
    drop(locked);
    assert_eq!(apply(&rig, &file), ["volumes \"a\" -> none", "volumes none -> \"c\""]);
    // A file that is not right changes nothing.
    let missing = file.replace("[volumes.c]", "[volumes.missing]");
    let refused = reload(&rig, ReloadMode::Apply, &missing).expect_err("it has no image");
    assert!(matches!(refused, ReloadError::Unusable(_)), "{refused}");
    assert_eq!(rig.client("c").export().size, 1 << 20);
    rig.end();
}

#[test]
fn new_sessions_see_what_the_file_says_of_what_stays() {
    let rig = serve();
    File::options()
        .write(true)
        .open(rig.dir.path().join("b.img"))
        .and_then(|image| image.set_len(3 << 20))
        .expect("room");
    let file = with(&[
        ("exports = [\"x\"]", "exports = [\"x\", \"b\"]"),
        ("[exports.y]", "[exports.y]\ndescription = \"scratch\""),
    ]);
    let at_one = |export: &str| {
        let stream = UnixStream::connect(rig.dir.path().join("one.sock")).expect("it listens");
        refusal(stream, export).1
    };
    assert!(at_one("b").contains("no export"));
    let lines = [
        "listen \"DIR/one.sock\": exports [\"x\"] -> [\"x\",\"b\"]",
        "export \"y\": description none -> \"scratch\"",
        "volume \"b\": size 1048576 -> 3145728",
    ];
    let dir = rig.dir.path().to_str().expect("UTF-8");
    assert_eq!(apply(&rig, &file), lines.map(|line| line.replace("DIR", dir)));
    assert_eq!(rig.client("b").export().size, 3 << 20);
    assert_eq!(rig.client("y").export().description.as_deref(), Some("scratch"));
    let on_one = rig.control().volume("b").expect("it is there").uris;
    assert!(on_one.iter().any(|uri| uri.contains("one.sock")), "{on_one:?}");
    assert_eq!(apply(&rig, &file), [""; 0]);
    rig.end();
}

#[test]
fn groups_of_the_file_stay_with_the_volumes_of_requests_and_take_over_what_those_brought() {
    let gold = "[groups.\"/gold\"]\nweight = 300\n[volumes.c]\npool = \"p\"\ngroup = \"/gold\"\n";
    let rig = serve();
    assert_eq!(apply(&rig, &format!("{FILE}{gold}")), ["volumes none -> \"c\""]);
    let body = json!({"pool": "p", "size": "1M", "group": "/gold"});
    rig.control().put_volume("vm", &body, false).expect("it can be made");
    let own = json!({"pool": "p", "size": "1M", "weight": 200});
    rig.control().put_volume("own", &own, false).expect("it can be made");
    // `vm` is in the group, and stays in it as it is.
    let answer = reload(&rig, ReloadMode::Apply, FILE).expect("a good file");
    let left: Vec<_> = answer.needs_restart.iter().map(ToString::to_string).collect();
    assert_eq!(left, ["groups \"/gold\" -> none"]);
    assert!(groups(&rig).contains(&("/gold".to_owned(), 300)));
    // What the next start would refuse a reload refuses.
    let takes = "[groups.\"/own\"]\nweight = 50\n[volumes.c]\npool = \"p\"\ngroup = \"/own\"\n";
    let refused = reload(&rig, ReloadMode::Apply, &format!("{FILE}{takes}")).expect_err("it sets");
    assert!(
        refused.to_string().contains("\"/own\": weight, limits and identities of"),
        "{refused}"
    );
    // A group of which nothing is set becomes the file's.
    rig.control().remove_volume("vm", &RemovalQuestion::default()).expect("by request");
    let plain = json!({"weight": null});
    rig.control().patch_volume("own", &plain).expect("it may change");
    assert_eq!(apply(&rig, &format!("{FILE}{takes}")).last().map(String::as_str), Some(COMES));
    assert!(groups(&rig).contains(&("/own".to_owned(), 50)));
    let refused = rig.control().patch_volume("own", &json!({"weight": 7})).expect_err("it may not");
    assert!(refused.to_string().contains("was there before"), "{refused}");
    rig.end();
}

const COMES: &str = "volumes none -> \"c\"";

#[test]
fn file_that_is_read_last_is_followed_when_clients_have_left() {
    let rig = serve();
    let mut of_b = rig.served_client("b");
    let renamed =
        with(&[("[volumes.b]\npool = \"p\"", "[volumes.n]\npool = \"p\"\npath = \"b.img\"")]);
    let answer = reload(&rig, ReloadMode::Apply, &renamed).expect("a good file");
    assert_eq!((answer.changed.len(), answer.under_way.len()), (0, 2));
    // Read again, it says the same.
    assert_eq!(reload(&rig, ReloadMode::Apply, &renamed).expect("a good file"), answer);
    // Both are under way; whoever makes one of that name by request has it.
    let answer = reload(&rig, ReloadMode::Apply, FILE).expect("a good file");
    let under_way: Vec<_> = answer.under_way.iter().map(ToString::to_string).collect();
    let expected = [
        "volume \"b\": its clients have 30s to leave",
        "volume \"b\": it comes when what is in its way has gone",
    ];
    assert_eq!((under_way, answer.failed), (expected.map(str::to_owned).to_vec(), vec![]));
    of_b.write(0, &[5; 512]);
    drop(of_b);
    eventually("it is back", || {
        rig.control().volume("b").is_ok_and(|volume| volume.state == VolumeStage::Ready)
    });
    assert!(rig.control().volume("n").is_err());
    assert_eq!(rig.client("b").read(0, 512), [5; 512][..]);
    assert_eq!(apply(&rig, FILE), [""; 0]);
    rig.end();
}

#[test]
fn volume_that_goes_behind_its_export_stays_where_the_file_has_it_again() {
    let rig = serve();
    let mut of_part = rig.served_client("part");
    let without = with(&[
        ("[volumes.a]\npool = \"p\"\n", ""),
        ("[exports.part]\nvolume = \"a\"\nsize = \"4K\"\nread_only = true\n", ""),
    ]);
    let answer = reload(&rig, ReloadMode::Apply, &without).expect("a good file");
    let held = "volume \"a\": it goes when its exports have gone";
    assert!(answer.under_way.iter().any(|note| note.to_string() == held), "{answer:?}");
    assert!(refusal(rig.connect(), "a").1.contains("is being removed"));
    reload(&rig, ReloadMode::Apply, FILE).expect("a good file");
    assert_eq!(rig.client("a").export().size, 1 << 20);
    assert_eq!(of_part.read(0, 512), [0; 512][..]);
    drop(of_part);
    eventually("it has come again", || {
        rig.control().export("part").is_ok_and(|export| export.state == VolumeStage::Ready)
    });
    assert_eq!(rig.control().volume("a").expect("it stays").state, VolumeStage::Ready);
    rig.end();
}

#[test]
fn what_would_be_beside_or_on_something_that_waits_for_a_restart_waits_too() {
    let rig = serve();
    let z = "[exports.z]\ndisk = \"d\"\noffset = \"256K\"\nsize = \"4K\"\n";
    let past = "[exports.z]\ndisk = \"d\"\noffset = \"1M\"\n";
    let bigger = "backend = \"memory\"\nsize = \"2M\"";
    let cases = [
        // Its bytes are still those of another.
        (
            with(&[("size = \"512K\"", "size = \"256K\"")]) + z,
            "export \"x\": size 524288 -> 262144",
        ),
        // The disk has not as many.
        (
            with(&[
                ("backend = \"memory\"\nsize = \"1M\"", bigger),
                ("offset = \"512K\"", "offset = \"512K\"\nsize = \"512K\""),
            ]) + past,
            "disk \"d\": size 1048576 -> 2097152",
        ),
        // The volume is of another image.
        (
            with(&[("[volumes.a]\npool = \"p\"", "[volumes.a]\npool = \"p\"\npath = \"c.img\"")])
                + "[exports.z]\nvolume = \"a\"\nread_only = true\n",
            "volume \"a\": path none -> \"c.img\"",
        ),
    ];
    for (file, why) in cases {
        let answer = reload(&rig, ReloadMode::Apply, &file).expect("a good file");
        let waits: Vec<_> = answer.needs_restart.iter().map(ToString::to_string).collect();
        assert_eq!(waits, [why, "exports none -> \"z\""]);
        assert_eq!((answer.changed, answer.failed), (vec![], vec![]));
        assert!(refusal(rig.connect(), "z").1.contains("no export"));
    }
    assert_eq!(rig.client("a").export().size, 1 << 20);
    // A disk that is open for reading takes no writes.
    let only_read =
        with(&[("[volumes.b]\npool = \"p\"", "[volumes.b]\npool = \"p\"\nread_only = true")]);
    assert_eq!(apply(&rig, &with(&[("[volumes.b]\npool = \"p\"\n", "")])).len(), 1);
    assert_eq!(apply(&rig, &only_read), ["volumes none -> \"b\""]);
    let writes = "[exports.z]\nvolume = \"b\"\n";
    let answer =
        reload(&rig, ReloadMode::Apply, &format!("{only_read}{writes}")).expect("a good file");
    assert_eq!(answer.needs_restart.len(), 1, "{answer:?}");
    // Where both come at once, it is open for both.
    assert_eq!(apply(&rig, &with(&[("[volumes.b]\npool = \"p\"\n", "")])).len(), 1);
    assert_eq!(apply(&rig, &format!("{only_read}{writes}")).len(), 2);
    let mut client = rig.client("z");
    client.write(0, &[1; 512]);
    client.call(Command::Flush).expect("it is durable");
    rig.end();
}

#[test]
fn request_that_takes_a_name_first_keeps_it() {
    let rig = serve();
    let of_b = rig.served_client("b");
    let renamed =
        with(&[("[volumes.b]\npool = \"p\"", "[volumes.n]\npool = \"p\"\npath = \"b.img\"")]);
    let answer = reload(&rig, ReloadMode::Apply, &renamed).expect("a good file");
    assert_eq!(answer.under_way.len(), 2);
    let body = json!({"pool": "p", "size": "2M"});
    rig.control().put_volume("n", &body, false).expect("nobody has it yet");
    drop(of_b);
    eventually("the other has gone", || rig.control().volume("b").is_err());
    assert_eq!(rig.client("n").export().size, 2 << 20);
    let refused = reload(&rig, ReloadMode::Apply, &renamed).expect_err("it is the request's");
    assert!(refused.to_string().contains("a volume of that name was made by request"), "{refused}");
    rig.control().remove_volume("n", &RemovalQuestion::default()).expect("by request");
    assert_eq!(apply(&rig, &renamed), ["volumes none -> \"n\""]);
    rig.end();
}

/// The names of the disks and pools.
pub(crate) fn disks(rig: &Rig) -> Vec<String> {
    rig.stat().disks.into_iter().map(|disk| disk.name).collect()
}

#[test]
fn disks_and_pools_come_and_go_with_what_is_on_them() {
    let rig = serve();
    fs::create_dir(rig.dir.path().join("q")).expect("a directory");
    let image = rig.dir.path().join("q/v.img");
    let image = File::options().read(true).write(true).create_new(true).open(image);
    let image = image.expect("an image");
    image.set_len(2 << 20).expect("room");
    let of_d = FILE.find("[disks.d]").expect("a disk")..FILE.find("[exports.part]").expect("one");
    let other = r#"[pools.q]
path = "DIR/q"
scheduler = "wfq"
[volumes.v]
pool = "q"
group = "/gold"
[disks.e]
backend = "memory"
size = "1M"
scheduler = "wfq"
[groups."/gold"]
weight = 300
weight_device.e = 50
[exports.w]
disk = "e"
group = "/gold"
"#;
    let mut file = FILE.replace("\"x\"", "\"w\"");
    file.replace_range(of_d, other);
    let dir = rig.dir.path().to_str().expect("UTF-8");
    let lines = [
        "listen \"DIR/one.sock\": exports [\"x\"] -> [\"w\"]",
        "exports \"x\" -> none",
        "exports \"y\" -> none",
        "disks \"d\" -> none",
        "pools none -> \"q\"",
        "volumes none -> \"v\"",
        "disks none -> \"e\"",
        "exports none -> \"w\"",
    ];
    assert_eq!(apply(&rig, &file), lines.map(|line| line.replace("DIR", dir)));
    assert_eq!(disks(&rig), ["p", "q", "e"]);
    let gold = groups(&rig).into_iter().filter(|(path, _)| path == "/gold");
    assert_eq!(gold.map(|(_, weight)| weight).collect::<Vec<_>>(), [50, 300]);
    let [mut of_v, mut of_w] = ["v", "w"].map(|name| rig.served_client(name));
    of_v.write(4096, &[9; 4096]);
    of_v.call(Command::Flush).expect("it is durable");
    of_w.write(0, &[8; 512]);
    assert_eq!(of_w.read(0, 512), [8; 512][..]);
    let body = json!({"pool": "q", "size": "1M"});
    rig.control().put_volume("vm", &body, false).expect("it can be made");
    assert_eq!(rig.client("vm").export().size, 1 << 20);
    // The pool of what a request has made stays in the file.
    let refused = reload(&rig, ReloadMode::Apply, FILE).expect_err("it may not go");
    assert!(refused.to_string().contains("made by request in pool \"q\""), "{refused}");
    assert_eq!(disks(&rig), ["p", "q", "e"]);
    rig.control().remove_volume("vm", &RemovalQuestion::default()).expect("by request");
    drop((of_v, of_w));
    assert_eq!(apply(&rig, FILE).len(), lines.len());
    assert_eq!(disks(&rig), ["p", "d"]);
    let mut bytes = [0; 4096];
    image.read_exact_at(&mut bytes, 4096).expect("its bytes");
    assert_eq!(bytes, [9; 4096]);
    // All of them, and the server ends as well.
    let none = "[pools.p]\npath = \"DIR\"\ncache = \"page\"\nscheduler = \"wfq\"\n";
    let answer = reload(&rig, ReloadMode::Apply, none).expect("a good file");
    assert_eq!((answer.under_way, answer.failed), (vec![], vec![]));
    assert_eq!(disks(&rig), ["p"]);
    rig.end();
}

#[test]
fn disk_that_takes_the_image_of_another_comes_when_that_has_ended() {
    let rig = serve();
    let other = |name: &str, image: &str| {
        format!(
            "{FILE}[disks.{name}]\npath = \"DIR/{image}\"\n[exports.{name}]\ndisk = \"{name}\"\n"
        )
    };
    assert_eq!(apply(&rig, &other("e", "c.img")), ["disks none -> \"e\"", "exports none -> \"e\""]);
    let mut of_e = rig.served_client("e");
    of_e.write(0, &[6; 512]);
    let answer = reload(&rig, ReloadMode::Apply, &other("f", "c.img")).expect("a good file");
    let under_way: Vec<_> = answer.under_way.iter().map(ToString::to_string).collect();
    let expected = [
        "export \"e\": its clients have 30s to leave",
        "disk \"e\": it ends when nothing is left on it",
        "disk \"f\": it comes when what is in its way has gone",
    ];
    assert_eq!((under_way, answer.failed), (expected.map(str::to_owned).to_vec(), vec![]));
    assert_eq!(of_e.read(0, 512), [6; 512][..]);
    drop(of_e);
    eventually("the other has come", || disks(&rig) == ["p", "d", "f"]);
    eventually("its export has", || rig.control().export("f").is_ok());
    assert_eq!(rig.client("f").read(0, 512), [6; 512][..]);
    // One that cannot be served is named, and nothing of it is there.
    let locked = File::open(rig.dir.path().join("b.img")).expect("an image");
    let both = other("f", "c.img").replace("[volumes.b]\npool = \"p\"\n", "");
    let both = format!("{both}[disks.g]\npath = \"DIR/b.img\"\n[exports.g]\ndisk = \"g\"\n");
    let no_b = other("f", "c.img").replace("[volumes.b]\npool = \"p\"\n", "");
    assert_eq!(apply(&rig, &no_b), ["volumes \"b\" -> none"]);
    flock(&locked, FlockOperation::LockExclusive).expect("nobody has it");
    let answer = reload(&rig, ReloadMode::Apply, &both).expect("a good file");
    let [failed] = &answer.failed[..] else { panic!("{answer:?}") };
    assert!(failed.to_string().starts_with("disk \"g\": "), "{failed}");
    assert!(failed.why.contains("b.img"), "{failed}");
    assert!(refusal(rig.connect(), "g").1.contains("no export"));
    drop(locked);
    assert_eq!(apply(&rig, &both), ["disks none -> \"g\"", "exports none -> \"g\""]);
    assert_eq!(rig.client("g").export().size, 1 << 20);
    rig.end();
}

#[test]
fn disk_that_comes_late_takes_no_name_of_a_request() {
    let rig = serve();
    let other = |name: &str| {
        format!("{FILE}[disks.{name}]\npath = \"DIR/c.img\"\n[exports.{name}]\ndisk = \"{name}\"\n")
    };
    apply(&rig, &other("e"));
    let of_e = rig.served_client("e");
    reload(&rig, ReloadMode::Apply, &other("f")).expect("a good file");
    let body = json!({"pool": "p", "size": "2M"});
    rig.control().put_volume("f", &body, false).expect("nobody has it yet");
    drop(of_e);
    eventually("the other has gone", || disks(&rig) == ["p", "d"]);
    assert_eq!(rig.client("f").export().size, 2 << 20);
    rig.control().remove_volume("f", &RemovalQuestion::default()).expect("by request");
    let lines = apply(&rig, &other("f"));
    // The end of the other may be told here.
    let lines: Vec<_> = lines.iter().filter(|line| !line.contains("\"e\"")).collect();
    assert_eq!(lines, ["disks none -> \"f\"", "exports none -> \"f\""]);
    rig.end();
}

#[test]
fn volume_takes_the_room_of_another_in_a_full_pool() {
    let full = FILE.replacen("path = \"DIR\"", "path = \"DIR\"\nvolumes = 2", 1);
    let rig = Rig::prepared(&full, |dir| {
        for name in ["a.img", "b.img", "c.img"] {
            File::create(dir.join(name)).expect("an image").set_len(1 << 20).expect("room");
        }
    });
    let lines = ["volumes \"b\" -> none", "volumes none -> \"c\""];
    assert_eq!(apply(&rig, &full.replace("[volumes.b]", "[volumes.c]")), lines);
    assert_eq!(rig.client("c").export().size, 1 << 20);
    rig.end();
}
