//! What of a file would need a restart: all in which it differs from the configuration with which
//! the server was started, but for what may change while clients are served.
//!
//! Disks, pools, groups, volumes and exports are known by their names, wherever they stand in the
//! file. All of them come and go, with no restart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::keys::kinds::Kind as _;
use super::keys::{EXPORT, ExportKeys, GroupKeys, Keys, Mode, VOLUME};
use super::{Config, DiskConfig, ExportConfig, Listen, ListenAddress};
use crate::ctl::Change;

/// The disks, groups, volumes and exports of a file that are served and stay, with what is set of
/// each.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Disks and pools, without their volumes.
    pub(crate) disks: Vec<DiskConfig>,
    /// By their paths.
    pub(crate) groups: Vec<(String, GroupKeys)>,
    /// What each is, and its name.
    pub(crate) exports: Vec<(&'static str, String, ExportKeys)>,
}

/// Returns what differs between a file and the configuration with which the server was started, and
/// what stays of it, in the order of what is served.
pub(crate) fn needs_restart(served: &Config, stays: &Tables, file: &Config) -> Vec<Change> {
    let mut found = Difference::default();
    let addresses = |config: &Config| -> Vec<_> {
        config.listen.iter().map(|listen| listen.address.to_string()).collect()
    };
    found.names("listen", &addresses(served), &addresses(file));
    for (number, new) in sockets_in(served, file) {
        let old = &served.listen[number];
        let keys = |listen| [mode_of(listen), ("tls", listen.tls.name().into())];
        found.compare(&place_of(new), keys(old), keys(new));
    }
    found.compare("", whole(served), whole(file));

    for disk in &stays.disks {
        let (what, name) = (disk.what(), &disk.name);
        match file.disks.iter().find(|new| (new.what(), &new.name) == (what, name)) {
            Some(new) => {
                found.compare(&format!("{what} {name:?}"), disk.at_start(), new.at_start());
            }
            None => found.names(&format!("{what}s"), std::slice::from_ref(name), &[]),
        }
    }
    let in_file: BTreeMap<_, _> =
        file.groups.iter().map(|group| (&group.path, &group.keys)).collect();
    for (path, keys) in &stays.groups {
        match in_file.get(path) {
            Some(new) => {
                found.compare(&format!("group {path:?}"), values(keys), values(*new));
            }
            None => found.names("groups", std::slice::from_ref(path), &[]),
        }
    }
    for what in [VOLUME, EXPORT] {
        found.exports(what, stays, file);
    }
    found.0
}

/// A key and its value.
type OfKey = (&'static str, Value);

/// The keys of a volume or an export that need a restart, with their values before and now.
fn compared<'k>(
    what: &str,
    old: &'k ExportKeys,
    new: &'k ExportKeys,
) -> impl Iterator<Item = (OfKey, OfKey)> + use<'k> {
    // An image that has grown is the size of its volume at once. A server says of its export what
    // it was when it was opened.
    let has_grown = what == VOLUME && new.uri.is_none() && new.size >= old.size;
    // What an export alone has follows from that.
    let turns = old.export != new.export;
    let keys = values(old).zip(values(new));
    keys.filter(move |((key, _), _)| !(has_grown && *key == "size" || turns && *key != "export"))
}

/// Returns whether a volume or an export is otherwise, until a restart, than a file says.
pub(crate) fn waits_for_restart(what: &str, served: &ExportKeys, file: &ExportKeys) -> bool {
    compared(what, served, file).any(|(old, new)| old != new)
}

/// The exports, or the volumes.
fn exports<'c>(config: &'c Config, what: &'static str) -> impl Iterator<Item = &'c ExportConfig> {
    config.exports.iter().filter(move |export| export.what() == what)
}

/// The sockets of a file that are served, with their numbers.
pub(crate) fn sockets_in<'f>(served: &Config, file: &'f Config) -> Vec<(usize, &'f Listen)> {
    // Of those at any free port, which have one address, each has its place among them.
    let mut left: Vec<&Listen> = file.listen.iter().collect();
    let of_file = |(number, old): (usize, &Listen)| {
        let address = old.address.to_string();
        let at = left.iter().position(|new| new.address.to_string() == address)?;
        Some((number, left.remove(at)))
    };
    served.listen.iter().enumerate().filter_map(of_file).collect()
}

/// What lines of changes call a socket.
pub(crate) fn place_of(listen: &Listen) -> String {
    format!("listen {:?}", listen.address.to_string())
}

fn mode_of(listen: &Listen) -> (&'static str, Value) {
    let mode = match listen.address {
        ListenAddress::Unix { mode, .. } => Mode.show(&mode),
        ListenAddress::Tcp(_) | ListenAddress::Passed { .. } => Value::Null,
    };
    ("unix_mode", mode)
}

