//! What the shards have counted, as Prometheus text. Counts are kept in the memory of each object, so they begin
//! anew when it does; the youngest start is told.

use core::fmt::Write as _;

/// The counters of a shard's tally in order: name, labels, what it counts.
const COUNTERS: [(&str, &str, &str); 7] = [
    ("tidegate_decisions_total", "{reason=\"ok\"}", "Decisions by reason."),
    ("tidegate_decisions_total", "{reason=\"limited\"}", ""),
    ("tidegate_decisions_total", "{reason=\"never\"}", ""),
    ("tidegate_decisions_total", "{reason=\"blocked\"}", ""),
    ("tidegate_duplicates_total", "", "Ids that were found done."),
    ("tidegate_bursts_total", "", "Burst alarms that fired."),
    ("tidegate_refused_total", "", "Operations that a shard refused."),
];

/// The text for tallies, each a line of numbers of which the last is the shard's start.
pub(crate) fn text(tallies: &[String]) -> Option<String> {
    let mut sums = [0_u64; COUNTERS.len()];
    let (mut oldest, mut youngest) = (u64::MAX, 0);
    for tally in tallies {
        let numbers: Vec<u64> = tally.split(' ').map_while(|number| number.parse().ok()).collect();
        let (since, counts) = numbers.split_last()?;
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum = sum.saturating_add(*count);
        }
        (oldest, youngest) = (oldest.min(*since), youngest.max(*since));
    }
    let mut text = String::new();
    for ((name, labels, help), sum) in COUNTERS.into_iter().zip(sums) {
        if !help.is_empty() {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} counter\n");
        }
        let _ = writeln!(text, "{name}{labels} {sum}");
    }
    for (which, at) in [("oldest", oldest), ("youngest", youngest)] {
        let name = format!("tidegate_{which}_shard_start_time_seconds");
        let _ = write!(
            text,
            "# HELP {name} When the {which} shard in memory was started.\n# TYPE {name} gauge\n{name} {}.{:03}\n",
            at / 1_000,
            at % 1_000
        );
    }
    Some(text)
}
