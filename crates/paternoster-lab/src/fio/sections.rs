//! The lines of a job file: its sections, each with its options in order.
//!
//! ```text
//!   [global]                 ── options of all jobs behind it
//!   bs=4k           # ...    ── a comment ends the line
//!   include more.fio         ── the options of another file
//!   [job]
//!   ; lab: group=/a weight=200   ── what fio has no option for, in a comment
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Mistake, Mistakes};
use super::iolog::ReadAt;
use super::job::Note;
use super::keys;
use super::options;
use super::text::Text;
use super::used_files::FileKey;

/// How many files may be included in all.
const INCLUDES: usize = 100;

/// What a job file may ask of its surroundings.
pub struct Surroundings<'a> {
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The bytes of an included file. Its path starts where that of the including file does.
    pub file: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// A log of I/O that a job replays. Its path is the one that the job says.
    pub log: &'a dyn Fn(&Path) -> io::Result<Arc<dyn ReadAt>>,
    /// Tells apart the files that the run reads and writes: [`FileKey::of`], or [`FileKey::named`]
    /// where nothing is written.
    pub file_key: &'a dyn Fn(&Path) -> FileKey,
    /// How large the device is: files lie on it.
    pub device_bytes: u64,
    /// The seed of all draws of jobs that name none.
    pub seed: u64,
}

impl Surroundings<'_> {
    /// A device of so many bytes, and a seed; neither variables nor files.
    pub fn without_files(device_bytes: u64, seed: u64) -> Self {
        Self {
            variable: &|_| None,
            file: &|_| Err(io::ErrorKind::NotFound.into()),
            log: &|_| Err(io::ErrorKind::NotFound.into()),
            file_key: &FileKey::named,
            device_bytes,
            seed,
        }
    }
}

/// A section: `[global]`, or one that makes jobs.
#[derive(Debug)]
pub(super) struct Section {
    /// What stands between the brackets.
    pub(super) name: Text,
    /// Its options in order, with those that it includes.
    pub(super) options: Vec<GivenOption>,
    /// Its extension keys in order.
    pub(super) keys: Vec<Key>,
    /// No line of it is wrong.
    pub(super) is_whole: bool,
}

/// An option as a line gives it.
#[derive(Clone, Debug)]
pub(super) struct GivenOption {
    pub(super) name: Text,
    /// What stands behind `=`, with variables replaced.
    pub(super) value: Option<Text>,
}

/// An extension key, `key=value` behind `; lab:`.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: Text,
    pub(super) value: Text,
}

/// The lines of a job file.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) sections: Vec<Section>,
    /// The extension keys before the first section, a list for each line.
    pub(super) prelude: Vec<Vec<Key>>,
    /// The files that were read: the job file, and those that it includes.
    pub(super) files: Vec<Arc<str>>,
    /// The comments that look as if they spoke to the laboratory.
    pub(super) notes: Vec<Note>,
}

impl Lines {
    /// Adds those of another file behind these.
    pub(super) fn extend(&mut self, other: Self) {
        let Self { sections, prelude, files, notes } = other;
        self.sections.extend(sections);
        self.prelude.extend(prelude);
        self.files.extend(files);
        self.notes.extend(notes);
    }

    /// Whether a section makes jobs.
    pub(super) fn have_jobs(&self) -> bool {
        self.sections.iter().any(|section| section.name.as_str() != "global")
    }
}

/// Reads the lines of `bytes`, whose file is called `name`.
pub(super) fn read(
    name: &str,
    bytes: &[u8],
    surroundings: &Surroundings<'_>,
    mistakes: &mut Mistakes,
) -> Lines {
    let mut reader =
        Reader { surroundings, mistakes, lines: Lines::default(), open: vec![], included: 0 };
    reader.file(name, bytes, Within::JobFile);
    reader.lines
}

/// Which file a line is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    JobFile,
    Included,
}

/// What a line says.
enum Line {
    Section(Text),
    Include(Text),
    Option(GivenOption),
}

struct Reader<'a, 'b> {
    surroundings: &'a Surroundings<'b>,
    mistakes: &'a mut Mistakes,
    lines: Lines,
    /// The included files of which the lines are being read, each by the one before it.
    open: Vec<PathBuf>,
    /// How many files were included so far.
    included: usize,
}

