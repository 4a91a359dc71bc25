//! The layout of a disk: surfaces, zones of equally many sectors a track, skews and spares. Where a
//! sector lies by it is `geometry`'s.

use paternoster::Sector;
use thiserror::Error;

/// More sectors than any disk has: 512 PiB.
pub(super) const MOST: u64 = 1 << 50;

/// The layout of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Surfaces with data.
    pub surfaces: u32,
    /// The order in which tracks are numbered.
    pub order: TrackOrder,
    /// Where spare sectors are.
    pub sparing: Sparing,
    /// From the outer rim inwards; the first has sector 0.
    pub zones: Vec<Zone>,
    /// The disk's end. If the zones hold less, the last one goes on; none is what they hold.
    pub end: Option<Sector>,
}

/// The order in which the tracks of a cylinder are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackOrder {
    /// Every cylinder begins at the first surface.
    Forward,
    /// Cylinders of odd numbers begin at the last surface: a step to the next cylinder needs no
    /// other head.
    Serpentine,
    /// The same, but cylinders are counted from the zone's first.
    SerpentineByZone,
}

/// Where the spare sectors are, and what the numbers of spares, slips and defects of a zone count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparing {
    /// Nowhere.
    None,
    /// Tracks at the zone's end. Slips and defects are tracks.
    TracksPerZone,
    /// Sectors at the zone's end.
    SectorsPerZone,
    /// Sectors at the end of every so many cylinders of the zone.
    SectorsPerRange {
        /// How many cylinders share the spares.
        cylinders: u32,
    },
    /// Sectors at the end of every track.
    SectorsPerTrack,
}

/// Cylinders with equally many sectors a track.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Its first cylinder.
    pub first_cylinder: u32,
    /// Its last cylinder.
    pub last_cylinder: u32,
    /// Sectors a track.
    pub sectors_per_track: u32,
    /// By how many sectors its first track is turned.
    pub offset: f64,
    /// Sectors at its front that hold no data.
    pub empty: u64,
    /// Skew from track to track of a cylinder, in sectors.
    pub track_skew: f64,
    /// Skew from the last track of a cylinder to the first of the next, in sectors.
    pub cylinder_skew: f64,
    /// How many spares there are where [`Sparing`] says, those in use included.
    pub spares: u64,
    /// What is left out: sectors or tracks, counted from the zone's first behind what is empty (a
    /// track from its very first), rising.
    pub slips: Vec<u64>,
    /// What is elsewhere: pairs of where it should be and where it is, rising by the first.
    pub defects: Vec<(u64, u64)>,
}

/// A layout that no disk can have.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LayoutError {
    /// There is nothing to store on.
    #[error("the disk has no surfaces or no zones")]
    Empty,
    /// A zone ends before it begins, or begins before the last one ends. Two may share a cylinder.
    #[error(
        "zone {zone} has cylinders {first} to {last}, which must rise and not begin before {before}"
    )]
    Cylinders {
        /// The zone, from 0.
        zone: usize,
        /// Its first cylinder.
        first: u32,
        /// Its last cylinder.
        last: u32,
        /// The last cylinder of the zone before, or none.
        before: String,
    },
    /// The zones hold more than any disk does.
    #[error("the zones hold more than {MOST} sectors, in zone {zone} at the latest")]
    TooLarge {
        /// The zone, from 0.
        zone: usize,
    },
    /// A zone has no room for data.
    #[error("zone {zone} has room for {room} sectors, of which {taken} hold no data")]
    NoRoom {
        /// The zone, from 0.
        zone: usize,
        /// Its sectors.
        room: u64,
        /// The spare and the empty ones.
        taken: u64,
    },
}

impl Layout {
    /// How many sectors of data its zones hold together, if each holds any.
    pub(super) fn sectors(&self) -> Option<u64> {
        self.zones.iter().enumerate().map(|(index, zone)| self.held(index, zone).ok()).sum()
    }

    /// How many sectors of data a zone holds, which is at least one.
    pub(super) fn held(&self, index: usize, zone: &Zone) -> Result<u64, LayoutError> {
        let per_track = u64::from(zone.sectors_per_track);
        let cylinders = u64::from(zone.last_cylinder) - u64::from(zone.first_cylinder) + 1;
        let tracks = cylinders * u64::from(self.surfaces);
        let room = tracks.saturating_mul(per_track);
        if room > MOST {
            return Err(LayoutError::TooLarge { zone: index });
        }
        let (times, each) = match self.sparing {
            Sparing::None => (0, 0),
            Sparing::TracksPerZone => (zone.spares, per_track),
            Sparing::SectorsPerZone => (1, zone.spares),
            Sparing::SectorsPerRange { cylinders: range } => {
                let range = u64::from(range).max(1);
                // Spares fill no range.
                let in_range = range.saturating_mul(per_track * u64::from(self.surfaces));
                let fits = zone.spares < in_range;
                (cylinders.div_ceil(range), if fits { zone.spares } else { room })
            }
            Sparing::SectorsPerTrack => {
                (tracks, if zone.spares < per_track { zone.spares } else { room })
            }
        };
        let taken = times.saturating_mul(each).saturating_add(zone.empty);
        match room.checked_sub(taken) {
            Some(held) if held > 0 => Ok(held),
            _ => Err(LayoutError::NoRoom { zone: index, room, taken }),
        }
    }
}
