//! Tunables by their sysfs names. Each is a line in its scheduler's table, from which validation,
//! help and reference pages are made.

use std::borrow::Cow;

use thiserror::Error;

use crate::any::SchedulerKind;
use crate::time::Nanos;

/// The description of a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunableInfo {
    /// The attribute's name under `queue/iosched/`. `doc` says so if Linux has none of that name;
    /// with its default the scheduler then does as Linux does.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: &'static str,
    /// Its value when the scheduler is attached. `doc` says so if that depends on the device.
    pub default: i64,
    /// The least value that the command line, TOML and ctl accept.
    pub min: i64,
    /// The greatest such value.
    pub max: i64,
    /// The words for its values, from the least on; none where they are numbers. People read and
    /// write the words, and may write the numbers.
    pub words: &'static [&'static str],
    /// Its effect, in a sentence.
    pub doc: &'static str,
}

impl TunableInfo {
    /// Checks that `value` is in the range that users may set. The core itself clamps, as Linux
    /// does.
    pub fn accepts(&self, value: i64) -> Result<(), TunableError> {
        if (self.min..=self.max).contains(&value) {
            return Ok(());
        }
        Err(TunableError::OutOfRange { name: self.name, value, min: self.min, max: self.max })
    }

    /// Returns the value that `text` says: a number in the range, or one of its words.
    pub fn parse(&self, text: &str) -> Result<i64, TunableError> {
        if let Some((value, _)) = (self.min..).zip(self.words).find(|(_, word)| **word == text) {
            return Ok(value);
        }
        let Ok(value) = text.parse() else { return Err(TunableError::word(self, text)) };
        self.accepts(value).map(|()| value)
    }

    /// Returns a value as people read it, without its unit.
    pub fn shown(&self, value: i64) -> Cow<'static, str> {
        let (_, word) = (self.min..).zip(self.words).find(|(known, _)| *known == value).unzip();
        word.map_or_else(|| value.to_string().into(), |word| (*word).into())
    }

    /// Returns what is allowed, in words, without its unit.
    pub fn range(&self) -> String {
        match self.words {
            [] => format!("{} to {}", self.min, self.max),
            words => words.join(", "),
        }
    }
}

/// Returns the value that `text` says, of a tunable of that name of whatever scheduler: a number,
/// or a word of one that has words. Whether the scheduler in question has it, and in which range,
/// is checked by [`TunableInfo::accepts`].
pub fn parse_tunable(name: &str, text: &str) -> Result<i64, TunableError> {
    if let Ok(value) = text.parse() {
        return Ok(value);
    }
    let mut known = SchedulerKind::ALL.into_iter().flat_map(SchedulerKind::tunables);
    if let Some(info) = known.find(|info| info.name == name && !info.words.is_empty()) {
        return info.parse(text);
    }
    let (name, found) = (name.to_owned(), text.to_owned());
    Err(TunableError::BadValue { name, found, allowed: "a whole number".to_owned() })
}

/// Why a tunable could not be read or set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TunableError {
    /// The scheduler has none of this name.
    #[error("{scheduler} has no tunable {name:?}; {allowed}")]
    Unknown {
        /// The scheduler's name.
        scheduler: &'static str,
        /// What the caller passed.
        name: String,
        /// The tunables that it has, in words.
        allowed: String,
    },
    /// The value is outside the tunable's range.
    #[error("{name} = {value}: {min} to {max} is allowed")]
    OutOfRange {
        /// The tunable's name.
        name: &'static str,
        /// What the caller passed.
        value: i64,
        /// The least that is allowed.
        min: i64,
        /// The most that is allowed.
        max: i64,
    },
    /// The value is neither a number nor a word of the tunable's.
    #[error("{name} = {found:?}: {allowed} is allowed")]
    BadValue {
        /// The tunable's name.
        name: String,
        /// What the caller passed.
        found: String,
        /// What is allowed, in words.
        allowed: String,
    },
}

impl TunableError {
    fn word(info: &TunableInfo, found: &str) -> Self {
        let allowed = match info.words {
            [] => format!("a whole number from {} to {}", info.min, info.max),
            words => format!("one of {}", words.join(", ")),
        };
        Self::BadValue { name: info.name.to_owned(), found: found.to_owned(), allowed }
    }

    /// Makes the error of `scheduler` for a name that is not in its table.
    pub fn unknown(scheduler: &'static str, name: &str, table: &'static [TunableInfo]) -> Self {
        let names: Vec<_> = table.iter().map(|info| info.name).collect();
        let allowed = match names.as_slice() {
            [] => "nothing can be tuned there".to_owned(),
            names => format!("it has: {}", names.join(", ")),
        };
        Self::Unknown { scheduler, name: name.to_owned(), allowed }
    }
}

/// Returns a time that a table keeps in nanoseconds; its range excludes negative ones.
#[inline]
pub(crate) fn span(value: i64) -> Nanos {
    Nanos::new(value.cast_unsigned())
}

