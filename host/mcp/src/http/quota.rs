//! Quotas: bounds on resources that the transport holds for clients, with a share for each owner,
//! so that no caller can block others. Also a bound on the bytes that each may send in a minute,
//! since long requests take time to read.
//!
//! Promise: costly requests leave others theirs.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::limits::HttpLimits;
use crate::caller::Caller;
use crate::lock::lock;

/// Bits of an IPv6 address that identify its network. The holder of one address usually has the
/// whole network.
const NETWORK_BITS: u32 = 64;

/// Bytes of answers and events that each owner may leave unread even if others use the whole quota:
/// some events and a short answer. For as many owners as connections, this is 64 MiB.
const UNREAD_RESERVE_BYTES: usize = 64 * 1024;

/// Who a held resource is counted against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// An authenticated caller, by its name.
    Caller(Arc<str>),
    /// The clients of this address, or of this IPv6 network.
    Address(IpAddr),
    /// The clients of this machine. All its programs, and every proxy on it, share one address.
    /// They have no share, which would only be a smaller total.
    Machine,
}

impl Owner {
    /// An authenticated caller, or else its address. `None` as the address: a Unix socket.
    pub(super) fn of(caller: &Caller, peer: Option<IpAddr>) -> Self {
        if caller.is_recognised() { Self::Caller(caller.shared_name()) } else { Self::of_peer(peer) }
    }

    /// The owner by address alone, before authentication.
    pub(super) fn of_peer(peer: Option<IpAddr>) -> Self {
        match peer.map(|peer| peer.to_canonical()) {
            None => Self::Machine,
            Some(peer) if peer == Ipv4Addr::LOCALHOST || peer == Ipv6Addr::LOCALHOST => Self::Machine,
            Some(IpAddr::V6(peer)) => {
                let network = u128::from(peer) >> (128 - NETWORK_BITS) << (128 - NETWORK_BITS);
                Self::Address(Ipv6Addr::from(network).into())
            }
            Some(peer) => Self::Address(peer),
        }
    }

    /// True if the owner is limited to a share of the total.
    pub(super) fn has_share(&self) -> bool {
        *self != Self::Machine
    }
}

/// Why a quota refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuotaError {
    /// The owner's share is used up.
    Share,
    /// The total is used up.
    Whole,
}

/// A bound on one kind of resource, with a share for each owner.
pub(super) struct OwnerQuota {
    max: usize,
    share: usize,
    /// The number that each owner may take even if the total is used up.
    reserve: usize,
    taken: Mutex<QuotaUse>,
}

/// The quotas of the transport.
pub(super) struct Quotas {
    /// Requests that are being answered.
    pub(super) requests: Arc<OwnerQuota>,
    /// Streams that stay open.
    pub(super) streams: Arc<OwnerQuota>,
    /// Bytes of bodies that are being read.
    pub(super) bodies: Arc<OwnerQuota>,
    /// Bytes of answers and events that wait until clients read them.
    pub(super) answers: Arc<OwnerQuota>,
    /// Connections that a caller uses, each counted once.
    pub(super) connections: Arc<OwnerQuota>,
    /// Bytes that callers send.
    pub(super) sent: SentBytes,
    /// Requests that wait for authentication. They take no places of authenticated ones.
    pub(super) strangers: Arc<OwnerQuota>,
}

impl Quotas {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        let own = &limits.per_caller;
        Self {
            requests: OwnerQuota::new(limits.requests_max, own.requests_max),
            streams: OwnerQuota::new(limits.streams_max, own.streams_max),
            bodies: OwnerQuota::new(limits.bodies_bytes_max, own.bodies_bytes_max),
            answers: OwnerQuota::reserving(limits.answers_bytes_max, own.answers_bytes_max, UNREAD_RESERVE_BYTES),
            // Accepting bounds the total; this quota only has shares.
            connections: OwnerQuota::new(usize::MAX, own.connections_max),
            sent: SentBytes::new(own.sent_bytes_per_minute.max(limits.body_bytes_max)),
            strangers: OwnerQuota::new(limits.requests_max, own.requests_max),
        }
    }
}

