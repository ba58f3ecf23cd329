"""Trees as arrays, which docs/MODELS.md describes: many of them are written, read and walked by NumPy."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
Read: TypeAlias = tuple[str, tuple[str, ...] | None, bool]  # the column, the texts of a list, and whether a null goes right

LARGEST = 1e150  # of a model's numbers
IN_LIST = -0.5  # the threshold of a split by texts: one in the list is -1, every other 0
AT_ONCE = 1 << 18  # rows that walk at a time, those of each tree counted


class Forest:
    """Trees that were read: their nodes in preorder, tree after tree. A split's left side is the node that follows."""

    def __init__(self, reads: Sequence[Read], of: Whole, threshold: Numbers, leaves: Numbers, listed: Sequence[bool]):
        """of[i] is the read of node i, -1 of a leaf; threshold is by node, leaves by leaf: a row of one number or of one for each class."""
        self.reads, self.of, self.threshold, self.leaves, self.listed = list(reads), of, threshold, leaves, listed
        leaf = of < 0
        self.leaf: Whole = np.cumsum(leaf) - 1  # of a node that is one
        # In preorder the splits before a node, less the leaves, say how many sides are still to come: where there are as many as before a
        # split, its left side is over.
        left = np.cumsum(np.where(leaf, -1, 1))
        size = len(of)
        keys = np.sort(left * size + np.arange(size))
        splits = np.flatnonzero(~leaf)
        self.right: Whole = np.zeros(size, dtype=np.int64)
        self.right[splits] = keys[np.searchsorted(keys, (left[splits] - 1) * size + splits)] % size + 1
        ends = np.flatnonzero(left < np.minimum.accumulate(np.append(0, left))[:-1])  # the last leaf of each tree
        self.roots: Whole = np.append(0, ends[:-1] + 1)

    def add(self, out: Numbers, features: Numbers) -> None:
        """Adds to a row of scores for each row of features, one for each read, the leaves that it comes to, one tree after the other."""
        rows, flat, width = len(features), features.ravel(), features.shape[1]
        step = max(1, AT_ONCE // max(rows, 1))
        for begin in range(0, len(self.roots), step):
            roots = self.roots[begin : begin + step]
            at: Whole = np.repeat(roots, rows)
            row = np.tile(np.arange(rows) * width, len(roots))
            active = np.arange(len(at))
            while active.size:
                here = at[active]
                read = self.of[here]
                go = read >= 0
                if not go.all():
                    active, here, read = active[go], here[go], read[go]
                above = flat[row[active] + read] > self.threshold[here]
                at[active] = np.where(above, self.right[here], here + 1)
            values = self.leaves[self.leaf[at]].reshape(len(roots), rows, -1)
            for i, value in enumerate(values):
                if self.listed[begin + i]:
                    out += value
                else:
                    out[:, (begin + i) % out.shape[1]] += value[:, 0]

    def paths(self, leaves: Whole) -> list[list[tuple[Read, float, bool]]]:
        """What takes a row to leaves, of which the nodes are given: the splits, and whether it goes right."""
        parent: Whole = np.full(len(self.of), -1)
        splits = np.flatnonzero(self.of >= 0)
        parent[splits + 1] = splits
        parent[self.right[splits]] = splits
        found = []
        for leaf in leaves.tolist():
            path, node = [], leaf
            while (above := int(parent[node])) >= 0:
                path.append((self.reads[self.of[above]], float(self.threshold[above]), node != above + 1))
                node = above
            found.append(path)
        return found


def read(trees: Any) -> Forest:
    """The trees of a model, lists or arrays."""
    forests = _FORESTS.get()
    if forests is not None and id(trees) in forests:
        return forests[id(trees)]
    forest = _of_arrays(trees) if isinstance(trees, Mapping) else _of_lists(trees)
    if forests is not None:
        forests[id(trees)] = forest
    return forest


_FORESTS: ContextVar[dict[int, Forest] | None] = ContextVar("forests", default=None)


@contextlib.contextmanager
def reading_once() -> Iterator[None]:
    """Within it, trees are read once. They must stay where they are, as they are."""
    before = _FORESTS.set({})
    try:
        yield
    finally:
        _FORESTS.reset(before)


def _of_lists(trees: Sequence[Sequence[Any]]) -> Forest:
    seen: dict[Read, int] = {}
    of, threshold, leaves, listed = [], [], [], []
    for tree in trees:
        lists = False
        for node in tree:
            if isinstance(node, Sequence) and isinstance(node[0], str):
                by = node[1]
                texts = tuple(sorted(by)) if isinstance(by, Sequence) else None
                of.append(seen.setdefault((node[0], texts, len(node) > 2 and node[2] == "right"), len(seen)))
                threshold.append(float(by) if texts is None else IN_LIST)
            else:
                lists = isinstance(node, Sequence)
                of.append(-1)
                threshold.append(0.0)
                leaves.append(node if lists else [node])
        listed.append(lists)
    width = max(len(v) for v in leaves)
    values = np.zeros((len(leaves), width))
    for i, v in enumerate(leaves):
        values[i, : len(v)] = v
    return Forest(list(seen), np.array(of), np.array(threshold), values, listed)


def _of_arrays(arrays: Mapping[str, Any]) -> Forest:
    reads: list[Read] = []
    for entry in arrays.get("reads", ()):
        texts = entry[1] if len(entry) > 1 and not isinstance(entry[1], str) else None
        reads.append((entry[0], None if texts is None else tuple(sorted(texts)), entry[-1] == "right" and len(entry) > 1))
    of = decoded(arrays["nodes"]).astype(np.int64) - 1
    thresholds = decoded(arrays["thresholds"]) if "thresholds" in arrays else np.zeros(0)
    if arrays.get("single"):
        singles: NDArray[np.float32] = thresholds.astype(np.float32)
        if not np.array_equal(singles, thresholds):
            raise ValueError("thresholds of numbers that are rounded to single precision must be such numbers")
        thresholds = double_at_most(singles)
    threshold = np.full(len(of), IN_LIST)
    numbers = np.array([*(r[1] is None for r in reads), False])[of]  # the last is that of leaves
    threshold[numbers] = thresholds
    ends = int((of < 0).sum())
    leaves = decoded(arrays["leaves"]).astype(float).reshape(ends, -1)
    forest = Forest(reads, of, threshold, leaves, [])
    forest.listed = [leaves.shape[1] > 1] * len(forest.roots)
    return forest


_KINDS = {"u8": "<u1", "u16": "<u2", "f32": "<f4", "f64": "<f8"}


def decoded(array: Mapping[str, str]) -> NDArray[Any]:
    ((kind, text),) = array.items()
    return np.frombuffer(base64.b64decode(text), dtype=_KINDS[kind])


def encoded(array: NDArray[Any], small: str, large: str) -> dict[str, str]:
    """The array as words of the small kind, where that loses nothing."""
    with np.errstate(over="ignore"):
        less = array.astype(_KINDS[small])
    kind = small if np.array_equal(less.astype(array.dtype), array) else large
    return {kind: base64.b64encode(array.astype(_KINDS[kind]).tobytes()).decode("ascii")}


def double_at_most(singles: NDArray[np.float32]) -> Numbers:
    """The largest double that rounds to at most each single; of infinities ±LARGEST."""
    with np.errstate(over="ignore", invalid="ignore"):
        after = np.nextafter(singles, np.float32(np.inf))
        middle = np.where(np.isinf(after), 2.0**128 - 2.0**103, (singles.astype(float) + after.astype(float)) / 2)
        even = (singles.view(np.uint32) % 2 == 0) & ~np.isinf(after)
        below = np.where(even, middle, np.nextafter(middle, -np.inf))
        return np.where(np.isinf(singles), np.copysign(LARGEST, singles.astype(float)), below)


def single_at_most(thresholds: NDArray[Any]) -> NDArray[np.float32]:
    """The largest single that is at most each number."""
    with np.errstate(over="ignore"):
        singles = thresholds.astype(np.float32)
        return np.where(singles.astype(float) > thresholds, np.nextafter(singles, np.float32(-np.inf)), singles)


class Arrays(dict[str, Any]):
    """The JSON of many trees, with what is known of them."""

    depths: Whole | None = None
    read: Sequence[Read] = ()
    largest: float = 0.0  # of the leaves, without its sign


def write(reads: Sequence[Read], of: Whole, thresholds: NDArray[Any], leaves: Numbers, single: bool) -> Arrays:
    """The arrays of trees whose nodes are in preorder. thresholds are those of the splits by numbers, leaves a row for each leaf."""
    used = np.flatnonzero(np.bincount(of + 1, minlength=len(reads) + 1)[1:])
    largest = float(np.abs(leaves).max())
    number: NDArray[Any] = np.zeros(len(reads) + 1, dtype=np.uint8 if len(used) < 1 << 8 else np.uint16)  # the last is that of leaves
    number[used] = np.arange(1, len(used) + 1)
    arrays = Arrays(nodes=encoded(number[of], "u8", "u16"), leaves=encoded(leaves.ravel(), "f32", "f64"))
    arrays.read, arrays.largest = [reads[i] for i in used.tolist()], largest
    if len(used):
        arrays["reads"] = [_entry(reads[i]) for i in used.tolist()]
    if len(thresholds):
        arrays["thresholds"] = encoded(thresholds, "f32", "f64")
        if single:
            arrays["single"] = True
    return arrays


def _entry(one: Read) -> list[Any]:
    column, texts, right = one
    return [column, *([] if texts is None else [list(texts)]), *(["right"] if right else [])]


def of_lists(trees: Sequence[Sequence[Any]]) -> Arrays | None:
    """The arrays of trees that are lists; None where some leaves are lists and others numbers."""
    forest = _of_lists(trees)
    if len(set(forest.listed)) > 1:
        return None
    numbers = np.array([*(r[1] is None for r in forest.reads), False])[forest.of]
    return write(forest.reads, forest.of, forest.threshold[numbers], forest.leaves, False)


def is_preorder(left: Whole, right: Whole) -> bool:
    """Whether nodes are in preorder already: each split's right side follows the last node of its left one. See Forest for the levels."""
    splits = np.flatnonzero(left >= 0)
    level = np.cumsum(np.where(left < 0, -1, 1))
    below = right[splits]
    return bool((left[splits] == splits + 1).all() and (below > splits).all() and (level[below - 1] == level[splits] - 1).all())


def in_preorder(left: Whole, right: Whole, roots: Whole) -> Whole:
    """Where each node goes when trees are written in preorder, one after the other. left and right are places of nodes, -1 below a leaf."""
    levels = [roots]
    while (here := levels[-1][left[levels[-1]] >= 0]).size:
        levels.append(np.concatenate([left[here], right[here]]))
    size: Whole = np.ones(len(left), dtype=np.int64)
    for level in reversed(levels):
        here = level[left[level] >= 0]
        size[here] += size[left[here]] + size[right[here]]
    place: Whole = np.zeros(len(left), dtype=np.int64)
    place[roots] = np.cumsum(size[roots]) - size[roots]
    for level in levels:
        here = level[left[level] >= 0]
        place[left[here]] = place[here] + 1
        place[right[here]] = place[here] + 1 + size[left[here]]
    return place


def depths(trees: Any) -> Whole:
    """The levels of each tree below its root."""
    if isinstance(trees, Arrays) and trees.depths is not None:
        return trees.depths
    forest = read(trees)
    left = np.where(forest.of < 0, -1, np.arange(len(forest.of)) + 1)
    return depths_of(left, forest.right, forest.roots)


def depths_of(left: Whole, right: Whole, roots: Whole) -> Whole:
    """The same of trees whose sides are given, -1 below a leaf."""
    found: Whole = np.zeros(len(roots), dtype=np.int64)
    here, tree, level = roots, np.arange(len(roots)), 0
    while (split := left[here] >= 0).any():
        here, tree, level = here[split], tree[split], level + 1
        found[tree] = level
        here, tree = np.concatenate([left[here], right[here]]), np.concatenate([tree, tree])
    return found


def reads_of(trees: Any) -> tuple[Sequence[Read], float]:
    """What splits read, and the largest number of a leaf, without its sign."""
    if isinstance(trees, Arrays):
        return trees.read, trees.largest
    forest = read(trees)
    return forest.reads, float(np.abs(forest.leaves).max())


def columns(trees: Any) -> set[str]:
    """The names of the columns that trees read."""
    if isinstance(trees, Mapping):
        return {entry[0] for entry in trees.get("reads", ())}
    return {n[0] for tree in trees for n in tree if isinstance(n, list) and isinstance(n[0], str)}


def count(trees: Any) -> int:
    """The number of nodes."""
    return len(decoded(trees["nodes"])) if isinstance(trees, Mapping) else sum(map(len, trees))


def texts(trees: Any) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The lists of texts of splits, with their columns."""
    if isinstance(trees, Mapping):
        for entry in trees.get("reads", ()):
            if len(entry) > 1 and not isinstance(entry[1], str):
                yield entry[0], tuple(entry[1])
        return
    for tree in trees:
        for n in tree:
            if isinstance(n, Sequence) and isinstance(n[0], str) and isinstance(n[1], Sequence):
                yield n[0], tuple(n[1])
