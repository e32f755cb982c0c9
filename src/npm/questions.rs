//! A tier's question in numbers: of which kind it is, units to decide on, the largest share, and what is to be
//! counted: whose, its number, units, span.

#[cfg(feature = "npm-stores")]
use super::numbers::number;
#[cfg(bare)]
use super::numbers::{timestamp, whole};
use crate::limit::Delta;
use crate::store::tier::Question;

const CONSUME: f64 = 0.0;
const RESERVE: f64 = 1.0;
const ADD: f64 = 2.0;
const ADD_NOTHING: f64 = 3.0;
const GIVE_BACK: f64 = 4.0;

/// The question in numbers.
#[cfg(feature = "npm-stores")]
pub(super) fn question_told(question: &Question) -> [f64; 7] {
    let counted = |kind, cost, delta: Delta| {
        let Delta { node, seq, units, span } = delta;
        [kind, number(cost), 0.0, number(node), number(seq), number(units), number(span.as_ms())]
    };
    let plain = |kind, cost, units| [kind, number(cost), number(units), 0.0, 0.0, 0.0, 0.0];
    match *question {
        Question::Consume { cost } => plain(CONSUME, cost, 0),
        Question::Reserve { cost, units } => plain(RESERVE, cost, units),
        Question::Add { delta: None, cost } => plain(ADD_NOTHING, cost, 0),
        Question::Add { delta: Some(delta), cost } => counted(ADD, cost, delta),
        Question::GiveBack { delta } => counted(GIVE_BACK, 0, delta),
    }
}

/// What `question_told` told.
#[cfg(bare)]
pub(super) fn question_from(numbers: &[f64]) -> Option<Question> {
    let &[kind, cost, units, node, seq, counted, span, ..] = numbers else { return None };
    let cost = whole(cost);
    let delta =
        Delta { node: whole(node), seq: whole(seq), units: whole(counted), span: timestamp(span) };
    Some(match kind {
        CONSUME => Question::Consume { cost },
        RESERVE => Question::Reserve { cost, units: whole(units) },
        ADD => Question::Add { delta: Some(delta), cost },
        ADD_NOTHING => Question::Add { delta: None, cost },
        GIVE_BACK => Question::GiveBack { delta },
        _ => return None,
    })
}
