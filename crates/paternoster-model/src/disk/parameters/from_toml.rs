//! A disk from our own TOML files, such as `devices/hdd-7200.toml`, which explains each key.

use std::path::Path;
use std::str::FromStr;

use paternoster::Sector;

use super::{Behind, Buffer, Mechanics, Overheads, Parameters};
use crate::devices::device_file;
use crate::disk::cache::Segmentation;
use crate::disk::geometry::Geometry;
use crate::disk::head::Begin;
use crate::disk::layout::{Layout, Sparing, TrackOrder, Zone};
use crate::disk::link::Link;
use crate::disk::ncq::QueueParameters;
use crate::disk::read_ahead::{ReadAheadPolicy, Until};
use crate::disk::seek::{RootThenLine, SeekCurve};
use crate::disk::units::{Millis, real};
use crate::disk::write_back::{WriteBack, WriteBackPolicy};
use crate::parameter_file::{Keys, ParameterError, Problem, Spot, exactly};

type Read<T> = Result<T, ParameterError>;

/// Times in ms, more than any disk takes for anything.
const TIME: std::ops::RangeInclusive<f64> = 0.0..=1e5;
/// Sectors, more than any disk has.
const SECTORS: u64 = 1_000_000_000_000_000;

impl Parameters {
    /// A disk that comes with the laboratory.
    pub fn named(name: &str) -> Option<Self> {
        let text = device_file(name)?;
        Self::from_toml(Path::new(name), text).ok()
    }

    /// Reads a file of ours.
    pub fn read_toml(path: &Path) -> Read<Self> {
        match crate::input::read_input_text(path) {
            Ok(text) => Self::from_toml(path, &text),
            Err(error) => Err(ParameterError { at: Spot::whole(path), problem: error.into() }),
        }
    }

    /// Reads the text of such a file; `path` is what errors call it.
    pub fn from_toml(path: &Path, text: &str) -> Read<Self> {
        let mut keys = Keys::open(path, text)?;
        let parameters = Self::of(&mut keys)?;
        keys.end()?;
        Ok(parameters)
    }

    /// Reads a table that describes a disk as such a file does.
    pub(crate) fn of(keys: &mut Keys<'_>) -> Read<Self> {
        keys.one_of("kind", &[("disk", ())])?;
        let name = keys.description()?;
        Self::read(keys, name)
    }

    /// Reads the other keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>, name: String) -> Read<Self> {
        Ok(Self {
            name,
            layout: keys.table("layout", layout)?,
            mechanics: keys.table("mechanics", mechanics)?,
            link: keys.table("link", link)?,
            overheads: keys.table("overheads", overheads)?,
            buffer: keys.table("buffer", buffer)?,
            queue: keys.table("queue", queue)?,
        })
    }
}

impl FromStr for Parameters {
    type Err = ParameterError;

    fn from_str(text: &str) -> Read<Self> {
        Self::from_toml(Path::new("disk"), text)
    }
}

fn layout(keys: &mut Keys<'_>) -> Read<Layout> {
    const ORDERS: [(&str, TrackOrder); 2] =
        [("forward", TrackOrder::Forward), ("serpentine", TrackOrder::Serpentine)];
    let surfaces = keys.small("surfaces", 1..=10_000)?;
    let order = keys.one_of("order", &ORDERS)?;
    let track_skew = keys.number("track_skew_revolutions", 0.0..=1.0)?;
    let cylinder_skew = keys.number("cylinder_skew_revolutions", 0.0..=1.0)?;
    let end = keys.whole("sectors", 1..=SECTORS)?;
    let zones = if keys.has("sectors_per_track") {
        let sectors_per_track = keys.small("sectors_per_track", 1..=1_000_000)?;
        let cylinders = end.div_ceil(u64::from(surfaces) * u64::from(sectors_per_track));
        let last_cylinder = narrow(cylinders.min(u64::from(u32::MAX)) - 1);
        vec![(last_cylinder, sectors_per_track)]
    } else {
        zone_rows(keys)?
    };
    let mut first_cylinder = 0;
    let zones = zones.into_iter().map(|(last_cylinder, sectors_per_track)| {
        let first = std::mem::replace(&mut first_cylinder, last_cylinder.saturating_add(1));
        Zone {
            first_cylinder: first,
            last_cylinder,
            sectors_per_track,
            offset: 0.0,
            empty: 0,
            track_skew: track_skew * real(sectors_per_track.into()),
            cylinder_skew: cylinder_skew * real(sectors_per_track.into()),
            spares: 0,
            slips: Vec::new(),
            defects: Vec::new(),
        }
    });
    let zones = zones.collect();
    let layout = Layout { surfaces, order, sparing: Sparing::None, zones, end: Some(Sector(end)) };
    match Geometry::new(layout.clone()) {
        Ok(_) => Ok(layout),
        Err(error) => Err(keys.refuse(error.into())),
    }
}

/// The last cylinder of each zone, and its sectors a track.
fn zone_rows(keys: &mut Keys<'_>) -> Read<Vec<(u32, u32)>> {
    let mut zones = Vec::new();
    for [last_cylinder, sectors_per_track] in keys.rows::<2>("zones")? {
        let numbers = (exactly(last_cylinder), exactly(sectors_per_track));
        let (Some(last_cylinder), Some(sectors_per_track @ 1..)) = numbers else {
            let what = format!("row {} of `layout.zones`", zones.len() + 1);
            let found = format!("[{last_cylinder}, {sectors_per_track}]");
            let allowed = "the last cylinder and the sectors a track, whole numbers".to_owned();
            return Err(keys.refuse(Problem::Unexpected { what, found, allowed }));
        };
        zones.push((last_cylinder, sectors_per_track));
    }
    Ok(zones)
}

