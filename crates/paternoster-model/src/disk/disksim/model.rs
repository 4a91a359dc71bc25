//! A `dm_disk` block: the layout and the mechanics.
//!
//! What the manual leaves open, or what the numbers of real disks show:
//!
//! - `Sparing scheme used`: 0 none, 1 tracks at the zone's end, 8 sectors at the end of each range
//!   of cylinders, 9 sectors at the zone's end. The sizes of disks with tracks show that spares in
//!   use for slips are among those counted, and that slips are then numbers of tracks.
//! - With another number, spares are where the zones then hold most nearly what `Block count` says.
//! - Skews and offsets are sectors, unless `Skew units` says revolutions.

use super::super::geometry::Geometry;
use super::super::layout::{Layout, Sparing, TrackOrder, Zone};
use super::super::parameters::Mechanics;
use super::super::seek::{Lee, RootThenLine, SeekCurve};
use super::super::units::{Millis, real, whole};
use super::fields::Fields;
use super::seek_file;
use crate::parameter_file::ParameterError;

use paternoster::Sector;

/// More than any disk has.
const CYLINDERS: u32 = 100_000_000;
const SECTORS: f64 = 1e15;

/// Reads the layout.
pub(super) fn layout(model: Fields<'_>) -> Result<Layout, ParameterError> {
    let fields = model.block("Layout Model", "dm_layout_g1")?;
    let order = match fields.whole_or("LBN-to-PBN mapping scheme", 0, 0..=2)? {
        0 => TrackOrder::Forward,
        1 => TrackOrder::Serpentine,
        _ => TrackOrder::SerpentineByZone,
    };
    let zones = fields.blocks("Zones", "dm_layout_g1_zone")?;
    let in_revolutions = skews_in_revolutions(fields)?;
    let zones =
        zones.into_iter().map(|fields| zone(fields, in_revolutions)).collect::<Result<_, _>>()?;
    let end = whole(model.number("Block count", 1.0..=SECTORS)?);
    let mut layout = Layout {
        surfaces: model.whole("Number of data surfaces", 1..=10_000)?,
        order,
        sparing: Sparing::None,
        zones,
        end: Some(Sector(end)),
    };
    let scheme = fields.whole_or("Sparing scheme used", 0, 0..=1000)?;
    let range = fields.whole_or("Rangesize for sparing", 1, 1..=CYLINDERS)?;
    layout.sparing = match scheme {
        0 => Sparing::None,
        1 => Sparing::TracksPerZone,
        8 => Sparing::SectorsPerRange { cylinders: range },
        9 => Sparing::SectorsPerZone,
        _ => nearest_to(end, &layout, range),
    };
    match Geometry::new(layout.clone()) {
        Ok(_) => Ok(layout),
        Err(error) => Err(fields.source.error(fields.block.kind.at, error.into())),
    }
}

fn nearest_to(end: u64, layout: &Layout, range: u32) -> Sparing {
    let candidates = [
        Sparing::SectorsPerRange { cylinders: 1 },
        Sparing::SectorsPerRange { cylinders: range },
        Sparing::SectorsPerZone,
        Sparing::SectorsPerTrack,
        Sparing::TracksPerZone,
    ];
    let distance = |sparing: &Sparing| {
        let layout = Layout { sparing: *sparing, ..layout.clone() };
        layout.sectors().map_or(u64::MAX, |sectors| sectors.abs_diff(end))
    };
    candidates.into_iter().min_by_key(distance).unwrap_or(Sparing::None)
}

fn skews_in_revolutions(layout: Fields<'_>) -> Result<bool, ParameterError> {
    const UNITS: &str = "sectors or revolutions";
    if layout.value("Skew units").is_none() {
        return Ok(false);
    }
    match layout.text("Skew units", UNITS)?.0 {
        "sectors" => Ok(false),
        "revolutions" => Ok(true),
        _ => Err(layout.refuse("Skew units", UNITS)),
    }
}

