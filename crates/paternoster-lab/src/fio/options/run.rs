//! Options that say who a job is, when it starts and when it ends.

use super::{Given, OptionInfo, simulated};
use crate::fio::error::Mistake;
use crate::fio::job::ExitWhat;
use crate::fio::keys;
use crate::fio::spec::Spec;
use crate::fio::value::{self, TimeUnit};

/// How many jobs there may be in all: fio's own bound.
pub(in crate::fio) const MAX_JOBS: u32 = 4096;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated("name", &[], "str", "Name of the job in the report.", |spec, given| {
        spec.identity.name = Some(given.text()?.as_str().to_owned());
        Ok(())
    }),
    simulated("description", &[], "str", "A text that the report repeats.", |spec, given| {
        spec.identity.description = Some(given.text()?.as_str().to_owned());
        Ok(())
    }),
    simulated(
        "numjobs",
        &[],
        "int",
        "Clones of the job, 1 (the default) to 4096; that is also the most jobs in all.",
        |spec, given| {
            spec.identity.numjobs = given.small(1, MAX_JOBS)?;
            Ok(())
        },
    ),
    simulated("prio", &[], "int", "The level of its I/O priority, 0 to 7.", |spec, given| {
        spec.identity.prio = Some(byte(given, 7)?);
        Ok(())
    }),
    simulated(
        "prioclass",
        &[],
        "int",
        "The class: 0 none, 1 real time, 2 best effort, 3 idle.",
        |spec, given| {
            spec.identity.prioclass = Some(byte(given, 3)?);
            Ok(())
        },
    ),
    simulated(
        "nice",
        &[],
        "int",
        "Without a priority, the level of best effort follows from it, as in Linux.",
        nice,
    ),
    simulated("cgroup", &[], "str", "The group of the job, made if needed.", |spec, given| {
        let text = given.text()?;
        let parts: Vec<_> = text.as_str().split('/').filter(|part| !part.is_empty()).collect();
        keys::check_parts(text, &parts)?;
        spec.identity.group = Some(format!("/{}", parts.join("/")));
        Ok(())
    }),
    simulated(
        "cgroup_weight",
        &[],
        "int",
        "The weight of its group, 100 to 1000.",
        |spec, given| {
            spec.identity.weight = Some(given.small(100, 1000)?);
            Ok(())
        },
    ),
    simulated(
        "runtime",
        &["timeout"],
        "time",
        "The job ends after this time, 3650d at most; by default after its work.",
        |spec, given| {
            spec.run.runtime = given.time(TimeUnit::Second)?;
            Ok(())
        },
    ),
    simulated(
        "time_based",
        &[],
        "bool",
        "It begins again until `runtime` is over.",
        |spec, given| {
            spec.run.time_based = given.flag()?;
            Ok(())
        },
    ),
    simulated("ramp_time", &[], "time", "Time that it runs before it counts.", |spec, given| {
        spec.run.ramp_time = given.time(TimeUnit::Second)?;
        Ok(())
    }),
    simulated(
        "startdelay",
        &[],
        "irange(time)",
        "Delay of its start; random within a range.",
        |spec, given| {
            let time = |text: &_| value::time(text, TimeUnit::Second);
            spec.run.start_delay = value::range(given.text()?, time)?;
            Ok(())
        },
    ),
    simulated(
        "stonewall",
        &["wait_for_previous"],
        "bool",
        "It waits for the end of all jobs before it, and begins a reporting group.",
        |spec, given| {
            spec.run.stonewall = given.flag()?;
            Ok(())
        },
    ),
    simulated("wait_for", &[], "str", "It waits for the jobs of that name.", |spec, given| {
        spec.run.wait_for = Some(given.text()?.as_str().to_owned());
        Ok(())
    }),
    simulated(
        "exitall",
        &[],
        "bool",
        "Its end ends others, which wake from a pause within a second.",
        |spec, given| {
            spec.run.exitall = given.flag()?;
            Ok(())
        },
    ),
    simulated(
        "exitall_on_error",
        &[],
        "bool",
        "If it ends with an error, all others end too.",
        |spec, given| {
            spec.run.exitall_on_error = given.flag()?;
            Ok(())
        },
    ),
    simulated(
        "exit_what",
        &[],
        "str",
        "Which: group (the default), stonewall or all.",
        |spec, given| {
            spec.run.exit_what = given.word(&[
                ("group", ExitWhat::Group),
                ("stonewall", ExitWhat::Stonewall),
                ("all", ExitWhat::All),
            ])?;
            Ok(())
        },
    ),
];

fn nice(spec: &mut Spec, given: &Given<'_>) -> Result<(), Mistake> {
    let text = given.text()?;
    let nice = text.as_str().parse::<i8>().ok().filter(|nice| (-20..=19).contains(nice));
    spec.identity.nice =
        nice.ok_or_else(|| text.mistake(format!("{:?}: -20 to 19 is allowed", text.as_str())))?;
    Ok(())
}

fn byte(given: &Given<'_>, max: u8) -> Result<u8, Mistake> {
    let number = given.small(0, max.into())?;
    Ok(u8::try_from(number).expect("its range is that of the type"))
}
