//! Functions as tools are listed: names, descriptions and schemas. Must not hold: how they are called.
use super::describe::{Described, Descriptions, Sources, part_names};
use super::functions::{Function, Functions, Returns};
use super::schema::{self, Docs};
use crate::bindings::contract;

impl Functions {
    /// The tools, as a component that keeps the contract would list them.
    pub(crate) fn tools(&self, descriptions: &Descriptions) -> Vec<contract::Tool> {
        let sources = Sources::new(descriptions, &self.texts);
        let types = Described::new(&self.types, &self.type_names, &sources);
        self.functions.iter().map(|function| self.tool(function, &sources, &types)).collect()
    }

    fn tool(&self, function: &Function, sources: &Sources<'_>, types: &dyn Docs) -> contract::Tool {
        let name = &function.name;
        let description = sources.function(function.interface.as_deref(), name);
        let parameters: Vec<_> =
            function.parameters.iter().map(|parameter| sources.parameter(name, &parameter.wit_name)).collect();
        let input = schema::of_fields(&self.types, types, &function.parameters, &parameters);
        let (Returns::Value(result) | Returns::Result(result, _)) = function.returns;
        contract::Tool {
            name: function.tool.clone(),
            title: None,
            description: description.unwrap_or_else(|| format!("Calls {} of the component.", function.wit_name())),
            input_schema_json: input.to_string(),
            output_schema_json: Some(schema::of_result(&self.types, types, result).to_string()),
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        }
    }

    /// Everything that can be described, by the names that [`Descriptions::given`] goes by.
    pub(crate) fn describable(&self) -> Vec<String> {
        let mut names = Vec::new();
        for function in &self.functions {
            names.push(function.name.clone());
            names.extend(function.parameters.iter().map(|part| format!("{}.{}", function.name, part.wit_name)));
        }
        for (ty, known) in &self.type_names {
            for known in known {
                names.push(known.name.clone());
                names.extend(part_names(self.types.get(*ty)).iter().map(|part| format!("{}.{part}", known.name)));
            }
        }
        names.sort();
        names.dedup();
        names
    }
}
