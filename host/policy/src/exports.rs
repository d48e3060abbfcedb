//! Problems that show only once a component's tools are known. Must not hold: how they become
//! known.

use crate::diagnostic::Diagnostic;
use crate::manifest::ComponentPolicy;
use crate::names::{check_tool, did_you_mean};

impl ComponentPolicy {
    /// Compares what the manifest says of single tools, and its prefix, with the tools the
    /// component really has, by their own names. Gives every problem: a tool the component does not
    /// have, and a name that its prefix makes too long. Names that are no tool names by themselves
    /// are for whoever checks the component's definitions.
    #[must_use]
    pub fn check_exports(&self, exported: &[&str]) -> Vec<Diagnostic> {
        let missing = self.tools().iter().filter(|tool| !exported.contains(&tool.name()));
        let missing = missing.map(|tool| {
            let message = format!("component {:?} has no tool {:?}", self.name(), tool.name());
            let problem = Diagnostic::error("tools::unknown", message).at(tool.name_span());
            match did_you_mean(tool.name(), exported.iter().copied()) {
                Some(name) => problem.hint(format!("did you mean \"{name}\"?")),
                None if exported.is_empty() => problem,
                None => problem.hint("toolcell inspect shows the tools of a component"),
            }
        });
        missing.chain(self.check_prefix(exported)).collect()
    }

    fn check_prefix(&self, exported: &[&str]) -> Vec<Diagnostic> {
        let Some(span) = self.prefix_span() else { return Vec::new() };
        let named = exported.iter().filter(|name| check_tool(name).is_ok());
        let too_long = named.filter_map(|name| Some((name, self.exposed_name(name).err()?)));
        let problems = too_long.map(|(name, error)| {
            let message = format!("tool name {name:?} with this prefix {error}");
            Diagnostic::error("tools::name", message).at(span.clone()).hint("shorten the prefix")
        });
        problems.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{Source, Style, parse, render_all};

    #[test]
    fn tools_the_component_lacks_and_names_too_long_are_shown_at_their_lines() {
        let text = "version = 1\n[components.wx]\nsource = 'wx.wasm'\nprefix = 'p_'\n\
                    [components.wx.tools.forcast]\n[components.wx.tools.normals]\n[components.wx.tools.zzz]\n";
        let source = Source { name: "m.toml", text };
        let manifest = parse(&source).unwrap().manifest;
        let wx = manifest.component("wx").unwrap();
        assert_eq!(wx.check_exports(&["forcast", "normals", "zzz", "other", "not a name"]), []);
        let long = "n".repeat(63);
        let shown = render_all(&source, &wx.check_exports(&["forecast", "normals", &long]), Style::Plain);
        assert_eq!(
            shown,
            format!(
                "\
error[tools::unknown]: component \"wx\" has no tool \"forcast\"
 --> m.toml:5:22
  |
5 | [components.wx.tools.forcast]
  |                      ^^^^^^^
  |
  = hint: did you mean \"forecast\"?

error[tools::unknown]: component \"wx\" has no tool \"zzz\"
 --> m.toml:7:22
  |
7 | [components.wx.tools.zzz]
  |                      ^^^
  |
  = hint: toolcell inspect shows the tools of a component

error[tools::name]: tool name \"{long}\" with this prefix has 65 characters, 64 are allowed
 --> m.toml:4:10
  |
4 | prefix = 'p_'
  |          ^^^^
  |
  = hint: shorten the prefix
"
            )
        );
    }
}
