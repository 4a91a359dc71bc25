//! Traces of each format, and what is known of them from elsewhere: tests/data/README.md.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use paternoster::{BioFlags, Op};
use paternoster_intake::{Findings, Format, Options, Request, Trace, Warning};
use tempfile::TempDir;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// All of a trace.
struct Read {
    format: Format,
    requests: Vec<Request>,
    findings: Findings,
}

impl Read {
    fn warnings(&self) -> Vec<&'static str> {
        self.findings.warnings().iter().map(Warning::kind).collect()
    }

    fn of_op(&self, op: Op) -> usize {
        self.requests.iter().filter(|request| request.op == op).count()
    }

    fn bytes(&self) -> u64 {
        self.requests.iter().map(|request| request.len).sum()
    }
}

fn try_read(path: &Path, options: &Options) -> Result<Read, String> {
    let said = |error: paternoster_intake::Error| error.to_string();
    let mut trace = Trace::open(path, options).map_err(said)?;
    let format = trace.format();
    let mut requests = Vec::new();
    while let Some(request) = trace.next_request().map_err(said)? {
        requests.push(request);
    }
    Ok(Read { format, requests, findings: trace.finish() })
}

fn read(path: &Path) -> Read {
    try_read(path, &Options::default()).expect("it is a trace")
}

/// A trace of that text.
fn written(text: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    fs::write(&path, text).expect("a file");
    (folder, path)
}

