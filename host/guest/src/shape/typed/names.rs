//! The names of tools: those of functions in WIT, distinguished by interface, package and version
//! if needed.
//!
//! | a function's tool is | where |
//! |---|---|
//! | `get_forecast` | no other interface has such a function, nor the world itself |
//! | `days_get_forecast` | else, with its interface |
//! | `acme_weather_days_get_forecast` | else, with its package |
//! | `acme_weather_days_1_0_0_get_forecast` | else, with its version |
//! | that, with the end of a digest | else |
//!
//! Functions of the world keep their names. A name that two functions of interfaces could have, by
//! any of these rows, belongs to neither. So a new function of an interface never takes the name of
//! another one: at most, both get longer names.
use std::collections::{HashMap, HashSet};
use std::fmt;

use toolcell_policy::names::{NAME_CHARS_MAX, shortened};

/// A function by its names in WIT.
#[derive(Clone, Copy)]
pub(super) struct WitName<'a> {
    /// Without version, such as `acme:weather/days`; `None` for a function of the world.
    pub(super) interface: Option<&'a str>,
    /// Of the interface, such as `1.0.0`.
    pub(super) version: Option<&'a str>,
    /// Such as `get-forecast`.
    pub(super) name: &'a str,
}

/// A way to name a tool; `None` if a function has no such name.
type NamingRule = fn(&WitName<'_>) -> Option<String>;

/// The ways to name tools, the shortest name first.
const WAYS: [NamingRule; 5] = [of_function, with_interface, with_package, with_version, with_digest];

/// `acme:weather/days@1.0.0.get-forecast`
impl fmt::Display for WitName<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(interface) = self.interface {
            formatter.write_str(interface)?;
            if let Some(version) = self.version {
                write!(formatter, "@{version}")?;
            }
            formatter.write_str(".")?;
        }
        formatter.write_str(self.name)
    }
}

impl WitName<'_> {
    /// Bytes of its parts.
    pub(super) fn bytes(&self) -> usize {
        self.interface.map_or(0, str::len) + self.version.map_or(0, str::len) + self.name.len()
    }

    /// True if this is its text, with or without its version.
    pub(super) fn is(&self, written: &str) -> bool {
        let Some(interface) = self.interface else { return written == self.name };
        let Some((of, name)) = written.rsplit_once('.') else { return false };
        let Some(rest) = of.strip_prefix(interface).filter(|_| name == self.name) else { return false };
        rest.is_empty() || rest.strip_prefix('@').is_some_and(|version| Some(version) == self.version)
    }

    /// The name of a tool that replaces this one, except for its version.
    fn tool(&self, name: &str) -> String {
        if name.len() <= NAME_CHARS_MAX {
            return name.to_owned();
        }
        shortened(name, &WitName { version: None, ..*self }.to_string())
    }
}

/// A tool's name for each of these functions, in their order; `None` if another one could have each
/// of its names.
pub(super) fn of_tools(functions: &[WitName<'_>]) -> Vec<Option<String>> {
    let of_world: Uses = uses(functions.iter().filter(|function| function.interface.is_none()));
    let of_all: Uses = uses(functions.iter());
    let own = |function: &WitName<'_>| {
        let uses = if function.interface.is_none() { &of_world } else { &of_all };
        possible(function).find(|name| uses.get(name) == Some(&1))
    };
    functions.iter().map(own).collect()
}

/// The number of functions that could have a name.
type Uses = HashMap<String, usize>;

fn uses<'a>(functions: impl Iterator<Item = &'a WitName<'a>>) -> Uses {
    let mut uses = Uses::new();
    for function in functions {
        // Two ways may give a function the same name.
        for name in possible(function).collect::<HashSet<String>>() {
            *uses.entry(name).or_default() += 1;
        }
    }
    uses
}

/// The names that a function could have, the shortest first.
fn possible(function: &WitName<'_>) -> impl Iterator<Item = String> {
    WAYS.iter().filter_map(|way| way(function))
}

fn of_function(function: &WitName<'_>) -> Option<String> {
    Some(function.tool(&plain(function.name))).filter(|name| !name.is_empty())
}

fn with_interface(function: &WitName<'_>) -> Option<String> {
    let interface = function.interface?;
    let short = interface.rsplit_once('/').map_or(interface, |(_, short)| short);
    Some(function.tool(&plain(&format!("{short}_{}", function.name))))
}

fn with_package(function: &WitName<'_>) -> Option<String> {
    Some(function.tool(&plain(&format!("{}_{}", function.interface?, function.name))))
}

fn with_version(function: &WitName<'_>) -> Option<String> {
    let name = plain(&format!("{}_{}_{}", function.interface?, function.version?, function.name));
    Some(shortened(&name, &function.to_string()))
}

/// A name made from all of its parts and a digest, for any characters.
fn with_digest(function: &WitName<'_>) -> Option<String> {
    let whole = function.to_string();
    // Long enough to be cut.
    Some(shortened(&format!("{:_<1$}", plain(&whole), NAME_CHARS_MAX + 1), &whole))
}

