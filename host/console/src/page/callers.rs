//! The view of callers.

use maud::{Markup, html};

use crate::figure::{bytes, count, fuel, moment, or_none};
use crate::frame::{copy, form, id, search};
use crate::model::{CallerDay, Callers, Frame, FreshToken, LoginRow, RefusedCaller, TokenRow};
use crate::picture;
use crate::routes;
use crate::table::{Row, actions, column, figures, table};
use crate::text::{line, list, name};

pub fn view(frame: &Frame, callers: &Callers) -> Markup {
    html! {
        h1 { "Callers" }
        @if let Some(fresh) = &callers.fresh { (made(fresh)) }
        (search(routes::CALLERS, "Search names of rules, callers and logins", &callers.query, None))
        h2 { "Who may call what" }
        (rules(callers))
        @if let Some(tokens) = &callers.tokens {
            h2 { "Tokens" }
            (token_table(frame, callers, tokens))
            (new_token(frame))
        }
        @if let Some(logins) = &callers.logins {
            h2 { "Logins" }
            (login_table(frame, callers, logins))
        }
        h2 { "Usage" }
        (usage(callers))
        h2 { "Refused" }
        (refused(callers))
    }
}

fn made(fresh: &FreshToken) -> Markup {
    html! {
        section.notice role="status" aria-label="New token" {
            p { "The token of " strong { (line(&fresh.name)) } ". It is shown once:" }
            pre.block #fresh-token tabindex="0" { (line(&fresh.secret)) }
            (copy("fresh-token", "the token"))
        }
    }
}

/// What a table says that has no rows: `text`, if nothing was searched for.
fn empty<'a>(callers: &Callers, text: &'a str) -> &'a str {
    if callers.query.trim().is_empty() { text } else { "No name matches." }
}

fn rules(callers: &Callers) -> Markup {
    let columns = [
        column("Rule"),
        column("Callers"),
        column("Tools"),
        figures("Tools now"),
        column("Prompts"),
        column("Skills"),
        column("Bounds"),
        column("Stands in"),
    ];
    let rows = callers.rules.iter().map(|rule| {
        Row::of(vec![
            html! { (name(&rule.name)) },
            patterns(&rule.who),
            patterns(&rule.tools),
            html! { (count(rule.matching)) },
            patterns(&rule.prompts),
            patterns(&rule.skills),
            html! { (name(&rule.bounds)) },
            picture::place(rule.place.as_ref(), "differs in the file now"),
        ])
    });
    let none = empty(callers, "The manifest has no rules: every caller may call every tool.");
    table("Rules of the manifest", &columns, rows, none)
}

fn patterns(patterns: &[String]) -> Markup {
    html! { @if patterns.is_empty() { span.dim { "none" } } @else { (list(patterns)) } }
}

fn token_table(frame: &Frame, callers: &Callers, tokens: &[TokenRow]) -> Markup {
    let columns =
        [column("Caller"), column("Scopes"), column("Made"), column("Ends"), column("Last use"), actions("Revoke")];
    let columns = if frame.decide { &columns[..] } else { columns.get(..5).unwrap_or(&[]) };
    html! {
        (table("Tokens (times in UTC)", columns, tokens.iter().map(|token| token_row(frame, token)), empty(callers, "There are no tokens.")))
        @if !tokens.is_empty() { p.dim { "Last uses are those that this process saw since it started." } }
    }
}

fn token_row(frame: &Frame, token: &TokenRow) -> Row {
    let time = |at: Option<crate::model::Moment>, none: &'static str| {
        html! {
            @match at { Some(at) => (moment(at)), None => span.dim { (none) } }
        }
    };
    Row::of(vec![
        html! {
            (name(&token.name))
            @if token.revoked { " " span.chip.bad { "revoked" } } @else if token.ended { " " span.chip.bad { "ended" } }
        },
        patterns(&token.scopes),
        time(token.made, "unknown"),
        time(token.expires, "never"),
        time(token.last_used, "not seen"),
        html! {
            @if frame.decide && !token.revoked {
                details id=(id("revoke", &token.id)) {
                    summary { "Revoke…" }
                    (form(frame, routes::REVOKE_TOKEN, &[(routes::ID, &token.id)], &html! { button.bad { "Revoke this token" } }))
                }
            }
        },
    ])
}

