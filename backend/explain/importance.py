"""How much each feature matters to a model, from the Guest's partial model alone: gains, covers and counts of its splits."""

from __future__ import annotations

from dataclasses import dataclass

from backend.trees.ensemble import GuestModel, Split


@dataclass(frozen=True)
class FeatureImportance:
    """One feature in one model.

    Attributes
    ----------
    gain, cover : float
        Sums over the feature's splits; cover in units of hessian.
    splits, trees : int
        Splits by it; trees that have one.
    gain_share, split_share, cover_share : float
        Of the whole model, 0 … 1.
    """

    party: str
    feature: str
    gain: float
    splits: int
    cover: float
    gain_share: float
    split_share: float
    cover_share: float
    trees: int


def feature_importance(model: GuestModel) -> tuple[FeatureImportance, ...]:
    """Every feature that was offered to the training, used or not, largest gain first."""
    found: dict[str, list[tuple[int, Split]]] = {f.name: [] for _, f in model.dictionary}
    for t, tree in enumerate(model.trees):
        for split in tree.splits.values():
            found[split.feature].append((t, split))
    gain = {name: sum(s.gain for _, s in splits) for name, splits in found.items()}
    cover = {name: sum(s.cover for _, s in splits) for name, splits in found.items()}
    all_gain, all_cover = sum(gain.values()) or 1.0, sum(cover.values()) or 1.0
    all_splits = sum(len(splits) for splits in found.values()) or 1
    rows = [
        FeatureImportance(
            party=party,
            feature=f.name,
            gain=gain[f.name],
            splits=len(found[f.name]),
            cover=cover[f.name],
            gain_share=gain[f.name] / all_gain,
            split_share=len(found[f.name]) / all_splits,
            cover_share=cover[f.name] / all_cover,
            trees=len({t for t, _ in found[f.name]}),
        )
        for party, f in model.dictionary
    ]
    return tuple(sorted(rows, key=lambda r: (-r.gain, r.feature)))
