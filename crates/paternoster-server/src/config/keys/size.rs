//! Sizes in bytes that are written with a binary unit.

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

/// What a size is, for errors.
pub(super) const ALLOWED: &str = "a number of bytes, or one in quotes with K, M, G or T (KiB, MiB, \
                                  GiB, TiB) behind it, such as \"10G\",";

/// The same for a JSON Schema.
pub(super) const PATTERN: &str = "^[0-9]+([KMGT](iB)?)?$";

/// The bytes that `text` says, `u64::MAX` if there are more; none if it is no size.
pub fn parse(text: &str) -> Option<u64> {
    let (digits, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .unwrap_or((text, 0));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1 << shift));
    Some(bytes.unwrap_or(u64::MAX))
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
            ("99999999999999999999999", u64::MAX),
            ("18446744073709551615T", u64::MAX),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_size() {
        for text in ["", "G", "-1", "+1", "1.5G", "10GB", "10 G", "10g", "0x10", "1_000", "٣"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
