//! Another NBD server as a disk of this one: what a configuration may say of it, and that weights
//! hold in front of it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use paternoster_load::{LocalServer, OneByOne, judges_figures, least_part, report_too_busy};
use paternoster_scene::Tenant;
use paternoster_server::Server;
use paternoster_server::config::{Config, Listen};
use paternoster_server::ctl::{Control as _, ReloadMode};
use paternoster_server::stat::Detail;
use tempfile::TempDir;

use crate::support::{Share, replies};

/// Serves this disk as the export `far` on `far.sock` of a folder.
fn far(dir: &TempDir, disk: &str, export: &str) -> Server {
    let text = format!("[disks.d]\n{disk}\n[exports.far]\ndisk = \"d\"\n{export}\n");
    let mut config = Config::from_toml(&text, Path::new("far.toml")).expect("valid");
    config.listen = vec![Listen::unix(dir.path().join("far.sock"))];
    Server::start(&config).expect("a server")
}

const MEMORY: &str = "backend = \"memory\"\nsize = \"4M\"";

fn dir() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A file whose only disk is that server's export, with more of the disk's keys; it listens on
/// `unix`.
fn text(dir: &TempDir, unix: &str, disk: &str) -> String {
    let folder = dir.path().display();
    format!(
        "unix = \"{unix}\"\nctl = \"none\"\n[disks.d]\nbackend = \"nbd\"\n\
         uri = \"nbd+unix:///far?socket={folder}/far.sock\"\n{disk}\n[exports.e]\ndisk = \"d\"\n"
    )
}

fn refusal(dir: &TempDir, text: &str) -> String {
    let read = Config::from_toml(text, &dir.path().join("c.toml"));
    read.expect_err("a mistake").to_string()
}

#[test]
fn what_a_disk_of_another_server_cannot_be_is_refused() {
    let dir = dir();
    let unreachable = refusal(&dir, &text(&dir, "nbd.sock", ""));
    assert!(unreachable.contains("does not show its export: cannot connect"), "{unreachable}");
    assert!(unreachable.contains("or write the size of the disk"), "{unreachable}");
    let written = text(&dir, "nbd.sock", "size = \"4M\"");
    let config = Config::from_toml(&written, &dir.path().join("c.toml")).expect("it is written");
    assert_eq!(config.exports[0].size, 4 << 20);
    let refused = Server::start(&config).expect_err("nobody is there");
    assert!(format!("{refused:#}").contains("cannot be used: cannot connect"), "{refused:#}");

    let relative = written.replace(&format!("{}/far.sock", dir.path().display()), "far.sock");
    assert!(refusal(&dir, &relative).contains("an absolute path is needed"));

    let own = refusal(&dir, &text(&dir, "far.sock", ""));
    assert!(own.contains("is this server itself, which listens on"), "{own}");

    let server = far(&dir, MEMORY, "read_only = true");
    let read_only = refusal(&dir, &text(&dir, "nbd.sock", ""));
    assert!(read_only.contains("is read-only: exports of this disk need read_only"), "{read_only}");
    let other = refusal(&dir, &text(&dir, "nbd.sock", "size = \"8M\""));
    assert!(other.contains("has 4194304 bytes, not the 8388608 of size"), "{other}");
    for (keys, words) in [
        ("path = \"x\"", "has path, which a nbd disk does not take"),
        ("cache = \"page\"", "has cache, which a nbd disk does not take"),
        ("connections = 0", "connections = 0: 1 to 64"),
        (
            "reconnect = \"soon\"",
            "a duration from 0us to 1440m (a whole number and us, ms, s or m)",
        ),
        ("resends = -1", "resends = -1: 0 to 1000"),
        ("answer_timeout = \"0s\"", "answer_timeout = \"0s\": a duration from 1ms to 1440m"),
        ("after_reconnect = \"hope\"", "\"doubt\" or \"trust\" is allowed"),
    ] {
        let refused = refusal(&dir, &text(&dir, "nbd.sock", keys));
        assert!(refused.contains(words), "{keys}: {refused}");
    }
    let uri = format!("nbd+unix:///far?socket={}/far.sock", dir.path().display());
    let other = format!("[disks.f]\nbackend = \"nbd\"\nuri = {uri:?}\n[exports.g]\ndisk = \"f\"\n");
    let other = format!("{other}read_only = true\n[exports.e]");
    let twice = text(&dir, "nbd.sock", "").replace("[exports.e]", &other);
    let twice = refusal(&dir, &(twice + "read_only = true\n"));
    assert!(twice.contains("is disk \"d\" already"), "{twice}");
    let missing = "[disks.d]\nbackend = \"nbd\"\n[exports.e]\ndisk = \"d\"\n";
    assert!(refusal(&dir, missing).contains("has no uri, which a nbd disk needs"));
    let memory = format!("[disks.d]\n{MEMORY}\nuri = \"nbd://h/\"\n[exports.e]\ndisk = \"d\"\n");
    assert!(refusal(&dir, &memory).contains("has uri, which a memory disk does not take"));
    server.shut_down().expect("a good end");
}

