//! Bombs: components with every section of the binary format, nested and multiplied. Most refer to
//! existing items, and many are valid. The tests in this folder and a fuzz target use them.
use super::encode::{
    component as component_of, extern_name, inner_component, list, module as module_of, name, number, section, signed,
    times,
};

/// Choices.
pub trait Dice {
    /// A number below this one.
    fn below(&mut self, bound: u64) -> u64;
}

/// Size at which nothing more is added to a component.
const BYTES_MAX: usize = 4 << 20;

/// Components inside each other.
const DEPTH_MAX: usize = 40;

/// Numbers of repetitions to choose from.
const COUNTS: [usize; 10] = [0, 1, 1, 2, 3, 8, 60, 1_000, 20_000, 100_000];

/// The number of entries of each index space.
#[derive(Default)]
struct Indices {
    modules: usize,
    components: usize,
    instances: usize,
    core_instances: usize,
    types: usize,
}

/// A component.
pub fn component(dice: &mut dyn Dice) -> Vec<u8> {
    let mut room = BYTES_MAX;
    component_of(&sections(dice, 0, 0, &mut room))
}

fn pick(dice: &mut dyn Dice, bound: usize) -> usize {
    usize::try_from(dice.below(bound.max(1) as u64)).unwrap_or_default()
}

/// A number of repetitions that fits into the remaining room, at this size each.
fn many(dice: &mut dyn Dice, bytes: usize, room: &mut usize) -> usize {
    let count = COUNTS.get(pick(dice, COUNTS.len())).copied().unwrap_or_default();
    let count = count.min(*room / bytes.max(1));
    *room -= count * bytes;
    count
}

/// The sections of a component, with this many outer components before it.
fn sections(dice: &mut dyn Dice, depth: usize, around: usize, room: &mut usize) -> Vec<Vec<u8>> {
    let mut made = Vec::new();
    let mut at = Indices::default();
    for _ in 0..=pick(dice, 7) {
        made.push(one(dice, depth, around, &mut at, room));
    }
    made
}

fn one(dice: &mut dyn Dice, depth: usize, around: usize, at: &mut Indices, room: &mut usize) -> Vec<u8> {
    match pick(dice, 15) {
        0 => {
            let body = module(dice, room);
            at.modules += 1;
            section(1, &body)
        }
        1 if depth < DEPTH_MAX && *room > 0 => {
            let inner = sections(dice, depth + 1, at.components, room);
            at.components += 1;
            inner_component(&inner)
        }
        2 => {
            let count = many(dice, 3, room);
            let made = pick(dice, at.modules);
            at.core_instances += count;
            times(2, count, &[vec![0x00], number(made), vec![0x00]].concat())
        }
        3 | 4 => {
            let count = many(dice, 3, room);
            let made = pick(dice, at.components);
            at.instances += count;
            times(5, count, &[vec![0x00], number(made), vec![0x00]].concat())
        }
        5 => bundles(dice, at, room),
        6 => {
            let count = many(dice, 5, room);
            let of = pick(dice, around);
            at.components += count;
            times(6, count, &[vec![0x04, 0x02, 0x01], number(of)].concat())
        }
        7 => {
            let count = many(dice, 6, room);
            let of = pick(dice, at.instances);
            at.instances += count;
            times(6, count, &[vec![0x05, 0x00], number(of), name("a")].concat())
        }
        8 => types(dice, at, room),
        9 => nested_types(dice, at, room),
        10 => {
            let count = many(dice, 8, room);
            let of = pick(dice, at.types);
            let kind = [[0x01].as_slice(), &[0x03, 0x00], &[0x05], &[0x04]].get(pick(dice, 4)).copied().unwrap_or(&[]);
            let imports: Vec<_> =
                (0..count).map(|at| [extern_name(&format!("i{at}")), kind.to_vec(), number(of)].concat()).collect();
            list(10, &imports)
        }
        11 => {
            let count = many(dice, 8, room);
            let (kind, of) = match pick(dice, 3) {
                0 => (0x05, pick(dice, at.instances)),
                1 => (0x04, pick(dice, at.components)),
                _ => (0x03, pick(dice, at.types)),
            };
            let exports: Vec<_> = (0..count)
                .map(|at| [extern_name(&format!("e{at}")), vec![kind], number(of), vec![0x00]].concat())
                .collect();
            list(11, &exports)
        }
        12 => {
            let count = many(dice, 4, room);
            let of = number(pick(dice, at.types));
            let function = match pick(dice, 6) {
                0 => [vec![0x03], of].concat(),
                // `context.get`, `waitable-set.new`, `task.return`, `stream.new`, `future.read`.
                1 => vec![0x0a, 0x7f, 0x00],
                2 => vec![0x1f],
                3 => [vec![0x09, 0x00], of, vec![0x00]].concat(),
                4 => [vec![0x0e], of].concat(),
                _ => [vec![0x16], of, vec![0x00]].concat(),
            };
            times(8, count, &function)
        }
        13 => {
            let count = many(dice, 3, room);
            times(3, count, &[0x60, 0x00, 0x00])
        }
        _ => {
            let count = many(dice, 1, room);
            section(0, &[name("name"), vec![1; count]].concat())
        }
    }
}

