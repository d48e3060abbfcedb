//! The functions of a core module that references may call: those that are exported, in element
//! segments or in initial values, and the one that starts.
use std::collections::HashSet;

use wasmparser::{ConstExpr, ElementItems, ExternalKind, Operator, Payload, TableInit};

use super::ledger::Refusal;

/// Their indices.
#[derive(Default)]
pub(crate) struct References(HashSet<u32>);

impl References {
    /// Reads one section. Those that refer to no function are skipped.
    pub(crate) fn section(&mut self, payload: &Payload<'_>) -> Result<(), Refusal> {
        match payload {
            Payload::TableSection(section) => section.clone().into_iter().try_for_each(|table| match table?.init {
                TableInit::Expr(init) => self.expression(&init),
                TableInit::RefNull => Ok(()),
            }),
            Payload::GlobalSection(section) => {
                section.clone().into_iter().try_for_each(|global| self.expression(&global?.init_expr))
            }
            Payload::ExportSection(section) => section.clone().into_iter().try_for_each(|export| {
                let export = export?;
                if matches!(export.kind, ExternalKind::Func | ExternalKind::FuncExact) {
                    self.0.insert(export.index);
                }
                Ok(())
            }),
            Payload::StartSection { func, .. } => {
                self.0.insert(*func);
                Ok(())
            }
            Payload::ElementSection(section) => {
                section.clone().into_iter().try_for_each(|segment| self.elements(segment?.items))
            }
            _ => Ok(()),
        }
    }

    fn elements(&mut self, items: ElementItems<'_>) -> Result<(), Refusal> {
        match items {
            ElementItems::Functions(items) => items.into_iter().try_for_each(|function| {
                self.0.insert(function?);
                Ok(())
            }),
            ElementItems::Expressions(_, items) => items.into_iter().try_for_each(|item| self.expression(&item?)),
        }
    }

    fn expression(&mut self, expression: &ConstExpr<'_>) -> Result<(), Refusal> {
        if let Operator::RefFunc { function_index } = expression.get_operators_reader().read()? {
            self.0.insert(function_index);
        }
        Ok(())
    }

    /// The number of functions.
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The index of each function, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
}
