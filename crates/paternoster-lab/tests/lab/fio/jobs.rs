//! What sections come to: the jobs of fio, with its rules and defaults.

use std::io;
use std::path::Path;

use paternoster::{IoPrio, Nanos, Weight};
use paternoster_lab::fio::{
    Advice, BlockSizes, DataDirection, Engine, ExitWhat, Extent, IoMix, Job, Jobs, Order,
    Surroundings, ThinkTrigger, WriteSync,
};

use crate::fio::{DEVICE_BYTES, jobs};

/// The only job of a file with a size and those options, separated by spaces.
fn job(options: &str) -> Job {
    let jobs = jobs(&format!("[j]\nsize=1m\n{}\n", options.replace(' ', "\n")));
    jobs.jobs.into_iter().next().expect("there is one")
}

#[test]
fn job_without_options_is_fios_default() {
    let job = job("");
    assert_eq!(job.pattern.mix, IoMix::Only(DataDirection::Read));
    assert_eq!(job.pattern.order, Order::Sequential);
    assert_eq!(job.pattern.sizes, [const { BlockSizes::Fixed(4096) }; 3]);
    let submission = job.submission;
    assert_eq!((submission.engine, submission.depth), (Engine::Psync, 1));
    assert!(!submission.direct && submission.invalidate);
    assert_eq!((submission.write_sync, submission.advice), (WriteSync::None, Advice::Sequential));
    assert_eq!((job.group.as_str(), job.io_prio), ("/", None));
    assert_eq!((job.pacing.think, job.pacing.rate_bytes_per_s), (None, [None; 3]));
    assert_eq!((job.run.stage, job.run.runtime, job.run.exit), (0, None, None));
}

#[test]
fn global_options_are_of_the_jobs_behind_them() {
    let jobs = jobs(
        "[global]\nsize=1m\nbs=8k\n[a]\n[b]\nbs=16k\n[global]\nbs=32k\n[c]\n[d]\nblocksize=2k\n",
    );
    let sizes: Vec<_> = jobs.jobs.iter().map(|job| job.pattern.sizes[0].min()).collect();
    assert_eq!(sizes, [8192, 16_384, 32_768, 2048]);
    let global: Vec<_> =
        jobs.global_options.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(global, [("size", "1m"), ("bs", "32k")]);
    assert_eq!(jobs.jobs[3].options.get("bs").map(String::as_str), Some("2k"), "by its first name");
}

/// Groups as fio 3.33 reports them of the same file.
#[test]
fn stonewalls_and_new_groups_are_of_the_first_clone() {
    let jobs = jobs(
        "[global]\nsize=16k\n[a]\nnumjobs=2\nstonewall\n[b]\nnew_group\n[c]\nstonewall\n\
         numjobs=2\n",
    );
    let told = |job: &Job| (job.name.clone(), job.reports.group_id, job.run.stage, job.section);
    let told: Vec<_> = jobs.jobs.iter().map(told).collect();
    let wanted = [("a", 0, 0, 0), ("a", 0, 0, 0), ("b", 1, 0, 1), ("c", 2, 1, 2), ("c", 2, 1, 2)];
    assert_eq!(
        told,
        wanted.map(|(name, group, stage, section)| (name.to_owned(), group, stage, section))
    );
}

/// Names as fio 3.33 makes them of the same file.
#[test]
fn files_are_named_as_fio_names_them() {
    let jobs = jobs(
        "[global]\nsize=64k\ndirectory=/d\n[a]\nnumjobs=2\n[b]\nnrfiles=2\n[c]\nfilename=/abs\n\
         [d]\nnumjobs=2\ndirectory=/x:/y\n[e]\nfilename_format=$filenum-$jobname\n[f]\n\
         filename=one:tw\\:o\n",
    );
    let paths: Vec<_> = jobs.files.iter().map(|file| file.path.as_str()).collect();
    let wanted = [
        "/d/a.0.0", "/d/a.1.0", "/d/b.0.0", "/d/b.0.1", "/d//abs", "/x/d.0.0", "/y/d.1.0",
        "/d/0-e", "/d/one", "/d/tw:o",
    ];
    assert_eq!(paths, wanted);
    assert_eq!(jobs.files[3].bytes, 32_768, "a half of the size");
}

