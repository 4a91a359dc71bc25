//! What an array does, worked out by hand on a small one.
//!
//! It has three disks, two chunks of data a stripe, and ten sectors a chunk:
//!
//! ```text
//!   disk      0         1         2
//!   row 0   │  0..10  │ 10..20  │ parity  │     each chunk is a track of its disk
//!   row 1   │ 30..40  │ parity  │ 20..30  │
//! ```
//!
//! A disk is the small one of `common/small_disk.rs`, which turns once in 10 ms, but takes no time
//! for a command and does not read ahead. Its link takes 0.1 ms a sector, while it reads. The front
//! end takes 1 ms a command, and the host's link 0.05 ms a sector.

#[path = "common/small_disk.rs"]
mod small_disk;

use std::path::Path;

use paternoster::{Instant, Nanos, Sector, SectorCount};
use paternoster_model::{
    Array, ArrayParameters, ArrayWriteBack, Chance, Command, Completion, Model, Op, Prefetch,
    Segmentation, Spent, Striping, describe_text, open_device,
};
use proptest::prelude::*;
use small_disk::small_disk;

/// The array. Written data wait for a second, and do not survive a loss of power.
fn parameters() -> ArrayParameters {
    ArrayParameters {
        depth: 8,
        front_end: Nanos::from_millis(1),
        link_bytes_per_s: 10_240_000,
        cache: Segmentation { segments: 8, sectors: SectorCount(20) },
        write_back: ArrayWriteBack {
            room: SectorCount(60),
            delay: Nanos::from_millis(1000),
            battery: false,
        },
        prefetch: Prefetch {
            from_read: 2,
            unit: SectorCount(20),
            low: SectorCount(10),
            streams: 4,
        },
        striping: Striping { disks: 3, data: 2, chunk: SectorCount(10) },
        member: small_disk(&[
            ("command_ms = 0.5", "command_ms = 0"),
            ("until = \"track\"", "until = \"nothing\""),
        ]),
    }
}

fn array(change: impl FnOnce(&mut ArrayParameters)) -> Array {
    let mut parameters = parameters();
    change(&mut parameters);
    Array::new(parameters).expect("a layout that can be")
}

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

fn read(tag: u32, first: u64, end: u64) -> Command {
    let sectors = SectorCount(u32::try_from(end - first).expect("a few"));
    let (sector, chance) = (Sector(first), Chance::default());
    Command { tag, op: Op::Read, durable: false, sector, sectors, chance }
}

fn write(tag: u32, first: u64, end: u64) -> Command {
    Command { op: Op::Write, ..read(tag, first, end) }
}

fn flush(tag: u32) -> Command {
    Command { op: Op::Flush, ..read(tag, 0, 0) }
}

/// What completes before `until`, or ever, with its time in µs.
fn completed(array: &mut Array, until: Option<Instant>) -> Vec<(u64, Completion)> {
    let mut done = Vec::new();
    let is_before = |at: &Instant| until.is_none_or(|until| *at < until);
    while let Some(at) = array.poll_timeout().filter(is_before) {
        while let Some(completion) = array.poll(at) {
            done.push((at.since_start().as_nanos() / 1000, completion));
        }
    }
    done
}

/// When each command completes, in µs; each is given at its time in ms.
fn times(array: &mut Array, commands: &[(u64, Command)]) -> Vec<(u32, u64)> {
    let mut done = Vec::new();
    for &(at_ms, command) in commands {
        let at = Instant::START + Nanos::from_millis(at_ms);
        done.extend(completed(array, Some(at)));
        array.submit(at, command);
    }
    done.extend(completed(array, None));
    done.iter().map(|(us, completion)| (completion.tag, *us)).collect()
}

/// The array has 100 rows, and so 100 stripes of 20 sectors. Behind its end nothing is read ahead.
#[test]
fn array_is_read_to_its_end() {
    let mut array = array(|array| array.prefetch.from_read = 1);
    assert_eq!(array.end(), Sector(2000));
    let found = times(&mut array, &[(0, read(0, 1990, 1995)), (500, read(1, 1995, 2000))]);
    assert_eq!(found[1], (1, 501_250));
}

/// The disk waits from 1 ms to 10 ms, and reads until 14 ms; its link is 0.1 ms behind. The host's
/// takes 0.2 ms.
#[test]
fn miss_takes_front_end_disk_and_link() {
    let mut array = array(|_| {});
    array.submit(Instant::START, read(3, 0, 4));
    let [(at, done)] = completed(&mut array, None)[..] else { panic!("one completes") };
    let spent = Spent {
        seek: Nanos::ZERO,
        rotation: us(9000),
        transfer: us(4100 + 200),
        overhead: us(1000),
    };
    assert_eq!((at, done), (14_300, Completion { tag: 3, spent }));
}

