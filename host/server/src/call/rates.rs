//! The rates that a call counts against: its caller's over all tools, and its tool's.
use toolcell_policy::quantity::Rate;
use toolcell_shared::{AllowanceName, SharedState, Taken};

use crate::catalog::{Admission, QueueRefusal, in_whole_seconds, pace};

/// Callers with an allowance over all tools of their own. Beyond these, new ones share one.
const CALLERS_MAX: usize = 10_000;

/// Takes one call of this caller from its rate over all tools, if it has one, and from the tool's;
/// from neither where one is used up. That is one question, as the state may be on another machine.
pub async fn take(
    state: &dyn SharedState,
    caller: &str,
    rate: Option<Rate>,
    admission: &Admission,
) -> Result<(), QueueRefusal> {
    let of_tool = admission.allowance();
    let Some(rate) = rate else {
        return match state.take(caller, &[of_tool]).await? {
            Taken::All => Ok(()),
            Taken::Refused { wait, .. } => Err(admission.too_often(wait)),
        };
    };
    let scope = format!("caller\n{rate}");
    let of_caller = AllowanceName { scope: &scope, pace: pace(rate), callers_max: CALLERS_MAX };
    match state.take(caller, &[of_caller, of_tool]).await? {
        Taken::All => Ok(()),
        Taken::Refused { place: 0, wait } => {
            Err(QueueRefusal::CallerTooOften { rate: rate.to_string(), wait: in_whole_seconds(wait) })
        }
        Taken::Refused { wait, .. } => Err(admission.too_often(wait)),
    }
}

/// Takes one from the rate of this caller over all tools, for a request other than a call.
pub async fn take_of_caller(state: &dyn SharedState, caller: &str, rate: Rate) -> Result<(), QueueRefusal> {
    let scope = format!("caller\n{rate}");
    let of_caller = AllowanceName { scope: &scope, pace: pace(rate), callers_max: CALLERS_MAX };
    match state.take(caller, &[of_caller]).await? {
        Taken::All => Ok(()),
        Taken::Refused { wait, .. } => {
            Err(QueueRefusal::CallerTooOften { rate: rate.to_string(), wait: in_whole_seconds(wait) })
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_policy::quantity::Per;
    use toolcell_policy::{Limit, Limits};
    use toolcell_shared::Embedded;

    use super::*;

    fn per_hour(count: u64) -> Rate {
        Rate { count, per: Per::Hour }
    }

    fn admission(rate: Rate) -> Admission {
        Admission::new(&Limits::default().with(Limit::Rate, rate.number()).unwrap(), "a", "b")
    }

    #[tokio::test]
    async fn a_caller_calls_as_often_as_it_may_and_others_are_not_held_up() {
        let state = Embedded::default();
        let admission = admission(per_hour(600));
        for caller in ["one", "two"] {
            for _ in 0..2 {
                assert_eq!(take(&state, caller, Some(per_hour(2)), &admission).await, Ok(()));
            }
            let refusal = take(&state, caller, Some(per_hour(2)), &admission).await.unwrap_err();
            assert_eq!(
                refusal.to_string(),
                "too many calls: more than 2/h by this caller (\"rate\" in [callers]); try again in 30m"
            );
        }
    }

    #[tokio::test]
    async fn showing_another_token_in_between_gives_nothing_back() {
        let state = Embedded::default();
        let admission = admission(per_hour(600));
        let less = Some(per_hour(1));
        let more = Some(per_hour(2));
        assert_eq!(take(&state, "one", less, &admission).await, Ok(()));
        for allowed in [true, true, false] {
            assert_eq!(take(&state, "one", more, &admission).await.is_ok(), allowed);
            assert!(take(&state, "one", less, &admission).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_call_that_its_tool_refuses_costs_its_caller_nothing() {
        let state = Embedded::default();
        let rare = admission(per_hour(1));
        let other = admission(per_hour(600));
        let rate = Some(per_hour(2));
        assert_eq!(take(&state, "one", rate, &rare).await, Ok(()));
        for _ in 0..3 {
            let refusal = take(&state, "one", rate, &rare).await.unwrap_err();
            let expected = "too many calls: more than 1/h of this tool (limit \"rate\"); try again in 1h";
            assert_eq!(refusal.to_string(), expected);
        }
        assert_eq!(take(&state, "one", rate, &other).await, Ok(()));
        assert!(take(&state, "one", rate, &other).await.is_err());
    }
}
