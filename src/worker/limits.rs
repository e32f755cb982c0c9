//! Limits as JSON states them: an object of the options of `api.d.ts`, or a list of them.

use super::fault::Fault;
use super::fields::Fields;
use crate::json::Json;
use crate::limit::{Algorithm, Limit, LimitOptions, Limits};
use crate::time::Millis;

/// Validated limits, with the names that their user gave them.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) limits: Limits,
    pub(crate) names: Vec<String>,
    /// Units per window, as they were stated.
    pub(crate) quotas: Vec<(u64, Millis)>,
}

impl Named {
    /// The limits under a field, which faults call `at`.
    pub(crate) fn take(fields: &mut Fields<'_>, name: &str, at: &str) -> Result<Self, Fault> {
        let expected = "an object, or a list of objects";
        let json = fields.take(name).ok_or_else(|| fields.fault(name, expected))?;
        Self::read(json, at)
    }

    fn read(json: Json<'_>, at: &str) -> Result<Self, Fault> {
        let given = match json.items() {
            Some(items) => {
                let at = |index| format!("{at}[{index}]");
                items.into_iter().enumerate().map(|(index, item)| (at(index), item)).collect()
            }
            None => vec![(at.to_owned(), json)],
        };
        let options = given.into_iter().map(|(at, item)| options(item, &at));
        let options = options.collect::<Result<Vec<_>, _>>()?;
        let names = options.iter().map(|(options, _)| options.name.clone()).collect();
        let quotas = options.iter().map(|(options, _)| (options.limit, options.window)).collect();
        let limits = options.into_iter().map(|(_, limit)| limit).collect();
        let limits = Limits::new(limits).map_err(|error| Fault::limit(at, &error))?;
        Ok(Self { limits, names, quotas })
    }
}

fn options(json: Json<'_>, at: &str) -> Result<(LimitOptions, Limit), Fault> {
    let mut fields = Fields::of(json, at, Fault::policy)?;
    let limit = fields.count("limit")?;
    let mut options = LimitOptions::new(limit, fields.duration("window")?);
    if let Some(name) = fields.text_or_none("name")? {
        options.name = String::from_utf8_lossy(&name).into_owned();
    }
    let algorithms = "\"leaky-bucket\", \"token-bucket\", \"fixed-window\" or \"sliding-window\"";
    let named = |json: Json<'_>| Algorithm::named(core::str::from_utf8(&json.text()?).ok()?);
    options.algorithm = fields.read("algorithm", algorithms, named)?.unwrap_or_default();
    options.burst = fields.count_or_none("burst")?;
    options.strict = fields.read("strict", "true or false", Json::flag)?.unwrap_or(false);
    fields.end()?;
    let limit = Limit::new(&options)
        .map_err(|error| Fault::policy(format!("{at}.{}", error.option), &error.expected))?;
    Ok((options, limit))
}