#[test]
fn files_lie_one_behind_the_other_or_where_they_should() {
    let jobs = jobs(
        "[global]\nsize=1500k\n[a]\n[b]\n[c]\n; lab: at=50%\nnrfiles=2\n[d]\nfilename=a.0.0\n",
    );
    let starts: Vec<_> = jobs.files.iter().map(|file| file.start >> 20).collect();
    assert_eq!(starts, [0, 2, DEVICE_BYTES >> 21, (DEVICE_BYTES >> 21) + 1]);
    assert_eq!(jobs.jobs[3].pattern.regions[0].file, 0, "a name is one file");
}

#[test]
fn file_is_as_long_as_the_jobs_that_use_it_need() {
    let jobs = jobs(
        "[a]\nfilename=x\nsize=1m\n[b]\nfilename=x\nsize=2m\noffset=1m\n[c]\nfilename=y\nsize=4k\n",
    );
    let files: Vec<_> = jobs.files.iter().map(|file| (file.bytes, file.start)).collect();
    assert_eq!(files, [(3 << 20, 0), (4096, 3 << 20)]);
}

#[test]
fn path_below_dev_is_the_device() {
    let jobs = jobs("[a]\nfilename=/dev/sdb\n[b]\nfilename=/dev/sdb\noffset=50%\nsize=25%\n");
    assert_eq!((jobs.files.len(), jobs.files[0].bytes), (1, DEVICE_BYTES));
    let region = jobs.jobs[1].pattern.regions[0];
    assert_eq!((region.start, region.bytes), (DEVICE_BYTES / 2, DEVICE_BYTES / 4));
}

#[test]
fn clones_begin_an_increment_apart() {
    let jobs = jobs("[a]\nfilename=/dev/sdb\nnumjobs=3\nsize=1m\noffset=2m\noffset_increment=4m\n");
    let starts: Vec<_> = jobs.jobs.iter().map(|job| job.pattern.regions[0].start >> 20).collect();
    assert_eq!(starts, [2, 6, 10]);
}

/// As `ionice` shows the jobs of fio 3.33 with these options; nice values as ionice(1) has them.
#[test]
fn priorities_are_those_that_fio_sets() {
    assert_eq!(job("prioclass=2").io_prio, IoPrio::be(0));
    assert_eq!(job("prio=3").io_prio, IoPrio::be(3));
    assert_eq!(job("prioclass=1").io_prio, IoPrio::rt(0));
    assert_eq!(job("prioclass=1 prio=5").io_prio, IoPrio::rt(5));
    assert_eq!(job("prioclass=3 prio=2").io_prio, Some(IoPrio::IDLE));
    assert_eq!(job("nice=-20").io_prio, IoPrio::be(0));
    assert_eq!(job("nice=19").io_prio, IoPrio::be(7));
    assert_eq!(job("nice=19 prio=1").io_prio, IoPrio::be(1));
}

#[test]
fn engine_that_waits_has_one_io_under_way() {
    for (engine, depth) in [("sync", 1), ("psync", 1), ("pvsync2", 1), ("mmap", 1)]
        .into_iter()
        .chain([("libaio", 16), ("io_uring", 16), ("posixaio", 16), ("null", 16)])
    {
        let job = job(&format!("ioengine={engine} iodepth=16"));
        assert_eq!(job.submission.depth, depth, "{engine}");
    }
}

#[test]
fn rate_is_in_bytes_of_the_least_block() {
    assert_eq!(
        job("rate=1m,2m").pacing.rate_bytes_per_s,
        [Some(1 << 20), Some(2 << 20), Some(2 << 20)]
    );
    assert_eq!(job("rate=,500k,").pacing.rate_bytes_per_s, [None, Some(512_000), None]);
    let rates = job("rate_iops=100,50 bs=8k,4k").pacing.rate_bytes_per_s;
    assert_eq!(rates, [Some(819_200), Some(204_800), Some(204_800)]);
}

#[test]
fn think_time_counts_ios_unless_only_time_counts() {
    let think = job("thinktime=5 thinktime_spin=10ms").pacing.think.expect("it thinks");
    assert_eq!((think.pause, think.spin), (Nanos::from_micros(5), Nanos::from_micros(5)));
    assert_eq!((think.ios, think.trigger, think.after), (Some(1), ThinkTrigger::Complete, None));
    let think = job("thinktime=1s thinktime_iotime=9").pacing.think.expect("it thinks");
    assert_eq!((think.ios, think.after), (None, Some(Nanos::from_secs(9))));
    let both = "thinktime=1s thinktime_iotime=9 thinktime_blocks=4 thinktime_blocks_type=issue";
    let think = job(both).pacing.think.expect("it thinks");
    assert_eq!((think.ios, think.trigger), (Some(4), ThinkTrigger::Issue));
}

