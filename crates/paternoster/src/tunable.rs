//! Tunables by their sysfs names: one line each in a scheduler's table, from which validation,
//! help and reference pages are made.

use thiserror::Error;

use crate::time::Nanos;

/// What is known of a tunable without its scheduler at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunableInfo {
    /// The attribute's name under `queue/iosched/`, or one of our own, where `doc` says so: with
    /// its default the scheduler does as Linux does.
    pub name: &'static str,
    /// The unit in which it is read and written.
    pub unit: &'static str,
    /// Its value when the scheduler is attached; where that depends on the device, `doc` says so.
    pub default: i64,
    /// The least value that the command line, TOML and ctl accept.
    pub min: i64,
    /// The greatest such value.
    pub max: i64,
    /// What it changes, in a sentence.
    pub doc: &'static str,
}

impl TunableInfo {
    /// Whether `value` is in the range that users may set; the core itself clamps, as Linux does.
    pub fn accepts(&self, value: i64) -> Result<(), TunableError> {
        if (self.min..=self.max).contains(&value) {
            return Ok(());
        }
        Err(TunableError::OutOfRange { name: self.name, value, min: self.min, max: self.max })
    }
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
        /// What was asked for.
        name: String,
        /// What it has, in words.
        allowed: String,
    },
    /// The value is outside the tunable's range.
    #[error("{name} = {value}: {min} to {max} is allowed")]
    OutOfRange {
        /// The tunable's name.
        name: &'static str,
        /// What was asked for.
        value: i64,
        /// The least that is allowed.
        min: i64,
        /// The most that is allowed.
        max: i64,
    },
}

/// The error for a name that is not in `table`.
pub(crate) fn unknown(
    scheduler: &'static str,
    name: &str,
    table: &'static [TunableInfo],
) -> TunableError {
    let names: Vec<_> = table.iter().map(|info| info.name).collect();
    let allowed = match names.as_slice() {
        [] => "nothing can be tuned there".to_owned(),
        names => format!("it has: {}", names.join(", ")),
    };
    TunableError::Unknown { scheduler, name: name.to_owned(), allowed }
}

/// A time in nanoseconds as a table keeps it; ranges exclude negative ones.
#[inline]
pub(crate) fn span(value: i64) -> Nanos {
    Nanos::new(value.cast_unsigned())
}

/// A number as a table keeps it; ranges exclude what does not fit.
#[inline]
pub(crate) fn number(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Declares a scheduler's tunables: a struct with a field each, in the attribute's own unit, and
/// its table.
macro_rules! tunables {
    (
        $(#[$outer:meta])* $vis:vis struct $Struct:ident of $scheduler:literal;
        $( $name:ident: $unit:literal, $default:expr, $min:expr, $max:expr, $doc:literal; )+
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, Default)]
        $vis struct $Struct {
            $( #[doc = $doc] $vis $name: i64, )+
        }

        $crate::tunable::tunable_table! {
            $vis $Struct of $scheduler;
            $( $name = $name * 1, $unit, $default, $min, $max, $doc; )+
        }
    };
}
pub(crate) use tunables;

/// Declares the table of a struct of tunables, and `get` and `set` by name: a line for each
/// attribute, which reads and writes a field that holds so many smaller units. Two attributes may
/// share a field. `set` stores and returns the value clamped to the range, as Linux does; `get`
/// truncates.
macro_rules! tunable_table {
    (
        $vis:vis $Struct:ident of $scheduler:literal;
        $( $name:ident = $field:ident * $scale:expr,
           $unit:literal, $default:expr, $min:expr, $max:expr, $doc:literal; )+
    ) => {
        impl $Struct {
            $vis const TABLE: &'static [$crate::tunable::TunableInfo] = &[
                $( $crate::tunable::TunableInfo {
                    name: stringify!($name),
                    unit: $unit,
                    default: $default,
                    min: $min,
                    max: $max,
                    doc: $doc,
                }, )+
            ];

            /// With the defaults of the table.
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

            $vis fn get(&self, name: &str) -> Result<i64, $crate::tunable::TunableError> {
                match name {
                    $( stringify!($name) => Ok(self.$field / $scale), )+
                    _ => Err($crate::tunable::unknown($scheduler, name, Self::TABLE)),
                }
            }

            $vis fn set(
                &mut self,
                name: &str,
                value: i64,
            ) -> Result<i64, $crate::tunable::TunableError> {
                match name {
                    $( stringify!($name) => {
                        let value = value.clamp($min, $max);
                        self.$field = value * $scale;
                        Ok(value)
                    } )+
                    _ => Err($crate::tunable::unknown($scheduler, name, Self::TABLE)),
                }
            }
        }
    };
}
pub(crate) use tunable_table;
