//! Reports of kernels that enforce less, and of processes that are not children of their host.

use std::collections::BTreeMap;
use std::ffi::c_long;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Instant;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use toolcell_walls::kernel::{ProbeError, Report, Wall, WallState, answer_probe, probe};
use toolcell_walls::process::Command;

use crate::linux::{end, print, read, run, say, start, state, told};
use crate::memory;
use crate::site::{OlderThread, Site, THREADS_MAX};
use crate::stage::{Place, Stage, this_binary};
use crate::syscalls::call;

type Check = fn(&Stage) -> Result<(), String>;

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("a wall that is left away is named, and the rest stands", each_left_away),
    ("a kernel that refuses is quoted, and the rest stands", each_kernel),
    ("a process that is not the host's child says so", not_a_child),
    ("a host that may make no namespace of process ids is quoted, and the rest stands", barred),
    ("a sealed process ends with its host", ends_with_host),
    ("code is mapped between the two steps", maps_code),
    ("threads are bounded", bounds_threads),
    ("a probe tells the walls of the machine", probes),
    ("a probe that gives no report is an error", probes_of_nothing),
];

/// A kernel that refuses a call, where its first argument is as given.
struct Kernel {
    name: &'static str,
    call: c_long,
    argument: Option<u64>,
    errno: i32,
    /// Its report must say this, and that every other wall stands.
    says: &'static [(Wall, &'static str)],
}

const KERNELS: &[Kernel] = &[
    Kernel {
        name: "no-namespaces",
        call: libc::SYS_unshare,
        argument: None,
        errno: libc::EPERM,
        says: &[
            (Wall::UserNamespace, "unshare: Operation not permitted"),
            (Wall::IpcNamespace, "unshare: Operation not permitted"),
            (Wall::NetworkNamespace, "unshare: Operation not permitted"),
            (Wall::MountNamespace, "unshare: Operation not permitted"),
        ],
    },
    Kernel {
        name: "no-mounts",
        call: libc::SYS_mount,
        argument: None,
        errno: libc::EPERM,
        says: &[(Wall::MountNamespace, "private mounts: Operation not permitted")],
    },
    Kernel {
        name: "no-new-root",
        call: libc::SYS_pivot_root,
        argument: None,
        errno: libc::EINVAL,
        says: &[(Wall::MountNamespace, "pivot_root: Invalid argument")],
    },
    Kernel {
        name: "no-landlock",
        call: libc::SYS_landlock_create_ruleset,
        argument: None,
        errno: libc::ENOSYS,
        says: &[(Wall::Landlock, "the kernel is built without it")],
    },
    Kernel {
        name: "landlock-off",
        call: libc::SYS_landlock_create_ruleset,
        argument: None,
        errno: libc::EOPNOTSUPP,
        says: &[(Wall::Landlock, "it was turned off when the kernel started")],
    },
    Kernel {
        name: "no-seccomp",
        call: libc::SYS_seccomp,
        argument: None,
        errno: libc::ENOSYS,
        says: &[
            (Wall::SystemCalls, "Function not implemented"),
            (Wall::Processes, "system-calls"),
            (Wall::Threads, "system-calls"),
        ],
    },
    Kernel {
        name: "before-6.3",
        call: libc::SYS_prctl,
        argument: Some(libc::PR_SET_MDWE as u64),
        errno: libc::EINVAL,
        says: &[],
    },
];

/// A child whose answer is a report.
pub(crate) fn child(word: &str, place: &Place) -> ExitCode {
    let mut without = Vec::new();
    match word.split_once(':') {
        Some(("without", name)) => without.extend(Wall::from_name(name)),
        Some(("kernel", name)) => {
            let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
            refuse(kernel.expect("a kernel of the table"));
        }
        _ if word == "code" => return map_code(place),
        _ if word == "crowd" => return crowd(place),
        _ if word == "time" => return time(place),
        _ if word == "cost" => return cost(place),
        _ if word == "probe" => {
            return answer_probe().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
        }
        _ => {}
    }
    let site = Site::open(place).expect("the site");
    say(&site.enter(&without, None).seal().to_lines());
    ExitCode::SUCCESS
}

/// From here on this process's kernel is the one described.
fn refuse(kernel: &Kernel) {
    let rules = kernel.argument.map(|value| first_argument(SeccompCmpOp::Eq, value));
    filter(kernel.call, rules.into_iter().collect(), kernel.errno);
}

/// From here on this process's kernel makes no namespace of process ids.
pub(crate) fn refuse_process_ids() {
    let flag = u64::from(libc::CLONE_NEWPID.cast_unsigned());
    filter(libc::SYS_clone, vec![first_argument(SeccompCmpOp::MaskedEq(flag), flag)], libc::EPERM);
}

