//! The keys of `[disks.NAME]` and `[pools.NAME]`.

use std::path::PathBuf;

use paternoster::{Hierarchy, Nanos, SchedulerKind};
use paternoster_disk::{AfterReconnect, CacheChoice, NbdUri};
use paternoster_model::device_names;
use serde_json::{Value, json};

use super::kinds::{About, Entry, Kind, Size, Span, Text, WHOLE_UP_TO, Whole, Word, Words, words};
use super::server::DAY;
use super::written::{At, Form, beside};
use super::{NAME, PATH, keys};
use crate::config::error::Problem;
use crate::config::polling::{PollMode, Polling};
use crate::config::scheduler::AUTO;
use crate::depth::{self, Depth};

/// A disk that is one, and one that volumes share.
pub(in crate::config) const DISK: &str = "disk";
pub(in crate::config) const POOL: &str = "pool";

/// The kinds of disks and of pools, as keys have them in `of`; a pool is also just one.
pub(in crate::config) const DISKS: [&str; 4] = ["file", "memory", "modelled", "nbd"];
pub(in crate::config) const POOLS: [&str; 4] = [POOL, "local-pool", "far-pool", "modelled-pool"];

/// The greatest `depth`.
pub(crate) const DEPTH_MAX: u32 = 1024;

const SERVERS: Whole<u32> = Whole::new(1..=512, "servers");
const SERVICE: Whole<u32> = Whole::new(1..=10_000_000, "µs");
const SYNC: Whole<u32> = Whole::new(0..=10_000_000, "µs");
const PER_KIB: Whole<u32> = Whole::new(0..=1_000_000, "ns");
const CONNECTIONS: Whole<u32> = Whole::new(1..=64, "connections");
const SYNC_DEPTH: Whole<u32> = Whole::new(1..=64, "volumes");
const RECORD_RING: Size = Size::within(0..=1 << 30);
const CAPACITY: Size = Size::within(1..=i64::MAX.cast_unsigned());
const VOLUMES: Whole<u32> = Whole::new(1..=100_000, "volumes");
const RESENDS: Whole<u32> = Whole::new(0..=1000, "times");
const RECONNECT: Span = Span::new(Nanos::ZERO, DAY, "s");
const ANSWER_TIMEOUT: Span = Span::new(Nanos::from_millis(1), DAY, "s");
const LATENCY: Span = Span::new(Nanos::ZERO, Nanos::from_millis(1_000), "us");
const DELAY: Whole<i64> = Whole::new(-1..=4_294_967, "µs");
const PART: Whole<u8> = Whole::new(1..=100, "%");
const USE_MIN: Whole<u8> = Whole::new(0..=1, "");
const ADJUST: Whole<u32> = Whole::new(0..=4_294_967_295, "ns");

/// A device of the laboratory: its name, or the path of its file.
const MODEL: Text<String> = Text {
    kind: "text: a name, or a path",
    range: "a device of the laboratory or a file of its parameters, with no fewer bytes than \
            `size`",
    pattern: "",
    read: |text, found| {
        let is_named = device_names().contains(&text);
        let file = || beside(&found.place, text).display().to_string();
        Ok(if is_named { text.to_owned() } else { file() })
    },
    show: Clone::clone,
};

pub(super) const URI: Text<NbdUri> = Text {
    kind: "text",
    range: "`nbd+unix:///EXPORT?socket=/PATH`, `nbd://HOST[:PORT]/EXPORT`; within TLS `nbds`, with \
            `tls-certificates=FOLDER`",
    pattern: "^nbds?(\\+unix)?://",
    read: |text, _| text.parse().map_err(|error| Problem::BadUri { found: text.to_owned(), error }),
    show: ToString::to_string,
};

