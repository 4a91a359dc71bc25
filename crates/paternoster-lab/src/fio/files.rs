//! The files of jobs: their names, how long they are, and where they lie on the device.
//!
//! A file is as long as the jobs that use it need. It lies on the device in one piece, behind the
//! file that was named before it, or where `; lab: at=` says. A path below `/dev/` is the whole
//! device.

use indexmap::IndexMap;

use super::error::{Mistake, Mistakes, Place};
use super::job::{File, Region};
use super::resolve::JobClone;
use super::spec::Target;
use super::value::Extent;
use paternoster_model::Draws;

/// Files begin at multiples of this.
const ALIGNMENT: u64 = 1 << 20;

/// How many files all jobs may have.
pub(super) const MAX_FILES: usize = 1 << 20;

/// The files of all jobs so far, which have no place yet.
#[derive(Debug)]
pub(super) struct Files {
    /// By path, in the order in which they were named.
    named: IndexMap<String, Named>,
    device_bytes: u64,
    /// The device itself, once it is named.
    device: Option<usize>,
}

/// A file that has no place yet.
#[derive(Debug)]
struct Named {
    /// What the jobs so far need.
    bytes: u64,
    /// Where it should lie.
    at: Option<u64>,
    /// What said so, or how long it is.
    place: Place,
}

/// What a job does with its files.
#[derive(Debug)]
pub(super) struct Work {
    /// A region for each file.
    pub(super) regions: Vec<Region>,
    /// How much is done in a loop, where that is not the regions once.
    pub(super) io_bytes: Option<u64>,
}

impl Files {
    pub(super) fn new(device_bytes: u64) -> Self {
        Self { named: IndexMap::new(), device_bytes, device: None }
    }

    /// Finds or makes the files of a job, and says what it does with them.
    pub(super) fn work(
        &mut self,
        target: &Target,
        clone: &JobClone<'_>,
        draws: &mut Draws,
    ) -> Result<Work, Mistake> {
        let paths = paths(target, clone);
        if self.named.len() + paths.len() > MAX_FILES {
            let what = format!("{MAX_FILES} files in all: no more are allowed");
            return Err(clone.mistake(&["nrfiles", "numjobs"], what));
        }
        // The files of other clones follow those of the first.
        let mut at = target.at.filter(|_| clone.number == 0);
        let count = u64::try_from(paths.len()).expect("a length fits");
        let mut regions = vec![];
        for path in paths {
            let filesize = target.filesize.map(|range| draws.between(range));
            let file = self.find(&path, &clone.place(&["filename"]))?;
            let region = self.region(&path, file, &Share { target, clone, count, filesize })?;
            let needed = filesize.unwrap_or(0).max(region.start.saturating_add(region.bytes));
            let file = file.unwrap_or_else(|| {
                let at = at.take().map(|at| part_of(at, self.device_bytes));
                let place = clone.place(&["lab: at", "size", "filesize"]);
                self.named.insert_full(path, Named { bytes: needed, at, place }).0
            });
            if self.device != Some(file) {
                self.named[file].bytes = self.named[file].bytes.max(needed);
            }
            regions.push(Region { file, ..region });
        }
        let whole = regions.iter().map(|region| region.bytes).fold(0, u64::saturating_add);
        let limit = match (target.io_size, target.size, target.filesize) {
            (Some(Extent::Bytes(0)), ..) => None,
            (Some(io_size), ..) => Some(part_of(io_size, whole)),
            (None, Some(Extent::Bytes(size)), Some(_)) if size > 0 => Some(size.min(whole)),
            _ => None,
        };
        Ok(Work { regions, io_bytes: limit })
    }

    /// Finds or makes the file of a log, which reaches `end`: what says so is at `place`. A file
    /// that is made lies there first.
    pub(super) fn of_log(
        &mut self,
        path: &str,
        end: u64,
        place: &Place,
        at: Option<Extent>,
    ) -> Result<usize, Mistake> {
        let file = match self.find(path, place)? {
            Some(file) => file,
            None if self.named.len() >= MAX_FILES => {
                let what = format!("{MAX_FILES} files in all: no more are allowed");
                return Err(Mistake { place: place.clone(), what });
            }
            None => {
                let at = at.map(|at| part_of(at, self.device_bytes));
                let named = Named { bytes: 0, at, place: place.clone() };
                self.named.insert_full(path.to_owned(), named).0
            }
        };
        let named = &mut self.named[file];
        if end > named.bytes {
            named.bytes = end;
            named.place = place.clone();
        }
        Ok(file)
    }

    /// The path of a file.
    pub(super) fn path(&self, file: usize) -> &str {
        self.named.get_index(file).expect("a file of a job was named").0
    }