#[derive(Default)]
struct QuotaUse {
    all: usize,
    by_owner: HashMap<Owner, usize>,
}

impl QuotaUse {
    /// Whether this owner may take `count` more.
    fn room_for(&self, owner: &Owner, count: usize, quota: &OwnerQuota) -> Result<(), QuotaError> {
        let own = self.by_owner.get(owner).copied().unwrap_or_default();
        if owner.has_share() && own.saturating_add(count) > quota.share {
            return Err(QuotaError::Share);
        }
        if self.all.saturating_add(count) > quota.max { Err(QuotaError::Whole) } else { Ok(()) }
    }
}

/// A part of a quota that one owner holds; returned on drop.
pub(super) struct QuotaGuard {
    places: Arc<OwnerQuota>,
    owner: Owner,
    count: usize,
}

impl OwnerQuota {
    /// A quota with this total and this share for one owner.
    pub(super) fn new(max: usize, share: usize) -> Arc<Self> {
        Self::reserving(max, share, 0)
    }

    /// A quota of which each owner may take `reserve` even if the total is used up.
    pub(super) fn reserving(max: usize, share: usize, reserve: usize) -> Arc<Self> {
        Arc::new(Self { max, share, reserve, taken: Mutex::default() })
    }

    pub(super) fn taken(&self) -> usize {
        lock(&self.taken).all
    }

    pub(super) fn take(self: &Arc<Self>, owner: &Owner) -> Result<QuotaGuard, QuotaError> {
        let mut place = self.empty_guard(owner);
        place.extend(1)?;
        Ok(place)
    }

    /// An empty part of the quota, to be extended step by step.
    pub(super) fn empty_guard(self: &Arc<Self>, owner: &Owner) -> QuotaGuard {
        QuotaGuard { places: Arc::clone(self), owner: owner.clone(), count: 0 }
    }

    /// Whether anything is left for this owner; takes nothing.
    pub(super) fn has_room(&self, owner: &Owner) -> Result<(), QuotaError> {
        lock(&self.taken).room_for(owner, 1, self)
    }
}

impl QuotaGuard {
    /// An empty part of the same quota, for the same owner.
    pub(super) fn empty(&self) -> Self {
        self.places.empty_guard(&self.owner)
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes this many more, or none.
    pub(super) fn extend(&mut self, count: usize) -> Result<(), QuotaError> {
        self.extend_where(count, count)
    }

    /// Takes this many more while anything is left, even if they exceed that. So something that is
    /// longer than the whole share can still pass, alone.
    pub(super) fn extend_past(&mut self, count: usize) -> Result<(), QuotaError> {
        self.extend_where(count, count.min(1))
    }

    /// Takes `count` more if there is room for `needed`.
    fn extend_where(&mut self, count: usize, needed: usize) -> Result<(), QuotaError> {
        let mut taken = lock(&self.places.taken);
        let own = taken.by_owner.get(&self.owner).copied().unwrap_or_default();
        match taken.room_for(&self.owner, needed, &self.places) {
            Err(QuotaError::Whole) if own.saturating_add(count) <= self.places.reserve => {}
            room => room?,
        }
        taken.all = taken.all.saturating_add(count);
        let own = taken.by_owner.entry(self.owner.clone()).or_default();
        *own = own.saturating_add(count);
        drop(taken);
        self.count += count;
        Ok(())
    }
}

impl Drop for QuotaGuard {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut taken = lock(&self.places.taken);
        taken.all = taken.all.saturating_sub(self.count);
        if let Some(own) = taken.by_owner.get_mut(&self.owner) {
            *own = own.saturating_sub(self.count);
            if *own == 0 {
                taken.by_owner.remove(&self.owner);
            }
        }
    }
}

/// Time in which a used-up allowance is completely refilled.
const WHOLE_AFTER: Duration = Duration::from_secs(60);

/// Owners that are tracked before those with a full allowance are removed.
const OWNERS_MAX: usize = 10_000;