fn mechanics(keys: &mut Keys<'_>) -> Read<Mechanics> {
    Ok(Mechanics {
        rpm: keys.number("rpm", 1.0..=1e6)?,
        seek: keys.table("seek", seek)?,
        head_switch: Millis(keys.number("head_switch_ms", TIME)?),
        write_settle: Millis(keys.number("write_settle_ms", -1e5..=1e5)?),
    })
}

fn seek(keys: &mut Keys<'_>) -> Read<SeekCurve> {
    let scale = keys.number_or("scale", 1.0, 0.01..=100.0)?;
    if keys.has("points_ms") {
        let mut points = Vec::new();
        for [distance, time] in keys.rows::<2>("points_ms")? {
            let Some(distance @ 1..) = exactly(distance) else {
                let what = format!("the distance of row {} of `points_ms`", points.len() + 1);
                let allowed = "a whole number of cylinders from 1".to_owned();
                let found = distance.to_string();
                return Err(keys.refuse(Problem::Unexpected { what, found, allowed }));
            };
            points.push((distance, Millis(time) * scale));
        }
        points.sort_by_key(|&(distance, _)| distance);
        points.dedup_by_key(|&mut (distance, _)| distance);
        return Ok(SeekCurve::Points(points));
    }
    let stroke = keys.number("stroke_cylinders", 1.0..=1e9)?;
    let knee = keys.number("knee", 0.0..=1.0)?;
    let [root_at_0, root] = keys.row("root_ms")?;
    let [line_at_0, line] = keys.row("line_ms")?;
    Ok(SeekCurve::Formula(RootThenLine {
        short: Vec::new(),
        root: (Millis(root_at_0) * scale, Millis(root) * (scale / stroke.sqrt())),
        line: (Millis(line_at_0) * scale, Millis(line) * (scale / stroke)),
        knee: knee * stroke,
    }))
}

fn link(keys: &mut Keys<'_>) -> Read<Link> {
    // 1 MB/s is 1000 bytes a ms.
    let mut sector = |key| Ok(Millis(0.512 / keys.number(key, 0.001..=1e6)?));
    Ok(Link { read_sector: sector("read_mb_per_s")?, write_sector: sector("write_mb_per_s")? })
}

fn overheads(keys: &mut Keys<'_>) -> Read<Overheads> {
    let mut time = |key| Ok(Millis(keys.number(key, TIME)?));
    let same = |time| Behind { read: time, write: time };
    Ok(Overheads {
        command: time("command_ms")?,
        read_hit: same(time("read_hit_ms")?),
        read_miss: same(time("read_miss_ms")?),
        write_hit: same(time("write_hit_ms")?),
        write_miss: same(time("write_miss_ms")?),
        ..Overheads::default()
    })
}

fn buffer(keys: &mut Keys<'_>) -> Read<Buffer> {
    const BEGINS: [(&str, Begin); 2] =
        [("at-first", Begin::AtFirst), ("anywhere", Begin::Anywhere)];
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(Buffer {
        segmentation: Segmentation {
            segments: count(keys.whole("segments", 1..=1_000_000)?),
            sectors: keys.whole("segment_sectors", 1..=1_000_000_000)?,
            write_segments: count(keys.whole("write_segments", 1..=1_000_000)?),
            writes_apart: false,
        },
        answers_reads: true,
        answers_reads_of_written: true,
        read_begin: keys.one_of("read_begin", &BEGINS)?,
        write_begin: keys.one_of("write_begin", &BEGINS)?,
        read_mark: 0.0,
        write_mark: 0.0,
        marks_of_command: true,
        read_ahead: keys.table("read_ahead", read_ahead)?,
        write_back: keys.table("write_back", write_back)?,
    })
}

fn read_ahead(keys: &mut Keys<'_>) -> Read<ReadAheadPolicy> {
    const UNTIL: [(&str, Until); 4] = [
        ("nothing", Until::Nothing),
        ("track", Until::Track),
        ("cylinder", Until::Cylinder),
        ("segment", Until::Segment),
    ];
    Ok(ReadAheadPolicy {
        until: keys.one_of("until", &UNTIL)?,
        most: keys.whole("most_sectors", 0..=SECTORS)?,
        least: keys.whole("least_sectors", 0..=SECTORS)?,
        over_requested: keys.flag("over_requested")?,
        after_hit: keys.flag("after_hit")?,
        keeps_passed: keys.flag("keeps_passed")?,
        stops_in_sector: true,
        write_stops: true,
    })
}

fn write_back(keys: &mut Keys<'_>) -> Read<WriteBackPolicy> {
    const MODES: [(&str, WriteBack); 4] = [
        ("off", WriteBack::Off),
        ("appending", WriteBack::Appending),
        ("one-run", WriteBack::OneRun),
        ("sorted", WriteBack::Sorted),
    ];
    Ok(WriteBackPolicy {
        mode: keys.one_of("mode", &MODES)?,
        idle: Millis(keys.number("idle_ms", TIME)?),
        runs: usize::try_from(keys.whole("runs", 1..=1_000_000)?).unwrap_or(usize::MAX),
        joins: true,
    })
}

fn queue(keys: &mut Keys<'_>) -> Read<QueueParameters> {
    Ok(QueueParameters {
        depth: keys.small("depth", 1..=65_536)?,
        longest_wait: Millis(keys.number("longest_wait_ms", TIME)?),
    })
}

/// A number that was checked to be small.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
