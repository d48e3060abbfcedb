//! The access list of the documentation: what the user of replicas may do on the server.
use std::path::Path;

/// The page that has the list.
const PAGE: &str = "host/docs/shared-state.md";

/// The rules of the documented user.
#[derive(Clone, Debug)]
pub struct Access {
    /// Rules for keys, channels and commands. The prefix of tests is any.
    pub alone: Vec<String>,
    /// Commands that the user needs besides in a cluster.
    pub further_in_cluster: Vec<String>,
}

impl Access {
    /// As the page lists them.
    pub fn documented() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = here.ancestors().map(|folder| folder.join(PAGE)).find(|page| page.is_file()).unwrap();
        let page = std::fs::read_to_string(page).unwrap();
        let (_, list) = page.split_once("ACL SETUSER toolcell\n").unwrap();
        let (list, rest) = list.split_once("```").unwrap();
        let rules = list.split_whitespace().skip_while(|rule| *rule != "resetchannels");
        let alone: Vec<String> = rules.map(|rule| rule.replace("toolcell:*", "*")).collect();
        assert!(alone.contains(&"-@all".to_owned()), "{alone:?}");
        let (_, further) = rest.split_once("The user also needs ").unwrap();
        let (further, _) = further.split_once(".\n").unwrap();
        let further_in_cluster = further.split('`').filter(|word| word.starts_with('+')).map(str::to_owned).collect();
        Self { alone, further_in_cluster }
    }

    /// The commands of the list, without their signs.
    pub fn commands(rules: &[String]) -> Vec<String> {
        let mut commands: Vec<_> = rules.iter().filter_map(|rule| rule.strip_prefix('+')).map(str::to_owned).collect();
        commands.sort();
        commands
    }
}
