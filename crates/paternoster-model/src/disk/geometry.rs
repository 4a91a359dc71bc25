//! Where a sector is: on which cylinder and surface, and at which angle its data begin.
//!
//! ```text
//!   sector ─▶ zone ─▶ place in the zone, behind what is kept empty at its front
//!                      │  spares: tracks or sectors that hold nothing until something is defective
//!                      │  slips:  defective ones, left out; all behind them are one further on
//!                      ▼
//!            track, sector of the track ─▶ cylinder, surface
//!                                          angle = (sector + skew of the track) / sectors a track
//! ```
//!
//! Tracks are skewed so that the next sector comes below the head just after the head has moved to
//! the next track. A zone's first track begins at its offset, each track of a cylinder is the track
//! skew behind the one before it, and the first of the next cylinder the cylinder skew behind.

use paternoster::Sector;

use super::layout::{Layout, LayoutError, MOST, Sparing, TrackOrder, Zone};
use super::units::real;

/// Where a run of sectors begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) cylinder: u32,
    pub(super) surface: u32,
    /// Where on the track its data begin, in revolutions.
    pub(super) angle: f64,
    /// How many sectors pass below the head one behind the other from here on, on this track.
    pub(super) sectors: u64,
    /// Sectors a track.
    pub(super) per_track: u32,
    /// Its number on the track, from the track's own first sector.
    pub(super) on_track: u64,
}

/// A layout that was checked, with what each zone holds.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    layout: Layout,
    /// The first sector of each zone.
    firsts: Vec<Sector>,
    end: Sector,
}

impl Geometry {
    pub(super) fn new(layout: Layout) -> Result<Self, LayoutError> {
        if layout.surfaces == 0 || layout.zones.is_empty() {
            return Err(LayoutError::Empty);
        }
        let mut before = None;
        let mut sectors = 0;
        let mut firsts = Vec::new();
        for (index, zone) in layout.zones.iter().enumerate() {
            let (first, last) = (zone.first_cylinder, zone.last_cylinder);
            if last < first || before.is_some_and(|before| first < before) {
                let before = before.map_or("none".to_owned(), |before: u32| before.to_string());
                return Err(LayoutError::Cylinders { zone: index, first, last, before });
            }
            before = Some(last);
            firsts.push(Sector(sectors));
            sectors += layout.held(index, zone)?;
            if sectors > MOST {
                return Err(LayoutError::TooLarge { zone: index });
            }
        }
        let end = layout.end.unwrap_or(Sector(sectors));
        Ok(Self { layout, firsts, end })
    }

    /// The sector behind the last one.
    pub(super) fn end(&self) -> Sector {
        self.end
    }

    /// Where `sector` is, which is before the end.
    pub(super) fn place(&self, sector: Sector) -> Place {
        let index = self.firsts.partition_point(|first| *first <= sector) - 1;
        let zone = &self.layout.zones[index];
        let per_track = u64::from(zone.sectors_per_track);
        // The last zone holds all that is left.
        let next = self.firsts.get(index + 1).unwrap_or(&self.end).0.max(sector.0 + 1);
        let (raw, sectors) = self.raw(zone, sector.0 - self.firsts[index].0);
        let sectors = sectors.min(next - sector.0);
        let (track, on_track) = (raw / per_track, raw % per_track);
        let surfaces = u64::from(self.layout.surfaces);
        let (step, turn) = (track / surfaces, track % surfaces);
        let cylinder = u64::from(zone.first_cylinder) + step;
        let reversed = match self.layout.order {
            TrackOrder::Forward => false,
            TrackOrder::Serpentine => cylinder % 2 == 1,
            TrackOrder::SerpentineByZone => step % 2 == 1,
        };
        let surface = if reversed { surfaces - 1 - turn } else { turn };
        let skew = zone.offset
            + real(step) * (zone.cylinder_skew + real(surfaces - 1) * zone.track_skew)
            + real(turn) * zone.track_skew;
        let revolutions = (real(on_track) + skew) / real(per_track);
        Place {
            cylinder: u32::try_from(cylinder).unwrap_or(u32::MAX),
            surface: u32::try_from(surface).unwrap_or(u32::MAX),
            angle: revolutions - revolutions.floor(),
            sectors: sectors.min(per_track - on_track),
            per_track: zone.sectors_per_track,
            on_track,
        }
    }

    /// The sector behind the last one of the track that `sector` is on.
    pub(super) fn track_end(&self, sector: Sector) -> Sector {
        self.end_while(sector, |from, to| {
            (from.cylinder, from.surface) == (to.cylinder, to.surface)
        })
    }

    /// The sector behind the last one of the cylinder that `sector` is on.
    pub(super) fn cylinder_end(&self, sector: Sector) -> Sector {
        self.end_while(sector, |from, to| from.cylinder == to.cylinder)
    }