fn read_text(text: impl AsRef<[u8]>) -> Result<Read, String> {
    let (_folder, path) = written(text);
    try_read(&path, &Options::default())
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

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

#[test]
fn disksim_of_mqsim_is_in_nanoseconds_and_says_that_this_is_assumed() {
    let read = read(&data("tpcc-small.disksim.zst"));
    assert_eq!(read.format, Format::Disksim);
    assert_eq!((read.requests.len(), read.findings.contexts().len()), (6_999, 16));
    assert_eq!([Op::Read, Op::Write].map(|op| read.of_op(op)), [4_381, 2_618]);
    let span = read.requests.last().expect("one").arrived;
    assert_eq!((span + 50_000) / 100_000, 1_365, "136.5 ms");
    assert!(read.warnings().contains(&"unit-assumed"));
}

#[test]
fn spc_has_blocks_bytes_and_fields_that_come_and_go() {
    let read = read(&data("example.spc"));
    assert_eq!(read.format, Format::Spc);
    assert_eq!([Op::Write, Op::Read].map(|op| read.of_op(op)), [8, 3]);
    assert_eq!(read.findings.contexts(), ["0", "1", "2"]);
    let first = read.requests[0];
    assert_eq!((first.offset, first.len), (1_048_576 * 512, 8192));
    assert_eq!(read.requests[6].arrived, 400_000_000, "0.5 s after 0.1 s");
}

#[test]
fn alibaba_has_microseconds() {
    let read = read(&data("example.alibaba.csv"));
    assert_eq!(read.format, Format::Alibaba);
    assert_eq!((read.findings.contexts().len(), read.of_op(Op::Read)), (6, 2));
    assert_eq!(read.requests.last().map(|it| it.arrived), Some(763_000));
}

#[test]
fn msr_has_filetimes_and_response_times_of_100_ns() {
    let text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                128166372016382155,usr,1,Write,1317441536,8192,1963\n";
    let read = read_text(text).expect("it is of MSR");
    assert_eq!(
        (read.format, read.findings.contexts()),
        (Format::Msr, &["usr.0".into(), "usr.1".into()][..])
    );
    let [one, two] = read.requests[..] else { panic!("two") };
    assert_eq!((one.arrived, one.completed), (0, Some(4_128_600)));
    assert_eq!(two.arrived, 13_320_526 * 100);
}

#[test]
fn tencent_has_whole_seconds_in_which_arrivals_are_spread() {
    let text = "1538323200,12910952,128,0,1063\n1538323200,1,8,1,1063\n\
                1538323200,2,8,1,7\n1538323200,3,8,1,7\n1538323201,4,8,0,7\n";
    let read = read_text(text).expect("it is of Tencent");
    assert_eq!((read.format, read.warnings()), (Format::Tencent, vec!["spread-in-seconds"]));
    let times: Vec<_> = read.requests.iter().map(|it| it.arrived / 1_000_000).collect();
    assert_eq!(times, [0, 250, 500, 750, 1000]);
    assert_eq!((read.requests[0].offset, read.requests[0].len), (12_910_952 * 512, 128 * 512));
}

#[test]
fn vscsi_has_microseconds_and_bytes() {
    // Version 1: a write of 512 bytes at block 8, bit 31 of its serial number set; then a flush.
    let record = |serial: u32, len: u32, command: u16, block: u64, time: u64| {
        let mut bytes = Vec::new();
        bytes.extend(serial.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(command.to_le_bytes());
        bytes.extend(0x0100_u16.to_le_bytes());
        bytes.extend(block.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes
    };
    let one = record(1 << 31, 512, 0x2a, 8, 5_000_000);
    let two = record(2, 0, 0x35, 0, 5_000_040);
    let read = read_text([one.clone(), two].concat()).expect("it is of vscsi");
    assert_eq!((read.format, read.requests.len()), (Format::Vscsi, 2));
    let [write, flush] = read.requests[..] else { panic!("two") };
    assert_eq!((write.op, write.offset, write.len), (Op::Write, 4096, 512));
    assert_eq!((flush.op, flush.arrived), (Op::Flush, 40_000));
    let mut other = one.clone();
    other[15] = 2;
    let error = read_text([one.repeat(9), other].concat()).err().expect("a version of its own");
    assert_eq!(error, "byte 288: a record of version 2: all are of 1 so far");
}

#[test]
fn csv_has_names_in_its_first_line_or_in_an_option() {
    let read = read_text(
        "time:us,op,offset:sectors,size:bytes,tenant\n5,R,8,4096,gold\n\
                          7,write,16,512,\"a,b\"\n",
    );
    let read = read.expect("it has names");
    assert_eq!(read.findings.contexts(), ["gold", "a,b"]);
    let [one, two] = read.requests[..] else { panic!("two") };
    assert_eq!((one.offset, one.len, two.arrived), (4096, 4096, 2000));
    let (_folder, path) = written("9|x\n");
    let options = Options { columns: Some("time,offset".to_owned()), ..Options::default() };
    let error = try_read(&path, &options).err().expect("columns are missing");
    assert_eq!(error, "line 1: there is no column of \"op\": \"time,offset\"");
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
fn trace_is_decompressed_by_its_content() {
    let plain = fs::read(data("example.spc")).expect("a file");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(&plain).expect("memory");
    let zst = zstd::encode_all(&plain[..], 1).expect("memory");
    let wanted = read(&data("example.spc")).requests;
    for compressed in [gz.finish().expect("memory"), zst] {
        assert_eq!(read_text(compressed).expect("it is of SPC").requests, wanted);
    }
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
    assert_eq!(error, "there is no event of device 9,0");
}

#[test]
fn faults_are_refused_or_warned_of_by_name() {
    let lines = |count: u64| {
        let line = |at: u64| {
            format!("0,R,{},4096,{}\n", at * 4096, 1_577_808_000_000_000 + at * 100 + at % 7)
        };
        (0..count).map(line).collect::<String>()
    };
    let warned = |text: &str| read_text(text).expect("it is read").warnings();
    assert_eq!(warned(&lines(2000)), [""; 0]);
    let silent = lines(2000) + "0,R,0,4096,1577809000000000\n";
    assert_eq!(warned(&silent), ["gap"]);
    let mut late: Vec<_> = lines(2000).lines().map(str::to_owned).collect();
    late.swap(500, 502);
    assert_eq!(warned(&late.join("\n")), ["times-go-back"]);
    late.swap(0, 1900);
    assert!(read_text(late.join("\n")).err().expect("too late").contains("at most 10000000 ns"));
    let parts = lines(3).replacen("4096,", "4095,", 1);
    assert_eq!(warned(&parts), ["parts-of-sectors"]);
    let coarse = (0..2000).map(|_| "0,R,0,4096,1577808000000000\n").collect::<String>();
    assert_eq!(warned(&coarse), ["coarse-clock"]);
    let error = read_text(lines(9) + "0,X,0,4096,1577808000000000\n").err().expect("X");
    assert_eq!(error, "line 10: \"X\": R, W, read, write, trim or flush in either case is allowed");
    let error = read_text("a b c\n").err().expect("no trace");
    assert!(error.starts_with("the format of the trace is not known: --format says it"), "{error}");
    assert!(read(&data("nvme-readahead.blktrace.1.zst")).warnings().contains(&"lost-cpu"));
    let whole = zstd::decode_all(&*fs::read(data("nvme-readahead.blktrace.1.zst")).expect("it"));
    let whole = whole.expect("it is of zstd");
    assert_eq!(warned_of(&whole[..whole.len() - 10]), ["cut-record"]);
    let mut wrong = whole.clone();
    wrong[48 + 16] ^= 1;
    let error = read_text(&wrong).err().expect("a wrong magic");
    assert!(error.starts_with("byte 64: 0x65617406 is found"), "{error}");
    let text = zstd::decode_all(&*fs::read(data("nvme-readahead.blkparse.txt.zst")).expect("it"));
    let text = String::from_utf8(text.expect("it is of zstd")).expect("a text");
    let those = |keep: &dyn Fn(usize, &str) -> bool| {
        let kept = text.lines().enumerate().filter(|(at, line)| keep(*at, line));
        kept.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(warned(&those(&|_, line| !line.contains("  C "))), ["lost-events"]);
    assert_eq!(warned(&those(&|at, _| at >= 3500)), [""; 0], "it begins between two requests");
    assert_eq!(warned(&those(&|at, _| at >= 3503)), ["begun-in-the-middle"]);
    // The same with numbers that do not tell of it, and one completion of ten that is missing.
    let renumbered = those(&|at, line| at % 70 >= 7 || !line.contains("  C "));
    let renumbered = renumbered.lines().enumerate().map(|(at, line)| {
        let mut words: Vec<_> = line.split_ascii_whitespace().map(str::to_owned).collect();
        if words.len() > 4 && words[0].contains(',') {
            words[2] = at.to_string();
        }
        words.join(" ")
    });
    assert_eq!(warned(&renumbered.collect::<Vec<_>>().join("\n")), ["unpaired"]);
}

fn warned_of(bytes: &[u8]) -> Vec<&'static str> {
    read_text(bytes).expect("it is read").warnings()
}

/// Bytes that are turned, cut and repeated: an error or requests, and no panic.
#[test]
fn traces_that_are_damaged_anywhere_do_not_panic() {
    let mut random = fastrand::Rng::with_seed(39);
    let (_folder, path) = written("");
    for name in [
        "nvme-readahead.blktrace.1.zst",
        "nvme-readahead.blkparse.txt.zst",
        "tpcc-small.disksim.zst",
        "emmc.tracefs.txt",
        "example.spc",
        "example.alibaba.csv",
    ] {
        let format = read(&data(name)).format;
        let bytes = fs::read(data(name)).expect("a file");
        let bytes =
            if name.ends_with("zst") { zstd::decode_all(&*bytes).expect("it") } else { bytes };
        let bytes = &bytes[..bytes.len().min(4096)];
        for _ in 0..1000 {
            let mut damaged = bytes.to_vec();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..damaged.len());
                match random.u8(..4) {
                    0 => damaged[at] = random.u8(..),
                    1 => damaged[at] = *random.choice(b"0123456789+-,. \n").expect("some"),
                    2 => damaged.truncate(at.max(1)),
                    _ => damaged.extend_from_within(at..(at + 100).min(damaged.len())),
                }
            }
            fs::write(&path, &damaged).expect("a file");
            let format = random.bool().then_some(format);
            let _ = try_read(&path, &Options { format, ..Options::default() });
        }
    }
}
