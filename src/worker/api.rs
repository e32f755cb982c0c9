//! The HTTP API: JSON in, JSON out. Its contract is the document beside this file, which is served as well.

use wasm_bindgen::JsValue;
use web_sys::{Request, Response};

use super::auth::{Access, access};
use super::call::{self, Call};
use super::fault::Fault;
use super::fields::Fields;
use super::store::Backend;
use super::{js, metrics, steps};
use crate::json::Json;
use crate::store::redis;
use crate::store::wire::MOST_RESULT_BYTES;

const OPENAPI: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));
const MOST_BYTES: u32 = 256 * 1_024;
const MOST_CALLS: usize = 256;

/// Whether a path is ours, and never the origin's: not in capitals either, which would bring it a token.
pub(crate) fn owns(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let below = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    ["/v1", "/metrics", "/healthz", "/openapi.json"].into_iter().any(below)
}

/// Answers a request for one of our paths.
pub(crate) async fn answer(
    request: &Request,
    env: &JsValue,
    path: &str,
) -> Result<Response, JsValue> {
    match route(request, env, path).await {
        Ok((kind, text)) => js::respond(200, &text, &[("content-type", kind)]),
        Err(fault) => refused(&fault),
    }
}

/// The response that tells a fault.
pub(crate) fn refused(fault: &Fault) -> Result<Response, JsValue> {
    let kind = ("content-type", JSON);
    let mut headers = vec![kind];
    if fault.status == 401 {
        headers.push(("www-authenticate", "Bearer"));
    }
    headers.extend(fault.allow.map(|method| ("allow", method)));
    js::respond(fault.status, &fault.json(), &headers)
}

const LONG: &str = "the batch has more results than fit in 8 MiB";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

type Served = Result<(&'static str, String), Fault>;

async fn route(request: &Request, env: &JsValue, path: &str) -> Served {
    match path {
        "/healthz" => {
            method(request, "GET")?;
            Ok((JSON, format!("{{\"ok\":true,\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION"))))
        }
        "/openapi.json" => {
            method(request, "GET")?;
            Ok((JSON, OPENAPI.into()))
        }
        "/metrics" => {
            let access = allowed(request, env)?;
            method(request, "GET")?;
            if access.prefix.is_some() {
                return Err(Fault::new(
                    403,
                    "forbidden",
                    "metrics are for tokens without a prefix",
                ));
            }
            let tallies = Backend::of(env)?.tallies().await?;
            let text =
                metrics::text(&tallies).ok_or_else(|| Fault::store("a shard answered nonsense"))?;
            Ok((PROMETHEUS, text))
        }
        "/v1/steps" => {
            let access = allowed(request, env)?;
            method(request, "POST")?;
            let batch = body(request, TEXT, steps::MOST_BYTES).await?;
            Ok((TEXT, steps::answer(&batch, &access, &Backend::of(env)?).await?))
        }
        _ => {
            let nothing = || Fault::new(404, "not_found", "there is no such call");
            let name = path.strip_prefix("/v1/").ok_or_else(nothing)?;
            let access = allowed(request, env)?;
            let name = call::PATHS.into_iter().find(|call| *call == name).ok_or_else(nothing)?;
            method(request, "POST")?;
            let body = body(request, JSON, MOST_BYTES).await?;
            let json = Json::parse(&body).ok_or_else(|| Fault::argument("body", "valid JSON"))?;
            let answer = calls(name, json, &access, &Backend::of(env)?).await?;
            Ok((JSON, answer))
        }
    }
}

fn method(request: &Request, wanted: &'static str) -> Result<(), Fault> {
    let method = request.method();
    if method == wanted || (wanted == "GET" && method == "HEAD") {
        return Ok(());
    }
    let message = format!("the method must be {wanted}");
    Err(Fault { allow: Some(wanted), ..Fault::new(405, "method_not_allowed", message) })
}

/// The caller's access; none over an open line that is not a loop back.
fn allowed(request: &Request, env: &JsValue) -> Result<Access, Fault> {
    let token = js::setting(env, "TIDEGATE_TOKEN");
    let header = request.headers().get("authorization").ok().flatten();
    let access = access(token.as_deref(), header.as_deref())?;
    if js::is_open_line(&request.url()) {
        return Err(Fault::new(403, "forbidden", "a token travels over https: only"));
    }
    Ok(access)
}

