//! Formats with events: blktrace, blkparse and tracefs.

use std::fmt::Write as _;
use std::fs;

use paternoster::{BioFlags, Op};
use paternoster_intake::{Format, Options, Request};

use crate::{data, median, read, read_text, try_read, written};

#[test]
fn blktrace_of_one_reader_is_a_chain_of_reads() {
    let read = read(&data("nvme-readahead.blktrace.1.zst"));
    assert_eq!(read.format, Format::Blktrace);
    assert_eq!((read.requests.len(), read.of_op(Op::Read)), (963, 963));
    assert_eq!((read.bytes(), read.findings.contexts().len()), (3852 << 10, 1));
    assert!(read.requests.iter().all(|it| it.ahead && it.error.is_none()));
    // One at a time: what is known of it in microseconds, to a decimal.
    let thinks = read
        .requests
        .windows(2)
        .map(|pair| pair[1].arrived - pair[0].completed.expect("all complete"));
    let thinks: Vec<_> = thinks.collect();
    assert_eq!(thinks.iter().min().map(|ns| ns / 100), Some(75));
    assert_eq!(thinks.iter().max().map(|ns| ns / 1000), Some(130_287));
    assert!((9_850..9_950).contains(&median(thinks)));
    let service = read.requests.iter().map(|it| it.completed.unwrap() - it.dispatched.unwrap());
    assert!((54_250..54_350).contains(&median(service.collect())));
    assert_eq!(read.warnings(), ["lost-cpu"], "{:?}", read.findings.warnings());
}

#[test]
fn binary_and_text_of_a_trace_give_the_same_requests() {
    let binary = read(&data("nvme-readahead.blktrace.1.zst"));
    let text = read(&data("nvme-readahead.blkparse.txt.zst"));
    assert_eq!(text.format, Format::Blkparse);
    assert_eq!(binary.requests, text.requests);
    assert_eq!(text.warnings(), [""; 0], "{:?}", text.findings.warnings());
}

#[test]
fn tracefs_has_dispatches_and_completions() {
    let read = read(&data("emmc.tracefs.txt"));
    assert_eq!(read.format, Format::Tracefs);
    assert_eq!([Op::Write, Op::Read, Op::Flush].map(|op| read.of_op(op)), [1, 2, 1]);
    let first = read.requests[0];
    assert_eq!((first.offset, first.len, first.flags), (3_427_120 * 512, 8192, BioFlags::SYNC));
    assert_eq!((first.arrived, first.dispatched, first.completed), (0, Some(0), Some(791_000)));
    assert!(read.requests.iter().all(|it| it.completed.is_some()));
    assert_eq!(read.warnings(), ["arrivals"]);
}

/// Two queued requests become one at the device, and a third is split there.
#[test]
fn merging_is_undone_and_parts_make_one_request() {
    let lines = [
        "8,0 0 1 0.000000000 7 Q R 100 + 8 [a]",
        "8,0 0 2 0.000001000 7 Q R 108 + 8 [a]",
        "8,0 0 3 0.000001500 7 M R 108 + 8 [a]",
        "8,0 0 4 0.000002000 9 Q W 512 + 16 [b]",
        "8,0 0 5 0.000003000 7 D R 100 + 16 [a]",
        "8,0 0 6 0.000004000 9 D W 512 + 8 [b]",
        "8,0 0 7 0.000005000 9 D W 520 + 8 [b]",
        "8,0 0 8 0.000006000 0 C W 512 + 8 [0]",
        "8,0 0 9 0.000007000 0 C R 100 + 16 [0]",
        "8,0 0 10 0.000008000 0 C W 520 + 8 [5]",
    ];
    let read = read_text(lines.join("\n")).expect("it is of blkparse");
    let times: Vec<_> = read.requests.iter().map(|it| (it.dispatched, it.completed)).collect();
    let both = (Some(3_000), Some(7_000));
    assert_eq!(times, [both, both, (Some(4_000), Some(8_000))]);
    assert_eq!(read.requests[2].error, Some(5));
    assert_eq!(read.findings.contexts(), ["7", "9"]);
}

