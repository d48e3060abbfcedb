//! The methods of requests and the names of notifications. Each is declared here once, and parsed
//! once, when its frame is decoded.

use std::borrow::Cow;

use crate::frame::RpcError;

/// Declares an enum whose variants each have one row of facts.
macro_rules! declare {
    (
        $(#[$outer:meta])*
        $visibility:vis enum $name:ident: $facts:ty {
            $($(#[$doc:meta])* $variant:ident => $row:expr,)*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visibility enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All methods.
            $visibility const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];

            const fn facts(self) -> $facts {
                match self {
                    $(Self::$variant => $row,)*
                }
            }
        }
    };
}

declare! {
    /// A method of requests that this server answers, in any revision.
    pub enum Method: Facts {
        /// Opens a legacy session.
        Initialize => legacy("initialize"),
        /// Answered at once, with an empty result.
        Ping => legacy("ping"),
        /// Returns the server's revisions and capabilities.
        Discover => modern("server/discover"),
        /// Lists the tools, page by page.
        ListTools => both("tools/list"),
        /// Calls a tool.
        CallTool => both("tools/call").named_by("name"),
        /// Opens a subscription.
        Listen => modern("subscriptions/listen"),
        /// Lists the resources, page by page.
        ListResources => both("resources/list").of(Feature::Resources),
        /// Lists the templates of resources, page by page.
        ListTemplates => both("resources/templates/list").of(Feature::Resources),
        /// Reads a resource.
        ReadResource => both("resources/read").of(Feature::Resources).named_by("uri"),
        /// Subscribes to changes of a resource.
        Subscribe => legacy("resources/subscribe").of(Feature::Resources),
        /// Ends such a subscription.
        Unsubscribe => legacy("resources/unsubscribe").of(Feature::Resources),
        /// Lists the direct entries of a folder of resources, page by page.
        ReadDirectory => both("resources/directory/read").of(Feature::Skills),
        /// Lists the skills, page by page.
        ListSkills => both("skills/list").of(Feature::Skills),
        /// Returns the entry of a skill.
        GetSkill => both("skills/get").of(Feature::Skills),
        /// Lists the prompts, page by page.
        ListPrompts => both("prompts/list").of(Feature::Prompts),
        /// Gets the messages of a prompt.
        GetPrompt => both("prompts/get").of(Feature::Prompts).named_by("name"),
        /// Offers values for an argument.
        Complete => both("completion/complete").of(Feature::Completions),
        /// Returns the current state of a task.
        GetTask => both("tasks/get").of(Feature::Tasks).named_by("taskId"),
        /// Answers the questions of a task.
        UpdateTask => modern("tasks/update").of(Feature::Tasks).named_by("taskId"),
        /// Cancels a task.
        CancelTask => both("tasks/cancel").of(Feature::Tasks).named_by("taskId"),
        /// Waits for the result of a task.
        TaskResult => legacy("tasks/result").of(Feature::Tasks),
        /// Lists the caller's tasks, page by page.
        ListTasks => legacy("tasks/list").of(Feature::Tasks),
        /// Sets the lowest level of log messages.
        SetLevel => legacy("logging/setLevel"),
    }
}

declare! {
    /// A notification, from the client or to it.
    pub(crate) enum Notification: &'static str {
        /// Withdraws a request; either side sends it.
        Cancelled => "notifications/cancelled",
        /// Follows `initialize`; the client sends it.
        Initialized => "notifications/initialized",
        /// A log message of a call; the server sends it.
        Message => "notifications/message",
        /// The progress of a call; the server sends it.
        Progress => "notifications/progress",
        /// The first message of a subscription; the server sends it.
        Acknowledged => "notifications/subscriptions/acknowledged",
        /// The list of resources has changed; the server sends it.
        ResourcesChanged => "notifications/resources/list_changed",
        /// A resource has changed; the server sends it.
        ResourceUpdated => "notifications/resources/updated",
        /// The person is done with a page; the server sends it to clients of 2025-11-25.
        PageCompleted => "notifications/elicitation/complete",
        /// A task has changed; the server sends it to modern clients.
        Task => "notifications/tasks",
        /// A task has changed; the server sends it to clients of 2025-11-25.
        TaskStatus => "notifications/tasks/status",
        /// The list of tools has changed; the server sends it.
        ToolsChanged => "notifications/tools/list_changed",
        /// The list of prompts has changed; the server sends it.
        PromptsChanged => "notifications/prompts/list_changed",
    }
}

/// The facts of one method.
struct Facts {
    name: &'static str,
    legacy: bool,
    modern: bool,
    /// The member of `params` that the header `Mcp-Name` repeats.
    named_by: Option<&'static str>,
    /// The method exists only once the server has offered this.
    feature: Option<Feature>,
}

/// A feature that a catalog may offer besides tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    Resources,
    /// Prompts.
    Prompts,
    /// Completions of arguments.
    Completions,
    /// Calls that become tasks.
    Tasks,
    /// Skills, and reading of folders.
    Skills,
}

