//! Limits in exact rational arithmetic, written from the words of the design. State is in units, time in
//! milliseconds; waits are searched for: the smallest after which the call would be admitted.

use std::cmp::max;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algo {
    Bucket,
    Fixed,
    Sliding,
}

/// A limit as its user states it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) algo: Algo,
    pub(crate) limit: u64,
    pub(crate) window: u64,
    pub(crate) burst: Option<u64>,
    pub(crate) strict: bool,
}

/// What a decision tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) reason: &'static str,
    pub(crate) decided_by: usize,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) reset_after: u64,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn floor(n: i128, d: i128) -> i128 {
    n.div_euclid(d)
}

fn ceil(n: i128, d: i128) -> i128 {
    -floor(-n, d)
}

/// The smallest `t` from 0 to `most` for which `holds`, which once true stays true.
fn first(most: i128, holds: impl Fn(i128) -> bool) -> i128 {
    assert!(holds(most), "not even after {most} ms");
    let (mut low, mut high) = (-1, most);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

impl Spec {
    pub(crate) fn capacity(&self) -> u64 {
        match (self.algo, self.strict, self.burst) {
            (Algo::Bucket, _, Some(burst)) => burst,
            (Algo::Bucket, true, None) => self.limit.div_ceil(2),
            _ => self.limit,
        }
    }

    /// Units that leak per window.
    fn rate(&self) -> u64 {
        if self.strict { (self.limit + 1).saturating_sub(self.capacity()) } else { self.limit }
    }

    pub(crate) fn reduced_window(&self) -> u64 {
        match self.algo {
            Algo::Bucket if self.rate() > 0 => self.window / gcd(self.rate(), self.window),
            _ => self.window,
        }
    }

    /// Whether the design accepts it.
    pub(crate) fn accepted(&self) -> bool {
        let small = |units: u64, window: u64| u128::from(units) * u128::from(window) < 1 << 51;
        let safe = |units: u64| (1..1 << 53).contains(&units);
        let sane = safe(self.limit)
            && safe(self.capacity())
            && (1..=31_536_000_000).contains(&self.window);
        sane && match self.algo {
            Algo::Fixed => true,
            Algo::Sliding => small(self.limit, self.window),
            Algo::Bucket => {
                let rate = self.rate();
                let divisor = gcd(rate, self.window);
                rate > 0 && small(max(rate / divisor, self.capacity()), self.window / divisor)
            }
        }
    }

    /// The step back of a clock up to which time stands still.
    pub(crate) fn full_drain(&self) -> u64 {
        match self.algo {
            Algo::Bucket => {
                let units = i128::from(self.capacity());
                u64::try_from(ceil(units * self.w(), i128::from(self.rate()))).unwrap()
            }
            Algo::Fixed | Algo::Sliding => self.window,
        }
    }

    fn w(&self) -> i128 {
        i128::from(self.window)
    }

    /// Whether the two are one policy: the same algorithm, the same rate as a fraction, the same capacity.
    fn same(&self, other: &Self) -> bool {
        let rates = match self.algo {
            Algo::Bucket => {
                u128::from(self.rate()) * u128::from(other.window)
                    == u128::from(other.rate()) * u128::from(self.window)
            }
            Algo::Fixed | Algo::Sliding => self.window == other.window,
        };
        self.algo == other.algo && rates && self.capacity() == other.capacity()
    }
}

/// What a limit remembers.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// `used / of` units at `last`.
    Bucket {
        used: i128,
        of: i128,
        last: i128,
    },
    Fixed {
        used: i128,
        start: i128,
    },
    /// Window number `window`, and the one before it.
    Sliding {
        prev: i128,
        curr: i128,
        window: i128,
    },
}

impl Held {
    fn none(spec: &Spec, now: i128) -> Self {
        match spec.algo {
            Algo::Bucket => Self::Bucket { used: 0, of: 1, last: now },
            Algo::Fixed => Self::Fixed { used: 0, start: now },
            Algo::Sliding => Self::Sliding { prev: 0, curr: 0, window: floor(now, spec.w()) },
        }
    }