impl Reader<'_, '_> {
    fn file(&mut self, name: &str, bytes: &[u8], within: Within) {
        let file: Arc<str> = Arc::from(name);
        self.lines.files.push(Arc::clone(&file));
        for (index, bytes) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            match std::str::from_utf8(bytes) {
                Ok(line) => self.line(&Text::line(&file, number, line), within),
                Err(error) => {
                    let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                    let line = Text::line(&file, number, &valid);
                    let end = line.from(line.as_str().len());
                    self.mistakes.add(end.mistake("a byte that is no UTF-8"));
                    self.miss(&line.trim(), within);
                }
            }
        }
    }

    fn line(&mut self, line: &Text, within: Within) {
        let (line, comment) = match line.split_once(|c| c == ';' || c == '#') {
            Some((line, comment)) => (line, Some(comment.trim())),
            None => (line.clone(), None),
        };
        let line = line.trim();
        if !line.is_empty() {
            match parse(&line, self.surroundings) {
                Ok(said) => self.take(said, within),
                Err(mistake) => {
                    self.mistakes.add(mistake);
                    self.miss(&line, within);
                }
            }
        }
        let Some(comment) = comment else { return };
        if let Some(keys) = comment.as_str().strip_prefix("lab:") {
            let start = comment.as_str().len() - keys.len();
            self.keys(&comment.from(start));
        } else {
            self.lines.notes.extend(keys::looks_meant(&comment));
        }
    }

    /// Leaves out a line that is wrong. What it would have said is not missed: the section is not
    /// whole.
    fn miss(&mut self, line: &Text, within: Within) {
        if line.as_str().starts_with('[') && within == Within::JobFile {
            self.begin(line.from(1), false);
        } else if let Some(section) = self.lines.sections.last_mut() {
            section.is_whole = false;
        }
    }

    fn begin(&mut self, name: Text, is_whole: bool) {
        self.lines.sections.push(Section { name, options: vec![], keys: vec![], is_whole });
    }

    fn take(&mut self, said: Line, within: Within) {
        match said {
            Line::Section(name) if within == Within::Included => {
                self.mistakes.add(name.mistake("an included file has no sections"));
            }
            Line::Section(name) => {
                self.begin(name, true);
            }
            Line::Include(path) => self.include(&path),
            Line::Option(option) => {
                if let Some(section) = self.lines.sections.last_mut() {
                    section.options.push(option);
                } else {
                    let what = "an option before the first section, such as [global]";
                    self.mistakes.add(option.name.mistake(what));
                }
            }
        }
    }

    fn include(&mut self, path: &Text) {
        if self.lines.sections.is_empty() {
            let what = "an include before the first section, such as [global]";
            return self.mistakes.add(path.mistake(what));
        }
        if self.included == INCLUDES {
            let what = format!("{INCLUDES} files were included before: no more may be");
            return self.mistakes.add(path.mistake(what));
        }
        self.included += 1;
        let from = Path::new(&*path.place().file).parent();
        let full: PathBuf = from.unwrap_or(Path::new("")).join(path.as_str());
        if self.open.contains(&full) {
            let what = format!("{} would include itself", full.display());
            return self.mistakes.add(path.mistake(what));
        }
        match (self.surroundings.file)(&full) {
            Ok(bytes) => {
                self.open.push(full.clone());
                self.file(&full.to_string_lossy(), &bytes, Within::Included);
                self.open.pop();
            }
            Err(error) => self.mistakes.add(path.mistake(format!("{}: {error}", full.display()))),
        }
    }

    fn keys(&mut self, text: &Text) {
        let mut keys = vec![];
        for word in text.words() {
            match word.split_once(|c| c == '=') {
                Some((name, value)) => keys.push(Key { name, value }),
                None => self.mistakes.add(word.mistake("no key=value, such as group=/a")),
            }
        }
        match self.lines.sections.last_mut() {
            Some(section) => section.keys.extend(keys),
            None => self.lines.prelude.push(keys),
        }
    }
}

/// What a line without its comment says.
fn parse(line: &Text, around: &Surroundings<'_>) -> Result<Line, Mistake> {
    let text = line.as_str();
    if text.starts_with('[') {
        return section_name(line).map(Line::Section);
    }
    if let Some((first, path)) = line.split_once(char::is_whitespace)
        && first.as_str() == "include"
        && !path.trim().as_str().starts_with('=')
    {
        return Ok(Line::Include(path.trim()));
    }
    let GivenOption { name, value } = option(line)?;
    let value = value.map(|value| value.expand(around.variable)).transpose()?;
    Ok(Line::Option(GivenOption { name, value }))
}

/// The option that a text is, `name` or `name=value`, with variables as they stand there.
pub(super) fn option(text: &Text) -> Result<GivenOption, Mistake> {
    let Some((name, mut value)) = text.split_once(|c| c == '=') else {
        return Ok(GivenOption { name: text.clone(), value: None });
    };
    let name = name.trim();
    if value.as_str().starts_with(char::is_whitespace) {
        if !options::is_read_behind_space(name.as_str(), value.trim().as_str()) {
            return Err(value.mistake("white space behind \"=\": fio does not skip it"));
        }
        value = value.trim();
    }
    Ok(GivenOption { name, value: Some(value) })
}

fn section_name(line: &Text) -> Result<Text, Mistake> {
    let inside = line.from(1);
    let Some((name, behind)) = inside.split_once(|c| c == ']') else {
        let end = line.from(line.as_str().len());
        return Err(end.mistake("the \"]\" of a section is expected"));
    };
    if name.trim().is_empty() {
        return Err(name.mistake("a section has a name, such as [job]"));
    }
    if !behind.is_empty() {
        return Err(behind.trim().mistake("nothing may stand behind the \"]\" of a section"));
    }
    Ok(name)
}