impl Feature {
    /// All features.
    pub(crate) const ALL: [Self; 5] = [Self::Resources, Self::Prompts, Self::Completions, Self::Tasks, Self::Skills];
}

/// A method of revisions up to 2025-11-25.
const fn legacy(name: &'static str) -> Facts {
    Facts { modern: false, ..both(name) }
}

/// A method of revisions from 2026-07-28 on.
const fn modern(name: &'static str) -> Facts {
    Facts { legacy: false, ..both(name) }
}

/// A method of every revision.
const fn both(name: &'static str) -> Facts {
    Facts { name, legacy: true, modern: true, named_by: None, feature: None }
}

impl Facts {
    const fn named_by(self, param: &'static str) -> Self {
        Self { named_by: Some(param), ..self }
    }

    const fn of(self, feature: Feature) -> Self {
        Self { feature: Some(feature), ..self }
    }
}

impl Method {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The name for metrics and traces; `other` for every method that this server does not have.
    #[must_use]
    pub const fn label(method: Option<Self>) -> &'static str {
        match method {
            Some(method) => method.name(),
            None => "other",
        }
    }

    /// True if modern clients have the method, or legacy ones.
    pub(crate) const fn is_for(self, modern: bool) -> bool {
        let facts = self.facts();
        if modern { facts.modern } else { facts.legacy }
    }

    /// The feature without which the method does not exist.
    pub(crate) const fn feature(self) -> Option<Feature> {
        self.facts().feature
    }
}

impl Notification {
    /// Its name on the wire.
    pub(crate) const fn name(self) -> &'static str {
        self.facts()
    }

    /// The notification of this name, if it is known.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|notification| notification.name() == name)
    }
}

/// The method that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestedMethod<'a> {
    Known(Method),
    /// A name that this server has no method for.
    Unknown(Cow<'a, str>),
}

impl<'a> RequestedMethod<'a> {
    pub(crate) fn parse(name: Cow<'a, str>) -> Self {
        let known = Method::ALL.into_iter().find(|method| method.name() == name);
        known.map_or(Self::Unknown(name), Self::Known)
    }

    /// The name as the request has it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Known(method) => method.name(),
            Self::Unknown(name) => name,
        }
    }

    pub(crate) const fn known(&self) -> Option<Method> {
        match self {
            Self::Known(method) => Some(*method),
            Self::Unknown(_) => None,
        }
    }

    /// The member of `params` that the header `Mcp-Name` repeats, also of a method that the catalog
    /// does not offer.
    pub(crate) fn named_by(&self) -> Option<&'static str> {
        self.known().and_then(|method| method.facts().named_by)
    }

    /// The error for a method that the client does not have.
    pub(crate) fn not_found(&self) -> RpcError {
        RpcError::method(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_method_that_it_is_declared_for_and_any_other_stays_text() {
        for method in Method::ALL {
            assert_eq!(RequestedMethod::parse(method.name().into()), RequestedMethod::Known(method));
            assert_eq!(Method::label(Some(method)), method.name());
        }
        let other = RequestedMethod::parse("tools/call ".into());
        assert_eq!(other, RequestedMethod::Unknown("tools/call ".into()));
        assert_eq!((other.name(), Method::label(other.known())), ("tools/call ", "other"));
        for notification in Notification::ALL {
            assert_eq!(Notification::parse(notification.name()), Some(notification));
        }
        assert_eq!(Notification::parse("notifications/roots/list_changed"), None);
    }
}
