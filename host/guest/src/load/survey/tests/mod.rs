//! Counts of harmless and of harmful components.
//!
//! Promise: few bytes do not stand for gigabytes.
mod encode;
mod generate;

use std::time::{Duration, Instant};

use encode::{
    component, costly, function, globals, inner_component, inner_module, levels, list, module, number, over_values,
    referred, resources, section, signed, times,
};
use generate::Dice;

use super::*;

/// Longer than counting anything takes, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(20);

/// The bound that a component exceeds.
fn refused(bytes: &[u8]) -> LoadBound {
    let began = Instant::now();
    let refusal = super::component(bytes).and_then(|_| check_code(bytes)).unwrap_err();
    assert!(began.elapsed() < AT_ONCE, "{:?} for {} bytes", began.elapsed(), bytes.len());
    match refusal {
        Refusal::Excess(excess) => excess.bound,
        Refusal::Broken(reason) => panic!("not counted: {reason}"),
    }
}

fn text(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// One core instance of an empty module.
fn one_core() -> Vec<Vec<u8>> {
    vec![inner_module(&[]), list(2, &[[0x00, 0x00, 0x00]])]
}

#[test]
fn types_inside_each_other_are_counted_before_they_are_read() {
    for nested in [[0x41, 1, 1].as_slice(), &[0x42, 1, 1], &[0x41, 1, 1, 0x42, 1, 1]] {
        for count in [40, 5_000, 1_000_000] {
            let body = [number(1), nested.repeat(count), vec![0x41, 0]].concat();
            assert_eq!(refused(&component(&[section(7, &body)])), LoadBound::Nesting, "{count}");
        }
    }
    let body = [number(1), [0x42, 1, 1].repeat(20), vec![0x42, 0]].concat();
    assert!(super::component(&component(&[section(7, &body)])).is_ok());
}

#[test]
fn the_engine_of_a_component_is_known_from_its_bytes() {
    for (parts, engine) in [
        ("", GuestEngine::Sync),
        ("(type (func (param \"a\" (list string)) (result string)))", GuestEngine::Sync),
        ("(type $r (resource (rep i32))) (core func (canon resource.drop $r))", GuestEngine::Sync),
        ("(type (func async))", GuestEngine::Async),
        ("(import \"i\" (instance (export \"f\" (func async))))", GuestEngine::Async),
        ("(type (stream u8))", GuestEngine::Async),
        ("(type (future))", GuestEngine::Async),
        ("(core func (canon context.get i32 0))", GuestEngine::Async),
        ("(core func (canon backpressure.inc))", GuestEngine::Async),
        ("(core func (canon waitable-set.new))", GuestEngine::Async),
        ("(component (component (core func (canon task.cancel))))", GuestEngine::Async),
    ] {
        assert_eq!(super::component(&text(&format!("(component {parts})"))).unwrap().engine, engine, "{parts}");
    }
}

#[test]
fn parts_that_may_wait_on_stacks_of_their_own_are_counted_in_async_components() {
    // Each part has a built-in as a function, and so no core instance.
    let parts = |count: usize| {
        let instances = "(instance (instantiate $c))".repeat(count);
        text(&format!(
            "(component
               (component $c (core func $get (canon context.get i32 0))
                 (func (export \"f\") (result u32) (canon lift (core func $get))))
               (component $none) (instance (instantiate $none))
               {instances})"
        ))
    };
    assert_eq!(super::component(&parts(64)).unwrap().cost.waiting_parts, 64);
    assert_eq!(refused(&parts(65)), LoadBound::WaitingParts);
}

#[test]
fn components_inside_each_other_are_counted() {
    let nested = |count: usize| (0..count).fold(Vec::new(), |inner, _| vec![inner_component(&inner)]);
    assert_eq!(refused(&component(&nested(40))), LoadBound::Nesting);
    assert!(super::component(&component(&nested(10))).is_ok());
}

#[test]
fn instances_are_counted_as_often_as_they_are_made() {
    for (count, width) in [(7, 2), (20, 2), (40, 2), (31, 3), (3, 64), (20, 1_000)] {
        let bound = refused(&levels(count, width, &one_core()));
        let bounds = [LoadBound::Instances, LoadBound::InstanceDepth, LoadBound::ComponentInstances];
        assert!(bounds.contains(&bound), "{count} {width}: {bound:?}");
        let bound = refused(&levels(count.max(9), width, &[]));
        assert!(bounds.contains(&bound), "{count} {width} without modules: {bound:?}");
    }
    let survey = super::component(&levels(3, 2, &one_core())).unwrap().cost;
    assert_eq!(survey.instances, 8);
}

#[test]
fn components_that_are_handed_over_are_counted_where_they_are_instantiated() {
    // Each takes a component as an argument and instantiates it twice.
    let twice = |levels: usize| {
        let mut text = String::from("(component (component $c0 (core module $m) (core instance (instantiate $m)))");
        for level in 1..=levels {
            let below = level - 1;
            text += &format!(
                "(component $t{level} (import \"c\" (component $c)) (instance (instantiate $c)) (instance (instantiate $c)))
                 (component $c{level} (instance (instantiate $t{level} (with \"c\" (component $c{below})))))"
            );
        }
        text + &format!("(instance (instantiate $c{levels})))")
    };
    assert_eq!(super::component(&text(&twice(3))).unwrap().cost.instances, 8);
    assert!(matches!(refused(&text(&twice(10))), LoadBound::Instances | LoadBound::InstanceDepth));
}

#[test]
fn what_instances_hold_is_counted_wherever_it_is_copied() {
    // Each level is an instance that holds the one below twice.
    let bundle = |level: usize| {
        let exports = ["a", "b"].map(|name| [encode::extern_name(name), vec![0x05], number(level)].concat());
        [vec![0x01], number(2), exports.concat()].concat()
    };
    let empty = vec![0x01, 0x00];
    let bundles = |count: usize| -> Vec<_> { [empty.clone()].into_iter().chain((0..count).map(bundle)).collect() };
    assert_eq!(refused(&component(&[list(5, &bundles(40))])), LoadBound::Expansion);
    assert!(super::component(&component(&[list(5, &bundles(5))])).is_ok());
    // One large instance, named over and over.
    let exports: Vec<_> =
        (0..2_000).map(|at| [encode::extern_name(&format!("n{at}")), vec![0x05], number(0)].concat()).collect();
    let large = [vec![0x01], number(exports.len()), exports.concat()].concat();
    let outer = [vec![0x01], number(1), encode::extern_name("in"), vec![0x05], number(1)].concat();
    let alias = [vec![0x05, 0x00], number(2), encode::name("in")].concat();
    let named = component(&[list(5, &[empty, large, outer]), times(6, 5_000, &alias)]);
    assert_eq!(refused(&named), LoadBound::Expansion);
}

#[test]
fn types_are_counted_as_they_are_written_out() {
    let tuples = |count: usize| {
        let first = vec![0x6f, 0x01, 0x7f];
        let pair = |at: usize| [vec![0x6f, 0x02], signed(at), signed(at)].concat();
        let types: Vec<_> = [first].into_iter().chain((0..count).map(pair)).collect();
        component(&[list(7, &types)])
    };
    assert_eq!(refused(&tuples(30)), LoadBound::Expansion);
    assert!(super::component(&tuples(8)).is_ok());
    let lists = |count: usize| {
        let types: Vec<_> =
            [vec![0x70, 0x7f]].into_iter().chain((0..count).map(|at| [vec![0x70], signed(at)].concat())).collect();
        component(&[list(7, &types)])
    };
    assert_eq!(refused(&lists(100_000 - 2)), LoadBound::TypeDepth);
    assert!(super::component(&lists(50)).is_ok());
}

#[test]
fn what_an_instance_takes_of_the_host_is_counted() {
    let made =
        |globals: Vec<u8>, count: usize| component(&[inner_module(&[globals]), times(2, count, &[0x00, 0x00, 0x00])]);
    assert_eq!(refused(&made(globals(100_000), 60)), LoadBound::HostBytes);
    assert_eq!(refused(&made(globals(1_000_000), 1)), LoadBound::Globals);
    assert_eq!(refused(&made(globals(4_000), 60)), LoadBound::HostBytes);
    let survey = super::component(&made(globals(1_000), 10)).unwrap().cost;
    assert!((160_000..180_000).contains(&survey.host_bytes), "{survey:?}");
    assert!(!survey.is_light());
    // Once more by imports, exports and tables.
    let functions = [list(1, &[[0x60, 0, 0]]), times(3, 60_000, &[0])];
    let exports: Vec<_> =
        (0..60_000).map(|at| [encode::name(&format!("f{at}")), vec![0x00], number(at)].concat()).collect();
    let code = times(10, 60_000, &[2, 0, 0x0b]);
    assert_eq!(
        refused(&component(&[inner_module(&[functions.concat(), list(7, &exports), code])])),
        LoadBound::HostBytes
    );
}

#[test]
fn what_instantiation_copies_is_counted() {
    let segment = |bytes: usize| [vec![0x00, 0x41, 0x00, 0x0b], number(bytes), vec![7; bytes]].concat();
    let data = |bytes: usize| module(&[list(5, &[[0x00, 0x7f]]), list(11, &[segment(bytes)])]);
    let made =
        |bytes: usize, count: usize| component(&[section(1, &data(bytes)), times(2, count, &[0x00, 0x00, 0x00])]);
    assert_eq!(refused(&made(8 << 20, 20)), LoadBound::CopiedBytes);
    assert!(super::component(&made(8 << 20, 10)).is_ok());
}

#[test]
fn parts_past_those_of_a_call_are_counted() {
    let core =
        |count: usize, sections: &[Vec<u8>]| component(&[inner_module(sections), times(2, count, &[0x00, 0x00, 0x00])]);
    assert_eq!(refused(&core(65, &[])), LoadBound::Instances);
    assert_eq!(refused(&core(33, &[times(4, 4, &[0x70, 0x00, 0x00])])), LoadBound::Tables);
    assert_eq!(refused(&core(1, &[times(5, 65, &[0x00, 0x01])])), LoadBound::Memories);
    assert!(super::component(&core(64, &[])).is_ok());
}

#[test]
fn work_of_functions_is_counted() {
    // Nested blocks: `block`, `loop`, `if`.
    for opened in [[0x02, 0x40].as_slice(), &[0x03, 0x40], &[0x41, 0, 0x04, 0x40]] {
        for count in [25_000, 1_000_000] {
            let code = [opened.repeat(count), vec![0x0b; count]].concat();
            let bound = refused(&module(&function(0, &code)));
            assert!(matches!(bound, LoadBound::BlockDepth | LoadBound::FunctionWork), "{opened:x?}: {bound:?}");
        }
    }
    // Operands on the stack while blocks open and close.
    let waiting = [[0x23, 0].repeat(40_000), [0x02, 0x40, 0x0b].repeat(40_000), [0x1a].repeat(40_000)].concat();
    let sections = function(0, &waiting);
    let with_global = [sections[0].clone(), sections[1].clone(), globals(1), sections[2].clone()];
    assert_eq!(refused(&module(&with_global)), LoadBound::FunctionWork);
    // Locals that are written, and loops through which they live.
    let written: Vec<u8> = (0..40_000).flat_map(|local| [vec![0x41, 0, 0x21], number(local)].concat()).collect();
    let loops = [0x03, 0x40, 0x0b].repeat(40_000);
    assert_eq!(refused(&module(&function(40_000, &[written, loops].concat()))), LoadBound::FunctionWork);
}

#[test]
fn values_that_code_moves_are_counted() {
    for (what, sections) in costly() {
        let bound = refused(&module(&sections));
        assert!(matches!(bound, LoadBound::FunctionWork | LoadBound::Work), "{what}: {bound:?}");
    }
    for sections in [over_values(16, 5_000, &[0x10, 1]), over_values(1, 5_000, &[0x02, 1, 0x0b]), referred(16, 5_000)] {
        check_code(&module(&sections)).unwrap();
    }
}

#[test]
fn imports_and_exports_are_counted() {
    assert_eq!(refused(&resources(80_000)), LoadBound::ExternNames);
    assert_eq!(refused(&resources(10_001)), LoadBound::ExternNames);
    assert!(super::component(&resources(10_000)).is_ok());
    // Not those of a component inside.
    assert!(super::component(&component(&[section(4, &resources(10_001))])).is_ok());
}

#[test]
fn functions_in_initial_values_are_counted_as_references() {
    let host_bytes = |parts: &str| {
        let module = text(&format!("(module (func $f) {parts})"));
        super::component(&module).unwrap().cost.host_bytes
    };
    let with = host_bytes("(table 1 funcref (ref.func $f)) (elem declare func $f)");
    assert_eq!(host_bytes("(table 1 funcref) (elem declare func $f)"), with);
    let alone = host_bytes("(table 1 (ref null func) (ref.func $f))");
    assert!(alone > host_bytes("(table 1 (ref null func))"), "{alone}");
}

#[test]
fn code_that_compilers_make_is_not_too_much() {
    let interpreter = |cases: usize, locals: usize| {
        let mut code: Vec<u8> = [0x02, 0x40].repeat(cases);
        code.extend([vec![0x41, 0, 0x0e], number(cases - 1), (0..cases).flat_map(number).collect()].concat());
        for case in 0..cases {
            code.push(0x0b);
            code.extend([vec![0x20], number(case % locals), vec![0x21], number((case + 1) % locals)].concat());
        }
        module(&function(locals, &code))
    };
    for (cases, locals) in [(256, 500), (2_000, 1_000)] {
        check_code(&interpreter(cases, locals)).unwrap();
    }
}

#[test]
fn bytes_that_end_early_or_refer_to_nothing_are_no_component() {
    let whole = levels(3, 2, &one_core());
    for end in 0..whole.len() {
        let survey = super::component(&whole[..end]);
        // A component may end between two sections.
        assert!(matches!(survey, Err(Refusal::Broken(_)) | Ok(_)), "{end}: {survey:?}");
    }
    for section in
        [list(5, &[[0x00, 0x09, 0x00]]), list(2, &[[0x00, 0x09, 0x00]]), list(6, &[[0x04, 0x02, 0x07, 0x00]])]
    {
        assert!(matches!(super::component(&component(&[section])), Err(Refusal::Broken(_))));
    }
}

/// Pseudo-random numbers, the same each time.
struct Sequence(u64);

impl Dice for Sequence {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn whatever_is_generated_is_counted_at_once() {
    let mut counted = 0;
    for seed in 0..100 {
        let bytes = generate::component(&mut Sequence(seed));
        let began = Instant::now();
        if super::component(&bytes).and_then(|_| check_code(&bytes)).is_ok() {
            counted += 1;
        }
        assert!(began.elapsed() < AT_ONCE, "{:?} for seed {seed}, {} bytes", began.elapsed(), bytes.len());
    }
    assert!(counted >= 5, "of what is generated, {counted} of 100 are within the bounds");
}