#[test]
fn files_of_all_processors_are_one_trace_and_other_byte_orders_are_read() {
    let one = zstd::decode_all(&*fs::read(data("nvme-readahead.blktrace.1.zst")).expect("a file"));
    let one = one.expect("it is of zstd");
    let wanted = read(&data("nvme-readahead.blktrace.1.zst")).requests;
    // Every record's fields turned, and every second record to another processor.
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = [Vec::new(), Vec::new()];
    let (mut at, mut number) = (0, 0);
    while at < one.len() {
        let pdu = usize::from(u16::from_le_bytes([one[at + 46], one[at + 47]]));
        let record = &one[at..at + 48 + pdu];
        let mut turned: Vec<u8> = Vec::new();
        for (from, bytes) in [
            (0, 4),
            (4, 4),
            (8, 8),
            (16, 8),
            (24, 4),
            (28, 4),
            (32, 4),
            (36, 4),
            (40, 4),
            (44, 2),
            (46, 2),
        ] {
            turned.extend(record[from..from + bytes].iter().rev());
        }
        turned.extend(&record[48..]);
        files[number % 2].extend(turned);
        (at, number) = (at + 48 + pdu, number + 1);
    }
    for (cpu, file) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("x.blktrace.{cpu}")), file).expect("a file");
    }
    for name in ["x", "x.blktrace.0", "x.blktrace.1"] {
        assert_eq!(read(&folder.path().join(name)).requests, wanted, "{name}");
    }
}

/// Version 8 has the action in 8 bytes behind the process, and is 64 bytes long.
#[test]
fn version_8_of_blktrace_and_numbers_of_cgroups_are_read() {
    let seven = zstd::decode_all(&*fs::read(data("nvme-readahead.blktrace.1.zst")).expect("it"));
    let seven = seven.expect("it is of zstd");
    let (mut eight, mut at) = (Vec::new(), 0);
    while at < seven.len() {
        let pdu = usize::from(u16::from_le_bytes([seven[at + 46], seven[at + 47]]));
        let word = |from: usize| &seven[at + from..at + from + 4];
        let action = u32::from_le_bytes(word(28).try_into().expect("4 bytes"));
        let (code, category) = (action & 0xffff, action >> 16);
        // Each event is of a cgroup, whose number of 8 bytes comes first; notes are not.
        let cgroup = if category & 0x400 == 0 { 0x100 } else { 0 };
        eight.extend(0x6561_7408_u32.to_le_bytes());
        eight.extend(&seven[at + 4..at + 28]);
        eight.extend(word(32));
        eight.extend((u64::from(code | cgroup) | u64::from(category) << 16).to_le_bytes());
        eight.extend(&seven[at + 36..at + 46]);
        let bytes = pdu + if cgroup == 0 { 0 } else { 8 };
        eight.extend(u16::try_from(bytes).expect("a few").to_le_bytes());
        eight.extend([0; 12]);
        eight.extend(std::iter::repeat_n(7, bytes - pdu));
        eight.extend(&seven[at + 48..at + 48 + pdu]);
        at += 48 + pdu;
    }
    let found = read_text(&eight).expect("it is of blktrace");
    assert_eq!(found.requests, read(&data("nvme-readahead.blktrace.1.zst")).requests);
    let cut = read_text(&eight[..eight.len() - 5]).expect("it is read");
    assert_eq!(cut.warnings(), ["cut-record"]);
}

/// What stands on another device has each request a second time.
#[test]
fn one_device_of_a_stack_is_read_and_another_if_it_is_asked_for() {
    // Each device has a tracer with numbers of its own.
    let line = |(device, at, number): (&str, u64, u64)| {
        format!("{device} 0 {number} 0.{at:09} 7 Q R {} + 8 [a]\n", 8 * at)
    };
    let lines = [("8,0", 1, 7), ("253,0", 2, 90), ("8,0", 3, 8)].map(line);
    let (_folder, path) = written(lines.concat());
    let found = read(&path);
    assert_eq!((found.requests.len(), found.warnings()), (2, vec!["other-devices"]));
    let options = Options { device: Some("253,0".to_owned()), ..Options::default() };
    let found = try_read(&path, &options).expect("it is there");
    assert_eq!((found.requests.len(), found.warnings()), (1, vec![]));
    let options = Options { device: Some("9,0".to_owned()), ..Options::default() };
    let error = try_read(&path, &options).err().expect("there is none");
    assert_eq!(error, "there is no request of device 9,0");
}

