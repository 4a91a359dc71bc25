//! A job file that cannot be run is refused with file, line, column, and what is allowed.

use std::io;
use std::path::Path;

use paternoster_lab::fio::{Jobs, Stream, Surroundings};
use proptest::prelude::*;

use crate::fio::{DEVICE_BYTES, read, read_bytes};

/// What is said of a file, a line for each mistake.
fn told(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

/// What is said of the job `[j]` with one more line, the third.
fn told_of(line: &str) -> String {
    told(&format!("[j]\nsize=1m\n{line}\n"))
}

#[test]
fn mistakes_are_told_all_at_once() {
    let text =
        "[global]\nbs=4q\nrunntime=3\n[a]\nsize=1m\nrw=rread\ndirect=2\n[b]\nsize=1m\nverify=md5\n";
    let wanted = "\
a.fio:2:5: \"q\" is no unit of a size: k, m, g, t, p, ki ... are
a.fio:3:1: \"runntime\" is no option of fio: \"runtime\" is near
a.fio:6:4: \"rread\": allowed is read, write, trim, randread, randwrite, randtrim, rw, readwrite, \
randrw, trimwrite, randtrimwrite
a.fio:7:8: \"2\": allowed is 1, 0
a.fio:10:1: verify is refused: a model keeps no data that could be verified";
    assert_eq!(told(text), wanted);
}

#[test]
fn line_that_is_none_is_pointed_at() {
    let jobless = "a.fio:1:1: a job file needs a section other than [global], such as [job]";
    assert_eq!(told(""), jobless);
    assert_eq!(told("[global]\nbs=4k\n"), jobless);
    let outside = "a.fio:1:1: an option before the first section, such as [global]";
    assert_eq!(told("bs=4k\n[j]\nsize=1m\n"), outside);
    let open = "a.fio:3:6: the \"]\" of a section is expected";
    assert_eq!(told("[a]\nsize=1m\n[jobb\n"), open);
    // What follows from a line that is wrong is no mistake of its own.
    assert_eq!(told("[jobb\nrw=read\nbs=4k\n"), open.replace("3:6", "1:6"));
    let space = "a.fio:2:7: white space behind \"=\": fio does not skip it";
    assert_eq!(told("[j]\nsize = 1m\n"), space);
    assert_eq!(told_of("[k] bs=4k"), "a.fio:3:5: nothing may stand behind the \"]\" of a section");
    assert_eq!(told_of("[]"), "a.fio:3:2: a section has a name, such as [job]");
    assert_eq!(told_of("bs= 4k"), "a.fio:3:4: white space behind \"=\": fio does not skip it");
    assert_eq!(told_of("bs="), "a.fio:3:4: bs has no value behind \"=\"");
    assert_eq!(told_of("bs"), "a.fio:3:3: bs needs a value: bs=...");
    let unset = "a.fio:3:4: bs has no value behind \"=\": the variable A is not set";
    assert_eq!(told_of("bs=${A}"), unset);
    let unset = "a.fio:3:4: bs has no value behind \"=\": the variables A, B are not set";
    assert_eq!(told_of("bs=${A}${B}"), unset);
    assert_eq!(told_of("b8=4k"), "a.fio:3:1: \"b8\" is no option of fio: bs, ba are near");
    assert_eq!(told_of("bs=4${A"), "a.fio:3:5: \"${\" without the \"}\" that ends a name");
    let bytes = read_bytes(b"[j]\nsize=1m\nbs=\xff4k\n").expect_err("no UTF-8").to_string();
    assert_eq!(bytes, "a.fio:3:4: a byte that is no UTF-8");
}

#[test]
fn group_that_is_too_deep_is_refused_by_its_place() {
    let deep = "/a".repeat(257);
    let wanted = |column| format!("a.fio:3:{column}: the group is 257 deep: 1 to 256 is allowed");
    assert_eq!(told_of(&format!("; lab: group={deep}")), wanted(14));
    assert_eq!(told_of(&format!("cgroup={deep}")), wanted(8));
}

#[test]
fn option_that_is_not_simulated_is_refused_by_name_and_line() {
    let later = "a.fio:3:1: serialize_overlap is not simulated yet: I/Os that overlap wait.";
    assert_eq!(told_of("serialize_overlap=1"), later);
    let date = "a.fio:3:1: log_unix_epoch is refused: virtual time has no date";
    assert_eq!(told_of("log_unix_epoch=1"), date);
    let text = "a.fio:3:1: log_store_compressed is refused: logs are written as text";
    assert_eq!(told_of("log_store_compressed=1"), text);
    let network = "a.fio:3:1: hostname is refused: it is of an ioengine that is not simulated";
    assert_eq!(told_of("hostname=x"), network);
    let engine = "a.fio:3:10: ioengine=net is not simulated: sync, psync, pvsync2, libaio, \
                  linuxaio, io_uring, posixaio, mmap, null are";
    assert_eq!(told_of("ioengine=net"), engine);
    assert!(told_of("ioengine=libaoi").starts_with("a.fio:3:10: \"libaoi\": allowed is sync,"));
    let files = "a.fio:3:19: file_service_type=zipf is not simulated yet";
    assert_eq!(told_of("file_service_type=zipf:1.2"), files);
}

#[test]
fn value_out_of_its_range_is_refused_with_the_range() {
    assert_eq!(told_of("prio=9"), "a.fio:3:6: 9: 0 to 7 is allowed");
    assert_eq!(told_of("cgroup_weight=50"), "a.fio:3:15: 50: 100 to 1000 is allowed");
    assert_eq!(told_of("numjobs=0"), "a.fio:3:9: 0: 1 to 4096 is allowed");
    assert_eq!(told_of("rwmixread=150"), "a.fio:3:11: 150: 0 to 100 is allowed");
    let unit = "a.fio:3:17: \"ms\" behind a number: none is allowed";
    assert_eq!(told_of("log_avg_msec=100ms"), unit);
    assert_eq!(told_of("nice=-21"), "a.fio:3:6: \"-21\": -20 to 19 is allowed");
    assert_eq!(told_of("percentile_list=50:101"), "a.fio:3:20: 101: 0 to 100 is allowed");
    let sum = "a.fio:3:9: the parts add up to 110 percent, not to 100";
    assert_eq!(told_of("bssplit=4k/60:8k/50"), sum);
    assert_eq!(told_of("bssplit=4k/50:8k/20"), sum.replace("110", "70"));
    let zones = "a.fio:3:27: the draws add up to 90 percent, not to 100";
    assert_eq!(told_of("random_distribution=zoned:60/10:30/20"), zones);
    let theta = "a.fio:3:26: a theta of 1: any other is allowed";
    assert_eq!(told_of("random_distribution=zipf:1"), theta);
    let h = "a.fio:3:28: 1: between 0 and 1 is allowed";
    assert_eq!(told_of("random_distribution=pareto:1"), h);
    let bare = "a.fio:3:21: zipf needs a number: zipf:...";
    assert_eq!(told_of("random_distribution=zipf"), bare);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let rates = "a.fio:4:1: rate and rate_iops: one of them is allowed";
    assert_eq!(told_of("rate=1m\nrate_iops=10"), rates);
    assert_eq!(told_of("time_based"), "a.fio:3:1: time_based needs a time: runtime=...");
    let waits = "a.fio:3:1: only ioengine=libaio and ioengine=io_uring have priorities of commands";
    assert_eq!(told_of("cmdprio_percentage=10"), waits);
    assert_eq!(told_of("cmdprio_bssplit=4k/10"), waits);
    let both = "a.fio:4:1: cmdprio_percentage and cmdprio_bssplit: one of them is allowed";
    assert_eq!(told_of("cmdprio_percentage=10\ncmdprio_bssplit=4k/10"), both);
    let parts = "a part is size/percent or size/percent/class/level, such as 4k/20";
    assert_eq!(told_of("cmdprio_bssplit=4k/10/2"), format!("a.fio:3:17: {parts}"));
    assert_eq!(told_of("cmdprio_bssplit=4k/10:8k"), format!("a.fio:3:23: {parts}"));
    let sum = "a.fio:3:23: the parts of 4096 bytes add up to 120 percent: 100 is allowed";
    assert_eq!(told_of("cmdprio_bssplit=4k/60:4k/60/1/0"), sum);
    assert_eq!(told_of("cmdprio_bssplit=4k/1/5/0"), "a.fio:3:22: \"5\": allowed is 1, 2, 3");
    assert_eq!(told_of("cmdprio_bssplit=4k/1/2/8"), "a.fio:3:24: 8: 0 to 7 is allowed");
    let unknown = "a.fio:3:1: no section before this one is called \"x\"";
    assert_eq!(told_of("wait_for=x"), unknown);
    let twice = "[global]\nsize=1m\n[a]\n[a]\n[b]\nwait_for=a\n";
    assert_eq!(told(twice), "a.fio:6:1: \"a\" is the name of two sections: one is allowed");
    let needed = "a.fio:1:2: the files are not there before: size=... or filesize=... is needed";
    assert_eq!(told("[j]\nrw=write\n"), needed);
    let nothing = "a.fio:2:1: size=0 is all of a file that is there before, as /dev/sda or a file \
                   of a job before this one: j.0.0 is not";
    assert_eq!(told("[j]\nsize=0\n"), nothing);
    assert!(read("[j]\nsize=0\nfilename=/dev/sda\n").is_ok(), "the device is there");
    let small = "a.fio:2:1: 2048 bytes of j.0.0 from 0 on: a block of 4096 does not fit";
    assert_eq!(told("[j]\nsize=2k\n"), small);
    let large = "a.fio:2:1: j.0.0 of 2199023255552 bytes does not fit on the device from 0 on, \
                 which has 1099511627776";
    assert_eq!(told("[j]\nsize=2t\n"), large);
    let devices = "a.fio:4:1: /dev/sdb beside /dev/sda: there is one device";
    assert_eq!(told("[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\n"), devices);
    let overlap = "a.fio:5:8: b.0.0 and a.0.0 would lie on each other";
    assert_eq!(told("[global]\nsize=4m\n[a]\n[b]\n; lab: at=1m\n"), overlap);
    let jobs = "a.fio:4:2: 4096 jobs in all: no more are allowed";
    assert_eq!(told("[a]\nsize=1m\nnumjobs=4000\n[b]\nsize=1m\nnumjobs=4000\n"), jobs);
}

#[test]
fn extension_key_that_is_wrong_is_refused() {
    let key = "a.fio:3:8: \"wieght\" is no key of lab: group, weight, leaf_weight and at are";
    assert_eq!(told_of("; lab: wieght=3"), key);
    assert_eq!(told_of("; lab: weight"), "a.fio:3:8: no key=value, such as group=/a");
    let weight = "a.fio:3:24: 1001: 1 to 1000 is allowed";
    assert_eq!(told_of("; lab: group=/a weight=1001"), weight);
    let path = "a.fio:3:14: \"a/b\" is no path of a group from the root, such as /a/b";
    assert_eq!(told_of("; lab: group=a/b"), path);
    let root = "a.fio:3:8: a weight needs a group: the root's is not set by a job";
    assert_eq!(told_of("; lab: weight=300"), root);
    let twice = "; lab: group=/a weight=1\n[j]\nsize=1m\n; lab: group=/a weight=2\n";
    assert_eq!(told(twice), "a.fio:4:17: group /a has weight 1 already, not 2");
    let again = "a.fio:3:17: group is said before, at a.fio:3:8: once is allowed";
    assert_eq!(told_of("; lab: group=/h group=/i"), again);
    let again = "a.fio:4:8: weight is said before, at a.fio:3:8: once is allowed";
    assert_eq!(told_of("; lab: weight=7\n; lab: weight=9 group=/h"), again);
    let again = "a.fio:1:17: group is said before, at a.fio:1:8: once is allowed";
    assert_eq!(told("; lab: group=/h group=/i\n[j]\nsize=1m\n"), again);
    let comma = "a.fio:3:16: \",\" behind a value: keys stand between spaces";
    assert_eq!(told_of("; lab: group=/h, weight=600"), comma);
    let above = "a.fio:3:14: \"..\" is no name of a group";
    assert_eq!(told_of("; lab: group=/../x"), above);
    assert_eq!(told_of("cgroup=a/../x"), above.replace(":14", ":8"));
    let line = "a.fio:1:8: a line before the sections names a group";
    assert_eq!(told("; lab: weight=1\n[j]\nsize=1m\n"), line);
}

/// fio knows the option and the laboratory both: which of them holds could not be told.
#[test]
fn group_is_not_named_in_two_ways() {
    let both = "a.fio:4:8: group beside cgroup, at a.fio:3:1: one of them is allowed";
    assert_eq!(told_of("cgroup=/a/b\n; lab: group=/x"), both);
    let both = "a.fio:4:17: weight beside cgroup_weight, at a.fio:3:1: one of them is allowed";
    assert_eq!(told_of("cgroup_weight=100\n; lab: group=/x weight=200"), both);
    let same = read("[j]\nsize=1m\ncgroup=a/b\n; lab: group=/a/b weight=20\n");
    assert!(same.is_ok(), "{same:?}");
    let jobs = read("[global]\ncgroup=a\n[j]\nsize=1m\n; lab: group=/x\n").expect("the last holds");
    assert_eq!(jobs.jobs[0].group, "/x");
}

#[test]
fn comment_that_looks_meant_is_noted() {
    let notes = |comment: &str| {
        let jobs = read(&format!("[j]\nsize=1m\n{comment}\n")).expect("a comment is no mistake");
        let notes = jobs.notes.iter();
        notes.map(|note| format!("{}: {}", note.place, note.option)).collect::<Vec<_>>()
    };
    for meant in ["lab group=/h", "LAB: group=/h", "Lab : weight=3", "lab; at=1g"] {
        let wanted = format!("a.fio:3:3: the comment {meant:?}");
        assert_eq!(notes(&format!("; {meant}")), [wanted]);
    }
    for other in ["lab: group=/h", "lab results of Monday", "label group=/h", "a lab group=/h"] {
        assert_eq!(notes(&format!("; {other}")), Vec::<String>::new(), "{other}");
    }
}

/// Linux answers EINVAL, with which fio 3.33 ends: "err=22/file:...: Invalid argument".
#[test]
fn direct_io_is_in_whole_sectors() {
    let allowed = "with direct=1, Linux allows multiples of 512";
    let direct = |options: &str| told_of(&format!("direct=1\n{options}"));
    assert_eq!(direct("bs=3"), format!("a.fio:4:1: an I/O of 3 bytes: {allowed}"));
    let range = format!("a.fio:4:1: an I/O of 1000 bytes: {allowed}");
    assert_eq!(direct("bsrange=1000-4k"), range);
    assert_eq!(direct("bssplit=4k/50:1000/50"), range);
    let any = format!("a.fio:5:1: an I/O of any number of bytes: {allowed}");
    assert_eq!(direct("bsrange=4k-8k\nbs_unaligned=1"), any);
    assert_eq!(direct("offset=100"), format!("a.fio:4:1: I/O from byte 100 on: {allowed}"));
    let positions = format!("a.fio:5:1: positions of 100 bytes: {allowed}");
    assert_eq!(direct("rw=randread\nba=100"), positions);
    assert_eq!(direct("rw=read:100"), format!("a.fio:4:1: holes of 100 bytes: {allowed}"));
    let right = ["bs=3", "direct=1\nbs=4k,3", "direct=1\nbs=3\nioengine=mmap", "direct=1\nbs=512"];
    for options in right {
        assert!(read(&format!("[j]\nsize=1m\n{options}\n")).is_ok(), "{options}");
    }
}

#[test]
fn bound_that_cannot_hold_is_refused() {
    let least = |options: &str| told(&format!("[j]\nsize=1m\n{options}"));
    let above = "a.fio:4:1: rate_min is 2097152 a second: rate, which is 1048576, is allowed";
    assert_eq!(least("rate=1m\nrate_min=2m\n"), above);
    let above = "a.fio:3:1: rate_iops_min is 101 a second: rate_iops, which is 100, is allowed";
    assert_eq!(least("rate_iops_min=101\nrate_iops=100\n"), above);
    let both = "a.fio:4:1: rate_min and rate_iops_min: one of them is allowed";
    assert_eq!(least("rate_min=10\nrate_iops_min=20\n"), both);
    assert_eq!(told_of("rate_cycle=0"), "a.fio:3:12: 0: 1 to 4294967295 is allowed");
    let window = "a.fio:3:1: latency_target needs the time for which a depth is tried: \
                  latency_window=...";
    assert_eq!(told_of("latency_target=10us"), window);
    let limit = "a.fio:3:13: \"iops\" has no limit: iops:10 and iops:1% have one";
    assert_eq!(told_of("steadystate=iops"), limit);
    let word = "a.fio:3:4: \"lat\": allowed is iops, iops_slope, bw, bw_slope";
    assert_eq!(told_of("ss=lat:1"), word);
    assert_eq!(told_of("ss=iops:-1"), "a.fio:3:9: \"-1\" is no number, such as 1.2");
    assert_eq!(told_of("ss=iops:1x%"), "a.fio:3:9: \"1x\" is no number, such as 1.2");
    assert_eq!(told_of("ss_interval=0"), "a.fio:3:13: 0: more than 0 is allowed");
    let multiple = "a.fio:3:1: 2.5s are no multiple of the 1s between two checks";
    assert_eq!(told_of("ss_dur=2500ms"), multiple);
    let checks = "a.fio:3:1: 315360000 checks at once: 100000 are allowed";
    assert_eq!(told_of("ss_dur=3650d"), checks);
    let group = "a.fio:6:2: steadystate and its times are not those of a, of the same reporting \
                 group";
    let text = "[a]\nsize=1m\nss=iops:1\nss_dur=3\nnumjobs=2\n[b]\nsize=1m\n";
    assert_eq!(told(text), group);
    assert!(read(&format!("{text}new_group\n")).is_ok(), "another group");
    let percent = "a.fio:3:20: 101: 0 to 100 is allowed";
    assert_eq!(told_of("latency_percentile=101"), percent);
    let time = "a.fio:3:14: \"q\" is no unit of a time: d, h, m, s, ms, us are";
    assert_eq!(told_of("max_latency=1q"), time);
}

#[test]
fn included_file_is_named_in_its_mistakes() {
    let file = |path: &Path| match path.to_str() {
        Some("dir/more.fio") => Ok(b"bs=4q\n[x]\n".to_vec()),
        Some("dir/self.fio") => Ok(b"include self.fio\n".to_vec()),
        Some("dir/one.fio") => Ok(b"include two.fio\n".to_vec()),
        Some("dir/two.fio") => Ok(b"include one.fio\n".to_vec()),
        Some("dir/none.fio") => Ok(vec![]),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "not there")),
    };
    let surroundings = Surroundings { file: &file, ..Surroundings::without_files(DEVICE_BYTES, 1) };
    let told = |text: &str| {
        let read = Jobs::parse("dir/a.fio", text.as_bytes(), &surroundings);
        read.expect_err(text).to_string()
    };
    let wanted = "\
dir/more.fio:1:5: \"q\" is no unit of a size: k, m, g, t, p, ki ... are
dir/more.fio:2:2: an included file has no sections";
    assert_eq!(told("[j]\nsize=1m\ninclude more.fio\n"), wanted);
    let missing = "dir/a.fio:3:9: dir/gone.fio: not there";
    assert_eq!(told("[j]\nsize=1m\ninclude gone.fio\n"), missing);
    let endless = "dir/self.fio:1:9: dir/self.fio would include itself";
    assert_eq!(told("[j]\nsize=1m\ninclude self.fio\n"), endless);
    let mutual = "dir/two.fio:1:9: dir/one.fio would include itself";
    assert_eq!(told("[j]\nsize=1m\ninclude one.fio\n"), mutual);
    let many = "dir/a.fio:103:9: 100 files were included before: no more may be";
    assert_eq!(told(&format!("[j]\nsize=1m\n{}", "include none.fio\n".repeat(101))), many);
}