/// Bytes that each caller may send, in one burst or spread out. The allowance refills evenly.
pub(super) struct SentBytes {
    per_minute: usize,
    by_owner: Mutex<HashMap<Owner, Instant>>,
}

impl SentBytes {
    pub(super) fn new(per_minute: usize) -> Self {
        Self { per_minute: per_minute.max(1), by_owner: Mutex::default() }
    }

    /// Takes these bytes from the owner's allowance. A request larger than the whole allowance
    /// passes if the allowance is full.
    ///
    /// # Errors
    /// Too little is left: the time until it is enough.
    pub(super) fn take(&self, owner: &Owner, bytes: usize) -> Result<(), Duration> {
        self.take_at(Instant::now(), owner, bytes)
    }

    fn take_at(&self, now: Instant, owner: &Owner, bytes: usize) -> Result<(), Duration> {
        if !owner.has_share() {
            return Ok(());
        }
        let mut by_owner = lock(&self.by_owner);
        if by_owner.len() >= OWNERS_MAX {
            by_owner.retain(|_, whole| *whole > now);
        }
        let whole = by_owner.get(owner).copied().filter(|whole| *whole > now).unwrap_or(now);
        let cost = self.cost(bytes);
        let then = whole + cost;
        let late = then.saturating_duration_since(now).saturating_sub(WHOLE_AFTER);
        if !late.is_zero() {
            return Err(late);
        }
        by_owner.insert(owner.clone(), then);
        Ok(())
    }

    /// The time that refills these bytes; at most the time for a full refill.
    fn cost(&self, bytes: usize) -> Duration {
        let part = WHOLE_AFTER.as_nanos() * bytes.min(self.per_minute) as u128 / self.per_minute as u128;
        u64::try_from(part).map_or(WHOLE_AFTER, Duration::from_nanos)
    }

    pub(super) const fn per_minute(&self) -> usize {
        self.per_minute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Owner {
        Owner::of_peer(Some(text.parse().unwrap()))
    }

    #[test]
    fn a_caller_is_known_by_its_name_and_a_stranger_by_its_network() {
        let ann = Caller::new("ann", ["read"]);
        let from = |address: &str| Some(address.parse().unwrap());
        assert_eq!(Owner::of(&ann, from("192.0.2.1")), Owner::of(&Caller::new("ann", []), from("192.0.2.2")));
        assert_ne!(Owner::of(&ann, None), Owner::of(&Caller::new("bob", []), None));
        assert_eq!(Owner::of(&Caller::anyone(), from("192.0.2.1")), peer("192.0.2.1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.2"), peer("192.0.2.1"));
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        for machine in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(peer(machine), Owner::Machine, "{machine}");
        }
        assert_eq!((Owner::of_peer(None), peer("127.0.0.2").has_share()), (Owner::Machine, true));
    }

    #[test]
    fn one_owner_has_its_share_and_leaves_the_rest_to_others() {
        let places = OwnerQuota::new(10, 4);
        let one = peer("192.0.2.1");
        let other = peer("192.0.2.2");
        let held: Vec<QuotaGuard> = (0..4).map(|_| places.take(&one).ok().unwrap()).collect();
        assert_eq!(places.take(&one).err(), Some(QuotaError::Share));
        let lone_requests: Vec<QuotaGuard> = (0..4).map(|_| places.take(&other).ok().unwrap()).collect();
        assert_eq!(places.taken(), 8);
        let mut machine = places.empty_guard(&Owner::Machine);
        assert_eq!(machine.extend(3), Err(QuotaError::Whole));
        assert_eq!(machine.extend(2), Ok(()));
        assert_eq!(places.take(&peer("192.0.2.3")).err(), Some(QuotaError::Whole));
        drop((held, lone_requests, machine));
        assert_eq!(
            (places.taken(), lock(&places.taken).by_owner.len()),
            (0, 0),
            "nothing is remembered of who is gone"
        );
    }

