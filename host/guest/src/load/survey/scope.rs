//! The nesting of a component while it is read: components, and types of components and instances.
use std::collections::HashMap;
use std::rc::Rc;

use wasmparser::{ComponentAlias, ComponentExternalKind, ComponentTypeRef, ComponentValType, TypeBounds};

use super::evaluation::{Definition, Evaluation, Frame, Placed, Step, Upvalue};
use super::item::{Blueprint, Item, Kind, Size};
use super::ledger::{Ledger, LoadBound, Refusal, missing};
use super::module::Parts;

/// A component or type that is being read.
#[derive(Default)]
struct Scope<'a> {
    frame: Frame<'a>,
    /// The definition of a component; `None` for a type, which is not instantiated.
    definition: Option<Definition<'a>>,
    /// The imports of a component's type.
    imported: Vec<Size>,
}

/// Everything that is being read, outermost first.
pub(crate) struct Scopes<'a, 'l> {
    stack: Vec<Scope<'a>>,
    pub(crate) ledger: &'l mut Ledger,
}

impl<'a, 'l> Scopes<'a, 'l> {
    pub(crate) fn new(ledger: &'l mut Ledger) -> Self {
        Self { stack: Vec::new(), ledger }
    }

    /// Begins a component.
    pub(crate) fn begin_component(&mut self) -> Result<(), Refusal> {
        self.begin(Scope { definition: Some(Definition::default()), ..Scope::default() })
    }

    /// Begins a type of a component or of an instance.
    pub(crate) fn begin_type(&mut self) -> Result<(), Refusal> {
        self.begin(Scope::default())
    }

    fn begin(&mut self, scope: Scope<'a>) -> Result<(), Refusal> {
        self.stack.push(scope);
        Ok(self.ledger.holds(LoadBound::Nesting, self.stack.len() as u64)?)
    }

