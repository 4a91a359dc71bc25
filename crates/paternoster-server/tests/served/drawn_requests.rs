//! Requests that are drawn, beside a model of what they lead to: after each one, and after restarts
//! in between, the server shows what the model has, and volumes hold what was written to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use fastrand::Rng;
use paternoster_nbd::Command;
use paternoster_server::ctl::{
    CatalogueError, Control as _, Data, RemovalQuestion, VolumeStage, VolumesQuestion,
};
use serde_json::{Value, json};

use crate::support::Rig;

const MIB: u64 = 1 << 20;
const CAPACITY: u64 = 12 * MIB;
const VOLUMES: usize = 3;
const POOL: &str = r#"
state_dir = "DIR/state"
[pools.fast]
path = "DIR/images"
scheduler = "wfq"
capacity = "12M"
volumes = 3
"#;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const GROUPS: [&str; 3] = ["/g", "/g/x", "/h"];

/// A volume, as it ought to be.
#[derive(Clone, Debug, PartialEq)]
struct Volume {
    size: u64,
    /// Of a volume with a group of its own.
    weight: Option<u32>,
    group: Option<&'static str>,
    durable: bool,
    /// What its first block holds.
    byte: u8,
}

impl Volume {
    fn group(&self, name: &str) -> String {
        self.group.map_or_else(|| format!("/{name}"), str::to_owned)
    }

    fn body(&self) -> Value {
        let mut body = json!({"pool": "fast", "size": self.size, "durable": self.durable});
        match self.group {
            Some(group) => body["group"] = group.into(),
            None => body["weight"] = self.weight.into(),
        }
        body
    }
}

/// All that there ought to be.
#[derive(Debug, Default)]
struct Model {
    volumes: BTreeMap<&'static str, Volume>,
    /// Images that are no volume's, by the names of those that they were.
    orphans: BTreeSet<&'static str>,
}

/// What a request is answered: with a problem of that type, or well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Refused(&'static str),
}

impl Model {
    /// Whether there is room for a volume of that name and size.
    fn room(&self, name: &str, size: u64) -> Answer {
        let others = self.volumes.iter().filter(|(other, _)| **other != name);
        let (count, used) =
            others.fold((0, 0), |(count, used), (_, of)| (count + 1, used + of.size));
        let fits = count < VOLUMES && used + size <= CAPACITY;
        if fits { Answer::Done } else { Answer::Refused("over-capacity") }
    }

    fn make(&mut self, name: &'static str, volume: Volume) -> Answer {
        let answer = match self.room(name, volume.size) {
            Answer::Done if self.orphans.contains(name) => Answer::Refused("bad-image"),
            other => other,
        };
        if answer == Answer::Done {
            self.volumes.insert(name, volume);
        }
        answer
    }

    fn resize(&mut self, name: &str, size: u64) -> Answer {
        let answer = match self.volumes.get(name) {
            None => Answer::Refused("no-such-volume"),
            Some(of) if size > of.size => self.room(name, size),
            Some(_) => Answer::Done,
        };
        if let Some(of) = self.volumes.get_mut(name).filter(|_| answer == Answer::Done) {
            of.size = size;
        }
        answer
    }

    /// A weight belongs to a group of one's own alone.
    fn weigh(&mut self, name: &str, weight: u32) -> Answer {
        match self.volumes.get_mut(name) {
            None => Answer::Refused("no-such-volume"),
            Some(of) if of.group.is_some() => Answer::Refused("bad-value"),
            Some(of) => {
                of.weight = Some(weight);
                Answer::Done
            }
        }
    }

    fn shift(&mut self, name: &str, group: Option<&'static str>) -> Answer {
        let Some(of) = self.volumes.get_mut(name) else { return Answer::Refused("no-such-volume") };
        (of.group, of.weight) = (group, group.is_none().then_some(100));
        Answer::Done
    }

    fn remove(&mut self, name: &'static str, data: Data) -> Answer {
        if self.volumes.remove(name).is_none() {
            return Answer::Refused("no-such-volume");
        }
        if data == Data::Keep {
            self.orphans.insert(name);
        }
        Answer::Done
    }

    /// What goes with the server leaves its image behind.
    fn restart(&mut self) {
        let orphans = &mut self.orphans;
        self.volumes.retain(|name, of| {
            if !of.durable {
                orphans.insert(name);
            }
            of.durable
        });
    }

    /// The weights of all groups that have volumes.
    fn weights(&self) -> BTreeMap<String, u32> {
        let mut weights = BTreeMap::new();
        for (name, of) in &self.volumes {
            let group = of.group(name);
            if group.starts_with("/g/") {
                weights.insert("/g".to_owned(), 100);
            }
            weights.insert(group, of.weight.unwrap_or(100));
        }
        weights
    }
}

fn answer<T>(answered: Result<T, CatalogueError>) -> Answer {
    let Err(error) = answered else { return Answer::Done };
    Answer::Refused(match error {
        CatalogueError::OverCapacity { .. } | CatalogueError::TooMany { .. } => "over-capacity",
        CatalogueError::NoSuchVolume(_) => "no-such-volume",
        CatalogueError::Exists { .. } | CatalogueError::NotNew { .. } => "exists",
        CatalogueError::ImageExists { .. } => "bad-image",
        CatalogueError::Value(_) => "bad-value",
        other => panic!("nobody expects that: {other}"),
    })
}

