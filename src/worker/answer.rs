//! Replies as the JSON of the HTTP API.

use super::call::Tell;
use crate::burst::Observation;
use crate::dedup::{MessageReply, Tag};
use crate::json::quoted;
use crate::limit::{Decision, Reason};
use crate::op::Reply;

/// The body that tells a reply; `None` where the reply is to something else.
pub(crate) fn body(tell: &Tell, reply: &Reply) -> Option<String> {
    Some(match (tell, reply) {
        (Tell::Decision(names), Reply::Decision(told)) => decision(names, told)?,
        (Tell::Done, _) => "{\"ok\":true}".into(),
        (Tell::Flag(name), Reply::Message(MessageReply::Flag(flag))) => {
            format!("{{\"{name}\":{flag}}}")
        }
        (Tell::Has, Reply::Message(reply)) => format!("{{\"has\":{}}}", reply.is_duplicate()),
        (Tell::Claim(token), Reply::Message(reply)) => claim(token.as_ref(), reply)?,
        (Tell::Observation, Reply::Observation(seen)) => observation(seen),
        _ => return None,
    })
}

fn decision(names: &[String], decision: &Decision) -> Option<String> {
    let reason = match decision.reason {
        Reason::Ok => "ok",
        Reason::Limited => "limited",
        Reason::Never => "never",
        Reason::Blocked => "blocked",
    };
    // A wait without end is null.
    let wait = decision.retry_after.map_or("null".into(), |wait| wait.as_ms().to_string());
    Some(format!(
        "{{\"allowed\":{},\"reason\":\"{reason}\",\"limit\":{},\"remaining\":{},\"retryAfterMs\":{wait},\"resetAfterMs\":{},\"limitName\":{},\"local\":false,\"dryRun\":false}}",
        decision.allowed(),
        decision.limit,
        decision.remaining,
        decision.reset_after.as_ms(),
        quoted(names.get(decision.decided_by)?),
    ))
}

fn claim(token: Option<&Tag>, reply: &MessageReply) -> Option<String> {
    Some(match reply {
        MessageReply::Fresh => {
            format!("{{\"status\":\"fresh\",\"token\":\"{}\"}}", token?.as_str())
        }
        MessageReply::InProgress { retry_after } => {
            format!("{{\"status\":\"in-progress\",\"retryAfterMs\":{}}}", retry_after.as_ms())
        }
        // After `first` there is no result, which is not the same as null.
        MessageReply::Duplicate { result: None } => "{\"status\":\"duplicate\"}".into(),
        MessageReply::Duplicate { result: Some(result) } => {
            format!("{{\"status\":\"duplicate\",\"result\":{result}}}")
        }
        MessageReply::Mismatch => "{\"status\":\"mismatch\"}".into(),
        MessageReply::Absent => "{\"status\":\"absent\"}".into(),
        MessageReply::Flag(_) => return None,
    })
}

fn observation(seen: &Observation) -> String {
    let Observation { fired, count, window_ends_in, replay } = seen;
    let ends = window_ends_in.as_ms();
    format!("{{\"fired\":{fired},\"count\":{count},\"windowEndsInMs\":{ends},\"replay\":{replay}}}")
}
