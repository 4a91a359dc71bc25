//! The logs that the jobs of a section replay: each is checked once, also where no job replays it,
//! and its files are made.

use std::path::Path;

use indexmap::IndexMap;

use super::Surroundings;
use super::error::{Mistake, Mistakes};
use super::files::{Files, Work};
use super::iolog::{Checked, check};
use super::job::{Note, Region};
use super::resolve::JobClone;
use super::spec::Spec;
use super::used_files::{Use, UsedFiles};

/// The logs of a section, in the order of its option.
#[derive(Debug, Default)]
pub(super) struct Logs {
    /// Nothing where one is wrong.
    checked: Vec<Option<Checked>>,
}

impl Logs {
    /// Reads the logs of a section, of which that is a clone; what is wrong with them is kept.
    pub(super) fn read(
        spec: &Spec,
        clone: &JobClone<'_>,
        surroundings: &Surroundings<'_>,
        used: &mut UsedFiles<'_>,
        mistakes: &mut Mistakes,
    ) -> Self {
        let paths = &spec.replay.logs;
        if !paths.is_empty() && !spec.target.directory.is_empty() {
            let what = "directory and read_iolog: the log names its files as a whole, and fio \
                        3.33 then replays nothing";
            mistakes.add(clone.mistake(&["read_iolog"], what.to_owned()));
        }
        let read = paths.iter().map(|path| {
            let use_of_it = used.add(path, Use::Replayed);
            mistakes.keep(use_of_it.map_err(|what| clone.mistake(&["read_iolog"], what)))?;
            let source = (surroundings.log)(Path::new(path));
            let source =
                source.map_err(|error| clone.mistake(&["read_iolog"], format!("{path}: {error}")));
            let source = mistakes.keep(source)?;
            let device_bytes = surroundings.device_bytes;
            match check(source, path, &spec.replay.rules, device_bytes) {
                Ok(checked) => Some(checked),
                Err(wrong) => {
                    for mistake in wrong {
                        mistakes.add(mistake);
                    }
                    None
                }
            }
        });
        Self { checked: read.collect() }
    }

    /// The logs that no clone replays, as fio has it.
    pub(super) fn left(spec: &Spec, clone: &JobClone<'_>) -> impl Iterator<Item = Note> {
        let clones = usize::try_from(spec.identity.numjobs).unwrap_or(usize::MAX);
        let place = clone.place(&["read_iolog"]);
        let why = "the section has more logs than jobs";
        spec.replay.logs.iter().skip(clones).map(move |path| Note {
            place: place.clone(),
            option: format!("{path} of read_iolog"),
            why,
        })
    }

    /// The log of a clone; nothing where that is wrong.
    pub(super) fn of(&self, clone: &JobClone<'_>) -> Option<&Checked> {
        let number = usize::try_from(clone.number).expect("a number of a clone fits");
        let count = self.checked.len();
        self.checked.get(number % count.max(1))?.as_ref()
    }
}

/// Finds or makes the files of a log. Returns their indices in the order of the log's names, with
/// what the job does with them.
pub(super) fn files(
    log: &Checked,
    spec: &Spec,
    clone: &JobClone<'_>,
    files: &mut Files,
) -> Result<(Vec<usize>, Work), Mistake> {
    let mut at = spec.target.at.filter(|_| clone.number == 0);
    let mut indices = vec![];
    let mut ends = IndexMap::new();
    for (name, file) in &log.files {
        let path = spec.replay.rules.redirect.as_ref().unwrap_or(name);
        let index = files.of_log(path, file.end, &file.place, at.take())?;
        indices.push(index);
        let end: &mut u64 = ends.entry(index).or_default();
        *end = file.end.max(*end);
    }
    let regions = ends.into_iter().map(|(file, bytes)| Region { file, start: 0, bytes });
    Ok((indices, Work { regions: regions.collect(), io_bytes: None }))
}
