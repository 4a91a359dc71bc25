//! A log of I/O that cannot be replayed is refused with its file, line and column, before the run.

use std::io;
use std::path::Path;
use std::sync::Arc;

use paternoster_lab::fio::{
    DataDirection, Engine, IoLog, JobFileError, Jobs, LeastRate, ReadAt, Surroundings,
};

/// Reads a job file for a device of 1 GiB, on which every log has those bytes.
fn read(text: &str, log: &[u8]) -> Result<Jobs, JobFileError> {
    let open = |path: &Path| -> io::Result<Arc<dyn ReadAt>> {
        if path == Path::new("gone") {
            return Err(io::Error::new(io::ErrorKind::NotFound, "not there"));
        }
        Ok(Arc::new(log.to_vec()))
    };
    let surroundings = Surroundings { log: &open, ..Surroundings::without_files(1 << 30, 1) };
    Jobs::parse("a.fio", text.as_bytes(), &surroundings)
}

/// What is said of a job that replays `log`.
fn told(log: &str) -> String {
    read("[j]\nread_iolog=l\n", log.as_bytes()).expect_err(log).to_string()
}

/// What is said of a job with one more line, the third.
fn told_of(line: &str) -> String {
    let text = format!("[j]\nread_iolog=l\n{line}\n");
    read(&text, LOG.as_bytes()).expect_err(line).to_string()
}

const LOG: &str = "fio version 2 iolog\na add\na open\na read 0 4096\n";

#[test]
fn log_without_a_first_line_of_fios_is_refused() {
    let wanted = "\"fio version 2 iolog\" or \"fio version 3 iolog\" is expected";
    assert_eq!(told(""), format!("l:1:1: an empty file: {wanted}"));
    assert_eq!(told("0,0,4096\n"), format!("l:1:1: \"0,0,4096\": {wanted}"));
    let four = format!("l:1:1: \"fio version 4 iolog\": {wanted}");
    assert_eq!(told("fio version 4 iolog\na add\n"), four);
    let trace = "l:1:1: a trace of blktrace: a log of fio is expected, as `paternoster-lab trace \
                 convert --to iolog3` makes it";
    for magic in [0x6561_7407_u32.to_le_bytes(), 0x6561_7407_u32.to_be_bytes()] {
        let refused = read("[j]\nread_iolog=l\n", &magic).expect_err("it is refused");
        assert_eq!(refused.to_string(), trace);
    }
    let long = "x".repeat(100_000);
    assert_eq!(told(&long), "l:1:1: a line of more than 65536 bytes");
}

#[test]
fn lines_that_are_wrong_are_told_all_at_once() {
    let log = "\
fio version 3 iolog
0 a add
0 a read 0 4096
5 a open
5 b open
10 b frob
20 a read 0 4k
19 a wait 100 0
19 a read 0 1
";
    let wanted = "\
l:3:3: a is not open: a line \"a open\" comes before
l:4:3: a is open already
l:5:3: b was not added: a line \"b add\" comes before
l:6:6: \"frob\": add, open, close, read, write, trim, sync, datasync is expected
l:7:13: \"4k\": a number of bytes is expected
l:8:6: version 3 has no wait: stamps say when";
    assert_eq!(told(log), wanted);
    let back = "l:4:2: a stamp of 5 after one of 6: stamps do not go back";
    assert_eq!(told("fio version 3 iolog\n0 a add\n6 a open\n 5 a read 0 1\n"), back);
    let closed = "l:5:1: a is not open: a line \"a open\" comes before";
    assert_eq!(told(&LOG.replace("a read", "a close\na read")), closed);
    let idle = "l:1:1: the log has no I/O";
    assert_eq!(told("fio version 2 iolog\na add\na open\na wait 100 0\na close\n"), idle);
    let many = format!("{LOG}{}", "a\n".repeat(50));
    assert_eq!(told(&many).lines().count(), 20);
    assert!(told(&many).starts_with("l:5:2: the line ends here: FILE ACTION"));
}

