//! Formats with a request a record, and how files are read.

use std::fs;
use std::io::Write as _;

use paternoster::Op;
use paternoster_intake::{Format, Options};

use crate::{data, read, read_text, try_read, written};

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
    // Version 2: the fields in another order, and a response time behind.
    let mut bytes = Vec::new();
    bytes.extend(0x88_u16.to_le_bytes());
    bytes.extend(0x0200_u16.to_le_bytes());
    for field in [7_u32, 4096, 1] {
        bytes.extend(field.to_le_bytes());
    }
    for field in [16_u64, 9_000_000, 250] {
        bytes.extend(field.to_le_bytes());
    }
    let [request] = read_text(&bytes).expect("it is of vscsi").requests[..] else { panic!("one") };
    assert_eq!((request.op, request.offset, request.len), (Op::Read, 8192, 4096));
    assert_eq!((request.arrived, request.completed), (0, Some(250_000)));
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
fn log_of_fio_has_a_file_a_context() {
    let three = "fio version 3 iolog\n0 /a add\n5 /a open\n7 /a read 0 4096\n7 /b add\n\
                 7 /b open\n9 /b trim 512 512\n12 /a sync 0 0\n12 /a close\n";
    let read = read_text(three).expect("it is of fio");
    assert_eq!(
        (read.format, read.findings.contexts()),
        (Format::Iolog, &["/a".into(), "/b".into()][..])
    );
    let told: Vec<_> = read.requests.iter().map(|it| (it.arrived, it.op, it.len)).collect();
    assert_eq!(told, [(0, Op::Read, 4096), (2_000, Op::Discard, 512), (5_000, Op::Flush, 0)]);
    let two = "fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 2 0\n/a write 0 512\n";
    let read = read_text(two).expect("it is of fio");
    assert_eq!(read.requests.iter().map(|it| it.arrived).collect::<Vec<_>>(), [0, 2_000_000]);
    let error = read_text(three.replace("trim", "frob")).err().expect("frob");
    assert!(error.starts_with("line 7: column 6: \"frob\": add, open"), "{error}");
}

#[test]
fn words_of_a_read_are_those_that_are_said() {
    let (_folder, path) = written("0,get,0,512\n1,put,0,512\n2,0,0,512\n");
    let columns = Some("time:us,op,offset,size".to_owned());
    let reads = Some("get,0".to_owned());
    let options = Options { columns: columns.clone(), reads, ..Options::default() };
    let read = try_read(&path, &options).expect("it is a CSV");
    assert_eq!([Op::Read, Op::Write].map(|op| read.of_op(op)), [2, 1]);
    let error = try_read(&path, &Options { columns, ..Options::default() }).err().expect("get");
    assert_eq!(
        error,
        "line 1: \"get\": R, W, read, write, trim or flush in either case is allowed"
    );
}

/// Copies of some traces begin with the names of their columns.
#[test]
fn header_of_a_known_trace_says_its_format() {
    for (format, text, arrived, offset) in [
        (
            Format::Alibaba,
            "device_id,opcode,offset,length,timestamp\n3,R,512,4096,1577808000000046\n\
             3,R,512,4096,1577808000000049\n",
            3_000,
            512,
        ),
        (
            Format::Msr,
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
             128166372003061629,usr,0,Read,512,4096,7\n128166372003061639,usr,0,Read,512,4096,7\n",
            1_000,
            512,
        ),
        (
            Format::Tencent,
            "Timestamp,Offset,Size,IOType,VolumeID\n1538323200,1,8,1,7\n1538323201,1,8,1,7\n",
            1_000_000_000,
            512,
        ),
    ] {
        let read = read_text(text).expect("it is known");
        assert_eq!((read.format, read.requests.len()), (format, 2));
        assert_eq!((read.requests[1].arrived, read.requests[1].offset), (arrived, offset));
    }
}

#[test]
fn unit_of_a_csv_is_assumed_by_its_first_time_and_that_is_said() {
    let read = read_text(
        "\u{feff}timestamp,op,lba,size\n1577808000000046,R,9,512\n1577808000000047,R,9,512\n",
    );
    let read = read.expect("it has names");
    assert_eq!((read.requests[1].arrived, read.requests[0].offset), (1_000, 9 * 512));
    assert_eq!(read.warnings(), ["unit-assumed"]);
    let (_folder, path) = written("t,o,b,s\n1.5,R,512,512\n2.5,W,0,512\n");
    let columns = Some("time,op,offset,size".to_owned());
    let read =
        try_read(&path, &Options { columns, ..Options::default() }).expect("a header is there");
    assert_eq!((read.requests.len(), read.requests[1].arrived), (2, 1_000_000_000));
    let error = read_text("time:us,op,offset,size,context\n1,R,0,512,\"a\n2,R,0,512,b\n");
    assert_eq!(error.err().expect("a quote"), "line 2: a quote is not closed in its line");
}

#[test]
fn disksim_of_disksim_is_in_milliseconds_with_hexadecimal_flags() {
    let read = read_text("0 0 8 8 a\n0.5 0 16 8 1\n1.75 0 8 8 b\n").expect("it is of DiskSim");
    assert_eq!(
        read.requests.iter().map(|it| it.arrived).collect::<Vec<_>>(),
        [0, 500_000, 1_750_000]
    );
    assert_eq!([Op::Read, Op::Write].map(|op| read.of_op(op)), [2, 1]);
}

#[test]
fn trace_may_come_by_a_pipe_and_an_idle_cpu_has_an_empty_file() {
    let bytes =
        zstd::decode_all(&*fs::read(data("nvme-readahead.blktrace.1.zst")).expect("a file"));
    let bytes = bytes.expect("it is of zstd");
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe");
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, &bytes).expect("it is read"));
        assert_eq!(read(&pipe).requests.len(), 963);
    });
    fs::write(folder.path().join("x.blktrace.0"), "").expect("a file");
    fs::write(folder.path().join("x.blktrace.1"), &bytes).expect("a file");
    let found = read(&folder.path().join("x"));
    assert_eq!((found.requests.len(), found.warnings()), (963, vec![]));
    fs::write(folder.path().join("x.blktrace.1.zst"), &bytes).expect("a file");
    let error = try_read(&folder.path().join("x"), &Options::default()).err().expect("two");
    assert!(error.ends_with("x.blktrace.1.zst are of one CPU: keep one"), "{error}");
}
