//! Durable Objects as the store: each key has its shard, each shard its object.

use js_sys::JsString;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use super::call::Call;
use super::fault::Fault;
use super::js::{self, Namespace};
use crate::error::Error;
use crate::op::Reply;
use crate::store::{redis, shard};

/// The binding, and the class's name.
pub(crate) const BINDING: &str = "TIDEGATE_SHARD";
const SHARDS: &str = "TIDEGATE_SHARDS";
const DEFAULT_SHARDS: u32 = 64;
const MOST_SHARDS: u32 = 1_024;

/// How many objects share the keys. Another number is other objects: every budget begins anew.
pub(crate) fn shards(env: &JsValue) -> Result<u32, Fault> {
    let Some(text) = js::setting(env, SHARDS) else { return Ok(DEFAULT_SHARDS) };
    let number = text.trim().parse().ok().filter(|number| (1..=MOST_SHARDS).contains(number));
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

    /// One request to each shard that is concerned, all at once; replies in the order of the calls.
    pub(crate) async fn apply(&self, calls: &[Call]) -> Vec<Result<Reply, Fault>> {
        let mut parts: Vec<(u32, Vec<usize>)> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let shard = shard::of(call.key.as_str(), self.shards);
            match parts.iter_mut().find(|(of, _)| *of == shard) {
                Some((_, indexes)) => indexes.push(index),
                None => parts.push((shard, vec![index])),
            }
        }
        let asked: Vec<_> = parts
            .into_iter()
            .map(|(shard, indexes)| {
                let part: Vec<&Call> =
                    indexes.iter().filter_map(|index| calls.get(*index)).collect();
                (self.ask(shard, &part), indexes, part)
            })
            .collect();
        let mut replies: Vec<_> = calls.iter().map(|_| Err(Fault::store("no answer"))).collect();
        for (asked, indexes, part) in asked {
            let answers = answers(asked, &part).await;
            for (index, answer) in indexes.into_iter().zip(answers) {
                if let Some(reply) = replies.get_mut(index) {
                    *reply = answer;
                }
            }
        }
        replies
    }

    fn ask(&self, shard: u32, part: &[&Call]) -> Result<JsFuture, JsValue> {
        let words: Vec<_> = part.iter().map(|call| redis::encode(&call.op.as_op())).collect();
        let keys = part.iter().map(|call| call.key.as_str());
        let batch = shard::batch(self.shards, keys.zip(words.iter().map(String::as_str)));
        js::ask(&self.namespace, &self.name(shard), "/", &batch)
    }

    fn name(&self, shard: u32) -> String {
        format!("{}/{shard}", self.shards)
    }

    /// What every shard has counted since it started.
    pub(crate) async fn tallies(&self) -> Result<Vec<String>, Fault> {
        let asked: Vec<_> = (0..self.shards)
            .map(|shard| js::ask(&self.namespace, &self.name(shard), "/tally", ""))
            .collect();
        let mut tallies = Vec::new();
        for asked in asked {
            tallies.push(reply(asked).await.map_err(Fault::store)?);
        }
        Ok(tallies)
    }
}

async fn answers(asked: Result<JsFuture, JsValue>, part: &[&Call]) -> Vec<Result<Reply, Fault>> {
    let ops: Vec<_> = part.iter().map(|call| call.op.as_op()).collect();
    let decoded = match reply(asked).await {
        Ok(text) => redis::decode(&ops, &text.split('\n').map(Into::into).collect::<Vec<_>>()),
        Err(message) => Err(Error::Store(message)),
    };
    match decoded {
        Ok(answers) => answers.into_iter().map(|answer| answer.map_err(Fault::from)).collect(),
        Err(error) => part.iter().map(|_| Err(Fault::from(error.clone()))).collect(),
    }
}

/// The text of a shard's response, or why there is none.
async fn reply(asked: Result<JsFuture, JsValue>) -> Result<String, String> {
    let said = async {
        let response: Response = asked?.await?.unchecked_into();
        let text = js::text(&response).await?;
        if response.ok() { Ok(text) } else { Err(JsValue::from(JsString::from(text))) }
    };
    said.await.map_err(|thrown: JsValue| js::words(&thrown))
}
