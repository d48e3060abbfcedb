//! The work that the code of functions makes for the compiler, which its size in bytes does not
//! show.
//!
//! The compiler follows each value through each block that it lives in, and each loop through the
//! loops around it. So a function costs its operators, and its blocks times the values that live in
//! them: operands on the stack, and locals that are written. A local that lives through a loop
//! costs most, since it is another value in each iteration. Values that blocks begin with cost all
//! blocks of the function, so they count by their product.
use std::collections::HashSet;

use wasmparser::{
    BlockType, ContType, FrameKind, FuncType, FunctionBody, ModuleArity, Operator, Parser, Payload, RefType, SubType,
    TypeRef,
};

use super::ledger::{Ledger, LoadBound, Refusal, missing};
use super::references::References;

type Result<T> = std::result::Result<T, Refusal>;

/// Units of work of an operator. One unit is a local that lives in a block: 50 bytes and 0.2 µs of
/// the compiler. An operator takes a microsecond or two.
const OPERATOR_WORK: u64 = 8;
/// Units of work more of a local for each loop that it lives through.
const LOOP_WORK: u64 = 2;
/// Operands on the stack at the start of a block, for one unit.
const OPERANDS_PER_UNIT: u64 = 16;
/// Branches and loops that are open at the start of a block, for one unit.
const BRANCHES_PER_UNIT: u64 = 4;
/// Units of work of any function, in addition to its code.
const FUNCTION_WORK: u64 = 256;
/// Units of work more of each operand and result of a call: 7 µs and 500 bytes.
const CALL_VALUE_WORK: u64 = 32;
/// Units of work more of a call through a table or a read from one: 50 µs, since the engine makes
/// references when they are first used.
const LAZY_WORK: u64 = 256;
/// Blocks that such an operator hides, and that a loop does, which asks whether its time is up.
const HIDDEN_BLOCKS: u64 = 2;
/// Values that each of them carries into a block: the reference, or the end of its time.
const HIDDEN_VALUES: u64 = 1;
/// Values that blocks begin with, times blocks of the function, for one unit. Each pair takes the
/// compiler some 3 bytes and 10 ns.
const PAIRS_PER_UNIT: u64 = 16;
/// Loops inside each other through which a local that is written is one value, as in most code.
/// Each further loop begins with a value of its own.
const LOOP_DEPTH: u64 = 16;
/// Targets of a branch table squared, times the values that go along, for one unit. Each of these
/// takes the compiler some 6 bytes.
const TABLE_VALUES_PER_UNIT: u64 = 8;
/// Units of work of each parameter and result of a function that references may call: 13 µs. The
/// compiler makes another function of it, which the host calls.
const TRAMPOLINE_VALUE_WORK: u64 = 64;
/// Locals that one function may have, by WebAssembly's own rules.
const LOCALS_MAX: usize = 51_000;