fn login_table(frame: &Frame, callers: &Callers, logins: &[LoginRow]) -> Markup {
    let columns = [column("Caller"), column("Login"), column("State"), actions("Revoke")];
    let columns = if frame.decide { &columns[..] } else { columns.get(..3).unwrap_or(&[]) };
    table(
        "Logins that callers have of their own",
        columns,
        logins.iter().map(|login| login_row(frame, login)),
        empty(callers, "No caller is logged in."),
    )
}

fn login_row(frame: &Frame, login: &LoginRow) -> Row {
    let fields = [(routes::LOGIN, login.login.as_str()), (routes::NAME, login.caller.as_str())];
    Row::of(vec![
        html! { (name(&login.caller)) },
        html! { (name(&login.login)) },
        html! { (line(&login.state)) },
        html! {
            @if frame.decide {
                details id=(id("logout", &login.id)) {
                    summary { "Revoke…" }
                    (form(frame, routes::REVOKE_LOGIN, &fields, &html! { button.bad { "Revoke this login" } }))
                }
            }
        },
    ])
}

fn usage(callers: &Callers) -> Markup {
    let columns =
        [column("Caller"), column("Day (UTC)"), figures("Calls"), figures("Failed"), figures("Fuel"), figures("Bytes")];
    let none = empty(callers, "No call has ended in the last seven days.");
    html! {
        (table("Calls by caller and day, of the last seven days", &columns, callers.days.iter().map(usage_row), none))
        p.dim { "These are calls that this process ended since it started. " code { "toolcell usage" } " reads the audit." }
    }
}

fn usage_row(used: &CallerDay) -> Row {
    Row::of(vec![
        html! { (name(&used.caller)) },
        html! { time datetime=(used.day.date()) { (used.day.date()) } },
        html! { (count(used.calls)) },
        html! { span class=[(used.failed > 0).then_some("t-bad")] { (count(used.failed)) } },
        html! { (fuel(used.fuel)) },
        html! { (bytes(used.bytes)) },
    ])
}

fn new_token(frame: &Frame) -> Markup {
    let inputs = html! {
        div.fields.short {
            div.field {
                label for="token-name" { "Caller" }
                input #token-name name=(routes::NAME) type="text" required maxlength="64" autocomplete="off" spellcheck="false";
            }
            div.field {
                label for="token-scopes" { "Scopes, spaces between" }
                input #token-scopes name=(routes::SCOPES) type="text" maxlength="512" autocomplete="off" spellcheck="false";
            }
            div.field {
                label for="token-expires" { "Ends after" }
                input #token-expires name=(routes::EXPIRES) type="text" maxlength="16" placeholder="30d, or never" autocomplete="off";
            }
        }
        button.main { "Make a token" }
    };
    html! {
        @if frame.decide {
            details #new-token { summary { "New token…" } (form(frame, routes::NEW_TOKEN, &[], &inputs)) }
        }
    }
}

fn refused(callers: &Callers) -> Markup {
    let columns = [column("Who"), column("Reason"), figures("Status"), figures("Times"), column("Last (UTC)")];
    let none = empty(callers, "Nobody was refused in the last hour.");
    html! {
        (table("Refused in the last hour, grouped", &columns, callers.refused.iter().map(refused_row), none))
        @if callers.refused_beyond > 0 { p.more { (count(callers.refused_beyond)) " further refusals are not in this table." } }
    }
}

fn refused_row(refused: &RefusedCaller) -> Row {
    Row::of(vec![
        html! { (name(&refused.who)) },
        html! { (line(&refused.reason)) },
        or_none(refused.status.map(|status| status.to_string())),
        html! { (count(refused.count)) },
        moment(refused.last),
    ])
}
