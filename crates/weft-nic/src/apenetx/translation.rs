//! Addresses of buffers, translated by the host's IOMMU at the root.
//!
//! # Source
//! APX §3.1, D1.4 §9.2.1: virtual memory is managed through the IOMMU of the processor.

use crate::iommu::{Iommu, IommuParameters, Page, Translation};
use crate::pcie::AddressRange;
use weft_units::Time;

/// The page of the last access, whose translation is there.
pub(super) type Known = Option<Page>;

/// The time at which the addresses of a range of `space` are known, asked for at `at`.
#[inline]
pub(super) fn translate(
    (iommu, parameters): (&mut Iommu, &IommuParameters),
    known: &mut Known,
    (space, range): (u32, AddressRange),
    at: Time,
) -> Time {
    let (first, last) = (range.address, range.address.saturating_add(range.bytes.saturating_sub(1)));
    if known.is_some_and(|page| page.space == space && page.holds(first, last, parameters)) {
        return at;
    }
    let page = Iommu::page(space, first, parameters);
    let last = if page.holds(first, last, parameters) { page } else { Iommu::page(space, last, parameters) };
    let mut time = at;
    for number in page.number..=last.number {
        let page = Page { space, number };
        // A registered buffer is mapped: what is not yet is waited for.
        let (Translation::At(there) | Translation::Fault(there)) = iommu.translate(page, at, parameters);
        time = time.max(there);
        *known = (there == at).then_some(page);
    }
    time
}
