//! The text form of a record: short printable ASCII, the same in every store. A version stands in front,
//! and a full stop at the end, since a database that cuts long text off must not change a number.
//!
//! ```text
//! 1l|b<until>,<duration>|<name>=b,<rate>,<window>,<burst>,<debt>,<at>.
//! 1l|a<until>,<tier>,<number>,<tier>,<number>|<name>=…                  (after the block, if there is one)
//! 1l|<name>=f,<limit>,<window>,<used>,<start>|<name>=s,<limit>,<window>,<prev>,<curr>,<start>.
//! 1c|<token>|<lease until>|<payload>.
//! 1d|<token>|<until>|<payload>|<result>.
//! 1t|<window>,<bucket>,<fired + 1>,<quiet until>|<nonce>|<counts, newest first>.       (1s: sliding)
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use super::Record;
use crate::burst::{Burst, Trigger};
use crate::dedup::{MAX_RESULT_BYTES, Message, Tag};
use crate::limit::{
    Adders, Block, EXACT_BELOW, Entry, FixedWindow, LeakyBucket, LimitName, LimitRecord,
    MAX_ADDERS, MAX_LIMITS, MAX_RECORD_CHARS, Shape, SlidingWindow, State,
};
use crate::text::{cut_text, digits, push_number, push_numbers};
use crate::time::{MAX_SAFE, Millis, Timestamp};

/// Stands at the end of every record.
const END: char = '.';

/// A record of one limit fits without its text growing on the way.
const USUAL_CHARS: usize = 96;

/// The text is not a record of ours, or of a newer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// The text form of a record; `None` when it holds more limits than a record may.
#[must_use]
pub fn encode(record: &Record) -> Option<String> {
    let mut text = match record {
        Record::Limits(limits) => limits_text(limits),
        Record::Message(message) => message_text(message),
        Record::Burst(burst) => burst_text(burst),
    };
    text.push(END);
    let fits = match record {
        Record::Limits(limits) => {
            limits.entries.len() <= MAX_LIMITS && text.len() <= most_chars(limits.adders.as_ref())
        }
        Record::Message(_) | Record::Burst(_) => true,
    };
    fits.then_some(text)
}

/// The record of a text form.
///
/// # Errors
/// [`Corrupt`] for anything that [`encode`] does not write.
pub fn decode(text: &str) -> Result<Record, Corrupt> {
    read(text).ok_or(Corrupt)
}

/// What tiers left behind is not counted: it can be cut off, and costs then no more than that.
fn most_chars(adders: Option<&Adders>) -> usize {
    adders.map_or(MAX_RECORD_CHARS, |adders| {
        adders_text(adders).len().saturating_add(MAX_RECORD_CHARS)
    })
}

fn adders_text(adders: &Adders) -> String {
    let mut text = String::from("|a");
    push_numbers(&mut text, &[adders.until.as_ms()]);
    for (node, seq) in &adders.newest {
        text.push(',');
        push_numbers(&mut text, &[*node, *seq]);
    }
    text
}

fn read_adders(text: &str) -> Option<Adders> {
    let numbers: Vec<u64> = text.split(',').map(number).collect::<Option<_>>()?;
    let (until, newest) = numbers.split_first()?;
    let pairs = newest.as_chunks().0.iter().map(|[node, seq]| (*node, *seq)).collect::<Vec<_>>();
    let whole = newest.len() % 2 == 0 && (1..=MAX_ADDERS).contains(&pairs.len());
    whole.then_some(Adders { until: Timestamp::from_ms(*until), newest: pairs })
}

fn read(text: &str) -> Option<Record> {
    let text = text.strip_suffix(END)?;
    let (head, body) = text.split_once('|').unwrap_or((text, ""));
    match head {
        "1l" if !text.ends_with('|') => read_limits(body).map(Record::Limits),
        "1c" | "1d" => read_message(head, body).map(Record::Message),
        "1t" => read_burst(Trigger::Tumbling, body).map(Record::Burst),
        "1s" => read_burst(Trigger::Sliding, body).map(Record::Burst),
        _ => None,
    }
}

/// Exactly `N` plain decimal numbers below 2^53, with commas between them.
pub(crate) fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    read_numbers(text, &mut numbers)?;
    Some(numbers)
}

fn read_numbers(text: &str, numbers: &mut [u64]) -> Option<()> {
    let mut left = Some(text);
    for place in numbers {
        let text = left?;
        let (first, rest) = cut_text(text, b',').map_or((text, None), |(a, b)| (a, Some(b)));
        (*place, left) = (number(first)?, rest);
    }
    left.is_none().then_some(())
}

/// One such number.
pub(crate) fn number(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    digits(text).filter(|number| canonical && *number <= MAX_SAFE)
}

fn limits_text(record: &LimitRecord) -> String {
    let mut text = String::with_capacity(USUAL_CHARS);
    text.push_str("1l");
    if let Some(block) = record.block {
        text.push_str("|b");
        push_numbers(&mut text, &[block.until.as_ms(), block.duration.as_ms()]);
    }
    if let Some(adders) = &record.adders {
        text.push_str(&adders_text(adders));
    }
    for Entry { name, shape, state } in &record.entries {
        let State { level, before, at } = *state;
        let at = at.as_ms();
        text.extend(["|", name.as_str(), "="]);
        match shape {
            Shape::Bucket(b) => {
                text.push_str("b,");
                push_numbers(&mut text, &[b.rate(), b.window_ms(), b.burst(), level, at]);
            }
            Shape::Fixed(f) => {
                text.push_str("f,");
                push_numbers(&mut text, &[f.limit(), f.window_ms(), level, at]);
            }
            Shape::Sliding(s) => {
                text.push_str("s,");
                push_numbers(&mut text, &[s.limit(), s.window_ms(), before, level, at]);
            }
        }
    }
    text
}

