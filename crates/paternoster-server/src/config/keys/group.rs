//! The keys of `[groups."/PATH"]`.

use std::collections::BTreeMap;

use paternoster::{GroupLimits, Nanos, Weight, Weights};
use serde_json::{Value, json};

use super::kinds::{About, Entry, Kind, Rate, Size, Span, SpanOrNone, Whole};
use super::server::{CONNECTIONS, MEMORY};
use super::written::{At, Form};
use super::{Keys as _, keys};
use crate::tls::{Identity, NoIdentity};

const WEIGHTS: Whole<u32> = Whole::new(Weight::MIN as i64..=Weight::MAX as i64, "");

/// The longest latency target: an hour.
const LONGEST_TARGET: Nanos = Nanos::from_millis(3_600_000);

const QUOTA: Size = Size::within(1..=i64::MAX.cast_unsigned());
const VOLUMES: Whole<u32> = Whole::new(0..=100_000, "volumes");

const LATENCY_TARGET: SpanOrNone = SpanOrNone(Span::new(Nanos::ZERO, LONGEST_TARGET, "us"));

keys! {
    /// What is set of a group.
    pub struct GroupKeys, states GroupStates {
        weight: Option<Weight> = None, OneWeight, live, of "below", default "100";
            "Weight against its siblings, on every disk.";
        leaf_weight: Option<Weight> = None, OneWeight, live, of "below", default "as `weight`";
            "Weight of the group's own exports against the groups below it; under `cfq` and \
             `wfq`.";
        weight_device: Vec<(At<String>, Weight)> = Vec::new(), WeightsOfDisks, live,
            of "below", default "none";
            "Another `weight` on the named disks: `weight_device = { slow = 500 }`.";
        leaf_weight_device: Vec<(At<String>, Weight)> = Vec::new(), WeightsOfDisks, live,
            of "below", default "none";
            "Another `leaf_weight` likewise.";
        memory: Option<u64> = None, MEMORY, restart, of "below",
            default "as in [the file](#the-file)";
            "As in [the file](#the-file), for this tenant.";
        connections: Option<u32> = None, CONNECTIONS, restart, of "below",
            default "as in [the file](#the-file)";
            "As in [the file](#the-file), for this tenant.";
        capacity: Option<u64> = None, QUOTA, restart, of "below";
            "Most bytes that the sizes of volumes may add up to which are in the group or below \
             it, for a volume to be made or grown [while clients are \
             served](operations.md#volumes-while-clients-are-served).";
        volumes: Option<u32> = None, VOLUMES, restart, of "below";
            "Most volumes in the group and below it, likewise.";
        identities: Vec<Identity> = Vec::new(), OfCertificates, live, of "below", default "none";
            "Whose certificates enter its exports and those of groups below it where \
             [TLS](operations.md#tls) is required: a URI or a DNS name among the subject's \
             alternative names, or the certificate's fingerprint.";
    }
    part
    /// Its caps, reservations and latency target, on each disk.
    limits: GroupLimits = GroupLimits::NONE, {
        riops: Rate::CAP, live;
            "Cap: reads a second, of the group and those below it; needs `wfq` on its disks, as \
             do the next eight.";
        wiops: Rate::CAP, live;
            "Cap: writes a second.";
        rbps: Rate::CAP_OF_BYTES, live;
            "Cap: bytes read a second.";
        wbps: Rate::CAP_OF_BYTES, live;
            "Cap: bytes written a second.";
        iops: Rate::CAP, live;
            "Cap: requests a second, reads and writes together, as SPDK's `rw_ios_per_sec` and \
             QEMU's `iops-total`.";
        bps: Rate::CAP_OF_BYTES, live;
            "Cap: bytes read and written a second, together.";
        min_iops: Rate::RESERVED, live, of "below";
            "Reservation: ops a second that it gets whatever its weight, as `wfq` charges them. \
             If more is reserved than the disk does, all others together keep a twentieth.";
        min_bps: Rate::RESERVED_BYTES, live, of "below";
            "Reservation: bytes a second.";
        latency_target: LATENCY_TARGET, live, of "below";
            "Nine of ten requests shall be served within that time, from arrival to completion; \
             `\"0us\"` is none.";
    }
}

