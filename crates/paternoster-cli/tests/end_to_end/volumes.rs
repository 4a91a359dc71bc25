//! Volumes that come and go, with `ctl`, curl and other people's clients.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::statvfs;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::devices::{LoopDevice, Mounted as MountedDevice};
use crate::far::EIO;
use crate::full_disk::{FLUSH, WRITE, ask};
use crate::fuse::Mounted;
use crate::settings::ctl;
use crate::support::{Place, Served, eventually, fio_verify, run, temp_dir};
use crate::wire::Wire;

const POOL: &str = r#"
unix = "nbd.sock"
ctl = "ctl.sock"
[pools.fast]
path = "images"
"#;

/// A server with an empty pool.
fn serve() -> Served {
    let dir = temp_dir();
    fs::create_dir(dir.path().join("images")).expect("a directory");
    serve_pool(dir, POOL)
}

/// A server of that file.
fn serve_pool(dir: TempDir, toml: &str) -> Served {
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let served = Served::start(dir, &["c.toml"], toml.matches("[volumes.").count());
    eventually("it answers", || ctl(&served, &["pool", "list"]).is_ok());
    served
}

/// The value of a line `NAME=VALUE`.
fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// What curl is answered: the status, and the body.
fn curl(served: &Served, method: &str, resource: &str, more: &[&str]) -> (u16, Value) {
    let url = format!("http://x{resource}");
    let mut args =
        vec!["-sS", "--unix-socket", "ctl.sock", "-X", method, &url, "-w", "\n%{http_code}"];
    args.extend(more);
    let said = run("curl", "curl", &args, served.dir.path());
    let (body, status) = said.rsplit_once('\n').expect("a status");
    (status.parse().expect("a number"), serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn volume_by_ctl_is_there_for_nbdinfo_and_qemu_io_and_grows() {
    let served = serve();
    let pools = ctl(&served, &["pool", "list"]).expect("it answers");
    assert!(pools.contains("file     0 of 10000"), "{pools}");
    let create = ["volume", "create", "vm1", "--pool", "fast", "--size", "64M", "weight=200"];
    let made = ctl(&served, &create).expect("it is made");
    assert_eq!(value(&made, "weight"), Some("200"), "{made}");
    assert_eq!(ctl(&served, &create), Ok(made.clone()), "the same again is the same");
    let uri = value(&made, "uri").expect("a URI").to_owned();
    let dir = served.dir.path();
    let size = || run("libnbd-bin", "nbdinfo", &["--size", &uri], dir);
    assert_eq!(size(), "67108864\n");
    let io = |command: &str| run("qemu-utils", "qemu-io", &["-f", "raw", "-c", command, &uri], dir);
    io("write -P 7 60M 1M");
    let resized = ctl(&served, &["volume", "resize", "vm1", "96M"]).expect("it grows");
    assert_eq!(value(&resized, "size"), Some("100663296"), "{resized}");
    assert_eq!(size(), "100663296\n");
    io("read -P 7 60M 1M");
    io("write -P 9 95M 1M");
    let set = ["volume", "set", "vm1", "weight=", "limits.riops=5000", "description=of the shop"];
    let changed = ctl(&served, &set).expect("it changes");
    assert_eq!(value(&changed, "weight"), Some("100"), "{changed}");
    assert_eq!(value(&changed, "limits.riops"), Some("5000"), "{changed}");
    assert!(run("libnbd-bin", "nbdinfo", &[&uri], dir).contains("of the shop"));
    let group = ["group", "create", "/gold", "weight=300", "volumes=5", "limits.wbps=1M"];
    assert_eq!(ctl(&served, &group), Ok(String::new()));
    let groups = ctl(&served, &["group", "list"]).expect("it answers");
    assert!(groups.contains("/gold     300        0   0 of 5"), "{groups}");
    assert_eq!(ctl(&served, &["group", "remove", "/gold"]), Ok(String::new()));
    assert!(ctl(&served, &["group", "remove", "/gold"]).is_err());
    let list = ctl(&served, &["volume", "list"]).expect("it answers");
    assert!(list.contains("vm1     fast  96 MiB  /vm1      100        0  ready"), "{list}");
    // A copy of it, once nobody writes to it.
    ctl(&served, &["volume", "set", "vm1", "read_only=true"]).expect("nobody uses it");
    let copy = ["volume", "create", "vm2", "--pool", "fast", "--template", "vm1", "--copy"];
    let copied = ctl(&served, &copy).expect("it is copied");
    let copied = value(&copied, "uri").expect("a URI");
    run("qemu-utils", "qemu-io", &["-f", "raw", "-c", "read -P 9 95M 1M", copied], dir);
    for (name, more) in [("vm1", &["--delete-data"][..]), ("vm2", &[])] {
        let remove = [&["volume", "remove", name, "--drain", "5s"], more].concat();
        assert_eq!(ctl(&served, &remove), Ok(String::new()));
    }
    let images = fs::read_dir(dir.join("images")).expect("the directory");
    let images: Vec<_> = images.map(|image| image.expect("a file").file_name()).collect();
    assert_eq!(images, ["vm2.img"]);
    let refused = ctl(&served, &["volume", "show", "vm1"]).expect_err("it is gone");
    assert!(refused.contains("there is no volume \"vm1\""), "{refused}");
    served.end();
}

#[test]
fn http_answers_with_resources_problems_and_operations() {
    let served = serve();
    let body = ["-d", r#"{"pool": "fast", "size": "1M", "group": "/gold/a"}"#];
    let (status, made) = curl(&served, "PUT", "/v1/volumes/vm1", &body);
    assert_eq!((status, &made["state"], &made["group"]), (201, &json!("ready"), &json!("/gold/a")));
    assert_eq!(curl(&served, "PUT", "/v1/volumes/vm1", &body).0, 200);
    let only_new = [&body[..], &["-H", "If-None-Match: *"]].concat();
    assert_eq!(curl(&served, "PUT", "/v1/volumes/vm1", &only_new).0, 412);
    for (method, resource, data, status, kind) in [
        ("PUT", "/v1/volumes/a%2Fb", "{}", 422, "/problems/bad-name"),
        (
            "PUT",
            "/v1/volumes/b",
            r#"{"pool": "fsat", "size": "1M"}"#,
            404,
            "/problems/no-such-pool",
        ),
        (
            "PUT",
            "/v1/volumes/b",
            r#"{"pool": "fast", "size": 1, "x": 2}"#,
            422,
            "/problems/bad-value",
        ),
        ("PUT", "/v1/volumes/b", "no JSON", 400, "about:blank"),
        ("PATCH", "/v1/volumes/none", "{}", 404, "/problems/no-such-volume"),
        ("GET", "/v1/volumes?limit=0", "", 422, "/problems/bad-value"),
        ("GET", "/v1/volumes?limits=1", "", 400, "about:blank"),
        ("DELETE", "/v1/volumes/vm1?drain=1", "", 422, "/problems/bad-value"),
        ("DELETE", "/v1/volumes/vm1?wait=1h", "", 400, "about:blank"),
        ("GET", "/v1/operations/999", "", 404, "/problems/no-such-operation"),
        ("GET", "/v1/nothing", "", 404, "about:blank"),
        ("POST", "/v1/volumes/vm1", "", 405, "about:blank"),
    ] {
        let (found, problem) = curl(&served, method, resource, &["-d", data]);
        assert_eq!((found, &problem["type"]), (status, &json!(kind)), "{method} {resource}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["error"], problem["detail"]);
    }
    // A client that stays has the removal take as long as it may.
    let uri = made["uris"][0].as_str().expect("a URI").to_owned();
    let dir = served.dir.path().to_owned();
    let client = thread::spawn(move || {
        run("qemu-utils", "qemu-io", &["-f", "raw", "-c", "sleep 2500", &uri], &dir)
    });
    let clients = || curl(&served, "GET", "/v1/volumes/vm1", &[]).1["clients"].clone();
    eventually("it is connected", || clients() == json!(1));
    let (status, operation) =
        curl(&served, "DELETE", "/v1/volumes/vm1?drain=1m&data=delete&wait=0s", &[]);
    assert_eq!((status, &operation["state"]), (202, &json!("running")), "{operation}");
    let left = operation["until"].as_u64().expect("it says") - seconds_since_1970();
    assert!((50..=60).contains(&left), "{operation}");
    let resource = format!("/v1/operations/{}", operation["id"]);
    assert_eq!(curl(&served, "GET", &resource, &[]).1["clients"], json!(1));
    let state = || curl(&served, "GET", &resource, &[]).1["state"].clone();
    assert_eq!(state(), json!("running"));
    let shown = ctl(&served, &["operation", &operation["id"].to_string()]).expect("it is known");
    assert!(shown.contains("\"vm1\": running; clients: 1, closed in "), "{shown}");
    assert_eq!(curl(&served, "GET", "/v1/volumes/vm1", &[]).1["state"], json!("draining"));
    client.join().expect("it was served to its end");
    eventually("it has gone", || state() == json!("done"));
    assert_eq!(curl(&served, "GET", "/v1/volumes/vm1", &[]).0, 404);
    // What was made by request is not the file's.
    ctl(&served, &["volume", "create", "vm2", "--pool", "fast", "--size", "1M"]).expect("made");
    fs::write(served.path("c.toml"), format!("{POOL}[volumes.vm2]\npool = \"fast\"\n"))
        .expect("a file");
    let refused = ctl(&served, &["reload"]).expect_err("the name is taken");
    assert!(refused.contains("volume \"vm2\": a volume of that name was made by request"));
    served.end();
}

#[test]
fn every_answer_names_the_instance() {
    let dir = temp_dir();
    fs::create_dir(dir.path().join("images")).expect("a directory");
    let recorded = format!("state_dir = \"state\"\nsandbox = \"auto\"\n{POOL}");
    let served = serve_pool(dir, &recorded);
    let header = |served: &Served, method: &str, resource: &str| {
        let url = format!("http://x{resource}");
        let args =
            ["-sS", "--unix-socket", "ctl.sock", "-X", method, &url, "-D", "-", "-o", "/dev/null"];
        let said = run("curl", "curl", &args, served.dir.path());
        let found = said.lines().find_map(|line| line.strip_prefix("paternoster-instance: "));
        found.map(|instance| instance.trim().to_owned())
    };
    let answers = [
        ("GET", "/v1/volumes"),
        ("GET", "/v1/volumes/none"),
        ("GET", "/nowhere"),
        ("DELETE", "/v1/stat"),
        ("GET", "/metrics"),
    ];
    let first = header(&served, "GET", "/v1/stat");
    assert!(first.as_ref().is_some_and(|instance| instance.len() == 36), "{first:?}");
    for (method, resource) in answers {
        assert_eq!(header(&served, method, resource), first, "{method} {resource}");
    }
    let (served, _) = served.hand_over("c.toml");
    assert_eq!(header(&served, "GET", "/v1/stat"), first, "it is handed over");
    served.terminate();
    let again = serve_pool(served.leave(), &recorded);
    assert_eq!(header(&again, "GET", "/v1/stat"), first, "it outlives a restart");
    again.terminate();
    let dir = again.leave();
    fs::remove_file(dir.path().join("state/instance")).expect("it is there");
    fs::create_dir(dir.path().join("state/instance")).expect("a directory");
    let again = serve_pool(dir, &recorded);
    assert_eq!(header(&again, "GET", "/v1/stat"), None, "it cannot be read");
    assert!(again.log().contains("answers will name no instance"), "{}", again.log());
    again.terminate();
    let again = serve_pool(again.leave(), POOL);
    assert_eq!(header(&again, "GET", "/v1/stat"), None, "nothing outlives it");
    again.end();
}

/// A server that was killed, or somebody else, has left them.
#[test]
fn images_of_no_volume_are_named_and_stay() {
    let dir = temp_dir();
    let images = dir.path().join("images");
    fs::create_dir(&images).expect("a directory");
    for name in ["lost.img", "vm1.img", "notes.txt"] {
        fs::write(images.join(name), [7; 4096]).expect("a file");
    }
    let toml = format!("state_dir = \"state\"\n{POOL}[volumes.vm1]\npool = \"fast\"\n");
    let served = serve_pool(dir, &toml);
    assert!(
        served.log().contains("images that are no volume's, 1 in all: \"lost.img\""),
        "{}",
        served.log()
    );
    assert!(served.path("images/lost.img").exists());
    served.end();
}

/// Of its neighbour nothing is known, and nothing else hides it.
#[test]
fn failed_sync_of_a_volume_is_no_other_ones_trouble_until_it_is_reopened() {
    let dir = temp_dir();
    let fails = dir.path().join("fails");
    let flush = format!("flush=[ ! -e {} ] || {{ echo EIO none >&2; exit 1; }}", fails.display());
    let files = [Mounted::evaluated(&[&flush]), Mounted::evaluated(&[])];
    let [bad, good] = files.each_ref().map(|file| file.file().display().to_string());
    let of_file = format!("[volumes.good]\npool = \"fast\"\npath = {good:?}\n");
    let served = serve_pool(dir, &(POOL.replace("path = \"images\"\n", "") + &of_file));
    let create = ["volume", "create", "bad", "--pool", "fast", "--path", &bad];
    ctl(&served, &create).expect("it is made");
    let is_in = |state: &str| {
        let shown = ctl(&served, &["volume", "show", "bad"]).expect("it is there");
        value(&shown, "state") == Some(state)
    };
    let flushed = |name: &str| {
        let mut client = Wire::connect(&served, Place::Unix);
        client.enter_by_name(3, name);
        assert_eq!(ask(&mut client, 0, WRITE, 0, 4096), 0);
        ask(&mut client, 0, FLUSH, 0, 0)
    };
    assert_eq!([flushed("bad"), flushed("good")], [0, 0]);
    fs::write(&fails, "").expect("a file");
    assert_eq!([flushed("bad"), flushed("good")], [EIO, 0]);
    fs::remove_file(&fails).expect("it is there");
    assert_eq!([flushed("bad"), flushed("good")], [EIO, 0], "what is lost is lost");
    assert!(is_in("poisoned"));
    eventually("its clients have gone", || {
        let refused = ctl(&served, &["volume", "set", "bad", "ioprio=idle"]).expect_err("it stays");
        refused.contains("a sync of volume \"bad\" has failed: reopen it first")
    });
    ctl(&served, &["volume", "reopen", "bad"]).expect("it has no clients");
    assert!(is_in("ready"));
    assert_eq!([flushed("bad"), flushed("good")], [0, 0]);
    // The sync that fails is that of the change itself, which is asked for again.
    fs::write(&fails, "").expect("a file");
    let refused =
        || ctl(&served, &["volume", "set", "bad", "ioprio=idle"]).expect_err("nothing is durable");
    eventually("its client has left", || refused().contains("has failed: reopen it first"));
    assert!(refused().contains("reopen it first"));
    assert!(ctl(&served, &["volume", "reopen", "bad"]).is_ok() && is_in("ready"));
    fs::remove_file(&fails).expect("it is there");
    assert_eq!([flushed("bad"), flushed("good")], [0, 0]);
    served.end();
    files.into_iter().for_each(Mounted::unmount);
}

/// On ext4 a template is refused unless it is copied.
#[test]
fn template_on_xfs_shares_its_blocks_with_what_is_made_of_it() {
    let what = "a template on XFS";
    let Some(device) = LoopDevice::new(what, 400 << 20, 512) else { return };
    let images = device.folder.path().join("images");
    let Some(_mounted) = MountedDevice::new(what, "xfs", &device.path, &images) else { return };
    let path = images.display().to_string();
    let served = serve_pool(temp_dir(), &POOL.replace("\"images\"", &format!("{path:?}")));
    let create = |name: &str, more: &[&str]| {
        let create = [&["volume", "create", name, "--pool", "fast"], more].concat();
        let made = ctl(&served, &create).expect("it is made");
        value(&made, "uri").expect("a URI").to_owned()
    };
    let io = |mode: &str, command: &str, uri: &str| {
        let args = ["-f", "raw", mode, "-c", command, uri];
        run("qemu-utils", "qemu-io", &args, served.dir.path())
    };
    let write = |command: &str, uri: &str| io("--cache=writeback", command, uri);
    let read = |command: &str, uri: &str| io("--read-only", command, uri);
    let golden = create("golden", &["--size", "64M"]);
    write("write -P 7 0 48M", &golden);
    let set = ["volume", "set", "golden", "read_only=true"];
    eventually("its client has left", || ctl(&served, &set).is_ok());
    let free = || {
        let seen = statvfs(&images).expect("it is mounted");
        seen.f_bfree * seen.f_frsize
    };
    let before = free();
    let uris: Vec<_> =
        (0..3).map(|vm| create(&format!("vm{vm}"), &["--template", "golden"])).collect();
    let large = create("large", &["--template", "golden", "--size", "96M"]);
    let taken = before.saturating_sub(free());
    assert!(taken < 4 << 20, "{taken} bytes for four of 48 MiB");
    write("write -P 9 1M 64k", &uris[0]);
    for (command, uri) in [
        ("read -P 9 1M 64k", &uris[0]),
        ("read -P 7 1088k 64k", &uris[0]),
        ("read -P 7 0 48M", &uris[1]),
        ("read -P 7 1M 64k", &golden),
        ("read -P 7 47M 1M", &large),
        ("read -P 0 48M 48M", &large),
    ] {
        read(command, uri);
    }
    served.end();
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs()
}

/// Sixteen VMs: four work, and read back all that they have written, while the others come and go.
#[test]
fn volumes_of_others_come_and_go_while_fio_verifies() {
    let served = serve();
    let create = |name: &str| {
        let create = ["volume", "create", name, "--pool", "fast", "--size", "64M"];
        let made = ctl(&served, &create).expect("it is made");
        value(&made, "uri").expect("a URI").to_owned()
    };
    let dir = served.dir.path();
    let verified: Vec<_> = (0..4).map(|vm| create(&format!("work{vm}"))).collect();
    thread::scope(|scope| {
        let work = verified.iter().map(|uri| {
            scope.spawn(move || fio_verify(uri, &["--size=16M", "--bs=16k", "--fsync=64"], dir))
        });
        let work: Vec<_> = work.collect();
        let mut rounds = 0;
        while !work.iter().all(thread::ScopedJoinHandle::is_finished) || rounds == 0 {
            rounds += 1;
            let names: Vec<_> = (0..12).map(|vm| format!("vm{vm}")).collect();
            let uris: Vec<_> = names.iter().map(|name| create(name)).collect();
            for uri in [&uris[0], &uris[11]] {
                let write = ["-f", "raw", "-c", "write -P 5 1M 64k", "-c", "read -P 5 1M 64k", uri];
                run("qemu-utils", "qemu-io", &write, dir);
            }
            for (vm, name) in names.iter().enumerate() {
                let data = if vm % 2 == 0 { "--delete-data" } else { "--drain=1s" };
                ctl(&served, &["volume", "remove", name, data]).expect("it is gone");
                let _ = fs::remove_file(dir.join(format!("images/{name}.img")));
            }
        }
        for one in work {
            one.join().expect("all of it is as it was written");
        }
    });
    let log = served.log();
    assert!(!log.contains("ERROR"), "{log}");
    let list = ctl(&served, &["volume", "list"]).expect("it answers");
    assert_eq!(list.lines().count(), 5, "{list}");
    served.end();
}

/// Says which of the documents of `documents.json`, each behind the name of its schema, are not as
/// the document of `openapi.json` says; and that one itself, by how it refers to its parts.
const VALIDATE: &str = "
import json, jsonschema
openapi = json.load(open('openapi.json'))
for of, schema in openapi['components']['schemas'].items():
    jsonschema.Draft202012Validator.check_schema(schema)
resolver = jsonschema.RefResolver('', openapi)
def references(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == '$ref':
                resolver.resolve(inner)
            references(inner)
    if isinstance(value, list):
        for inner in value:
            references(inner)
references(openapi)
for name, document in json.load(open('documents.json')):
    schema = openapi['components']['schemas'][name]
    errors = jsonschema.Draft202012Validator(schema, resolver=resolver).iter_errors(document)
    print(name, [error.message for error in errors])
";

/// What is asked and answered of an export of the volume vm1, each behind the name of its schema.
fn documents_of_exports(served: &Served, limits: &Value) -> Vec<Value> {
    let new_export = json!({
        "volume": "vm1", "offset": 4096, "size": "1M", "read_only": true, "weight": 20,
        "limits": limits, "ioprio": "idle", "description": "x", "durable": false,
    });
    let export = "/v1/exports/backup";
    let (status, made_export) = curl(served, "PUT", export, &["-d", &new_export.to_string()]);
    assert_eq!(status, 201, "{made_export}");
    let export_patch = json!({"weight": 10, "description": null});
    let (_, changed_export) = curl(served, "PATCH", export, &["-d", &export_patch.to_string()]);
    let (_, exports) = curl(served, "GET", "/v1/exports?volume=vm1&limit=1", &[]);
    let (status, problem_of_export) = curl(served, "DELETE", &format!("{export}?data=delete"), &[]);
    assert_eq!(status, 400, "{problem_of_export}");
    let (status, _) = curl(served, "DELETE", &format!("{export}?drain=0s"), &[]);
    assert_eq!(status, 200);
    let (_, export_operation) = curl(served, "GET", "/v1/operations/5", &[]);
    assert_eq!(export_operation["export"], "backup", "{export_operation}");
    vec![
        json!(["NewExport", new_export]),
        json!(["ExportPatch", export_patch]),
        json!(["Export", made_export]),
        json!(["Export", changed_export]),
        json!(["Exports", exports]),
        json!(["Operation", export_operation]),
    ]
}

#[test]
fn openapi_says_what_is_asked_and_answered() {
    let served = serve();
    let (status, openapi) = curl(&served, "GET", "/v1/openapi.json", &[]);
    assert_eq!((status, &openapi["openapi"]), (200, &json!("3.1.0")));
    let limits = json!({"riops": 1000, "wbps": "1M", "latency_target": "2ms"});
    let new = json!({
        "pool": "fast", "size": "1M", "weight": 200, "source": {"new": "sparse"}, "copy": false,
        "durable": false, "limits": limits, "ioprio": "idle", "read_only": false,
        "description": "x",
    });
    let patch = json!({"size": "2M", "weight": null, "limits": {"riops": "max"}});
    let name = "/v1/volumes/vm1";
    let (_, made) = curl(&served, "PUT", name, &["-d", &new.to_string()]);
    let (status, changed) = curl(&served, "PATCH", name, &["-d", &patch.to_string()]);
    assert_eq!(status, 200, "{changed}");
    let (_, problem) = curl(&served, "PUT", name, &["-d", r#"{"pool": "fsat"}"#]);
    let (_, volumes) = curl(&served, "GET", "/v1/volumes?limit=1", &[]);
    let (_, pools) = curl(&served, "GET", "/v1/pools", &[]);
    let (_, pool) = curl(&served, "GET", "/v1/pools/fast", &[]);
    let (_, operation) = curl(&served, "GET", "/v1/operations/1", &[]);
    let exports = documents_of_exports(&served, &limits);
    let (_, removed) = curl(&served, "DELETE", &format!("{name}?data=delete"), &[]);
    let new_group = json!({"weight": 300, "limits": limits, "memory": "32M", "capacity": "1G"});
    let group = "/v1/groups/%2Fgold";
    let (status, made_group) = curl(&served, "PUT", group, &["-d", &new_group.to_string()]);
    assert_eq!((status, &made_group["weight"]), (201, &json!(300)), "{made_group}");
    let (_, groups) = curl(&served, "GET", "/v1/groups", &[]);
    let mut documents = json!([
        ["NewVolume", new],
        ["VolumePatch", patch],
        ["Volume", made],
        ["Volume", changed],
        ["Problem", problem],
        ["Volumes", volumes],
        ["Pools", pools],
        ["Pool", pool],
        ["Operation", operation],
        ["Removed", removed],
        ["NewGroup", new_group],
        ["GroupPatch", {"weight": null, "limits": {"riops": "max"}}],
        ["Group", made_group],
        ["Groups", groups],
        // Wrong ones, for a validator that allows all to be seen.
        ["NewVolume", {"size": "1M"}],
        ["NewVolume", {"pool": "fast", "limits": {"riopz": 1}}],
        ["Volume", {}],
        ["NewExport", {"volume": "vm1", "source": {"new": "sparse"}}],
    ]);
    documents.as_array_mut().expect("a list").splice(..0, exports);
    fs::write(served.path("openapi.json"), openapi.to_string()).expect("a file");
    fs::write(served.path("documents.json"), documents.to_string()).expect("a file");
    let validate = ["-W", "ignore", "-c", VALIDATE];
    let said = run("python3-jsonschema", "python3", &validate, served.dir.path());
    let said: Vec<_> = said.lines().collect();
    assert_eq!(said.len(), 24, "{said:#?}");
    assert!(said[..20].iter().all(|line| line.ends_with(" []")), "{said:#?}");
    assert!(said[20..].iter().all(|line| !line.ends_with(" []")), "{said:#?}");
    // Each method that it names is taken, and no other.
    for (template, item) in openapi["paths"].as_object().expect("an object") {
        let resource =
            template.replace("{name}", "none").replace("{id}", "7").replace("{path}", "%2Fno");
        for method in ["GET", "PUT", "PATCH", "DELETE", "POST"] {
            let is_told = item.get(method.to_lowercase()).is_some();
            if is_told && resource == "/v1/trace" {
                continue; // It goes on.
            }
            let (status, _) = curl(&served, method, &resource, &["-d", "{}"]);
            assert_eq!(status != 405, is_told, "{method} {resource}: {status}");
        }
    }
    served.end();
}