    /// When the clock is behind what is held, the time at which it stands still; else now.
    fn time(&self, spec: &Spec, now: i128) -> i128 {
        max(
            now,
            match self {
                Self::Bucket { last, .. } => *last,
                Self::Fixed { start, .. } => *start,
                Self::Sliding { window, .. } => window * spec.w(),
            },
        )
    }

    fn whole(&self) -> bool {
        match self {
            Self::Bucket { used, .. } | Self::Fixed { used, .. } => *used == 0,
            Self::Sliding { prev, curr, .. } => prev + curr == 0,
        }
    }

    /// How it stands at `now`, and whether a long step back moved it there.
    fn at(self, spec: &Spec, now: i128, rebases: bool) -> (Self, bool) {
        let behind = self.time(spec, now) - now;
        if self.whole() && !matches!(self, Self::Bucket { .. }) {
            return (Self::none(spec, now), false);
        }
        if rebases && behind > i128::from(spec.full_drain()) {
            let moved = match self {
                Self::Bucket { used, of, .. } => Self::Bucket { used, of, last: now },
                Self::Fixed { used, .. } => Self::Fixed { used, start: now },
                Self::Sliding { prev, curr, .. } => {
                    Self::Sliding { prev, curr, window: floor(now, spec.w()) }
                }
            };
            return (moved, true);
        }
        if behind > 0 {
            return (self, false);
        }
        let stands = match self {
            Self::Bucket { used, of, last } => {
                let passed = now - last;
                // Empty after `used / of * window / rate` ms.
                let empty = ceil(used * spec.w(), of * i128::from(spec.rate()));
                let (used, of) = if passed >= empty {
                    (0, 1)
                } else {
                    (self.weight(spec, now) - passed * i128::from(spec.rate()), spec.w())
                };
                Self::Bucket { used, of, last: now }
            }
            Self::Fixed { start, .. } if now >= start + spec.w() => Self::none(spec, now),
            Self::Fixed { .. } => self,
            Self::Sliding { prev, curr, window } => {
                let number = floor(now, spec.w());
                match number - window {
                    0 => Self::Sliding { prev, curr, window },
                    1 => Self::Sliding { prev: curr, curr: 0, window: number },
                    _ => Self::none(spec, now),
                }
            }
        };
        (stands, false)
    }

    /// What `at` left, as units times window.
    fn weight(&self, spec: &Spec, now: i128) -> i128 {
        match self {
            Self::Bucket { used, of, .. } => {
                assert_eq!(used * spec.w() % of, 0, "debts are whole");
                used * spec.w() / of
            }
            Self::Fixed { used, .. } => used * spec.w(),
            Self::Sliding { prev, curr, window } => {
                let into = self.time(spec, now) - window * spec.w();
                prev * (spec.w() - into) + curr * spec.w()
            }
        }
    }

    fn fits(&self, spec: &Spec, now: i128, cost: i128) -> bool {
        self.weight(spec, now) + cost * spec.w() <= i128::from(spec.capacity()) * spec.w()
    }

    fn add(&mut self, units: i128) {
        match self {
            Self::Bucket { used, of, .. } => *used += units * *of,
            Self::Fixed { used, .. } => *used += units,
            Self::Sliding { curr, .. } => *curr += units,
        }
    }

    fn give_back(&mut self, units: i128) {
        match self {
            Self::Bucket { used, of, .. } => *used = max(0, *used - units * *of),
            Self::Fixed { used, .. } => *used = max(0, *used - units),
            Self::Sliding { prev, curr, .. } => {
                let rest = max(0, units - *curr);
                (*curr, *prev) = (max(0, *curr - units), max(0, *prev - rest));
            }
        }
    }

    fn remaining(&self, spec: &Spec, now: i128) -> u64 {
        let capacity = i128::from(spec.capacity());
        let too_many = first(capacity + 1, |n| !self.fits(spec, now, n));
        u64::try_from(max(0, too_many - 1)).unwrap()
    }

