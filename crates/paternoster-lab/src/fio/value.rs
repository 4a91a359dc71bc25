//! The values of options, as fio writes them: numbers, sizes, times, ranges, lists.

use paternoster::Nanos;

use super::error::Mistake;
use super::text::Text;

/// What one thousand steps of a size are: `kb_base`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KbBase {
    /// `k` and `ki` are 1024, `kib` is 1000: fio's default.
    #[default]
    Binary,
    /// `k` and `ki` are 1000, `kib` is 1024, as standards have it.
    Decimal,
}

/// The unit of a time that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Second,
    Milli,
    Micro,
}

/// The longest time, in ns: ten years. The clock ends after 584, and a job adds up several.
pub(super) const LONGEST: u64 = 3650 * 86_400_000_000_000;

/// A value for each direction: reads, writes, trims.
pub(super) type PerDirection<T> = [T; 3];

/// A size, in bytes or of what it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes.
    Bytes(u64),
    /// So many percent of the file.
    Percent(u8),
}

/// What `value` is of; a mistake without a value.
pub(super) fn required<'a>(name: &Text, value: Option<&'a Text>) -> Result<&'a Text, Mistake> {
    match value {
        Some(text) if !text.is_empty() => Ok(text),
        Some(text) => {
            let why = match text.unset() {
                [] => String::new(),
                [one] => format!(": the variable {one} is not set"),
                several => format!(": the variables {} are not set", several.join(", ")),
            };
            Err(text.mistake(format!("{} has no value behind \"=\"{why}", name.as_str())))
        }
        None => {
            let end = name.from(name.as_str().len());
            Err(end.mistake(format!("{0} needs a value: {0}=...", name.as_str())))
        }
    }
}

/// A whole number between `min` and `max`, decimal or hexadecimal.
pub(super) fn number(text: &Text, min: u64, max: u64) -> Result<u64, Mistake> {
    let (number, rest) = digits(text)?;
    if !rest.is_empty() {
        return Err(rest.mistake(format!("{:?} behind a number: none is allowed", rest.as_str())));
    }
    in_range(text, number, min, max)
}

/// The same, small.
pub(super) fn small(text: &Text, min: u32, max: u32) -> Result<u32, Mistake> {
    let number = number(text, min.into(), max.into())?;
    Ok(u32::try_from(number).expect("its range is that of the type"))
}

/// A number of bytes between `min` and `max`: `4k`, `1m`, `2GiB`.
pub(super) fn size(text: &Text, base: KbBase, min: u64, max: u64) -> Result<u64, Mistake> {
    let (number, unit) = digits(text)?;
    let name = unit.as_str().to_ascii_lowercase();
    // To fio 3.33 `ki` is `k`: only `kib` has the other base.
    let (letter, is_iec) = match name.strip_suffix("ib") {
        Some(letter) => (letter, true),
        None => (name.strip_suffix(['b', 'i']).unwrap_or(&name), false),
    };
    let power = match letter {
        "" if !name.contains('i') => Some(0),
        "k" => Some(1),
        "m" => Some(2),
        "g" => Some(3),
        "t" => Some(4),
        "p" => Some(5),
        _ => None,
    };
    if is_fraction(&unit) {
        return Err(unit.mistake("a fraction: whole numbers are allowed, such as 1536m for 1.5g"));
    }
    let Some(power) = power else {
        let what = format!("{:?} is no unit of a size: k, m, g, t, p, ki ... are", unit.as_str());
        return Err(unit.mistake(what));
    };
    let thousand: u64 = if (base == KbBase::Binary) == is_iec { 1000 } else { 1024 };
    let bytes = thousand.checked_pow(power).and_then(|step| number.checked_mul(step));
    let bytes = bytes.ok_or_else(|| text.mistake("more than 2^64 bytes"))?;
    in_range(text, bytes, min, max)
}

