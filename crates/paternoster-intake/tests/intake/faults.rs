//! Traces that are wrong, and options that are.

use std::fs;

use paternoster_intake::{Format, Options};

use crate::{data, read, read_text, try_read, written};

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

/// An option that would have no effect is an error.
#[test]
fn option_is_of_its_formats() {
    let some = Some("8,0".to_owned());
    for (name, options) in [
        ("--unit", Options { unit: some.clone(), ..Options::default() }),
        ("--device", Options { device: some.clone(), ..Options::default() }),
        (
            "--columns",
            Options { columns: some.clone(), format: Some(Format::Spc), ..Options::default() },
        ),
    ] {
        let error = try_read(&data("example.spc"), &options).err().expect(name);
        assert_eq!(error, format!("{name} is for other formats than spc"));
    }
    let options = Options { reads: some, ..Options::default() };
    let error = try_read(&data("emmc.tracefs.txt"), &options).err().expect("--read");
    assert_eq!(error, "--read is for other formats than tracefs");
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
