//! What an onlooker sees who knows everything: every admission with the shared store's time, every charge.
//! It judges with arithmetic of its own, in u128.

use std::collections::{HashMap, HashSet};

use tidegate::Shape;

/// Units admitted at a moment of the shared store's clock, in the window that they were charged to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    pub(crate) at_ms: u64,
    pub(crate) units: u64,
    pub(crate) span: u64,
}

/// A share on a node, as far as it is not spent.
struct Grant {
    units: u64,
    span: u64,
    ends_us: u64,
}

/// A node's units of one key.
#[derive(Default)]
struct Account {
    grants: Vec<Grant>,
    granted: u64,
    spent: u64,
    returned: u64,
    /// Admitted before the shared store knew.
    ahead: u64,
    /// Sent to it, by number.
    deltas: HashMap<u64, u64>,
}

#[derive(Default)]
pub(crate) struct Audit {
    admissions: HashMap<String, Vec<Admission>>,
    accounts: HashMap<(usize, String), Account>,
    /// Deltas by key, node and number, and how often the clock had been set back.
    counted: HashMap<(String, u64, u64), u64>,
    late: HashSet<(String, u64, u64)>,
}

impl Audit {
    fn account(&mut self, node: usize, key: &str) -> &mut Account {
        self.accounts.entry((node, key.into())).or_default()
    }

    pub(crate) fn admitted(&mut self, key: &str, admission: Admission) {
        self.admissions.entry(key.into()).or_default().push(admission);
    }

    pub(crate) fn granted(&mut self, node: usize, key: &str, units: u64, span: u64, ends_us: u64) {
        let account = self.account(node, key);
        account.granted += units;
        account.grants.push(Grant { units, span, ends_us });
    }

    /// Units of a share are admitted: each was granted in a window that is not over.
    pub(crate) fn spent(&mut self, node: usize, key: &str, units: u64, at_ms: u64, now_us: u64) {
        let account = self.account(node, key);
        account.spent += units;
        let mut left = units;
        let mut admitted = Vec::new();
        for grant in account.grants.iter_mut().filter(|grant| now_us < grant.ends_us) {
            let taken = left.min(grant.units);
            grant.units -= taken;
            left -= taken;
            admitted.push(Admission { at_ms, units: taken, span: grant.span });
        }
        assert_eq!(left, 0, "node {node} spends {left} of {key} that no open window granted");
        for admission in admitted {
            self.admitted(key, admission);
        }
    }

    pub(crate) fn returned(&mut self, node: usize, key: &str, units: u64) {
        self.account(node, key).returned += units;
    }

    pub(crate) fn ahead(&mut self, node: usize, key: &str, units: u64) {
        self.account(node, key).ahead += units;
    }

    /// A delta goes out, for the first time or again.
    pub(crate) fn sent(&mut self, node: usize, key: &str, seq: u64, units: u64) {
        let before = self.account(node, key).deltas.insert(seq, units);
        assert!(
            before.is_none_or(|before| before == units),
            "delta {seq} was {before:?}, is {units}"
        );
    }

    /// The shared store counted a delta. When its clock was set back, the window may come again.
    pub(crate) fn counted(&mut self, key: &str, node: u64, seq: u64, set_back: u64) {
        let before = self.counted.insert((key.into(), node, seq), set_back);
        assert!(before.is_none_or(|before| before < set_back), "delta {node}:{seq} counts twice");
    }

    /// A delta came when its window was over: nothing is left that it could count in.
    pub(crate) fn late(&mut self, key: &str, node: u64, seq: u64) {
        self.late.insert((key.into(), node, seq));
    }

    pub(crate) fn is_settled(&self, key: &str, node: u64, seq: u64) -> bool {
        let delta = (key.into(), node, seq);
        self.counted.contains_key(&delta) || self.late.contains(&delta)
    }

    /// Every unit of a share was spent, given back, or lies stranded; `whole`: none does.
    pub(crate) fn shares_add_up(&self, whole: bool) {
        for ((node, key), account) in &self.accounts {
            let (granted, gone) = (account.granted, account.spent + account.returned);
            assert!(gone <= granted, "node {node} got {granted} of {key}, and made {gone} of it");
            assert!(!whole || gone == granted, "node {node} lost {} of {key}", granted - gone);
        }
    }

    /// Every unit that was admitted ahead went out in one delta; where a node died some may not have.
    pub(crate) fn deltas_add_up(&self, all_live: bool) {
        for (place, account) in &self.accounts {
            let sent: u64 = account.deltas.values().sum();
            assert!(sent <= account.ahead, "{place:?}: {} ahead, {sent} sent", account.ahead);
            assert!(
                !all_live || sent == account.ahead,
                "{place:?}: {} ahead, {sent} sent",
                account.ahead
            );
        }
    }

    /// Nothing above the limit but so many units.
    pub(crate) fn within(&self, shape: &Shape, bound: u64) {
        for (key, admissions) in &self.admissions {
            let mut sorted = admissions.clone();
            sorted.sort_by_key(|admission| admission.at_ms);
            match shape {
                Shape::Bucket(bucket) => {
                    let (rate, window) = (bucket.rate(), bucket.window_ms());
                    leaks(key, &sorted, rate, window, u128::from(bucket.burst() + bound));
                }
                Shape::Fixed(fixed) => per_span(key, &sorted, fixed.limit() + bound),
                Shape::Sliding(sliding) => {
                    slides(key, &sorted, sliding.window_ms(), u128::from(sliding.limit() + bound));
                }
            }
        }
    }
}

/// A bucket that is larger by the bound takes all of it, give or take what leaks in a millisecond: the
/// clocks count those, and their ticks do not coincide.
fn leaks(key: &str, admissions: &[Admission], rate: u64, window: u64, capacity: u128) {
    let (mut debt, mut at) = (0_u128, 0_u64);
    for admission in admissions {
        debt = debt.saturating_sub(u128::from(admission.at_ms - at) * u128::from(rate));
        at = admission.at_ms;
        debt += u128::from(admission.units) * u128::from(window);
        let most = capacity * u128::from(window) + u128::from(rate);
        assert!(debt <= most, "{key}: {debt} of {most} at {admission:?}");
    }
}

fn per_span(key: &str, admissions: &[Admission], most: u64) {
    let mut spans: HashMap<u64, u64> = HashMap::new();
    for admission in admissions {
        let units = spans.entry(admission.span).or_default();
        *units += admission.units;
        assert!(*units <= most, "{key}: {units} of {most} in window {}", admission.span);
    }
}

/// Two counts, the earlier weighted by what of it the sliding window still covers.
fn slides(key: &str, admissions: &[Admission], window: u64, most: u128) {
    let mut counts: HashMap<u64, u128> = HashMap::new();
    for admission in admissions {
        let (number, into) = (admission.at_ms / window, admission.at_ms % window);
        *counts.entry(number).or_default() += u128::from(admission.units);
        let count = |number| counts.get(&number).copied().unwrap_or(0);
        let weight = count(number.wrapping_sub(1)) * u128::from(window - into)
            + count(number) * u128::from(window);
        assert!(weight <= most * u128::from(window), "{key}: {weight} of {most} at {admission:?}");
    }
}