/// A number of bytes, or of percent: `20%`. As for fio, `20%%` is the same: so the value is written
/// where a script formats the file.
pub(super) fn extent(text: &Text, base: KbBase) -> Result<Extent, Mistake> {
    if let Some(number) = text.as_str().strip_suffix('%') {
        let number = number.strip_suffix('%').unwrap_or(number);
        let percent = small(&text.part(0, number.len()), 0, 100)?;
        return Ok(Extent::Percent(u8::try_from(percent).expect("100 at most")));
    }
    Ok(Extent::Bytes(size(text, base, 0, u64::MAX)?))
}

/// A time: `10`, `500ms`, `2m`.
pub(super) fn time(text: &Text, unit: TimeUnit) -> Result<Nanos, Mistake> {
    let (number, suffix) = digits(text)?;
    if is_fraction(&suffix) {
        return Err(suffix.mistake("a fraction: whole numbers are allowed, such as 500ms for 0.5s"));
    }
    let nanos: u64 = match (suffix.as_str().to_ascii_lowercase().as_str(), unit) {
        ("d", _) => 86_400_000_000_000,
        ("h", _) => 3_600_000_000_000,
        ("m", _) => 60_000_000_000,
        ("s" | "sec", _) | ("", TimeUnit::Second) => 1_000_000_000,
        ("ms" | "msec", _) | ("", TimeUnit::Milli) => 1_000_000,
        ("us" | "usec", _) | ("", TimeUnit::Micro) => 1_000,
        (other, _) => {
            let what = format!("{other:?} is no unit of a time: d, h, m, s, ms, us are");
            return Err(suffix.mistake(what));
        }
    };
    let nanos = number.checked_mul(nanos).filter(|&nanos| nanos <= LONGEST);
    let too_long = || text.mistake(format!("{:?}: 0 to 3650d is allowed", text.as_str()));
    nanos.map(Nanos::new).ok_or_else(too_long)
}

/// Whether what stands behind a number is its fraction.
fn is_fraction(behind: &Text) -> bool {
    let digits = behind.as_str().strip_prefix('.');
    digits.is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
}

/// A number with a fraction between `min` and `max`.
pub(super) fn fraction(text: &Text, min: f64, max: f64) -> Result<f64, Mistake> {
    let is_plain = text.as_str().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = is_plain.then(|| text.as_str().parse::<f64>().ok()).flatten();
    let Some(number) = number else {
        return Err(text.mistake(format!("{:?} is no number, such as 1.2", text.as_str())));
    };
    if !(min..=max).contains(&number) {
        return Err(text.mistake(format!("{number}: {min} to {max} is allowed")));
    }
    Ok(number)
}

/// Whether an option is on that may stand without a value: `1` and `0` are allowed.
pub(super) fn flag(value: Option<&Text>) -> Result<bool, Mistake> {
    value.map_or(Ok(true), |text| word(text, &[("1", true), ("0", false)]))
}

/// One of some words.
pub(super) fn word<T: Copy>(text: &Text, words: &[(&str, T)]) -> Result<T, Mistake> {
    let found = words.iter().find(|(name, _)| *name == text.as_str());
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<_> = words.iter().map(|&(name, _)| name).collect();
        text.mistake(format!("{:?}: allowed is {}", text.as_str(), names.join(", ")))
    })
}

/// Two values between `-` or `:`, the lower one first, or one that is both.
pub(super) fn range<T: PartialOrd + Copy>(
    text: &Text,
    read: impl Fn(&Text) -> Result<T, Mistake>,
) -> Result<(T, T), Mistake> {
    let Some((low, high)) = text.split_once(|c| c == '-' || c == ':') else {
        let both = read(text)?;
        return Ok((both, both));
    };
    let (low, high) = (read(&low)?, read(&high)?);
    Ok(if low > high { (high, low) } else { (low, high) })
}

