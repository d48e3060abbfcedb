//! Skills: folders of the host with a `SKILL.md`, whose files are resources (ext-skills). Their
//! files are read once, when the generation is built, so that digests are of what is given out.
//! Must not hold: the methods of clients.
mod frontmatter;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell_mcp::{
    DeclaredResource, FolderChild, McpTool, ResourceMore, ResourceReader, Skill, ToolDefinition, ToolList,
};
use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{Callable, Diagnostic, Manifest, SkillsPolicy, ToolName};
use toolcell_sandbox::ComponentDigest;

use super::held::{HeldBody, HeldFile, HeldFiles};
use crate::files::blocking_files;
use crate::files::file::absolute;
use crate::resources::folders::uri_of;
use frontmatter::Frontmatter;
use tree::{SKILL_FILE, SkillTree};

/// The name of all of them together, where a component's name would stand. No component has a dot.
pub const SKILLS: &str = "manifest.skills";

/// Begins the addresses of their files.
const SCHEME: &str = "skill://";

/// Begins the names of their entries among those of tools and prompts. No tool has such a name.
const ENTRY: &str = "skill/";

/// Longest address, in bytes. Clients and proxies take as much.
const URI_BYTES_MAX: usize = 2_048;

/// Most bytes of the list of skills, kept in memory. A file in several skills is listed with each.
/// 16 MiB: as all files by default.
const LISTED_BYTES_MAX: usize = 16 << 20;

/// All skills of a manifest, in the order of their paths.
#[derive(Default)]
pub struct Skills {
    /// True if the manifest has `[skills]`, if only an empty folder.
    pub offered: bool,
    /// Their entries, which tell who sees them.
    pub entries: Vec<Arc<McpTool>>,
    listed: Vec<Skill>,
    files: Vec<SkillFile>,
    /// The folders of skills, each with its path and the entries of the skills that it lies in.
    folders: BTreeMap<String, (String, Vec<String>)>,
    digest: String,
}

/// One file of a skill.
struct SkillFile {
    uri: String,
    path: String,
    /// The entries of the skills that it lies in, the innermost first.
    entries: Vec<String>,
    digest: String,
    body: HeldBody,
    /// Name and description, of a `SKILL.md`.
    head: Option<(String, String)>,
}

/// The files and folders in which a change of the skills shows.
pub fn files(manifest: &Manifest, folder: &Path) -> BTreeSet<PathBuf> {
    let Some(policy) = manifest.skills() else { return BTreeSet::new() };
    let root = absolute(&folder.join(policy.folder()));
    let own = root.clone();
    blocking_files::run(&root, move |_| tree::watched(&own)).unwrap_or_else(|_| [root].into())
}

impl Skills {
    /// Reads the skills.
    pub fn build(manifest: &Manifest, folder: &Path, problems: &mut Vec<Diagnostic>) -> Self {
        let Some(policy) = manifest.skills() else { return Self::default() };
        match read(policy, folder).and_then(|tree| Self::of(tree, policy)) {
            Ok(skills) => {
                if skills.listed.is_empty() {
                    let message = format!("{} holds no skill", policy.folder());
                    let hint = format!("a skill is a folder with a {SKILL_FILE}");
                    problems.push(Diagnostic::warning("skills::none", message).at(policy.span()).hint(hint));
                }
                skills
            }
            Err(problem) => {
                problems.push(problem);
                Self::default()
            }
        }
    }

