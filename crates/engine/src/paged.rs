//! A column in pages that copies of the fleet share until one of them writes.
//!
//! A fork of half a million machines must cost microseconds, and the original must not pay for it unless it
//! changes something meanwhile. So a column is a table of shared pages: cloning it clones one pointer, and
//! the first write to a shared page copies that page only. While nobody holds a copy, writing costs two
//! reference-count checks.

use std::sync::Arc;

/// Rows per page: small enough to copy in a microsecond, large enough that the page table stays in cache.
const PAGE: usize = 256;

/// A growable column of `T`.
#[derive(Clone)]
pub(crate) struct Paged<T> {
    pages: Arc<Vec<Arc<[T; PAGE]>>>,
    len: usize,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { pages: Arc::default(), len: 0 }
    }
}

impl<T: Copy + Default> Paged<T> {
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.pages[index as usize / PAGE][index as usize % PAGE]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        let page = &mut Arc::make_mut(&mut self.pages)[index as usize / PAGE];
        &mut Arc::make_mut(page)[index as usize % PAGE]
    }

    pub(crate) fn push(&mut self, value: T) -> u32 {
        let index = self.len as u32;
        if self.len.is_multiple_of(PAGE) {
            Arc::make_mut(&mut self.pages).push(Arc::new([T::default(); PAGE]));
        }
        self.len += 1;
        *self.get_mut(index) = value;
        index
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All rows in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|page| page.iter()).take(self.len)
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.pages.capacity() * 8 + self.pages.len() * (PAGE * size_of::<T>() + 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_does_not_see_later_writes() {
        let mut column = Paged::default();
        (0..1000_u64).for_each(|n| {
            column.push(n);
        });
        let copy = column.clone();
        *column.get_mut(300) = 7;
        column.push(1000);
        assert_eq!((*copy.get(300), copy.len(), copy.iter().count()), (300, 1000, 1000));
        assert_eq!((*column.get(300), column.len(), *column.get(1000)), (7, 1001, 1000));
    }

    #[test]
    fn writing_copies_only_the_page_that_is_written() {
        let mut column = Paged::default();
        (0..1024_u64).for_each(|n| {
            column.push(n);
        });
        let copy = column.clone();
        *column.get_mut(0) = 9;
        let shared = (0..4).filter(|page| Arc::ptr_eq(&column.pages[*page], &copy.pages[*page])).count();
        assert_eq!(shared, 3);
    }
}
