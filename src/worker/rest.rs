//! Redis over fetch as the store: the script of [`redis`](crate::redis) by Upstash's REST protocol. A request is
//! a batch, and is sent once: one whose answer is lost may have been served.

use wasm_bindgen::JsValue;

use super::fault::Fault;
use super::js;
use super::store::Step;
use crate::error::Error;
use crate::json::{Json, quoted};
use crate::store::redis::{self, Answer};

const URL: &str = "UPSTASH_REDIS_REST_URL";
const TOKEN: &str = "UPSTASH_REDIS_REST_TOKEN";
/// Results are longer here than at the end of the way: their backslashes are doubled.
const MOST_BYTES: u32 = 10 * 1_024 * 1_024;

/// A server, and who we are to it.
pub(crate) struct Rest {
    url: String,
    token: String,
}

impl Rest {
    /// The server in the settings, if there is one.
    pub(crate) fn of(env: &JsValue) -> Result<Option<Self>, Fault> {
        let says = |message: String| Fault::new(503, "not_configured", message);
        let Some(url) = js::setting(env, URL) else { return Ok(None) };
        let token = js::setting(env, TOKEN)
            .ok_or_else(|| says(format!("{URL} is set, but the secret {TOKEN} is not")))?;
        if js::url(&url).is_none() || js::is_open_line(&url) {
            return Err(says(format!("{URL} must be an https: address")));
        }
        Ok(Some(Self { url, token }))
    }

    /// All steps in one request.
    pub(crate) async fn apply(&self, steps: &[&Step]) -> Vec<Answer> {
        if steps.is_empty() {
            return Vec::new();
        }
        let ops: Vec<_> = steps.iter().map(|step| step.op.as_op()).collect();
        let decoded = match self.eval(steps).await {
            Ok(texts) => redis::decode(&ops, &texts),
            Err(message) => Err(Error::Store(message)),
        };
        decoded.unwrap_or_else(|error| steps.iter().map(|_| Err(error.clone())).collect())
    }

    /// By the script's hash, and with its text where the server does not know the hash.
    async fn eval(&self, steps: &[&Step]) -> Result<Vec<String>, String> {
        let words: Vec<_> = steps.iter().map(|step| redis::encode(&step.op.as_op())).collect();
        let keys = steps.iter().map(|step| step.key.as_str().to_owned());
        // The empty argument: the server's clock decides.
        let arguments: Vec<String> = core::iter::once(steps.len().to_string())
            .chain(keys)
            .chain([String::new()])
            .chain(redis::runs(&words))
            .collect();
        match self.command("EVALSHA", redis::SHA, &arguments).await {
            Err(said) if said.contains("NOSCRIPT No matching script") => {
                self.command("EVAL", redis::SCRIPT, &arguments).await
            }
            other => other,
        }
    }

    async fn command(
        &self,
        name: &str,
        script: &str,
        rest: &[String],
    ) -> Result<Vec<String>, String> {
        let words = [name, script].into_iter().chain(rest.iter().map(String::as_str));
        let body = format!("[{}]", words.map(quoted).collect::<Vec<_>>().join(","));
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let sent = js::post(&self.url, &body, &headers, &js::room(MOST_BYTES)).await;
        let text = sent.map_err(|thrown| js::words(&thrown))?;
        read(&text).unwrap_or_else(|| Err("the server's answer is not that of the protocol".into()))
    }
}

/// `{ "result": text }`, or a list of texts, or `{ "error": text }`.
fn read(text: &str) -> Option<Result<Vec<String>, String>> {
    let string = |json: Json<'_>| String::from_utf8(json.text()?).ok();
    let fields = Json::parse(text)?.fields()?;
    let field =
        |wanted: &[u8]| fields.iter().find(|(name, _)| name == wanted).map(|(_, json)| *json);
    if let Some(error) = field(b"error") {
        return Some(Err(string(error)?));
    }
    let result = field(b"result")?;
    let texts = match result.items() {
        Some(items) => items.into_iter().map(string).collect(),
        None => string(result).map(|text| vec![text]),
    };
    texts.map(Ok)
}
