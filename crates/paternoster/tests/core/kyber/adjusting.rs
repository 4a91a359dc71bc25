//! How the depths follow the latencies.

use paternoster::{Event, KyberEvent, LatencyKind};

use crate::kyber::{Crowd, complete, deep, dispatch_all, fire_timer, serve, submit};
use crate::rig::*;

const READS: Crowd = Crowd { kind: read, count: 250, waits: us(0), takes: us(400) };
/// These take 14 ms of the 10 ms that are due, after 4 ms in which they wait.
const LATE_WRITES: Crowd = Crowd { kind: write, count: 125, waits: ms(4), takes: ms(14) };

/// Scenario 4: a target of 2 ms has quarters of 0.5 ms, each with its upper end.
#[test]
fn latencies_are_sorted_by_quarters_of_the_target() {
    for (nanos, line) in [
        (500_000, "latency Read Device p90: 1/4 of 500"),
        (500_001, "latency Read Device p90: 2/4 of 500"),
        (2_000_000, "latency Read Device p90: 4/4 of 500"),
        (3_500_001, "latency Read Device p90: 8/4 of 500"),
    ] {
        let mut rig = deep();
        serve(&mut rig, 2, &Crowd { takes: paternoster::Nanos::new(nanos), ..READS });
        fire_timer(&mut rig);
        rig.run(&[Expect(Emitted(line))]);
    }
}

/// Scenario 5: of 1000 reads 900 are in the first quarter, 60 in the second, 30 in the third, 10 in
/// the last. 99 % of them, 990, are within the third, 90 % within the first.
#[test]
fn percentile_is_the_quarter_within_which_that_many_lie() {
    let mut rig = deep();
    for (times, count, takes) in [(4, 225, 400), (1, 60, 800), (1, 30, 1200), (1, 10, 5000)] {
        serve(&mut rig, times, &Crowd { kind: read, count, waits: us(0), takes: us(takes) });
    }
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Read Device p90: 1/4 of 1000")),
        Expect(Emitted("latency Read Total p99: 3/4 of 1000")),
        Expect(NotEmitted("depth")),
    ]);
}

/// Scenario 6: late writes are in the 6th quarter in the device and in the last in all, beyond
/// 17.5 ms. Reads of 1.2 ms are in the third: 3/4 of 256 are 192. Twice 128 is beyond the tokens.
#[test]
fn with_congestion_a_domain_gives_up_tokens_as_far_as_it_is_within_its_target() {
    let mut rig = deep();
    serve(&mut rig, 2, &Crowd { takes: us(1200), ..READS });
    serve(&mut rig, 4, &LATE_WRITES);
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Read Device p90: 3/4 of 500")),
        Expect(Emitted("latency Write Device p90: 6/4 of 500")),
        Expect(Emitted("latency Read Total p99: 3/4 of 500")),
        Expect(Emitted("depth Read: 192")),
        Expect(Emitted("latency Write Total p99: 8/4 of 500")),
        Expect(NotEmitted("depth")),
        Expect(Number("write_tokens", 128)),
    ]);
}

#[test]
fn without_congestion_nothing_shrinks() {
    let mut rig = deep();
    serve(&mut rig, 2, &READS);
    fire_timer(&mut rig);
    rig.run(&[Expect(Emitted("latency Read Total p99: 1/4 of 500")), Expect(NotEmitted("depth"))]);
}

/// Scenario 7. In a good time reads are within half of their target. In the first bad one too few
/// reads complete, so that half of 256 are left. The next bad one finds nothing remembered.
#[test]
fn percentile_of_a_good_time_is_used_once_congestion_comes() {
    let mut rig = deep();
    serve(&mut rig, 2, &Crowd { takes: us(800), ..READS });
    fire_timer(&mut rig);
    for line in ["depth Read: 128", "latency Write Total p99: 8/4 of 500"] {
        serve(&mut rig, 1, &Crowd { count: 10, ..READS });
        serve(&mut rig, 4, &LATE_WRITES);
        fire_timer(&mut rig);
        rig.run(&[Expect(Emitted(line))]);
    }
    rig.run(&[Expect(NotEmitted("depth")), Expect(Number("read_tokens", 128))]);
}

#[test]
fn domain_of_which_nothing_is_known_keeps_its_depth() {
    let mut rig = deep();
    serve(&mut rig, 1, &Crowd { count: 10, ..READS });
    serve(&mut rig, 4, &LATE_WRITES);
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Write Device p90: 6/4 of 500")),
        Expect(NotEmitted("depth")),
    ]);
}

/// A rig with targets of 4 us, so that a microsecond is a quarter of them, and with so many tokens
/// for reads: writes of 9 us are congestion, and reads of 1 us give up three quarters each time.
fn with_read_tokens(wanted: i64) -> Rig {
    let mut rig = deep().set("read_lat_nsec", 4000).set("write_lat_nsec", 4000);
    while rig.number("read_tokens") != Some(wanted) {
        serve_reads(&mut rig, us(0), us(1));
        serve(&mut rig, 4, &Crowd { kind: write, count: 128, waits: us(0), takes: us(9) });
        fire_timer(&mut rig);
        rig.events();
    }
    rig
}

/// 512 reads, as many at once as there are tokens.
fn serve_reads(rig: &mut Rig, waits: paternoster::Nanos, takes: paternoster::Nanos) {
    let count = u64::try_from(rig.number("read_tokens").expect("it is dumped")).expect("a count");
    let times = 512_u32.div_ceil(u32::try_from(count).expect("256 at most"));
    serve(rig, times, &Crowd { kind: read, count, waits, takes });
}