#[test]
fn weights_change_by_a_reload_while_the_far_server_is_away() {
    let dir = dir();
    let server = far(&dir, MEMORY, "");
    let path = dir.path().join("c.toml");
    let written = text(&dir, "nbd.sock", "reconnect = \"1m\"");
    fs::write(&path, &written).expect("a file");
    let front = Server::start(&Config::from_file(&path).expect("valid")).expect("a server");
    let control = front.control().with_file(&path);
    server.shut_down().expect("a good end");
    fs::write(&path, written + "weight = 300\n").expect("a file");
    let answer = control.reload(ReloadMode::Apply).expect("nobody is asked");
    let changed: Vec<_> = answer.changed.iter().map(ToString::to_string).collect();
    let told = ["weight", "leaf_weight"].map(|what| format!("group \"/e\": {what} 100 -> 300"));
    assert_eq!(changed, told);
    assert!(answer.needs_restart.is_empty(), "{answer:?}");
    let disks = control.stat(Detail::Groups).expect("it answers").disks;
    let stat = disks[0].far.as_ref().expect("it is another server");
    assert!(stat.uri.ends_with("far.sock") && stat.lost > 0, "{stat:?}");
    assert!(disks[0].warnings.iter().any(|line| line.contains("has been lost for")), "{disks:?}");
    let begin = Instant::now();
    let ended = front.shut_down().expect_err("what it cannot reach it cannot flush");
    assert!(format!("{ended:#}").contains("the last flush failed"), "{ended:#}");
    assert!(begin.elapsed() < Duration::from_secs(5), "and does not wait for");
}

/// A far disk of 4 × 200 µs, which has no scheduler of its own.
const SLOW: &str = "backend = \"modelled\"\nsize = \"64M\"\nservers = 4\nservice_us = 200\n\
                    scheduler = \"none\"\ndepth = 64";

/// Requests that it serves in a second.
const PEAK: f64 = 20_000.0;

const SPAN: Duration = Duration::from_millis(1200);

#[test]
fn victim_keeps_its_half_whatever_the_connections_of_its_neighbour() {
    let dir = dir();
    let server = far(&dir, SLOW, "");
    let folder = dir.path().display();
    let front = LocalServer::from_toml(&format!(
        "[disks.d]\nbackend = \"nbd\"\nuri = \"nbd+unix:///far?socket={folder}/far.sock\"\n\
         scheduler = \"wfq\"\n[exports.a]\ndisk = \"d\"\nsize = \"32M\"\n[exports.b]\n\
         disk = \"d\"\noffset = \"32M\"\n"
    ))
    .expect("it serves");
    let tenant = |name, connections, depth| Tenant {
        write_percent: 30,
        ..Tenant::reads(100, connections, depth).named(name)
    };
    for (seed, connections) in [(1, 1), (2, 4), (3, 16)] {
        let what = format!("a victim beside {connections} connections, over NBD");
        let tenants = [tenant("a", 1, 32), tenant("b", connections, 32)];
        let mut seen = Vec::new();
        let holds = (0..3).any(|_| {
            let window = front.measure(&tenants, seed, SPAN).expect("all are served");
            let all = replies(&window.tenants);
            let share = Share { entitled: 0.5, got: replies(&window.tenants[..1]) / all };
            let is_busy = all / window.seconds < 0.9 * PEAK;
            seen.push((is_busy, share));
            share.holds(0.03 / 0.5)
        });
        if judges_figures() && !holds && seen.iter().any(|(is_busy, _)| *is_busy) {
            report_too_busy(&what);
        } else {
            assert!(holds, "{what}: {seen:?}");
        }
    }
    front.end().expect("a good end");
    server.shut_down().expect("a good end");
}

