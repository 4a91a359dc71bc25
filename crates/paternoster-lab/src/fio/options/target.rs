//! Options that say what a job reads and writes.

use super::{Given, OptionInfo, simulated};
use crate::fio::error::Mistake;
use crate::fio::job::FileService;
use crate::fio::spec::Spec;
use crate::fio::value;

/// How many files a job may have.
const MAX_FILES: u32 = 65_536;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated(
        "kb_base",
        &[],
        "int",
        "Whether `k` is 1024 and `kib` 1000 (1024, the default), or the other way round (1000).",
        // It is read before all others, by `resolve`.
        |_, given| given.word(&[("1024", ()), ("1000", ())]),
    ),
    simulated(
        "directory",
        &[],
        "str",
        "Prefix of file names; several, separated by `:`, go to clones in turns.",
        |spec, given| {
            spec.target.directory = given.names()?;
            Ok(())
        },
    ),
    simulated(
        "filename",
        &[],
        "str",
        "The files, separated by `:`. A path below `/dev/` is the whole device.",
        |spec, given| {
            spec.target.filename = given.names()?;
            Ok(())
        },
    ),
    simulated(
        "filename_format",
        &[],
        "str",
        "Names of files without `filename`.",
        |spec, given| {
            given.text()?.as_str().clone_into(&mut spec.target.filename_format);
            Ok(())
        },
    ),
    simulated(
        "nrfiles",
        &["nr_files"],
        "int",
        "How many files: 1 (the default) to 65536.",
        |spec, given| {
            spec.target.nrfiles = given.small(1, MAX_FILES)?;
            Ok(())
        },
    ),
    simulated(
        "file_service_type",
        &[],
        "str[:int]",
        "Which file is next: roundrobin (the default), sequential or random.",
        file_service,
    ),
    simulated(
        "filesize",
        &[],
        "irange",
        "Size of each file; random within a range.",
        |spec, given| {
            let base = given.base;
            let size = |text: &_| value::size(text, base, 1, u64::MAX);
            spec.target.filesize = Some(value::range(given.text()?, size)?);
            Ok(())
        },
    ),
    simulated(
        "size",
        &[],
        "int",
        "How much a job does in all its files, and how long they are together.",
        |spec, given| {
            spec.target.size = Some(given.extent()?);
            Ok(())
        },
    ),
    simulated(
        "io_size",
        &["io_limit"],
        "int",
        "How much a job does in a loop, if not all of its files once. If it is more than that, \
         the job does the greater of it and `loops` passes over its files.",
        |spec, given| {
            spec.target.io_size = Some(given.extent()?);
            Ok(())
        },
    ),
    simulated("offset", &["fileoffset"], "int", "Where a job begins in a file.", |spec, given| {
        spec.target.offset = given.extent()?;
        Ok(())
    }),
    simulated(
        "offset_increment",
        &[],
        "int",
        "How much further each clone begins.",
        |spec, given| {
            spec.target.offset_increment = given.extent()?;
            Ok(())
        },
    ),
    simulated(
        "offset_align",
        &[],
        "int",
        "Alignment of an offset in percent; the block size if 0.",
        |spec, given| {
            spec.target.offset_align = given.size()?;
            Ok(())
        },
    ),
];

fn file_service(spec: &mut Spec, given: &Given<'_>) -> Result<(), Mistake> {
    let text = given.text()?;
    let (word, number) = match text.split_once(|c| c == ':') {
        Some((word, number)) => (word, Some(number)),
        None => (text.clone(), None),
    };
    if ["zipf", "pareto", "normal", "gauss"].contains(&word.as_str()) {
        let what = format!("file_service_type={} is not simulated yet", word.as_str());
        return Err(word.mistake(what));
    }
    let ios = number.map_or(Ok(1), |number| value::small(&number, 1, u32::MAX))?;
    let words = [
        ("roundrobin", FileService::RoundRobin { ios }),
        ("sequential", FileService::Sequential),
        ("random", FileService::Random { ios }),
    ];
    spec.target.file_service = value::word(&word, &words)?;
    Ok(())
}