/// Scenario 8: 256, 64, 16, 4, 1. Reads that take 1 us and wait for 6 are in the 7th quarter: 7/4
/// of 1 are 1, in whole tokens. With 7 us they are in the last: 8/4.
#[test]
fn depth_of_one_grows_only_in_the_last_quarter() {
    let mut rig = with_read_tokens(1);
    serve_reads(&mut rig, us(6), us(1));
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Read Device p90: 1/4 of 512")),
        Expect(Emitted("latency Read Total p99: 7/4 of 512")),
        Expect(NotEmitted("depth")),
    ]);
    serve_reads(&mut rig, us(7), us(1));
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Read Total p99: 8/4 of 512")),
        Expect(Emitted("depth Read: 2")),
    ]);
}

/// 5/4 of 16 are 20. It takes no congestion, only a target that is missed.
#[test]
fn throttled_domain_comes_back_by_missing_its_target() {
    let mut rig = with_read_tokens(16);
    serve_reads(&mut rig, us(4), us(1));
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Read Device p90: 1/4 of 512")),
        Expect(Emitted("latency Read Total p99: 5/4 of 512")),
        Expect(Emitted("depth Read: 20")),
    ]);
}

/// Scenario 9. A read completes every 20 ms, far too late. The timer fires at 120, 240, … ms, each
/// time 100 ms after the completion that follows the last. The first time, at 120, sets a deadline
/// of 1120. At 1200 the device's percentile uses that up, and the total one sets 2200; so it goes
/// on every 1080 ms, at 1200 + 1080 k, up to 9840. 500 reads are completed at 10 000, and 504 at
/// 10 080, when the timer fires next: there the total percentile is computed for the first time.
#[test]
fn few_latencies_are_judged_once_a_second_in_the_device_and_much_later_in_all() {
    let mut rig = deep();
    let mut judged = vec![];
    for completion in 1..=504 {
        rig.now = paternoster::Instant::START + ms(20 * completion - 15);
        submit(&mut rig, read, "r", 1);
        let out = dispatch_all(&mut rig);
        rig.now = rig.now + ms(15);
        complete(&mut rig, out[0]);
        if rig.elevator.poll_timeout() == Some(rig.now) {
            rig.elevator.handle_timeout(rig.now);
        }
        for (at, event) in rig.timed_events() {
            if let Event::Kyber(KyberEvent::Latency { kind, quarters, samples, .. }) = event {
                assert_eq!(quarters, 8);
                let ms = at.since_start().as_nanos() / 1_000_000;
                judged.push((ms, kind, samples));
            }
            assert!(
                !matches!(event, Event::Kyber(KyberEvent::DepthChanged { .. })),
                "there are no more tokens"
            );
        }
    }
    let device =
        |k: u32| (1200 + 1080 * u64::from(k), LatencyKind::Device, if k == 0 { 60 } else { 54 });
    let mut expected: Vec<_> = (0..9).map(device).collect();
    expected.push((10_080, LatencyKind::Total, 504));
    assert_eq!(judged, expected);
}

/// Scenario 12: 250 reads of 1.2 ms are in the third quarter of 2 ms, and stay there when the
/// target becomes 0.2 ms. 250 reads of 0.12 ms are in the third quarter of that.
#[test]
fn latencies_keep_their_quarters_when_the_target_changes() {
    let mut rig = deep();
    serve(&mut rig, 1, &Crowd { takes: us(1200), ..READS });
    rig.run(&[Set("read_lat_nsec", 200_000)]);
    serve(&mut rig, 1, &Crowd { takes: us(120), ..READS });
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Read Device p90: 3/4 of 500")),
        Expect(Emitted("latency Read Total p99: 3/4 of 500")),
    ]);
}

/// However late the write zeroes are, and whoever is congested.
#[test]
fn depth_of_the_other_domain_never_changes() {
    let mut rig = deep();
    serve(&mut rig, 40, &Crowd { kind: zeroes, count: 16, waits: us(0), takes: us(1) });
    serve(&mut rig, 4, &LATE_WRITES);
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Write Device p90: 6/4 of 500")),
        Expect(NotEmitted("latency Other")),
        Expect(NotEmitted("depth")),
        Expect(Number("other_tokens", 16)),
    ]);
}

/// A discard may take 5 s: 512 at once are in the first quarter, and with congestion 16 of the 64
/// tokens are left.
#[test]
fn discards_have_a_target_of_five_seconds() {
    let mut rig = deep();
    serve(&mut rig, 8, &Crowd { kind: discard, count: 64, waits: us(0), takes: us(1) });
    serve(&mut rig, 4, &LATE_WRITES);
    fire_timer(&mut rig);
    rig.run(&[
        Expect(Emitted("latency Discard Device p90: 1/4 of 512")),
        Expect(Emitted("latency Discard Total p99: 1/4 of 512")),
        Expect(Emitted("depth Discard: 16")),
    ]);
    rig = deep();
    serve(&mut rig, 8, &Crowd { kind: discard, count: 64, waits: us(0), takes: ms(5001) });
    fire_timer(&mut rig);
    rig.run(&[Expect(Emitted("latency Discard Device p90: 5/4 of 512"))]);
}