/// Returns a number that a table keeps; its range excludes those that do not fit.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is a u32's")]
pub(crate) fn number(value: i64) -> u32 {
    debug_assert!(u32::try_from(value).is_ok(), "{value}: its range excludes it");
    value as u32
}

/// Declares a scheduler's tunables: a struct with a field for each, in the attribute's own unit,
/// and its table. A line is name, unit, default, the least and the greatest value, and the effect;
/// and where values have words, these.
///
/// ```
/// paternoster::scheduler::tunables! {
///     struct Tunables of "lifo";
///     patience: "ms", 500, 0, 60_000, "After how long a request is served out of order.";
/// }
///
/// let mut tunables = Tunables::with_defaults();
/// assert_eq!(tunables.patience, 500);
/// assert_eq!(tunables.set("patience", -3), Ok(0), "clamped, as in Linux");
/// assert!(tunables.get("depth").is_err());
/// assert_eq!(Tunables::TABLE[0].unit, "ms");
/// ```
#[doc(hidden)] // shown where it is exported, in `scheduler`
#[macro_export]
macro_rules! __tunables {
    (
        $(#[$outer:meta])* $vis:vis struct $Struct:ident of $scheduler:expr;
        $( $name:ident: $unit:literal, $default:expr, $min:expr, $max:expr, $doc:literal
           $(, [$($word:literal),+])?; )+
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, Default)]
        $vis struct $Struct {
            $( #[doc = $doc] $vis $name: i64, )+
        }

        $crate::__tunable_table! {
            $vis $Struct of $scheduler;
            $( $name = $name * 1, $unit, $default, $min, $max, $doc $(, [$($word),+])?; )+
        }
    };
}
pub(crate) use crate::__tunables as tunables;

/// Declares the table of a struct of tunables, and `get` and `set` by name. Each attribute is a
/// line that names its field and how many smaller units of the field make one of its own. Two
/// attributes may share a field, and a field may be in a struct that schedulers share. `set` clamps
/// the value to the range as Linux does, stores it and returns it; `get` truncates.
#[doc(hidden)] // shown where it is exported, in `scheduler`
#[macro_export]
macro_rules! __tunable_table {
    (
        $vis:vis $Struct:ident of $scheduler:expr;
        $( $name:ident = $($field:ident).+ * $scale:expr,
           $unit:literal, $default:expr, $min:expr, $max:expr, $doc:literal
           $(, [$($word:literal),+])?; )+
    ) => {
        impl $Struct {
            $vis const TABLE: &'static [$crate::TunableInfo] = &[
                $( $crate::TunableInfo {
                    name: stringify!($name),
                    unit: $unit,
                    default: $default,
                    min: $min,
                    max: $max,
                    words: &[$($($word),+)?],
                    doc: $doc,
                }, )+
            ];

            /// Makes them with the defaults of the table.
            $vis fn with_defaults() -> Self
            where
                Self: Default,
            {
                let mut tunables = Self::default();
                for info in Self::TABLE {
                    tunables.set(info.name, info.default).expect("the table's own name");
                }
                tunables
            }

            $vis fn get(&self, name: &str) -> Result<i64, $crate::TunableError> {
                match name {
                    $( stringify!($name) => Ok(self.$($field).+ / $scale), )+
                    _ => Err($crate::TunableError::unknown($scheduler, name, Self::TABLE)),
                }
            }

            $vis fn set(
                &mut self,
                name: &str,
                value: i64,
            ) -> Result<i64, $crate::TunableError> {
                match name {
                    $( stringify!($name) => {
                        let value = value.clamp($min, $max);
                        self.$($field).+ = value * $scale;
                        Ok(value)
                    } )+
                    _ => Err($crate::TunableError::unknown($scheduler, name, Self::TABLE)),
                }
            }
        }
    };
}
pub(crate) use crate::__tunable_table as tunable_table;

/// Writes the three methods of a [`Scheduler`](crate::scheduler::Scheduler) about tunables, for one
/// that has them in that field and does nothing else when one is set.
#[doc(hidden)] // shown where it is exported, in `scheduler`
#[macro_export]
macro_rules! __tunable_methods {
    ($field:ident: $Table:ty) => {
        fn tunables(&self) -> &'static [$crate::TunableInfo] {
            <$Table>::TABLE
        }

        fn tunable(&self, name: &str) -> Result<i64, $crate::TunableError> {
            self.$field.get(name)
        }

        fn set_tunables(
            &mut self,
            _: &mut $crate::scheduler::Cx,
            values: &[(String, i64)],
        ) -> Result<(), $crate::TunableError> {
            values.iter().try_for_each(|(name, value)| self.$field.set(name, *value).map(drop))
        }
    };
}
pub(crate) use crate::__tunable_methods as tunable_methods;