fn zone(fields: Fields<'_>, in_revolutions: bool) -> Result<Zone, ParameterError> {
    let sectors_per_track = fields.whole("Blocks per track", 1..=10_000_000)?;
    let unit = if in_revolutions { real(sectors_per_track.into()) } else { 1.0 };
    let turned = |key| Ok(fields.number_or_0(key, 0.0..=1e7)? * unit);
    let indexes = |key| -> Result<Vec<u64>, ParameterError> {
        if fields.value(key).is_none() {
            return Ok(Vec::new());
        }
        Ok(fields.numbers(key, 0.0..=SECTORS)?.into_iter().map(whole).collect())
    };
    let mut slips = indexes("slips")?;
    slips.sort_unstable();
    slips.dedup();
    let moved = indexes("defects")?;
    let (pairs, odd) = moved.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(fields.refuse("defects", "pairs: where a sector should be and where it is"));
    }
    let mut defects: Vec<_> = pairs.iter().map(|&[should, is]| (should, is)).collect();
    defects.sort_unstable();
    defects.dedup_by_key(|&mut (should, _)| should);
    Ok(Zone {
        first_cylinder: fields.whole("First cylinder number", 0..=CYLINDERS)?,
        last_cylinder: fields.whole("Last cylinder number", 0..=CYLINDERS)?,
        sectors_per_track,
        offset: turned("Offset of first block")?,
        empty: whole(fields.number_or_0("Empty space at zone front", 0.0..=SECTORS)?),
        track_skew: turned("Skew for track switch")?,
        cylinder_skew: turned("Skew for cylinder switch")?,
        spares: whole(fields.number_or_0("Number of spares", 0.0..=SECTORS)?),
        slips,
        defects,
    })
}

/// Reads the mechanics.
pub(super) fn mechanics(model: Fields<'_>) -> Result<Mechanics, ParameterError> {
    let fields = model.block("Mechanical Model", "dm_mech_g1")?;
    let allowed = "trackSwitchPlusRotation: the other ones have no rotation";
    if fields.text("Access time type", allowed)?.0 != "trackSwitchPlusRotation" {
        return Err(fields.refuse("Access time type", allowed));
    }
    Ok(Mechanics {
        rpm: fields.number("Rotation speed (in rpms)", 1.0..=1e6)?,
        seek: seek(fields, model.whole("Number of cylinders", 1..=CYLINDERS)?)?,
        head_switch: fields.time("Head switch time")?,
        write_settle: Millis(fields.number_or_0("Add. write settling delay", -1e5..=1e5)?),
    })
}

fn seek(fields: Fields<'_>, cylinders: u32) -> Result<SeekCurve, ParameterError> {
    let types = "linear, curve, constant, hpl, hplplus10 or extracted";
    let full = cylinders.saturating_sub(1).max(2);
    let single = || fields.time("Single cylinder seek time");
    match fields.text("Seek type", types)?.0 {
        "linear" => {
            let stroke = fields.time("Full strobe seek time")?;
            Ok(SeekCurve::Points(vec![(1, single()?), (full, stroke)]))
        }
        "curve" => {
            let (average, stroke) =
                (fields.time("Average seek time")?, fields.time("Full strobe seek time")?);
            Ok(SeekCurve::Lee(Lee::new(single()?, average, stroke, cylinders)))
        }
        "constant" => Ok(SeekCurve::Points(vec![(1, fields.time("Average seek time")?)])),
        "hpl" => Ok(SeekCurve::Formula(formula(fields, Vec::new())?)),
        "hplplus10" => {
            let first = fields.numbers("First ten seek times", 0.0..=1e5)?;
            Ok(SeekCurve::Formula(formula(fields, first.into_iter().map(Millis).collect())?))
        }
        "extracted" => {
            let (name, at) = fields.text("Full seek curve", "a file with measured seek times")?;
            Ok(SeekCurve::Points(seek_file::read(fields.source, name, at)?))
        }
        _ => Err(fields.refuse("Seek type", types)),
    }
}

/// `HPL seek equation values`: the knee, the root's two, the line's two, and the time of one
/// cylinder, or -1 where the root holds there, too.
fn formula(fields: Fields<'_>, mut short: Vec<Millis>) -> Result<RootThenLine, ParameterError> {
    const KEY: &str = "HPL seek equation values";
    let values = fields.numbers(KEY, -1.0..=1e8)?;
    let [knee, root_at_0, root, line_at_0, line, single] = values[..] else {
        return Err(fields.refuse(KEY, "a list of six numbers"));
    };
    if short.is_empty() && single >= 0.0 {
        short.push(Millis(single));
    }
    Ok(RootThenLine {
        short,
        root: (Millis(root_at_0), Millis(root)),
        line: (Millis(line_at_0), Millis(line)),
        knee,
    })
}
