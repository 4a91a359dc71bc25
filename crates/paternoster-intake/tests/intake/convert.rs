//! Traces in other formats, and on smaller devices.

use std::fs;

use paternoster::Op;
use paternoster_intake::{Beyond, Converter, Format, Options, Replied, Request, Target};

use crate::{Read, data, read, read_text, try_read, written};

fn converted(read: &Read, target: Target) -> Vec<u8> {
    let mut converter = Converter::new(target, Vec::new()).expect("memory");
    for request in &read.requests {
        let context = &read.findings.contexts()[request.context.0 as usize];
        converter.add(request, context).expect("it can be written");
    }
    converter.finish().expect("memory")
}

/// Events of every kind: flags, errors, flushes with and without data, and two contexts.
const EVENTS: &str = "\
    8,0 0 1 0.000000000 7 Q FWFSM 800 + 8 [a]\n\
    8,0 0 2 0.000001000 9 Q RA 100 + 16 [b]\n\
    8,0 0 3 0.000002000 7 D FWFSM 800 + 8 [a]\n\
    8,0 0 4 0.000003000 9 D RA 100 + 16 [b]\n\
    8,0 0 5 0.000004000 0 C RA 100 + 16 [5]\n\
    8,0 0 6 0.000004000 9 Q DS 4096 + 64 [b]\n\
    8,0 0 7 0.000005000 0 C FWFSM 800 + 8 [0]\n\
    8,0 0 8 0.000006000 9 Q F [b]\n\
    8,0 0 9 0.000007000 9 D F [b]\n\
    8,0 0 10 0.000008000 9 D DS 4096 + 64 [b]\n\
    8,0 0 11 0.000009000 0 C F [0]\n\
    8,0 0 12 0.000009500 0 C DS 4096 + 64 [0]\n";

#[test]
fn converted_trace_is_read_as_it_was() {
    for wanted in [
        read_text(EVENTS).expect("it is of blkparse"),
        read(&data("nvme-readahead.blktrace.1.zst")),
        read(&data("example.spc")),
    ] {
        let csv = converted(&wanted, Target::Csv);
        let found = read_text(&csv).expect("it is a CSV");
        // It has no time but those of requests.
        let first = wanted.requests[0].arrived;
        let since = |time: u64| time - first;
        let moved = wanted.requests.iter().map(|it| Request {
            arrived: since(it.arrived),
            dispatched: it.dispatched.map(since),
            completed: it.completed.map(since),
            ..*it
        });
        let moved = moved.collect::<Vec<_>>();
        assert_eq!((found.format, &found.requests), (Format::Csv, &moved));
        assert_eq!(found.findings.contexts(), wanted.findings.contexts());
        let again = converted(&found, Target::Csv);
        let found = read_text(converted(&wanted, Target::Blktrace)).expect("it is of blktrace");
        assert_eq!((found.format, &found.requests), (Format::Blktrace, &moved));
        assert_eq!(converted(&found, Target::Csv), again);
        let found = read_text(converted(&wanted, Target::Iolog3)).expect("it is of fio");
        let arrivals = |requests: &[Request]| -> Vec<_> {
            let from = requests[0].arrived / 1_000;
            let of =
                |it: &Request| (it.arrived / 1_000 - from, it.context, it.op, it.offset, it.len);
            requests.iter().map(of).collect()
        };
        assert_eq!(arrivals(&found.requests), arrivals(&wanted.requests));
    }
    let spaced = read_text("time:us,op,offset,size,context\n1,R,0,512,a b\n").expect("a CSV");
    let csv = String::from_utf8(converted(&spaced, Target::Csv)).expect("a text");
    assert!(csv.ends_with("\n0,a b,R,0,512,,,\n"), "{csv}");
    let mut converter = Converter::new(Target::Iolog3, Vec::new()).expect("memory");
    let error = converter.add(&spaced.requests[0], "a b").expect_err("two words").to_string();
    assert_eq!(error, "context \"a b\": a log of fio has files whose names are words");
    let long = Request { len: 1 << 32, ..spaced.requests[0] };
    let mut converter = Converter::new(Target::Blktrace, Vec::new()).expect("memory");
    let error = converter.add(&long, "a").expect_err("it is long").to_string();
    assert!(error.starts_with("a request of 4294967296 bytes: blktrace has 32 bits"), "{error}");
}

