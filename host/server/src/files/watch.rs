//! Ways to see that files change, and filesystems that change without the kernel of this machine
//! reporting it.
use std::path::Path;

/// Way to see changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watch {
    /// Through inotify. Network filesystems are polled.
    #[default]
    Auto,
    /// Through inotify alone.
    Native,
    /// By polling twice a second, which works everywhere.
    Poll,
    /// Not at all: only SIGHUP and `toolcell reload` start a reload.
    Off,
}

/// Magic numbers of filesystems that other machines write to, from `statfs(2)` and the kernel's
/// `magic.h`. They include FUSE and 9p: folders that virtual machines share with their host, and
/// sshfs.
const NETWORK: [u64; 12] = [
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF53_4D42, // CIFS
    0xFE53_4D42, // SMB2
    0x6573_5546, // FUSE, virtiofs
    0x0102_1997, // 9p
    0x00C3_6400, // Ceph
    0x5346_414F, // AFS
    0x6B41_4653, // kAFS
    0x7375_7245, // Coda
    0x0BD0_0BD0, // Lustre
    0x7461_636F, // OCFS2
];

/// True if this folder is on one of them. False if the system does not tell.
pub fn on_network(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|found| {
        // Magic numbers have 32 bits; the field's type differs between architectures.
        let magic = u64::try_from(found.f_type).unwrap_or_default() & 0xFFFF_FFFF;
        NETWORK.contains(&magic)
    })
}
