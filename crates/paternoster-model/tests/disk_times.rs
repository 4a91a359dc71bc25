//! What a disk with moving parts does, worked out by hand on a small one (`common/small_disk.rs`).

#![expect(clippy::float_cmp, reason = "whole microseconds, worked out by hand")]

#[path = "common/small_disk.rs"]
mod small_disk;

use paternoster::{Instant, Nanos, Sector, SectorCount};
use paternoster_model::disk::{Disk, Parameters};
use paternoster_model::{Chance, Command, Completion, Model, Op, Spent};
use proptest::prelude::*;
use small_disk::small_disk;

struct Rig {
    disk: Disk,
    now: Instant,
}

impl Rig {
    /// The small disk with some pieces of its file replaced.
    fn small(changes: &[(&str, &str)]) -> Self {
        Self { disk: Disk::new(small_disk(changes)).expect("a layout"), now: Instant::START }
    }

    fn submit(&mut self, tag: u32, op: Op, sector: u64, sectors: u32) {
        let (sector, sectors) = (Sector(sector), SectorCount(sectors));
        self.disk.submit(
            self.now,
            Command { tag, op, durable: false, sector, sectors, chance: Chance::default() },
        );
    }

    fn submit_durable(&mut self, sector: u64, sectors: u32) {
        let (sector, sectors) = (Sector(sector), SectorCount(sectors));
        let command = Command {
            tag: 0,
            op: Op::Write,
            durable: true,
            sector,
            sectors,
            chance: Chance::default(),
        };
        self.disk.submit(self.now, command);
    }

    fn advance(&mut self, millis: u64) {
        self.now = self.now + Nanos::from_millis(millis);
    }

    /// Waits for the next completion. Returns it with the time in ms.
    fn complete(&mut self) -> (Completion, f64) {
        self.now = self.disk.poll_timeout().expect("something is being served");
        let completion = self.disk.poll(self.now).expect("it is due");
        (completion, millis(self.now.since_start()))
    }

    /// Serves one command. Returns when it completed, in ms.
    fn serve(&mut self, op: Op, sector: u64, sectors: u32) -> f64 {
        self.submit(0, op, sector, sectors);
        self.complete().1
    }
}

fn millis(span: Nanos) -> f64 {
    f64::from(u32::try_from(span.as_nanos() / 1000).expect("a short run")) / 1000.0
}

fn sum(spent: Spent) -> Nanos {
    spent.seek + spent.rotation + spent.transfer + spent.overhead
}

#[test]
fn read_takes_its_overhead_the_seek_the_rotation_and_the_transfer() {
    let mut rig = Rig::small(&[]);
    // At 0.5 the head leaves, at 4.5 it is on cylinder 50, sector 503 begins to pass at 13 (3 has
    // passed at 3), is over at 14, and has left at 14.1.
    rig.submit(7, Op::Read, 503, 1);
    let (completion, at) = rig.complete();
    assert_eq!((completion.tag, at), (7, 14.1));
    let spent = [0.5, 4.0, 8.5, 1.1];
    let parts = completion.spent;
    let parts = [parts.overhead, parts.seek, parts.rotation, parts.transfer].map(millis);
    assert_eq!(parts, spent);
}

#[test]
fn next_track_comes_a_revolution_later_without_skew_and_at_once_with_it() {
    // Sectors 8 and 9 pass at 8 to 10; sector 10 of the next cylinder begins to at 10, when the
    // head has 2 ms to go, and so again at 20.
    assert_eq!(Rig::small(&[]).serve(Op::Read, 8, 3), 21.1);
    let skew = ("cylinder_skew_revolutions = 0", "cylinder_skew_revolutions = 0.2");
    assert_eq!(Rig::small(&[skew]).serve(Op::Read, 8, 3), 13.1);
}

#[test]
fn read_ahead_answers_up_to_the_end_of_the_track() {
    let mut rig = Rig::small(&[]);
    assert_eq!(rig.serve(Op::Read, 2, 2), 4.1);
    rig.advance(100);
    // Sectors 4 to 9 were read ahead: overhead and link only.
    assert_eq!(rig.serve(Op::Read, 4, 6), 105.2);
    // Sector 10 was not: the head reaches it at 107.7, it passes from 110 on.
    assert_eq!(rig.serve(Op::Read, 10, 1), 111.1);
}