/// Values for reads, writes and trims, separated by commas. The last holds for what follows, unless
/// a comma is behind it; where there is none, `values` keeps what it has.
pub(super) fn per_direction<T: Clone>(
    text: &Text,
    values: &mut PerDirection<T>,
    read: impl Fn(&Text) -> Result<T, Mistake>,
) -> Result<(), Mistake> {
    let pieces = text.split(',');
    if let Some(fourth) = pieces.get(values.len()) {
        return Err(fourth.mistake("a fourth value: one for reads, writes and trims is allowed"));
    }
    if pieces.iter().all(Text::is_empty) {
        return Err(text.mistake("no value between the commas"));
    }
    let read: Vec<_> = pieces
        .iter()
        .map(|piece| if piece.is_empty() { Ok(None) } else { read(piece).map(Some) })
        .collect::<Result<_, _>>()?;
    let last = read.last().cloned().flatten();
    for (index, value) in values.iter_mut().enumerate() {
        let new = if index < read.len() { &read[index] } else { &last };
        if let Some(new) = new {
            *value = new.clone();
        }
    }
    Ok(())
}

/// The number at the start, and what stands behind it.
fn digits(text: &Text) -> Result<(u64, Text), Mistake> {
    let said = text.as_str();
    if said.starts_with('(') {
        return Err(text.mistake("an expression in parentheses is not read: write its value"));
    }
    if said.contains('$') {
        return Err(text.mistake("a keyword of fio's machine is not known: write its value"));
    }
    let hex = said.strip_prefix("0x").or_else(|| said.strip_prefix("0X"));
    let (start, radix) = if hex.is_some() { (2, 16) } else { (0, 10) };
    let len = said[start..].chars().take_while(|c| c.is_digit(radix)).count();
    let end = start + len;
    if len == 0 {
        return Err(text.mistake(format!("{said:?} is no number")));
    }
    let number = u64::from_str_radix(&said[start..end], radix);
    let number = number.map_err(|_| text.mistake(format!("{said:?}: more than 2^64")))?;
    Ok((number, text.from(end)))
}

