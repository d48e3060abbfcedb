//! The code of readers: one module with their memory, and one for each type.
//!
//! A reader's task asks for one piece. If the guest has nothing ready, the task waits in a set of
//! its own; a buffer holds the piece, and the number of the set before it.
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, EntityType, ExportKind, ExportSection, Function, FunctionSection, GlobalSection,
    GlobalType, ImportSection, InstructionSink, MemArg, MemorySection, MemoryType, Module, TypeSection, ValType,
};

/// Bytes of a piece: as many as a page of most systems. Larger items cannot be read.
const PIECE_BYTES: u32 = 4_096;

/// Bytes before a piece, which keep its alignment. The first four are the number of a set while its
/// task waits, and the address of the next free buffer when there is none.
const HEAD_BYTES: u32 = 16;

/// The first address that is used.
const BASE: i32 = 16;

/// Pages of the readers' memory: as many as a memory may have. The call's `memory` is the limit.
const PAGES_MAX: u64 = 1 << 14;

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Stream,
    Future,
}

/// Items of this size that are read at once; `None` if not even one can be.
pub(super) fn items_at_once(bytes: u64) -> Option<u32> {
    let count = u64::from(PIECE_BYTES) / bytes.max(1);
    u32::try_from(count).ok().filter(|count| *count > 0)
}

const WORD: MemArg = MemArg { offset: 0, align: 2, memory_index: 0 };

// Globals of the memory's module.
const TOP: u32 = 0;
const FREE: u32 = 1;
const ACTIVE: u32 = 2;

/// The module with the memory. Strings and lists of items go to its end. Buffers are used again,
/// and all of it is once no task has one.
pub(super) fn memory() -> Module {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32; 4], [ValType::I32]);
    types.ty().function([], [ValType::I32]);
    types.ty().function([ValType::I32], []);
    let mut functions = FunctionSection::new();
    functions.function(0).function(1).function(2);
    let mut memories = MemorySection::new();
    let ty = MemoryType { minimum: 1, maximum: Some(PAGES_MAX), memory64: false, shared: false, page_size_log2: None };
    memories.memory(ty);
    let mut globals = GlobalSection::new();
    for start in [BASE, 0, 0] {
        let ty = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(ty, &ConstExpr::i32_const(start));
    }
    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    for (name, function) in [("realloc", 0), ("take", 1), ("give", 2)] {
        exports.export(name, ExportKind::Func, function);
    }
    let mut code = CodeSection::new();
    code.function(&realloc()).function(&take()).function(&give());
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&memories).section(&globals).section(&exports).section(&code);
    module
}

/// `realloc(old, old-size, align, new-size)`: always at the end.
fn realloc() -> Function {
    const OLD: u32 = 0;
    const OLD_SIZE: u32 = 1;
    const ALIGN: u32 = 2;
    const NEW_SIZE: u32 = 3;
    const AT: u32 = 4;
    const MISSING: u32 = 5;
    let mut function = Function::new([(2, ValType::I32)]);
    let mut code = function.instructions();
    // The next aligned address.
    code.global_get(TOP).local_get(ALIGN).i32_add().i32_const(1).i32_sub();
    code.i32_const(0).local_get(ALIGN).i32_sub().i32_and().local_tee(AT);
    code.local_get(NEW_SIZE).i32_add().global_set(TOP);
    // Pages that are missing.
    code.global_get(TOP).i32_const(0xffff).i32_add().i32_const(16).i32_shr_u();
    code.memory_size(0).i32_sub().local_tee(MISSING);
    code.i32_const(0).i32_gt_s().if_(BlockType::Empty);
    code.local_get(MISSING).memory_grow(0).i32_const(-1).i32_eq();
    code.if_(BlockType::Empty).unreachable().end().end();
    // What there was moves along. Nothing shrinks to less than it holds.
    code.local_get(AT).local_get(OLD);
    code.local_get(OLD_SIZE).local_get(NEW_SIZE).local_get(OLD_SIZE).local_get(NEW_SIZE).i32_lt_u().select();
    code.memory_copy(0, 0);
    code.local_get(AT).end();
    function
}

/// `take()`: a buffer.
fn take() -> Function {
    let mut function = Function::new([(1, ValType::I32)]);
    let mut code = function.instructions();
    code.global_get(ACTIVE).i32_const(1).i32_add().global_set(ACTIVE);
    code.global_get(FREE).local_tee(0).if_(BlockType::Result(ValType::I32));
    code.local_get(0).i32_load(WORD).global_set(FREE).local_get(0);
    code.else_();
    code.i32_const(0).i32_const(0).i32_const(16).i32_const((HEAD_BYTES + PIECE_BYTES) as i32).call(0);
    code.end().end();
    function
}

/// `give(buffer)`: it is free again.
fn give() -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    code.local_get(0).global_get(FREE).i32_store(WORD);
    code.local_get(0).global_set(FREE);
    code.global_get(ACTIVE).i32_const(1).i32_sub().global_set(ACTIVE);
    code.global_get(ACTIVE).i32_eqz().if_(BlockType::Empty);
    code.i32_const(BASE).global_set(TOP).i32_const(0).global_set(FREE);
    code.end().end();
    function
}