fn first_argument(compare: SeccompCmpOp, value: u64) -> SeccompRule {
    SeccompCondition::new(0, SeccompCmpArgLen::Dword, compare, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .expect("a rule")
}

fn filter(call: c_long, rules: Vec<SeccompRule>, errno: i32) {
    let filter = SeccompFilter::new(
        BTreeMap::from([(call, rules)]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.cast_unsigned()),
        TargetArch::try_from(std::env::consts::ARCH).expect("an architecture"),
    );
    let program = BpfProgram::try_from(filter.expect("a filter")).expect("a program");
    seccompiler::apply_filter(&program).expect("a filter that stands");
}

fn report(stage: &Stage, word: &str) -> Result<Report, String> {
    let ended = run(stage, &[word])?;
    Report::from_lines(&ended.said).map_err(|error| format!("{word}: {error}, but it {ended}"))
}

/// The report has this for these walls, and all others stand.
fn check(name: &str, report: &Report, says: &[(Wall, &str)]) -> Result<(), String> {
    for (wall, state) in report.iter() {
        let said = says.iter().find(|(named, _)| *named == wall);
        let is_right = match (said, state) {
            (Some((_, text)), WallState::Missing(reason)) => reason.contains(text),
            (None, WallState::Stands(_)) => true,
            _ => false,
        };
        if !is_right {
            return Err(format!("{name}: {wall} {state:?}"));
        }
    }
    Ok(())
}

fn each_left_away(stage: &Stage) -> Result<(), String> {
    let is_root = rustix::process::geteuid().is_root();
    for wall in Wall::ALL {
        let report = report(stage, &format!("without:{wall}"))?;
        let says: &[(Wall, &str)] = match wall {
            // An ordinary user has the rights for the other three only in the first.
            Wall::UserNamespace if !is_root => &[
                (Wall::UserNamespace, "left away"),
                (Wall::IpcNamespace, "Operation not permitted"),
                (Wall::NetworkNamespace, "Operation not permitted"),
                (Wall::MountNamespace, "Operation not permitted"),
            ],
            Wall::SystemCalls => {
                &[(Wall::SystemCalls, "left away"), (Wall::Processes, "system-calls"), (Wall::Threads, "system-calls")]
            }
            // The filter holds these.
            Wall::FixedCode | Wall::Processes | Wall::Threads => &[],
            wall => &[(wall, "left away")],
        };
        check(wall.name(), &report, says)?;
    }
    Ok(())
}

fn each_kernel(stage: &Stage) -> Result<(), String> {
    for kernel in KERNELS {
        let report = report(stage, &format!("kernel:{}", kernel.name))?;
        check(kernel.name, &report, kernel.says)?;
    }
    Ok(())
}

fn not_a_child(stage: &Stage) -> Result<(), String> {
    let says = [
        (Wall::DiesWithHost, "another process started this one"),
        (Wall::PidNamespace, "the process's parent made none"),
    ];
    // If the process in between is itself the first of a namespace, its child cannot see a host.
    let ended = end(stage.child(&["foster"]).map_err(told)?.shares_process_ids())?;
    let report = Report::from_lines(&ended.said).map_err(|error| format!("{error}: {ended}"))?;
    check("foster", &report, &says)
}

fn barred(stage: &Stage) -> Result<(), String> {
    check("barred", &report(stage, "barred")?, &[(Wall::PidNamespace, "Operation not permitted")])
}

/// The sealed process reads nothing and waits for ever, so only the kernel can end it.
fn ends_with_host(stage: &Stage) -> Result<(), String> {
    let (ours, theirs) = std::io::pipe().map_err(told)?;
    // Both processes inherit it, and so does each child started meanwhile, but there is none.
    rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty()).map_err(told)?;
    let command = stage.child(&["host"]).map_err(told)?;
    // The end of a namespace's first process ends all others in it.
    let (host, mut link) = start(command.shares_process_ids())?;
    drop(theirs);
    let said = read(&mut link, Some("sealed"))?;
    if !said.ends_with("sealed") {
        return Err(format!("it says {said:?}"));
    }
    host.kill();
    // It ends when the second is gone as well.
    read(&mut File::from(OwnedFd::from(ours)), None).map(drop)
}

/// As compiled components are mapped: by the path of a descriptor, then made executable.
fn map_code(place: &Place) -> ExitCode {
    let site = Site::open(place).expect("the site");
    let entered = site.enter(&[], None);
    let mapped = memory::map_code(&site.file).and_then(|()| memory::map_code(&site.replaced));
    match (mapped, entered.seal().missing().count()) {
        (Ok(()), 0) => say("works"),
        (mapped, missing) => say(&format!("{mapped:?}, {missing} walls are missing")),
    }
    ExitCode::SUCCESS
}

fn maps_code(stage: &Stage) -> Result<(), String> {
    let ended = run(stage, &["code"])?;
    if ended.said == "works" { Ok(()) } else { Err(format!("it {ended}")) }
}

