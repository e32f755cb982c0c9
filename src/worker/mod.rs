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
mod store;

use wasm_bindgen::JsValue;
use web_sys::{Request, Response};
use worker::{Context, Env, event};

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response, js::Thrown> {
    let env: &JsValue = &env;
    let url = request.url();
    let Some(path) = path::normal(path_of(&url)) else {
        let fault = fault::Fault::argument("path", "written with whole escapes, and without NUL");
        return Ok(api::refused(&fault)?);
    };
    match core::str::from_utf8(&path) {
        Ok(path) if api::owns(path) => Ok(api::answer(&request, env, path).await?),
        _ => Ok(gate::answer(&request, env, &path).await?),
    }
}

/// The path of an address, as it stands there.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    path.split(['?', '#']).next().unwrap_or(path)
}
