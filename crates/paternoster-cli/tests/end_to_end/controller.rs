//! Two servers, and a controller that compares what they have with what is wanted. It is killed at
//! random, as they are; both come to what it wants.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::settings::ctl;
use crate::support::{Served, eventually, temp_dir};

const CONTROLLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/controller.py");
const FILE: &str = r#"
unix = "nbd.sock"
ctl = "ctl.sock"
state_dir = "state"
[pools.fast]
path = "images"
[volumes.own]
pool = "fast"
"#;
/// How often the controller is killed. Every fifth time a server is killed before it.
const KILLS: u64 = 25;
/// When a server is installed again.
const INSTALLED_AGAIN: u64 = 12;

/// The bodies of volumes by name; null for one that is to be removed.
type Volumes = BTreeMap<String, Value>;

/// Lays out a pool that has nothing but what the server's file declares.
fn lay_out(dir: &TempDir) {
    fs::create_dir(dir.path().join("images")).expect("a directory");
    let image = File::create(dir.path().join("images/own.img")).expect("an image");
    image.set_len(1 << 20).expect("room");
}

fn serve(dir: TempDir) -> Served {
    fs::write(dir.path().join("c.toml"), FILE).expect("a file");
    let served = Served::start(dir, &["c.toml"], 1);
    eventually("it answers", || ctl(&served, &["pool", "list"]).is_ok());
    served
}

/// What is ready beside what its file declares, as that would be wanted.
fn volumes(served: &Served) -> Volumes {
    let shown = ctl(served, &["volume", "list", "--json"]).expect("it answers");
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    let all = all["volumes"].as_array().expect("a list").iter();
    let made = all.filter(|volume| volume["of_file"] == false && volume["state"] == "ready");
    let name = |volume: &Value| volume["name"].as_str().expect("a name").to_owned();
    let body = |volume: &Value| {
        let [pool, size, weight] = ["pool", "size", "weight"].map(|key| &volume[key]);
        json!({"pool": pool, "size": size, "weight": weight})
    };
    made.map(|volume| (name(volume), body(volume))).collect()
}

/// The images of its pool, with their bytes, but for what a kill has left half made.
fn images(served: &Served) -> BTreeMap<String, u64> {
    let images = fs::read_dir(served.path("images")).expect("the pool");
    let whole = images.filter_map(|image| {
        let image = image.expect("an image");
        let name = image.file_name().display().to_string();
        // One that is being made or removed may be gone by now.
        let bytes = (!name.starts_with(".new-")).then(|| image.metadata().ok()).flatten()?.len();
        Some((name, bytes))
    });
    whole.collect()
}

/// Whether it has what is wanted, and nothing else.
fn has(served: &Served, wanted: &Volumes) -> bool {
    let own = ("own.img".to_owned(), 1 << 20);
    let size = |volume: &Value| volume["size"].as_u64().expect("a number");
    let wanted: Volumes = wanted.clone().into_iter().filter(|(_, body)| !body.is_null()).collect();
    let expected = wanted.iter().map(|(name, volume)| (format!("{name}.img"), size(volume)));
    volumes(served) == wanted && images(served) == expected.chain([own]).collect()
}

/// Twenty volumes, about half of them to be removed; the others are as heavy as it comes, and grow
/// from time to time.
fn draw(random: &mut fastrand::Rng, round: u64) -> Volumes {
    let mut draw = || {
        let (size, weight) = ((1 + round / 8) << 20, 100 * random.u64(1..5));
        let body = json!({"pool": "fast", "size": size, "weight": weight});
        if random.bool() { body } else { Value::Null }
    };
    (0..20).map(|number| (format!("vm{number}"), draw())).collect()
}

/// What was written to volumes, by their names.
#[derive(Default)]
struct Written(BTreeMap<String, u64>);

impl Written {
    /// Looks that each wanted volume still has what was written to it, and writes to those that are
    /// new.
    fn check(&mut self, served: &Served, wanted: &Volumes, random: &mut fastrand::Rng) {
        self.0.retain(|name, _| !wanted[name].is_null());
        for name in volumes(served).into_keys().filter(|name| !wanted[name].is_null()) {
            let image = served.path(&format!("images/{name}.img"));
            let image = File::options().read(true).write(true).open(image).expect("it is ready");
            let mut bytes = [0; 8];
            if let Some(written) = self.0.get(&name) {
                image.read_exact_at(&mut bytes, 4096).expect("it is as large as it was");
                assert_eq!(u64::from_le_bytes(bytes), *written, "{name}");
            } else {
                let new = random.u64(1..);
                image.write_all_at(&new.to_le_bytes(), 4096).expect("room");
                self.0.insert(name, new);
            }
        }
    }
}