    fn end_while(&self, sector: Sector, same: impl Fn(&Place, &Place) -> bool) -> Sector {
        let from = self.place(sector);
        let (mut next, mut sectors) = (sector, from.sectors);
        loop {
            next = Sector(next.0 + sectors);
            if next >= self.end {
                return self.end;
            }
            let to = self.place(next);
            if !same(&from, &to) {
                return next;
            }
            sectors = to.sectors;
        }
    }

    /// Where in the zone its data sector `index` is, counted in sectors of all kinds, and how many
    /// from there on follow one another.
    fn raw(&self, zone: &Zone, index: u64) -> (u64, u64) {
        let per_track = u64::from(zone.sectors_per_track);
        let per_cylinder = per_track * u64::from(self.layout.surfaces);
        match self.layout.sparing {
            Sparing::TracksPerZone => {
                let index = index + zone.empty;
                let (track, on_track) = (index / per_track, index % per_track);
                let (track, _) = zone.moved(0, track, 1);
                (track * per_track + on_track, per_track - on_track)
            }
            Sparing::None | Sparing::SectorsPerZone => {
                let (raw, sectors) = zone.moved(0, index, u64::MAX);
                (raw + zone.empty, sectors)
            }
            Sparing::SectorsPerRange { cylinders } => {
                let cylinders = u64::from(cylinders).max(1);
                zone.raw_in_ranges(index, per_cylinder.saturating_mul(cylinders))
            }
            Sparing::SectorsPerTrack => zone.raw_in_ranges(index, per_track),
        }
    }
}

impl Zone {
    /// The same where every `range` sectors end with spares.
    fn raw_in_ranges(&self, index: u64, range: u64) -> (u64, u64) {
        let data = range - self.spares;
        let (before, in_range) = (index / data, index % data);
        let begins = before * range;
        let (raw, sectors) = self.moved(begins, begins + in_range, data - in_range);
        (raw + self.empty, sectors)
    }

    /// Where sector or track `index` is, of those that share the spares from `begins` on, and how
    /// many from it on, at most `count`, follow.
    fn moved(&self, begins: u64, index: u64, count: u64) -> (u64, u64) {
        let slips = &self.slips[self.slips.partition_point(|&slip| slip < begins)..];
        // It is behind a slip if it is, with all slips before that, not before it.
        let (mut slipped, mut upper) = (0, slips.len());
        while slipped < upper {
            let middle = usize::midpoint(slipped, upper);
            let behind = slips[middle] <= index + middle as u64;
            if behind { slipped = middle + 1 } else { upper = middle }
        }
        let at = index + slipped as u64;
        let to_slip = slips.get(slipped).map_or(count, |slip| slip - at);
        let defect = self.defects.partition_point(|&(should, _)| should < at);
        match self.defects.get(defect) {
            Some(&(should, is)) if should == at => (is, 1),
            Some(&(should, _)) => (at, count.min(to_slip).min(should - at)),
            None => (at, count.min(to_slip)),
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "worked out by hand, and exact")]
mod tests {
    use super::*;

    /// Four sectors a track, two surfaces, four cylinders; then three a track, two cylinders.
    fn layout(order: TrackOrder, sparing: Sparing, spares: u64, slips: Vec<u64>) -> Layout {
        let zone = |first_cylinder, last_cylinder, sectors_per_track, slips| Zone {
            first_cylinder,
            last_cylinder,
            sectors_per_track,
            offset: 0.5,
            empty: u64::from(sectors_per_track),
            track_skew: 1.0,
            cylinder_skew: 2.0,
            spares,
            slips,
            defects: Vec::new(),
        };
        let zones = vec![zone(1, 4, 4, slips), zone(6, 7, 3, Vec::new())];
        Layout { surfaces: 2, order, sparing, zones, end: None }
    }

    /// All places in order, counted sector by sector: what is empty, slipped or spare has none.
    fn counted(layout: &Layout) -> Vec<(u32, u32, u64)> {
        let mut places = Vec::new();
        for zone in &layout.zones {
            let per_track = u64::from(zone.sectors_per_track);
            let mut of_zone = Vec::new();
            for cylinder in zone.first_cylinder..=zone.last_cylinder {
                let odd = match layout.order {
                    TrackOrder::Forward => false,
                    TrackOrder::Serpentine => cylinder % 2 == 1,
                    TrackOrder::SerpentineByZone => (cylinder - zone.first_cylinder) % 2 == 1,
                };
                for turn in 0..layout.surfaces {
                    let surface = if odd { layout.surfaces - 1 - turn } else { turn };
                    of_zone.extend((0..per_track).map(|on_track| (cylinder, surface, on_track)));
                }
            }
            let room = of_zone.len() as u64 - zone.empty;
            let per_cylinder = per_track * u64::from(layout.surfaces);
            let (range, spares) = match layout.sparing {
                Sparing::None => (room, 0),
                Sparing::SectorsPerZone => (room, zone.spares),
                Sparing::TracksPerZone => (room, zone.spares * per_track),
                Sparing::SectorsPerRange { cylinders } => {
                    (per_cylinder * u64::from(cylinders), zone.spares)
                }
                Sparing::SectorsPerTrack => (per_track, zone.spares),
            };
            let by_track = layout.sparing == Sparing::TracksPerZone;
            let slipped = |raw: u64| {
                let index = if by_track { (raw + zone.empty) / per_track } else { raw };
                zone.slips.contains(&index)
            };
            let mut held = 0;
            for begins in (0..room).step_by(usize::try_from(range).unwrap()) {
                let left = layout.held(0, zone).unwrap() - held;
                let data = (range - spares).min(left);
                let places_of_range = (begins..(begins + range).min(room))
                    .filter(|&raw| !slipped(raw))
                    .take(usize::try_from(data).unwrap());
                for raw in places_of_range {
                    places.push(of_zone[usize::try_from(raw + zone.empty).unwrap()]);
                    held += 1;
                }
            }
        }
        places
    }

