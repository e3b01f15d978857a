"""Detection of objects: boxes, their selection, and what is in them."""

from .regions import roi_align, roi_pool
from .suppression import all_class_non_max_suppression, get_valid_counts, non_max_suppression

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "non_max_suppression",
    "roi_align",
    "roi_pool",
]