    /// Gives each file its place.
    pub(super) fn lay_out(self, mistakes: &mut Mistakes) -> Vec<File> {
        let mut files = vec![];
        let mut spans = vec![];
        let mut last_end = 0;
        for (index, (path, Named { bytes, at, place })) in self.named.into_iter().enumerate() {
            let is_device = self.device == Some(index);
            let from = at.unwrap_or(last_end);
            let start = if is_device { Some(0) } else { from.checked_next_multiple_of(ALIGNMENT) };
            let end = start.and_then(|start| start.checked_add(bytes));
            let span = start.zip(end).filter(|&(_, end)| end <= self.device_bytes);
            let Some((start, end)) = span else {
                let what = format!(
                    "{path} of {bytes} bytes does not fit on the device from {from} on, which has \
                     {}",
                    self.device_bytes
                );
                mistakes.add(Mistake { place, what });
                continue;
            };
            if !is_device {
                last_end = end;
                spans.push((start, end, path.clone(), place));
            }
            files.push(File { path, bytes, start });
        }
        spans.sort();
        for pair in spans.windows(2) {
            let [(_, end, under, before), (start, _, path, place)] = pair else {
                unreachable!("a window has two")
            };
            if start < end {
                let what = format!("{path} and {under} would lie on each other");
                mistakes.add(Mistake { place: place.max(before).clone(), what });
            }
        }
        files
    }

    /// The region of a job in a file, known or not.
    fn region(
        &self,
        path: &str,
        file: Option<usize>,
        share: &Share<'_>,
    ) -> Result<Region, Mistake> {
        let Share { target, clone, count, filesize } = *share;
        let size = target.size.filter(|&size| size != Extent::Bytes(0));
        let is_device = file.is_some() && file == self.device;
        let known = file.map(|file| self.named[file].bytes);
        // What offsets in percent are of, and where the region ends unless `size` says.
        let whole = match (filesize, size) {
            (Some(bytes), _) if !is_device => Some(bytes),
            (_, Some(Extent::Bytes(size))) if !is_device => Some(size / count),
            _ => known,
        };
        let Some(whole) = whole else {
            if target.size == Some(Extent::Bytes(0)) {
                let what = format!(
                    "size=0 is all of a file that is there before, as /dev/sda or a file of a job \
                     before this one: {path} is not"
                );
                return Err(clone.mistake(&["size"], what));
            }
            let what = "the files are not there before: size=... or filesize=... is needed";
            return Err(clone.mistake(&["size"], what.to_owned()));
        };
        let start = start(whole, target, clone);
        let left = whole.saturating_sub(start);
        let bytes = match size {
            Some(percent @ Extent::Percent(_)) => part_of(percent, whole).min(left),
            Some(Extent::Bytes(size)) if is_device => (size / count).min(left),
            // A file that is made for the job is as long as it takes.
            Some(Extent::Bytes(size)) if filesize.is_none() => size / count,
            _ => left,
        };
        if bytes < clone.needed() {
            let block = clone.needed();
            let what =
                format!("{bytes} bytes of {path} from {start} on: a block of {block} does not fit");
            return Err(clone.mistake(&["size", "filesize", "offset"], what));
        }
        Ok(Region { file: 0, start, bytes })
    }

    /// The file of that path, if there is one. The device is made when it is first named.
    fn find(&mut self, path: &str, place: &Place) -> Result<Option<usize>, Mistake> {
        if !path.starts_with("/dev/") {
            return Ok(self.named.get_index_of(path));
        }
        let device = *self.device.get_or_insert_with(|| {
            let device = Named { bytes: self.device_bytes, at: None, place: place.clone() };
            self.named.insert_full(path.to_owned(), device).0
        });
        let (named, _) = self.named.get_index(device).expect("it was named");
        if named != path {
            let what = format!("{path} beside {named}: there is one device");
            return Err(Mistake { place: place.clone(), what });
        }
        Ok(Some(device))
    }
}

/// What a job says of one of its files.
#[derive(Clone, Copy)]
struct Share<'a> {
    target: &'a Target,
    clone: &'a JobClone<'a>,
    /// How many files the job has.
    count: u64,
    /// How long `filesize` says that it is.
    filesize: Option<u64>,
}

/// Where the region starts in a file of `whole` bytes.
fn start(whole: u64, target: &Target, clone: &JobClone<'_>) -> u64 {
    let align = match target.offset_align {
        0 => clone.least_block(),
        align => align,
    };
    let bytes = |extent| match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(_) => {
            let exact = part_of(extent, whole);
            exact.checked_next_multiple_of(align).unwrap_or(exact)
        }
    };
    let increment = bytes(target.offset_increment).saturating_mul(clone.number.into());
    bytes(target.offset).saturating_add(increment)
}

/// The paths of a job's files.
fn paths(target: &Target, clone: &JobClone<'_>) -> Vec<String> {
    let inside = |directory: Option<&String>, name: String| match directory {
        Some(directory) => format!("{}/{}", directory.trim_end_matches('/'), name),
        None => name,
    };
    let directories = &target.directory;
    if !target.filename.is_empty() {
        // fio takes the first directory where names are given.
        let names = target.filename.iter();
        return names.map(|name| inside(directories.first(), name.clone())).collect();
    }
    let turn = usize::try_from(clone.number).expect("a number of a clone fits");
    let directory = directories.get(turn % directories.len().max(1));
    let name = |file: u32| {
        let name = target.filename_format.replace("$jobname", clone.name);
        let name = name.replace("$jobnum", &clone.number.to_string());
        name.replace("$filenum", &file.to_string())
    };
    (0..target.nrfiles).map(|file| inside(directory, name(file))).collect()
}

/// What an extent is of `whole` bytes.
pub(super) fn part_of(extent: Extent, whole: u64) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => {
            let part = u128::from(whole) * u128::from(percent) / 100;
            u64::try_from(part).expect("it is not more than the whole")
        }
    }
}