/// Two volumes of one server, and one of another that ends: the others get what they got.
#[test]
fn others_of_a_pool_keep_their_rate_where_the_server_of_one_volume_is_gone() {
    let what = "two volumes beside one whose server is gone";
    let mut seen = Vec::new();
    let holds = (0..3).any(|_| {
        let [before, after] = rates_beside_a_server_that_ends();
        seen.push((before, after));
        after >= least_part(0.97) * before
    });
    println!("{what}: {seen:.0?} replies a second");
    if judges_figures() && !holds && seen.iter().any(|(before, _)| *before < 0.9 * FAR_PEAK) {
        report_too_busy(what);
    } else {
        assert!(holds, "{what}: {seen:?} replies a second");
    }
}

/// Requests that the server of two volumes serves in a second.
const FAR_PEAK: f64 = 4_000.0;

/// What two volumes get together while the third has nothing to do, and while its server is gone
/// and more of its requests wait than the device takes at once; in replies a second.
fn rates_beside_a_server_that_ends() -> [f64; 2] {
    let slow = "backend = \"modelled\"\nsize = \"64M\"\nservers = 4\nservice_us = 1000\n\
                scheduler = \"none\"";
    let (there, away) = (dir(), dir());
    let export = "size = \"32M\"\n[exports.other]\ndisk = \"d\"\noffset = \"32M\"";
    let (server, gone) = (far(&there, slow, export), far(&away, MEMORY, ""));
    let uri = |dir: &TempDir, export: &str| {
        format!("nbd+unix:///{export}?socket={}/far.sock", dir.path().display())
    };
    let volumes =
        [("a", uri(&there, "far")), ("b", uri(&there, "other")), ("c", uri(&away, "far"))]
            .map(|(name, uri)| format!("[volumes.{name}]\npool = \"far\"\nuri = \"{uri}\"\n"));
    let pool = "[pools.far]\nbackend = \"nbd\"\ndevice = \"far\"\ndepth = 16\nreconnect = \"1m\"\n";
    let front = LocalServer::from_toml(&format!("{pool}{}", volumes.concat())).expect("it serves");
    let tenants = ["a", "b"].map(|name| Tenant::reads(100, 1, 16).named(name));
    let rate = |seed| {
        let window = front.measure(&tenants, seed, SPAN).expect("all are served");
        replies(&window.tenants) / window.seconds
    };
    let before = rate(1);
    gone.shut_down().expect("a good end");
    let third = [Tenant::reads(100, 1, 32).named("c")];
    let mut waiting = front.connect(&third, 2).expect("its volume is there");
    waiting.start().expect("they are asked for");
    waiting.run_for(Duration::from_millis(50)).expect("its requests are sent");
    let disks = front.control().stat(Detail::Groups).expect("it answers").disks;
    let group = disks[0].groups.iter().find(|group| group.path == "/c").expect("it is served");
    assert_eq!(group.ops["read"].bios, 32, "all have arrived");
    let after = rate(3);
    waiting.run_for(Duration::from_millis(10)).expect("its client is connected");
    assert_eq!(waiting.take_measured()[0].replies, 0, "they wait");
    let mut client = OneByOne::connect(&front.socket(), "a").expect("a client");
    client.flush().expect("its server is there");
    client.end().expect("a good end");
    drop(waiting);
    // It cannot flush the third.
    let _ = front.end();
    server.shut_down().expect("a good end");
    [before, after]
}
