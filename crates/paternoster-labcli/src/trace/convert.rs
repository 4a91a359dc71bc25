//! `paternoster-lab trace convert`: a trace in another format.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use paternoster_intake::{Converter, SIDECAR, Target, Trace};

use super::input::{Devices, Input};
use crate::inputs::Inputs;
use crate::out_file::OutFile;

/// Write a trace in another format.
///
/// blktrace has whole sectors, and a process a context, with a note of its name; what it cannot
/// have goes to NAME.pater beside it, if --out is NAME.blktrace.0. iolog3 has whole
/// microseconds and a file a context, and no completions: fio's `replay_redirect` sends all to one
/// device. csv has everything, and is read here as it was. Warnings go to standard error.
#[derive(Debug, clap::Args)]
pub(super) struct Convert {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    devices: Devices,
    /// The format: blktrace, iolog3 or csv.
    #[arg(long, value_name = "NAME")]
    to: Target,
    /// Write this file instead of standard output.
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
}

pub(super) fn run(convert: &Convert) -> Result<ExitCode> {
    let trace = convert.input.open(&convert.devices)?;
    let warnings = match &convert.out {
        Some(out) => {
            let inputs = Inputs::default();
            trace.files().iter().for_each(|file| inputs.add(file));
            inputs.check("--out", out)?;
            let file = OutFile::open(out)?;
            match sidecar_of(convert, out) {
                Some(beside) => {
                    inputs.check("--out", &beside)?;
                    let beside = OutFile::open(&beside)?;
                    beside.write_by(|sidecar| {
                        file.write_by(|file| write(convert, trace, file, Some(sidecar)))
                    })?
                }
                None => file.write_by(|file| write(convert, trace, file, None))?,
            }
        }
        None => write(convert, trace, &mut io::stdout().lock(), None)?,
    };
    Ok(convert.input.exit_status(warnings))
}

/// The file beside that of blktrace, if that is called as blktrace's are.
fn sidecar_of(convert: &Convert, out: &Path) -> Option<PathBuf> {
    let name = out.file_name()?.to_str()?;
    let (name, _) = name.rsplit_once('.').filter(|_| convert.to == Target::Blktrace)?;
    let name = name.strip_suffix(".blktrace")?;
    Some(out.with_file_name(format!("{name}.{SIDECAR}")))
}

/// Writes all, and says the warnings, whose number it returns.
fn write(
    convert: &Convert,
    mut trace: Trace,
    out: &mut dyn Write,
    sidecar: Option<&mut dyn Write>,
) -> Result<usize> {
    let input = &convert.input;
    let mut converter = Converter::new(convert.to, BufWriter::new(out))?;
    if let Some(sidecar) = sidecar {
        converter = converter.with_sidecar(sidecar)?;
    }
    while let Some(request) = input.next(&mut trace)? {
        let context = &trace.findings().contexts()[request.context.0 as usize];
        converter.add(&request, context).with_context(|| format!("--to {}", convert.to.name()))?;
    }
    converter.finish()?;
    let findings = trace.finish();
    for warning in findings.warnings() {
        eprintln!("warning: {warning}");
    }
    Ok(findings.warnings().len())
}
