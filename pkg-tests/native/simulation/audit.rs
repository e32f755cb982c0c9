//! What an onlooker sees who knows everything: every admission with the shared store's time, every charge.
//! It judges with arithmetic of its own, in u128, and by when a unit was admitted, not by what a node
//! calls its window.

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
#[derive(Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) units: u64,
    pub(crate) span: u64,
    /// When its window is over, and when a node that reckons with the longest way may take that for so.
    pub(crate) ends_us: u64,
    pub(crate) kept_until_us: u64,
}

/// Units admitted ahead, by the moment.
type Moments = Vec<(u64, u64)>;

/// A node's units of one key.
#[derive(Default)]
struct Account {
    grants: Vec<Grant>,
    /// Admitted before the shared store knew, and not sent to it yet.
    ahead: Moments,
    /// Sent to it, by number.
    deltas: HashMap<u64, Moments>,
}

/// Windows of one name are told apart by how often the clock was set back before.
pub(crate) const SET_BACK: u64 = 1 << 50;

/// What became of a key's units, each of which is in one place on either side.
#[derive(Default)]
struct Ledger {
    charged: u64,
    admitted: u64,
    returned: u64,
}

#[derive(Default)]
pub(crate) struct Audit {
    admissions: HashMap<String, Vec<Admission>>,
    accounts: HashMap<(usize, String), Account>,
    ledgers: HashMap<String, Ledger>,
    /// What the shared store charged in answers that nobody has heard.
    unheard: HashMap<u64, (String, u64)>,
    /// Deltas by key, node and number, and how often the clock had been set back.
    counted: HashMap<(String, u64, u64), u64>,
    late: HashSet<(String, u64, u64)>,
    /// When the shared store's fixed windows began.
    begun: HashMap<String, Vec<u64>>,
}

fn units_of(moments: &[(u64, u64)]) -> u64 {
    moments.iter().map(|(_, units)| units).sum()
}

impl Audit {
    fn account(&mut self, node: usize, key: &str) -> &mut Account {
        self.accounts.entry((node, key.into())).or_default()
    }

    fn ledger(&mut self, key: &str) -> &mut Ledger {
        self.ledgers.entry(key.into()).or_default()
    }

    // ── what the shared store does ──────────────────────────────────────────

    /// It charges units, and tells so in an answer of that number.
    pub(crate) fn charged(&mut self, key: &str, answer: u64, units: u64) {
        self.ledger(key).charged += units;
        self.unheard.insert(answer, (key.into(), units));
    }

    /// A fixed window is open that began then.
    pub(crate) fn begun(&mut self, key: &str, at_ms: u64) {
        let begun = self.begun.entry(key.into()).or_default();
        if begun.last() != Some(&at_ms) {
            begun.push(at_ms);
        }
    }

    /// It counted a delta; answers whether for the first time. When its clock was set back, the window may
    /// come again.
    pub(crate) fn counted(&mut self, key: &str, node: u64, seq: u64, set_back: u64) -> bool {
        let before = self.counted.insert((key.into(), node, seq), set_back);
        assert!(before.is_none_or(|before| before < set_back), "delta {node}:{seq} counts twice");
        before.is_none()
    }

    pub(crate) fn added(&mut self, key: &str, units: u64) {
        self.ledger(key).charged += units;
    }

    /// A delta changed nothing: it had been counted, or there is nothing left that it could count in.
    /// `is_over` tells that of the window, by its beginning, that a unit was admitted in.
    pub(crate) fn late(
        &mut self,
        (node, key): (usize, &str),
        seq: u64,
        window_ms: u64,
        is_over: impl Fn(u64) -> bool,
    ) {
        let delta = (key.to_owned(), node as u64, seq);
        if self.counted.contains_key(&delta) || !self.late.insert(delta) {
            return;
        }
        for (at_ms, units) in &self.accounts[&(node, key.to_owned())].deltas[&seq] {
            let began = self.window_at(key, *at_ms, window_ms).unwrap_or(*at_ms);
            assert!(
                is_over(began),
                "{units} of {key} at {at_ms}, in a window of {began}, are dropped"
            );
        }
    }

    /// The shared store's window that was open then.
    fn window_at(&self, key: &str, at_ms: u64, window_ms: u64) -> Option<u64> {
        let is_open = |began: &&u64| (**began..**began + window_ms).contains(&at_ms);
        self.begun.get(key)?.iter().rev().find(is_open).copied()
    }

    // ── what nodes do ───────────────────────────────────────────────────────

    pub(crate) fn admitted(&mut self, key: &str, admission: Admission) {
        self.ledger(key).admitted += admission.units;
        self.admissions.entry(key.into()).or_default().push(admission);
    }

    pub(crate) fn heard(&mut self, answer: u64) {
        assert!(self.unheard.remove(&answer).is_some(), "answer {answer} is heard twice");
    }

    pub(crate) fn granted(&mut self, node: usize, key: &str, grant: Grant) {
        self.account(node, key).grants.push(grant);
    }

    /// Units of a share are admitted: each was granted in a window that is not over.
    pub(crate) fn spent(&mut self, node: usize, key: &str, units: u64, at_ms: u64, now_us: u64) {
        let taken = self.taken(node, key, units, now_us, |grant| now_us < grant.ends_us);
        for (units, span) in taken {
            self.admitted(key, Admission { at_ms, units, span });
        }
    }

    /// Units of a share go back, out of the window that they were granted in.
    pub(crate) fn returned(&mut self, node: usize, key: &str, units: u64, span: u64, now_us: u64) {
        self.taken(node, key, units, now_us, |grant| grant.span % SET_BACK == span);
        self.ledger(key).returned += units;
    }