fn in_range(text: &Text, number: u64, min: u64, max: u64) -> Result<u64, Mistake> {
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    let allowed = match max {
        u64::MAX => format!("at least {min}"),
        max => format!("{min} to {max}"),
    };
    Err(text.mistake(format!("{number}: {allowed} is allowed")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn text(text: &str) -> Text {
        Text::line(&Arc::from("a.fio"), 1, text)
    }

    fn bytes(said: &str, base: KbBase) -> Result<u64, String> {
        size(&text(said), base, 1, u64::MAX).map_err(|mistake| mistake.to_string())
    }

    /// The examples of fio's HOWTO, "Parameter types".
    #[test]
    fn sizes_are_fios_in_both_bases() {
        for said in ["4096", "4096b", "4096B", "4k", "4kb", "4kB", "4K", "4KB", "0x1000"] {
            assert_eq!(bytes(said, KbBase::Binary), Ok(4096), "{said}");
        }
        for said in ["4kib", "4kiB", "4Kib", "4KiB"] {
            assert_eq!(bytes(said, KbBase::Decimal), Ok(4096), "{said}");
            assert_eq!(bytes(said, KbBase::Binary), Ok(4000), "{said}");
        }
        // fio 3.33 was seen to read these as if there was no `i`, in both bases.
        for said in ["4ki", "4Ki", "4kI", "4KI"] {
            assert_eq!(bytes(said, KbBase::Decimal), Ok(4000), "{said}");
            assert_eq!(bytes(said, KbBase::Binary), Ok(4096), "{said}");
        }
        assert_eq!(bytes("2Mi", KbBase::Binary), Ok(2 << 20));
        assert_eq!(bytes("3gI", KbBase::Binary), Ok(3 << 30));
        for said in ["1t", "1024g", "1048576m"] {
            assert_eq!(bytes(said, KbBase::Binary), Ok(1_099_511_627_776), "{said}");
        }
        for said in ["1t", "1000g", "1000000000k"] {
            assert_eq!(bytes(said, KbBase::Decimal), Ok(1_000_000_000_000), "{said}");
        }
    }

    #[test]
    fn size_that_is_none_is_refused_with_its_column() {
        let told = |said| bytes(said, KbBase::Binary).expect_err("it is none");
        let unit = "is no unit of a size: k, m, g, t, p, ki ... are";
        assert_eq!(told("4q"), format!("a.fio:1:2: \"q\" {unit}"));
        assert_eq!(told("4k4k"), format!("a.fio:1:2: \"k4k\" {unit}"));
        assert_eq!(told("4i"), format!("a.fio:1:2: \"i\" {unit}"));
        let fraction = "a fraction: whole numbers are allowed, such as 1536m for 1.5g";
        assert_eq!(told("1.5m"), format!("a.fio:1:2: {fraction}"));
        assert_eq!(told("1.m"), format!("a.fio:1:2: \".m\" {unit}"));
        assert_eq!(told("-1"), "a.fio:1:1: \"-1\" is no number");
        assert_eq!(told("0"), "a.fio:1:1: 0: at least 1 is allowed");
        assert_eq!(told("99999999p"), "a.fio:1:1: more than 2^64 bytes");
        let expression = "an expression in parentheses is not read: write its value";
        assert_eq!(told("(4*1k)"), format!("a.fio:1:1: {expression}"));
        let keyword = "a keyword of fio's machine is not known: write its value";
        assert_eq!(told("8*$mb_memory"), format!("a.fio:1:1: {keyword}"));
    }

    #[test]
    fn times_have_the_unit_of_their_option() {
        let nanos = |said, unit| time(&text(said), unit).expect("it is a time").as_nanos();
        assert_eq!(nanos("5", TimeUnit::Second), 5_000_000_000);
        assert_eq!(nanos("5", TimeUnit::Micro), 5_000);
        assert_eq!(nanos("5", TimeUnit::Milli), 5_000_000);
        assert_eq!(nanos("5m", TimeUnit::Micro), 300_000_000_000);
        assert_eq!(nanos("2H", TimeUnit::Second), 7_200_000_000_000);
        assert_eq!(nanos("7msec", TimeUnit::Second), 7_000_000);
        let told = time(&text("1h30m"), TimeUnit::Second).expect_err("two units");
        let what = "\"h30m\" is no unit of a time: d, h, m, s, ms, us are";
        assert_eq!(told.to_string(), format!("a.fio:1:2: {what}"));
        let told = time(&text("0.5"), TimeUnit::Second).expect_err("a fraction");
        let what = "a fraction: whole numbers are allowed, such as 500ms for 0.5s";
        assert_eq!(told.to_string(), format!("a.fio:1:2: {what}"));
    }

    #[test]
    fn time_is_ten_years_at_most() {
        let read = |said, unit| time(&text(said), unit).map_err(|mistake| mistake.to_string());
        assert_eq!(read("3650d", TimeUnit::Second), Ok(Nanos::from_secs(315_360_000)));
        for said in ["315360001", "3651d", "18446744073s", "99999999999999d"] {
            let refused = format!("a.fio:1:1: {said:?}: 0 to 3650d is allowed");
            assert_eq!(read(said, TimeUnit::Second), Err(refused));
        }
    }

    /// The examples of fio's HOWTO, `blocksize`.
    #[test]
    fn values_by_direction_follow_the_commas() {
        let read = |said: &str| {
            let mut sizes = [4096; 3];
            let base = KbBase::Binary;
            per_direction(&text(said), &mut sizes, |text| size(text, base, 1, u64::MAX))
                .map(|()| sizes)
                .map_err(|mistake| mistake.to_string())
        };
        assert_eq!(read("256k"), Ok([262_144; 3]));
        assert_eq!(read("8k,32k"), Ok([8192, 32_768, 32_768]));
        assert_eq!(read("8k,32k,"), Ok([8192, 32_768, 4096]));
        assert_eq!(read(",8k"), Ok([4096, 8192, 8192]));
        assert_eq!(read(",8k,"), Ok([4096, 8192, 4096]));
        let fourth = "a.fio:1:10: a fourth value: one for reads, writes and trims is allowed";
        assert_eq!(read("4k,8k,9k,1k"), Err(fourth.to_owned()));
        assert_eq!(read(","), Err("a.fio:1:1: no value between the commas".to_owned()));
    }

    #[test]
    fn range_is_swapped_where_its_ends_are() {
        let read = |said| range(&text(said), |text| number(text, 0, 9)).expect("a range");
        assert_eq!((read("2-5"), read("5:2"), read("3")), ((2, 5), (2, 5), (3, 3)));
    }
}