/// The keys that are told otherwise: with the sockets, and with each group.
const TOLD_ELSEWHERE: [&str; 5] = ["unix", "unix_mode", "tcp", "memory", "connections"];

/// The keys of an object that need a restart, and their values; null is none.
fn values<O: Keys>(object: &O) -> impl Iterator<Item = (&'static str, Value)> {
    let keys = O::KEYS.iter().filter(|key| !key.live);
    keys.map(|key| (key.name, (key.show)(object)))
}

fn whole(config: &Config) -> impl Iterator<Item = (&'static str, Value)> {
    let ctl = config.ctl.as_ref().map_or("none".to_owned(), ListenAddress::to_string);
    let keys = values(&config.keys).filter(|(key, _)| !TOLD_ELSEWHERE.contains(key));
    keys.map(move |(key, value)| (key, if key == "ctl" { ctl.clone().into() } else { value }))
}

/// What was found to differ.
#[derive(Default)]
struct Difference(Vec<Change>);

impl Difference {
    /// Compares volumes or exports that stay with those of the file.
    fn exports(&mut self, what: &'static str, stays: &Tables, file: &Config) {
        let in_file: BTreeMap<_, _> = exports(file, what).map(|new| (&new.name, new)).collect();
        for (_, name, old) in stays.exports.iter().filter(|(kind, ..)| *kind == what) {
            let Some(new) = in_file.get(name) else { continue };
            let (old, new): (Vec<_>, Vec<_>) = compared(what, old, &new.keys).unzip();
            self.compare(&format!("{what} {name:?}"), old, new);
        }
    }