keys! {
    /// What is set of a disk.
    pub struct DiskKeys, states DiskStates {
        path: Option<PathBuf> = None, PATH, restart, of "file local-pool", default "–",
            range "a regular file or block device that no other disk has; of a pool, a directory";
            "The image or device. It is locked while it is served. A writable device is opened \
             exclusively: one that is mounted, or part of another device, is refused by name. Of a \
             pool, the directory of its volumes' images.";
        cache: CacheChoice = CacheChoice::Auto, Words::<CacheChoice>::ALL, restart,
            of "file local-pool",
            default "`\"direct\"` where the file system or device takes `O_DIRECT`, else \
                     `\"page\"`";
            "Past the page cache, or through it ([below](#direct-io)). An explicit `\"direct\"` \
             that is refused is an error.";
        rotational: Option<bool> = None, FlagOrAuto, restart, default "`\"auto\"`";
            "Whether the disk seeks; `scheduler = \"auto\"` and the schedulers go by it. \
             `\"auto\"` asks sysfs, and [does not believe \
             virtio](tuning.md#who-says-what-a-device-is).";
        backend: Option<BackendKind> = None, Words::<BackendKind>::ALL, restart,
            of "file memory modelled nbd pool", default "`\"file\"`";
            "What is behind the disk, or behind each volume of a pool. `\"memory\"` and \
             `\"modelled\"` are memory, zero at the start and lost at the end, the latter with \
             the speed that the next six keys set, which the volumes of a pool share; \
             `\"nbd\"` is [another NBD server's export](#another-nbd-server). A pool is not \
             `\"memory\"`.";
        size: Option<u64> = None, Size::ANY, restart, of "memory modelled nbd",
            default "of `\"nbd\"`: as its server says", range "1 byte or more";
            "Size of a disk in memory, which needs it; memory is taken as it is written, 32 KiB \
             at a time, and given back where that is trimmed or zeroed. More than the machine \
             has is not refused: the kernel may end the server once it is written. With \
             `\"nbd\"`, the size that the export has to have.";
        model: Option<String> = None, MODEL, restart, of "modelled modelled-pool";
            "Device whose times a modelled disk has, such as `\"nvme-980pro\"` or \
             `\"hdd-7200\"` ([Devices](laboratory.md#devices)); a rotational model counts as \
             rotational. It excludes the next four keys. If the device \
             takes no trims, a trim frees nothing and takes no time; a write with FUA is a write \
             and a sync, so `fua_us` of the file does not count.";
        servers: Option<u32> = None, SERVERS, restart, of "modelled modelled-pool", default "–";
            "Requests that a modelled disk serves at once; required without `model`.";
        service_us: Option<u32> = None, SERVICE, restart, of "modelled modelled-pool", default "–";
            "Time of a request on a modelled disk, in µs; required without `model`.";
        ns_per_kib: u32 = 0, PER_KIB, restart, of "modelled modelled-pool";
            "Additional time for each KiB of a request on a modelled disk, in ns.";
        sync_us: u32 = 0, SYNC, restart, of "modelled modelled-pool";
            "Time of a sync on a modelled disk, in µs; it keeps none of the servers.";
        uri: Option<NbdUri> = None, URI, restart, of "nbd", default "–";
            "With `\"nbd\"`, required: where the other server is; none of this server's own \
             sockets.";
        device: Option<String> = None, NAME, restart, of "far-pool",
            range "a name";
            "What the servers of a pool's volumes have in common, such as one storage cluster. \
             Without it they have one host, or one socket: a depth and a share of the device are \
             those of one device.";
        connections: Option<u32> = None, CONNECTIONS, restart, of "nbd far-pool",
            default "4; in a pool 1 a volume";
            "With `\"nbd\"`: connections to the server; one if it does not offer more \
             (`CAN_MULTI_CONN`).";
        reconnect: Nanos = Nanos::from_millis(30_000), RECONNECT, restart, of "nbd far-pool";
            "With `\"nbd\"`: how long requests wait for a lost server before they get EIO.";
        resends: u32 = 10, RESENDS, restart, of "nbd far-pool";
            "With `\"nbd\"`: how often a request is sent again after its connection was lost. \
             Then it gets EIO, as it may be what crashes the server.";
        answer_timeout: Nanos = Nanos::from_millis(30_000), ANSWER_TIMEOUT, restart,
            of "nbd far-pool";
            "With `\"nbd\"`: how long a request may wait for its whole answer before its \
             connection is [given up](#another-nbd-server).";
        after_reconnect: AfterReconnect = AfterReconnect::Doubt, Words::<AfterReconnect>::ALL,
            restart, of "nbd far-pool";
            "With `\"nbd\"`: whether data that was answered and not flushed is in doubt after a \
             lost connection ([below](#another-nbd-server)).";
        same_device: SameDevice = SameDevice::Require, Words::<SameDevice>::ALL, restart,
            of "local-pool";
            "Whether a volume that is on another device than the pool's others is refused, or \
             only warned of: a depth and a share of the device are those of one device.";
        sync_depth: u32 = 4, SYNC_DEPTH, restart, of "pool";
            "Volumes that sync at once, for FLUSH and FUA; the others wait for their turn.";
        capacity: Option<u64> = None, CAPACITY, restart, of "pool";
            "Most bytes that the sizes of its volumes may add up to; with sparse images that may \
             be more than the file system has.";
        keep_free: u8 = 0, Percent, restart, of "local-pool", default "`\"0%\"`";
            "Part of the file system of `path` that has to be free for a volume to be made or \
             grown [while clients are served](operations.md#volumes-while-clients-are-served); \
             `stat` warns below that.";
        volumes: u32 = 10_000, VOLUMES, restart, of "pool";
            "Most volumes.";
        scheduler: SchedulerWord = SchedulerWord::Auto, Words::<SchedulerWord>::ALL, live;
            "What orders the disk's requests; [`\"auto\"`](#what-auto-takes) takes `wfq` or \
             `cfq`. Weights work under `cfq`, `bfq` and `wfq`.";
        hierarchy: Option<Hierarchy> = None, Words::<Hierarchy>::ALL, live,
            default "`\"leaf-weight\"`";
            "How groups share the disk ([Hierarchies](schedulers.md#hierarchies)); under `cfq` \
             only.";
        depth: Option<Depth> = None, Depths, live,
            default "16; 32 for a file past the page cache on a device that does not rotate, \
                     under `none`, `mq-deadline` and `kyber`; on a modelled disk twice its \
                     servers, or as many as its `model` takes if that is fewer or it has none; \
                     under `wfq` learned, up to 1024";
            "Requests in the disk at once; the scheduler orders the rest. Lower is fairer, higher \
             keeps a parallel disk busier. `\"learned\"` is for `wfq` alone.";
        plug: bool = true, OnOff, restart;
            "Whether connection threads hold back a client's reads and writes until they have \
             received all that it has sent, so that neighbours merge and cross together. No \
             effect with `threads = 1`. `ctl get DISK plug` shows it.";
        record_ring: u64 = 16 << 20, RECORD_RING, restart, default "`\"16M\"`";
            "Memory for the newest requests of the disk, some 60,000 with 16 MiB, which \
             [`ctl record last`](recording.md) writes to files. It is taken as it is filled. 0 \
             keeps none.";
        cpu_dma_latency: Option<Nanos> = None, LATENCY, restart, default "as the machine has it";
            "Longest wake-up time of idle processors while the server runs. The server writes it \
             to `/dev/cpu_dma_latency`, which is root's, or does not start. It holds for all \
             processors of the machine, and the strictest program wins; `\"0us\"` makes them poll \
             instead of idling, which takes power. [Measured](polling.md#the-idle-governor).";
        tunables: Vec<(At<String>, At<i64>)> = Vec::new(), Tunables, live,
            default "what fits the disk", range "see [Tunables](#tunables)";
            "Tunables of the scheduler: `tunables = { slice_idle = 8 }`.";
    }
    part
    /// How the disk's thread waits.
    polling: Polling = Polling::default(), {
        poll: Words::<PollMode>::ALL, live;
            "How the disk's thread waits for the disk: `\"auto\"` finds out, `\"interrupt\"` \
             sleeps at once, `\"classic\"` looks again and again, `\"hybrid\"` sleeps for a while \
             and then looks ([Ways to wait](polling.md#in-the-server)). `\"auto\"` also looks for \
             clients' commands, for 50 µs at most; while one client asks for one thing at a time, \
             that can take most of a processor.";
        io_poll_delay: DELAY, live;
            "With `poll = \"hybrid\"`: how long to sleep first, in µs; 0 is a part of the mean \
             time of such reads or writes, -1 is not at all.";
        io_poll_part: PART, live;
            "With `poll = \"hybrid\"` and a delay of 0: that part, in percent. Linux has 50; 60 \
             was proposed in answer to the post of 2017.";
        io_poll_hyb_use_min: USE_MIN, live;
            "With `poll = \"hybrid\"` and a delay of 0: 1 sleeps no less than the shortest of \
             them took.";
        io_poll_hyb_adjust: ADJUST, live;
            "With `poll = \"hybrid\"` and a delay of 0: sleep that much less, in ns, or not at \
             all.";
    }
}

