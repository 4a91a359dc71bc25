//! Volumes, exports and groups of the file, which come and go when it is read again.

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

fn serve() -> Rig {
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

fn reload(rig: &Rig, mode: ReloadMode, toml: &str) -> Result<ReloadAnswer, ReloadError> {
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

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
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
    let [mut of_b, mut of_y] = ["b", "y"].map(|name| rig.client(name));
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
    let failed: Vec<_> = answer.failed.iter().map(ToString::to_string).collect();
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
        "volume \"b\": size 1048576 -> 3145728",
        "export \"y\": description none -> \"scratch\"",
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
    // The group of `own` is the file's from now on.
    let takes = "[groups.\"/own\"]\nweight = 50\n[volumes.c]\npool = \"p\"\ngroup = \"/own\"\n";
    let lines = ["group \"/own\": weight 200 -> 50", "group \"/own\": leaf_weight 200 -> 50"];
    let lines = lines.into_iter().chain(["volumes none -> \"c\""]);
    let answer = reload(&rig, ReloadMode::Apply, &format!("{FILE}{takes}")).expect("a good file");
    let changed: Vec<_> = answer.changed.iter().map(ToString::to_string).collect();
    assert_eq!(changed, lines.collect::<Vec<_>>());
    assert!(groups(&rig).contains(&("/own".to_owned(), 50)));
    let refused = rig.control().patch_volume("own", &json!({"weight": 7})).expect_err("it may not");
    assert!(refused.to_string().contains("was there before"), "{refused}");
    rig.end();
}
