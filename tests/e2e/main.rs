//! End-to-end tests: the real binary, real components, real frames. There is one module per promise
//! or part of the surface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod address_space;
mod approval;
mod apps;
mod arguments;
mod asking;
mod audit;
mod bombs;
mod bounded;
mod bridge;
mod bridge_bodies;
mod bridge_servers;
mod bridge_servers_asking;
mod bridge_servers_hostile;
mod budgets;
mod bundle;
mod caching;
mod calibrate;
mod cli;
mod client_config;
mod clients;
mod code;
mod code_beside;
mod code_cache;
mod code_results;
mod code_runs;
mod code_styles;
mod components;
mod composed;
mod concurrent;
mod console;
mod coverage;
mod dev;
mod discovery;
mod edit;
mod eras;
mod evidence;
mod examples;
mod fairness;
mod grants;
mod guest_resources;
mod hints;
mod hostile;
mod http;
mod instances;
mod integers;
mod lifecycle;
mod loader;
mod loading;
mod malformed;
mod model_apis;
mod nested;
mod nested_approvals;
mod new;
mod observed;
mod p3;
mod policy;
mod portable;
mod program;
mod prompts;
mod recordings;
mod registries;
mod reload;
mod reload_beside;
mod reload_crash;
mod reload_storm;
mod remnants;
mod replay;
mod replay_versions;
mod resource_files;
mod resource_updates;
mod resources;
mod results;
mod schemas;
mod sealed;
mod secrets;
mod service;
mod several;
mod sketches;
mod skills;
mod start;
mod state_resources;
mod stopping;
mod streams;
mod tasks;
mod terminal;
mod top;
mod typed;
mod ungranted;
mod usage;
mod wall_files;
mod wall_groups;
mod wall_memory;
mod walls;