    fn end(&mut self) -> Result<Scope<'a>, Refusal> {
        self.stack.pop().ok_or_else(|| missing("something ends that did not begin", self.ledger.offset))
    }

    /// Ends the innermost component. Returns the outermost one; any other becomes an item of the
    /// component around it.
    pub(crate) fn end_component(&mut self) -> Result<Option<Definition<'a>>, Refusal> {
        let Scope { frame, definition, .. } = self.end()?;
        let mut definition = definition.ok_or_else(|| missing("a type ends as a component", self.ledger.offset))?;
        definition.exports = Some(frame.into_bag(self.ledger)?);
        if self.stack.is_empty() {
            return Ok(Some(definition));
        }
        self.step(Step::Define(Rc::new(definition)))?;
        Ok(None)
    }

    /// Ends the innermost type, of an instance or of a component.
    pub(crate) fn end_type(&mut self, is_component: bool) -> Result<Item<'a>, Refusal> {
        let Scope { frame, imported, .. } = self.end()?;
        let exports = frame.into_bag(self.ledger)?;
        let item = Item::Instance(Rc::clone(&exports));
        if !is_component {
            return Ok(item);
        }
        let size = imported.into_iter().fold(item.size(), Size::holding).checked(self.ledger)?;
        Ok(Item::Component(Rc::new(Blueprint { definition: None, captured: Vec::new(), exports, size })))
    }

    /// True if nothing is being read.
    pub(crate) fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// Counts an import or export, if it is the outermost component's.
    pub(crate) fn named(&mut self) -> Result<(), Refusal> {
        Ok(self.ledger.add(LoadBound::ExternNames, (self.stack.len() == 1).into())?)
    }

    fn innermost(&mut self) -> Result<&mut Scope<'a>, Refusal> {
        let offset = self.ledger.offset;
        self.stack.last_mut().ok_or_else(|| missing("a section of a component lies outside of one", offset))
    }

    /// Adds a step to the instantiation of the innermost component.
    pub(crate) fn step(&mut self, step: Step<'a>) -> Result<(), Refusal> {
        self.ledger.add(LoadBound::Items, 1)?;
        let offset = self.ledger.offset;
        let Some(scope) = self.stack.last_mut() else {
            return Err(missing("a section of a component lies outside of one", offset));
        };
        Evaluation::of_definitions(self.ledger).take(&step, &mut scope.frame, &HashMap::new())?;
        if let Some(definition) = &mut scope.definition {
            definition.steps.push(Placed { step, offset });
        }
        Ok(())
    }

    /// The item of the innermost at this index.
    pub(crate) fn get(&self, kind: Kind, index: u32) -> Result<&Item<'a>, Refusal> {
        let scope = self.stack.last().ok_or_else(|| missing("there is no component", self.ledger.offset))?;
        scope.frame.get(kind, index, self.ledger)
    }

    /// The size of a value's type.
    pub(crate) fn value(&self, ty: ComponentValType) -> Result<Size, Refusal> {
        match ty {
            ComponentValType::Primitive(_) => Ok(Size::ONE),
            ComponentValType::Type(index) => Ok(self.get(Kind::Type, index)?.size()),
        }
    }

    /// The item that a value of this type stands for.
    pub(crate) fn typed(&self, ty: ComponentTypeRef) -> Result<Item<'a>, Refusal> {
        Ok(match ty {
            ComponentTypeRef::Module(_) => Item::Module(Rc::new(Parts::default())),
            ComponentTypeRef::Value(ty) => Item::Plain(self.value(ty)?),
            ComponentTypeRef::Type(TypeBounds::SubResource) => Item::Plain(Size::ONE),
            ComponentTypeRef::Func(index)
            | ComponentTypeRef::Type(TypeBounds::Eq(index))
            | ComponentTypeRef::Instance(index)
            | ComponentTypeRef::Component(index) => self.get(Kind::Type, index)?.clone(),
        })
    }

    /// Adds an import to the type that is being read.
    pub(crate) fn import_of_type(&mut self, ty: ComponentTypeRef) -> Result<(), Refusal> {
        let item = self.declared(ty)?;
        self.innermost()?.imported.push(item.size());
        Ok(())
    }

    /// Adds an export to the type that is being read.
    pub(crate) fn export_of_type(&mut self, name: &'a str, ty: ComponentTypeRef) -> Result<(), Refusal> {
        let item = self.declared(ty)?;
        self.innermost()?.frame.export(name, item);
        Ok(())
    }

    /// Adds a type's imports or exports to its index spaces.
    fn declared(&mut self, ty: ComponentTypeRef) -> Result<Item<'a>, Refusal> {
        let item = self.typed(ty)?;
        self.step(Step::Push(ty.kind().into(), item.clone()))?;
        Ok(item)
    }

    /// Notes that the innermost component has a function of its own.
    pub(crate) fn lifts(&mut self) -> Result<(), Refusal> {
        if let Some(definition) = &mut self.innermost()?.definition {
            definition.lifts = true;
        }
        Ok(())
    }

    /// Adds another name for an item.
    pub(crate) fn alias(&mut self, alias: &ComponentAlias<'a>) -> Result<(), Refusal> {
        match *alias {
            ComponentAlias::InstanceExport { kind, instance_index, name } => {
                self.step(Step::Alias(kind.into(), instance_index, name))
            }
            ComponentAlias::CoreInstanceExport { .. } => self.step(Step::CoreAlias),
            ComponentAlias::Outer { kind, count, index } => match Kind::of_outer(kind) {
                Some(kind) => self.outer(kind, count, index),
                None => self.step(Step::CoreAlias),
            },
        }
    }

    fn outer(&mut self, kind: Kind, count: u32, index: u32) -> Result<(), Refusal> {
        let level = usize::try_from(count).ok().and_then(|count| self.stack.len().checked_sub(count + 1));
        let none = || missing(&format!("there is nothing {count} levels outside"), self.ledger.offset);
        let level = level.ok_or_else(none)?;
        let is_component = self.stack.last().is_some_and(|scope| scope.definition.is_some());
        if count == 0 {
            self.step(Step::Again(kind, index))
        } else if is_component && kind != Kind::Type {
            let place = self.capture(self.stack.len() - 1, level, kind, index)?;
            self.step(Step::Captured(kind, place))
        } else {
            // A type is the same in each instance, and has no instances of its own.
            let scope = self.stack.get(level).ok_or_else(none)?;
            let item = scope.frame.get(kind, index, self.ledger)?.clone();
            self.step(Step::Push(kind, item))
        }
    }

    /// Captures an outer item for the component at one level, and for each level between. Returns
    /// its place among the captured items of the inner one.
    fn capture(&mut self, inner: usize, outer: usize, kind: Kind, index: u32) -> Result<usize, Refusal> {
        let offset = self.ledger.offset;
        let none = || missing("what lies outside is not there", offset);
        self.ledger.add(LoadBound::Items, 1)?;
        let around = inner.checked_sub(1).ok_or_else(none)?;
        let (upvalue, item) = if around == outer {
            let scope = self.stack.get(outer).ok_or_else(none)?;
            (Upvalue::Own(kind, index), scope.frame.get(kind, index, self.ledger)?.clone())
        } else {
            let place = self.capture(around, outer, kind, index)?;
            let scope = self.stack.get(around).ok_or_else(none)?;
            (Upvalue::Captured(place), scope.frame.captured(place, self.ledger)?)
        };
        let scope = self.stack.get_mut(inner).ok_or_else(none)?;
        let definition = scope.definition.as_mut().ok_or_else(none)?;
        definition.upvalues.push(upvalue);
        Ok(scope.frame.capture(item))
    }

    /// Adds an import to the innermost component.
    pub(crate) fn import(&mut self, name: &'a str, ty: ComponentTypeRef) -> Result<(), Refusal> {
        let item = self.typed(ty)?;
        self.step(Step::Import(ty.kind().into(), name, item))
    }

    /// Adds an export to the innermost component.
    pub(crate) fn export(
        &mut self,
        name: &'a str,
        kind: ComponentExternalKind,
        index: u32,
        ty: Option<ComponentTypeRef>,
    ) -> Result<(), Refusal> {
        let typed = ty.map(|ty| self.typed(ty)).transpose()?;
        self.step(Step::Export(kind.into(), name, index, typed))
    }
}
