//! A trace of any format, which may be the one that the first byte says, or is found.

#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use paternoster_intake::{Beyond, Converter, Format, Options, Target, Trace};

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let path = std::env::temp_dir().join(format!("intake.{}", std::process::id()));
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(bytes).expect("it is written");
    let format = Format::ALL.get(usize::from(first)).copied();
    let (size, beyond) = (Some(1 << 40), Beyond::Wrap);
    let options = Options { format, size, beyond, ..Options::default() };
    let Ok(mut trace) = Trace::open(&path, &options) else { return };
    let mut converter = Converter::new(Target::Blktrace, std::io::sink()).expect("a sink");
    while let Ok(Some(request)) = trace.next_request() {
        let context = &trace.findings().contexts()[request.context.0 as usize];
        let _ = converter.add(&request, context);
    }
    let _ = converter.finish();
    let _ = trace.finish();
});
