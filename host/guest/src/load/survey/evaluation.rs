//! Simulates instantiation without building anything, taking each step as often as the engine
//! would.
//!
//! A component is followed twice. While it is read, each definition is followed once, with the
//! types of its imports: that is the cost of validating it. Then the outermost component is
//! instantiated, with everything that it instantiates in turn: the engine expands that, and every
//! call makes it.
use std::collections::HashMap;
use std::rc::Rc;

use wasmparser::{ComponentExport, ComponentInstantiationArg};

use super::item::{Bag, Blueprint, Item, KINDS, Kind, Size};
use super::ledger::{Ledger, LoadBound, Refusal, missing};
use super::module::Parts;

/// One thing that a component does when it is instantiated.
pub(crate) enum Step<'a> {
    /// Something that is the same in each instance: a type, a module, a function of its own.
    Push(Kind, Item<'a>),
    /// A function that the engine compiles to connect a component with a function that it calls, or
    /// that calls it.
    Trampoline(Option<Size>),
    /// An import with its type.
    Import(Kind, &'a str, Item<'a>),
    /// A component inside.
    Define(Rc<Definition<'a>>),
    /// An export of an instance.
    Alias(Kind, u32, &'a str),
    /// An item of the component itself, by another index.
    Again(Kind, u32),
    /// An item captured from an outer component.
    Captured(Kind, usize),
    /// A component is instantiated.
    Instantiate(u32, Box<[ComponentInstantiationArg<'a>]>),
    /// An instance made of existing items.
    Bundle(Box<[ComponentExport<'a>]>),
    /// A core module is instantiated.
    Core(u32),
    /// An entry of an index space that is not tracked.
    CoreAlias,
    /// An export, with its type if it has one.
    Export(Kind, &'a str, u32, Option<Item<'a>>),
}

/// The definition of a component.
#[derive(Default)]
pub(crate) struct Definition<'a> {
    pub(crate) steps: Vec<Placed<'a>>,
    /// The items that it captures from outer components.
    pub(crate) upvalues: Vec<Upvalue>,
    /// Its exports, as far as the types of its imports define them.
    pub(crate) exports: Option<Rc<Bag<'a>>>,
    /// True if it has functions of its own.
    pub(crate) lifts: bool,
}

/// A step, with its offset in the file.
pub(crate) struct Placed<'a> {
    pub(crate) step: Step<'a>,
    pub(crate) offset: usize,
}

/// Where an inner component finds an item of an outer one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upvalue {
    /// In the index spaces of the component it is defined in.
    Own(Kind, u32),
    /// In the list of items that the outer component captured.
    Captured(usize),
}

/// The index spaces of a component instance under construction.
#[derive(Default)]
pub(crate) struct Frame<'a> {
    spaces: [Vec<Item<'a>>; KINDS],
    captured: Vec<Item<'a>>,
    exports: Vec<(&'a str, Item<'a>)>,
}

impl<'a> Frame<'a> {
    /// The item at this index.
    pub(crate) fn get(&self, kind: Kind, index: u32, ledger: &Ledger) -> Result<&Item<'a>, Refusal> {
        let space = self.spaces.get(kind as usize);
        let item = space.and_then(|space| space.get(usize::try_from(index).ok()?));
        item.ok_or_else(|| missing(&format!("there is no {kind:?} with index {index}"), ledger.offset))
    }

    /// An instance's export.
    pub(crate) fn alias(&self, instance: u32, name: &str, ledger: &Ledger) -> Result<Item<'a>, Refusal> {
        let Item::Instance(bag) = self.get(Kind::Instance, instance, ledger)? else {
            return Err(missing(&format!("{instance} is the index of no instance"), ledger.offset));
        };
        let none = || missing(&format!("instance {instance} exports no {name:?}"), ledger.offset);
        bag.get(name).cloned().ok_or_else(none)
    }

    /// Adds an item, and counts its expanded size.
    pub(crate) fn push(&mut self, kind: Kind, item: Item<'a>, ledger: &mut Ledger) -> Result<(), Refusal> {
        ledger.add(LoadBound::Expansion, item.size().parts)?;
        if let Some(space) = self.spaces.get_mut(kind as usize) {
            space.push(item);
        }
        Ok(())
    }

    /// Adds an export.
    pub(crate) fn export(&mut self, name: &'a str, item: Item<'a>) {
        self.exports.push((name, item));
    }

    /// The finished instance.
    pub(crate) fn into_bag(self, ledger: &Ledger) -> Result<Rc<Bag<'a>>, Refusal> {
        Ok(Rc::new(Bag::of(self.exports, ledger)?))
    }

    /// A component of this definition, with the items that it captures from here.
    fn blueprint(&self, definition: &Rc<Definition<'a>>, ledger: &Ledger) -> Result<Item<'a>, Refusal> {
        let take = |upvalue: &Upvalue| match *upvalue {
            Upvalue::Own(kind, index) => self.get(kind, index, ledger).cloned(),
            Upvalue::Captured(place) => self.captured(place, ledger),
        };
        let captured: Vec<Item<'a>> = definition.upvalues.iter().map(take).collect::<Result<_, _>>()?;
        let size = captured.iter().fold(Size::ONE, |size, item| size.holding(item.size()));
        let exports = match &definition.exports {
            Some(exports) => Rc::clone(exports),
            None => Rc::new(Bag::of([], ledger)?),
        };
        let definition = Some(Rc::clone(definition));
        let size = size.checked(ledger)?;
        Ok(Item::Component(Rc::new(Blueprint { definition, captured, exports, size })))
    }

    /// Captures an outer item, and returns its place.
    pub(crate) fn capture(&mut self, item: Item<'a>) -> usize {
        self.captured.push(item);
        self.captured.len() - 1
    }

    /// The captured item at this place.
    pub(crate) fn captured(&self, place: usize, ledger: &Ledger) -> Result<Item<'a>, Refusal> {
        let none = || missing("what lies outside is not there", ledger.offset);
        self.captured.get(place).cloned().ok_or_else(none)
    }
}

