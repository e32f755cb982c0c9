//! The gate: requests that the policies admit are passed on to the origin, the others are told when to come again.

use wasm_bindgen::JsValue;
use web_sys::{Request, Response};

use super::fault::Fault;
use super::js;
use super::limits::Named;
use super::policies;
use super::policy::{Asked, Route};
use super::store::{Backend, Step};
use super::{api, path};
use crate::dedup::Tag;
use crate::limit::Decision;
use crate::op::{OwnedOp, Reply};
use crate::store::{Key, Kind};

const PREFIX: &[u8] = b"gate";
const IPV6_SUBNET: u32 = 64;
/// Node.js reads a thousand fields of a query, and nothing after them.
const MOST_FIELDS: usize = 100;

/// Why a request is not passed on.
enum Refusal {
    Fault(Fault),
    Denied(Denial),
}

/// A denial, and the limits that it is by.
struct Denial {
    limits: Named,
    decision: Decision,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Answers a request that is not for the API. `path` is normal.
pub(crate) async fn answer(
    request: &Request,
    env: &JsValue,
    path: &[u8],
) -> Result<Response, JsValue> {
    let refusal = match admitted(request, env, path).await {
        Ok(origin) => match js::pass_on(request, &origin).await {
            Ok(response) => return Ok(response),
            Err(thrown) => {
                let message = format!("the origin does not answer: {}", js::words(&thrown));
                Refusal::Fault(Fault::new(502, "origin", message))
            }
        },
        Err(refusal) => refusal,
    };
    match refusal {
        Refusal::Fault(fault) => api::refused(&fault),
        Refusal::Denied(denial) => denial.response(),
    }
}

/// Where an admitted request goes.
async fn admitted(request: &Request, env: &JsValue, path: &[u8]) -> Result<String, Refusal> {
    let origin = origin(request, env)?;
    let policies = policies::in_force(env).await?;
    let method = request.method();
    let asked = Asked { path, method: &method, handshake: is_handshake(request) };
    if let Some(route) = policies.route(&asked) {
        charge(request, env, route).await?;
    }
    let search = js::url(&request.url()).map(|url| url.search()).unwrap_or_default();
    Ok(format!("{origin}{}{search}", path::encoded(path)))
}

/// The origin in the settings: scheme, host and port.
fn origin(request: &Request, env: &JsValue) -> Result<String, Fault> {
    let says = |message| Fault::new(503, "not_configured", message);
    let text = js::setting(env, "ORIGIN")
        .ok_or_else(|| Fault::new(404, "not_found", "there is nothing here"))?;
    // Whatever else an address can have in it would be lost.
    let origin = js::url(&text).filter(|url| url.href() == format!("{}/", url.origin()));
    let origin =
        origin.ok_or_else(|| says("ORIGIN must be an address such as https://origin.example"))?;
    if js::url(&request.url()).is_some_and(|own| own.host() == origin.host()) {
        return Err(says("ORIGIN is this Worker's own host"));
    }
    Ok(origin.origin())
}

/// Whether a request opens a session: a WebSocket, or one of Engine.IO by whatever transport. A request that
/// names an Engine.IO session is part of it, if it is plain which one: the origin reads one value that is not empty,
/// and all of the query, too.
fn is_handshake(request: &Request) -> bool {
    let Some(url) = js::url(&request.url()) else { return false };
    let query = url.search_params();
    let engine = query.has("EIO") || query.has("transport");
    let sids = query.get_all("sid");
    let whole = url.search().matches('&').count() < MOST_FIELDS;
    let session = engine && whole && sids.length() == 1 && query.get("sid").as_deref() != Some("");
    let upgrade = request.headers().get("upgrade").ok().flatten();
    let socket = upgrade.is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"));
    (socket || engine) && !session
}

/// Charges the address, and then the header where there is one. What is not passed on is not charged to the address,
/// whether the header's limit or its shard is the reason.
async fn charge(request: &Request, env: &JsValue, route: &Route) -> Result<(), Refusal> {
    let forgiven = |refusal: &Refusal| route.allow_on_error && matches!(refusal, Refusal::Fault(_));
    let store = match Backend::of(env) {
        Ok(store) => store,
        Err(_) if route.allow_on_error => return Ok(()),
        Err(fault) => return Err(fault.into()),
    };
    let header = |name: &str| request.headers().get(name).ok().flatten();
    // Nobody but the platform sets this one. Where it is missing all share one budget.
    let address = header("cf-connecting-ip").and_then(|text| crate::ip_key(&text, IPV6_SUBNET));
    let address = key(route, 'a', &address.unwrap_or_default());
    if let Err(refusal) = consume(&store, &address, &route.by_address, route.cost).await {
        return if forgiven(&refusal) { Ok(()) } else { Err(refusal) };
    }
    let Some((name, limits)) = &route.by_header else { return Ok(()) };
    let Some(value) = header(name) else { return Ok(()) };
    // What is in the header may be a secret.
    let value = key(route, 'h', Tag::hash(value.as_bytes()).as_str());
    let Err(refusal) = consume(&store, &value, limits, route.cost).await else { return Ok(()) };
    if forgiven(&refusal) {
        return Ok(());
    }
    let op = OwnedOp::Refund(route.by_address.limits.clone(), route.cost);
    store.apply(&[&Step { key: address, op }]).await;
    Err(refusal)
}

fn key(route: &Route, by: char, of: &str) -> Key {
    let name = &route.name;
    Key::from_wtf8(PREFIX, Kind::Limit, format!("{}:{name}{by}:{of}", name.len()).as_bytes())
}

async fn consume(store: &Backend, key: &Key, limits: &Named, cost: u64) -> Result<(), Refusal> {
    let op = OwnedOp::Consume(limits.limits.clone(), cost);
    let answer = store.apply(&[&Step { key: key.clone(), op }]).await.pop();
    let reply = answer.ok_or_else(|| Fault::store("no answer"))?.map_err(Fault::from)?;
    match reply {
        Reply::Decision(decision) if decision.allowed() => Ok(()),
        Reply::Decision(decision) => {
            Err(Refusal::Denied(Denial { limits: limits.clone(), decision }))
        }
        _ => Err(Fault::store("the store answered nonsense").into()),
    }
}

impl Denial {
    /// 429, with the fields of draft-ietf-httpapi-ratelimit-headers and when to come again.
    fn response(&self) -> Result<Response, JsValue> {
        let policies = self.limits.names.iter().zip(&self.limits.quotas);
        let policies: Vec<_> = policies
            .map(|(name, (limit, window))| {
                format!("{};q={limit};w={}", string(name), window.as_ms().div_ceil(1_000))
            })
            .collect();
        let name = self.limits.names.get(self.decision.decided_by).map_or("", String::as_str);
        let reset = self.decision.reset_after.as_ms().div_ceil(1_000);
        let state = format!("{};r={};t={reset}", string(name), self.decision.remaining);
        let policies = policies.join(", ");
        let wait = self.decision.retry_after.map(|wait| wait.as_ms());
        let after = wait.map(|wait| wait.div_ceil(1_000).to_string());
        let mut headers = vec![
            ("content-type", "application/json"),
            ("cache-control", "no-store"),
            ("ratelimit-policy", policies.as_str()),
            ("ratelimit", state.as_str()),
        ];
        headers.extend(after.as_deref().map(|after| ("retry-after", after)));
        let wait = wait.map_or("null".into(), |wait| wait.to_string());
        let body = format!(
            "{{\"error\":{{\"code\":\"rate_limited\",\"message\":\"too many requests\",\"retryAfterMs\":{wait}}}}}"
        );
        js::respond(429, &body, &headers)
    }
}

/// A string of structured fields, which are ASCII.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            ' '..='~' => quoted.push(char),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}