/// So many requests, or as many as the scheduler learns.
struct Depths;

impl Kind for Depths {
    type Value = Depth;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Depth> {
        let depth = match &entry.found.form {
            Form::Text(text) if text == depth::LEARNED => Some(Depth::Learned),
            Form::Whole(number) => u32::try_from(*number).ok().map(Depth::Fixed),
            _ => None,
        };
        let is_allowed =
            |depth: &Depth| depth.fixed().is_none_or(|depth| (1..=DEPTH_MAX).contains(&depth));
        let allowed = || format!("1 to {DEPTH_MAX} requests, or {:?} under wfq,", depth::LEARNED);
        depth.filter(is_allowed).or_else(|| entry.refuse(allowed()))
    }

    fn show(&self, depth: &Depth) -> Value {
        (*depth).into()
    }

    fn about(&self) -> About {
        let range = format!("1 to {DEPTH_MAX}");
        let number = json!({"type": "integer", "minimum": 1, "maximum": DEPTH_MAX});
        let schema = json!({"anyOf": [number, {"const": depth::LEARNED}]});
        About::new("whole number, or `\"learned\"`", range, schema)
    }
}

/// So many parts of a hundred.
struct Percent;

impl Kind for Percent {
    type Value = u8;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<u8> {
        let part = match &entry.found.form {
            Form::Text(text) => text.strip_suffix('%').and_then(|digits| digits.parse().ok()),
            _ => None,
        };
        part.filter(|part| *part <= 99)
            .or_else(|| entry.refuse("\"0%\" to \"99%\", such as \"5%\","))
    }

