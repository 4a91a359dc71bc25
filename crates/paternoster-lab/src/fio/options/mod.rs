//! Every option of fio: what it does here, and how its value is read.
//!
//! ```text
//!   pattern target replay submission ends run report logs
//!                    options that are simulated, each with its reader
//!   without_effect   options that change nothing in a model, and why
//!   refused          options that are not simulated, or never will be
//! ```
//!
//! An option that is neither is a mistake, told with the nearest name.

mod ends;
mod logs;
mod pattern;
mod refused;
mod replay;
mod report;
mod run;
mod submission;
mod target;
mod without_effect;

pub(super) use run::MAX_JOBS;

use paternoster::Nanos;

use super::error::Mistake;
use super::job::Note;
use super::sections::GivenOption;
use super::spec::Spec;
use super::text::Text;
use super::value::{self, Extent, KbBase, PerDirection, TimeUnit};

/// What an option does in the laboratory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// What it does under fio.
    Simulated,
    /// It is accepted and changes nothing, for this reason.
    NoEffect(&'static str),
    /// It is refused: it would change the I/O, and the laboratory cannot do it yet.
    NotYet,
    /// It is refused for this reason.
    Never(&'static str),
}

/// An option of fio.
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// What it does here.
    pub support: Support,
    /// What its value is, as fio's documentation writes it; nothing where that does not matter.
    pub value: &'static str,
    /// What it is for, in a sentence.
    pub doc: &'static str,
    /// The values with which an option that is refused says nothing, and is accepted.
    pub off: &'static [&'static str],
    /// How its value gets into a spec.
    read: Read,
}

type Read = fn(&mut Spec, &Given<'_>) -> Result<(), Mistake>;

/// Returns every option of fio.
pub fn options() -> impl Iterator<Item = &'static OptionInfo> {
    [
        pattern::OPTIONS,
        target::OPTIONS,
        replay::OPTIONS,
        submission::OPTIONS,
        ends::OPTIONS,
        run::OPTIONS,
        report::OPTIONS,
        logs::OPTIONS,
        without_effect::OPTIONS,
        refused::OPTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Puts what `option` says into `spec`. Returns a note if it changes nothing.
pub(super) fn apply(spec: &mut Spec, option: &GivenOption) -> Result<Option<Note>, Mistake> {
    let name = option.name.as_str();
    let Some(info) = find(name) else {
        let near = match nearest(name).as_slice() {
            [] => String::new(),
            [near] => format!(": {near:?} is near"),
            several => format!(": {} are near", several.join(", ")),
        };
        return Err(option.name.mistake(format!("{name:?} is no option of fio{near}")));
    };
    let given = Given { name: &option.name, value: option.value.as_ref(), base: spec.kb_base };
    match info.support {
        Support::Simulated => {
            (info.read)(spec, &given)?;
            spec.places.insert(info.name, option.name.place().clone());
            Ok(None)
        }
        Support::NoEffect(why) => {
            let place = option.name.place().clone();
            Ok(Some(Note { place, option: info.name.to_owned(), why }))
        }
        Support::NotYet | Support::Never(_) if given.is_one_of(info.off) => Ok(None),
        Support::NotYet => {
            Err(option.name.mistake(format!("{name} is not simulated yet: {}", info.doc)))
        }
        Support::Never(why) => Err(option.name.mistake(format!("{name} is refused: {why}"))),
    }
}

/// Returns the first of an option's names, by which the report of fio has it.
pub(super) fn first_name(name: &str) -> Option<&'static str> {
    find(name).map(|info| info.name)
}

/// Whether fio reads a value behind white space as it is written: that of `bssplit`, and a number
/// without a unit. It reads `bs= 8k` as 8 bytes, and refuses `rw= read`.
pub(super) fn is_read_behind_space(name: &str, value: &str) -> bool {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    find(name).is_some_and(|info| {
        let is_of_number = ["int", "bool", "time"].iter().any(|kind| info.value.starts_with(kind));
        info.name == "bssplit" || is_of_number && is_number
    })
}

/// Returns the option of that name.
fn find(name: &str) -> Option<&'static OptionInfo> {
    options().find(|info| info.name == name || info.aliases.contains(&name))
}

