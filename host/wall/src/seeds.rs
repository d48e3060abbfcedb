//! The initial inputs of fuzz targets. `UPDATE_GOLDEN=1` rewrites them.
#![allow(clippy::unwrap_used)]

/// Checks that the target's seeds are these, and no others.
pub(crate) fn are_seeds(target: &str, seeds: &[(&str, Vec<u8>)]) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(target);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        seeds.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
    }
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut found: Vec<_> = std::fs::read_dir(&folder).unwrap().map(name).collect();
    let mut names: Vec<_> = seeds.iter().map(|(name, _)| (*name).to_owned()).collect();
    found.sort_unstable();
    names.sort_unstable();
    assert_eq!(found, names, "UPDATE_GOLDEN=1 accepts");
    for (name, bytes) in seeds {
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), *bytes, "{target}/{name}: UPDATE_GOLDEN=1 accepts");
    }
}
