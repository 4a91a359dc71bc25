//! What of a file would need a restart: all in which it differs from the configuration with which
//! the server was started, but for what may change while clients are served.
//!
//! Disks, groups and exports are known by their names, wherever they stand in the file.

use std::path::Path;

use paternoster::Nanos;
use paternoster_disk::NbdOptions;
use serde_json::Value;

use super::{BackendConfig, Config, DiskConfig, ExportConfig, GroupConfig, Listen, ListenAddress};
use crate::ctl::Change;

/// Returns what differs, in the order of the served configuration.
pub(crate) fn needs_restart(served: &Config, file: &Config) -> Vec<Change> {
    let mut found = Difference::default();
    let addresses = |config: &Config| -> Vec<_> {
        config.listen.iter().map(|listen| listen.address.to_string()).collect()
    };
    found.names("listen", &addresses(served), &addresses(file));
    // Of those at any free port, which have one address, each has its place among them.
    let mut left: Vec<&Listen> = file.listen.iter().collect();
    for old in &served.listen {
        let address = old.address.to_string();
        if let Some(at) = left.iter().position(|new| new.address.to_string() == address) {
            let new = left.remove(at);
            found.compare(&format!("listen {address:?}"), socket(served, old), socket(file, new));
        }
    }
    found.compare("", whole(served), whole(file));

    let names =
        |config: &Config| -> Vec<_> { config.disks.iter().map(|disk| disk.name.clone()).collect() };
    found.names("disks", &names(served), &names(file));
    for disk in &served.disks {
        if let Some(new) = file.disks.iter().find(|new| new.name == disk.name) {
            found.compare(&format!("disk {:?}", disk.name), back_end(disk), back_end(new));
        }
    }

    let paths = |config: &Config| -> Vec<_> {
        config.groups.iter().map(|group| group.path.clone()).collect()
    };
    found.names("groups", &paths(served), &paths(file));
    for group in &served.groups {
        if let Some(new) = file.groups.iter().find(|new| new.path == group.path) {
            found.compare(&format!("group {:?}", group.path), bounds(group), bounds(new));
        }
    }

    let names = |config: &Config| -> Vec<_> {
        config.exports.iter().map(|export| export.name.clone()).collect()
    };
    found.names("exports", &names(served), &names(file));
    for old in &served.exports {
        if let Some(new) = file.exports.iter().find(|new| new.name == old.name) {
            let place = format!("export {:?}", old.name);
            found.compare(&place, export(served, old), export(file, new));
        }
    }
    found.0
}

