//! Problems that only show once a component's tools are known.

use crate::diagnostic::Diagnostic;
use crate::manifest::ComponentPolicy;
use crate::names::did_you_mean;

impl ComponentPolicy {
    /// Compares the manifest's tools with the tools that the component has, by their own names.
    /// Returns a problem for each that it does not have.
    #[must_use]
    pub fn check_exports(&self, exported: &[&str]) -> Vec<Diagnostic> {
        let missing = self.tools().iter().filter(|tool| !exported.contains(&tool.name()));
        let problems = missing.map(|tool| {
            let message = format!("component {:?} has no tool {:?}", self.name(), tool.name());
            let problem = Diagnostic::error("tools::unknown", message).at(tool.name_span());
            match did_you_mean(tool.name(), exported.iter().copied()) {
                Some(name) => problem.hint(format!("did you mean \"{name}\"?")),
                None if exported.is_empty() => problem,
                None => problem.hint("toolcell inspect shows the tools of a component"),
            }
        });
        problems.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{Source, Style, parse, render_all};

    #[test]
    fn tools_the_component_lacks_are_shown_at_their_lines() {
        let text = "version = 1\n[components.wx]\nsource = 'wx.wasm'\nprefix = 'p_'\n\
                    [components.wx.tools.forcast]\n[components.wx.tools.normals]\n[components.wx.tools.zzz]\n";
        let source = Source { name: "m.toml", text };
        let manifest = parse(&source).unwrap().manifest;
        let wx = manifest.component("wx").unwrap();
        assert_eq!(wx.check_exports(&["forcast", "normals", "zzz", "other", "not a name"]), []);
        let shown = render_all(&source, &wx.check_exports(&["forecast", "normals"]), Style::Plain);
        assert_eq!(
            shown,
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
"
        );
    }
}
