//! Which policies are in force: those of the newest document that made sense. They are looked for again after half
//! a minute, and a document that is wrong, older or gone leaves the last good one in force.

use core::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsValue;

use super::fault::Fault;
use super::js::{self, Kv};
use super::policy::Policies;
use crate::time::{Millis, Timestamp};

/// A setting with the document itself, and a KV namespace with one under [`KEY`], which comes first
/// where there is one.
const SETTING: &str = "POLICIES";
const NAMESPACE: &str = "POLICIES_KV";
const KEY: &str = "policies";

/// Twice this is below a minute: KV may be as late again.
const FRESH: Millis = Millis::from_ms(25_000);
const KV_CACHE_S: f64 = 30.0;

/// What this isolate knows. It is only a copy: whoever has none looks for one.
#[derive(Clone)]
struct Known {
    checked: Timestamp,
    text: String,
    policies: Rc<Policies>,
}

thread_local! {
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

pub(crate) async fn in_force(env: &JsValue) -> Result<Rc<Policies>, Fault> {
    let known = KNOWN.with_borrow(Clone::clone);
    let now = js::now();
    let setting = js::setting(env, SETTING).or_else(|| js::json(env, SETTING));
    let document = match js::binding::<Kv>(env, NAMESPACE) {
        None => setting,
        Some(kv) => {
            if let Some(known) = known.as_ref().filter(|known| now.since(known.checked) < FRESH) {
                return Ok(known.policies.clone());
            }
            // Where KV has had a document, that one stays.
            let is_first = |text: &String| known.as_ref().is_none_or(|known| known.text == *text);
            js::kv_get(&kv, KEY, KV_CACHE_S).await.or_else(|| setting.filter(is_first))
        }
    };
    let found = newer(document, known.as_ref());
    if let Err(fault) = &found {
        js::complain(&format!("policies: {}", fault.message));
    }
    match (found, known) {
        (Ok((text, policies)), _) => Ok(keep(Known { checked: now, text, policies })),
        (Err(_), Some(known)) => Ok(keep(Known { checked: now, ..known })),
        (Err(fault), None) => {
            let message = format!("there are no policies: {}", fault.message);
            Err(Fault { field: fault.field, ..Fault::new(503, "not_configured", message) })
        }
    }
}

fn keep(known: Known) -> Rc<Policies> {
    let policies = known.policies.clone();
    KNOWN.set(Some(known));
    policies
}

/// The policies of a document, unless those that are in force are of a higher version: KV may tell what was.
fn newer(document: Option<String>, known: Option<&Known>) -> Result<(String, Rc<Policies>), Fault> {
    let text = document.ok_or_else(|| Fault::policy(SETTING, "set, or bound as POLICIES_KV"))?;
    if let Some(known) = known.filter(|known| known.text == text) {
        return Ok((text, known.policies.clone()));
    }
    let policies = Policies::parse(&text)?;
    if known.is_some_and(|known| known.policies.version > policies.version) {
        return Err(Fault::policy("version", "no lower than that of those in force"));
    }
    Ok((text, Rc::new(policies)))
}
