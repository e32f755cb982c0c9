//! Random limits, costs, times and operations, heavy on the boundaries.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::model::{Algo, Spec};
use crate::{DAY, YEAR};

pub(crate) fn window() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => select(vec![
            1, 2, 3, 7, 10, 16, 50, 999, 1_000, 1_296, 60_000, 86_399_999, DAY, 30 * DAY, YEAR,
        ]),
        2 => 1..2_000_u64,
        1 => 1..=YEAR,
    ]
}

pub(crate) fn units() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => select(vec![1, 1, 1, 2, 2, 3, 5, 7, 10, 60, 100, 1_000, 65_536, 10_000_000]),
        2 => 1..50_u64,
        1 => (0..53_u32).prop_map(|bits| 1 << bits),
        1 => 1..(1_u64 << 53),
    ]
}

/// Any limit that a user may try.
pub(crate) fn any_spec(name: &'static str) -> impl Strategy<Value = Spec> {
    let algo = select(vec![Algo::Bucket, Algo::Bucket, Algo::Bucket, Algo::Fixed, Algo::Sliding]);
    let odd = prop_oneof![6 => Just(false), 1 => Just(true)];
    (algo, units(), window(), proptest::option::of(units()), odd, 0..8_u8).prop_map(
        move |(algo, limit, window, burst, strict, edge)| {
            let bucket = algo == Algo::Bucket;
            let mut spec = Spec {
                name,
                algo,
                limit,
                window,
                burst: burst.filter(|_| bucket),
                strict: strict && bucket,
            };
            match edge {
                // Just inside the bound, and just outside.
                0 => spec.limit = ((1 << 51) - 1) / spec.reduced_window(),
                1 => spec.limit = ((1 << 51) - 1) / spec.reduced_window() + 1,
                2 if bucket => spec.burst = Some(((1 << 51) - 1) / spec.reduced_window()),
                3 if bucket => spec.burst = Some(((1 << 51) - 1) / spec.reduced_window() + 1),
                4 if bucket => spec.burst = Some(1),
                5 if bucket => spec.burst = Some(spec.limit),
                _ => {}
            }
            spec.limit = spec.limit.max(1);
            spec.burst = spec.burst.map(|burst| burst.max(1));
            spec
        },
    )
}

/// A limit that is accepted: what is too large is made smaller, so that nothing is thrown away.
pub(crate) fn spec(name: &'static str) -> impl Strategy<Value = Spec> {
    any_spec(name).prop_map(|mut spec| {
        if spec.strict {
            spec.burst = spec.burst.map(|burst| burst.min(spec.limit));
        }
        while !spec.accepted() {
            if spec.limit == 1 && spec.capacity() == 1 {
                spec.window = 1_000;
            }
            spec.limit = spec.limit.div_ceil(3);
            spec.burst = spec.burst.map(|burst| burst.div_ceil(3));
        }
        spec
    })
}

/// The limits of one to three Limiters that share names on a key, so that policies change on live keys.
pub(crate) fn limiters() -> impl Strategy<Value = Vec<Vec<Spec>>> {
    prop_oneof![2 => vec(limiter(), 1), 1 => vec(limiter(), 2..=3)]
}

fn limiter() -> impl Strategy<Value = Vec<Spec>> {
    (
        proptest::option::weighted(0.4, spec("a")),
        spec("b"),
        proptest::option::weighted(0.3, spec("c")),
        any::<bool>(),
    )
        .prop_map(|(a, b, c, backwards)| {
            let mut specs: Vec<_> = a.into_iter().chain([b]).chain(c).collect();
            if backwards {
                specs.reverse();
            }
            specs
        })
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Same,
    Forward(u64),
    /// A little beside the wait that the last denial named.
    Retry(i8),
    /// A little beside the moment from which the last decision says all is whole.
    Reset(i8),
    /// A little beside the next multiple of the window.
    Seam(i8),
    /// So many sixteenths of a window.
    Part(u8),
    Back(u64),
    /// A little beside so many full drains back.
    DrainsBack(u8, i8),
}

pub(crate) fn when(steps_back: bool) -> impl Strategy<Value = When> {
    let back = if steps_back { 1 } else { 0 };
    let beside = || -2..=2_i8;
    prop_oneof![
        4 => Just(When::Same),
        3 => (1..20_u64).prop_map(When::Forward),
        1 => (1..2 * YEAR).prop_map(When::Forward),
        4 => beside().prop_map(When::Retry),
        2 => beside().prop_map(When::Reset),
        2 => beside().prop_map(When::Seam),
        3 => (0..40_u8).prop_map(When::Part),
        back => (1..20_u64).prop_map(When::Back),
        back => (1..2 * YEAR).prop_map(When::Back),
        3 * back => (0..4_u8, beside()).prop_map(|(drains, beside)| When::DrainsBack(drains, beside)),
    ]
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    Small(u64),
    /// A little beside the smallest capacity of the limits.
    Capacity(i8),
    /// A little beside what the last decision said remains.
    Remaining(i8),
    Huge(u64),
}

pub(crate) fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        6 => Just(Cost::Small(1)),
        2 => (1..12_u64).prop_map(Cost::Small),
        2 => (-2..=2_i8).prop_map(Cost::Capacity),
        4 => (-2..=2_i8).prop_map(Cost::Remaining),
        1 => select(vec![1 << 51, (1 << 53) - 1, 1 << 53, u64::MAX / 2, u64::MAX]).prop_map(Cost::Huge),
    ]
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Consume,
    Peek,
    Refund,
    Block(u64),
    Unblock,
    Reset,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) act: Act,
    pub(crate) limiter: Index,
    pub(crate) cost: Cost,
    pub(crate) when: When,
    /// Whether a store that may drop the record by now does so.
    pub(crate) drop: bool,
    /// How long a store keeps a record beyond its time to live.
    pub(crate) another_key: bool,
}

pub(crate) fn step(steps_back: bool) -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        12 => Just(Act::Consume),
        4 => Just(Act::Peek),
        2 => Just(Act::Refund),
        1 => prop_oneof![1..100_u64, 1..=YEAR].prop_map(Act::Block),
        1 => Just(Act::Unblock),
        1 => Just(Act::Reset),
    ];
    (act, any::<Index>(), cost(), when(steps_back), any::<bool>(), any::<bool>()).prop_map(
        |(act, limiter, cost, when, drop, another_key)| Step {
            act,
            limiter,
            cost,
            when,
            drop,
            another_key,
        },
    )
}

pub(crate) fn start() -> impl Strategy<Value = u64> {
    select(vec![0, 1, 999, 1_000_000, 1_790_000_000_123, 1 << 52])
}

/// The most steps of a sequence; half as many on average.
pub(crate) const STEPS: usize = 80;

#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) limiters: Vec<Vec<Spec>>,
    pub(crate) start: u64,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn sequence(steps_back: bool) -> impl Strategy<Value = Sequence> {
    (limiters(), start(), vec(step(steps_back), 1..=STEPS))
        .prop_map(|(limiters, start, steps)| Sequence { limiters, start, steps })
}
