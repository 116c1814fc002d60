//! Outbox and inbox: filled in one side's turn, emptied in the other's.

use super::page::Page;
use super::{
    ARENA, AWAITED, AWAITED_AT, Awaited, IN_ARENA, INBOX, NOTICES, Notice, OUT_ARENA, OUTBOX, POSTS, Post,
    Shared,
};
use std::ptr::{addr_of, addr_of_mut};

impl Shared {
    #[expect(unsafe_code, reason = "the count lies in the page")]
    fn set_awaited_count(&mut self, count: u32) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`; the count belongs to the rank, in its turn.
        unsafe { addr_of_mut!((*page).awaited).write_volatile(count) };
    }

    #[expect(unsafe_code, reason = "the counts lie in the page")]
    pub(super) fn set_counts(&mut self, posts: Option<u32>, notices: Option<u32>) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`; the counts belong to the side that has the turn.
        unsafe {
            if let Some(posts) = posts {
                addr_of_mut!((*page).posts).write_volatile(posts);
            }
            if let Some(notices) = notices {
                addr_of_mut!((*page).notices).write_volatile(notices);
            }
        }
    }

    #[expect(unsafe_code, reason = "the counts lie in the page")]
    fn counts(&self) -> (usize, usize) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`.
        let (posts, notices) =
            unsafe { (addr_of!((*page).posts).read_volatile(), addr_of!((*page).notices).read_volatile()) };
        ((posts as usize).min(POSTS), (notices as usize).min(NOTICES))
    }

    #[expect(unsafe_code, reason = "the count lies in the page")]
    pub(super) fn logged(&self) -> usize {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`.
        unsafe { addr_of!((*page).logged).read_volatile() as usize }
    }

    #[expect(unsafe_code, reason = "the count lies in the page")]
    pub(super) fn set_logged(&mut self, count: usize) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`; the count belongs to the side that has the turn.
        unsafe { addr_of_mut!((*page).logged).write_volatile(count as u32) };
    }

    /// Puts bytes into an arena: where, or `None` if they do not fit.
    fn put_bytes(&mut self, arena: usize, used: &mut usize, bytes: &[u8]) -> Option<u32> {
        let at = *used;
        if bytes.len() > ARENA - at {
            return None;
        }
        self.write(arena + at, bytes);
        *used = at + bytes.len().next_multiple_of(8);
        Some(at as u32)
    }

    /// The rank's side: adds a post with its bytes; says whether the outbox had room.
    pub fn post(&mut self, mut post: Post, bytes: &[u8], used: &mut usize) -> bool {
        let (posts, _) = self.counts();
        if posts == POSTS {
            return false;
        }
        let Some(at) = self.put_bytes(OUT_ARENA, used, bytes) else { return false };
        (post.bytes_at, post.bytes) = (at, bytes.len() as u32);
        self.write_at(OUTBOX + posts * size_of::<Post>(), post);
        self.set_counts(Some(posts as u32 + 1), None);
        true
    }

    /// The rank's side: takes all notices with their bytes.
    pub fn take_notices(&mut self) -> Vec<(Notice, Vec<u8>)> {
        let (_, notices) = self.counts();
        let taken = (0..notices).map(|index| {
            let notice: Notice = self.read_at(INBOX + index * size_of::<Notice>());
            (notice, self.read_arena(IN_ARENA, notice.bytes_at, notice.bytes))
        });
        let taken = taken.collect();
        self.set_counts(None, Some(0));
        taken
    }

    /// The rank's side: says what it waits for. What does not fit is left out.
    pub fn set_awaited(&mut self, awaited: impl Iterator<Item = Awaited>) {
        let mut count = 0;
        for (index, operation) in awaited.take(AWAITED).enumerate() {
            self.write_at(AWAITED_AT + index * size_of::<Awaited>(), operation);
            count = index as u32 + 1;
        }
        self.set_awaited_count(count);
    }

    /// The simulator's side: what a waiting rank says that it waits for. Not to be believed.
    pub fn awaited(&self) -> Vec<Awaited> {
        let count = (self.page().awaited as usize).min(AWAITED);
        (0..count).map(|index| self.read_at(AWAITED_AT + index * size_of::<Awaited>())).collect()
    }

    /// Bytes of an arena; those that claim to lie outside it are none.
    fn read_arena(&self, arena: usize, at: u32, length: u32) -> Vec<u8> {
        let (at, length) = (at as usize, length as usize);
        if at > ARENA || length > ARENA - at { Vec::new() } else { self.read(arena + at, length) }
    }

    /// The simulator's side: takes all posts with their bytes. What a rank has written there is not
    /// trusted: counts and places are cut to what there is, and each post is copied once and then looked at.
    pub fn take_posts(&mut self) -> Vec<(Post, Vec<u8>)> {
        let (posts, _) = self.counts();
        let taken = (0..posts).map(|index| {
            let post: Post = self.read_at(OUTBOX + index * size_of::<Post>());
            (post, self.read_arena(OUT_ARENA, post.bytes_at, post.bytes))
        });
        let taken = taken.collect();
        self.set_counts(Some(0), None);
        taken
    }

    /// The simulator's side: adds a notice with its bytes; says whether it found room. `used` counts the
    /// bytes of the inbox's arena since the rank last emptied it: it may have several turns before.
    pub fn notify(&mut self, mut notice: Notice, bytes: &[u8], used: &mut usize) -> bool {
        let (_, notices) = self.counts();
        if notices == NOTICES {
            return false;
        }
        if notices == 0 {
            *used = 0;
        }
        let Some(at) = self.put_bytes(IN_ARENA, used, bytes) else { return false };
        (notice.bytes_at, notice.bytes) = (at, bytes.len() as u32);
        self.write_at(INBOX + notices * size_of::<Notice>(), notice);
        self.set_counts(None, Some(notices as u32 + 1));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::identity;
    use super::*;

    /// Catches a post that is in the list without its bytes, and one that is written beyond the arena.
    #[test]
    fn a_post_whose_bytes_do_not_fit_is_not_made() {
        let (mut simulator, file) = Shared::create(&identity(), &[]).unwrap();
        let mut rank = Shared::open(&file).unwrap();
        let mut used = 0;
        assert!(rank.post(Post { at: 1, ..Post::default() }, &vec![1; ARENA - 8], &mut used));
        assert!(!rank.post(Post { at: 2, ..Post::default() }, &[2; 9], &mut used));
        assert!(rank.post(Post { at: 3, ..Post::default() }, &[3; 8], &mut used));
        assert!(!rank.post(Post::default(), &[4], &mut used));
        let posts = simulator.take_posts();
        let taken: Vec<_> = posts.iter().map(|(post, bytes)| (post.at, bytes.len(), bytes[0])).collect();
        assert_eq!(taken, [(1, ARENA - 8, 1), (3, 8, 3)]);
    }

    /// Catches bytes of the inbox that are written over before the rank has taken them.
    #[test]
    fn the_inbox_begins_again_once_it_is_empty() {
        let (mut simulator, file) = Shared::create(&identity(), &[]).unwrap();
        let mut rank = Shared::open(&file).unwrap();
        let mut used = 0;
        for round in 0..3 {
            assert!(simulator.notify(Notice::default(), &vec![round; ARENA - 8], &mut used));
            assert!(simulator.notify(Notice::default(), &[9], &mut used));
            assert!(!simulator.notify(Notice::default(), &[9], &mut used));
            let taken: Vec<_> = rank.take_notices().into_iter().map(|(_, bytes)| bytes).collect();
            assert_eq!(taken, [vec![round; ARENA - 8], vec![9]]);
        }
    }

    /// Catches a report of a deadlock that writes beyond its list.
    #[test]
    fn what_a_rank_waits_for_is_cut_to_the_list() {
        let (simulator, file) = Shared::create(&identity(), &[]).unwrap();
        let mut rank = Shared::open(&file).unwrap();
        let awaited = |peer: u32| Awaited { peer, ..Awaited::default() };
        rank.set_awaited((0..).map(awaited));
        let all: Vec<_> = (0..AWAITED as u32).map(awaited).collect();
        assert_eq!(simulator.awaited(), all);
        rank.set_awaited(std::iter::empty());
        assert!(simulator.awaited().is_empty());
    }
}