fn read_limits(body: &str) -> Option<LimitRecord> {
    let mut record = LimitRecord::default();
    for part in body.split('|').filter(|_| !body.is_empty()) {
        match part.split_once('=') {
            Some((name, entry)) => record.entries.push(read_entry(LimitName::parse(name)?, entry)?),
            None if !record.entries.is_empty() || record.adders.is_some() => return None,
            None => match (part.strip_prefix('a'), record.block) {
                (Some(adders), _) => record.adders = Some(read_adders(adders)?),
                (None, None) => record.block = Some(read_block(part.strip_prefix('b')?)?),
                (None, Some(_)) => return None,
            },
        }
    }
    let most_chars = most_chars(record.adders.as_ref());
    let fits = body.len() < most_chars && record.entries.len() <= MAX_LIMITS;
    fits.then_some(record)
}

fn read_block(text: &str) -> Option<Block> {
    let [until, duration] = numbers(text)?;
    Some(Block { until: Timestamp::from_ms(until), duration: Millis::from_ms(duration) })
}

fn read_entry(name: LimitName, text: &str) -> Option<Entry> {
    let (algorithm, rest) = text.split_once(',')?;
    let window = |ms| Millis::from_ms(ms);
    let (shape, level, before, at, most) = match algorithm {
        "b" => {
            let [rate, window_ms, burst, level, at] = numbers(rest)?;
            let bucket = LeakyBucket::new(rate, window(window_ms), burst)?;
            let reduced = bucket.window_ms() == window_ms;
            (reduced.then_some(Shape::Bucket(bucket))?, level, 0, at, EXACT_BELOW.checked_mul(2)?)
        }
        "f" => {
            let [limit, window_ms, level, at] = numbers(rest)?;
            (Shape::Fixed(FixedWindow::new(limit, window(window_ms))?), level, 0, at, MAX_SAFE)
        }
        "s" => {
            let [limit, window_ms, before, level, at] = numbers(rest)?;
            let aligned = at.checked_rem(window_ms)? == 0;
            let shape = SlidingWindow::new(limit, window(window_ms)).filter(|_| aligned)?;
            (Shape::Sliding(shape), level, before, at, EXACT_BELOW.checked_div(window_ms)?)
        }
        _ => return None,
    };
    let state = State { level, before, at: Timestamp::from_ms(at) };
    (level <= most && before <= most).then_some(Entry { name, shape, state })
}

fn message_text(message: &Message) -> String {
    fn tag(tag: &Option<Tag>) -> &str {
        tag.as_ref().map_or("", Tag::as_str)
    }
    let (head, by, at, payload) = match message {
        Message::Claimed { token, lease_until, payload } => {
            ("1c|", token.as_str(), lease_until, payload)
        }
        Message::Done { until, token, payload, .. } => ("1d|", tag(token), until, payload),
    };
    let mut text = [head, by, "|"].concat();
    push_number(&mut text, at.as_ms());
    text.extend(["|", tag(payload)]);
    if let Message::Done { result, .. } = message {
        text.extend(["|", result.as_deref().unwrap_or_default()]);
    }
    text
}

fn read_message(head: &str, body: &str) -> Option<Message> {
    let mut parts = body.splitn(4, '|');
    let mut next = || parts.next();
    let (token, at, payload, result) = (next()?, next()?, next()?, next());
    let at = Timestamp::from_ms(number(at)?);
    let payload = optional_tag(payload)?;
    match (head, result) {
        ("1c", None) => {
            Some(Message::Claimed { token: Tag::new(token)?, lease_until: at, payload })
        }
        ("1d", Some(result)) => {
            let printable = result.bytes().all(|b| (0x20..0x7f).contains(&b));
            // Six ASCII characters per UTF-16 unit is the longest that escaping makes of a result.
            let fits = result.len() <= MAX_RESULT_BYTES.saturating_mul(6) && printable;
            let result = fits.then(|| (!result.is_empty()).then(|| result.into()))?;
            Some(Message::Done { until: at, token: optional_tag(token)?, payload, result })
        }
        _ => None,
    }
}

/// A tag, or none where the text is empty; `None` outside for anything else.
fn optional_tag(text: &str) -> Option<Option<Tag>> {
    if text.is_empty() { Some(None) } else { Tag::new(text).map(Some) }
}

fn burst_text(burst: &Burst) -> String {
    let mut text = String::from(match burst.trigger {
        Trigger::Tumbling => "1t|",
        Trigger::Sliding => "1s|",
    });
    let fired = burst.fired.map_or(0, |bucket| bucket.saturating_add(1));
    push_numbers(
        &mut text,
        &[burst.window.as_ms(), burst.bucket, fired, burst.quiet_until.as_ms()],
    );
    text.extend(["|", burst.nonce.as_ref().map_or("", Tag::as_str), "|"]);
    push_numbers(&mut text, &burst.counts);
    text
}

fn read_burst(trigger: Trigger, body: &str) -> Option<Burst> {
    let mut parts = body.split('|');
    let [window, bucket, fired, quiet_until] = numbers(parts.next()?)?;
    let nonce = optional_tag(parts.next()?)?;
    let counts: Vec<u64> = parts.next()?.split(',').map(number).collect::<Option<_>>()?;
    let most = if trigger == Trigger::Tumbling { 1 } else { 17 };
    let window = Millis::option(window)?;
    (parts.next().is_none() && counts.len() <= most).then_some(Burst {
        window,
        trigger,
        bucket,
        counts,
        fired: fired.checked_sub(1),
        quiet_until: Timestamp::from_ms(quiet_until),
        nonce,
    })
}
