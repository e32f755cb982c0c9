//! The runtime's own objects, as far as the Worker needs them, typed where the `worker` crate would copy.

use js_sys::{ArrayBuffer, Float64Array, Number, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use web_sys::{
    AbortSignal, Headers, Request, RequestInit, RequestRedirect, Response, ResponseInit, Url,
};

use crate::dedup::Tag;
use crate::time::Timestamp;

/// How long the store's answers are waited for.
const PATIENCE_MS: u32 = 5_000;

#[wasm_bindgen]
extern "C" {
    /// What the Worker is bound to.
    pub(crate) type Namespace;

    /// What a Durable Object is made with.
    pub type ObjectState;

    #[wasm_bindgen(structural, method, getter)]
    pub(crate) fn storage(this: &ObjectState) -> Storage;

    /// A Durable Object's storage.
    pub(crate) type Storage;

    #[wasm_bindgen(structural, method, getter)]
    pub(crate) fn sql(this: &Storage) -> Sql;

    #[wasm_bindgen(structural, method, catch, js_name = transactionSync)]
    pub(crate) fn transaction_sync(
        this: &Storage,
        body: &mut dyn FnMut() -> Result<JsValue, JsValue>,
    ) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(structural, method, catch, js_name = getAlarm)]
    pub(crate) fn get_alarm(this: &Storage) -> Result<Promise, JsValue>;

    #[wasm_bindgen(structural, method, catch, js_name = setAlarm)]
    pub(crate) fn set_alarm(this: &Storage, at: f64) -> Result<Promise, JsValue>;

    #[wasm_bindgen(structural, method, catch, js_name = deleteAll)]
    pub(crate) fn delete_all(this: &Storage) -> Result<Promise, JsValue>;

    /// Its database.
    pub(crate) type Sql;

    #[wasm_bindgen(structural, method, getter, js_name = databaseSize)]
    pub(crate) fn database_size(this: &Sql) -> f64;

    /// A KV namespace.
    pub(crate) type Kv;

    #[wasm_bindgen(structural, method, catch, js_name = get)]
    fn get_text(this: &Kv, key: &str, options: &Object) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    pub(crate) fn complain(message: &str);

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn get_random_values(bytes: &Uint8Array);

    #[wasm_bindgen(js_name = fetch)]
    fn fetch_request(request: &Request) -> Promise;
}

// A trap ends the module where it stands, and with it everything that it had under way: promises that nobody
// would settle. Here they are failed, so that whoever asked is told, and the next request finds a new instance.
#[wasm_bindgen(inline_js = "
const waiting = new Set();
export const pending = {
  guarded(promise) {
    return new Promise((resolve, reject) => {
      const end = (settle) => (value) => {
        waiting.delete(reject);
        settle(value);
      };
      waiting.add(reject);
      promise.then(end(resolve), end(reject));
    });
  },
  fail() {
    for (const reject of waiting) reject(new Error('the module has ended in the middle of it'));
    waiting.clear();
  },
  // What the script that worker-build puts around the module goes by: whether an instance is beyond use, and which
  // one this is. Objects of an earlier one are made again.
  instance: { criticalError: false, instanceId: 0 },
  begin() {
    pending.instance.instanceId += 1;
  },
};

// What would be many calls, and turns to wait for, is one of each.
const ids = new Map();
export const exchange = async (namespace, name, path, body, patience, room) => {
  // The names are few, and making an id of one takes a while.
  const id = ids.get(name) ?? namespace.idFromName(name);
  const stub = namespace.get(id);
  ids.set(name, id);
  // The host is nobody's: a request to an object goes nowhere else.
  const signal = AbortSignal.timeout(patience);
  const response = await stub.fetch('https://shard' + path, { method: 'POST', body, signal });
  const text = await (room ? within(response, room) : response.text());
  if (!response.ok) throw new Error(text);
  return text;
};

