//! The gate's policies: one JSON document, which is in force as a whole or not at all.
//!
//! ```json
//! { "version": 7, "routes": [
//!   { "path": "/login", "methods": ["POST"], "limit": { "limit": 5, "window": "1m" } },
//!   { "path": "/socket.io/*", "only": "handshakes", "limit": { "limit": 10, "window": "1m" } },
//!   { "path": "/api/*", "limit": { "limit": 600, "window": "1m" },
//!     "header": { "name": "x-api-key", "limit": { "limit": 100, "window": "1m" } }, "onError": "allow" }
//! ] }
//! ```
//!
//! The first route that matches decides. `limit` is by address; `header` is charged as well where a request has
//! that header, so that making values up buys nothing.

use super::fault::Fault;
use super::fields::Fields;
use super::limits::Named;
use super::path::Pattern;
use crate::json::Json;

const MOST_ROUTES: usize = 200;

/// The policies of one document.
#[derive(Debug)]
pub(crate) struct Policies {
    pub(crate) version: u64,
    pub(crate) routes: Vec<Route>,
}

/// What a route's requests are charged.
#[derive(Debug)]
pub(crate) struct Route {
    /// Names its budgets; its path, unless it has another name.
    pub(crate) name: String,
    path: Pattern,
    /// None: all of them.
    methods: Option<Vec<String>>,
    handshakes: bool,
    pub(crate) by_address: Named,
    pub(crate) by_header: Option<(String, Named)>,
    pub(crate) cost: u64,
    /// What a store that fails means.
    pub(crate) allow_on_error: bool,
}

/// What routes look at.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) method: &'a str,
    pub(crate) handshake: bool,
}

impl Policies {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let json = Json::parse(text).ok_or_else(|| Fault::policy("policies", "valid JSON"))?;
        let mut fields = Fields::of(json, "", Fault::policy)?;
        let version = fields.count("version")?;
        let expected = "a list of at most 200 routes";
        let routes = fields.take("routes").and_then(Json::items);
        let routes = routes.filter(|routes| routes.len() <= MOST_ROUTES);
        let routes = routes.ok_or_else(|| fields.fault("routes", expected))?;
        fields.end()?;
        let routes = routes.into_iter().enumerate().map(|(index, json)| Route::read(json, index));
        let routes = routes.collect::<Result<Vec<_>, _>>()?;
        for (index, route) in routes.iter().enumerate() {
            if routes.iter().take(index).any(|earlier| earlier.name == route.name) {
                return Err(Fault::policy(format!("routes[{index}].name"), "unlike all others"));
            }
        }
        Ok(Self { version, routes })
    }

    /// The first route that a request belongs to.
    pub(crate) fn route(&self, asked: &Asked<'_>) -> Option<&Route> {
        self.routes.iter().find(|route| route.matches(asked))
    }
}

impl Route {
    fn read(json: Json<'_>, index: usize) -> Result<Self, Fault> {
        let at = format!("routes[{index}]");
        let mut fields = Fields::of(json, &at, Fault::policy)?;
        let text = String::from_utf8_lossy(&fields.text("path")?).into_owned();
        let expected = "an absolute path, with /* at its end for all below it";
        let path = Pattern::parse(&text).ok_or_else(|| fields.fault("path", expected))?;
        let name = fields.text_or_none("name")?;
        let name = name.map_or(text, |name| String::from_utf8_lossy(&name).into_owned());
        let methods = fields.read("methods", "a list of methods, in capitals", methods)?;
        let only = |json: Json<'_>| (json.as_str() == "\"handshakes\"").then_some(true);
        let handshakes = fields.read("only", "\"handshakes\"", only)?.unwrap_or(false);
        let by_address = Named::take(&mut fields, "limit", &format!("{at}.limit"))?;
        let by_header = header(&mut fields, &at)?;
        let cost = fields.units("cost")?;
        let all = by_header.iter().map(|(_, named)| named).chain([&by_address]);
        if all.flat_map(|named| named.limits.iter()).any(|limit| cost > limit.capacity()) {
            return Err(fields.fault("cost", "no more than what each limit admits at once"));
        }
        let on_error = |json: Json<'_>| match json.as_str() {
            "\"allow\"" => Some(true),
            "\"deny\"" => Some(false),
            _ => None,
        };
        let allow_on_error = fields.read("onError", "\"deny\" or \"allow\"", on_error)?;
        fields.end()?;
        let allow_on_error = allow_on_error.unwrap_or(false);
        Ok(Self { name, path, methods, handshakes, by_address, by_header, cost, allow_on_error })
    }

    fn matches(&self, asked: &Asked<'_>) -> bool {
        // Origins answer HEAD as they answer GET.
        let wanted = if asked.method == "HEAD" { ["HEAD", "GET"] } else { [asked.method; 2] };
        let method =
            |methods: &Vec<String>| methods.iter().any(|method| wanted.contains(&method.as_str()));
        self.path.matches(asked.path)
            && self.methods.as_ref().is_none_or(method)
            && (asked.handshake || !self.handshakes)
    }
}

