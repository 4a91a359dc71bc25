//! The TOML file: its keys, and where in it each value stands.

use std::path::Path;

use toml::de::DeTable;

use super::draft::{At, Draft, DraftDisk, DraftExport, DraftGroup, DraftListen};
use super::error::{Place, Problem};
use super::keys::{Keys, Source};
use super::limit::Limit;
use super::mistakes::Mistakes;
use super::polling::HybridTunable;

/// The text of a file. None, and a note of each line that is not, if it is not in UTF-8.
pub(super) fn decode<'b>(bytes: &'b [u8], path: &Path, mistakes: &mut Mistakes) -> Option<&'b str> {
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if let Err(error) = str::from_utf8(line) {
            let place = Place::Line { path: path.to_owned(), line: index + 1 };
            mistakes.add(&place, Problem::NotUtf8 { byte: line[error.valid_up_to()] });
        }
    }
    str::from_utf8(bytes).ok()
}

/// Reads a file into a draft. Notes keys that there are not, and values of a wrong type. None if
/// the text is no TOML.
pub(super) fn read(text: &str, path: &Path, mistakes: &mut Mistakes) -> Option<Draft> {
    let source = Source { text, path };
    let (table, errors) = DeTable::parse_recoverable(text);
    source.check_syntax(&errors, mistakes)?;
    let mut keys = Keys::new(source, table.into_inner(), mistakes);
    Some(Draft {
        whole: Place::File(path.to_owned()),
        unix: keys.path("unix"),
        unix_mode: keys.number("unix_mode"),
        tcp: keys.text("tcp"),
        listen: keys.array_of_tables("listen", listen),
        ctl: keys.path_or_none("ctl"),
        metrics: keys.text("metrics"),
        memory: keys.number("memory"),
        connections: keys.whole("connections"),
        payload_timeout: keys.whole("payload_timeout"),
        threads: keys.whole("threads"),
        engine: keys.text("engine"),
        at_stop: keys.text("at_stop"),
        disks: keys.tables("disks", disk),
        groups: keys.tables("groups", group),
        exports: keys.tables("exports", export),
        has_gaps: keys.end_of_file(),
    })
}

fn listen(place: Place, keys: &mut Keys<'_, '_>) -> DraftListen {
    DraftListen {
        place,
        unix: keys.path("unix"),
        unix_mode: keys.number("unix_mode"),
        tcp: keys.text("tcp"),
        exports: keys.texts("exports"),
        has_gaps: keys.end(),
    }
}

fn disk(name: At<String>, keys: &mut Keys<'_, '_>) -> DraftDisk {
    DraftDisk {
        name,
        path: keys.path("path"),
        backend: keys.text("backend"),
        cache: keys.text("cache"),
        rotational: keys.flag_or_auto("rotational"),
        size: keys.number("size"),
        servers: keys.whole("servers"),
        model: keys.model("model"),
        service_us: keys.whole("service_us"),
        ns_per_kib: keys.whole("ns_per_kib"),
        uri: keys.text("uri"),
        connections: keys.whole("connections"),
        reconnect: keys.text("reconnect"),
        resends: keys.whole("resends"),
        answer_timeout: keys.text("answer_timeout"),
        after_reconnect: keys.text("after_reconnect"),
        scheduler: keys.text("scheduler"),
        hierarchy: keys.text("hierarchy"),
        depth: keys.whole("depth"),
        plug: keys.text("plug"),
        poll: keys.text("poll"),
        hybrid: HybridTunable::ALL.map(|tunable| keys.whole(tunable.name())),
        cpu_dma_latency: keys.whole("cpu_dma_latency"),
        tunables: keys.tunables("tunables"),
        has_gaps: keys.end(),
    }
}

fn group(path: At<String>, keys: &mut Keys<'_, '_>) -> DraftGroup {
    let group = DraftGroup {
        path,
        weight: keys.whole("weight"),
        leaf_weight: keys.whole("leaf_weight"),
        weight_device: keys.wholes("weight_device"),
        leaf_weight_device: keys.wholes("leaf_weight_device"),
        limits: Limit::ALL.map(|limit| keys.number(limit.key())),
        memory: keys.number("memory"),
        connections: keys.whole("connections"),
    };
    keys.end();
    group
}

fn export(name: At<String>, keys: &mut Keys<'_, '_>) -> DraftExport {
    DraftExport {
        name,
        disk: keys.text("disk"),
        offset: keys.number("offset"),
        size: keys.number("size"),
        group: keys.text("group"),
        weight: keys.whole("weight"),
        io_prio: keys.text("ioprio"),
        read_only: keys.flag("read_only"),
        description: keys.text("description"),
        has_gaps: keys.end(),
    }
}