    fn show(&self, part: &u8) -> Value {
        format!("{part}%").into()
    }

    fn about(&self) -> About {
        let schema = json!({"type": "string", "pattern": "^[0-9]{1,2}%$"});
        About::new("text", "`\"0%\"` to `\"99%\"`", schema)
    }
}

/// On or off.
struct OnOff;

impl Kind for OnOff {
    type Value = bool;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<bool> {
        match &entry.found.form {
            Form::Text(text) if text == "on" => Some(true),
            Form::Text(text) if text == "off" => Some(false),
            _ => entry.refuse("\"on\" or \"off\""),
        }
    }

    fn show(&self, is_on: &bool) -> Value {
        if *is_on { "on" } else { "off" }.into()
    }

    fn about(&self) -> About {
        About::new("text", "`\"on\"`, `\"off\"`", json!({"enum": ["on", "off"]}))
    }
}

/// True, false, or none if it is `auto`.
struct FlagOrAuto;

impl Kind for FlagOrAuto {
    type Value = Option<bool>;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Option<bool>> {
        match &entry.found.form {
            Form::Flag(flag) => Some(Some(*flag)),
            Form::Text(text) if text == AUTO => Some(None),
            _ => entry.refuse("\"auto\", true or false"),
        }
    }

    fn show(&self, flag: &Option<bool>) -> Value {
        flag.map_or_else(|| AUTO.into(), Value::Bool)
    }

    fn about(&self) -> About {
        About::new("`\"auto\"`, `true` or `false`", "–", json!({"enum": [AUTO, true, false]}))
    }
}

