//! Files that are drawn, read again while clients come and go: the last of them is followed.

use std::path::Path;
use std::thread;

use paternoster_nbd::Command;
use paternoster_server::config::Config;
use paternoster_server::ctl::{Control as _, ReloadMode, VolumeStage};

use crate::support::whole;
use crate::turnover::{disks, eventually, reload, serve};

/// One of the files of the test below, as bits say: which disks, volumes and exports there are, on
/// which images and bytes.
fn drawn(bits: u32) -> String {
    let bit = |at: u32| bits >> at & 1 == 1;
    // Three of four times.
    let mostly = |at: u32| bit(at) || bit(at + 6);
    let mut file = "[pools.p]\npath = \"DIR\"\ncache = \"page\"\n".to_owned();
    let mut add = |text: String| file.push_str(&text);
    // Two volumes may change their images, and one of them its name.
    let images = if bit(0) { ["a.img", "b.img"] } else { ["b.img", "a.img"] };
    let names = if bit(1) { ["one", "two"] } else { ["one", "three"] };
    for (at, (name, image)) in (2..).zip(names.into_iter().zip(images)) {
        if mostly(at) {
            add(format!("[volumes.{name}]\npool = \"p\"\npath = \"{image}\"\n"));
        }
    }
    if mostly(4) {
        add("[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n".to_owned());
        add("[exports.x]\ndisk = \"d\"\nsize = \"512K\"\n".to_owned());
        // By one name or another, on bytes that both have.
        let (name, offset) = if bit(5) { ("y", "512K") } else { ("z", "640K") };
        add(format!("[exports.{name}]\ndisk = \"d\"\noffset = \"{offset}\"\n"));
    }
    if mostly(6) {
        let name = if bit(7) { "e" } else { "f" };
        add(format!("[disks.{name}]\npath = \"DIR/c.img\"\n[exports.{name}]\ndisk = \"{name}\"\n"));
    }
    file
}

/// Clients enter what there is, write, read back and leave, while files are drawn; each writes what
/// nobody else does, so that two on the same bytes would be found.
#[test]
fn whatever_files_are_read_the_last_is_followed() {
    let seeds = 1..9_u32;
    let runs = seeds.map(|seed| thread::spawn(move || follow_drawn_files(seed)));
    for run in runs.collect::<Vec<_>>() {
        run.join().expect("it holds");
    }
}

fn follow_drawn_files(seed: u32) {
    let rig = serve();
    let mut random = seed;
    let mut draw = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 16
    };
    let mut clients = Vec::new();
    for _ in 0..6 {
        let file = drawn(draw());
        reload(&rig, ReloadMode::Apply, &file).expect("a good file");
        let offered = ["one", "two", "three", "x", "y", "z", "e", "f"];
        for name in offered {
            let export = rig.control().export(name).map(|of| (of.state, of.clients));
            let volume = rig.control().volume(name).map(|of| (of.state, of.clients));
            let is_free = matches!(export.or(volume), Ok((VolumeStage::Ready, 0)));
            if is_free && draw() % 4 > 0 {
                clients.push((rig.served_client(name), draw().to_le_bytes()[0]));
            }
        }
        for (client, mark) in &mut clients {
            let end = client.export().size;
            client.write(end - 4096, &[*mark; 4096]);
        }
        for (client, mark) in &mut clients {
            let end = client.export().size;
            let read = client.read(end - 4096, 4096);
            assert!(read.iter().all(|byte| byte == mark), "{mark}, not {}", read[0]);
        }
        clients.retain(|_| draw() % 3 > 0);
    }
    drop(clients);
    let last = drawn(draw() | 0b101_1100);
    let mut waits = Vec::new();
    eventually("nothing is under way", || {
        let answer = reload(&rig, ReloadMode::Apply, &last).expect("a good file");
        waits = answer.needs_restart.iter().map(ToString::to_string).collect();
        answer.changed.is_empty() && answer.under_way.is_empty() && answer.failed.is_empty()
    });
    let config = Config::from_toml(&whole(rig.dir.path(), &last), Path::new("c.toml"));
    for export in config.expect("a good file").exports {
        // On an image that another has until a restart.
        if waits.contains(&format!("volumes none -> {:?}", export.name)) {
            continue;
        }
        let mut client = rig.client(&export.name);
        assert_eq!(client.export().size, export.size, "{}", export.name);
        client.write(export.size - 512, &[7; 512]);
        client.call(Command::Flush).expect("it is durable");
    }
    let mut served = disks(&rig);
    served.sort_unstable();
    let mut expected: Vec<_> = last
        .lines()
        .filter_map(|line| {
            let name = line.strip_prefix("[disks.").or_else(|| line.strip_prefix("[pools."))?;
            Some(name.trim_end_matches(']').to_owned())
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(served, expected);
    rig.end();
}
