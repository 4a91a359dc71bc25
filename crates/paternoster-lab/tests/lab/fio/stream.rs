//! The I/Os of jobs: as fio's where those are certain, and else in the right proportions.

use std::collections::{BTreeMap, BTreeSet};

use paternoster::IoPrio;
use paternoster_lab::fio::{Io, IoOp, Stream};

use crate::fio::{ios, jobs, transfers};

/// A job without draws does the I/Os that fio 3.33 did.
#[test]
fn sequential_jobs_do_what_fio_did() {
    let recorded = include_str!("../../data/fio-3.33/sequential-jobs.txt");
    let mut count = 0;
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let (options, wanted) = line.split_once(" = ").expect("a job and its I/Os");
        assert_eq!(in_fios_words(&ios(options)), wanted, "{options}");
        count += 1;
    }
    assert_eq!(count, 100, "all of the file");
}

/// `write@0:4096+4096 sync@0`, with files numbered in the order of their first I/O.
fn in_fios_words(ios: &[Io]) -> String {
    let mut files = vec![];
    let mut words = vec![];
    for io in ios {
        if !files.contains(&io.file) {
            files.push(io.file);
        }
        let file = files.iter().position(|&file| file == io.file).expect("it is there");
        let op = match io.op {
            IoOp::Read => "read",
            IoOp::Write => "write",
            IoOp::Trim => "trim",
            IoOp::Sync => "sync",
            IoOp::DataSync => "datasync",
        };
        words.push(match io.op {
            IoOp::Sync | IoOp::DataSync => format!("{op}@{file}"),
            _ => format!("{op}@{file}:{}+{}", io.offset, io.bytes),
        });
    }
    words.join(" ")
}

/// What fio 3.33 logged of `rw=rw size=64k fsync=2`, R, W and S for short.
const FIO_MIX: &str = "RRRWRRWSWWSRSWRWSRSRSR";

/// Whether a sync stands before each I/O at which a multiple of `every` writes has been done, and
/// nowhere else; the last may be left out.
fn syncs_are_due(log: &str, every: usize) -> bool {
    let mut writes = 0;
    let mut is_due = false;
    for op in log.chars() {
        if is_due != (op == 'S') {
            return false;
        }
        writes += usize::from(op == 'W');
        is_due = op != 'S' && writes > 0 && writes % every == 0;
    }
    true
}

#[test]
fn syncs_in_a_mix_are_where_fio_has_them() {
    assert!(syncs_are_due(FIO_MIX, 2), "the rule is fio's");
    let log: String = ios("rw=rw size=1m fsync=3")
        .iter()
        .map(|io| match io.op {
            IoOp::Read => 'R',
            IoOp::Write => 'W',
            _ => 'S',
        })
        .collect();
    assert!(log.contains("SRS"), "a read between syncs: {log}");
    assert!(syncs_are_due(&log, 3), "{log}");
}

fn blocks(ios: &[Io]) -> Vec<u64> {
    ios.iter().map(|io| io.offset / 4096).collect()
}

#[test]
fn random_job_visits_each_block_once() {
    let ios = ios("rw=randread size=1m");
    let visited: BTreeSet<_> = blocks(&ios).into_iter().collect();
    assert_eq!((ios.len(), visited.len(), visited.last()), (256, 256, Some(&255)));
    let in_order = blocks(&ios).windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(in_order < 10, "{in_order} blocks follow the one before, where 1 is expected");
}

#[test]
fn reads_and_writes_share_the_blocks_of_a_mix() {
    let ios = ios("rw=randrw size=1m");
    let visited: BTreeSet<_> = blocks(&ios).into_iter().collect();
    assert_eq!((ios.len(), visited.len()), (256, 256));
}

#[test]
fn loop_repeats_its_order_unless_randrepeat_is_off() {
    let loops = |options: &str| {
        let blocks = blocks(&ios(options));
        (blocks[..256].to_vec(), blocks[256..].to_vec())
    };
    let (first, second) = loops("rw=randread size=1m loops=2");
    assert_eq!(first, second);
    let (first, mut second) = loops("rw=randread size=1m loops=2 randrepeat=0");
    assert_ne!(first, second);
    second.sort_unstable();
    assert_eq!(second, (0..256).collect::<Vec<_>>(), "each block once in each loop");
}