    fn of(mut tree: SkillTree, policy: &SkillsPolicy) -> Result<Self, Diagnostic> {
        let mut skills = Self { offered: true, ..Self::default() };
        let mut heads = BTreeMap::new();
        for path in &tree.skills {
            let file = format!("{path}/{SKILL_FILE}");
            let wrong = |problem: String| wrong(policy, &format!("has {file}, which {problem}"));
            let bytes = tree.files.get(&file).cloned().unwrap_or_default();
            let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8 text".to_owned()))?;
            let head = frontmatter::read(&text).map_err(wrong)?;
            check_path(path, &head).map_err(wrong)?;
            skills.entries.push(Arc::new(entry(path, &head).map_err(wrong)?));
            heads.insert(path.clone(), head);
        }
        let files = std::mem::take(&mut tree.files);
        let entries_of = |path: &str| tree.holders(path).map(entry_name).collect::<Vec<_>>();
        for (path, bytes) in files {
            let uri = uri_of(SCHEME, &path);
            if uri.len() > URI_BYTES_MAX {
                return Err(wrong(policy, &format!("has {path}, whose address is longer than {URI_BYTES_MAX} bytes")));
            }
            let head = path.strip_suffix(SKILL_FILE).and_then(|path| heads.get(path.strip_suffix('/')?));
            skills.files.push(SkillFile {
                uri,
                entries: entries_of(&path),
                digest: ComponentDigest::of(&bytes).to_string(),
                body: HeldBody::of(bytes),
                head: head.map(|head| (head.name.clone(), head.description.clone())),
                path,
            });
        }
        for path in &tree.folders {
            let own = tree.skills.get(path).map(|path| entry_name(path));
            let entries = own.into_iter().chain(entries_of(path)).collect();
            skills.folders.insert(uri_of(SCHEME, path), (path.clone(), entries));
        }
        let mut bytes = 0_usize;
        for (path, head) in heads {
            let listed = skills.listed(&path, head);
            bytes = bytes.saturating_add(listed.json.len());
            if bytes > LISTED_BYTES_MAX {
                let most = show_bytes(LISTED_BYTES_MAX as u64);
                return Err(wrong(policy, &format!("has skills whose list is longer than {most}")));
            }
            skills.listed.push(listed);
        }
        let each: Vec<&str> = skills.listed.iter().map(|skill| skill.json.as_str()).collect();
        skills.digest = ComponentDigest::of(json!([each, skills.folders]).to_string().as_bytes()).to_string();
        Ok(skills)
    }

    /// The entry of a list (ext-skills, "Skill Entries").
    fn listed(&self, path: &str, head: Frontmatter) -> Skill {
        let entry = entry_name(path);
        let own = self.files.iter().filter(|file| file.entries.contains(&entry));
        let resources: Vec<Value> =
            own.map(|file| json!({"uri": file.uri, "digest": file.digest, "size": file.body.len()})).collect();
        let uri = uri_of(SCHEME, &format!("{path}/{SKILL_FILE}"));
        let json = json!({"uri": uri, "frontmatter": head.fields, "resources": resources}).to_string();
        Skill { entry, uri, json }
    }

    /// The entries of their list.
    pub fn all(&self) -> &[Skill] {
        &self.listed
    }

    /// `sha256:…` of all of them.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.body.len() as u64).sum()
    }

    /// True if clients get the same from both.
    pub fn is_like(&self, other: &Self) -> bool {
        self.offered == other.offered && self.digest == other.digest
    }

    /// Their files, as resources. Only each `SKILL.md` is listed.
    pub fn held(&self) -> HeldFiles {
        let mut held = HeldFiles::default();
        let mut places = BTreeMap::new();
        for (skill, entry) in self.listed.iter().zip(&self.entries) {
            let file = self.files.iter().find(|file| file.uri == skill.uri);
            places.insert(skill.entry.as_str(), held.declared.len());
            held.declared.push(DeclaredResource {
                uri: skill.uri.clone(),
                is_template: false,
                name: file.and_then(|file| file.head.as_ref()).map(|(name, _)| name.clone()).unwrap_or_default(),
                title: None,
                description: Some(entry.definition().description.clone()),
                mime_type: Some("text/markdown".to_owned()),
                // The files of a skill are supporting files of the skills that it lies in.
                reader: ResourceReader::Held {
                    entries: file.map(|file| file.entries.clone()).unwrap_or_default(),
                    version: ComponentDigest::of(skill.json.as_bytes()).to_string(),
                },
                variables: Vec::new(),
                more: ResourceMore::default(),
            });
        }
        for file in &self.files {
            let innermost = file.entries.first().and_then(|entry| places.get(entry.as_str()));
            let Some(declared) = innermost.copied() else { continue };
            let held_file = HeldFile {
                holder: SKILLS,
                declared,
                mime_type: file.body.mime_type(&file.path).to_owned(),
                body: file.body.clone(),
                meta: toolcell_mcp::Map::new(),
                digest: file.digest.clone(),
            };
            held.files.insert(file.uri.clone(), held_file);
        }
        held
    }

    /// The things directly in a folder, as far as a caller with these entries sees it; `None` where
    /// it sees no such folder (ext-skills, "Reading Directories").
    pub fn folder(&self, uri: &str, seen: &ToolList) -> Option<Vec<FolderChild>> {
        let uri = toolcell_mcp::normal_uri(uri);
        let sees = |entries: &[String]| entries.iter().any(|entry| seen.find(entry).is_some());
        // The folders above skills, up to the first.
        let above: BTreeSet<&str> = self
            .listed
            .iter()
            .filter(|skill| seen.find(&skill.entry).is_some())
            .flat_map(|skill| skill.uri.match_indices('/').filter_map(|(at, _)| skill.uri.get(..at)))
            .filter(|folder| folder.len() > SCHEME.len())
            .collect();
        let sees_folder = |folder: &str, entries: &[String]| above.contains(folder) || sees(entries);
        let entries = self.folders.get(&uri).map(|(_, entries)| entries.as_slice()).unwrap_or_default();
        if !sees_folder(&uri, entries) {
            return None;
        }
        let prefix = format!("{uri}/");
        let is_child =
            |path: &str| path.strip_prefix(&prefix).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'));
        let mut children: BTreeMap<&str, FolderChild> = BTreeMap::new();
        for folder in above.iter().filter(|folder| is_child(folder)) {
            children.insert(folder, child(folder, folder, FolderChild::FOLDER, None));
        }
        for (folder, (path, entries)) in self.folders.iter().filter(|(folder, _)| is_child(folder)) {
            if sees_folder(folder, entries) {
                children.insert(folder, child(folder, path, FolderChild::FOLDER, None));
            }
        }
        for file in self.files.iter().filter(|file| is_child(&file.uri) && sees(&file.entries)) {
            let mime_type = if file.head.is_some() { "text/markdown" } else { file.body.mime_type(&file.path) };
            let plain = child(&file.uri, &file.path, mime_type, Some(file.body.len() as u64));
            let named = match &file.head {
                Some((name, description)) => {
                    FolderChild { name: name.clone(), description: Some(description.clone()), ..plain }
                }
                None => plain,
            };
            children.insert(&file.uri, named);
        }
        Some(children.into_values().collect())
    }
}