/// What a disk, or each volume of a pool, may have behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// A file or block device.
    File,
    /// Memory.
    Memory,
    /// Memory that is as slow as a device.
    Modelled,
    /// An export of another NBD server.
    Nbd,
}

impl BackendKind {
    const ALL: [Self; 4] = [Self::File, Self::Memory, Self::Modelled, Self::Nbd];

    /// Its name in configurations and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Memory => "memory",
            Self::Modelled => "modelled",
            Self::Nbd => "nbd",
        }
    }
}

/// What the volumes of a pool are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// Files and block devices.
    Local,
    /// Exports of other NBD servers.
    Far,
    /// Memory behind one model of a device.
    Modelled,
}

impl PoolKind {
    /// What a pool of it is called in keys' `of`, as is one of its volumes.
    pub(in crate::config) const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Local => ["local-pool", "local-volume"],
            Self::Far => ["far-pool", "far-volume"],
            Self::Modelled => ["modelled-pool", "modelled-volume"],
        }
    }
}

impl DiskKeys {
    /// What the volumes of a pool with these keys are; none if a pool cannot have them.
    pub(crate) fn pool_kind(&self) -> Option<PoolKind> {
        match self.backend {
            None | Some(BackendKind::File) => Some(PoolKind::Local),
            Some(BackendKind::Nbd) => Some(PoolKind::Far),
            Some(BackendKind::Modelled) => Some(PoolKind::Modelled),
            Some(BackendKind::Memory) => None,
        }
    }
}

/// What becomes of a volume that is on another device than its pool's others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameDevice {
    /// It is refused.
    Require,
    /// It is warned of.
    Warn,
}

impl SameDevice {
    const ALL: [Self; 2] = [Self::Require, Self::Warn];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Require => "require",
            Self::Warn => "warn",
        }
    }
}

words!(BackendKind, SameDevice, AfterReconnect, Hierarchy);

/// `Auto` has no word: it holds if `cache` is not written.
impl Word for CacheChoice {
    const ALL: &'static [Self] = &[Self::Direct, Self::Page];

    fn word(self) -> &'static str {
        self.name()
    }
}

/// A scheduler by its name, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerWord {
    /// The server chooses one that fits the disk.
    Auto,
    /// This one.
    Named(SchedulerKind),
}

impl Word for SchedulerWord {
    const ALL: &'static [Self] = &[
        Self::Auto,
        Self::Named(SchedulerKind::None),
        Self::Named(SchedulerKind::MqDeadline),
        Self::Named(SchedulerKind::Kyber),
        Self::Named(SchedulerKind::Cfq),
        Self::Named(SchedulerKind::Bfq),
        Self::Named(SchedulerKind::Wfq),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::Named(kind) => kind.name(),
        }
    }
}

/// A table of tunables, whose values are whole numbers or words; in the order of the file.
struct Tunables;

impl Kind for Tunables {
    type Value = Vec<(At<String>, At<i64>)>;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Self::Value> {
        let mut tunables = Vec::new();
        for (name, value) in entry.table()? {
            let number = match &value.form {
                // A number in quotes is no word.
                Form::Text(text) if text.parse::<i64>().is_err() => {
                    let parsed = paternoster::parse_tunable(&name.value, text);
                    entry.inner("tunables", value).note(parsed.map_err(Problem::BadTunable))
                }
                Form::Whole(number) => Some(*number),
                Form::TooLarge => entry.inner(&name.value, value).refuse(WHOLE_UP_TO),
                _ => entry.inner(&name.value, value).refuse("a whole number"),
            };
            let number = number.map(|number| At { value: number, place: value.place.clone() });
            tunables.extend(number.map(|number| (name.clone(), number)));
        }
        Some(tunables)
    }

    fn show(&self, tunables: &Self::Value) -> Value {
        tunables.iter().map(|(name, value)| (name.value.clone(), value.value)).collect()
    }

    fn about(&self) -> About {
        let value = json!({"type": ["integer", "string"]});
        let schema = json!({"type": "object", "additionalProperties": value});
        About::new("table of whole numbers and words", "", schema)
    }
}