impl GroupKeys {
    /// Its weights where a disk has none of its own for it.
    pub(crate) fn weights(&self) -> Weights {
        let weight = self.weight.unwrap_or_default();
        Weights { weight, leaf: self.leaf_weight.unwrap_or(weight) }
    }
}

/// The root of all groups.
pub(crate) const ROOT: &str = "/";

/// The kind of a group: the root takes caps alone, as it has nobody beside it.
pub(crate) fn group_kind(group: &str) -> &'static str {
    if group == ROOT { "root" } else { "below" }
}

/// The names of all that the root takes.
pub(crate) fn caps() -> String {
    let caps = GroupKeys::KEYS.iter().filter(|key| key.is_of(group_kind(ROOT)));
    caps.map(|key| key.name).collect::<Vec<_>>().join(", ")
}

/// The names of all caps, reservations and targets of a group.
pub fn limit_names() -> impl Iterator<Item = &'static str> {
    GroupKeys::part("limits").map(|key| key.name)
}

/// The limits that there are, by their keys: a second, and `latency_target` in µs.
pub(crate) fn limits_in_numbers(limits: &GroupLimits) -> BTreeMap<String, u64> {
    let keys = GroupKeys { limits: *limits, ..GroupKeys::default() };
    let numbers = GroupKeys::part("limits").filter_map(|key| {
        let value = match (key.show)(&keys) {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => Span::parse(&text).map(|span| span.as_nanos() / 1_000),
            _ => None,
        };
        Some((key.name.to_owned(), value.filter(|&value| value > 0)?))
    });
    numbers.collect()
}

/// A weight.
pub(super) struct OneWeight;

impl Kind for OneWeight {
    type Value = Weight;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Weight> {
        let weight = WEIGHTS.read(entry)?;
        Some(Weight::new(weight).expect("a weight within the range is one"))
    }

    fn show(&self, weight: &Weight) -> Value {
        weight.value().into()
    }

    fn about(&self) -> About {
        WEIGHTS.about()
    }
}

/// Whose certificates.
pub(super) struct OfCertificates;

/// The key of whose certificates enter a group's exports: no disk knows of it.
pub(crate) const IDENTITIES: &str = "identities";

const IDENTITY: &str = "\"uri:URI\", \"dns:NAME\" or \"sha256:64 HEX DIGITS\"";

impl Kind for OfCertificates {
    type Value = Vec<Identity>;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Self::Value> {
        let key = entry.key;
        let Form::List(elements) = &entry.found.form else {
            return entry.refuse("an array of texts in quotes");
        };
        let identities = elements.iter().map(|element| {
            let mut one = entry.inner(key, element);
            let text = one.text()?;
            text.parse().map_or_else(|NoIdentity| one.refuse(IDENTITY), Some)
        });
        // All that are wrong are told.
        identities.collect::<Vec<_>>().into_iter().collect()
    }

    fn show(&self, identities: &Self::Value) -> Value {
        identities.iter().map(ToString::to_string).collect()
    }

    fn about(&self) -> About {
        let pattern = "^(uri:.+:.*|dns:.+|sha256:([0-9A-Fa-f]{2}:?){32})$";
        let schema = json!({"type": "array", "items": {"type": "string", "pattern": pattern}});
        About::new("list of texts", "`\"uri:…\"`, `\"dns:…\"`, `\"sha256:…\"`", schema)
    }
}

/// Weights by the names of disks.
struct WeightsOfDisks;

impl Kind for WeightsOfDisks {
    type Value = Vec<(At<String>, Weight)>;

    fn read(&self, entry: &mut Entry<'_, '_>) -> Option<Self::Value> {
        let key = entry.key;
        let disks = entry.table()?.iter();
        // A disk that is not there is told of, whatever its weight.
        let weights = disks.map(|(disk, weight)| {
            (disk.clone(), OneWeight.read(&mut entry.inner(key, weight)).unwrap_or_default())
        });
        Some(weights.collect())
    }

    fn show(&self, weights: &Self::Value) -> Value {
        weights.iter().map(|(disk, weight)| (disk.value.clone(), weight.value())).collect()
    }

    fn about(&self) -> About {
        let About { range, schema, .. } = WEIGHTS.about();
        let schema = json!({"type": "object", "additionalProperties": schema});
        About::new("table of whole numbers", range, schema)
    }
}