fn child(uri: &str, path: &str, mime_type: &str, size_bytes: Option<u64>) -> FolderChild {
    FolderChild {
        uri: uri.to_owned(),
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        description: None,
        mime_type: mime_type.to_owned(),
        size_bytes,
    }
}

/// The name of a skill's entry.
fn entry_name(path: &str) -> String {
    format!("{ENTRY}{path}")
}

/// The path of a skill whose entry this is.
pub fn path_of(entry: &McpTool) -> Option<&str> {
    entry.definition().name.strip_prefix(ENTRY)
}

/// The name of a skill, as rules for callers match it.
pub fn called(entry: &McpTool) -> ToolName<'_> {
    let path = path_of(entry).unwrap_or_default();
    let (folder, own) = path.rsplit_once('/').unwrap_or(("", path));
    ToolName { kind: Callable::Skill, component: folder, own, exposed: path }
}

fn entry(path: &str, head: &Frontmatter) -> Result<McpTool, String> {
    let definition = ToolDefinition::new(&head.name, &head.description, json!({"type": "object"}));
    let tool = McpTool::compile(definition).map_err(|problems| {
        let first = problems.first().map(|problem| format!("{} {}", problem.field, problem.message));
        format!("cannot be listed: {}", first.unwrap_or_default())
    })?;
    Ok(tool.into_unlisted(entry_name(path)))
}

/// Checks the folder of a skill: its last part is the skill's name, and the others are plain words,
/// as they stand in addresses (ext-skills, "Resource Mapping").
fn check_path(path: &str, head: &Frontmatter) -> Result<(), String> {
    let (above, last) = path.rsplit_once('/').map_or((None, path), |(above, last)| (Some(above), last));
    if last != head.name {
        return Err(format!("has the name {:?}, and its folder is called {last:?}: both must be the same", head.name));
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    match above.and_then(|above| above.split('/').find(|part| !part.bytes().all(plain))) {
        Some(part) => Err(format!("lies in the folder {part:?}: write folders above skills in a-z, 0-9 and -_.")),
        None => Ok(()),
    }
}

fn read(policy: &SkillsPolicy, folder: &Path) -> Result<SkillTree, Diagnostic> {
    let root = absolute(&folder.join(policy.folder()));
    let own = root.clone();
    let bytes_max = policy.bytes_max();
    let read = blocking_files::run(&root, move |heartbeat| tree::read(&own, bytes_max, heartbeat));
    let read = read.unwrap_or_else(|error| Err(format!("cannot be read: {}", crate::files::file::plain(&error))));
    read.map_err(|problem| wrong(policy, &problem))
}

fn wrong(policy: &SkillsPolicy, problem: &str) -> Diagnostic {
    Diagnostic::error("skills::folder", format!("the folder of skills {} {problem}", policy.folder())).at(policy.span())
}