#[test]
fn tracefs_perf_and_trace_cmd_print_the_same_events() {
    let said = |text: &str| {
        let read = read_text(text).expect("it is of tracefs");
        assert_eq!((read.format, read.requests.len()), (Format::Tracefs, 1), "{text}");
        let request = read.requests[0];
        let context = read.findings.contexts()[0].clone();
        (request.op, request.offset / 512, request.len, request.completed, context)
    };
    // The columns of each as their manuals and the kernel's ftrace.rst show them.
    let wanted = (Op::Write, 1000, 4096, Some(50_000), "77".to_owned());
    let of_tracefs = "# tracer: nop\n#\n\
        \u{20}a b<x>-77 [001] d..1. 10.000100: block_rq_issue: 8,0 WS 4096 () 1000 + 8 \
        none,0,0 [a b<x>]\n\
        \u{20} <idle>-0 [001] d.h1. 10.000150: block_rq_complete: 8,0 WS () 1000 + 8 \
        none,0,0 [0]\n";
    let of_perf = "a b<x> 77 [001] 10.000100: block:block_rq_issue: 8,0 WS 4096 () 1000 + 8 [a]\n\
        swapper 0 [001] 10.000150: block:block_rq_complete: 8,0 WS () 1000 + 8 [0]\n";
    let of_trace_cmd = "cpus=2\n\
        \u{20} a b<x>-77 [001] 10.000100: block_rq_issue: 8,0 WS 4096 () 1000 + 8 [a]\n\
        \u{20} <idle>-0 [001] 10.000150: block_rq_complete: 8,0 WS () 1000 + 8 [0]\n";
    for text in [of_tracefs, of_perf, of_trace_cmd] {
        assert_eq!(said(text), wanted, "{text}");
    }
}

/// A device that has most requests only later is told of.
#[test]
fn device_is_found_from_the_first_events() {
    let mut text = String::new();
    for at in 0_u64..70_000 {
        writeln!(text, "8,0 0 {} {}.{:09} 7 Q R {} + 8 [a]", at + 1, at / 1000, at % 1000, 8 * at)
            .expect("a string");
    }
    for at in 0_u64..80_000 {
        writeln!(
            text,
            "9,0 0 {} {}.{:09} 7 Q R {} + 8 [a]",
            at + 70_001,
            70 + at / 1000,
            at % 1000,
            8 * at
        )
        .expect("a string");
    }
    let read = read_text(text).expect("it is of blkparse");
    assert_eq!(read.requests.len(), 70_000);
    let said =
        read.findings.warnings().iter().map(ToString::to_string).find(|it| it.contains("9,0"));
    let wanted =
        "device 8,0 is read; 1 others are left out (--device), of which 9,0 has more requests";
    assert_eq!(said.as_deref(), Some(wanted));
}

/// Times of arrival, dispatch and completion in us, of a text in which these are the events.
fn times(lines: &[&str]) -> (Vec<[Option<u64>; 3]>, Vec<&'static str>) {
    let line = |(at, line): (usize, &&str)| {
        let (us, rest) = line.split_once(' ').expect("a time first");
        let us: u64 = us.parse().expect("a number");
        format!("8,0 0 {} 0.{us:06}000 7 {rest}\n", at + 1)
    };
    let read = read_text(lines.iter().enumerate().map(line).collect::<String>()).expect("it is");
    let us = |time: Option<u64>| time.map(|ns| ns / 1000);
    let of = |it: &Request| [us(Some(it.arrived)), us(it.dispatched), us(it.completed)];
    (read.requests.iter().map(of).collect(), read.warnings())
}

fn all(times: [u64; 3]) -> [Option<u64>; 3] {
    times.map(Some)
}