/// Options that change I/Os, and keys.
const NAMES: &[&str] = &[
    "rw",
    "bs",
    "bsrange",
    "bssplit",
    "size",
    "io_size",
    "filesize",
    "offset",
    "nrfiles",
    "loops",
    "filename",
    "numjobs",
    "random_distribution",
    "percentage_random",
    "norandommap",
    "ba",
    "fsync",
    "file_service_type",
    "number_ios",
    "offset_increment",
    "runtime",
    "time_based",
    "wait_for",
    "cgroup",
    "cgroup_weight",
    "rate",
    "thinktime",
    "bs_is_seq_rand",
    "bs_unaligned",
    "kb_base",
    "randrepeat",
    "end_fsync",
    "percentile_list",
    "startdelay",
    "; lab: at",
    "; lab: group",
];

/// Values that are right for some of them.
const VALUES: &[&str] = &[
    "randread",
    "randrw:8",
    "write:4k",
    "trimwrite",
    "randtrimwrite",
    "4k",
    "1k-3k",
    "64k",
    "8k,4k",
    "100",
    "1",
    "0",
    "3k",
    "4k/50:12k/50",
    "1k/10:2k/",
    "zipf:1.2",
    "zipf:100:1",
    "pareto:0.9:0",
    "normal:0:1",
    "normal:100",
    "zoned:50/50:50/10",
    "zoned_abs:0/1k:100/2g",
    "a:b",
    "/dev/a",
    "random:3",
    "sequential",
    "50%",
    "1000",
    "2t",
    "/a/b",
    "x",
    "17",
    "700",
    "1m",
    "1m-3m",
];