fn methods(json: Json<'_>) -> Option<Vec<String>> {
    let method = |json: Json<'_>| {
        let text = String::from_utf8(json.text()?).ok()?;
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
        fits.then_some(text)
    };
    json.items()?
        .into_iter()
        .map(method)
        .collect::<Option<_>>()
        .filter(|list: &Vec<_>| !list.is_empty())
}

fn header(fields: &mut Fields<'_>, at: &str) -> Result<Option<(String, Named)>, Fault> {
    let Some(json) = fields.take("header") else { return Ok(None) };
    let at = format!("{at}.header");
    let mut fields = Fields::of(json, &at, Fault::policy)?;
    let name = String::from_utf8_lossy(&fields.text("name")?).to_ascii_lowercase();
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return Err(fields.fault("name", "the name of a header"));
    }
    let limits = Named::take(&mut fields, "limit", &format!("{at}.limit"))?;
    fields.end()?;
    Ok(Some((name, limits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(document: &str) -> String {
        Policies::parse(document).unwrap_err().field.unwrap()
    }

    fn route(route: &str) -> String {
        field(&format!("{{\"version\":1,\"routes\":[{route}]}}"))
    }

    #[test]
    fn what_is_wrong_is_named() {
        let limit = r#""limit":{"limit":1,"window":1}"#;
        assert_eq!(field("{"), "policies");
        assert_eq!(field("[]"), "body");
        assert_eq!(field("{}"), "version");
        assert_eq!(field(r#"{"version":1}"#), "routes");
        assert_eq!(field(r#"{"version":1,"routes":[],"x":1}"#), "x");
        assert_eq!(route("5"), "routes[0]");
        assert_eq!(route("{}"), "routes[0].path");
        assert_eq!(route(r#"{"path":"login"}"#), "routes[0].path");
        assert_eq!(route(r#"{"path":"/a"}"#), "routes[0].limit");
        assert_eq!(route(r#"{"path":"/a","limit":{"limit":1}}"#), "routes[0].limit.window");
        assert_eq!(
            route(&format!(r#"{{"path":"/a",{limit},"methods":["get"]}}"#)),
            "routes[0].methods"
        );
        assert_eq!(
            route(&format!(r#"{{"path":"/a",{limit},"onError":"throw"}}"#)),
            "routes[0].onError"
        );
        assert_eq!(
            route(&format!(r#"{{"path":"/a",{limit},"header":{{"name":"x y"}}}}"#)),
            "routes[0].header.name"
        );
        assert_eq!(
            route(&format!(r#"{{"path":"/a",{limit},"header":{{"name":"x"}}}}"#)),
            "routes[0].header.limit"
        );
        assert_eq!(route(&format!(r#"{{"path":"/a",{limit},"cost":2}}"#)), "routes[0].cost");
        assert_eq!(
            route(
                r#"{"path":"/a","limit":{"limit":2,"window":1},"header":{"name":"x","limit":{"limit":1,"window":1}},"cost":2}"#
            ),
            "routes[0].cost"
        );
        let same = format!(r#"{{"path":"/a",{limit}}}"#);
        assert_eq!(route(&format!("{same},{same}")), "routes[1].name");
    }
}