/// The text with `_` for `-` and for each character that a tool's name cannot have.
fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function of this name in WIT.
    fn read(written: &str) -> WitName<'_> {
        let Some((interface, name)) = written.rsplit_once('.') else {
            return WitName { interface: None, version: None, name: written };
        };
        let (interface, version) = match interface.split_once('@') {
            Some((interface, version)) => (interface, Some(version)),
            None => (interface, None),
        };
        WitName { interface: Some(interface), version, name }
    }

    fn named(written: &[&str]) -> Vec<String> {
        let functions: Vec<_> = written.iter().map(|written| read(written)).collect();
        of_tools(&functions).into_iter().map(|name| name.unwrap_or_else(|| "-".to_owned())).collect()
    }

    #[test]
    fn each_function_gets_the_shortest_name_that_is_its_own() {
        let long = "long-".repeat(20) + "name";
        for (written, names) in [
            (vec!["go", "a:b/c.stop-it"], vec!["go", "stop_it"]),
            (vec!["go", "a:b/c.go"], vec!["go", "c_go"]),
            (vec!["a:b/c.go", "a:b/d.go", "a:b/d.stop"], vec!["c_go", "d_go", "stop"]),
            (vec!["c-go", "a:b/c.go", "a:b/d.go"], vec!["c_go", "a_b_c_go", "d_go"]),
            (vec!["x:y/z.c-go", "a:b/c.go", "a:b/d.go"], vec!["z_c_go", "a_b_c_go", "d_go"]),
            (vec!["x:lib/api@1.0.0.run", "y:lib/api@1.0.0.run"], vec!["x_lib_api_run", "y_lib_api_run"]),
            (
                vec!["x:lib/api@1.0.0.run", "x:lib/api@2.0.0-rc.1.run"],
                vec!["x_lib_api_1_0_0_run", "x_lib_api_2_0_0_rc_1_run"],
            ),
            (vec!["api.go", "other.go"], vec!["api_go", "other_go"]),
            // Names that become equal.
            (vec!["a-b:c/d.go", "a:b-c/d.go"], vec!["a_b_c_d_go_a67c748c", "a_b_c_d_go_f4b04e9b"]),
            (vec![long.as_str(), "ok"], vec!["long_long_long_long_long_long_long_long_long_long_long_a24a3a0b", "ok"]),
            (vec!["a:b/c.é", "a:b/c.\u{1f980}"], vec!["a_b_c_b5311fce", "a_b_c_91da43a4"]),
        ] {
            assert_eq!(named(&written), names, "{written:?}");
            let backwards: Vec<&str> = written.iter().rev().copied().collect();
            let mut again = named(&backwards);
            again.reverse();
            assert_eq!(again, names, "the order of exports counts for nothing: {written:?}");
        }
    }

    #[test]
    fn a_name_is_a_tools_whatever_the_function_is_called_and_two_never_have_one() {
        let weird = "w".repeat(1 << 20);
        let functions: Vec<String> = (0..10_000).map(|number| format!("a:b{}/c@{number}.0.0.go", number % 7)).collect();
        let mut written: Vec<&str> = functions.iter().map(String::as_str).collect();
        written.extend([weird.as_str(), "a:b/c.", "(", "x:y/z@1.go", "x:y/z.go"]);
        let names = named(&written);
        let different: HashSet<&String> = names.iter().collect();
        assert_eq!(different.len(), written.len());
        for name in &names {
            assert_eq!(toolcell_policy::names::check_tool(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn one_more_function_renames_only_those_that_would_share_its_name() {
        let before = ["a:b/c.go", "a:b/c.stop", "a:b/d.c-stop"];
        assert_eq!(named(&before), ["go", "stop", "d_c_stop"]);
        let more = [&before[..], &["a:b/e.stop"]].concat();
        assert_eq!(named(&more), ["go", "a_b_c_stop", "d_c_stop", "e_stop"]);
    }

    #[test]
    fn one_more_function_of_an_interface_takes_no_name_from_another() {
        for (before, added) in [
            (vec!["a:b/c.go", "a:b/d.go"], "x:y/z.c-go"),
            (vec!["a:b/c.go"], "x:y/c.go"),
            (vec!["a:b/c.go", "a:b/d.stop"], "a:b/d.a-b-c-go"),
            (vec!["x:lib/api@1.0.0.run"], "x:lib/api@2.0.0.run"),
        ] {
            let old = named(&before);
            let new = named(&[&before[..], &[added]].concat());
            for (place, name) in new.iter().enumerate() {
                let had = old.iter().position(|old| old == name);
                assert!(had.is_none_or(|had| had == place), "{name} was that of {had:?}: {before:?} and {added}");
            }
        }
    }

    #[test]
    fn the_longest_names_keep_theirs_whatever_version_they_have() {
        let long = |version: &str| format!("a:b/c@{version}.{}", "x".repeat(80));
        assert_eq!(named(&[long("1.0.0").as_str()]), named(&[long("1.0.1").as_str()]));
    }

    #[test]
    fn a_function_is_found_with_its_version_and_without() {
        let function = read("a:b/c@1.0.0.go");
        for written in ["a:b/c@1.0.0.go", "a:b/c.go"] {
            assert!(function.is(written), "{written}");
        }
        for written in ["a:b/c@1.0.1.go", "a:b/c@.go", "a:b/cd.go", "a:b/c.stop", "go", ".go", "c.go", ""] {
            assert!(!function.is(written), "{written}");
        }
        assert!(read("go").is("go") && !read("go").is("a:b/c.go"));
        assert_eq!(function.to_string(), "a:b/c@1.0.0.go");
    }
}