    fn taken(
        &mut self,
        node: usize,
        key: &str,
        units: u64,
        now_us: u64,
        may_be: impl Fn(&Grant) -> bool,
    ) -> Vec<(u64, u64)> {
        let mut left = units;
        let mut taken = Vec::new();
        let grants = &mut self.account(node, key).grants;
        grants.sort_by_key(|grant| now_us >= grant.kept_until_us);
        for grant in grants.iter_mut().filter(|grant| may_be(grant)) {
            let part = left.min(grant.units);
            grant.units -= part;
            left -= part;
            taken.push((part, grant.span));
        }
        assert_eq!(left, 0, "node {node} has {left} of {key} that no open window granted");
        taken
    }

    pub(crate) fn ahead(&mut self, node: usize, key: &str, admission: Admission) {
        self.account(node, key).ahead.push((admission.at_ms, admission.units));
        self.admitted(key, admission);
    }

    /// A delta goes out, for the first time or again: it is all that was admitted and had not gone out.
    pub(crate) fn sent(&mut self, node: usize, key: &str, seq: u64, units: u64) {
        let Account { ahead, deltas, .. } = self.account(node, key);
        let moments = deltas.entry(seq).or_insert_with(|| std::mem::take(ahead));
        let admitted = units_of(moments);
        assert_eq!(admitted, units, "delta {seq} of {key} is {units}, of {admitted} admitted");
    }

    // ── in the end ──────────────────────────────────────────────────────────

    /// Charged = admitted + stranded + returned, once what was admitted and never charged is set apart: units
    /// whose window was over before they were told, or that died with their node.
    pub(crate) fn adds_up(&self, now_us: u64, clock_was_set: bool, lives: impl Fn(usize) -> bool) {
        for (key, ledger) in &self.ledgers {
            let unheard = self.unheard.values().filter(|(of, _)| of == key);
            let mut stranded: u64 = unheard.map(|(_, units)| units).sum();
            let mut uncharged = 0;
            let accounts = self.accounts.iter().filter(|((_, of), _)| of == key);
            for ((node, _), account) in accounts {
                let lives = lives(*node);
                stranded += left(account, now_us, lives && !clock_was_set);
                uncharged += self.uncharged(*node, key, account, lives);
            }
            let Ledger { charged, admitted, returned } = ledger;
            assert_eq!(
                charged + uncharged,
                admitted + stranded + returned,
                "{key}: {charged} charged + {uncharged} not, {admitted} admitted, {stranded} stranded, {returned} returned"
            );
        }
    }

    fn uncharged(&self, node: usize, key: &str, account: &Account, lives: bool) -> u64 {
        let unsent = units_of(&account.ahead);
        assert!(!lives || unsent == 0, "node {node} never told of {unsent} of {key}");
        let mut uncharged = unsent;
        for (seq, moments) in &account.deltas {
            let delta = (key.to_owned(), node as u64, *seq);
            let is_counted = self.counted.contains_key(&delta);
            let is_late = self.late.contains(&delta);
            assert!(!lives || is_counted || is_late, "delta {node}:{seq} never arrived");
            uncharged += if is_counted { 0 } else { units_of(moments) };
        }
        uncharged
    }

    /// Nothing above the limit but so many units.
    pub(crate) fn within(&self, shape: &Shape, bound: u64, clock_was_set: bool) {
        for (key, admissions) in &self.admissions {
            let mut sorted = admissions.clone();
            sorted.sort_by_key(|admission| admission.at_ms);
            match shape {
                Shape::Bucket(bucket) => {
                    let (rate, window) = (bucket.rate(), bucket.window_ms());
                    leaks(key, &sorted, rate, window, u128::from(bucket.burst() + bound));
                }
                // A window that a clock cut short or drew out is only known by its name.
                Shape::Fixed(fixed) if clock_was_set => {
                    per_span(key, &sorted, fixed.limit() + bound);
                }
                Shape::Fixed(fixed) => {
                    self.per_window(key, &sorted, fixed.window_ms(), fixed.limit() + bound);
                }
                Shape::Sliding(sliding) => {
                    slides(key, &sorted, sliding.window_ms(), u128::from(sliding.limit() + bound));
                }
            }
        }
    }

    /// Windows that the shared store began, and those that an admission begins outside of them all.
    fn per_window(&self, key: &str, admissions: &[Admission], window_ms: u64, most: u64) {
        let mut begun = self.begun.get(key).cloned().unwrap_or_default();
        let mut over_at = 0;
        for Admission { at_ms, .. } in admissions {
            if *at_ms >= over_at && self.window_at(key, *at_ms, window_ms).is_none() {
                begun.push(*at_ms);
                over_at = at_ms + window_ms;
            }
        }
        for began in begun {
            let inside =
                admissions.iter().filter(|a| (began..began + window_ms).contains(&a.at_ms));
            let units: u64 = inside.map(|admission| admission.units).sum();
            assert!(units <= most, "{key}: {units} of {most} in the window of {began}");
        }
    }
}

/// What nobody spent of a node's shares. One that lives had them until their windows were over.
fn left(account: &Account, now_us: u64, lives: bool) -> u64 {
    let left = account.grants.iter().filter(|grant| grant.units > 0);
    left.map(|grant| {
        assert!(!lives || now_us >= grant.kept_until_us, "{} are lost", grant.units);
        grant.units
    })
    .sum()
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