/// Starts one thread more than allowed. The first thread and the site's count too.
fn crowd(place: &Place) -> ExitCode {
    let mut site = Site::open(place).expect("the site");
    let entered = site.enter(&[], Some(THREADS_MAX));
    site.older_thread = Some(OlderThread::start());
    let report = entered.seal();
    let started = (0..THREADS_MAX).map(|_| std::thread::Builder::new().spawn(std::thread::park));
    let count = started.take_while(Result::is_ok).count();
    say(&format!("{} {count}", report.stands(Wall::Threads)));
    ExitCode::SUCCESS
}

/// The kernel counts threads of ordinary users.
fn bounds_threads(stage: &Stage) -> Result<(), String> {
    let ended = run(stage, &["crowd"])?;
    let is_root = rustix::process::geteuid().is_root();
    let expected = if is_root { (false, THREADS_MAX) } else { (true, THREADS_MAX - 2) };
    if ended.said == format!("{} {}", expected.0, expected.1) {
        Ok(())
    } else {
        Err(format!("expected {expected:?}, but it {ended}"))
    }
}

/// Says how many microseconds each step takes.
fn time(place: &Place) -> ExitCode {
    let site = Site::open(place).expect("the site");
    let start = Instant::now();
    let entered = site.enter(&[], None);
    let between = Instant::now();
    drop(entered.seal());
    let end = Instant::now();
    say(&format!("{} {}", (between - start).as_micros(), (end - between).as_micros()));
    ExitCode::SUCCESS
}

/// Says how many nanoseconds some calls take, before the seal and after it.
fn cost(place: &Place) -> ExitCode {
    const CALLS: u32 = 200_000;
    let site = Site::open(place).expect("the site");
    let page = memory::map(4096, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS).expect("a page");
    let word = 0_u32;
    let word = std::ptr::from_ref(&word).expose_provenance();
    let calls: [(&str, c_long, [usize; 6]); 4] = [
        ("getpid", libc::SYS_getpid, [0; 6]),
        ("futex", libc::SYS_futex, [word, 129, 1, 0, 0, 0]),
        ("madvise", libc::SYS_madvise, [page, 4096, 4, 0, 0, 0]),
        ("mprotect", libc::SYS_mprotect, [page, 4096, 1, 0, 0, 0]),
    ];
    let round = || {
        calls.map(|(_, number, arguments)| {
            let start = Instant::now();
            for _ in 0..CALLS {
                call(number, arguments).expect("an allowed call");
            }
            start.elapsed().as_nanos() / u128::from(CALLS)
        })
    };
    let entered = site.enter(&[], None);
    let before = round();
    drop(entered.seal());
    let after = round();
    for ((name, ..), (before, after)) in calls.iter().zip(before.iter().zip(after)) {
        say(&format!("{name}: {before} ns, sealed {after} ns\n"));
    }
    ExitCode::SUCCESS
}

/// Prints how long the steps take: the least, the middle and the most of a hundred processes.
pub(crate) fn measure(stage: &Stage) -> Result<(), String> {
    let mut enter = Vec::new();
    let mut seal = Vec::new();
    let mut whole = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        let said = run(stage, &["time"])?.said;
        whole.push(start.elapsed().as_micros());
        let (first, second) = said.split_once(' ').ok_or("no times")?;
        enter.push(first.parse().map_err(told)?);
        seal.push(second.parse().map_err(told)?);
    }
    for (name, mut times) in [("enter", enter), ("seal", seal), ("process", whole)] {
        times.sort_unstable();
        let [least, .., most] = times.as_slice() else { return Err("no times".to_owned()) };
        let middle = times.get(times.len() / 2).ok_or("no times")?;
        print(&format!("{name}: {least} / {middle} / {most} µs\n"));
    }
    print(&run(stage, &["cost"])?.said);
    Ok(())
}

/// The walls that this machine provides.
pub(crate) fn of_machine() -> Result<Report, String> {
    let words = ["probe", "/", "127.0.0.1:1", "127.0.0.1:1", "1"];
    probe(this_binary(words.into_iter().map(str::to_owned))).map_err(told)
}

fn probes(_: &Stage) -> Result<(), String> {
    let report = of_machine()?;
    check("probe", &report, &[])?;
    let landlock = state(&report, Wall::Landlock).map(WallState::detail).unwrap_or_default();
    if landlock.contains("files") { Ok(()) } else { Err(landlock.to_owned()) }
}

fn probes_of_nothing(_: &Stage) -> Result<(), String> {
    // Without further arguments a child fails and says nothing.
    match probe(this_binary(std::iter::empty())) {
        Err(ProbeError::Ended(_)) => {}
        other => return Err(format!("{other:?}")),
    }
    match probe(Command::program("/bin/sh").argument("-c").argument("echo 'core\tstands' >&0")) {
        Err(ProbeError::Report(_)) => {}
        other => return Err(format!("{other:?}")),
    }
    match probe(Command::program("/nowhere")) {
        Err(ProbeError::Start(_)) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
