//! Counters with names, over any store. Holds nothing about tools.

use serde::Serialize;
use toolkit::Failure;

use crate::storage::Storage;

/// A counter.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Its name, as it was written first but for blanks and capitals.
    pub name: String,
    /// How far it has counted.
    pub value: u64,
}

/// Counts on.
pub fn add(storage: &mut impl Storage, name: &str, by: u64) -> Result<Counter, Failure> {
    let name = normal(name)?;
    let value = storage.increment(&name, by)?;
    Ok(Counter { name, value })
}

/// All counters by name, or those whose names begin so.
pub fn list(storage: &mut impl Storage, prefix: &str) -> Result<Vec<Counter>, Failure> {
    let prefix = prefix.trim().to_lowercase();
    let mut counters: Vec<Counter> = storage.all()?.into_iter().map(|(name, value)| Counter { name, value }).collect();
    counters.retain(|counter| counter.name.starts_with(&prefix));
    counters.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(counters)
}

/// Forgets a counter, and says how far it had counted: one that never counted, to 0.
pub fn reset(storage: &mut impl Storage, name: &str) -> Result<Counter, Failure> {
    let name = normal(name)?;
    let value = storage.get(&name)?.unwrap_or(0);
    storage.delete(&name)?;
    Ok(Counter { name, value })
}

/// Models write "Coffee" one time and "coffee " another.
fn normal(name: &str) -> Result<String, Failure> {
    let name = name.trim().to_lowercase();
    if name.is_empty() { Err(Failure::invalid("a counter's name has at least one letter")) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Counter, add, list, reset};
    use crate::storage::Storage;
    use std::collections::HashMap;
    use toolkit::Failure;

    #[derive(Default)]
    struct Memory(HashMap<String, u64>);

    impl Storage for Memory {
        fn increment(&mut self, key: &str, by: u64) -> Result<u64, Failure> {
            let value = self.0.entry(key.to_owned()).or_default();
            *value += by;
            Ok(*value)
        }
        fn get(&mut self, key: &str) -> Result<Option<u64>, Failure> {
            Ok(self.0.get(key).copied())
        }
        fn all(&mut self) -> Result<Vec<(String, u64)>, Failure> {
            Ok(self.0.iter().map(|(key, value)| (key.clone(), *value)).collect())
        }
        fn delete(&mut self, key: &str) -> Result<(), Failure> {
            self.0.remove(key);
            Ok(())
        }
    }

    fn counter(name: &str, value: u64) -> Counter {
        Counter { name: name.to_owned(), value }
    }

    #[test]
    fn a_counter_counts_on_however_its_name_is_written() {
        let mut storage = Memory::default();
        assert_eq!(add(&mut storage, "Coffee", 1).unwrap(), counter("coffee", 1));
        assert_eq!(add(&mut storage, " coffee ", 2).unwrap(), counter("coffee", 3));
        assert_eq!(add(&mut storage, "coffee", 0).unwrap(), counter("coffee", 3));
        assert!(matches!(add(&mut storage, "  ", 1), Err(Failure::InvalidInput(_))));
    }

    #[test]
    fn counters_are_listed_by_name() {
        let mut storage = Memory::default();
        for name in ["tea", "coffee: black", "Coffee: white"] {
            add(&mut storage, name, 1).unwrap();
        }
        let names = |storage: &mut Memory, prefix: &str| -> Vec<String> {
            list(storage, prefix).unwrap().into_iter().map(|counter| counter.name).collect()
        };
        assert_eq!(names(&mut storage, ""), ["coffee: black", "coffee: white", "tea"]);
        assert_eq!(names(&mut storage, "COFFEE"), ["coffee: black", "coffee: white"]);
        assert!(names(&mut storage, "milk").is_empty());
    }

    #[test]
    fn a_counter_that_is_reset_begins_again() {
        let mut storage = Memory::default();
        add(&mut storage, "tea", 7).unwrap();
        assert_eq!(reset(&mut storage, "Tea").unwrap(), counter("tea", 7));
        assert!(list(&mut storage, "").unwrap().is_empty());
        assert_eq!(reset(&mut storage, "tea").unwrap(), counter("tea", 0));
        assert_eq!(add(&mut storage, "tea", 1).unwrap(), counter("tea", 1));
    }
}