#[test]
fn read_of_what_is_being_read_ahead_goes_on_with_it() {
    let mut rig = Rig::small(&[]);
    assert_eq!(rig.serve(Op::Read, 2, 2), 4.1);
    // Sector 4 is half read; 9 is over at 10.
    assert_eq!(rig.serve(Op::Read, 4, 6), 10.1);
}

#[test]
fn nothing_is_read_ahead_where_the_disk_does_not() {
    let mut rig = Rig::small(&[("until = \"track\"", "until = \"nothing\"")]);
    assert_eq!(rig.serve(Op::Read, 2, 2), 4.1);
    rig.advance(100);
    assert_eq!(rig.serve(Op::Read, 4, 1), 115.1);
}

#[test]
fn least_read_ahead_holds_the_head_back() {
    let mut rig = Rig::small(&[]);
    assert_eq!(rig.serve(Op::Read, 2, 2), 4.1);
    // At 4.6 the head leaves, at 8.6 it is on cylinder 50, whose first sector passes from 10 on.
    assert_eq!(rig.serve(Op::Read, 500, 1), 11.1);
    let mut rig = Rig::small(&[("least_sectors = 0", "least_sectors = 4")]);
    assert_eq!(rig.serve(Op::Read, 2, 2), 4.1);
    // It reads sectors 4 to 7 first, leaves at 8 and arrives at 12: the sector passes from 20 on.
    assert_eq!(rig.serve(Op::Read, 500, 1), 21.1);
    // A write that has to wait for the medium waits for it, too.
    let mut rig = Rig::small(&[("least_sectors = 0", "least_sectors = 4")]);
    assert_eq!(rig.serve(Op::Read, 2, 2), 4.1);
    assert_eq!(rig.serve(Op::Write, 500, 1), 21.0);
}

#[test]
fn whole_track_takes_one_revolution_where_a_read_begins_anywhere() {
    let mut rig = Rig::small(&[("read_begin = \"at-first\"", "read_begin = \"anywhere\"")]);
    rig.advance(4);
    // From 4.5 the head waits for sector 5; 4 is over at 15, and the link sends in order: 0 comes
    // at 11, 4 leaves at 15.1, and 5 to 9 behind it.
    assert_eq!(rig.serve(Op::Read, 0, 10), 15.6);
    let mut rig = Rig::small(&[]);
    rig.advance(4);
    assert_eq!(rig.serve(Op::Read, 0, 10), 20.1);
}

#[test]
fn passed_sectors_are_kept_where_the_disk_keeps_them() {
    let mut rig = Rig::small(&[("keeps_passed = false", "keeps_passed = true")]);
    // From 0.5 on, sectors 1 to 5 pass whole before 6 does.
    assert_eq!(rig.serve(Op::Read, 6, 1), 7.1);
    rig.advance(10);
    assert_eq!(rig.serve(Op::Read, 1, 5), 18.1);
    assert_eq!(rig.serve(Op::Read, 0, 1), 21.1);
}

#[test]
fn write_ends_on_the_medium_without_write_back() {
    // The data of sector 3 have arrived at 0.6; it is written from 3 to 4.
    assert_eq!(Rig::small(&[]).serve(Op::Write, 3, 1), 4.0);
}

#[test]
fn sector_that_arrives_too_late_is_written_a_revolution_later() {
    let slow = ("write_mb_per_s = 5.12", "write_mb_per_s = 0.256");
    // 2 ms a sector: sector 3 arrives at 2.5 and is written from 3 to 4, sector 4 arrives at 4.5
    // and is written from 14 to 15.
    assert_eq!(Rig::small(&[slow]).serve(Op::Write, 3, 2), 15.0);
}

#[test]
fn write_that_is_held_back_ends_in_the_buffer_and_is_written_when_idle() {
    let mut rig = Rig::small(&[("mode = \"off\"", "mode = \"sorted\"")]);
    assert_eq!(rig.serve(Op::Write, 3, 1), 0.6);
    rig.advance(20);
    // It was written at 3, from the same cylinder: the flush finds nothing to do.
    assert_eq!(rig.serve(Op::Flush, 0, 0), 21.1);
    // A read of it needs no medium.
    assert_eq!(rig.serve(Op::Read, 3, 1), 21.7);
}

#[test]
fn flush_ends_when_all_is_on_the_medium() {
    let mut rig =
        Rig::small(&[("mode = \"off\"", "mode = \"sorted\""), ("idle_ms = 0", "idle_ms = 50")]);
    assert_eq!(rig.serve(Op::Write, 5, 1), 0.6);
    assert_eq!(rig.serve(Op::Write, 3, 1), 1.2);
    // 3 is nearer: it is written at 3, 5 at 5, which is over at 6.
    assert_eq!(rig.serve(Op::Flush, 0, 0), 6.0);
}

