//! A small disk whose times can be worked out by hand.
//!
//! It turns once in 10 ms and has 10 sectors a track: a sector takes 1 ms, and sector 0 of a track
//! begins to pass at 0 ms, 10 ms, 20 ms … It has one surface and 100 cylinders, no skew, and seeks
//! to the next cylinder in 2 ms, to others in 4 ms. Its link takes 0.1 ms a sector, and a command
//! 0.5 ms.

use paternoster_model::disk::Parameters;

const SMALL: &str = r#"
kind = "disk"
name = "small"
about = "ten sectors a track"
valid = "nowhere"
[layout]
surfaces = 1
order = "forward"
sectors = 1000
track_skew_revolutions = 0
cylinder_skew_revolutions = 0
zones = [[99, 10]]
[mechanics]
rpm = 6000
head_switch_ms = 1
write_settle_ms = 0
seek = { points_ms = [[1, 2], [2, 4], [99, 4]] }
[link]
read_mb_per_s = 5.12
write_mb_per_s = 5.12
[overheads]
command_ms = 0.5
read_hit_ms = 0
read_miss_ms = 0
write_hit_ms = 0
write_miss_ms = 0
[buffer]
segments = 4
segment_sectors = 20
write_segments = 2
read_begin = "at-first"
write_begin = "at-first"
[buffer.read_ahead]
until = "track"
most_sectors = 20
least_sectors = 0
over_requested = true
after_hit = false
keeps_passed = false
[buffer.write_back]
mode = "off"
idle_ms = 0
runs = 4
[queue]
depth = 4
longest_wait_ms = 1000
"#;

/// The small disk with some pieces of its file replaced, each of which is there.
pub(crate) fn small_disk(changes: &[(&str, &str)]) -> Parameters {
    let mut text = SMALL.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