#[test]
fn io_behind_the_end_of_the_device_is_refused_with_its_line() {
    let far = |name: &str| {
        format!("fio version 2 iolog\n{name} add\n{name} open\n{name} write 1073741824 512\n")
    };
    let ends = "the I/O ends 1073742336 bytes from the start of";
    let wanted = |name: &str| format!("l:4:1: {ends} {name}: the device has 1073741824");
    for name in ["/dev/sda", "a"] {
        assert_eq!(told(&far(name)), wanted(name));
    }
    // Half of it is on the device.
    let halved = read("[j]\nread_iolog=l\nreplay_scale=2\n", far("a").as_bytes()).expect("it fits");
    assert_eq!(halved.files[0].bytes, (1 << 29) + 512);
    // Each file would fit, and not both; the second reaches farthest on its fourth line.
    let both = "fio version 2 iolog\na add\nb add\na open\nb open\na read 900000000 512\n\
                b read 900000000 512\n";
    let wanted = "l:7:1: b of 900000512 bytes does not fit on the device from 900000512 on, which \
                  has 1073741824";
    assert_eq!(told(both), wanted);
    let devices = "fio version 2 iolog\n/dev/a add\n/dev/b add\n/dev/b open\n/dev/b read 0 1\n";
    assert_eq!(told(devices), "l:5:1: /dev/b beside /dev/a: there is one device");
    let late = "fio version 2 iolog\na add\na open\na wait 315360000001 0\na read 0 1\n";
    assert_eq!(told(late), "l:4:8: 315360000001 ms at 100 %: 3650d are allowed");
    let late = "fio version 3 iolog\n0 a add\n 315360000000001 a open\n";
    assert_eq!(told(late), "l:3:2: 315360000000001 us at 100 %: 3650d are allowed");
}

/// Names are held in memory until the end of the log: nothing is read behind the first that is too
/// many.
#[test]
fn log_of_too_many_files_is_read_no_further() {
    let added: Vec<_> = (0..=1 << 20).map(|name| format!("{name} add")).collect();
    let log = format!("fio version 2 iolog\n{}\n0 open\n0 frob\n", added.join("\n"));
    assert_eq!(told(&log), "l:1048578:1: 1048576 files in all: no more are allowed");
}

#[test]
fn options_of_a_replay_are_refused_by_name_and_line() {
    let stdin = read("[j]\nread_iolog=-\n", b"").expect_err("it is refused").to_string();
    let twice = "standard input cannot be read twice: a file is expected";
    assert_eq!(stdin, format!("a.fio:2:12: {twice}"));
    let behind = read("[j]\nread_iolog=l:gone\n", LOG.as_bytes()).expect_err("it is looked for");
    assert_eq!(behind.to_string(), "a.fio:2:1: gone: not there");
    let gone = read("[j]\nread_iolog=gone\n", b"").expect_err("it is refused").to_string();
    assert_eq!(gone, "a.fio:2:1: gone: not there");
    let directory = "a.fio:2:1: directory and read_iolog: the log names its files as a whole, and \
                     fio 3.33 then replays nothing";
    assert_eq!(told_of("directory=/mnt"), directory);
    let align = "a.fio:3:14: 1000: a power of 2 is allowed";
    assert_eq!(told_of("replay_align=1000"), align);
    let never = "a.fio:3:19: 0: 1 to 2147483647 is allowed";
    assert_eq!(told_of("replay_time_scale=0"), never);
    let skip = "a.fio:3:18: \"flush\": allowed is read, write, trim, sync";
    assert_eq!(told_of("replay_skip=read,flush"), skip);
    assert_eq!(
        told_of("replay_no_stall"),
        "a.fio:3:16: replay_no_stall needs a value: replay_no_stall=..."
    );
}

