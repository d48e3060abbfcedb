//! The items of a component's index spaces, reduced to what their size depends on.
use std::collections::HashMap;
use std::rc::Rc;

use wasmparser::{ComponentExternalKind, ComponentOuterAliasKind};

use super::evaluation::Definition;
use super::ledger::{Excess, Ledger, LoadBound};
use super::module::Parts;

/// The index spaces of the component model that are tracked. Items in the others have no size of
/// their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Module,
    Function,
    Value,
    Type,
    Component,
    Instance,
}

/// The number of index spaces that are followed.
pub(crate) const KINDS: usize = 6;

impl From<ComponentExternalKind> for Kind {
    fn from(kind: ComponentExternalKind) -> Self {
        match kind {
            ComponentExternalKind::Module => Self::Module,
            ComponentExternalKind::Func => Self::Function,
            ComponentExternalKind::Value => Self::Value,
            ComponentExternalKind::Type => Self::Type,
            ComponentExternalKind::Instance => Self::Instance,
            ComponentExternalKind::Component => Self::Component,
        }
    }
}

impl Kind {
    /// The kind of an alias to an outer item; `None` for core types, which are not tracked.
    pub(crate) fn of_outer(kind: ComponentOuterAliasKind) -> Option<Self> {
        match kind {
            ComponentOuterAliasKind::CoreModule => Some(Self::Module),
            ComponentOuterAliasKind::CoreType => None,
            ComponentOuterAliasKind::Type => Some(Self::Type),
            ComponentOuterAliasKind::Component => Some(Self::Component),
        }
    }
}

/// The size of an item, with everything that it refers to expanded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Its parts, itself included.
    pub(crate) parts: u64,
    /// Levels below it, itself included.
    pub(crate) depth: u64,
}

impl Size {
    /// A single item.
    pub(crate) const ONE: Self = Self { parts: 1, depth: 1 };

    /// This item, with another one inside.
    pub(crate) fn holding(self, other: Self) -> Self {
        let depth = self.depth.max(other.depth.saturating_add(1));
        Self { parts: self.parts.saturating_add(other.parts), depth }
    }

    /// Checks the bounds of a single item.
    pub(crate) fn checked(self, ledger: &Ledger) -> Result<Self, Excess> {
        ledger.holds(LoadBound::TypeDepth, self.depth)?;
        ledger.holds(LoadBound::Expansion, self.parts)?;
        Ok(self)
    }
}

/// An entry of an index space. A type stands for the items of that type.
#[derive(Clone)]
pub(crate) enum Item<'a> {
    /// A function, a value, a resource, or a type of them.
    Plain(Size),
    /// An instance.
    Instance(Rc<Bag<'a>>),
    /// A component.
    Component(Rc<Blueprint<'a>>),
    /// A core module.
    Module(Rc<Parts>),
}

impl Item<'_> {
    pub(crate) fn size(&self) -> Size {
        match self {
            Self::Plain(size) => *size,
            Self::Instance(bag) => bag.size,
            Self::Component(blueprint) => blueprint.size,
            Self::Module(_) => Size::ONE,
        }
    }
}

/// An instance: its exports by name.
pub(crate) struct Bag<'a> {
    items: HashMap<&'a str, Item<'a>>,
    size: Size,
}

impl<'a> Bag<'a> {
    /// The instance with these exports.
    pub(crate) fn of(exports: impl IntoIterator<Item = (&'a str, Item<'a>)>, ledger: &Ledger) -> Result<Self, Excess> {
        let mut size = Size::ONE;
        let mut items = HashMap::new();
        for (name, item) in exports {
            size = size.holding(item.size());
            items.insert(name, item);
        }
        Ok(Self { items, size: size.checked(ledger)? })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Item<'a>> {
        self.items.get(name)
    }
}

/// A component that can be instantiated.
pub(crate) struct Blueprint<'a> {
    /// Its steps; `None` for an imported component, since only its type is known.
    pub(crate) definition: Option<Rc<Definition<'a>>>,
    /// The captured items, in the order of its definition.
    pub(crate) captured: Vec<Item<'a>>,
    /// The exports that its type declares.
    pub(crate) exports: Rc<Bag<'a>>,
    /// Its size with its captured items.
    pub(crate) size: Size,
}