// The text of a response, of which there is room for so many bytes. Others may share it: they have what this one
// took, when it does not fit.
export const within = async (response, room) => {
  const decoder = new TextDecoder();
  let [text, taken] = ['', 0];
  for await (const chunk of response.body ?? []) {
    if (chunk.length > room[0]) {
      room[0] += taken;
      throw new Error('the replies are too long');
    }
    room[0] -= chunk.length;
    taken += chunk.length;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
};
")]
extern "C" {
    type Pending;

    #[wasm_bindgen(thread_local_v2, js_name = pending)]
    static PENDING: Pending;

    #[wasm_bindgen(structural, method)]
    fn guarded(this: &Pending, promise: Promise) -> Promise;

    #[wasm_bindgen(structural, method)]
    fn fail(this: &Pending);

    #[wasm_bindgen(structural, method)]
    fn begin(this: &Pending);

    #[wasm_bindgen(structural, method, getter)]
    fn instance(this: &Pending) -> JsValue;

    fn exchange(
        namespace: &Namespace,
        name: &str,
        path: &str,
        body: &str,
        patience_ms: u32,
        room: Option<&Float64Array>,
    ) -> Promise;

    fn within(response: &Response, room: &Float64Array) -> Promise;
}

/// Whatever traps, the next request finds a new instance. The `worker` crate would see to this as well, and to so much
/// else that the module would be a tenth larger.
#[wasm_bindgen(start, private)]
fn start() {
    std::panic::set_hook(Box::new(|info| complain(&info.to_string())));
    PENDING.with(Pending::begin);
    wasm_bindgen::handler::set_on_abort(|| {
        PENDING.with(Pending::fail);
        wasm_bindgen::handler::schedule_reinit();
    });
}

#[wasm_bindgen(js_name = "__worker_init_state")]
pub fn worker_init_state() -> JsValue {
    PENDING.with(Pending::instance)
}

/// A future as a promise that settles, whatever happens in here.
pub(crate) fn promised(
    future: impl Future<Output = Result<JsValue, JsValue>> + 'static,
) -> Promise {
    PENDING.with(|pending| pending.guarded(future_to_promise(future)))
}

/// The text of a request.
pub(crate) async fn request_text(request: &Request) -> Result<String, JsValue> {
    let text = JsFuture::from(request.text()?).await?;
    Ok(text.as_string().unwrap_or_default())
}

/// The time as the runtime has it: that of the last thing it waited for.
pub(crate) fn now() -> Timestamp {
    timestamp(js_sys::Date::now())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both saturate")]
pub(crate) const fn timestamp(ms: f64) -> Timestamp {
    Timestamp::from_ms(ms as u64)
}

#[expect(clippy::cast_precision_loss, reason = "timestamps stay below 2^53")]
pub(crate) const fn number(at: Timestamp) -> f64 {
    at.as_ms() as f64
}

/// A tag that nobody has had: 128 random bits.
pub(crate) fn new_tag() -> Tag {
    let bytes = Uint8Array::new_with_length(16);
    get_random_values(&bytes);
    Tag::hash(&bytes.to_vec())
}

/// Room for replies: so many bytes, for all that are read into it.
pub(crate) fn room(bytes: u32) -> Float64Array {
    Float64Array::new_from_slice(&[bytes.into()])
}

/// The text that a Durable Object of that name answers in time; what it refuses with is thrown, and so is that there
/// is no room for it.
pub(crate) fn ask(
    namespace: &Namespace,
    name: &str,
    path: &str,
    body: &str,
    room: Option<&Float64Array>,
) -> JsFuture {
    JsFuture::from(exchange(namespace, name, path, body, PATIENCE_MS, room))
}

/// Posts a text to a server; answers the text of its response, whatever its status, if it comes in time and there is
/// room for it.
pub(crate) async fn post(
    url: &str,
    body: &str,
    headers: &[(&str, &str)],
    room: &Float64Array,
) -> Result<String, JsValue> {
    let init = RequestInit::new();
    init.set_method("POST");
    init.set_body(&body.into());
    init.set_headers_headers(&list(headers)?);
    init.set_signal(Some(&AbortSignal::timeout_with_u32(PATIENCE_MS)));
    // Followed, it would be another request, to another server.
    init.set_redirect(RequestRedirect::Manual);
    let response = send(&Request::new_with_str_and_init(url, &init)?).await?;
    let text = JsFuture::from(within(&response, room)).await?;
    Ok(text.as_string().unwrap_or_default())
}

fn list(headers: &[(&str, &str)]) -> Result<Headers, JsValue> {
    let list = Headers::new()?;
    for (name, value) in headers {
        list.set(name, value)?;
    }
    Ok(list)
}

/// An address, if it is one of the web's.
pub(crate) fn url(text: &str) -> Option<Url> {
    Url::new(text).ok().filter(|url| matches!(url.protocol().as_str(), "https:" | "http:"))
}

/// Whether others may listen on the way there: it is not https:, and not this machine itself.
pub(crate) fn is_open_line(text: &str) -> bool {
    !text.starts_with("https://")
        && url(text).is_none_or(|url| url.protocol() != "https:" && !is_loopback(&url.hostname()))
}

/// Whether a host is this machine itself. A URL has an IPv4 address in four decimal parts, however it was written.
fn is_loopback(host: &str) -> bool {
    let numeric = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    host == "localhost"
        || host.ends_with(".localhost")
        || host == "[::1]"
        || (numeric && host.starts_with("127."))
}

/// The text under a key of KV, where copies may be so many seconds old; none where it cannot be had.
pub(crate) async fn kv_get(kv: &Kv, key: &str, cache_s: f64) -> Option<String> {
    let options = Object::new();
    Reflect::set(&options, &"cacheTtl".into(), &cache_s.into()).ok()?;
    JsFuture::from(kv.get_text(key, &options).ok()?).await.ok()?.as_string()
}

/// Sends a request on to another address, and answers what comes back as it is, WebSockets and redirects too.
pub(crate) async fn pass_on(request: &Request, url: &str) -> Result<Response, JsValue> {
    let same: &JsValue = request;
    let copy = Request::new_with_str_and_init(url, same.unchecked_ref())?;
    let init = RequestInit::new();
    init.set_redirect(RequestRedirect::Manual);
    send(&Request::new_with_request_and_init(&copy, &init)?).await
}

/// Sends a request to the world.
async fn send(request: &Request) -> Result<Response, JsValue> {
    Ok(JsFuture::from(fetch_request(request)).await?.unchecked_into())
}

/// A body of at most so many bytes; `None` where it is longer.
pub(crate) async fn body(request: &Request, most: u32) -> Result<Option<Vec<u8>>, JsValue> {
    if let Some(length) = request.headers().get("content-length")? {
        // The runtime reads no more than was announced.
        if !length.parse().is_ok_and(|length: u32| length <= most) {
            return Ok(None);
        }
        let buffer: ArrayBuffer = JsFuture::from(request.array_buffer()?).await?.unchecked_into();
        return Ok(Some(Uint8Array::new(&buffer).to_vec()));
    }
    let Some(stream) = request.body() else { return Ok(Some(Vec::new())) };
    let reader: web_sys::ReadableStreamDefaultReader = stream.get_reader().unchecked_into();
    let mut bytes = Vec::new();
    loop {
        let chunk = JsFuture::from(reader.read()).await?;
        if Reflect::get(&chunk, &"done".into())?.is_truthy() {
            return Ok(Some(bytes));
        }
        let chunk: Uint8Array = Reflect::get(&chunk, &"value".into())?.unchecked_into();
        if chunk.length() > most.saturating_sub(u32::try_from(bytes.len()).unwrap_or(u32::MAX)) {
            let _ = reader.cancel();
            return Ok(None);
        }
        bytes.extend(chunk.to_vec());
    }
}

/// A response with a body and headers.
pub(crate) fn respond(
    status: u16,
    body: &str,
    headers: &[(&str, &str)],
) -> Result<Response, JsValue> {
    if status == 200 && headers.is_empty() {
        return Response::new_with_opt_str(Some(body));
    }
    let init = ResponseInit::new();
    init.set_status(status);
    init.set_headers_headers(&list(headers)?);
    Response::new_with_opt_str_and_init(Some(body), &init)
}

/// What was thrown, in words.
pub(crate) fn words(thrown: &JsValue) -> String {
    let message = Reflect::get(thrown, &"message".into()).ok().and_then(|text| text.as_string());
    message.or_else(|| thrown.as_string()).unwrap_or_else(|| "unknown".into())
}

/// A text, number or secret of the Worker's settings; an empty one is none.
pub(crate) fn setting(env: &JsValue, name: &str) -> Option<String> {
    let value = Reflect::get(env, &name.into()).ok()?;
    let number = || value.dyn_ref::<Number>()?.to_string_with_radix(10).ok()?.as_string();
    value.as_string().or_else(number).filter(|text| !text.trim().is_empty())
}

/// A setting that is JSON, as text.
pub(crate) fn json(env: &JsValue, name: &str) -> Option<String> {
    js_sys::JSON::stringify(&binding(env, name)?).ok()?.as_string()
}

/// A binding.
pub(crate) fn binding<T: JsCast>(env: &JsValue, name: &str) -> Option<T> {
    let value = Reflect::get(env, &name.into()).ok()?;
    value.is_object().then(|| value.unchecked_into())
}