#[test]
fn options_that_say_nothing_are_noted() {
    let noted = |text: &str| -> Vec<_> {
        let jobs = read(text, LOG.as_bytes()).expect(text);
        jobs.notes.into_iter().map(|note| (note.option, note.why)).collect()
    };
    let log = "the log of read_iolog says what is done, and when";
    let ignored = noted("[j]\nread_iolog=l\nbs=8k\nsize=1m\nrate=1m\nloops=2\nthinktime=1ms\n");
    let wanted = ["bs", "size", "rate", "loops"].map(|name| (name.to_owned(), log));
    assert_eq!(ignored, wanted);
    let endless = noted("[j]\nread_iolog=l\ntime_based\n");
    assert_eq!(endless, [("time_based".to_owned(), log)]);
    let advised = "the log of read_iolog says what is done, and the kernel is not told of an order";
    let direct = noted("[j]\nread_iolog=l\nrw=randwrite\ndirect=1\n");
    assert_eq!(direct, [("rw".to_owned(), advised)]);
    assert_eq!(noted("[j]\nread_iolog=l\nrw=randwrite\n"), []);
    let more = noted("[j]\nread_iolog=l:m:n\nnumjobs=2\n");
    let fewer = "the section has more logs than jobs";
    assert_eq!(more, [("n of read_iolog".to_owned(), fewer)]);
    let none = noted("[j]\nsize=1m\nreplay_scale=2\nread_iolog_chunked=1\n");
    let pieces = "a log is always read in pieces";
    let wanted = [("replay_scale", "read_iolog is not set"), ("read_iolog_chunked", pieces)];
    assert_eq!(none, wanted.map(|(name, why)| (name.to_owned(), why)));
}

/// The log says what the job does, not `rw`; and its pace, not `rate`.
#[test]
fn least_rates_are_of_what_the_log_does() {
    let writes = LOG.replace("read", "write");
    let least = |options: &str| {
        let text = format!("[j]\nread_iolog=l\n{options}\n");
        let jobs = read(&text, writes.as_bytes()).expect(options);
        jobs.jobs[0].ends.least_rates.map(|least| least.rates)
    };
    // One number is of all directions, and there are no reads.
    assert_eq!(least("rate_iops_min=10"), Some([None, Some(LeastRate::Ios(10)), None]));
    assert_eq!(least("rate_iops_min=10,0,10"), None);
    let of_writes = Some([None, Some(LeastRate::Ios(100_000)), None]);
    assert_eq!(least("rate_iops_min=,100000"), of_writes);
    let of_writes = Some([None, Some(LeastRate::Bytes(1 << 30)), None]);
    assert_eq!(least("rate=,1m\nrate_min=,1g"), of_writes);
    let both = "[j]\nread_iolog=l\nrate_min=,1m\nrate_iops_min=,10\n";
    let refused = read(both, writes.as_bytes()).expect_err("it is refused").to_string();
    assert_eq!(refused, "a.fio:4:1: rate_min and rate_iops_min: one of them is allowed");
}

#[test]
fn first_wait_of_a_replayed_log_is_told() {
    let told = |version: u32, options: &str| -> Vec<_> {
        let stamp = if version == 3 { "0 " } else { "" };
        let wait = if version == 2 { "a wait 3 0\na wait 5 0\n" } else { "" };
        let lines = ["a add\n", "a open\n", wait, "a read 0 512\n"].map(|line| match line {
            "" => String::new(),
            line => format!("{stamp}{line}"),
        });
        let log = format!("fio version {version} iolog\n{}", lines.concat());
        let jobs = read(&format!("[j]\nread_iolog=l\n{options}"), log.as_bytes()).expect(&log);
        jobs.jobs
            .iter()
            .filter_map(|job| Some(job.replay.as_ref()?.first_wait()?.to_string()))
            .collect()
    };
    assert_eq!(told(2, ""), ["l:4:8"]);
    assert_eq!(told(2, "numjobs=2\n"), ["l:4:8", "l:4:8"]);
    assert_eq!(told(2, "replay_no_stall=1\n"), <[String; 0]>::default());
    assert_eq!(told(3, ""), <[String; 0]>::default());
}