/// Blocks of 1 to 4 units: an I/O is cut short before a block that was visited.
#[test]
fn sizes_of_several_blocks_cover_the_file_once() {
    let ios = ios("rw=randread size=1m bsrange=4k-16k");
    let spans: BTreeMap<_, _> = ios.iter().map(|io| (io.offset, io.bytes)).collect();
    let mut end = 0;
    for (offset, bytes) in spans {
        assert_eq!(offset, end, "no gap and no overlap");
        end += bytes;
    }
    assert_eq!(end, 1 << 20);
}

/// Of n draws among n blocks, n / e are not met: 1507 of 4096, with a deviation of about 20.
#[test]
fn norandommap_visits_blocks_again() {
    let ios = ios("rw=randread size=16m norandommap");
    let met: BTreeSet<_> = blocks(&ios).into_iter().collect();
    assert_eq!(ios.len(), 4096);
    assert!((4096 - met.len()).abs_diff(1507) < 100, "{} of 4096 are met", met.len());
}

/// Whether `count` of `draws` is what `percent` says, within five deviations √(p (1 - p) draws).
#[allow(clippy::cast_precision_loss, reason = "some thousands")]
fn is_near(count: usize, draws: usize, percent: f64) -> bool {
    let (mean, rest) = (draws as f64 * percent / 100.0, 1.0 - percent / 100.0);
    (count as f64 - mean).abs() <= 5.0 * (mean * rest).sqrt()
}

#[test]
fn mix_has_its_percent_of_reads() {
    for percent in [20, 50, 95] {
        let ios = ios(&format!("rw=randrw rwmixread={percent} size=40m"));
        let reads = ios.iter().filter(|io| io.op == IoOp::Read).count();
        assert!(is_near(reads, ios.len(), percent.into()), "{reads} of {}", ios.len());
    }
}

#[test]
fn split_has_its_percent_of_each_size() {
    let ios = ios("rw=randread norandommap size=100m bssplit=4k/50:8k/30:64k/");
    let of = |bytes| ios.iter().filter(|io| io.bytes == bytes).count();
    for (bytes, percent) in [(4096, 50.0), (8192, 30.0), (65_536, 20.0)] {
        assert!(is_near(of(bytes), ios.len(), percent), "{} of {bytes}", of(bytes));
    }
    assert_eq!(of(4096) + of(8192) + of(65_536), ios.len());
}

/// One I/O in 2560 of those drawn follows the last by chance, which five deviations include.
#[test]
fn percentage_random_leaves_the_others_sequential() {
    let ios = ios("rw=randread norandommap size=10m io_size=80m percentage_random=30");
    let jumps = ios.windows(2).filter(|pair| pair[1].offset != pair[0].offset + 4096).count();
    assert!(is_near(jumps, ios.len() - 1, 30.0), "{jumps} of {}", ios.len());
}

#[test]
fn number_behind_rw_is_of_ios_for_each_draw() {
    let ios = ios("rw=randread:8 norandommap size=100m");
    let ends: Vec<_> =
        (1..ios.len()).filter(|&i| ios[i].offset != ios[i - 1].offset + 4096).collect();
    assert!(ends.len() > 3000, "{} runs, where 3200 are expected", ends.len());
    for run in ends.windows(2) {
        // As under fio, a run that meets the end goes on elsewhere.
        let meets_end = [run[0], run[1]].map(|io| ios[io - 1].offset + 4096 == 100 << 20);
        // Two runs may meet by chance.
        let is_whole = (run[1] - run[0]).is_multiple_of(8);
        assert!(is_whole || meets_end != [false; 2], "{} follow", run[1] - run[0]);
    }
    let repeats = transfers("rw=randread:8 rw_sequencer=identical norandommap size=100m");
    assert!(repeats.chunks(8).all(|run| run.iter().all(|io| io.offset == run[0].offset)));
}

#[test]
fn trims_are_each_followed_by_a_write_of_the_block() {
    let ios = ios("rw=randtrimwrite size=1m");
    assert_eq!(ios.len(), 512);
    for pair in ios.chunks(2) {
        assert_eq!((pair[0].op, pair[1].op), (IoOp::Trim, IoOp::Write));
        assert_eq!((pair[0].offset, pair[0].bytes), (pair[1].offset, pair[1].bytes));
    }
}

#[test]
fn sizes_by_order_are_of_sequential_and_of_random_ios() {
    let ios =
        ios("rw=randread bs=4k,16k bs_is_seq_rand=1 percentage_random=50 norandommap size=9m");
    let mut end = 0;
    for io in &ios {
        assert_eq!(io.bytes, if io.offset == end { 4096 } else { 16_384 }, "at {}", io.offset);
        end = io.offset + io.bytes;
    }
}

