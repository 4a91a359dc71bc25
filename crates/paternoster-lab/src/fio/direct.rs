//! What a job may do past the page cache: I/O in whole sectors, as Linux has it.

use super::error::Mistake;
use super::job::{BlockSizes, Engine, Modifier, Order, Pattern, used_sizes};
use super::resolve::JobClone;

/// What sizes and positions of direct I/O are multiples of, in bytes.
const SECTOR: u64 = 512;

/// Refuses sizes and positions that direct I/O cannot have: Linux answers EINVAL, and fio ends with
/// it.
pub(super) fn check(clone: &JobClone<'_>, pattern: &Pattern) -> Result<(), Mistake> {
    let said = &clone.spec.submission;
    let is_direct = said.direct && !matches!(said.engine, Engine::Mmap | Engine::Null);
    // A log says its own sizes and positions.
    if !is_direct || clone.spec.replays() {
        return Ok(());
    }
    let wrong = |options: &[&str], what: String| {
        let what = format!("{what}: with direct=1, Linux allows multiples of {SECTOR}");
        Err(clone.mistake(options, what))
    };
    let used = used_sizes(pattern.mix, pattern.sizes_by_order);
    for sizes in used.iter().map(|&index| &pattern.sizes[index]) {
        if let Some(bytes) = odd_size(sizes) {
            let options = ["bs", "bsrange", "bssplit"];
            return match sizes {
                BlockSizes::Range { step: 1, .. } => {
                    wrong(&["bs_unaligned"], "an I/O of any number of bytes".to_owned())
                }
                _ => wrong(&options, format!("an I/O of {bytes} bytes")),
            };
        }
    }
    if let Some(region) = pattern.regions.iter().find(|region| is_odd(region.start)) {
        let options = ["offset", "offset_increment", "offset_align"];
        return wrong(&options, format!("I/O from byte {} on", region.start));
    }
    let aligned = pattern.align.iter().flatten().filter(|_| pattern.order == Order::Random);
    if let Some(align) = aligned.copied().find(|&align| is_odd(align)) {
        return wrong(&["ba"], format!("positions of {align} bytes"));
    }
    match pattern.modifier {
        Some(Modifier::Holes(bytes)) if is_odd(bytes.unsigned_abs()) => {
            wrong(&["rw"], format!("holes of {bytes} bytes"))
        }
        _ => Ok(()),
    }
}

/// A size that is no multiple of a sector, if there is one.
fn odd_size(sizes: &BlockSizes) -> Option<u64> {
    match sizes {
        &BlockSizes::Fixed(bytes) => is_odd(bytes).then_some(bytes),
        // Sizes are multiples of the step, and the greatest one.
        &BlockSizes::Range { max, step, .. } => [step, max].into_iter().find(|&it| is_odd(it)),
        BlockSizes::Split(parts) => {
            let sizes = parts.iter().filter(|(_, percent)| *percent > 0).map(|&(bytes, _)| bytes);
            sizes.filter(|&bytes| is_odd(bytes)).min()
        }
    }
}

fn is_odd(bytes: u64) -> bool {
    !bytes.is_multiple_of(SECTOR)
}
