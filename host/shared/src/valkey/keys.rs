//! Names of keys, as the crate's documentation lists them.
use crate::digest::digest;

/// Version of the keys and their values.
const VERSION: u32 = 1;

/// Names of the keys of places.
#[derive(Clone, Debug)]
pub struct RunKeys {
    /// The places in use.
    pub places: String,
    /// The replicas that wait for one.
    pub replicas: String,
}

/// Names of the keys of requests.
#[derive(Clone, Debug)]
pub struct AskedKeys {
    pub request: String,
    /// All of the caller, by expiry.
    pub all: String,
    /// The bytes of their answers.
    pub bytes: String,
}

/// Key names with one prefix.
#[derive(Debug)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    pub fn new(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}:{VERSION}") }
    }

    pub fn rate(&self, caller: &str, scope: &str) -> String {
        format!("{}:rate:{{{}}}:{}", self.prefix, digest(caller), digest(scope))
    }

    pub fn run(&self, name: &str) -> RunKeys {
        let places = format!("{}:run:{{{}}}", self.prefix, digest(name));
        RunKeys { replicas: format!("{places}:wait"), places }
    }

    pub fn used(&self, name: &str) -> String {
        format!("{}:used:{{{}}}", self.prefix, digest(name))
    }

    /// The key of a request, and the keys of all requests of its caller.
    pub fn asked(&self, caller: &str, name: &str) -> AskedKeys {
        let all = format!("{}:asked:{{{}}}", self.prefix, digest(caller));
        AskedKeys { request: format!("{all}:{}", digest(name)), bytes: format!("{all}:bytes"), all }
    }

    pub fn noted(&self, name: &str) -> String {
        format!("{}:noted:{{{}}}", self.prefix, digest(name))
    }

    pub fn set(&self, name: &str) -> String {
        format!("{}:set:{{{}}}", self.prefix, digest(name))
    }

    /// Kept resources: the prefix of their keys, and this name.
    pub fn shelf(&self, name: &str) -> String {
        format!("{}:res:{{all}}:{name}", self.prefix)
    }

    /// Tasks, or paused runs: the prefix of their keys, and this name.
    pub fn task(&self, room: &str, name: &str) -> String {
        format!("{}:{room}:{{all}}:{name}", self.prefix)
    }

    /// The state of a component: entries and order of a bucket, and the component's accounts and
    /// last serial.
    pub fn kept(&self, component: &str, namespace: &str, bucket: &str) -> [String; 4] {
        let component = self.component(component);
        // Names of buckets contain no slash.
        let bucket = digest(&format!("{namespace}/{bucket}"));
        [
            format!("{component}:entries:{bucket}"),
            format!("{component}:order:{bucket}"),
            format!("{component}:accounts"),
            format!("{component}:serial"),
        ]
    }

    /// The key of a component's change, which has a name of its own.
    pub fn change(&self, component: &str, request: &str) -> String {
        format!("{}:change:{request}", self.component(component))
    }

    /// A namespace of a component.
    pub fn namespace(namespace: &str) -> String {
        digest(namespace)
    }

    fn component(&self, component: &str) -> String {
        format!("{}:kv:{{{}}}", self.prefix, digest(component))
    }

    /// A channel of the bus.
    pub fn channel(&self, name: &str) -> String {
        format!("{}:bus:{name}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded_and_say_nothing_of_whom_they_are_about() {
        let keys = Keys::new(&"p".repeat(64));
        let name = "ann ".repeat(1_000);
        let request = "0123456789abcdef-ffffffffffffffff";
        let mut all = vec![
            keys.rate(&name, &name),
            keys.run(&name).replicas,
            keys.asked(&name, &name).request,
            keys.asked(&name, &name).bytes,
            keys.used(&name),
            keys.noted(&name),
            keys.set(&name),
            keys.shelf(&format!("bytes:origin:{}:{}", digest(&name), digest(&name))),
            keys.task("paused", &format!("bytes:caller:{}", digest(&name))),
            keys.change(&name, request),
        ];
        all.extend(keys.kept(&name, &name, &name));
        for key in all {
            assert!(key.len() <= 220 && !key.contains("ann"), "{key}");
        }
        let keys = Keys::new("tools");
        let of_nobody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(keys.used(""), format!("tools:1:used:{{{of_nobody}}}"));
        assert_eq!(keys.change("", "a-1"), format!("tools:1:kv:{{{of_nobody}}}:change:a-1"));
        assert_ne!(keys.kept("", "a", "b"), keys.kept("", "", "b"));
        assert_eq!(keys.rate("", ""), format!("tools:1:rate:{{{of_nobody}}}:{of_nobody}"));
    }
}