/// The block layer flushes before a write with FUA and behind it; nobody asked for these.
#[test]
fn flush_of_the_block_layer_is_nobodys() {
    let (found, warnings) = times(&[
        "0 Q FWFSM 800 + 16 [a]",
        "1 D FN [a]",
        "5 C FN 0 [0]",
        "6 Q FWS [b]",
        "7 D WSM 800 + 16 [a]",
        "9 C WSM 800 + 16 [0]",
        "10 D FN [a]",
        "14 C FN 0 [0]",
        "15 C WFS 800 [0]",
    ]);
    // The flush that was submitted is dispatched with the next one that is.
    assert_eq!(found, [all([0, 7, 9]), all([6, 10, 14])]);
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn event_is_of_the_request_that_has_its_sectors() {
    let (found, _) = times(&[
        "0 Q R 100 + 16 [a]",
        "1 Q R 108 + 8 [b]",
        "2 D R 108 + 8 [b]",
        "3 C R 108 + 8 [0]",
        "10 D R 100 + 16 [a]",
        "20 C R 100 + 16 [0]",
    ]);
    assert_eq!(found, [all([0, 10, 20]), all([1, 2, 3])]);
    // One completion is lost: the next ones are those of the requests that they name.
    let lines = [0, 100, 200, 300].map(|at| {
        let (queued, dispatched) =
            (format!("{at} Q W 8 + 8 [a]"), format!("{} D W 8 + 8 [a]", at + 1));
        [queued, dispatched, format!("{} C W 8 + 8 [0]", at + 9)]
    });
    let mut lines = lines.concat();
    lines.remove(2);
    let (found, warnings) = times(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(found[1..], [all([100, 101, 109]), all([200, 201, 209]), all([300, 301, 309])]);
    assert_eq!((found[0], warnings), ([Some(0), Some(1), None], vec!["unpaired"]));
}

#[test]
fn what_is_outstanding_at_the_end_is_not_lost() {
    let (found, warnings) = times(&[
        "0 Q R 0 + 8 [a]",
        "1 D R 0 + 8 [a]",
        "50 C R 0 + 8 [0]",
        "60 Q R 8 + 8 [a]",
        "61 D R 8 + 8 [a]",
    ]);
    assert_eq!((found[1], warnings), ([Some(60), Some(61), None], vec![]));
}

/// Without submissions: what is issued at once is not inserted, and what is requeued is one.
#[test]
fn request_arrives_with_its_insertion_or_its_dispatch() {
    let (found, warnings) = times(&[
        "0 D R 0 + 8 [a]",
        "5 C R 0 + 8 [0]",
        "6 I R 8 + 8 [a]",
        "7 D R 8 + 8 [a]",
        "8 R R 8 + 8 [a]",
        "9 D R 8 + 8 [a]",
        "20 C R 8 + 8 [0]",
    ]);
    assert_eq!(found, [all([0, 0, 5]), all([6, 9, 20])]);
    assert_eq!(warnings, ["arrivals"]);
}

#[test]
fn operations_of_new_kernels_are_known_and_others_are_counted() {
    let line = |at: u64, rwbs: &str| {
        format!("a-7 [000] d..1 1.{at:06}: block_rq_issue: 8,0 {rwbs} 4096 () {} + 8 [a]\n", 8 * at)
    };
    let kinds = ["WSU", "WFSU", "NS", "WZS", "RB", "WQ"];
    let text: String = (0..).zip(kinds).map(|(at, rwbs)| line(at, rwbs)).collect();
    let read = read_text(text).expect("it is of tracefs");
    let ops: Vec<_> = read.requests.iter().map(|it| it.op).collect();
    assert_eq!(ops, [Op::Write, Op::Write, Op::WriteZeroes, Op::WriteZeroes, Op::Read]);
    assert_eq!(read.warnings(), ["unknown-operations", "arrivals"]);
}

/// Lines as they are found in pages and on phones.
#[test]
fn lines_of_tracefs_may_be_wrapped_and_have_groups_of_threads() {
    let text = "# entries-in-buffer/entries-written: 140/250   #P:4\n#\n\
        \u{20} fio-71  (   70) [001] d..1. 10.000000: block_rq_issue: 8,0 RM 4096 ()\n\
        2564656 + 8 [x]\nCPU:1 [LOST 20 EVENTS]\n\
        \u{20} fio-72  (-----) [001] d..1. 10.000005: block_rq_issue: 8,0 R 4096 () 8 + 8 [x]\n\
        \u{20} fio-72  (   70) [001] d..1. 10.000009: block_rq_complete: 8,0 R () 8 + 8 [-5]\n\
        \u{20} fio-72  (   70) [001] d..1. 10.000009: block_rq_complete: 8,0 RM () 2564656 + 8 \
        [0]\n";
    let read = read_text(text).expect("it is of tracefs");
    assert_eq!(read.findings.contexts(), ["71", "72"]);
    assert_eq!((read.requests[0].offset, read.requests[1].error), (2_564_656 * 512, Some(5)));
    assert_eq!(read.warnings(), ["arrivals", "lost-events"]);
    let said = read.findings.warnings()[1].to_string();
    assert_eq!(said, "the tracer has lost 130 events: their numbers are missing");
}

/// blkparse says what it reads, sums up processes, and has skipped events.
#[test]
fn blkparse_says_more_than_events() {
    let lines = "Input file sda.blktrace.0 added\n# a comment\n\
        8,0 0 1 0.000000000 7 Q R 0 + 8 [a b]\n\
        8,0 0 0 0.000000500 0 m N cfq idle=0\n\
        8,0 0 2 0.000001000 7 C R 0 + 8 [65531]\n\
        fio (7443)\n Reads Queued: 1, 4KiB\n\nCPU0 (sda):\n Reads Queued: 1\n\
        Skips: 7 forward (23 -   0.1%)\n";
    let read = read_text(lines).expect("it is of blkparse");
    assert_eq!((read.requests.len(), read.requests[0].error), (1, Some(5)));
    assert_eq!(read.warnings(), ["lines-left-out", "lost-events"]);
    let cut = read_text(&lines[..lines.find("[65531]").expect("there") - 20]).expect("it is read");
    assert_eq!(cut.warnings(), ["cut-record", "lines-left-out"]);
}