/// Lines of options, right ones and wrong ones.
fn lines() -> impl Strategy<Value = String> {
    let name = prop::sample::select(NAMES);
    let value =
        prop_oneof![prop::sample::select(VALUES).prop_map(str::to_owned), "[0-9a-z%:,/.-]{0,8}",];
    let option = (name, value).prop_map(|(name, value)| format!("{name}={value}"));
    let line = prop_oneof![
        8 => option,
        1 => "[a-z_]{1,12}",
        1 => prop::sample::select(vec!["[a]", "[b]", "[global]", "size=1m"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_bytes(&bytes);
    }

    #[test]
    fn no_text_makes_it_panic(text in "(\\[j\\]\n)?(\\PC|[\n=;#\\[\\]${}:,%/0-9kmg]){0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn ios_of_a_job_stay_in_its_regions(lines in lines()) {
        let Ok(jobs) = read(&format!("[j]\nsize=1m\n{lines}\n")) else { return Ok(()) };
        for job in jobs.jobs.iter().take(3) {
            let regions = &job.pattern.regions;
            for io in Stream::new(&job.pattern).take(300) {
                let region = regions.iter().find(|region| region.file == io.file);
                let region = region.expect("a file of the job");
                let file = &jobs.files[io.file];
                prop_assert!(region.start + region.bytes <= file.bytes, "{region:?} {file:?}");
                prop_assert!(file.start + file.bytes <= DEVICE_BYTES);
                if io.bytes > 0 {
                    prop_assert!(region.start <= io.offset, "{io:?} {region:?}");
                    prop_assert!(io.offset + io.bytes <= region.start + region.bytes, "{io:?}");
                }
            }
        }
    }
}