/// Each of these runs would have lost what it reads, or one of its own logs.
#[test]
fn written_files_are_files_of_their_own() {
    let told = |text: &str| read(text, LOG.as_bytes()).expect_err(text).to_string();
    let replayed = "[j]\nread_iolog=k_iops.1.log\nwrite_iops_log=k\n";
    let wanted = "k_iops.1.log is the log that a job replays: it would be overwritten";
    assert_eq!(told(replayed), format!("a.fio:3:1: {wanted}"));
    let late = "[k]\nsize=1m\nwrite_bw_log\n[j]\nread_iolog=k_bw.1.log\n";
    let wanted = "k_bw.1.log is a log that a job writes: it would be overwritten";
    assert_eq!(told(late), format!("a.fio:5:1: {wanted}"));
    let both = "[j]\nsize=1m\nwrite_iolog=x_lat.1.log\nwrite_lat_log=x\n";
    let wanted = "x_lat.1.log is a log of j too: each has a file of its own, with one name";
    assert_eq!(told(both), format!("a.fio:4:1: {wanted}"));
    let itself = "[j]\nsize=1m\nwrite_iolog=a.fio\n";
    let wanted = "a.fio says what the jobs are: it would be overwritten";
    assert_eq!(told(itself), format!("a.fio:3:1: {wanted}"));
    let shared = "[global]\nsize=1m\nwrite_iops_log=x\nper_job_logs=0\n[j]\nnumjobs=2\n[k]\n";
    let jobs = read(shared, b"").expect("as fio has it");
    assert_eq!(jobs.written_files().into_iter().collect::<Vec<_>>(), ["x_iops.log"]);
}

/// What the log says counts: `rw=read` is not looked at.
#[test]
fn replaying_job_has_the_logs_files_and_directions() {
    let log = "fio version 2 iolog\na add\nb add\nc add\na open\nb open\na write 8192 4096\n\
               b sync 0 0\na trim 0 4096\n";
    let text = "[big]\nfilename=a\nsize=1m\n[j]\nioengine=null\nread_iolog=l\n";
    let jobs = read(text, log.as_bytes()).expect("it is right");
    let files: Vec<_> = jobs.files.iter().map(|file| (file.path.as_str(), file.bytes)).collect();
    assert_eq!(files, [("a", 1 << 20), ("b", 0), ("c", 0)]);
    let job = &jobs.jobs[1];
    assert_eq!(job.submission.engine, Engine::Null);
    assert_eq!(DataDirection::ALL.map(|direction| job.does(direction)), [false, true, true]);
    assert_eq!(job.replay.as_ref().map(IoLog::path), Some("l"));
}

#[test]
fn written_log_has_one_job_and_names_without_white_space() {
    let own = "each job, and each clone of numjobs, needs its own, as fio mixes them";
    let twice = read("[j]\nsize=1m\nwrite_iolog=l\n[k]\nsize=1m\nwrite_iolog=l\n", b"");
    let wanted = format!("a.fio:6:1: l is the log of j too: {own}");
    assert_eq!(twice.expect_err("it is refused").to_string(), wanted);
    let clones = read("[j]\nsize=1m\nnumjobs=2\nwrite_iolog=l\n", b"");
    let wanted = format!("a.fio:4:1: l is the log of j too: {own}");
    assert_eq!(clones.expect_err("it is refused").to_string(), wanted);
    let spaced = read("[a b]\nsize=1m\nwrite_iolog=l\n", b"").expect_err("it is refused");
    let wanted = "a.fio:3:1: file \"a b.0.0\": a name in a log of I/O has no white space";
    assert_eq!(spaced.to_string(), wanted);
    let gone = read("[j]\nread_iolog=l\n[k]\nsize=1m\nwrite_iolog=l\n", LOG.as_bytes());
    let wanted = "a.fio:5:1: l is the log that a job replays: it would be overwritten";
    assert_eq!(gone.expect_err("it is refused").to_string(), wanted);
    let gone = read("[k]\nsize=1m\nwrite_iolog=l\n[j]\nread_iolog=l\n", LOG.as_bytes());
    let wanted = "a.fio:5:1: l is a log that a job writes: it would be overwritten";
    assert_eq!(gone.expect_err("it is refused").to_string(), wanted);
    let text = "[j]\nread_iolog=l\nwrite_iolog=m\n[k]\nsize=1m\nwrite_iolog=m\n";
    let jobs = read(text, LOG.as_bytes()).expect("the first writes nothing");
    let written: Vec<_> = jobs.jobs.iter().map(|job| job.write_iolog.as_deref()).collect();
    assert_eq!(written, [None, Some("m")]);
    let [note] = &jobs.notes[..] else { panic!("{:?}", jobs.notes) };
    assert_eq!(
        (note.option.as_str(), note.why),
        ("write_iolog", "read_iolog overrides it, as in fio")
    );
}
