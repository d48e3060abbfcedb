//! The cost of grants to a call that does not use them: one tool of one component, with no grants
//! and with many.

use crate::frame::Ask;
use crate::goals::Goal;
use crate::lane::{self, FIRST_CALLS, Lane, Lanes, Seen, Shared};
use crate::link::{Link, Wire};
use crate::options::Options;
use crate::report::Section;
use crate::serving::Serving;
use crate::subject::Subject;

const NOTE: &str = "\
above bare, × bare: of a call with grants, above the same call without; of one without, above the bare pipe.
The tool is one of a component that imports files and HTTP, and uses neither in this call. Of the mounts one is to be written,
one is scratch space, two are to be read.";

/// The tool that returns its text. It makes no request unless its arguments name one.
const TOOL: Ask = Ask::Named("http_again");

const PIPE: &str = "bare pipe";
const NONE: &str = "no grants";
const GRANTS: &str = "4 mounts, 20 HTTP rules";
const NONE_FRESH: &str = "no grants, prewarm = 0";
const GRANTS_FRESH: &str = "4 mounts, 20 HTTP rules, prewarm = 0";

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(40, 2);
    let calls = options.count(250, 20);
    let lane =
        |name, link: &Shared, ask, baseline| Lane { name, link: link.clone(), ask, baseline, seen: Seen::default() };
    let fresh = "prewarm = 0\n";
    let none = Serving::reaching("", "")?;
    let none_fresh = Serving::reaching(fresh, "")?;
    let grants = Serving::granted("")?;
    let grants_fresh = Serving::granted(fresh)?;
    let mut lanes = Lanes::new(vec![
        lane(PIPE, &lane::bare(Wire::Pipes)?, Ask::Line, PIPE),
        lane(NONE, &server(&none.subject())?, TOOL, PIPE),
        lane(GRANTS, &server(&grants.subject())?, TOOL, NONE),
        lane(NONE_FRESH, &server(&none_fresh.subject())?, TOOL, PIPE),
        lane(GRANTS_FRESH, &server(&grants_fresh.subject())?, TOOL, NONE_FRESH),
    ]);
    for round in 0..rounds {
        lanes.round(round, calls)?;
    }
    let measured = lanes.above_baseline(Goal::GrantsAboveNone, GRANTS_FRESH).into_iter().collect();
    let title = "Grants: a call that has them, and one that has none";
    Ok(Section { title, note: NOTE.to_owned(), columns: lane::COLUMNS, rows: lanes.rows(), measured })
}

fn server(subject: &Subject) -> anyhow::Result<Shared> {
    let mut link = Link::open(subject, Wire::Pipes)?;
    let mut request = Vec::new();
    for id in 0..FIRST_CALLS {
        link.ask(TOOL, id, &mut request)?;
    }
    Ok(Shared::new(link.into()))
}
