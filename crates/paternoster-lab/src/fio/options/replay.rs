//! Options that replay a log of I/O, or write one.

use super::{Given, OptionInfo, other, simulated};
use crate::fio::error::Mistake;
use crate::fio::iolog::Skips;
use crate::fio::options::Support;
use crate::fio::spec::Spec;
use crate::fio::value;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated(
        "read_iolog",
        &[],
        "str",
        "Replays a log of I/O, of version 2 or 3; several, separated by `:`, go to clones in \
         turns.",
        |spec, given| {
            let logs = given.names()?;
            if logs.iter().any(|log| log == "-") {
                let what = "standard input cannot be read twice: a file is expected";
                return Err(given.text()?.mistake(what));
            }
            spec.replay.logs = logs;
            Ok(())
        },
    ),
    other(
        Support::NoEffect("a log is always read in pieces"),
        "read_iolog_chunked",
        &[],
        &[],
        "Reads that log in pieces.",
    ),
    simulated("replay_no_stall", &[], "bool", "Replays without pauses.", |spec, given| {
        spec.replay.rules.no_stall = given.switch()?;
        Ok(())
    }),
    simulated(
        "replay_time_scale",
        &[],
        "int",
        "Speed of time, in percent: 200 is twice as fast.",
        |spec, given| {
            spec.replay.rules.time_scale = given.small(1, i32::MAX.unsigned_abs())?;
            Ok(())
        },
    ),
    simulated("replay_scale", &[], "int", "Divisor of positions.", |spec, given| {
        // As in fio, 0 says nothing.
        let scale = value::number(given.text()?, 0, u32::MAX.into())?;
        spec.replay.rules.scale = scale.max(1);
        Ok(())
    }),
    simulated(
        "replay_align",
        &[],
        "int",
        "Positions are rounded down to multiples of it, a power of 2.",
        |spec, given| {
            let align = value::size(given.text()?, given.base, 1, 1 << 31)?;
            if !align.is_power_of_two() {
                let what = format!("{align}: a power of 2 is allowed");
                return Err(given.text()?.mistake(what));
            }
            spec.replay.rules.align = align;
            Ok(())
        },
    ),
    simulated("replay_redirect", &[], "str", "All I/O goes to that file.", |spec, given| {
        spec.replay.rules.redirect = Some(given.text()?.as_str().to_owned());
        Ok(())
    }),
    simulated(
        "replay_skip",
        &[],
        "str",
        "What to skip, separated by commas: read, write, trim, sync.",
        skip,
    ),
    simulated(
        "write_iolog",
        &[],
        "str",
        "Writes a log of its I/O, of version 3.",
        |spec, given| {
            spec.replay.written = Some(given.text()?.as_str().to_owned());
            Ok(())
        },
    ),
];

fn skip(spec: &mut Spec, given: &Given<'_>) -> Result<(), Mistake> {
    let mut skips = Skips::default();
    for word in given.text()?.split(',') {
        let slot = match value::word(&word, &[("read", 0), ("write", 1), ("trim", 2), ("sync", 3)])?
        {
            0 => &mut skips.reads,
            1 => &mut skips.writes,
            2 => &mut skips.trims,
            _ => &mut skips.syncs,
        };
        *slot = true;
    }
    spec.replay.rules.skips = skips;
    Ok(())
}