/// Instances of existing items, each with the last ones in it.
fn bundles(dice: &mut dyn Dice, at: &mut Indices, room: &mut usize) -> Vec<u8> {
    let width = 1 + pick(dice, 3);
    let count = many(dice, 2 + 6 * width, room);
    let mut made = Vec::new();
    for _ in 0..count {
        let of = at.instances.saturating_sub(1 + pick(dice, 2));
        let exports = ["a", "b", "c"].iter().take(if at.instances == 0 { 0 } else { width });
        let exports: Vec<_> = exports.map(|text| [extern_name(text), vec![0x05], number(of)].concat()).collect();
        made.push([vec![0x01], number(exports.len()), exports.concat()].concat());
        at.instances += 1;
    }
    list(5, &made)
}

/// Types that each hold earlier ones.
fn types(dice: &mut dyn Dice, at: &mut Indices, room: &mut usize) -> Vec<u8> {
    let width = 1 + pick(dice, 4);
    let shape = pick(dice, 7);
    let count = many(dice, 3 + 4 * width, room);
    let mut made = Vec::new();
    for _ in 0..count {
        let of = if at.types == 0 { vec![0x73] } else { signed(at.types - 1) };
        made.push(match shape {
            0 => [vec![0x70], of].concat(),
            1 => [vec![0x6f], number(width), of.repeat(width)].concat(),
            2 => [vec![0x3f, 0x7f, 0x00]].concat(),
            // A stream, a future, and an async function.
            4 => [vec![0x66, 0x01], of].concat(),
            5 => [vec![0x65, 0x01], of].concat(),
            6 => [vec![0x43, 0x00, 0x00], of].concat(),
            _ => {
                let fields: Vec<_> = (0..width).map(|at| [name(&format!("f{at}")), of.clone()].concat()).collect();
                [vec![0x72], number(width), fields.concat()].concat()
            }
        });
        at.types += 1;
    }
    list(7, &made)
}

/// Types of components and instances inside each other.
fn nested_types(dice: &mut dyn Dice, at: &mut Indices, room: &mut usize) -> Vec<u8> {
    let opened = if pick(dice, 2) == 0 { [0x41, 1, 1] } else { [0x42, 1, 1] };
    let count = many(dice, 3, room);
    at.types += 1;
    section(7, &[number(1), opened.repeat(count), vec![0x42, 0x00]].concat())
}

/// A core module.
fn module(dice: &mut dyn Dice, room: &mut usize) -> Vec<u8> {
    let params = pick(dice, 4) * 300;
    let functions = many(dice, 1, room);
    let ty = [vec![0x60], number(params), vec![0x7f; params], vec![0x00]].concat();
    let mut sections = vec![list(1, &[vec![0x60, 0x00, 0x00], ty])];
    if pick(dice, 3) == 0 {
        let count = many(dice, 6, room);
        let import = [name("m"), name("f"), vec![0x00, 0x00]].concat();
        sections.push(times(2, count, &import));
    }
    let body = body(dice, room);
    let bodies = if functions * body.len() > *room { 1 } else { functions };
    *room = room.saturating_sub(bodies * body.len());
    sections.push(times(3, bodies, &number(pick(dice, 2))));
    sections.push(times(4, pick(dice, 3) * many(dice, 3, room).min(200), &[0x70, 0x00, 0x10]));
    sections.push(times(5, many(dice, 2, room).min(200), &[0x00, 0x00]));
    sections.push(times(6, many(dice, 5, room), &[0x7f, 0x00, 0x41, 0x00, 0x0b]));
    let count = many(dice, 9, room);
    let exports: Vec<_> = (0..count).map(|at| [name(&format!("x{at}")), vec![0x00, 0x00]].concat()).collect();
    sections.push(list(7, &exports));
    sections.push(times(9, many(dice, 5, room), &[0x01, 0x00, 0x01, 0x00]));
    sections.push(times(10, bodies, &body));
    sections.push(times(11, many(dice, 3, room), &[0x01, 0x01, 0x07]));
    module_of(&sections)
}

/// The code of one function: nested blocks, locals, operands on the stack.
fn body(dice: &mut dyn Dice, room: &mut usize) -> Vec<u8> {
    let opened = pick(dice, 3);
    let depth = many(dice, 5, room);
    let locals = COUNTS.get(pick(dice, COUNTS.len() - 1)).copied().unwrap_or_default();
    let open = [[0x02, 0x40].as_slice(), &[0x03, 0x40], &[0x41, 0x00, 0x04, 0x40]].get(opened).copied().unwrap_or(&[]);
    let pairs = many(dice, 6, room);
    let declared = if locals == 0 { vec![0] } else { [vec![1], number(locals), vec![0x7f]].concat() };
    let waits = many(dice, 3, room);
    let code = [
        declared,
        [0x41, 0x00].repeat(waits),
        open.repeat(depth),
        [0x02, 0x40, 0x0b].repeat(pairs),
        vec![0x0b; depth],
        vec![0x1a; waits],
        vec![0x0b],
    ]
    .concat();
    [number(code.len()), code].concat()
}
