//! Options that say in what order and what sizes a job reads and writes.

use std::sync::Arc;

use super::{Given, OptionInfo, percent, simulated};
use crate::fio::error::Mistake;
use crate::fio::job::{Coverage, DataDirection, Distribution, IoMix, Order, Sequencer, Zone};
use crate::fio::spec::Spec;
use crate::fio::text::Text;
use crate::fio::value::{self, Extent, KbBase, PerDirection};

/// How many parts a distribution or a split may have.
const PARTS: usize = 256;

/// The greatest exponent of a zipf distribution: one block has all draws then.
const MAX_THETA: f64 = 100.0;

/// The largest block, which is a trim: a sector more has a device of 2^32 sectors.
const MAX_BLOCK: u64 = 1 << 40;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated(
        "rw",
        &["readwrite"],
        "str[:int]",
        "Directions and their order: read (the default), write, trim, randread, randwrite, \
         randtrim, rw or readwrite, randrw, trimwrite, randtrimwrite.",
        rw,
    ),
    simulated(
        "rw_sequencer",
        &[],
        "str",
        "What the number after `rw=rand...:` does: sequential (the default) or identical.",
        |spec, given| {
            let words =
                [("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)];
            spec.pattern.sequencer = given.word(&words)?;
            Ok(())
        },
    ),
    simulated(
        "rwmixread",
        &[],
        "int",
        "Percentage of reads in a mix; 50 by default.",
        |spec, given| {
            spec.pattern.percent_reads = given.percent()?;
            Ok(())
        },
    ),
    simulated("rwmixwrite", &[], "int", "Percentage of writes in a mix.", |spec, given| {
        spec.pattern.percent_reads = 100 - given.percent()?;
        Ok(())
    }),
    simulated(
        "bs",
        &["blocksize"],
        "int[,int][,int]",
        "Size of an I/O, for reads, writes and trims: 1 to 1073741824 bytes each, a trim up to \
         1099511627776; 4096 by default. `bsrange` overrides it wherever it stands, and `bssplit` \
         overrides both.",
        |spec, given| {
            let base = given.base;
            given.per_direction(&mut spec.pattern.block, |text| block(text, base))
        },
    ),
    simulated(
        "bsrange",
        &["blocksize_range"],
        "irange[,irange][,irange]",
        "Least and greatest size of an I/O, in multiples of the lower one, or of the higher one.",
        |spec, given| {
            let base = given.base;
            given.per_direction(&mut spec.pattern.ranges, |text| {
                value::range(text, |text| block(text, base)).map(Some)
            })
        },
    ),
    simulated(
        "bssplit",
        &[],
        "str[,str][,str]",
        "Sizes, each with its part in percent: `4k/60:64k/40`. They are rounded down to multiples \
         of the least one.",
        |spec, given| {
            let base = given.base;
            given.per_direction(&mut spec.pattern.splits, |text| split(text, base).map(Some))
        },
    ),
    simulated(
        "bs_unaligned",
        &["blocksize_unaligned"],
        "bool",
        "Any size of `bsrange` and `bssplit`, not only multiples of the least one.",
        |spec, given| {
            spec.pattern.unaligned = given.flag()?;
            Ok(())
        },
    ),
    simulated(
        "bs_is_seq_rand",
        &[],
        "bool",
        "The first size is of sequential I/O and the second of random I/O.",
        |spec, given| {
            spec.pattern.sizes_by_order = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "ba",
        &["blockalign"],
        "int[,int][,int]",
        "Alignment of random positions; blocks may be visited again.",
        |spec, given| {
            let base = given.base;
            given.per_direction(&mut spec.pattern.align, |text| {
                value::size(text, base, 1, MAX_BLOCK).map(Some)
            })
        },
    ),
    simulated(
        "random_distribution",
        &[],
        "str:float[:float][,str:float][,str:float]",
        "How random positions are drawn: random (the default), zipf, pareto, normal, zoned, \
         zoned_abs.",
        |spec, given| {
            spec.pattern.distribution = distribution(given)?;
            Ok(())
        },
    ),
    simulated(
        "percentage_random",
        &[],
        "int[,int][,int]",
        "Percentage of a random job's I/Os that are random, 100 by default; the others follow the \
         last.",
        |spec, given| given.per_direction(&mut spec.pattern.percent_random, percent),
    ),
    simulated(
        "norandommap",
        &[],
        "bool",
        "A block may be visited again before all were.",
        |spec, given| {
            let again = given.flag()?;
            spec.pattern.coverage = if again { Coverage::Any } else { Coverage::EachOnce };
            Ok(())
        },
    ),
    simulated(
        "randrepeat",
        &[],
        "bool",
        "Each loop has the same random positions; 1 is the default.",
        |spec, given| {
            spec.pattern.repeat = given.switch()?;
            Ok(())
        },
    ),
    simulated("randseed", &[], "int", "The seed of a job's draws.", |spec, given| {
        spec.pattern.seed = Some(value::number(given.text()?, 0, u64::MAX)?);
        Ok(())
    }),
    simulated("fsync", &[], "int", "An fsync after this many writes.", |spec, given| {
        spec.pattern.fsync = count(given)?;
        Ok(())
    }),
    simulated("fdatasync", &[], "int", "An fdatasync after this many writes.", |spec, given| {
        spec.pattern.fdatasync = count(given)?;
        Ok(())
    }),
    simulated(
        "end_fsync",
        &[],
        "bool",
        "An fsync at the end of the job and of each loop.",
        |spec, given| {
            spec.pattern.end_fsync = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "fsync_on_close",
        &[],
        "bool",
        "An fsync when a written file is closed, at the end of each loop.",
        |spec, given| {
            spec.pattern.fsync_on_close = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "number_ios",
        &[],
        "int",
        "The job ends after this many I/Os for each of its `loops`, or earlier; those of \
         `ramp_time` do not count once that is over.",
        |spec, given| {
            let ios = given.size()?;
            spec.pattern.number_ios = (ios > 0).then_some(ios);
            Ok(())
        },
    ),
    simulated(
        "loops",
        &[],
        "int",
        "How often the job does its I/O; once by default.",
        |spec, given| {
            spec.pattern.loops = given.small(0, u32::MAX)?.max(1);
            Ok(())
        },
    ),
];

/// `read`, `randrw:8` ...
fn rw(spec: &mut Spec, given: &Given<'_>) -> Result<(), Mistake> {
    let text = given.text()?;
    let (word, number) = match text.split_once(|c| c == ':') {
        Some((word, number)) => (word, Some(number)),
        None => (text.clone(), None),
    };
    let read = IoMix::Only(DataDirection::Read);
    let write = IoMix::Only(DataDirection::Write);
    let trim = IoMix::Only(DataDirection::Trim);
    let both = IoMix::ReadsAndWrites { reads: 50 };
    let words = [
        ("read", (read, Order::Sequential)),
        ("write", (write, Order::Sequential)),
        ("trim", (trim, Order::Sequential)),
        ("randread", (read, Order::Random)),
        ("randwrite", (write, Order::Random)),
        ("randtrim", (trim, Order::Random)),
        ("rw", (both, Order::Sequential)),
        ("readwrite", (both, Order::Sequential)),
        ("randrw", (both, Order::Random)),
        ("trimwrite", (IoMix::TrimsAndWrites, Order::Sequential)),
        ("randtrimwrite", (IoMix::TrimsAndWrites, Order::Random)),
    ];
    (spec.pattern.mix, spec.pattern.order) = value::word(&word, &words)?;
    let modifier = number.map(|number| modifier(&number, spec.pattern.order, given.base));
    spec.pattern.modifier = modifier.transpose()?;
    Ok(())
}

/// The number behind `rw=...:`. Sequential I/O goes back where it is negative.
fn modifier(text: &Text, order: Order, base: KbBase) -> Result<i64, Mistake> {
    let signed = |bytes| i64::try_from(bytes).expect("a block is below 2^63 bytes");
    if text.as_str().starts_with('-') {
        if order == Order::Random {
            return Err(text.mistake("a negative number: sequential I/O may have one"));
        }
        return Ok(-signed(block(&text.from(1), base)?));
    }
    block(text, base).map(signed)
}

/// A size of an I/O.
fn block(text: &Text, base: KbBase) -> Result<u64, Mistake> {
    value::size(text, base, 1, MAX_BLOCK)
}

/// `4k/60:64k/40`. Sizes without a part share what is left of 100.
fn split(text: &Text, base: KbBase) -> Result<Vec<(u64, u8)>, Mistake> {
    let mut parts = vec![];
    for piece in text.split(':') {
        let (size, part) = match piece.split_once(|c| c == '/') {
            Some((size, part)) if !part.is_empty() => (size, Some(percent(&part)?)),
            Some((size, _)) => (size, None),
            None => (piece, None),
        };
        parts.push((block(&size, base)?, part));
    }
    if parts.len() > PARTS {
        return Err(text.mistake(format!("{} sizes: {PARTS} are allowed", parts.len())));
    }
    let Some(percents) = shared(parts.iter().map(|&(_, part)| part)) else {
        let sum: u32 = parts.iter().filter_map(|&(_, part)| part).map(u32::from).sum();
        return Err(text.mistake(format!("the parts add up to {sum} percent, not to 100")));
    };
    Ok(parts.into_iter().map(|(size, _)| size).zip(percents).collect())
}

/// The percent of each part, where those that say none share what the others leave of 100: none if
/// the parts are not 100 in all. What cannot be shared evenly goes to the first, a percent each.
fn shared(parts: impl Iterator<Item = Option<u8>> + Clone) -> Option<Vec<u8>> {
    let sum: u32 = parts.clone().flatten().map(u32::from).sum();
    let open = u32::try_from(parts.clone().filter(Option::is_none).count()).ok()?;
    let left = 100_u32.checked_sub(sum).filter(|&left| left == 0 || open > 0)?;
    let (share, mut rest) = (left / open.max(1), left % open.max(1));
    let parts = parts.map(|part| {
        part.unwrap_or_else(|| {
            let more = u32::from(rest > 0);
            rest -= more;
            u8::try_from(share + more).expect("100 at most")
        })
    });
    Some(parts.collect())
}

fn distribution(given: &Given<'_>) -> Result<Distribution, Mistake> {
    #[derive(Clone, Copy)]
    enum Kind {
        Random,
        Zipf,
        Pareto,
        Normal,
        Zoned,
        ZonedAbs,
    }
    let text = given.text()?;
    let (word, arguments) = match text.split_once(|c| c == ':') {
        Some((word, arguments)) => (word, Some(arguments)),
        None => (text.clone(), None),
    };
    let words = [
        ("random", Kind::Random),
        ("zipf", Kind::Zipf),
        ("pareto", Kind::Pareto),
        ("normal", Kind::Normal),
        ("zoned", Kind::Zoned),
        ("zoned_abs", Kind::ZonedAbs),
    ];
    let kind = value::word(&word, &words)?;
    if let (Kind::Random, None) = (kind, &arguments) {
        return Ok(Distribution::Uniform);
    }
    let Some(arguments) = arguments else {
        let what = format!("{0} needs a number: {0}:...", word.as_str());
        return Err(word.mistake(what));
    };
    match kind {
        Kind::Random => Err(arguments.mistake("random needs no number")),
        Kind::Zipf => {
            let (theta, center) = number_and_center(&arguments, MAX_THETA)?;
            // fio refuses 1 too.
            if (theta - 1.0).abs() < f64::EPSILON {
                return Err(arguments.mistake("a theta of 1: any other is allowed"));
            }
            Ok(Distribution::Zipf { theta, center })
        }
        Kind::Pareto => {
            let (h, center) = number_and_center(&arguments, 1.0)?;
            if h <= 0.0 || h >= 1.0 {
                return Err(arguments.mistake(format!("{h}: between 0 and 1 is allowed")));
            }
            Ok(Distribution::Pareto { h, center })
        }
        Kind::Normal => {
            let (deviation, center) = number_and_center(&arguments, 100.0)?;
            Ok(Distribution::Normal { deviation, center: center.unwrap_or(0.5) })
        }
        Kind::Zoned => distribute(&arguments, percent_zones),
        Kind::ZonedAbs => distribute(&arguments, |text| absolute_zones(text, given.base)),
    }
}

/// `1.2` or `1.2:0.25`.
fn number_and_center(text: &Text, max: f64) -> Result<(f64, Option<f64>), Mistake> {
    match text.split_once(|c| c == ':') {
        Some((number, center)) => {
            let center = value::fraction(&center, 0.0, 1.0)?;
            Ok((value::fraction(&number, 0.0, max)?, Some(center)))
        }
        None => Ok((value::fraction(text, 0.0, max)?, None)),
    }
}

/// The zones of each direction.
fn distribute(
    text: &Text,
    read: impl Fn(&Text) -> Result<Vec<Zone>, Mistake>,
) -> Result<Distribution, Mistake> {
    let mut zones: PerDirection<Vec<Zone>> = [const { vec![] }; 3];
    value::per_direction(text, &mut zones, |text| {
        let zones = read(text)?;
        check_zones(text, &zones)?;
        Ok(zones)
    })?;
    if let Some(direction) = DataDirection::ALL.iter().find(|&&d| zones[d as usize].is_empty()) {
        let what = format!("no zones for {direction:?}: give some or end without a comma");
        return Err(text.mistake(what.to_lowercase()));
    }
    Ok(Distribution::Zoned(Arc::new(zones)))
}

/// `60/10:40/20`, in percent of the region. As in fio, zones without a size, or of 0 percent, share
/// what the others leave of the region: `60/10:40`.
fn percent_zones(text: &Text) -> Result<Vec<Zone>, Mistake> {
    let mut zones = vec![];
    for piece in text.split(':') {
        let (part, size) = match piece.split_once(|c| c == '/') {
            Some((part, size)) if !size.is_empty() => (part, percent(&size)?),
            Some((part, _)) => (part, 0),
            None => (piece, 0),
        };
        zones.push((percent(&part)?, (size > 0).then_some(size)));
    }
    let sum: u32 = zones.iter().filter_map(|&(_, size)| size).map(u32::from).sum();
    let sizes = zones.iter().map(|&(_, size)| size);
    let sizes = match sum {
        // Zones need not reach the end of the region.
        0..100 if zones.iter().all(|(_, size)| size.is_some()) => sizes.flatten().collect(),
        _ => shared(sizes).ok_or_else(|| {
            text.mistake(format!("the sizes add up to {sum} percent: 100 is allowed"))
        })?,
    };
    let zones = zones.into_iter().zip(sizes);
    Ok(zones.map(|((percent, _), size)| Zone { percent, size: Extent::Percent(size) }).collect())
}

/// `60/10g:40/20g`, in bytes.
fn absolute_zones(text: &Text, base: KbBase) -> Result<Vec<Zone>, Mistake> {
    let zone = |piece: Text| {
        let Some((part, size)) = piece.split_once(|c| c == '/') else {
            return Err(piece.mistake("a zone is percent/size, such as 60/10g"));
        };
        let size = Extent::Bytes(value::size(&size, base, 1, u64::MAX)?);
        Ok(Zone { percent: percent(&part)?, size })
    };
    text.split(':').into_iter().map(zone).collect()
}

fn check_zones(text: &Text, zones: &[Zone]) -> Result<(), Mistake> {
    if zones.len() > PARTS {
        return Err(text.mistake(format!("{} zones: {PARTS} are allowed", zones.len())));
    }
    let sum: u32 = zones.iter().map(|zone| u32::from(zone.percent)).sum();
    if sum != 100 {
        return Err(text.mistake(format!("the draws add up to {sum} percent, not to 100")));
    }
    Ok(())
}

/// A number of I/Os that fio reads as a size.
fn count(given: &Given<'_>) -> Result<u32, Mistake> {
    let text = given.text()?;
    let count = value::size(text, given.base, 0, u32::MAX.into())?;
    Ok(u32::try_from(count).expect("its range is that of the type"))
}