/// The arguments of an instantiation.
pub(crate) type Arguments<'a> = HashMap<&'a str, Item<'a>>;

/// Follows the steps of instantiation.
pub(crate) struct Evaluation<'l> {
    pub(crate) ledger: &'l mut Ledger,
    /// True if inner components are instantiated, too; otherwise only their exports are known.
    expands: bool,
    depth: u64,
    /// The parts made of core instances.
    pub(crate) parts: Parts,
}

impl<'l> Evaluation<'l> {
    /// Follows single steps while a definition is read.
    pub(crate) fn of_definitions(ledger: &'l mut Ledger) -> Self {
        Self { ledger, expands: false, depth: 0, parts: Parts::default() }
    }

    /// Instantiates a component with the host's imports.
    pub(crate) fn instantiate(definition: &Definition<'_>, ledger: &'l mut Ledger) -> Result<Parts, Refusal> {
        // Expanded instances count separately from expanded definitions.
        ledger.begin(LoadBound::Expansion);
        let mut evaluation = Self { ledger, expands: true, depth: 0, parts: Parts::default() };
        evaluation.run(definition, Frame::default(), &HashMap::new())?;
        Ok(evaluation.parts)
    }

    fn run<'a>(
        &mut self,
        definition: &Definition<'a>,
        mut frame: Frame<'a>,
        arguments: &Arguments<'a>,
    ) -> Result<Frame<'a>, Refusal> {
        self.ledger.add(LoadBound::ComponentInstances, 1)?;
        self.depth += 1;
        self.ledger.holds(LoadBound::InstanceDepth, self.depth)?;
        self.parts.component_instance(definition.lifts, self.ledger)?;
        for Placed { step, offset } in &definition.steps {
            self.ledger.offset = *offset;
            self.take(step, &mut frame, arguments)?;
        }
        self.depth -= 1;
        Ok(frame)
    }

    pub(crate) fn take<'a>(
        &mut self,
        step: &Step<'a>,
        frame: &mut Frame<'a>,
        arguments: &Arguments<'a>,
    ) -> Result<(), Refusal> {
        self.ledger.add(LoadBound::Steps, 1)?;
        let (kind, item) = match step {
            Step::Push(kind, item) => (*kind, item.clone()),
            Step::Trampoline(size) => return self.trampoline(*size),
            Step::Import(kind, name, typed) => (*kind, arguments.get(name).unwrap_or(typed).clone()),
            Step::Define(definition) => (Kind::Component, frame.blueprint(definition, self.ledger)?),
            Step::Alias(kind, instance, name) => (*kind, frame.alias(*instance, name, self.ledger)?),
            Step::Again(kind, index) => (*kind, frame.get(*kind, *index, self.ledger)?.clone()),
            Step::Captured(kind, place) => (*kind, frame.captured(*place, self.ledger)?),
            Step::Instantiate(component, given) => {
                (Kind::Instance, Item::Instance(self.component(*component, given, frame)?))
            }
            Step::Bundle(exports) => (Kind::Instance, Item::Instance(self.bundle(exports, frame)?)),
            Step::Core(module) => return self.core(*module, frame),
            Step::CoreAlias => return Ok(self.ledger.add(LoadBound::Expansion, 1)?),
            Step::Export(kind, name, index, typed) => {
                let own = frame.get(*kind, *index, self.ledger)?;
                // A user that knows only the type sees only the type.
                let item = typed.as_ref().filter(|_| !self.expands).unwrap_or(own).clone();
                frame.export(name, item.clone());
                (*kind, item)
            }
        };
        frame.push(kind, item, self.ledger)
    }

    fn trampoline(&mut self, size: Option<Size>) -> Result<(), Refusal> {
        self.ledger.add(LoadBound::Expansion, size.unwrap_or(Size::ONE).parts)?;
        if self.expands {
            self.ledger.add(LoadBound::Trampolines, 1)?;
            self.parts.trampoline(self.ledger)?;
        }
        Ok(())
    }

    fn component<'a>(
        &mut self,
        component: u32,
        given: &[ComponentInstantiationArg<'a>],
        frame: &Frame<'a>,
    ) -> Result<Rc<Bag<'a>>, Refusal> {
        let item = frame.get(Kind::Component, component, self.ledger)?;
        let Item::Component(blueprint) = item else {
            return Err(missing(&format!("{component} is the index of no component"), self.ledger.offset));
        };
        let blueprint = Rc::clone(blueprint);
        let mut arguments = HashMap::with_capacity(given.len());
        for argument in given {
            let item = frame.get(argument.kind.into(), argument.index, self.ledger)?.clone();
            self.ledger.add(LoadBound::Expansion, item.size().parts)?;
            arguments.insert(argument.name, item);
        }
        // The captured items are copied for each instance of it.
        self.ledger.add(LoadBound::Expansion, blueprint.size.parts)?;
        match &blueprint.definition {
            Some(definition) if self.expands => {
                let captured = blueprint.captured.clone();
                let inner = Frame { captured, ..Frame::default() };
                self.run(definition, inner, &arguments)?.into_bag(self.ledger)
            }
            _ => Ok(Rc::clone(&blueprint.exports)),
        }
    }

    fn bundle<'a>(&mut self, exports: &[ComponentExport<'a>], frame: &Frame<'a>) -> Result<Rc<Bag<'a>>, Refusal> {
        let mut items = Vec::with_capacity(exports.len());
        for export in exports {
            let item = frame.get(export.kind.into(), export.index, self.ledger)?.clone();
            items.push((export.name.name, item));
        }
        Ok(Rc::new(Bag::of(items, self.ledger)?))
    }

    fn core(&mut self, module: u32, frame: &Frame<'_>) -> Result<(), Refusal> {
        let Item::Module(module) = frame.get(Kind::Module, module, self.ledger)? else {
            return Err(missing(&format!("{module} is the index of no module"), self.ledger.offset));
        };
        if self.expands {
            self.parts.instance(module, self.ledger)?;
        }
        Ok(())
    }
}
