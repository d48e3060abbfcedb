//! Everything around a view, and the pages without one.

/// Everything around each view.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// The server's name, as clients get it.
    pub server: String,
    /// The version of toolcell: `0.1.0`.
    pub version: String,
    /// The manifest, as the command line named it.
    pub manifest: String,
    /// The name of the signed-in person; empty without one.
    pub viewer: String,
    /// True if forms that change something are rendered.
    pub decide: bool,
    /// The token that every form carries in the field [`CSRF`](crate::routes::CSRF).
    pub csrf: String,
    /// Counts next to the names of views.
    pub badges: Badges,
    /// Problems of the server now, a sentence each: the audit, walls, shared state.
    pub problems: Vec<String>,
    /// The outcome of the form that led here.
    pub notice: Option<Notice>,
}

/// Counts next to the names of views; none is shown for zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Badges {
    /// Groups of denials that are not muted.
    pub denials: u64,
    /// Components in quarantine.
    pub changes: u64,
    /// Calls that wait for a person.
    pub approvals: u64,
}

/// One sentence about what was just done, above the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// True if it was not done.
    pub failed: bool,
    /// The sentence.
    pub text: String,
}

/// The page where a person signs in.
#[derive(Debug, Clone, Default)]
pub struct SignIn {
    /// The server's name, as clients get it.
    pub server: String,
    /// Why the page is shown.
    pub reason: SignInReason,
    /// True if a token signs in: the page has a form for it.
    pub with_token: bool,
}

/// Why a person has to sign in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SignInReason {
    /// Nobody is signed in.
    #[default]
    NotSignedIn,
    /// The link has expired, or was used before.
    LinkSpent,
    /// The token is not known, has expired, or is not of an operator.
    WrongToken,
    /// The session has expired, or the server was restarted.
    SessionEnded,
    /// The person has signed out.
    SignedOut,
    /// Too many wrong tokens were sent; further ones have to wait.
    TooMany,
    /// The token cannot be checked now, because its issuer does not answer.
    NotNow,
}

/// A page that says why a view is missing.
#[derive(Debug, Clone, Default)]
pub struct ErrorPage {
    /// The HTTP status: 404.
    pub status: u16,
    /// One sentence: what is wrong.
    pub text: String,
    /// One sentence: what to do.
    pub hint: Option<String>,
}
