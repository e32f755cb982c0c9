//! Durable Objects as the store: each key has its shard, each shard its object.

use js_sys::Float64Array;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

use super::fault::Fault;
use super::js::{self, Namespace};
use super::store::Step;
use crate::error::Error;
use crate::store::redis::{self, Answer};
use crate::store::shard;

/// The binding, and the class's name.
pub(crate) const BINDING: &str = "TIDEGATE_SHARD";
const SHARDS: &str = "TIDEGATE_SHARDS";
const DEFAULT_SHARDS: u32 = 64;
const MOST_SHARDS: u32 = 1_024;
/// One shard's results, and some for the numbers.
const MOST_REPLY_BYTES: u32 = 9 * 1_024 * 1_024;

/// How many objects share the keys. Another number is other objects: every budget begins anew.
pub(crate) fn shards(env: &JsValue) -> Result<u32, Fault> {
    let Some(text) = js::setting(env, SHARDS) else { return Ok(DEFAULT_SHARDS) };
    // What Rust would read as well, and JavaScript would not.
    let text = Some(text.trim()).filter(|text| !text.starts_with(['+', '0']));
    let number = text.and_then(|text| text.parse().ok());
    let number = number.filter(|number| (1..=MOST_SHARDS).contains(number));
    number.ok_or_else(|| {
        let expected = format!("{SHARDS} must be a whole number from 1 to {MOST_SHARDS}");
        Fault::new(503, "not_configured", expected)
    })
}

/// The objects of a deployment.
pub(crate) struct Objects {
    namespace: Namespace,
    shards: u32,
}

impl Objects {
    pub(crate) fn of(env: &JsValue) -> Result<Self, Fault> {
        let missing =
            || Fault::new(503, "not_configured", format!("the binding {BINDING} is missing"));
        let namespace = js::binding(env, BINDING).ok_or_else(missing)?;
        Ok(Self { namespace, shards: shards(env)? })
    }

    /// One request to each shard that is concerned, all at once; answers in the order of the steps. Their replies
    /// together may be as long as that of one shard.
    pub(crate) async fn apply(&self, steps: &[&Step]) -> Vec<Answer> {
        let mut parts: Vec<(u32, Vec<usize>)> = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let shard = shard::of(step.key.as_str(), self.shards);
            match parts.iter_mut().find(|(of, _)| *of == shard) {
                Some((_, indexes)) => indexes.push(index),
                None => parts.push((shard, vec![index])),
            }
        }
        let room = (parts.len() > 1).then(|| js::room(MOST_REPLY_BYTES));
        let asked: Vec<_> = parts
            .into_iter()
            .map(|(shard, indexes)| {
                let part: Vec<&Step> =
                    indexes.iter().filter_map(|index| steps.get(*index).copied()).collect();
                (self.ask(shard, &part, room.as_ref()), indexes, part)
            })
            .collect();
        let mut all: Vec<Answer> = steps.iter().map(|_| Err(Error::Nonsense("nothing"))).collect();
        for (asked, indexes, part) in asked {
            for (index, answer) in indexes.into_iter().zip(answers(asked, &part).await) {
                if let Some(place) = all.get_mut(index) {
                    *place = answer;
                }
            }
        }
        all
    }

    fn ask(&self, shard: u32, part: &[&Step], room: Option<&Float64Array>) -> JsFuture {
        let words: Vec<_> = part.iter().map(|step| redis::encode(&step.op.as_op())).collect();
        let keys = part.iter().map(|step| step.key.as_str());
        let batch = shard::batch(self.shards, keys.zip(words.iter().map(String::as_str)));
        js::ask(&self.namespace, &self.name(shard), "/", &batch, room)
    }

    fn name(&self, shard: u32) -> String {
        format!("{}/{shard}", self.shards)
    }

    /// What every shard has counted since it started.
    pub(crate) async fn tallies(&self) -> Result<Vec<String>, Fault> {
        let asked: Vec<_> = (0..self.shards)
            .map(|shard| js::ask(&self.namespace, &self.name(shard), "/tally", "", None))
            .collect();
        let mut tallies = Vec::new();
        for asked in asked {
            tallies.push(reply(asked).await.map_err(Fault::store)?);
        }
        Ok(tallies)
    }
}

async fn answers(asked: JsFuture, part: &[&Step]) -> Vec<Answer> {
    let ops: Vec<_> = part.iter().map(|step| step.op.as_op()).collect();
    let decoded = match reply(asked).await {
        Ok(text) => redis::decode(&ops, &text.split('\n').map(Into::into).collect::<Vec<_>>()),
        Err(message) => Err(Error::Store(message)),
    };
    decoded.unwrap_or_else(|error| part.iter().map(|_| Err(error.clone())).collect())
}

/// The text of a shard's response, or why there is none.
async fn reply(asked: JsFuture) -> Result<String, String> {
    let text = asked.await.map_err(|thrown| js::words(&thrown))?;
    Ok(text.as_string().unwrap_or_default())
}