/// Keys and their values; null is none.
type Values<const N: usize> = [(&'static str, Value); N];

fn whole(config: &Config) -> Values<6> {
    let Config { ctl, metrics, payload_timeout, threads, engine, at_stop, .. } = config;
    [
        ("ctl", ctl.as_deref().map_or_else(|| "none".to_owned(), path).into()),
        ("metrics", metrics.map(|address| address.to_string()).into()),
        ("payload_timeout", (payload_timeout.as_nanos() / 1_000_000_000).into()),
        ("threads", (*threads).into()),
        ("engine", engine.name().into()),
        ("at_stop", at_stop.name().into()),
    ]
}

fn socket(config: &Config, listen: &Listen) -> Values<2> {
    let mode = match listen.address {
        ListenAddress::Unix { mode, .. } => format!("{mode:04o}").into(),
        ListenAddress::Tcp(_) => Value::Null,
    };
    let name = |&export: &usize| Value::from(config.exports[export].name.clone());
    let offered = |exports: &Vec<usize>| Value::Array(exports.iter().map(name).collect());
    [("unix_mode", mode), ("exports", listen.exports.as_ref().map_or("all".into(), offered))]
}

fn back_end(disk: &DiskConfig) -> Values<17> {
    let mut values = [
        ("backend", disk.backend.kind().into()),
        ("path", Value::Null),
        ("size", Value::Null),
        ("model", Value::Null),
        ("servers", Value::Null),
        ("service_us", Value::Null),
        ("ns_per_kib", Value::Null),
        ("plug", if disk.plug { "on" } else { "off" }.into()),
        ("rotational", disk.rotational.map_or_else(|| "auto".into(), Value::Bool)),
        ("cpu_dma_latency", disk.cpu_dma_latency.into()),
        ("cache", Value::Null),
        ("uri", Value::Null),
        ("connections", Value::Null),
        ("reconnect", Value::Null),
        ("resends", Value::Null),
        ("answer_timeout", Value::Null),
        ("after_reconnect", Value::Null),
    ];
    let [_, image, bytes, device, requests, fixed, further, _, _, _, way, far @ ..] = &mut values;
    match &disk.backend {
        BackendConfig::File { path: file, cache } => {
            image.1 = path(file).into();
            way.1 = cache.name().into();
        }
        BackendConfig::Memory { size } => bytes.1 = (*size).into(),
        BackendConfig::Device { size, model } => {
            bytes.1 = (*size).into();
            device.1 = model.clone().into();
        }
        BackendConfig::Modelled { size, servers, service, per_kib } => {
            bytes.1 = (*size).into();
            requests.1 = (*servers).into();
            fixed.1 = (service.as_nanos() / 1_000).into();
            further.1 = per_kib.as_nanos().into();
        }
        BackendConfig::Nbd { options, size, .. } => {
            let NbdOptions {
                uri,
                connections,
                reconnect,
                resends,
                answer_timeout,
                after_reconnect,
            } = options;
            bytes.1 = (*size).into();
            let [place, most, patience, times, answer, after] = far;
            let span = |span: &Nanos| format!("{}ms", span.as_nanos() / 1_000_000);
            place.1 = uri.to_string().into();
            most.1 = (*connections).into();
            patience.1 = span(reconnect).into();
            times.1 = (*resends).into();
            answer.1 = span(answer_timeout).into();
            after.1 = after_reconnect.name().into();
        }
    }
    values
}

fn bounds(group: &GroupConfig) -> Values<2> {
    let bounds = group.bounds;
    [("memory", bounds.memory.into()), ("connections", bounds.connections.into())]
}

fn export(config: &Config, export: &ExportConfig) -> Values<7> {
    [
        ("disk", config.disks[export.disk].name.clone().into()),
        ("offset", export.offset.into()),
        ("size", export.size.into()),
        ("group", config.groups[export.group].path.clone().into()),
        ("ioprio", export.io_prio.to_string().into()),
        ("read_only", export.read_only.into()),
        ("description", export.description.clone().into()),
    ]
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

/// What was found to differ.
#[derive(Default)]
struct Difference(Vec<Change>);

impl Difference {
    /// Compares values of the same keys.
    fn compare<const N: usize>(&mut self, place: &str, served: Values<N>, file: Values<N>) {
        for ((what, from), (_, to)) in served.into_iter().zip(file) {
            if from != to {
                let (place, what) = (place.to_owned(), what.to_owned());
                self.0.push(Change { place, what, from, to });
            }
        }
    }

    /// Compares which tables there are.
    fn names(&mut self, key: &str, served: &[String], file: &[String]) {
        let change = |from, to| Change { place: String::new(), what: key.to_owned(), from, to };
        let gone = served.iter().filter(|name| !file.contains(name));
        let gone = gone.map(|name| change(name.clone().into(), Value::Null));
        let new = file.iter().filter(|name| !served.contains(name));
        let new = new.map(|name| change(Value::Null, name.clone().into()));
        self.0.extend(gone.chain(new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// What differs when each of these lines stands in the place of another.
    fn lines(replaced: &[(&str, &str)]) -> Vec<String> {
        let mut text = SERVED.to_owned();
        for (line, new) in replaced {
            assert!(text.contains(line), "{line}");
            text = text.replacen(line, new, 1);
        }
        let found = needs_restart(&config(SERVED), &config(&text));
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
            ("[disks.d]", "payload_timeout = 60\n[disks.d]", "payload_timeout 30 -> 60"),
            ("threads = 2", "threads = 3", "threads 2 -> 3"),
            ("[disks.d]", "engine = \"threads\"\n[disks.d]", "engine \"auto\" -> \"threads\""),
            ("[disks.d]", "at_stop = \"refuse\"\n[disks.d]", "at_stop \"close\" -> \"refuse\""),
            ("servers = 4", "servers = 4\nplug = \"off\"", "disk \"d\": plug \"on\" -> \"off\""),
            (
                "servers = 4",
                "servers = 4\ncpu_dma_latency = 20",
                "disk \"d\": cpu_dma_latency none -> 20",
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
                "[exports.a]\nread_only = true",
                "export \"a\": read_only false -> true",
            ),
            (
                "[exports.b]",
                "[exports.b]\ndescription = \"x\"",
                "export \"b\": description none -> \"x\"",
            ),
        ];
        for (line, new, said) in cases {
            assert_eq!(lines(&[(line, new)]), [said], "{new}");
        }
    }

    #[test]
    fn sockets_that_move_and_exports_that_they_no_longer_offer_are_named() {
        let moved = lines(&[("unix = \"nbd.sock\"", "unix = \"x.sock\"")]);
        assert_eq!(moved, ["listen \"nbd.sock\" -> none", "listen none -> \"x.sock\""]);
        let first = "[[listen]]\nunix = \"nbd.sock\"\nexports = [\"b\", \"a\"]\n[disks.d]";
        let fewer = lines(&[("unix = \"nbd.sock\"", ""), ("[disks.d]", first)]);
        let mut all = fewer.iter().map(String::as_str);
        let offered = "listen \"nbd.sock\": exports \"all\" -> [\"b\",\"a\"]";
        assert_eq!((all.next(), all.next()), (Some(offered), None));
    }

    #[test]
    fn sockets_at_free_ports_are_compared_in_their_order() {
        let listen = "[[listen]]\ntcp = \"127.0.0.1:0\"\nexports = [\"a\"]\n\
                      [[listen]]\ntcp = \"127.0.0.1:0\"\nexports = [\"b\"]\n[disks.d]";
        let text = SERVED.replace("[disks.d]", listen);
        assert_eq!(needs_restart(&config(&text), &config(&text)), []);
    }

    #[test]
    fn what_may_change_while_clients_are_served_is_not_named() {
        let changed = [
            ("servers = 4", "servers = 4\nscheduler = \"bfq\"\ndepth = 3\ntunables.slice_idle = 1"),
            (
                "weight = 100",
                "weight = 7\nleaf_weight = 8\nweight_device.d = 9\nleaf_weight_device.d = 3",
            ),
            ("[exports.b]", "[exports.b]\nweight = 5"),
        ];
        assert_eq!(lines(&changed), [""; 0]);
        let limits = [
            ("servers = 4", "servers = 4\nscheduler = \"wfq\""),
            (
                "weight = 100",
                "riops = 1\nwiops = 2\nrbps = 3\nwbps = 4\nmin_iops = 5\nmin_bps = 6\n\
                 latency_target = 7",
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

    #[test]
    fn tables_that_come_go_or_move_are_named() {
        let moved = lines(&[("group = \"/g\"", "group = \"/g/h\"")]);
        assert_eq!(moved, ["groups none -> \"/g/h\"", "export \"a\": group \"/g\" -> \"/g/h\""]);
        let renamed = lines(&[("[exports.b]", "[exports.c]")]);
        assert_eq!(
            renamed,
            [
                "groups \"/b\" -> none",
                "groups none -> \"/c\"",
                "exports \"b\" -> none",
                "exports none -> \"c\"",
            ]
        );
        let disks = lines(&[("[disks.e]", "[disks.f]")]);
        assert_eq!(disks, ["disks \"e\" -> none", "disks none -> \"f\""]);
        let in_memory = "backend = \"memory\"";
        let model = "backend = \"modelled\"\nservers = 1\nservice_us = 2";
        assert_eq!(
            lines(&[(in_memory, model)]),
            [
                "disk \"e\": backend \"memory\" -> \"modelled\"",
                "disk \"e\": servers none -> 1",
                "disk \"e\": service_us none -> 2",
                "disk \"e\": ns_per_kib none -> 0",
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

    /// The keys of a table of the reference, by whether a reload does what they say.
    fn reference(heading: &str, mark: &str) -> Vec<String> {
        let text = include_str!("../../../../docs/configuration.md");
        let section = text.lines().skip_while(|line| *line != heading).skip(1);
        let section = section.take_while(|line| !line.starts_with('#'));
        let cells = section.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let marked = cells.filter(|cells| cells.len() == 8 && cells[5] == mark);
        marked.map(|cells| cells[1].replace('`', "")).collect()
    }

    #[test]
    fn reference_says_of_each_key_whether_it_needs_a_restart() {
        fn sorted<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
            let mut keys: Vec<_> = keys.into_iter().collect();
            keys.sort_unstable();
            keys
        }
        let served = config(SERVED);
        let bounds = bounds(&served.groups[0]).map(|(key, _)| key);
        let whole = whole(&served).map(|(key, _)| key).into_iter().chain(bounds);
        // Sockets are compared by their addresses, tables by their names.
        let sockets = ["unix", "unix_mode", "tcp", "listen"];
        let whole = whole.chain(sockets).chain(["disks", "groups", "exports"]);
        let tables = [
            ("## The file", sorted(whole)),
            ("## `[[listen]]`", vec!["exports", "tcp", "unix", "unix_mode"]),
            ("## `[disks.NAME]`", sorted(back_end(&served.disks[0]).map(|(key, _)| key))),
            ("## `[groups.\"/PATH\"]`", sorted(bounds)),
            (
                "## `[exports.NAME]`",
                sorted(export(&served, &served.exports[0]).map(|(key, _)| key)),
            ),
        ];
        for (heading, keys) in tables {
            let written = reference(heading, "no");
            assert_eq!(sorted(written.iter().map(String::as_str)), keys, "{heading}");
        }
        // The test of lines that are not named has these.
        let applied = ["## `[disks.NAME]`", "## `[groups.\"/PATH\"]`", "## `[exports.NAME]`"]
            .map(|heading| reference(heading, "yes").join(" "));
        let expected = [
            "scheduler hierarchy depth poll io_poll_delay io_poll_part io_poll_hyb_use_min \
             io_poll_hyb_adjust tunables",
            "weight leaf_weight weight_device leaf_weight_device riops wiops rbps wbps min_iops \
             min_bps latency_target",
            "weight",
        ];
        assert_eq!(applied, expected);
    }

    #[test]
    fn order_of_disks_is_no_difference() {
        let second = "[disks.e]\nbackend = \"memory\"\nsize = \"1M\"\n";
        let moved = lines(&[(second, ""), ("[disks.d]", &format!("{second}[disks.d]"))]);
        assert_eq!(moved, [""; 0]);
    }
}