/// Asks for something that is drawn, and has the model do the same: what was asked, and both
/// answers.
fn ask(rig: &Rig, model: &mut Model, random: &mut Rng) -> (String, [Answer; 2]) {
    let control = rig.control();
    let known = random.choice(model.volumes.keys().copied()).filter(|_| random.u32(..3) > 0);
    let name = known.unwrap_or_else(|| NAMES[random.usize(..NAMES.len())]);
    let size = [1, 2, 4, 8][random.usize(..4)] * MIB;
    let group = random.choice(GROUPS).filter(|_| random.bool());
    match random.u32(..8) {
        0..3 => {
            let weight = group.is_none().then(|| random.u32(1..1000));
            let volume = Volume { size, weight, group, durable: random.bool(), byte: 0 };
            let (body, only_new) = (volume.body(), random.bool());
            let before = model.volumes.get(name);
            let expected = match before {
                Some(_) if only_new => Answer::Refused("exists"),
                Some(before) if before.durable != volume.durable => Answer::Refused("exists"),
                Some(before) => {
                    let byte = before.byte;
                    let room =
                        if size > before.size { model.room(name, size) } else { Answer::Done };
                    if room == Answer::Done {
                        model.volumes.insert(name, Volume { byte, ..volume });
                    }
                    room
                }
                None => model.make(name, volume),
            };
            let answered = answer(control.put_volume(name, &body, only_new));
            (format!("put {name} {body} {only_new}"), [answered, expected])
        }
        3 => {
            let answered = answer(control.patch_volume(name, &json!({"size": size})));
            (format!("resize {name} {size}"), [answered, model.resize(name, size)])
        }
        4 => {
            let weight = random.u32(1..1000);
            let answered = answer(control.patch_volume(name, &json!({"weight": weight})));
            (format!("weigh {name} {weight}"), [answered, model.weigh(name, weight)])
        }
        5 => {
            let patch = json!({"group": group, "weight": null});
            let answered = answer(control.patch_volume(name, &patch));
            (format!("move {name} {patch}"), [answered, model.shift(name, group)])
        }
        6 => {
            let data = if random.bool() { Data::Keep } else { Data::Delete };
            let question = RemovalQuestion { drain: Some("0s".to_owned()), data, wait: None };
            let answered = answer(control.remove_volume(name, &question));
            (format!("remove {name} {data:?}"), [answered, model.remove(name, data)])
        }
        _ => {
            let is_there = model.volumes.contains_key(name);
            let expected = if is_there { Answer::Done } else { Answer::Refused("no-such-volume") };
            (format!("reopen {name}"), [answer(control.reopen_volume(name)), expected])
        }
    }
}

/// What the server shows is what the model has.
fn check(rig: &Rig, model: &Model) {
    let shown = rig.control().volumes(&VolumesQuestion::default()).expect("the pool answers");
    let shown = shown.volumes.into_iter().map(|of| {
        assert_eq!(of.state, VolumeStage::Ready, "{of:?}");
        (of.name, (of.size, of.weight, of.group, of.durable))
    });
    let expected = model
        .volumes
        .iter()
        .map(|(name, of)| ((*name).to_owned(), (of.size, of.weight, of.group(name), of.durable)));
    assert_eq!(shown.collect::<BTreeMap<_, _>>(), expected.collect());
    let stat = rig.stat();
    let groups = stat.disks[0].groups.iter().map(|group| (group.path.clone(), group.weight));
    assert_eq!(groups.collect::<BTreeMap<_, _>>(), model.weights());
    let images = fs::read_dir(rig.dir.path().join("images")).expect("the directory");
    let images = images.map(|image| image.expect("a file").file_name().into_string());
    let images: BTreeSet<_> = images.map(|name| name.expect("UTF-8")).collect();
    let known = model.volumes.keys().chain(&model.orphans);
    assert_eq!(images, known.map(|name| format!("{name}.img")).collect());
}

/// Each volume holds what was written there, and is written again.
fn use_all(rig: &Rig, model: &mut Model, random: &mut Rng) {
    for (name, of) in &mut model.volumes {
        let mut client = rig.served_client(name);
        assert_eq!(client.export().size, of.size, "{name}");
        assert_eq!(client.read(0, 4096), [of.byte; 4096][..], "{name}");
        assert_eq!(client.read(of.size - 512, 512), [0; 512][..], "{name}");
        of.byte = random.u8(..);
        client.write(0, &[of.byte; 4096]);
        client.ask(Command::Disconnect);
    }
    rig.until_empty();
}

fn follow_drawn_requests(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut model = Model::default();
    let mut rig =
        Rig::prepared(POOL, |dir| fs::create_dir(dir.join("images")).expect("a directory"));
    for turn in 0..40 {
        if turn % 10 == 9 {
            use_all(&rig, &mut model, &mut random);
            rig = rig.restarted(POOL);
            model.restart();
            println!("seed {seed}: restart");
        } else {
            let (what, [answered, expected]) = ask(&rig, &mut model, &mut random);
            println!("seed {seed}: {what}"); // Shown when it fails.
            assert_eq!(answered, expected, "{what}");
        }
        check(&rig, &model);
    }
    rig.end();
}

#[test]
fn whatever_is_asked_for_is_served_and_is_there_after_a_restart() {
    (0..12).for_each(follow_drawn_requests);
}