#[test]
fn requests_behind_the_end_of_a_device_are_refused_wrapped_or_scaled() {
    const MIB: u64 = 1 << 20;
    let text = "time:us,op,offset,size\n0,R,0,4096\n1,R,10489856,4096\n2,R,41938944,4096\n";
    let (_folder, path) = written(text);
    let fitted = |size: u64, beyond| {
        let options = Options { size: Some(size), beyond, ..Options::default() };
        let read = try_read(&path, &options)?;
        let offsets: Vec<_> = read.requests.iter().map(|it| it.offset).collect();
        Ok::<_, String>((offsets, read.warnings()))
    };
    let whole = (vec![0, 10 * MIB + 4096, 40 * MIB - 4096], vec![]);
    assert_eq!(fitted(40 * MIB, Beyond::Refuse), Ok(whole.clone()));
    assert_eq!(fitted(40 * MIB, Beyond::Scale), Ok(whole));
    let error = fitted(20 * MIB, Beyond::Refuse).expect_err("too small");
    assert!(
        error.starts_with("request 3 ends at byte 41943040: the device has 20971520"),
        "{error}"
    );
    let wrapped = (vec![0, 10 * MIB + 4096, 20 * MIB - 4096], vec!["moved"]);
    assert_eq!(fitted(20 * MIB, Beyond::Wrap), Ok(wrapped));
    let scaled = (vec![0, 5 * MIB + 4096, 20 * MIB - 4096], vec!["moved"]);
    assert_eq!(fitted(20 * MIB, Beyond::Scale), Ok(scaled));
    assert!(fitted(2048, Beyond::Wrap).expect_err("too small").contains("no longer than that"));
}

#[test]
fn names_and_zeroes_of_a_trace_stay_in_others() {
    let text = "time:ns,context,rwbs,offset:bytes,size:bytes\n0,gold,WZS,0,4096\n5,1,R,0,512\n\
                9,007,R,512,512\n9,7,R,512,512\n12,gold,F,0,0\n";
    let wanted = read_text(text).expect("a CSV");
    let found = read_text(converted(&wanted, Target::Blktrace)).expect("it is of blktrace");
    assert_eq!(found.findings.contexts(), ["gold", "1", "007", "7"]);
    // Zeroes are a discard there.
    let ops = |read: &Read| read.requests.iter().map(|it| it.op).collect::<Vec<_>>();
    assert_eq!(ops(&wanted)[0], Op::WriteZeroes);
    assert_eq!(ops(&found)[1..], ops(&wanted)[1..]);
    let again = read_text(converted(&wanted, Target::Csv)).expect("a CSV");
    assert_eq!(ops(&again), ops(&wanted));
}

/// With its sidecar nothing is lost.
#[test]
fn recording_has_in_its_sidecar_what_blktrace_cannot_have() {
    let text = "time:ns,context,rwbs,offset:bytes,size:bytes,dispatched:ns,completed:ns,error\n\
                0,a very long name of a context,WZS,0,4096,1,9,\n3,b,R,513,511,4,12,5\n\
                5,b,R,1024,700,6,8,\n20,b,F,0,0,21,22,\n30,b,R,0,512,,,\n";
    let wanted = read_text(text).expect("a CSV");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monday.blktrace.0");
    let mut sidecar = Vec::new();
    let out = fs::File::create(&path).expect("a file");
    let converter = Converter::new(Target::Blktrace, out).expect("a file");
    let mut converter = converter.with_sidecar(&mut sidecar).expect("memory");
    for request in &wanted.requests {
        let context = &wanted.findings.contexts()[request.context.0 as usize];
        converter.add(request, context).expect("it can be written");
    }
    drop(converter.finish().expect("a file"));
    fs::write(folder.path().join("monday.pater"), &sidecar).expect("a file");
    let found = read(&path);
    // Each has a reply now, which came when it had completed.
    let replied = |it: &Request| Request {
        replied: it.completed.map(|at| Replied { at, after: None }),
        ..*it
    };
    assert_eq!(found.requests, wanted.requests.iter().map(replied).collect::<Vec<_>>());
    let parties = &found.findings.recorded().expect("it has a sidecar").parties;
    let names: Vec<_> = parties.values().map(|party| party.name.as_str()).collect();
    assert_eq!(names, ["a very long name of a context", "b"]);
    // A sidecar that was cut has less, and says so; one that is wrong is refused.
    fs::write(folder.path().join("monday.pater"), &sidecar[..sidecar.len() - 1]).expect("a file");
    assert_eq!(read(&path).warnings(), ["not-in-sidecar", "parts-of-sectors"]);
    fs::write(folder.path().join("monday.pater"), b"PATREC77").expect("a file");
    let error = try_read(&path, &Options::default()).err().expect("no sidecar");
    assert_eq!(error, "the sidecar: it does not begin with \"PATREC01\"");
}