#[test]
fn hits_take_front_end_and_link_one_after_the_other() {
    let mut array = array(|_| {});
    let commands = [(0, read(0, 0, 4)), (20, read(1, 0, 4)), (20, read(2, 1, 3))];
    assert_eq!(times(&mut array, &commands), [(0, 14_300), (1, 21_200), (2, 21_300)]);
}

/// The second read in a row has the rest of 20 sectors read ahead, before anybody asks.
#[test]
fn sequential_stream_is_read_ahead() {
    let reads = [(0, read(0, 0, 5)), (30, read(1, 5, 10)), (70, read(2, 10, 20))];
    let found = times(&mut array(|_| {}), &reads);
    // The third comes from the cache: 1 ms and 0.5 ms.
    assert_eq!(found[2], (2, 71_500));
    let without = times(&mut array(|array| array.prefetch.unit = SectorCount(0)), &reads);
    // From disk 1: 80 ms to 90 ms, 0.1 ms, 0.5 ms.
    assert_eq!(without[2], (2, 90_600));
}

/// Sectors 5 to 15 are on two disks, which read at once: until 15 ms and 20 ms.
#[test]
fn read_of_two_chunks_waits_for_both_disks() {
    // From 0 on, the disks have sectors 5 of row 0 below their heads at 5 ms, 0 at 10 ms.
    let found = times(&mut array(|_| {}), &[(0, read(0, 5, 15))]);
    assert_eq!(found, [(0, 15_000 + 100 + 500)]);
}

/// 1 ms and 20 × 0.05 ms. At the flush all three disks write a chunk, from 10 ms to 20 ms.
#[test]
fn full_stripe_is_written_without_reads() {
    let mut array = array(|_| {});
    let found = times(&mut array, &[(0, write(0, 0, 20)), (3, flush(1))]);
    assert_eq!(found, [(0, 2_000), (1, 20_000)]);
}

/// Old data and old parity are read from 10 ms to 12 ms, with the link to 12.1 ms, and the new ones
/// written when they come round again, from 20 ms to 22 ms.
#[test]
fn part_of_a_stripe_has_old_data_and_parity_read_first() {
    let mut array = array(|_| {});
    let found = times(&mut array, &[(0, write(0, 0, 2)), (3, flush(1))]);
    assert_eq!(found, [(0, 1_100), (1, 22_000)]);
    assert_eq!(array.unwritten(), 0);
}

#[test]
fn durable_write_waits_for_the_disks() {
    let mut array = array(|_| {});
    let durable = Command { durable: true, ..write(0, 0, 2) };
    assert_eq!(times(&mut array, &[(0, durable)]), [(0, 22_000)]);
}

#[test]
fn with_a_battery_nobody_waits_for_the_disks() {
    let mut array = array(|array| array.write_back.battery = true);
    let durable = Command { durable: true, ..write(0, 0, 2) };
    let found = times(&mut array, &[(0, durable), (3, flush(1))]);
    assert_eq!(found, [(0, 1_100), (1, 4_000)]);
}

/// The delay of a second began at 1.1 ms.
#[test]
fn written_data_go_to_the_disks_after_the_delay() {
    let mut array = array(|_| {});
    array.submit(Instant::START, write(0, 0, 2));
    let after = |ms| Instant::START + Nanos::from_millis(ms);
    assert!(array.poll(after(1000)).is_some_and(|done| done.tag == 0));
    assert_eq!(array.unwritten(), 2);
    assert_eq!(array.poll(after(1100)), None);
    assert_eq!(array.unwritten(), 0);
}

/// A second write of the same sectors while the first is on its way is not lost: the flush waits
/// for it. That begins at 22 ms: the disks' own buffers have what they have just written, and the
/// new data are on the medium from 30 ms to 32 ms.
#[test]
fn what_is_written_again_meanwhile_goes_to_the_disks_again() {
    let mut array = array(|_| {});
    let commands = [(0, write(0, 0, 2)), (3, flush(1)), (9, write(2, 0, 2)), (11, flush(3))];
    let found = times(&mut array, &commands);
    assert_eq!(found, [(0, 1_100), (2, 10_100), (1, 22_000), (3, 32_000)]);
}

/// There is room for one stripe. The first goes to the disks at once, as more than half of the room
/// is taken, until 20 ms; the second, there at 3 ms, waits for that.
#[test]
fn write_waits_for_room_in_the_cache() {
    let mut array = array(|array| array.write_back.room = SectorCount(20));
    let found = times(&mut array, &[(0, write(0, 0, 20)), (0, write(1, 20, 40))]);
    assert_eq!(found, [(0, 2_000), (1, 20_000)]);
}