    /// Compares values of the same keys.
    fn compare(
        &mut self,
        place: &str,
        served: impl IntoIterator<Item = (&'static str, Value)>,
        file: impl IntoIterator<Item = (&'static str, Value)>,
    ) {
        for ((what, from), (_, to)) in served.into_iter().zip(file) {
            if from != to {
                let (place, what) = (place.to_owned(), what.to_owned());
                self.0.push(Change { place, what, from, to });
            }
        }
    }

    /// Reports names that only one of the two has.
    fn names(&mut self, key: &str, served: &[String], file: &[String]) {
        let change = |from, to| Change { place: String::new(), what: key.to_owned(), from, to };
        let of = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        let (in_served, in_file) = (of(served), of(file));
        let gone = served.iter().filter(|name| !in_file.contains(*name));
        let gone = gone.map(|name| change(name.clone().into(), Value::Null));
        let new = file.iter().filter(|name| !in_served.contains(*name));
        let new = new.map(|name| change(Value::Null, name.clone().into()));
        self.0.extend(gone.chain(new));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::GroupConfig;
    use crate::config::keys::{DiskKeys, ListenKeys, ServerKeys, TlsKeys};

    const SERVED: &str = "
unix = \"nbd.sock\"
ctl = \"c.sock\"
threads = 2
[disks.d]
backend = \"modelled\"
size = \"1M\"
servers = 4
service_us = 200
[disks.e]
backend = \"memory\"
size = \"1M\"
[groups.\"/g\"]
weight = 100
[exports.a]
disk = \"d\"
size = \"64K\"
group = \"/g\"
[exports.b]
disk = \"d\"
offset = \"64K\"
size = \"64K\"
";

    fn config(text: &str) -> Config {
        Config::from_toml(text, Path::new("c.toml")).expect("it is valid")
    }

    /// What differs from a file by which a server was started.
    fn difference(served: &Config, file: &Config) -> Vec<Change> {
        let is_in = |old: &&ExportConfig| {
            file.exports.iter().any(|new| (new.what(), &new.name) == (old.what(), &old.name))
        };
        let exports: Vec<_> = served.exports.iter().filter(is_in).collect();
        let is_used = |group: &&GroupConfig| {
            let of = |export: &&ExportConfig| served.lineage(export.group);
            exports.iter().flat_map(of).any(|index| served.groups[index].path == group.path)
        };
        let groups = served.groups.iter().filter(is_used);
        let stays = Tables {
            disks: served.disks.clone(),
            groups: groups.map(|group| (group.path.clone(), group.keys.clone())).collect(),
            exports: exports
                .iter()
                .map(|old| (old.what(), old.name.clone(), old.keys.clone()))
                .collect(),
        };
        needs_restart(served, &stays, file)
    }

    /// What differs when each of these lines stands in the place of another.
    fn lines(replaced: &[(&str, &str)]) -> Vec<String> {
        let mut text = SERVED.to_owned();
        for (line, new) in replaced {
            assert!(text.contains(line), "{line}");
            text = text.replacen(line, new, 1);
        }
        let found = difference(&config(SERVED), &config(&text));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_key_that_needs_a_restart_is_named_with_old_and_new() {
        let cases = [
            (
                "[disks.d]",
                "unix_mode = \"0660\"\n[disks.d]",
                "listen \"nbd.sock\": unix_mode \"0600\" -> \"0660\"",
            ),
            ("[disks.d]", "tcp = \"[::1]:9\"\n[disks.d]", "listen none -> \"[::1]:9\""),
            (
                "[disks.d]",
                "[[listen]]\nunix = \"y\"\nexports = [\"b\"]\n[disks.d]",
                "listen none -> \"y\"",
            ),
            (
                "[disks.d]",
                "metrics = \"127.0.0.1:9870\"\n[disks.d]",
                "metrics none -> \"127.0.0.1:9870\"",
            ),
            ("ctl = \"c.sock\"", "ctl = \"none\"", "ctl \"c.sock\" -> \"none\""),
            (
                "[disks.d]",
                "payload_timeout = \"1m\"\n[disks.d]",
                "payload_timeout \"30s\" -> \"1m\"",
            ),
            ("threads = 2", "threads = 3", "threads 2 -> 3"),
            ("[disks.d]", "engine = \"threads\"\n[disks.d]", "engine \"auto\" -> \"threads\""),
            ("[disks.d]", "at_stop = \"refuse\"\n[disks.d]", "at_stop \"close\" -> \"refuse\""),
            ("servers = 4", "servers = 4\nplug = \"off\"", "disk \"d\": plug \"on\" -> \"off\""),
            (
                "servers = 4",
                "servers = 4\ncpu_dma_latency = \"20us\"",
                "disk \"d\": cpu_dma_latency none -> \"20us\"",
            ),
            ("servers = 4", "servers = 5", "disk \"d\": servers 4 -> 5"),
            ("service_us = 200", "service_us = 9", "disk \"d\": service_us 200 -> 9"),
            ("servers = 4", "servers = 4\nns_per_kib = 7", "disk \"d\": ns_per_kib 0 -> 7"),
            ("size = \"1M\"", "size = \"2M\"", "disk \"d\": size 1048576 -> 2097152"),
            ("weight = 100", "connections = 9", "group \"/g\": connections 1024 -> 9"),
            ("weight = 100", "memory = \"32M\"", "group \"/g\": memory 67108864 -> 33554432"),
            ("offset = \"64K\"", "offset = \"80K\"", "export \"b\": offset 65536 -> 81920"),
            ("size = \"64K\"", "size = \"32K\"", "export \"a\": size 65536 -> 32768"),
            (
                "[exports.a]",
                "[exports.a]\nioprio = \"idle\"",
                "export \"a\": ioprio \"be/4\" -> \"idle\"",
            ),
            (
                "[exports.a]",
                "[exports.a]\nvhost_user = \"a.vhost\"",
                "export \"a\": vhost_user none -> \"a.vhost\"",
            ),
            (
                "[exports.a]",
                "[exports.a]\nread_only = true",
                "export \"a\": read_only false -> true",
            ),
        ];
        for (line, new, said) in cases {
            assert_eq!(lines(&[(line, new)]), [said], "{new}");
        }
    }

    #[test]
    fn pools_and_volumes_are_called_so() {
        let dir = tempfile::tempdir().expect("a directory");
        for image in ["a.img", "b.img", "c.img"] {
            let image = std::fs::File::create(dir.path().join(image)).expect("an image");
            image.set_len(1 << 20).expect("room");
        }
        let at = |text: &str| {
            let text = text.replace("DIR", dir.path().to_str().expect("UTF-8"));
            config(&text)
        };
        let served = "[pools.p]\npath = \"DIR\"\n[volumes.a]\npool = \"p\"\n\
                      [volumes.b]\npool = \"p\"\n";
        let file = served
            .replace("[volumes.a]", "sync_depth = 9\n[volumes.a]")
            .replace("[volumes.b]", "path = \"b.img\"\n[volumes.c]");
        let found = difference(&at(served), &at(&file));
        let said: Vec<_> = found.iter().map(ToString::to_string).collect();
        let expected = ["pool \"p\": sync_depth 4 -> 9", "volume \"a\": path none -> \"b.img\""];
        assert_eq!(said, expected);
    }

    #[test]
    fn sockets_that_move_are_named_and_not_what_they_offer() {
        let moved = lines(&[("unix = \"nbd.sock\"", "unix = \"x.sock\"")]);
        assert_eq!(moved, ["listen \"nbd.sock\" -> none", "listen none -> \"x.sock\""]);
        let first = "[[listen]]\nunix = \"nbd.sock\"\nexports = [\"b\", \"a\"]\n[disks.d]";
        assert_eq!(lines(&[("unix = \"nbd.sock\"", ""), ("[disks.d]", first)]), [""; 0]);
    }

    #[test]
    fn sockets_at_free_ports_are_compared_in_their_order() {
        let listen = "[[listen]]\ntcp = \"127.0.0.1:0\"\nexports = [\"a\"]\n\
                      [[listen]]\ntcp = \"127.0.0.1:0\"\nexports = [\"b\"]\n[disks.d]";
        let text = SERVED.replace("[disks.d]", listen);
        assert_eq!(difference(&config(&text), &config(&text)), []);
    }

    #[test]
    fn what_may_change_while_clients_are_served_is_not_named() {
        let changed = [
            ("servers = 4", "servers = 4\nscheduler = \"bfq\"\ndepth = 3\ntunables.slice_idle = 1"),
            (
                "weight = 100",
                "weight = 7\nleaf_weight = 8\nweight_device.d = 9\nleaf_weight_device.d = 3",
            ),
            ("[exports.b]", "[exports.b]\nweight = 5\ndescription = \"x\""),
        ];
        assert_eq!(lines(&changed), [""; 0]);
        let limits = [
            ("servers = 4", "servers = 4\nscheduler = \"wfq\""),
            (
                "weight = 100",
                "riops = 1\nwiops = 2\nrbps = 3\nwbps = 4\niops = 8\nbps = 9\n\
                 min_iops = 5\nmin_bps = 6\nlatency_target = \"7us\"",
            ),
        ];
        assert_eq!(lines(&limits), [""; 0]);
        let hierarchy = [("servers = 4", "servers = 4\nscheduler = \"cfq\"\nhierarchy = \"flat\"")];
        assert_eq!(lines(&hierarchy), [""; 0]);
        let polling = [(
            "servers = 4",
            "servers = 4\npoll = \"hybrid\"\nio_poll_delay = 5\nio_poll_part = 60\n\
             io_poll_hyb_use_min = 0\nio_poll_hyb_adjust = 0",
        )];
        assert_eq!(lines(&polling), [""; 0]);
    }

    /// The test before changes each of these, and reload.rs of connections/ applies them.
    #[test]
    fn keys_that_hold_at_once_are_these() {
        fn live<O: Keys>() -> Vec<&'static str> {
            O::KEYS.iter().filter(|key| key.live).map(|key| key.name).collect()
        }
        let of_disks = [
            "scheduler",
            "hierarchy",
            "depth",
            "tunables",
            "poll",
            "io_poll_delay",
            "io_poll_part",
            "io_poll_hyb_use_min",
            "io_poll_hyb_adjust",
        ];
        assert_eq!(live::<DiskKeys>(), of_disks);
        let of_groups = [
            "weight",
            "leaf_weight",
            "weight_device",
            "leaf_weight_device",
            "identities",
            "riops",
            "wiops",
            "rbps",
            "wbps",
            "iops",
            "bps",
            "min_iops",
            "min_bps",
            "latency_target",
        ];
        assert_eq!(live::<GroupKeys>(), of_groups);
        assert_eq!(live::<ExportKeys>(), ["weight", "description"]);
        assert_eq!((live::<ServerKeys>(), live::<ListenKeys>()), (vec![], vec!["exports"]));
        // reload.rs applies these, and identities.
        assert_eq!(live::<TlsKeys>(), ["certificate", "key", "client_ca", "crl"]);
    }

    #[test]
    fn tables_that_move_are_named_and_not_those_that_come_and_go() {
        let moved = lines(&[("group = \"/g\"", "group = \"/g/h\"")]);
        assert_eq!(moved, ["export \"a\": group \"/g\" -> \"/g/h\""]);
        let left = lines(&[("[groups.\"/g\"]\nweight = 100\n", ""), ("group = \"/g\"\n", "")]);
        let stays = ["groups \"/g\" -> none", "export \"a\": group \"/g\" -> \"/a\""];
        assert_eq!(left, stays);
        let come_and_go = [("[exports.b]", "[exports.c]"), ("[disks.e]", "[disks.f]")];
        assert_eq!(lines(&come_and_go), ["disks \"e\" -> none"], "something stays on it");
        let in_memory = "backend = \"memory\"";
        let model = "backend = \"modelled\"\nservers = 1\nservice_us = 2";
        assert_eq!(
            lines(&[(in_memory, model)]),
            [
                "disk \"e\": backend \"memory\" -> \"modelled\"",
                "disk \"e\": servers none -> 1",
                "disk \"e\": service_us none -> 2",
            ]
        );
        let device = "backend = \"modelled\"\nmodel = \"optane-p4800x\"";
        assert_eq!(
            lines(&[(in_memory, device)]),
            [
                "disk \"e\": backend \"memory\" -> \"modelled\"",
                "disk \"e\": model none -> \"optane-p4800x\"",
            ]
        );
        let on_other = lines(&[("[exports.b]\ndisk = \"d\"", "[exports.b]\ndisk = \"e\"")]);
        assert_eq!(on_other, ["export \"b\": disk \"d\" -> \"e\""]);
    }
}