#[test]
fn part_of_the_commands_has_a_priority_of_its_own() {
    let options = "ioengine=libaio iodepth=8 direct=1 rw=randrw size=40m \
                   cmdprio_percentage=20,0 cmdprio_class=2 cmdprio=1";
    let ios = ios(options);
    let reads: Vec<_> = ios.iter().filter(|io| io.op == IoOp::Read).collect();
    let high = reads.iter().filter(|io| io.io_prio == IoPrio::be(1)).count();
    assert!(is_near(high, reads.len(), 20.0), "{high} of {}", reads.len());
    let none = ios.iter().filter(|io| io.io_prio.is_none()).count();
    assert_eq!(none + high, ios.len(), "writes have none");
}

/// Of 4 KiB a fifth is real time; of 64 KiB half is idle and a tenth best effort; of 8 KiB nothing
/// is said. Writes have what is said for them.
#[test]
fn sizes_have_priorities_of_their_own() {
    let options = "ioengine=libaio iodepth=8 direct=1 rw=randrw size=400m \
                   bssplit=4k/50:8k/20:64k/30 cmdprio=3 \
                   cmdprio_bssplit=4k/20:64k/50/3/0:64k/10/2/4,8k/100/2/7";
    let ios = ios(options);
    let part = |op: IoOp, bytes: u64, io_prio: Option<IoPrio>, percent: f64| {
        let of: Vec<_> = ios.iter().filter(|io| (io.op, io.bytes) == (op, bytes)).collect();
        let count = of.iter().filter(|io| io.io_prio == io_prio).count();
        assert!(is_near(count, of.len(), percent), "{op:?} of {bytes}: {count} of {}", of.len());
    };
    part(IoOp::Read, 4096, IoPrio::rt(3), 20.0);
    part(IoOp::Read, 4096, None, 80.0);
    part(IoOp::Read, 8192, None, 100.0);
    part(IoOp::Read, 65_536, Some(IoPrio::IDLE), 50.0);
    part(IoOp::Read, 65_536, IoPrio::be(4), 10.0);
    part(IoOp::Read, 65_536, None, 40.0);
    part(IoOp::Write, 8192, IoPrio::be(7), 100.0);
    part(IoOp::Write, 65_536, None, 100.0);
}

#[test]
fn time_based_job_goes_on_with_new_orders_until_it_is_stopped() {
    let jobs = jobs("[j]\nrw=randwrite\nsize=64k\ntime_based\nruntime=1\nend_fsync=1\n");
    let mut stream = Stream::new(&jobs.jobs[0].pattern);
    let blocks: Vec<_> =
        stream.by_ref().take(160).map(|io| io.offset / 4096).filter(|_| true).collect();
    assert_eq!(blocks.len(), 160);
    stream.stop();
    assert_eq!(stream.next().map(|io| io.op), Some(IoOp::Sync), "end_fsync");
    assert_eq!(stream.next(), None);
    assert_eq!(stream.next(), None, "and that is the end");
}

/// The block that a zipf distribution draws most, of all passes and of the first half.
#[test]
fn hot_blocks_stay_where_they_are() {
    let ios = ios("rw=randread random_distribution=zipf:1.5 size=4m loops=8 randrepeat=0");
    let most = |ios: &[Io]| {
        let mut counts = BTreeMap::new();
        for block in blocks(ios) {
            *counts.entry(block).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|&(_, count)| count).map(|(block, _)| block)
    };
    assert_eq!(ios.len(), 8 * 1024);
    assert_eq!(most(&ios[..4096]), most(&ios[4096..]));
}

#[test]
fn clones_draw_differently_and_each_run_alike() {
    let text = "[j]\nrw=randread\nsize=1m\nnumjobs=2\n";
    let orders: Vec<Vec<_>> = [jobs(text), jobs(text)]
        .iter()
        .flat_map(|jobs| jobs.jobs.clone())
        .map(|job| blocks(&Stream::new(&job.pattern).collect::<Vec<_>>()))
        .collect();
    assert_ne!(orders[0], orders[1]);
    assert_eq!(orders[..2], orders[2..]);
    let seeded = blocks(&ios("rw=randread size=1m randseed=7"));
    assert_ne!(seeded, blocks(&ios("rw=randread size=1m randseed=8")));
}