#[test]
fn times_of_a_run_have_their_units() {
    let job = job("runtime=2m time_based ramp_time=3 startdelay=500ms exitall exit_what=stonewall");
    assert_eq!(job.run.runtime, Some(Nanos::from_secs(120)));
    assert!(job.pattern.is_endless);
    assert_eq!(job.run.ramp_time, Nanos::from_secs(3));
    assert_eq!(job.run.start_delay, Nanos::from_millis(500));
    assert_eq!(job.run.exit, Some(ExitWhat::Stonewall));
}

#[test]
fn start_delay_is_drawn_from_its_range() {
    let jobs = jobs("[j]\nsize=1m\nnumjobs=200\nstartdelay=1-3\n");
    let delays: Vec<_> = jobs.jobs.iter().map(|job| job.run.start_delay).collect();
    let (low, high) = (Nanos::from_secs(1), Nanos::from_secs(3));
    assert!(delays.iter().all(|delay| (low..=high).contains(delay)));
    assert!(delays.iter().min() < Some(&Nanos::from_millis(1100)), "of 200 draws");
    assert!(delays.iter().max() > Some(&Nanos::from_millis(2900)));
}

#[test]
fn job_waits_for_all_clones_of_another() {
    let jobs = jobs("[global]\nsize=1m\n[a]\nnumjobs=2\n[b]\nwait_for=a\n");
    assert_eq!(jobs.jobs[2].run.wait_for, [0, 1]);
}

#[test]
fn groups_are_made_with_their_parents_and_weights() {
    let jobs = jobs(
        "; lab: group=/a weight=300\n[global]\nsize=1m\n[one]\n\
         # lab: group=/a/b weight=50 leaf_weight=7\n\
         [two]\ncgroup=c\ncgroup_weight=200\n[three]\ncgroup=/a/b\n[four]\n",
    );
    let groups: Vec<_> = jobs
        .groups
        .iter()
        .map(|g| (g.path.as_str(), g.weight.map(Weight::value), g.leaf_weight.map(Weight::value)))
        .collect();
    let wanted = [("/a", Some(300), None), ("/a/b", Some(50), Some(7)), ("/c", Some(200), None)];
    assert_eq!(groups, wanted);
    let of: Vec<_> = jobs.jobs.iter().map(|job| job.group.as_str()).collect();
    assert_eq!(of, ["/a/b", "/c", "/a/b", "/"]);
}

#[test]
fn kernel_is_told_the_order_of_a_job() {
    assert_eq!(job("rw=randread").submission.advice, Advice::Random);
    assert_eq!(job("rw=randread fadvise_hint=0").submission.advice, Advice::None);
    assert_eq!(job("rw=randread fadvise_hint=sequential").submission.advice, Advice::Sequential);
}

