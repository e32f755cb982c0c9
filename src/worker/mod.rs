//! The Cloudflare Worker: the HTTP API, and a gate before an origin.
//!
//! `api` and `gate` answer requests; what they decide by is the core's, where the state is: in Durable Objects
//! (`shard` is their class, `objects` how they are reached) or in Redis over fetch (`rest`). Only `js` speaks to
//! the runtime.

mod answer;
mod api;
mod auth;
mod call;
mod fault;
mod fields;
mod gate;
mod js;
mod limits;
mod metrics;
mod objects;
mod path;
mod policies;
mod policy;
mod rest;
mod shard;
mod steps;
mod store;

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::{Request, Response};

/// Answers a request.
///
/// It is exported as it stands: what the `worker` crate would put around it is a sixth of the module's size.
#[wasm_bindgen]
pub fn fetch(request: Request, env: JsValue) -> Promise {
    js::promised(async move { answer(&request, &env).await.map(JsValue::from) })
}

async fn answer(request: &Request, env: &JsValue) -> Result<Response, JsValue> {
    let url = request.url();
    let Some(path) = path::normal(path_of(&url)) else {
        let fault = fault::Fault::argument("path", "written with whole escapes, and without NUL");
        return api::refused(&fault);
    };
    match core::str::from_utf8(&path) {
        Ok(path) if api::owns(path) => api::answer(request, env, path).await,
        _ => gate::answer(request, env, &path).await,
    }
}

/// The path of an address, as it stands there.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    path.split(['?', '#']).next().unwrap_or(path)
}
