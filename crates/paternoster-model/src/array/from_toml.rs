//! An array from a TOML file, such as `devices/raid5-12-sata.toml`.

use paternoster::SectorCount;

use super::{ArrayParameters, Prefetch, Segmentation, Striping, WriteBack};
use crate::devices::{disk_parameters, is_there};
use crate::disk::Parameters;
use crate::disk::units::whole;
use crate::parameter_file::{Keys, ParameterError, Problem, micros};

type Read<T> = Result<T, ParameterError>;

/// Sectors of a KiB.
const KIB: u64 = 2;
/// A GiB in KiB.
const GIB: u64 = 1 << 20;

impl ArrayParameters {
    /// Reads the keys of a file of this kind, beside which the disk's file lies.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Read<Self> {
        let depth = keys.small("depth", 1..=65_536)?;
        let link = keys.table("link", |keys| keys.number("mb_per_s", 0.001..=1e6))?;
        let front_end = keys.table("front_end", |keys| keys.number("command_us", 0.0..=1e7))?;
        let cache = keys.table("cache", cache)?;
        let write_back = keys.table("write_back", write_back)?;
        let prefetch = keys.table("prefetch", prefetch)?;
        let striping = keys.table("raid", striping)?;
        let member = keys.table("member", member)?;
        Ok(Self {
            depth,
            front_end: micros(front_end),
            // 1 MB/s is a million bytes a second.
            link_bytes_per_s: whole(link * 1e6),
            cache,
            write_back,
            prefetch,
            striping,
            member,
        })
    }
}

fn cache(keys: &mut Keys<'_>) -> Read<Segmentation> {
    let segment_kb = keys.whole("segment_kb", 1..=GIB)?;
    let segments = keys.whole("mb", 1..=GIB)? * 1024 / segment_kb;
    let segments = usize::try_from(segments.max(1)).unwrap_or(usize::MAX);
    Ok(Segmentation { segments, sectors: sectors(segment_kb) })
}

fn write_back(keys: &mut Keys<'_>) -> Read<WriteBack> {
    Ok(WriteBack {
        room: sectors(keys.whole("room_mb", 1..=1 << 20)? * 1024),
        delay: micros(1000.0 * keys.number("delay_ms", 0.0..=1e6)?),
        battery: keys.flag("battery")?,
    })
}

fn prefetch(keys: &mut Keys<'_>) -> Read<Prefetch> {
    Ok(Prefetch {
        from_read: keys.small("from_read", 1..=1000)?,
        unit: sectors(keys.whole("unit_kb", 0..=GIB)?),
        low: sectors(keys.whole("low_kb", 0..=GIB)?),
        streams: usize::try_from(keys.whole("streams", 1..=1_000_000)?).unwrap_or(usize::MAX),
    })
}

fn striping(keys: &mut Keys<'_>) -> Read<Striping> {
    let disks = keys.small("disks", 2..=10_000)?;
    let data = keys.small("data_chunks", 1..=9_999)?;
    if data >= disks {
        let what = "`raid.data_chunks`".to_owned();
        let allowed = format!("fewer than the {disks} disks, as parity takes one more");
        return Err(keys.refuse(Problem::Unexpected { what, found: data.to_string(), allowed }));
    }
    Ok(Striping { disks, data, chunk: sectors(keys.whole("chunk_kb", 1..=GIB)?) })
}

/// The disk, described here or by a file.
fn member(keys: &mut Keys<'_>) -> Read<Parameters> {
    if keys.has("kind") {
        return Parameters::of(keys);
    }
    let name = keys.text("device")?;
    if is_there(&name, keys.path()) {
        return disk_parameters(&name, keys.path());
    }
    let (what, found) = ("`member.device`".to_owned(), format!("{name:?}"));
    let allowed = "a disk that comes with the laboratory, or a file beside this one".to_owned();
    Err(keys.refuse(Problem::Unexpected { what, found, allowed }))
}

/// So many KiB, at most 1 TiB.
fn sectors(kib: u64) -> SectorCount {
    SectorCount(narrow(KIB * kib))
}

/// A number that was held against a range of 32 bits.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).expect("the range is of 32 bits")
}
