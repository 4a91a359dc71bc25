//! Sizes and offsets in bytes, written as numbers or with a binary unit.

use super::draft::{At, Number};
use super::error::{Mistake, Problem};

/// The units, by how many bits each shifts.
const UNITS: [(&str, u32); 8] = [
    ("KiB", 10),
    ("MiB", 20),
    ("GiB", 30),
    ("TiB", 40),
    ("K", 10),
    ("M", 20),
    ("G", 30),
    ("T", 40),
];

/// The bytes that `found`, the value of `key`, says; at most `i64::MAX`, as files have.
pub(super) fn check(key: &'static str, found: &At<Number>) -> Result<u64, Mistake> {
    match &found.value {
        Number::Plain(value) => u64::try_from(*value)
            .or_else(|_| found.refuse(Problem::BadSize { key, found: value.to_string() })),
        Number::Text(text) => parse(key, text).or_else(|problem| found.refuse(problem)),
    }
}

/// The bytes that `text` says, which is the value of `key`.
pub(super) fn parse(key: &'static str, text: &str) -> Result<u64, Problem> {
    let found = || format!("{text:?}");
    let (digits, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .unwrap_or((text, 0));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::BadSize { key, found: found() });
    }
    let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1 << shift));
    bytes
        .filter(|&bytes| i64::try_from(bytes).is_ok())
        .ok_or_else(|| Problem::SizeTooLarge { key, found: found() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_have_binary_units() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("64K", 64 << 10),
            ("64KiB", 64 << 10),
            ("512M", 512 << 20),
            ("3MiB", 3 << 20),
            ("10G", 10 << 30),
            ("10GiB", 10 << 30),
            ("1T", 1 << 40),
            ("2TiB", 2 << 40),
            ("9223372036854775807", i64::MAX.cast_unsigned()),
        ] {
            assert_eq!(parse("size", text).ok(), Some(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_size() {
        for text in ["", "G", "-1", "+1", "1.5G", "10GB", "10 G", "10g", "0x10", "1_000", "٣"] {
            let refused = parse("size", text).expect_err(text);
            assert!(matches!(refused, Problem::BadSize { .. }), "{text}: {refused}");
        }
        for text in ["9223372036854775808", "8388608T", "99999999999999999999999"] {
            let refused = parse("size", text).expect_err(text);
            assert!(matches!(refused, Problem::SizeTooLarge { .. }), "{text}: {refused}");
        }
    }
}