#[test]
fn files_are_included_and_variables_replaced() {
    let file = |path: &Path| match path.to_str() {
        Some("dir/more.fio") => Ok(b"bs=${BS}k\ninclude sub/last.fio\n".to_vec()),
        Some("dir/sub/last.fio") => Ok(b"iodepth=3\n".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let surroundings = Surroundings {
        variable: &|name| (name == "BS").then(|| "16".to_owned()),
        file: &file,
        ..Surroundings::without_files(DEVICE_BYTES, 1)
    };
    let text = b"[global]\nsize=1m\ninclude more.fio\nioengine=libaio\n[j]\n";
    let jobs = Jobs::parse("dir/a.fio", text, &surroundings).expect("it is right");
    let job = &jobs.jobs[0];
    assert_eq!((job.pattern.sizes[0].min(), job.submission.depth), (16_384, 3));
}

#[test]
fn comments_end_lines_and_white_space_is_skipped() {
    let jobs =
        jobs("# one\n  ; two\n[ j ] ; three\n  size=1m # four\n\tbs =8k;five\nrw=write#six\r\n");
    let job = &jobs.jobs[0];
    assert_eq!(job.name, " j ");
    assert_eq!(job.pattern.sizes[0], BlockSizes::Fixed(8192));
    assert_eq!(job.pattern.mix, IoMix::Only(DataDirection::Write));
}

#[test]
fn what_changes_nothing_is_noted_once() {
    let jobs =
        jobs("[global]\nsize=1m\nthread\n[a]\niodepth=4\n[b]\nrwmixread=30\n[c]\nverify=0\n");
    let notes: Vec<_> =
        jobs.notes.iter().map(|note| (note.place.line, note.option.as_str())).collect();
    assert_eq!(notes, [(3, "thread"), (5, "iodepth"), (7, "rwmixread")]);
}

/// Without a log, what would be said of it says nothing, and neither does the greatest of a time
/// where there is no time.
#[test]
fn options_of_logs_without_a_log_are_noted() {
    let noted = |text: &str| -> Vec<String> {
        let jobs = jobs(&format!("[j]\nsize=1m\n{text}\n"));
        jobs.notes.iter().map(|note| note.option.clone()).collect()
    };
    let options = "log_avg_msec=0\nlog_max_value=1\nlog_offset=1\nlog_prio=1\nper_job_logs=0\n\
                   disable_lat=1\ndisable_bw=1\ngtod_reduce=1";
    assert_eq!(noted(options).len(), 8);
    assert_eq!(
        noted(&format!("write_lat_log\n{options}")),
        ["write_lat_log", "log_max_value", "disable_bw_measurement"]
    );
    let averaged = options.replace("msec=0", "msec=5");
    assert_eq!(
        noted(&format!("write_lat_log\nwrite_bw_log\n{averaged}")),
        ["write_lat_log", "disable_bw_measurement"]
    );
}

/// `disable_bw` leaves out lines of I/Os, not averages; so does `gtod_reduce`, and latencies with
/// them. What a log loses all of is noted at the log.
#[test]
fn options_that_take_no_line_from_a_log_are_noted_and_logs_without_lines() {
    let noted = |text: &str| -> Vec<String> {
        let jobs = jobs(&format!("[j]\nsize=1m\n{}\n", text.replace(' ', "\n")));
        jobs.notes.iter().map(|note| note.option.clone()).collect()
    };
    assert_eq!(noted("write_bw_log disable_bw=1"), ["write_bw_log"]);
    assert_eq!(
        noted("write_bw_log log_avg_msec=5 disable_bw=1 gtod_reduce=1"),
        ["disable_bw_measurement", "gtod_reduce"]
    );
    // Without windows there are no averages.
    assert_eq!(noted("write_bw_log log_avg_msec=5 bwavgtime=0 disable_bw=1"), ["write_bw_log"]);
    assert_eq!(noted("write_iops_log disable_bw=1"), ["disable_bw_measurement"]);
    assert_eq!(
        noted("write_iops_log disable_bw=1 disable_clat=1"),
        ["disable_bw_measurement", "disable_clat"]
    );
    assert_eq!(
        noted("write_iops_log disable_bw=1 disable_clat=1 disable_slat=1"),
        ["write_iops_log"]
    );
    assert_eq!(noted("write_iops_log gtod_reduce=1"), ["write_iops_log"]);
    assert_eq!(noted("write_lat_log gtod_reduce=1"), ["write_lat_log"]);
    assert_eq!(noted("write_lat_log disable_lat=1 disable_clat=1"), Vec::<String>::new());
}

/// A bound of directions that the job does not have is none, and without one no job fails.
#[test]
fn bounds_of_other_directions_are_noted() {
    let noted = |text: &str| -> Vec<String> {
        let jobs = jobs(&format!("[j]\nsize=1m\n{}\n", text.replace(' ', "\n")));
        jobs.notes.iter().map(|note| note.option.clone()).collect()
    };
    for option in ["max_latency=,5ms", "rate_min=,1m", "rate_iops_min=,9"] {
        let name = option.split('=').next().expect("a name");
        assert_eq!(noted(option), [name]);
        assert_eq!(noted(&format!("{option} exitall_on_error")), [name, "exitall_on_error"]);
        for mix in ["write", "rw", "trimwrite"] {
            let text = format!("rw={mix} {option} exitall_on_error");
            assert_eq!(noted(&text), Vec::<String>::new(), "{text}");
        }
    }
    assert_eq!(noted("exitall_on_error"), ["exitall_on_error"]);
    assert_eq!(noted("rate=,1m"), ["rate"]);
    assert_eq!(noted("rate_iops=,,7"), ["rate_iops"]);
}

#[test]
fn zoned_distribution_may_be_absolute() {
    let job = job("rw=randread random_distribution=zoned_abs:60/64k:40/128k");
    let paternoster_lab::fio::Distribution::Zoned(zones) = &job.pattern.distribution else {
        panic!("{:?}", job.pattern.distribution)
    };
    let sizes: Vec<_> = zones[0].iter().map(|zone| (zone.percent, zone.size)).collect();
    assert_eq!(sizes, [(60, Extent::Bytes(65_536)), (40, Extent::Bytes(131_072))]);
}