    fn check(layout: &Layout) {
        let counted = counted(layout);
        let geometry = Geometry::new(layout.clone()).unwrap();
        assert_eq!(geometry.end(), Sector(counted.len() as u64), "{layout:?}");
        for (sector, expected) in counted.iter().enumerate() {
            let place = geometry.place(Sector(sector as u64));
            let (cylinder, surface, on_track) = *expected;
            assert_eq!((place.cylinder, place.surface, place.on_track), *expected, "{layout:?}");
            for (follows, more) in counted[sector..].iter().zip(0..place.sectors) {
                assert_eq!(*follows, (cylinder, surface, on_track + more), "{layout:?}");
            }
        }
    }

    #[test]
    fn places_are_those_counted_sector_by_sector() {
        let orders = [TrackOrder::Forward, TrackOrder::Serpentine, TrackOrder::SerpentineByZone];
        for order in orders {
            check(&layout(order, Sparing::None, 0, Vec::new()));
            check(&layout(order, Sparing::SectorsPerZone, 4, vec![2, 3, 9]));
            check(&layout(order, Sparing::SectorsPerTrack, 1, vec![5]));
            check(&layout(order, Sparing::SectorsPerRange { cylinders: 2 }, 3, vec![1, 2, 18]));
            check(&layout(order, Sparing::TracksPerZone, 2, vec![2, 3]));
        }
    }

    #[test]
    fn skew_turns_each_track_behind_the_one_before() {
        let geometry =
            Geometry::new(layout(TrackOrder::Forward, Sparing::None, 0, Vec::new())).unwrap();
        // Sector 0 is on the second track, as the first is empty: offset 0.5 + skew 1 of 4.
        assert_eq!(geometry.place(Sector(0)).angle, 0.375);
        // The next cylinder's first track: 2 more. Its second: 1 more, which is a revolution.
        assert_eq!(geometry.place(Sector(4)).angle, 0.875);
        assert_eq!(geometry.place(Sector(8)).angle, 0.125);
    }

    #[test]
    fn defective_sector_is_where_its_pair_says() {
        let mut layout = layout(TrackOrder::Forward, Sparing::SectorsPerZone, 4, Vec::new());
        layout.zones[0].defects = vec![(1, 26)];
        let geometry = Geometry::new(layout).unwrap();
        assert_eq!(geometry.place(Sector(0)).sectors, 1);
        // Sector 26 behind the 4 empty ones: 30 = track 7 of the zone, its third sector.
        let place = geometry.place(Sector(1));
        assert_eq!((place.cylinder, place.surface, place.on_track), (4, 1, 2));
        assert_eq!(geometry.place(Sector(2)).on_track, 2);
    }

    #[test]
    fn tracks_and_cylinders_end_where_they_do() {
        let geometry =
            Geometry::new(layout(TrackOrder::Forward, Sparing::None, 0, Vec::new())).unwrap();
        assert_eq!(geometry.track_end(Sector(5)), Sector(8));
        assert_eq!(geometry.cylinder_end(Sector(5)), Sector(12));
        assert_eq!(geometry.cylinder_end(Sector(36)), geometry.end());
    }

    #[test]
    fn layout_that_no_disk_can_have_is_refused() {
        let good = layout(TrackOrder::Forward, Sparing::None, 0, Vec::new());
        let refused = |change: fn(&mut Layout)| {
            let mut layout = good.clone();
            change(&mut layout);
            Geometry::new(layout).expect_err("impossible")
        };
        assert_eq!(refused(|layout| layout.zones.clear()), LayoutError::Empty);
        assert_eq!(
            refused(|layout| layout.zones[1].first_cylinder = 3),
            LayoutError::Cylinders { zone: 1, first: 3, last: 7, before: "4".to_owned() }
        );
        assert_eq!(
            refused(|layout| layout.zones[0].empty = 32),
            LayoutError::NoRoom { zone: 0, room: 32, taken: 32 }
        );
        assert_eq!(
            refused(|layout| {
                layout.zones[1].last_cylinder = u32::MAX;
                layout.zones[1].sectors_per_track = u32::MAX;
            }),
            LayoutError::TooLarge { zone: 1 }
        );
    }
}
