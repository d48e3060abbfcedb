//! The walls that a process must have before it runs anything.

/// The key of the manifest that names walls that may be missing.
const KEY: &str = "walls_without";

/// The walls that must stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequiredWalls {
    /// A process runs with whatever walls the machine provides.
    #[default]
    Best,
    /// All but these, by their names.
    AllBut(Vec<String>),
}

impl RequiredWalls {
    /// True if a process may do without this wall.
    #[must_use]
    pub fn may_miss(&self, wall: &str) -> bool {
        match self {
            Self::Best => true,
            Self::AllBut(without) => without.iter().any(|name| name == wall),
        }
    }

    /// Checks the missing walls of a process, each by its name with the reason.
    ///
    /// # Errors
    /// One sentence, which names those that it must have.
    pub fn check(&self, missing: &[(String, String)]) -> Result<(), String> {
        let needed: Vec<&(String, String)> = missing.iter().filter(|(wall, _)| !self.may_miss(wall)).collect();
        if needed.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> = needed.iter().map(|(wall, reason)| format!("{wall} ({reason})")).collect();
        let names: Vec<String> = needed.iter().map(|(wall, _)| format!("{wall:?}")).collect();
        let reasons = reasons.join("; ");
        let names = names.join(", ");
        Err(format!("not every wall stands: {reasons}; to do without, add {names} to {KEY} in [server]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_missing_is_no_reason_to_refuse() {
        let missing = ["landlock", "core"].map(|wall| (wall.to_owned(), "left away".to_owned()));
        let without = |names: &[&str]| RequiredWalls::AllBut(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(RequiredWalls::Best.check(&missing), Ok(()));
        assert_eq!(without(&[]).check(&[]), Ok(()));
        assert_eq!(without(&["core", "landlock", "memory"]).check(&missing), Ok(()));
        let refused = without(&["core"]).check(&missing).unwrap_err();
        let expected = "landlock (left away); to do without, add \"landlock\" to walls_without in [server]";
        assert_eq!(refused, format!("not every wall stands: {expected}"));
    }
}
