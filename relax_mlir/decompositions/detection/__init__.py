"""Detection of objects: boxes, their selection, and what is in them."""

from .anchors import multibox_transform_loc
from .box_nms import box_nms
from .regions import roi_align, roi_pool
from .suppression import all_class_non_max_suppression, get_valid_counts, non_max_suppression

__all__ = [
    "all_class_non_max_suppression",
    "box_nms",
    "get_valid_counts",
    "multibox_transform_loc",
    "non_max_suppression",
    "roi_align",
    "roi_pool",
]