async fn body(request: &Request, kind: &str, most: u32) -> Result<String, Fault> {
    let given = request.headers().get("content-type").ok().flatten().unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if !given.eq_ignore_ascii_case(kind) {
        let message = format!("the body must be {kind}");
        return Err(Fault::new(415, "unsupported_media_type", message));
    }
    let unread = |_| Fault::argument("body", "sent in full");
    let bytes = js::body(request, most).await.map_err(unread)?;
    let large = || Fault::new(413, "too_large", format!("the body may have {} KiB", most / 1_024));
    let bytes = bytes.ok_or_else(large)?;
    String::from_utf8(bytes).map_err(|_| Fault::argument("body", "UTF-8"))
}

/// Runs the call, or the calls of a batch.
async fn calls(
    name: &str,
    json: Json<'_>,
    access: &Access,
    store: &Backend,
) -> Result<String, Fault> {
    if name == "batch" {
        return batch(json, access, store).await;
    }
    let call = Call::read(name, fields(json, "")?, access.prefix.as_deref())?;
    let answer = store.apply(&[&call.step]).await.pop();
    call.told(&answer.ok_or_else(|| Fault::store("no answer"))?.map_err(Fault::from)?)
}

/// Each call of a batch has its own status; those that make sense run, in order, whatever the others are.
async fn batch(json: Json<'_>, access: &Access, store: &Backend) -> Result<String, Fault> {
    let mut outer = fields(json, "")?;
    let expected = "a list of 1 to 256 calls";
    let given = outer.take("calls").and_then(Json::items);
    let given = given.filter(|calls| (1..=MOST_CALLS).contains(&calls.len()));
    let given = given.ok_or_else(|| outer.fault("calls", expected))?;
    outer.end()?;
    let mut faults = Vec::with_capacity(given.len());
    let mut calls = Vec::with_capacity(given.len());
    for (index, json) in given.into_iter().enumerate() {
        match one_of(json, index, access) {
            Ok(call) => {
                calls.push(call);
                faults.push(None);
            }
            Err(fault) => faults.push(Some(fault)),
        }
    }
    let answers = store.apply(&calls.iter().map(|call| &call.step).collect::<Vec<_>>()).await;
    let told = |(call, answer): (&Call, redis::Answer)| call.told(&answer.map_err(Fault::from)?);
    let mut told = calls.iter().zip(answers).map(told);
    let mut results = String::from("{\"results\":[");
    for fault in faults {
        let result =
            fault.map_or_else(|| told.next().unwrap_or(Err(Fault::store("no answer"))), Err);
        let (status, body) = match result {
            Ok(body) if results.len().saturating_add(body.len()) <= MOST_RESULT_BYTES => {
                (200, body)
            }
            Ok(_) => (413, Fault::new(413, "too_large", LONG).json()),
            Err(fault) => (fault.status, fault.json()),
        };
        let comma = if results.ends_with('[') { "" } else { "," };
        results.push_str(&format!("{comma}{{\"status\":{status},\"body\":{body}}}"));
    }
    results.push_str("]}");
    Ok(results)
}

fn one_of(json: Json<'_>, index: usize, access: &Access) -> Result<Call, Fault> {
    let at = format!("calls[{index}]");
    let mut fields = fields(json, &at)?;
    let path = fields.text("path")?;
    let path = call::PATHS.into_iter().find(|name| name.as_bytes() == path && *name != "batch");
    let path = path.ok_or_else(|| fields.fault("path", "the name of a call"))?;
    Call::read(path, fields, access.prefix.as_deref())
}

/// A body's fields. Those that would be a constructor's options are told as such.
fn fields<'a>(json: Json<'a>, at: &str) -> Result<Fields<'a>, Fault> {
    const OPTIONS: [&str; 7] =
        ["limit", "ttl", "lease", "threshold", "window", "cooldown", "trigger"];
    Fields::of(json, at, |field, expected| {
        let name = field.rsplit('.').next().unwrap_or_default();
        if OPTIONS.contains(&name) {
            return Fault::policy(field, expected);
        }
        Fault::argument(field, expected)
    })
}