/// Counts the work of every function of every module.
pub(super) fn check(bytes: &[u8], ledger: &mut Ledger) -> Result<()> {
    let mut module = Module::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        module.references.section(&payload)?;
        match payload {
            Payload::Version { .. } => module = Module::default(),
            Payload::TypeSection(section) => {
                for group in section {
                    module.types.extend(group?.into_types());
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = import?.ty {
                        module.functions.push(ty);
                        module.imported += 1;
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    module.functions.push(ty?);
                }
            }
            Payload::CodeSectionStart { range, .. } => {
                ledger.offset = range.start;
                ledger.work(module.trampolines_work(), bytes.len())?;
            }
            Payload::CodeSectionEntry(body) => {
                ledger.offset = body.range().start;
                module.body(&body, bytes.len(), ledger)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A module, as far as operators refer to it.
#[derive(Default)]
struct Module {
    types: Vec<SubType>,
    /// The type of each function.
    functions: Vec<u32>,
    imported: usize,
    bodies: usize,
    references: References,
}

impl Module {
    /// The work of the functions through which the host calls the module's own, counted once. All
    /// sections that refer to functions come before the code.
    fn trampolines_work(&mut self) -> u64 {
        let references = std::mem::take(&mut self.references);
        let functions = references.iter().filter_map(|index| usize::try_from(index).ok());
        let own = functions.filter(|index| *index >= self.imported);
        let types = own.filter_map(|index| self.sub_type(*self.functions.get(index)?));
        types.fold(0, |work, ty| {
            let values = (ty.params().len() + ty.results().len()) as u64;
            work.saturating_add(FUNCTION_WORK).saturating_add(values.saturating_mul(TRAMPOLINE_VALUE_WORK))
        })
    }

    fn body(&mut self, body: &FunctionBody<'_>, bytes: usize, ledger: &mut Ledger) -> Result<()> {
        let place = self.imported + self.bodies;
        self.bodies += 1;
        let none = || missing("a function has no type", body.range().start);
        let ty = self.functions.get(place).copied().ok_or_else(none)?;
        let (params, results) = self.sub_type(ty).map(|ty| (ty.params().len(), ty.results().len())).ok_or_else(none)?;
        let mut locals = params;
        for group in body.get_locals_reader()? {
            locals = locals.saturating_add(usize::try_from(group?.0).unwrap_or(usize::MAX));
        }
        if locals > LOCALS_MAX {
            return Err(missing("a function has too many locals", body.range().start));
        }
        let mut function = Function {
            module: self,
            control: Vec::new(),
            height: 0,
            blocks: 0,
            loops: 0,
            open: 0,
            loops_open: 0,
            hidden: 0,
            carried: 0,
            written: vec![false; locals],
            written_count: 0,
            work: FUNCTION_WORK + (params + results + locals) as u64,
        };
        function.enter(BlockType::FuncType(ty), FrameKind::Block, 0, ledger)?;
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            ledger.offset = operators.original_position();
            let operator = operators.read()?;
            function.operator(&operator, ledger)?;
        }
        let work = function.work.saturating_add(function.locals_work()).saturating_add(function.carried_work());
        ledger.offset = body.range().start;
        ledger.holds(LoadBound::FunctionWork, work)?;
        Ok(ledger.work(work, bytes)?)
    }

    fn sub_type(&self, index: u32) -> Option<&FuncType> {
        match &self.types.get(usize::try_from(index).ok()?)?.composite_type.inner {
            wasmparser::CompositeInnerType::Func(function) => Some(function),
            _ => None,
        }
    }
}

/// A block that is open.
struct CodeBlock {
    ty: BlockType,
    kind: FrameKind,
    /// Height of the operand stack below it.
    base: u64,
    /// True if the rest of it is unreachable, and so never compiled.
    dead: bool,
}

/// One function, operator by operator.
struct Function<'m> {
    module: &'m Module,
    control: Vec<CodeBlock>,
    /// Height of the operand stack.
    height: u64,
    blocks: u64,
    loops: u64,
    /// Branches and loops that are open.
    open: u64,
    loops_open: u64,
    /// Blocks that the engine adds.
    hidden: u64,
    /// Values that blocks begin with, or that a branch takes there.
    carried: u64,
    written: Vec<bool>,
    written_count: u64,
    work: u64,
}

impl Function<'_> {
    fn operator(&mut self, operator: &Operator<'_>, ledger: &Ledger) -> Result<()> {
        let dead = self.control.last().is_none_or(|block| block.dead);
        let arity = operator.operator_arity(&*self);
        match operator {
            Operator::Block { blockty } => return self.opens(*blockty, FrameKind::Block, arity, ledger),
            Operator::Loop { blockty } => return self.opens(*blockty, FrameKind::Loop, arity, ledger),
            Operator::If { blockty } => return self.opens(*blockty, FrameKind::If, arity, ledger),
            Operator::Else | Operator::End => return self.closes(operator, arity, ledger),
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => self.writes(*local_index),
            Operator::BrTable { targets } => self.work = self.work.saturating_add(u64::from(targets.len())),
            _ => {}
        }
        if dead {
            self.work = self.work.saturating_add(1);
            return Ok(());
        }
        self.change(arity, ledger)?;
        let (pops, pushes) = arity.unwrap_or_default();
        self.moves(operator, pops.into(), pushes.into())?;
        match operator {
            Operator::Unreachable
            | Operator::Br { .. }
            | Operator::BrTable { .. }
            | Operator::Return
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. } => self.dies(),
            // `br_if` ends the basic block; falling through begins a new one.
            Operator::BrIf { .. } => self.block(ledger)?,
            _ => {}
        }
        Ok(())
    }

    /// Counts the values that an operator takes somewhere else: into a function, or into a block.
    fn moves(&mut self, operator: &Operator<'_>, pops: u64, pushes: u64) -> Result<()> {
        let values = pops + pushes;
        match operator {
            Operator::Call { .. } | Operator::ReturnCall { .. } => self.adds(values * CALL_VALUE_WORK),
            Operator::CallIndirect { .. } | Operator::ReturnCallIndirect { .. } => {
                self.adds(values * CALL_VALUE_WORK + LAZY_WORK);
                self.hides();
            }
            Operator::TableGet { .. } => {
                self.adds(LAZY_WORK);
                self.hides();
            }
            Operator::Br { .. } => self.carries(pops),
            // One operand decides where to go.
            Operator::BrIf { .. } => self.carries(pops.saturating_sub(1)),
            Operator::BrTable { targets } if pops > 1 => {
                let mut distinct = HashSet::from([targets.default()]);
                for target in targets.targets() {
                    distinct.insert(target?);
                }
                let targets = distinct.len() as u64;
                let moved = targets.saturating_mul(targets).saturating_mul(pops - 1);
                self.adds(moved / TABLE_VALUES_PER_UNIT);
            }
            _ => {}
        }
        Ok(())
    }

    fn opens(&mut self, ty: BlockType, kind: FrameKind, arity: Option<(u32, u32)>, ledger: &Ledger) -> Result<()> {
        let dead = self.control.last().is_none_or(|block| block.dead);
        let (_, params) = arity.ok_or_else(|| unknown(ledger))?;
        if !dead {
            self.change(arity, ledger)?;
        }
        self.enter(ty, kind, u64::from(params), ledger)?;
        if let Some(block) = self.control.last_mut() {
            block.dead = dead;
        }
        Ok(())
    }

    fn closes(&mut self, operator: &Operator<'_>, arity: Option<(u32, u32)>, ledger: &Ledger) -> Result<()> {
        let (_, values) = arity.ok_or_else(|| unknown(ledger))?;
        let around = self.around_is_dead();
        let block = if matches!(operator, Operator::Else) {
            let block = self.control.last_mut().ok_or_else(|| unknown(ledger))?;
            (block.kind, block.dead) = (FrameKind::Else, around);
            block
        } else {
            let block = self.control.pop().ok_or_else(|| unknown(ledger))?;
            self.open -= u64::from(block.kind != FrameKind::Block);
            self.loops_open -= u64::from(block.kind == FrameKind::Loop);
            &mut { block }
        };
        self.height = block.base.saturating_add(u64::from(values));
        self.carries(u64::from(values));
        self.block(ledger)
    }

    /// Pops and pushes operands.
    fn change(&mut self, arity: Option<(u32, u32)>, ledger: &Ledger) -> Result<()> {
        let (pops, pushes) = arity.ok_or_else(|| unknown(ledger))?;
        let base = self.control.last().map_or(0, |block| block.base);
        let left = self.height.checked_sub(u64::from(pops)).filter(|left| *left >= base);
        self.height = left.ok_or_else(|| unknown(ledger))?.saturating_add(u64::from(pushes));
        let values = OPERATOR_WORK.saturating_add(u64::from(pops)).saturating_add(u64::from(pushes));
        self.work = self.work.saturating_add(values);
        Ok(())
    }

    /// Opens a block, which takes this many operands from the stack.
    fn enter(&mut self, ty: BlockType, kind: FrameKind, params: u64, ledger: &Ledger) -> Result<()> {
        self.control.push(CodeBlock { ty, kind, base: self.height.saturating_sub(params), dead: false });
        ledger.holds(LoadBound::BlockDepth, self.control.len() as u64)?;
        // A plain block is only a branch target at its end.
        if kind == FrameKind::Block {
            return Ok(());
        }
        if kind == FrameKind::Loop {
            self.loops += 1;
            self.loops_open += 1;
            self.carries(params);
            self.hides();
        }
        self.open += 1;
        self.block(ledger)
    }

    /// Begins a basic block. All operands live in it, and it counts for every open branch and loop.
    fn block(&mut self, ledger: &Ledger) -> Result<()> {
        self.blocks += 1;
        let lives = OPERATOR_WORK + self.height / OPERANDS_PER_UNIT + self.open / BRANCHES_PER_UNIT;
        self.work = self.work.saturating_add(lives);
        // Checked here, so that a function beyond the bound is not read to its end.
        Ok(ledger.holds(LoadBound::FunctionWork, self.work)?)
    }

    /// The work of locals, assuming that each lives in every block.
    fn locals_work(&self) -> u64 {
        let places = self.blocks.saturating_add(self.loops.saturating_mul(LOOP_WORK));
        places.saturating_mul(self.written_count)
    }

    /// The work of the values that blocks begin with, each of which costs every block.
    fn carried_work(&self) -> u64 {
        self.blocks.saturating_add(self.hidden).saturating_mul(self.carried) / PAIRS_PER_UNIT
    }

    fn carries(&mut self, values: u64) {
        self.carried = self.carried.saturating_add(values);
    }

    fn hides(&mut self) {
        self.hidden = self.hidden.saturating_add(HIDDEN_BLOCKS);
        self.carries(HIDDEN_VALUES);
    }

    fn adds(&mut self, work: u64) {
        self.work = self.work.saturating_add(work);
    }

    fn writes(&mut self, local: u32) {
        self.carries(self.loops_open.saturating_sub(LOOP_DEPTH));
        let written = usize::try_from(local).ok().and_then(|local| self.written.get_mut(local));
        if let Some(written @ false) = written {
            *written = true;
            self.written_count += 1;
        }
    }

    /// The rest of the innermost block is unreachable.
    fn dies(&mut self) {
        if let Some(block) = self.control.last_mut() {
            block.dead = true;
            self.height = block.base;
        }
    }

    fn around_is_dead(&self) -> bool {
        let around = self.control.len().checked_sub(2).and_then(|place| self.control.get(place));
        around.is_some_and(|block| block.dead)
    }
}

fn unknown(ledger: &Ledger) -> Refusal {
    missing("an operator does not fit what is around it", ledger.offset)
}

impl ModuleArity for Function<'_> {
    fn sub_type_at(&self, index: u32) -> Option<&SubType> {
        self.module.types.get(usize::try_from(index).ok()?)
    }

    // Exceptions, continuations and typed references are off.
    fn tag_type_arity(&self, _: u32) -> Option<(u32, u32)> {
        None
    }

    fn type_index_of_function(&self, index: u32) -> Option<u32> {
        self.module.functions.get(usize::try_from(index).ok()?).copied()
    }

    fn func_type_of_cont_type(&self, _: &ContType) -> Option<&FuncType> {
        None
    }

    fn sub_type_of_ref_type(&self, _: &RefType) -> Option<&SubType> {
        None
    }

    fn control_stack_height(&self) -> u32 {
        u32::try_from(self.control.len()).unwrap_or(u32::MAX)
    }

    fn label_block(&self, depth: u32) -> Option<(BlockType, FrameKind)> {
        let place = self.control.len().checked_sub(usize::try_from(depth).ok()?.checked_add(1)?)?;
        self.control.get(place).map(|block| (block.ty, block.kind))
    }
}