#[test]
fn written_data_answer_reads() {
    let mut array = array(|_| {});
    let found = times(&mut array, &[(0, write(0, 3, 5)), (2, read(1, 3, 5))]);
    assert_eq!(found, [(0, 1_100), (1, 3_100)]);
}

/// The array of the laboratory answers a second read of 256 KiB from its cache: its front end and
/// 256 KiB over the link.
#[test]
fn file_of_the_laboratory_describes_an_array() {
    let mut device = open_device("raid5-12-sata", 1).expect("it comes along");
    let first = read(0, 0, 512);
    device.submit(Instant::START, first);
    let at = device.poll_timeout().expect("it is busy") + Nanos::from_millis(500);
    assert!(device.poll(at).is_some());
    device.submit(at, first);
    let mut now = at;
    while device.poll(now).is_none() {
        now = device.poll_timeout().expect("it is busy");
    }
    let took = now.saturating_since(at).as_nanos();
    assert!((900_000..1_500_000).contains(&took), "{took} ns");
}

#[test]
fn mistakes_in_a_file_are_named_with_their_place() {
    let good = include_str!("../devices/raid5-12-sata.toml");
    let refused = |from: &str, to: &str| {
        assert_eq!(good.matches(from).count(), 1, "{from}");
        let text = good.replace(from, to);
        describe_text(Path::new("a.toml"), &text).expect_err("wrong").to_string()
    };
    let line = |piece: &str| 1 + good[..good.find(piece).expect(piece)].matches('\n').count();
    assert_eq!(
        refused("device = \"hdd-7200-1tb\"", "device = 7"),
        format!(
            "a.toml:{}:10: `member.device` is 7, which must be a text in quotes",
            line("device =")
        )
    );
    let missing = refused("device = \"hdd-7200-1tb\"", "device = \"b.toml\"");
    assert_eq!(
        missing,
        format!(
            "a.toml:{}:1: `member.device` is \"b.toml\", which must be a disk that comes with the \
             laboratory, or a file beside this one",
            line("[member]")
        )
    );
    let no_disk = refused("device = \"hdd-7200-1tb\"", "device = \"nvme-980pro\"");
    assert!(no_disk.starts_with("nvme-980pro:"), "{no_disk}");
    assert!(no_disk.ends_with("`kind` is \"ssd\", which must be one of \"disk\""), "{no_disk}");
    let unknown = refused("[member]", "[member]\ndisks = 3");
    assert!(
        unknown.contains("unknown key `member.disks`; there are `kind`, `device`"),
        "{unknown}"
    );
}

#[test]
fn parity_needs_a_disk_of_its_own() {
    let good = include_str!("../devices/raid5-12-sata.toml");
    let text = good.replace("data_chunks = { value = 4,", "data_chunks = { value = 12,");
    let text = text.replace("bounds = [4, 11]", "bounds = [4, 12]");
    let error = describe_text(Path::new("a.toml"), &text).expect_err("wrong");
    let said = "`raid.data_chunks` is 12, which must be fewer than the 12 disks";
    assert!(error.to_string().contains(said), "{error}");
}

/// Commands of any kind, each with the time since the one before in ms.
fn any_commands() -> impl Strategy<Value = Vec<(u64, Command)>> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Flush), Just(Op::Discard)];
    let command = (0_u64..30, op, any::<bool>(), 0_u64..200, 1_u32..40);
    let command = command.prop_map(|(gap, op, durable, sector, sectors)| {
        let sectors = SectorCount(if op == Op::Flush { 0 } else { sectors });
        (gap, Command { op, durable, ..read(0, sector, sector + u64::from(sectors.0)) })
    });
    prop::collection::vec(command, 1..8)
}

proptest! {
    /// Each command completes once, at the same time in each run, and nothing that was written
    /// stays behind a flush.
    #[test]
    fn nothing_is_lost(commands in any_commands(), battery in any::<bool>(), room in 20_u32..60) {
        let change = |array: &mut ArrayParameters| {
            array.write_back.battery = battery;
            array.write_back.room = SectorCount(room);
        };
        let (mut at, mut given) = (0, Vec::new());
        for (tag, (gap, command)) in (0..).zip(commands) {
            at += gap;
            given.push((at, Command { tag, ..command }));
        }
        let mut first = array(change);
        let found = times(&mut first, &given);
        let mut tags: Vec<_> = found.iter().map(|(tag, _)| *tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..).take(given.len()).collect::<Vec<u32>>());
        prop_assert_eq!(first.unwritten(), 0, "the delay is over");
        prop_assert_eq!(times(&mut array(change), &given), found);
    }
}
