//! Jobs through the page cache at the end of a device that is no whole number of pages. A sector
//! takes 1 µs and a command nothing else, so that the time of the device counts sectors.

use crate::common::jobs::jobs_on;
use paternoster::{Nanos, SchedulerKind, Sector, SectorCount};
use paternoster_lab::JournalPlace;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{JobRunError, Outcome, PageCacheParameters, run_jobs};
use paternoster_model::{Room, Servers, open_device};

fn run_on(
    sectors: u64,
    text: &str,
    page_cache: PageCacheParameters,
) -> Result<Outcome, JobRunError> {
    let device = Servers::constant(
        1,
        Room { depth: 64, end: Sector(sectors) },
        Nanos::ZERO,
        Nanos::from_micros(2),
    );
    let jobs = jobs_on(text, 512 * sectors);
    run_jobs(&jobs, &Setup::new(SchedulerKind::None), page_cache, device, |_| {})
}

/// How many sectors the jobs had the device read or write.
fn sectors(device: u64, text: &str, page_cache: PageCacheParameters) -> u64 {
    let outcome = run_on(device, text, page_cache).expect("a run");
    outcome.device.spent.transfer.as_nanos() / 1000
}

/// 16 MiB and a part of a page.
const WHOLE: u64 = 32_768;

#[test]
fn whole_device_is_read_to_its_last_sector() {
    for device in [WHOLE, WHOLE + 1, WHOLE + 3, WHOLE + 7] {
        let text = "[job]\nioengine=psync\nrw=read\nbs=512\nfilename=/dev/x\n";
        assert_eq!(sectors(device, text, PageCacheParameters::default()), device);
    }
}

/// Once with all of it dirty when the sync comes, and once mostly by the flusher: of 16 MiB of
/// memory 1.6 MiB may be dirty before that writes.
#[test]
fn whole_device_is_written_to_its_last_sector() {
    for device in [WHOLE + 3, WHOLE + 7] {
        let text = format!(
            "[job]\nioengine=psync\nrw=write\nbs=512\noffset={}\nfilename=/dev/x\nend_fsync=1\n",
            512 * WHOLE
        );
        // What a page has of the device is read before its first sector is written.
        let part = device - WHOLE;
        assert_eq!(sectors(device, &text, PageCacheParameters::default()), part + part);
        let whole = "[job]\nioengine=psync\nrw=write\nbs=512\nfilename=/dev/x\nend_fsync=1\n";
        let whole = whole.replace("bs=512", &format!("bs={}", 512 * device));
        for memory_bytes in [4 << 30, 16 << 20] {
            let page_cache = PageCacheParameters { memory_bytes, ..PageCacheParameters::default() };
            assert_eq!(
                sectors(device, &whole, page_cache),
                device,
                "{memory_bytes} bytes of memory"
            );
        }
    }
}

/// A file of a file system is made of blocks of 4 KiB; at the end of a device there is none.
#[test]
fn last_page_of_a_file_is_whole_where_the_device_has_it() {
    let text = "[job]\nioengine=psync\nrw=write\nbs=512\nsize=512\nfilename=a\nend_fsync=1\n";
    assert_eq!(sectors(WHOLE, text, PageCacheParameters::default()), 8);
    let at_end = format!("{text}; lab: at=16m\n");
    assert_eq!(sectors(WHOLE + 3, &at_end, PageCacheParameters::default()), 3);
}

/// The disk has 1,160,560,003 sectors, three more than its pages.
#[test]
fn disk_of_an_odd_size_is_read_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("odd.toml");
    let text = include_str!("../../../paternoster-model/devices/sata-7200-2010.toml");
    let stated = "[layout.sectors]\nvalue = ";
    let at = text.find(stated).expect("it says how many") + stated.len();
    let end = at + text[at..].find('\n').expect("a line has an end");
    let text = format!("{}1160560003{}", &text[..at], &text[end..]);
    std::fs::write(&file, text).expect("a file in a folder of ours");
    let disk = open_device(file.to_str().expect("a name"), 1).expect("a good file");
    assert_eq!(disk.end(), Sector(1_160_560_003));
    let job = "[job]\nrw=read\nfilename=/dev/x\nbs=512\noffset=594206718464\n";
    let jobs = jobs_on(job, 512 * disk.end().0);
    let setup = Setup::new(SchedulerKind::None);
    let outcome =
        run_jobs(&jobs, &setup, PageCacheParameters::default(), disk, |_| {}).expect("a run");
    assert!(outcome.results[0].directions[0].ios > 0);
}

/// The journal is the last 64 sectors of the device, or ends one sector behind it.
#[test]
fn journal_behind_the_end_of_the_device_is_refused() {
    let text = "[job]\nioengine=psync\nrw=write\nbs=4k\nsize=4k\nfilename=a\nend_fsync=1\n";
    let page_cache = |start| {
        let place = JournalPlace { start: Sector(start), sectors: SectorCount(64) };
        PageCacheParameters { journal: Some(place), ..PageCacheParameters::default() }
    };
    assert_eq!(sectors(WHOLE, text, page_cache(WHOLE - 64)), 8 + 3 * 8);
    let error = run_on(WHOLE, text, page_cache(WHOLE - 63)).expect_err("it ends behind the device");
    let place = "the host's journal lies in sectors 32705 to 32768; the device ends before sector";
    assert_eq!(error.to_string(), format!("{place} 32768"));
}
