//! `--device`, as several commands have it.

use paternoster_model::device_names;

/// What its help says: it names all devices.
pub(crate) fn help() -> String {
    format!(
        "The device: one that comes with the laboratory ({}), a file of parameters, or a disk as \
         DiskSim describes it (.parv, .diskspecs)",
        device_names().join(", ")
    )
}