    /// Longer than anything takes from here.
    fn horizon(&self, spec: &Spec, now: i128) -> i128 {
        self.time(spec, now) - now + 3 * i128::from(spec.full_drain())
    }

    fn wait(&self, spec: &Spec, now: i128, cost: i128) -> Option<u64> {
        if cost > i128::from(spec.capacity()) {
            return None;
        }
        let wait = first(self.horizon(spec, now), |t| {
            self.at(spec, now + t, false).0.fits(spec, now + t, cost)
        });
        Some(u64::try_from(wait).unwrap())
    }

    fn whole_in(&self, spec: &Spec, now: i128) -> u64 {
        let wait = first(self.horizon(spec, now), |t| self.at(spec, now + t, false).0.whole());
        u64::try_from(wait).unwrap()
    }
}

/// Everything that is remembered under one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    block: Option<(i128, i128)>,
    entries: Vec<(Spec, Held)>,
}

impl Memory {
    pub(crate) fn consume(&mut self, specs: &[Spec], cost: u64, now: u64, rebases: bool) -> Told {
        let (now, cost) = (i128::from(now), i128::from(cost));
        let mut seats = self.seats(specs, now, rebases);
        let (blocked, block_moved) = self.blocked(now, rebases);
        let admitted = blocked == 0 && fit(specs, &seats, now, cost);
        if admitted {
            for (held, _) in &mut seats {
                held.add(cost);
            }
        }
        let told = decide(specs, &seats, now, cost, admitted, blocked);
        let keeps = |moved: bool| admitted || moved;
        if block_moved || seats.iter().any(|(_, moved)| keeps(*moved)) {
            for (spec, (held, moved)) in specs.iter().zip(&seats) {
                if keeps(*moved) {
                    self.set(spec, *held);
                }
            }
            self.prune(now, rebases);
        }
        told
    }

    pub(crate) fn peek(&self, specs: &[Spec], cost: u64, now: u64, rebases: bool) -> Told {
        let (now, cost) = (i128::from(now), i128::from(cost));
        let seats = self.seats(specs, now, rebases);
        let (blocked, _) = self.blocked(now, rebases);
        let admitted = blocked == 0 && fit(specs, &seats, now, cost);
        decide(specs, &seats, now, cost, admitted, blocked)
    }

    pub(crate) fn knows(&self, specs: &[Spec]) -> bool {
        specs.iter().any(|spec| self.entries.iter().any(|(known, _)| known.name == spec.name))
    }

    pub(crate) fn refund(&mut self, specs: &[Spec], cost: u64, now: u64, rebases: bool) {
        let now = i128::from(now);
        let seats = self.seats(specs, now, rebases);
        for (spec, (mut held, _)) in specs.iter().zip(seats) {
            if self.knows(&[*spec]) {
                held.give_back(i128::from(cost));
                self.set(spec, held);
            }
        }
        self.prune(now, rebases);
    }

    pub(crate) fn block(&mut self, ms: u64, now: u64, rebases: bool) {
        let (now, ms) = (i128::from(now), i128::from(ms));
        self.block = Some((now + ms, ms));
        self.prune(now, rebases);
    }

    /// True when there was a block.
    pub(crate) fn unblock(&mut self) -> bool {
        self.block.take().is_some()
    }

    /// Forgets everything when everything is whole.
    pub(crate) fn drop_if_over(&mut self, now: u64) {
        let now = i128::from(now);
        let whole = self.entries.iter().all(|(spec, held)| held.at(spec, now, false).0.whole());
        if whole && self.blocked(now, false).0 == 0 {
            *self = Self::default();
        }
    }

    pub(crate) fn reset(&mut self, specs: &[Spec]) {
        self.block = None;
        self.entries.retain(|(known, _)| specs.iter().all(|spec| spec.name != known.name));
    }