#[test]
fn durable_write_ends_on_the_medium_though_others_are_held_back() {
    let mut rig = Rig::small(&[("mode = \"off\"", "mode = \"sorted\"")]);
    rig.submit_durable(3, 1);
    assert_eq!(rig.complete().1, 4.0);
}

#[test]
fn full_buffer_holds_a_write_back_only_when_one_is_on_the_medium() {
    let mode = ("mode = \"off\"", "mode = \"sorted\"");
    let mut rig = Rig::small(&[mode, ("runs = 4", "runs = 1"), ("idle_ms = 0", "idle_ms = 50")]);
    assert_eq!(rig.serve(Op::Write, 5, 1), 0.6);
    // 5 is written until 6, then the data of 3 arrive.
    assert_eq!(rig.serve(Op::Write, 3, 1), 6.1);
}

#[test]
fn appending_write_ends_in_the_buffer_and_another_on_the_medium() {
    let mut rig =
        Rig::small(&[("mode = \"off\"", "mode = \"appending\""), ("idle_ms = 0", "idle_ms = 50")]);
    assert_eq!(rig.serve(Op::Write, 3, 1), 0.6);
    assert_eq!(rig.serve(Op::Write, 4, 1), 1.2);
    // 3 and 4 go first, from 3 to 5; then 7 is written.
    assert_eq!(rig.serve(Op::Write, 7, 1), 8.0);
}

#[test]
fn command_that_can_begin_soonest_is_served_first() {
    let mut rig = Rig::small(&[]);
    rig.submit(1, Op::Read, 0, 1);
    // While 1 is served until 11.1, three more come. From there 3 (sector 4) passes soonest.
    rig.submit(2, Op::Read, 503, 1);
    rig.submit(3, Op::Read, 14, 1);
    rig.submit(4, Op::Read, 18, 1);
    let order: Vec<_> = (0..4).map(|_| rig.complete().0.tag).collect();
    assert_eq!(order, [1, 3, 4, 2]);
    let mut rig = Rig::small(&[("longest_wait_ms = 1000", "longest_wait_ms = 0")]);
    rig.submit(1, Op::Read, 0, 1);
    rig.submit(2, Op::Read, 503, 1);
    rig.submit(3, Op::Read, 14, 1);
    let order: Vec<_> = (0..3).map(|_| rig.complete().0.tag).collect();
    assert_eq!(order, [1, 2, 3]);
}

/// The platters turn on while the disk looks at a command. Behind command 1, done at 3.1, the head
/// could be on the next cylinder at 5.1, before sector 16 begins to pass at 6; but it leaves at 4.6
/// and is there at 6.6, before sector 18. The queue once chose 16, which then took a revolution
/// more.
#[test]
fn command_that_would_just_be_missed_is_not_the_soonest() {
    let mut rig = Rig::small(&[("read_miss_ms = 0", "read_miss_ms = 1")]);
    rig.submit(1, Op::Read, 2, 1);
    rig.submit(2, Op::Read, 16, 1);
    rig.submit(3, Op::Read, 18, 1);
    let order: Vec<_> = (0..3).map(|_| rig.complete()).collect();
    let order: Vec<_> = order.iter().map(|(done, at)| (done.tag, *at)).collect();
    assert_eq!(order, [(1, 3.1), (3, 9.1), (2, 17.1)]);
}

#[test]
fn written_data_replace_what_was_read() {
    let mut rig = Rig::small(&[]);
    rig.serve(Op::Read, 2, 2);
    rig.advance(20);
    rig.serve(Op::Write, 5, 1);
    rig.advance(20);
    // The segment with 4 is gone: the head needs a revolution or less, but not just the link.
    rig.submit(0, Op::Read, 4, 1);
    assert!(rig.complete().0.spent.transfer >= Nanos::from_millis(1));
}

fn reference() -> Disk {
    Disk::new(Parameters::named("hdd-7200").expect("it is there")).expect("a layout")
}

/// A number that follows from `state` only.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 11
}