/// Returns the names that are most like `name`, if some are.
fn nearest(name: &str) -> Vec<&'static str> {
    let names = options().flat_map(|info| [info.name].into_iter().chain(info.aliases.to_vec()));
    let far = |known: &str| strsim::damerau_levenshtein(name, known);
    let known: Vec<_> = names.map(|known| (far(known), known)).collect();
    let limit = 1 + name.chars().count() / 4;
    let least = known.iter().map(|&(far, _)| far).min().filter(|&least| least <= limit);
    known.into_iter().filter(|&(far, _)| Some(far) == least).map(|(_, known)| known).collect()
}

/// An option that is simulated.
const fn simulated(
    name: &'static str,
    aliases: &'static [&'static str],
    value: &'static str,
    doc: &'static str,
    read: Read,
) -> OptionInfo {
    OptionInfo { name, aliases, support: Support::Simulated, value, doc, off: &[], read }
}

/// An option that is not, and whose value is `off` where it says nothing.
const fn other(
    support: Support,
    name: &'static str,
    aliases: &'static [&'static str],
    off: &'static [&'static str],
    doc: &'static str,
) -> OptionInfo {
    OptionInfo { name, aliases, support, value: "", doc, off, read: |_, _| Ok(()) }
}

/// The value of an option, as it was given.
struct Given<'a> {
    name: &'a Text,
    value: Option<&'a Text>,
    base: KbBase,
}

impl Given<'_> {
    fn text(&self) -> Result<&Text, Mistake> {
        value::required(self.name, self.value)
    }

    /// Whether its value is one of these. An option that stands alone is on.
    fn is_one_of(&self, values: &[&str]) -> bool {
        self.value.is_some_and(|value| values.contains(&value.as_str()))
    }

    fn small(&self, min: u32, max: u32) -> Result<u32, Mistake> {
        value::small(self.text()?, min, max)
    }

    fn percent(&self) -> Result<u8, Mistake> {
        percent(self.text()?)
    }

    fn extent(&self) -> Result<Extent, Mistake> {
        value::extent(self.text()?, self.base)
    }

    /// A size that may be 0.
    fn size(&self) -> Result<u64, Mistake> {
        value::size(self.text()?, self.base, 0, u64::MAX)
    }

    fn time(&self, unit: TimeUnit) -> Result<Nanos, Mistake> {
        value::time(self.text()?, unit)
    }

    fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Mistake> {
        value::word(self.text()?, words)
    }

    /// A value that may be left out, and is on then.
    fn flag(&self) -> Result<bool, Mistake> {
        value::flag(self.value)
    }

    /// A value that may not be left out.
    fn switch(&self) -> Result<bool, Mistake> {
        value::flag(Some(self.text()?))
    }

    fn per_direction<T: Clone>(
        &self,
        values: &mut PerDirection<T>,
        read: impl Fn(&Text) -> Result<T, Mistake>,
    ) -> Result<(), Mistake> {
        value::per_direction(self.text()?, values, read)
    }

    /// Names between `:`, where `\:` is a part of a name.
    fn names(&self) -> Result<Vec<String>, Mistake> {
        let text = self.text()?;
        let mut names = vec![String::new()];
        let mut chars = text.as_str().chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek()) {
                ('\\', Some(&escaped @ (':' | '\\'))) => {
                    chars.next();
                    names.last_mut().expect("there is one").push(escaped);
                }
                (':', _) => names.push(String::new()),
                (c, _) => names.last_mut().expect("there is one").push(c),
            }
        }
        if names.iter().any(String::is_empty) {
            return Err(text.mistake("a name between two \":\" is empty"));
        }
        Ok(names)
    }
}

fn percent(text: &Text) -> Result<u8, Mistake> {
    let percent = value::small(text, 0, 100)?;
    Ok(u8::try_from(percent).expect("100 at most"))
}
