//! Functions as listed tools: names, descriptions and schemas.
use super::describe::{DescribedTypes, Descriptions, TextSources, part_names};
use super::functions::{Returns, TypedFunction, TypedFunctions};
use super::schema::{self, Docs};
use super::weight::Weights;
use toolcell_wall::contract;

/// Bytes of all definitions of one component as text: the default limit of a contract's list. No
/// model reads a tenth of it.
const LISTED_BYTES_MAX: usize = 16 * 1024 * 1024;

impl TypedFunctions {
    /// The tools, as a component with the contract would list them. `None` if they would take more
    /// than `bytes_max`; that is checked before any is made. Names of a type count for each
    /// function that uses it.
    pub(crate) fn tools(&self, descriptions: &Descriptions, bytes_max: u64) -> Option<Vec<contract::GuestTool>> {
        let sources = TextSources::new(descriptions, &self.texts);
        let types = DescribedTypes::new(&self.types, &self.type_names, &sources);
        let mut weights = Weights::new(&self.types, &types);
        let mut left = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(LISTED_BYTES_MAX);
        let named = self.named(&descriptions.exports);
        for (_, function) in &named {
            left = left.checked_sub(self.weigh(function, &sources, &mut weights))?;
        }
        Some(named.into_iter().map(|(tool, function)| self.tool(tool, function, &sources, &types)).collect())
    }

    /// The functions that are tools, with their tool names: those of the manifest, or all.
    fn named<'a>(&'a self, exports: &'a [(String, String)]) -> Vec<(&'a str, &'a TypedFunction)> {
        if exports.is_empty() {
            return self.functions.iter().map(|function| (function.tool.as_str(), function)).collect();
        }
        let find = |written: &str| self.functions.iter().find(|function| function.names().is(written));
        exports.iter().filter_map(|(function, tool)| Some((tool.as_str(), find(function)?))).collect()
    }

    /// The approximate size of a tool's definition as text, in bytes.
    fn weigh(&self, function: &TypedFunction, sources: &TextSources<'_>, weights: &mut Weights<'_>) -> usize {
        let name = &function.name;
        let (Returns::Value(result) | Returns::Result(result, _)) = function.returns;
        let described = sources.function(function.interface.as_deref(), name).map_or(0, |text| text.len());
        let parameters = function.parameters.iter().map(|parameter| {
            let text = sources.parameter(name, &parameter.wit_name).map_or(0, |text| text.len());
            parameter.name.len().saturating_mul(2).saturating_add(text)
        });
        let own = parameters.fold(described.saturating_add(function.tool.len()), usize::saturating_add);
        let input = weights.of(function.parameters.iter().map(|parameter| parameter.ty));
        own.saturating_add(input).saturating_add(weights.of(result.into_iter()))
    }

    fn tool(
        &self,
        tool: &str,
        function: &TypedFunction,
        sources: &TextSources<'_>,
        types: &dyn Docs,
    ) -> contract::GuestTool {
        let name = &function.name;
        let description = sources.function(function.interface.as_deref(), name);
        let parameters: Vec<_> =
            function.parameters.iter().map(|parameter| sources.parameter(name, &parameter.wit_name)).collect();
        let input = schema::of_fields(&self.types, types, &function.parameters, &parameters);
        let (Returns::Value(result) | Returns::Result(result, _)) = function.returns;
        contract::GuestTool {
            name: tool.to_owned(),
            title: None,
            description: description.unwrap_or_else(|| format!("Calls {} of the component.", function.wit_name())),
            input_schema_json: input.to_string(),
            output_schema_json: Some(schema::of_result(&self.types, types, result).to_string()),
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        }
    }

    /// Everything that can be described, by the names that [`Descriptions::given`] uses.
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