    /// What is left of the block, and whether a step back of more than its length started it anew.
    fn blocked(&self, now: i128, rebases: bool) -> (i128, bool) {
        match self.block {
            Some((until, ms)) if rebases && until - now > 2 * ms => (ms, true),
            Some((until, _)) => (max(0, until - now), false),
            None => (0, false),
        }
    }

    fn set(&mut self, spec: &Spec, held: Held) {
        self.entries.retain(|(known, _)| known.name != spec.name);
        self.entries.push((*spec, held));
    }

    fn prune(&mut self, now: i128, rebases: bool) {
        self.entries.retain(|(spec, held)| !held.at(spec, now, rebases).0.whole());
        let (left, _) = self.blocked(now, rebases);
        self.block = self.block.filter(|_| left > 0).map(|(_, ms)| (now + left, ms));
    }

    /// How each limit stands now, and whether it was moved there by a step back or a change of policy.
    fn seats(&self, specs: &[Spec], now: i128, rebases: bool) -> Vec<(Held, bool)> {
        let seat = |spec: &Spec| {
            let known = self.entries.iter().find(|(known, _)| known.name == spec.name);
            let Some((old, held)) = known else {
                return (Held::none(spec, now), false);
            };
            if old.same(spec) {
                return held.at(spec, now, rebases);
            }
            let (held, _) = held.at(old, now, rebases);
            let used = ceil(held.weight(old, now), old.w()).min(i128::from(spec.capacity()));
            let time = held.time(old, now);
            let carried = match (spec.algo, held) {
                (Algo::Bucket, _) => Held::Bucket { used, of: 1, last: time },
                (Algo::Sliding, _) => {
                    Held::Sliding { prev: 0, curr: used, window: floor(time, spec.w()) }
                }
                // A window that is still open under the new policy goes on.
                (Algo::Fixed, Held::Fixed { start, .. }) if time < start + spec.w() => {
                    Held::Fixed { used, start }
                }
                (Algo::Fixed, _) => Held::Fixed { used, start: time },
            };
            (carried.at(spec, now, rebases).0, used > 0)
        };
        specs.iter().map(seat).collect()
    }
}

fn fit(specs: &[Spec], seats: &[(Held, bool)], now: i128, cost: i128) -> bool {
    specs.iter().zip(seats).all(|(spec, (held, _))| held.fits(spec, now, cost))
}

fn decide(
    specs: &[Spec],
    seats: &[(Held, bool)],
    now: i128,
    cost: i128,
    admitted: bool,
    blocked: i128,
) -> Told {
    let all = || specs.iter().zip(seats).map(|(spec, (held, _))| (spec, held));
    let remaining: Vec<u64> = all().map(|(spec, held)| held.remaining(spec, now)).collect();
    let blocked = u64::try_from(blocked).unwrap();
    let reset_after =
        all().map(|(spec, held)| held.whole_in(spec, now)).max().unwrap().max(blocked);
    let least = *remaining.iter().min().unwrap();
    if admitted {
        let decided_by = remaining.iter().position(|n| *n == least).unwrap();
        return Told {
            reason: "ok",
            decided_by,
            limit: specs[decided_by].capacity(),
            remaining: least,
            retry_after: Some(0),
            reset_after,
        };
    }
    // `None` is without end, and so the longest.
    let waits: Vec<_> = all().map(|(spec, held)| held.wait(spec, now, cost)).collect();
    let length = |wait: &Option<u64>| wait.unwrap_or(u64::MAX);
    let longest = waits.iter().map(length).max().unwrap();
    let named = waits.iter().position(|wait| length(wait) == longest).unwrap();
    let never = waits[named].is_none();
    let (reason, decided_by, retry_after) = match (never, blocked > 0) {
        (true, _) => ("never", named, None),
        (false, true) => ("blocked", 0, Some(longest.max(blocked))),
        (false, false) => ("limited", named, Some(longest)),
    };
    Told {
        reason,
        decided_by,
        limit: specs[decided_by].capacity(),
        remaining: if blocked > 0 { 0 } else { least },
        retry_after,
        reset_after,
    }
}
