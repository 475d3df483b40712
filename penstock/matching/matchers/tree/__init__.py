"""The matching tree of Aguilera, Strom, Sturman, Astley and Chandra (1999)."""

from penstock.matching.matchers.tree.matcher import TreeMatcher, full_tree, plain_tree

__all__ = ["TreeMatcher", "full_tree", "plain_tree"]