// Functions of a reader's module, as it imports and defines them.
const TAKE: u32 = 0;
const GIVE: u32 = 1;
const READ: u32 = 2;
const DROP: u32 = 3;
const RETURN: u32 = 4;
const NEW_SET: u32 = 5;
const DROP_SET: u32 = 6;
const JOIN: u32 = 7;
const GET: u32 = 8;
const SET: u32 = 9;
const FINISH: u32 = 12;

/// The answer of `read` while there is nothing.
const BLOCKED: i32 = -1;

/// The answer of a task's function that waits for the set above its low bits.
const WAIT: i32 = 2;

/// The reader of one type.
pub(super) struct Reader {
    pub(super) kind: Kind,
    /// Items that are read at once.
    pub(super) count: u32,
}

impl Reader {
    pub(super) fn module(&self) -> Module {
        let mut types = TypeSection::new();
        let signatures = [(1, 1), (3, 1), (0, 1), (1, 0), (2, 0), (4, 0), (2, 1), (3, 0)];
        for (params, results) in signatures {
            types.ty().function(vec![ValType::I32; params], vec![ValType::I32; results]);
        }
        let mut imports = ImportSection::new();
        let memory =
            MemoryType { minimum: 1, maximum: Some(PAGES_MAX), memory64: false, shared: false, page_size_log2: None };
        imports.import("memory", "memory", EntityType::Memory(memory));
        let read = if self.kind == Kind::Stream { 1 } else { 6 };
        for (from, name, ty) in [
            ("memory", "take", 2),
            ("memory", "give", 3),
            ("built-ins", "read", read),
            ("built-ins", "drop", 3),
            ("built-ins", "return", 5),
            ("built-ins", "new-set", 2),
            ("built-ins", "drop-set", 3),
            ("built-ins", "join", 4),
            ("built-ins", "get", 2),
            ("built-ins", "set", 3),
        ] {
            imports.import(from, name, EntityType::Function(ty));
        }
        let mut functions = FunctionSection::new();
        functions.function(0).function(1).function(7);
        let mut exports = ExportSection::new();
        exports.export("begin", ExportKind::Func, 10).export("go-on", ExportKind::Func, 11);
        let mut code = CodeSection::new();
        code.function(&self.begin()).function(&go_on()).function(&self.finish());
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&exports).section(&code);
        module
    }

    /// `begin(stream)`: reads, and answers or waits.
    fn begin(&self) -> Function {
        const STREAM: u32 = 0;
        const BUFFER: u32 = 1;
        const READ_BYTES: u32 = 2;
        const OWN_SET: u32 = 3;
        let mut function = Function::new([(3, ValType::I32)]);
        let mut code = function.instructions();
        code.call(TAKE).local_set(BUFFER);
        code.local_get(STREAM);
        piece(&mut code, BUFFER);
        if self.kind == Kind::Stream {
            code.i32_const(self.count as i32);
        }
        code.call(READ).local_tee(READ_BYTES).i32_const(BLOCKED).i32_eq().if_(BlockType::Empty);
        code.call(NEW_SET).local_set(OWN_SET);
        code.local_get(STREAM).local_get(OWN_SET).call(JOIN);
        code.local_get(BUFFER).local_get(OWN_SET).i32_store(WORD);
        code.local_get(BUFFER).call(SET);
        code.local_get(OWN_SET).i32_const(4).i32_shl().i32_const(WAIT).i32_or().return_();
        code.end();
        code.local_get(STREAM).local_get(READ_BYTES).local_get(BUFFER).call(FINISH);
        code.i32_const(0).end();
        function
    }

    /// `finish(stream, read, buffer)`: returns the piece, and the stream unless it has ended.
    fn finish(&self) -> Function {
        const STREAM: u32 = 0;
        const DONE: u32 = 1;
        const BUFFER: u32 = 2;
        const GOES_ON: u32 = 3;
        let mut function = Function::new([(1, ValType::I32)]);
        let mut code = function.instructions();
        // The low bits of what `read` answers are 0 unless it was the last piece.
        code.local_get(DONE).i32_const(15).i32_and().i32_eqz().local_set(GOES_ON);
        if self.kind == Kind::Future {
            code.local_get(GOES_ON).local_set(DONE).i32_const(0).local_set(GOES_ON);
        } else {
            code.local_get(DONE).i32_const(4).i32_shr_u().local_set(DONE);
        }
        code.local_get(GOES_ON).i32_eqz().if_(BlockType::Empty);
        code.local_get(STREAM).call(DROP).i32_const(0).local_set(STREAM).end();
        piece(&mut code, BUFFER);
        code.local_get(DONE).local_get(GOES_ON).local_get(STREAM).call(RETURN);
        code.local_get(BUFFER).call(GIVE).end();
        function
    }
}

/// `go-on(event, stream, read)`: what the task waited for is there.
fn go_on() -> Function {
    const STREAM: u32 = 1;
    const DONE: u32 = 2;
    const BUFFER: u32 = 3;
    let mut function = Function::new([(1, ValType::I32)]);
    let mut code = function.instructions();
    code.call(GET).local_set(BUFFER);
    code.local_get(STREAM).i32_const(0).call(JOIN);
    code.local_get(BUFFER).i32_load(WORD).call(DROP_SET);
    code.local_get(STREAM).local_get(DONE).local_get(BUFFER).call(FINISH);
    code.i32_const(0).end();
    function
}

/// The address of the piece in a buffer.
fn piece(code: &mut InstructionSink<'_>, buffer: u32) {
    code.local_get(buffer).i32_const(HEAD_BYTES as i32).i32_add();
}
