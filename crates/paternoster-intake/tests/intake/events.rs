//! Formats with events: blktrace, blkparse and tracefs.

use std::fmt::Write as _;
use std::fs;

use paternoster::{BioFlags, Op};
use paternoster_intake::{Format, Options};

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
    let line = |device: &str, at: u64, action: &str| {
        format!("{device} 0 {at} 0.{at:09} 7 {action} R {} + 8 [a]\n", 8 * at)
    };
    let lines = [("8,0", 1), ("253,0", 2), ("8,0", 3)].map(|(device, at)| line(device, at, "Q"));
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