/// The mean time of commands one after the other, all over the disk, in ms.
fn mean_of_random(op: Op, sectors: u32, count: u32) -> f64 {
    let mut disk = reference();
    let (mut now, mut state) = (Instant::START, 1);
    for _ in 0..count {
        let sector = Sector(next(&mut state) % (disk.end().0 - u64::from(sectors)));
        let sectors = SectorCount(sectors);
        disk.submit(
            now,
            Command { tag: 0, op, durable: false, sector, sectors, chance: Chance::default() },
        );
        now = disk.poll_timeout().expect("it is served");
        disk.poll(now).expect("it is done");
    }
    millis(now.since_start()) / f64::from(count)
}

#[test]
fn random_read_of_the_reference_disk_takes_its_mean_seek_and_half_a_revolution() {
    // 7.93 ms is the mean of the measured curve over random pairs, 4.17 ms half a revolution, 0.25
    // the overhead, and 8 sectors take 0.02 ms. Random sectors are nearer to the rim than random
    // cylinders are, where there are more a track: their seeks are shorter by a few percent.
    let mean = mean_of_random(Op::Read, 8, 4000);
    assert!((11.7..12.5).contains(&mean), "{mean}");
}

#[test]
fn held_back_random_writes_are_faster_than_reads() {
    let (reads, writes) = (mean_of_random(Op::Read, 64, 2000), mean_of_random(Op::Write, 64, 2000));
    assert!(writes * 1.5 < reads, "{writes} {reads}");
}

#[test]
fn sequential_reads_are_as_fast_as_the_medium() {
    let mut disk = reference();
    let mut now = Instant::START;
    let (count, sectors) = (2000_u32, 256);
    for index in 0..count {
        let sector = Sector(u64::from(index) * u64::from(sectors));
        let sectors = SectorCount(sectors);
        let command = Command {
            tag: 0,
            op: Op::Read,
            durable: false,
            sector,
            sectors,
            chance: Chance::default(),
        };
        disk.submit(now, command);
        now = disk.poll_timeout().expect("it is served");
        disk.poll(now).expect("it is done");
    }
    // A track of 3072 sectors in a revolution and its skew of 0.19: 158.6 MB/s.
    let track_ms = 1.19 * 60_000.0 / 7200.0;
    let expected = 3072.0 * 0.512 / track_ms;
    let rate = f64::from(count) * f64::from(sectors) * 0.512 / millis(now.since_start());
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} {expected}");
}

const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Write, Op::Flush];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// One command at a time, nothing that is held back: the parts are all of the time.
    #[test]
    fn parts_of_the_time_are_all_of_it(
        commands in prop::collection::vec((0_u64..900, 1_u32..100, any::<bool>(), 0_u64..30), 1..60)
    ) {
        let mut rig = Rig::small(&[]);
        for (sector, sectors, write, gap) in commands {
            let began = rig.now;
            let op = if write { Op::Write } else { Op::Read };
            rig.submit(0, op, sector, sectors);
            let (completion, _) = rig.complete();
            prop_assert_eq!(sum(completion.spent), rig.now.saturating_since(began));
            rig.advance(gap);
        }
    }

    /// Every command completes, once, and the same commands at the same times do so at the same
    /// times.
    #[test]
    fn queue_loses_nothing_and_repeats_itself(
        commands in prop::collection::vec(
            (0_u64..900, 0_u32..100, 0_u8..4, 0_u64..40), 1..80)
    ) {
        let run = || {
            let mut rig = Rig::small(&[("mode = \"off\"", "mode = \"sorted\"")]);
            let mut done = Vec::new();
            for (tag, &(sector, sectors, kind, gap)) in (0_u32..).zip(&commands) {
                let op = OPS[usize::from(kind)];
                let sectors = if op == Op::Flush { 0 } else { sectors.max(1) };
                if rig.disk.poll_timeout().is_some() && tag % 4 == 0 {
                    done.push((rig.complete().0, rig.now));
                }
                while tag as usize - done.len() >= 4 {
                    done.push((rig.complete().0, rig.now));
                }
                rig.submit(tag, op, sector, sectors);
                let due = rig.disk.poll_timeout().expect("something is being served");
                rig.now = (rig.now + Nanos::from_millis(gap)).min(due);
            }
            while rig.disk.poll_timeout().is_some() {
                done.push((rig.complete().0, rig.now));
            }
            done
        };
        let done = run();
        let mut tags: Vec<_> = done.iter().map(|(completion, _)| completion.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..u32::try_from(commands.len()).unwrap()).collect::<Vec<_>>());
        prop_assert_eq!(done, run());
    }
}