    #[test]
    fn each_owner_has_its_reserve_where_others_have_taken_all() {
        let places = OwnerQuota::reserving(100, 90, 10);
        let mut greedy = places.empty_guard(&Owner::Machine);
        assert_eq!(greedy.extend_past(100), Ok(()));
        let one = peer("192.0.2.1");
        let other = peer("192.0.2.2");
        let mut small = places.empty_guard(&one);
        assert_eq!(small.extend_past(10), Ok(()));
        assert_eq!(small.extend_past(1), Err(QuotaError::Whole));
        assert_eq!(places.empty_guard(&other).extend_past(11), Err(QuotaError::Whole));
        assert_eq!(places.has_room(&other), Err(QuotaError::Whole), "requests are refused as before");
    }

    #[test]
    fn something_longer_than_the_share_passes_where_anything_is_left_and_nothing_after_it() {
        let places = OwnerQuota::new(100, 10);
        let one = peer("192.0.2.1");
        let other = peer("192.0.2.2");
        let mut first = places.empty_guard(&one);
        assert_eq!(first.extend_past(9), Ok(()));
        assert_eq!((places.has_room(&one), first.extend_past(80), first.count()), (Ok(()), Ok(()), 89));
        assert_eq!(places.has_room(&one), Err(QuotaError::Share));
        assert_eq!(places.empty_guard(&one).extend_past(1), Err(QuotaError::Share));
        let mut second = places.empty_guard(&other);
        assert_eq!(second.extend_past(1_000), Ok(()));
        assert_eq!(places.has_room(&peer("192.0.2.3")), Err(QuotaError::Whole));
        drop((first, second));
        assert_eq!((places.taken(), places.has_room(&one)), (0, Ok(())));
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let places = OwnerQuota::new(usize::MAX, 100);
        let one = peer("192.0.2.1");
        let mut place = places.empty_guard(&one);
        assert_eq!(place.extend(60), Ok(()));
        assert_eq!(place.extend(41), Err(QuotaError::Share));
        assert_eq!(place.extend(usize::MAX), Err(QuotaError::Share));
        assert_eq!(place.extend(40), Ok(()));
        assert_eq!(places.taken(), 100);
    }

    fn caller(name: &str) -> Owner {
        Owner::Caller(name.into())
    }

    #[test]
    fn bytes_come_back_evenly_and_to_nobody_else() {
        let sent = SentBytes::new(600);
        let ann = caller("ann");
        let bob = caller("bob");
        let start = Instant::now();
        assert_eq!(sent.take_at(start, &ann, 500), Ok(()));
        assert_eq!(sent.take_at(start, &ann, 101), Err(Duration::from_millis(100)));
        assert_eq!(sent.take_at(start, &ann, 100), Ok(()));
        assert_eq!(sent.take_at(start, &ann, 10), Err(Duration::from_secs(1)));
        assert_eq!(sent.take_at(start, &bob, 600), Ok(()));
        let later = start + Duration::from_secs(1);
        assert_eq!(sent.take_at(later, &ann, 10), Ok(()));
        assert_eq!(sent.take_at(later, &ann, 1), Err(Duration::from_millis(100)));
        assert_eq!(sent.take_at(later, &Owner::Machine, usize::MAX), Ok(()), "it has no share");
    }

    #[test]
    fn one_body_longer_than_all_passes_alone() {
        let sent = SentBytes::new(600);
        let ann = caller("ann");
        let start = Instant::now();
        assert_eq!(sent.take_at(start, &ann, 5_000), Ok(()));
        assert_eq!(sent.take_at(start, &ann, 1), Err(Duration::from_millis(100)));
        assert_eq!(sent.take_at(start + WHOLE_AFTER, &ann, 5_000), Ok(()));
    }

    #[test]
    fn who_has_all_of_its_bytes_again_is_forgotten() {
        let sent = SentBytes::new(600);
        let start = Instant::now();
        for number in 0..OWNERS_MAX {
            assert_eq!(sent.take_at(start, &caller(&number.to_string()), 1), Ok(()));
        }
        assert_eq!(sent.take_at(start + WHOLE_AFTER, &caller("another"), 1), Ok(()));
        assert_eq!(sent.by_owner.lock().unwrap().len(), 1);
    }
}