/// What is wanted of the servers, where a controller reads it.
struct Wanted {
    dir: TempDir,
    of: Vec<Volumes>,
}

impl Wanted {
    fn write(&self, servers: &[Served]) {
        let sockets = servers.iter().map(|served| served.path("ctl.sock").display().to_string());
        let all: BTreeMap<_, _> = sockets.zip(&self.of).collect();
        let text = serde_json::to_vec(&all).expect("text keys");
        fs::write(self.dir.path().join("new"), text).expect("a file");
        let path = self.dir.path();
        fs::rename(path.join("new"), path.join("wanted.json")).expect("it is there");
    }

    fn controller(&self) -> Child {
        let log = File::options().append(true).open(self.dir.path().join("log"));
        let mut command = Command::new("python3");
        command.arg(CONTROLLER).arg("wanted.json").current_dir(self.dir.path());
        let log = log.expect("a log");
        command.stderr(log.try_clone().expect("a descriptor")).stdout(log).stdin(Stdio::null());
        command.spawn().expect("install the Debian package python3")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).expect("a log")
    }
}

fn instance(served: &Served) -> String {
    fs::read_to_string(served.path("state/instance")).expect("it was made at the first start")
}

#[test]
fn controller_that_is_killed_brings_two_servers_to_what_it_wants() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let new_server = || {
        let dir = temp_dir();
        lay_out(&dir);
        serve(dir)
    };
    let mut servers = vec![new_server(), new_server()];
    let first = instance(&servers[0]);
    let mut wanted = Wanted { dir: temp_dir(), of: Vec::new() };
    let mut written = [Written::default(), Written::default()];
    File::create(wanted.dir.path().join("log")).expect("a log");
    let mut cut_short = 0;
    for kill in 1..=KILLS {
        wanted.of = (0..2).map(|_| draw(&mut random, kill)).collect();
        wanted.write(&servers);
        let begun = wanted.log().len();
        let mut controller = wanted.controller();
        let changes = random.usize(0..12);
        eventually("it has done so much, or all", || {
            let said = wanted.log().split_off(begun);
            said.lines().count() >= changes || said.matches("to mend").count() == 2
        });
        thread::sleep(Duration::from_micros(random.u64(0..3000)));
        if kill % 5 == 0 {
            let one = random.usize(0..2);
            let served = servers.remove(one);
            served.signal(Signal::KILL);
            let dir = served.leave();
            servers.insert(one, serve(dir));
        }
        if kill == INSTALLED_AGAIN {
            let served = servers.remove(1);
            served.signal(Signal::KILL);
            let dir = served.leave();
            for what in ["state", "images"] {
                fs::remove_dir_all(dir.path().join(what)).expect("it is there");
            }
            lay_out(&dir);
            servers.push(serve(dir));
            written[1] = Written::default();
        }
        controller.kill().expect("it runs until it is killed");
        controller.wait().expect("a child");
        for ((served, wanted), written) in servers.iter().zip(&wanted.of).zip(&mut written) {
            written.check(served, wanted, &mut random);
        }
        let is_done = servers.iter().zip(&wanted.of).all(|(served, wanted)| has(served, wanted));
        cut_short += u64::from(!is_done);
    }
    assert!(cut_short > KILLS / 4, "{cut_short} of {KILLS} had something left to do");
    let mut controller = wanted.controller();
    for ((served, wanted), written) in servers.iter().zip(&wanted.of).zip(&mut written) {
        eventually("it has what is wanted", || has(served, wanted));
        written.check(served, wanted, &mut random);
    }
    controller.kill().expect("it runs until it is killed");
    controller.wait().expect("a child");
    assert!(!wanted.log().contains("Traceback"), "{}", wanted.log());
    let again = wanted.log().matches("has lost its records").count();
    // More than once, where it was killed before it had noted that it had said so.
    assert!(again >= 1, "{}", wanted.log());
    assert_eq!(instance(&servers[0]), first, "kills change nothing");
    for mut served in servers {
        served.terminate();
        let (status, _) = served.wait(Duration::from_secs(10));
        assert!(status.success(), "{status}: {}", served.log());
    }
}
