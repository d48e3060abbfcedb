//! A JSONPath query as a tree, in the terms of RFC 9535. Holds no syntax and no evaluation.

/// A query: segments applied one after the other, from the root (`$`) or, in a filter, the current place (`@`).
#[derive(Debug)]
pub struct Query {
    /// Whether it begins with `@`.
    pub relative: bool,
    /// What leads from there to the matches.
    pub segments: Vec<Segment>,
}

/// One step of a query.
#[derive(Debug)]
pub struct Segment {
    /// `..`: the selectors apply to the place itself and everything below it.
    pub descendants: bool,
    /// What is selected from each place, in this order.
    pub selectors: Vec<Selector>,
}

/// What is selected from one place.
#[derive(Debug)]
pub enum Selector {
    /// The member of this name.
    Name(String),
    /// Every member or element.
    Wildcard,
    /// The element at this index; from the end where it is negative.
    Index(i64),
    /// Elements from, to (exclusive), by step.
    Slice {
        /// Where to begin; from the end where it is negative.
        start: Option<i64>,
        /// Where to stop before; from the end where it is negative.
        end: Option<i64>,
        /// How far to go each time; backwards where it is negative.
        step: i64,
    },
    /// Every member or element that passes a test.
    Filter(Test),
}

/// A logical expression.
#[derive(Debug)]
pub enum Test {
    /// Any of these.
    Any(Vec<Test>),
    /// All of these.
    All(Vec<Test>),
    /// Not this.
    Not(Box<Test>),
    /// The query matches something.
    Exists(Query),
    /// A comparison of two values.
    Compare(Operand, Comparison, Operand),
    /// A function that answers yes or no.
    Matches(Box<RegexCall>),
}

/// `match` or `search`.
#[derive(Debug)]
pub struct RegexCall {
    /// What is looked at.
    pub text: Operand,
    /// The regular expression.
    pub pattern: Pattern,
    /// `match`: all of the text must fit, not just a part.
    pub whole: bool,
}

/// A regular expression.
#[derive(Debug)]
pub enum Pattern {
    /// Written in the query.
    Written(regex_lite::Regex),
    /// Taken from the document.
    Computed(Operand),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// Something that has one value, or none.
#[derive(Debug)]
pub enum Operand {
    /// A value written in the query.
    Literal(serde_json::Value),
    /// What a query that can match at most one place matches.
    Singular(Query),
    /// `length`: characters of a text, elements of an array, members of an object.
    Length(Box<Operand>),
    /// `count`: how many places a query matches.
    Count(Query),
    /// `value`: what a query matches, if it is exactly one place.
    Value(Query),
}

impl Query {
    /// Whether it can match at most one place: names and indexes only.
    pub fn is_singular(&self) -> bool {
        self.segments.iter().all(|segment| {
            !segment.descendants && matches!(segment.selectors.as_slice(), [Selector::Name(_) | Selector::Index(_)])
        })
    }
}
