"""What notices would tell 500 people, against plain SHAP values, plain traversal and the records themselves."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from measurement_contexts import KEY, TrainedDemo, code_of
from rankings import top_merged

from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.data.medians import sides
from backend.protocols.explanations.encryption import encryption_of
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.host_factors import CompiledDropFactors, CompiledFactors
from backend.protocols.explanations.shape import MAX_NAMES
from backend.protocols.explanations.weighting import weighting_of
from backend.protocols.scoring.fed_eini import host_plan
from backend.reports.adverse_action_notice import MAX_REASONS, form_groups
from backend.services.reasons import ReasonsRequest
from backend.trees.backgrounds import ALL
from backend.trees.folding import fold_structure
from backend.trees.shap import shap_values

PEOPLE = 500
BEYOND = {"above": "more than|higher than|longer than", "below": "fewer than|lower than|shorter than"}


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    made = TrainedDemo(tmp_path_factory.mktemp("sentences"))
    yield made
    made.glassleaf.close()


class Plain:
    """Everything in one hand: columns, rules and what follows from them."""

    def __init__(self, context):
        self.context, self.model = context, context.measured.model
        hosts = context.runtime._simulated.hosts
        self.hosts = {name: hosts[name]._partial_models.get(context.record.id).model for name in self.model.hosts}
        self.rules = dict(self.model.rules)
        for host in self.hosts.values():
            self.rules |= host.rules
        self.people = context.people.iloc[:PEOPLE]
        part = context.glassleaf.models.part_of(context.record)
        self.training = context.people.loc[[i for i in context.people.index if part.get(i) == "training"]]
        self.columns = {}
        for _, feature in self.model.dictionary:
            values = self.people[feature.name]
            if feature.kind == "categorical":
                column = np.array([None if pd.isna(v) else code_of(v) for v in values], dtype=object)
            else:
                column = values.astype(float).to_numpy()
            self.columns[feature.name] = column

    def units(self, columns):
        """Scores in their units: every tree walked with all parties' rules."""
        total = np.zeros(len(next(iter(columns.values()))))
        for t, tree in enumerate(self.model.trees):
            nodes = np.zeros(len(total), dtype=int)
            for i, split in tree.splits.items():
                left = self.rules[t, i].goes_left(columns[split.feature])
                nodes = np.where(nodes == i, np.where(left, split.left, split.right), nodes)
            total += np.rint([tree.nodes[i].weight * 2**self.model.score_bits for i in nodes])
        return total

    def named(self, terms):
        """Per person the features of up to four reasons, by plain SHAP values."""
        names, values = shap_values(self.model, self.rules, self.columns, PEOPLE, terms.background)
        order = [names.index(feature) for _, feature in terms.items]
        groups, ties = form_groups(self.model, terms.items), range(len(order))
        rows = np.rint(values[:, order] * 2 ** terms.shape(1).scale)
        found = [top_merged([int(v) for v in row], MAX_REASONS, MAX_NAMES, groups, ties) for row in rows]
        return [[terms.items[k][1] for k in one] for one in found]

    def drops(self, terms):
        """``(people, features)``: the parties' own arithmetic on plaintext."""
        shape, chain = terms.shape(1), fold_structure(self.model.skeletons, self.model.guest, self.model.hosts)
        encryption, out = encryption_of(PlainKeySide(), terms.drops, shape, 1), []
        ways = []
        for place, step in enumerate(chain.steps):
            own = CompiledFactors(self.hosts[step.host], step, terms.shares_of(step.host))
            factors = CompiledDropFactors(own)
            ways.append((factors, weighting_of(PlainPublicSide(), factors, shape, host_plan(chain, place))))
        for i in range(PEOPLE):
            one = {name: column[i : i + 1] for name, column in self.columns.items()}
            sent = encryption.encrypted(one)
            for factors, weighting in ways[:-1]:
                sent = weighting.passed_on(sent, factors.decide(one, True))
            factors, weighting = ways[-1]
            out.append(
                encryption.sums(weighting.sums(weighting.values(sent, factors.decide(one, True)), 1, lambda _: 0))
            )
        return np.array(out, dtype=float)

    def median(self, feature):
        owner = self.model.owner_of(feature)
        return (self.model if owner == self.model.guest else self.hosts[owner]).medians.get(feature)

    def lowest_beyond(self, feature, side):
        """``(people,)``: the lowest score of each with any value of the feature that anybody has on the better side of the median."""
        low, high = self.median(feature)
        values = self.context.people[feature].dropna().unique()
        tried = {float(v) for v in values if (v <= high if side == "above" else v >= low)}
        ends = sorted(tried)
        if len(ends) > 40:  # between two neighbouring thresholds all values score alike
            cuts = sorted({r.threshold for r in self.rules.values() if r.feature == feature})
            tries = (*ends[:1], *ends[-1:], *cuts, *(np.nextafter(c, -np.inf) for c in cuts), low, high)
            ends = [v for v in tries if (v <= high if side == "above" else v >= low)]
        scores = [self.units({**self.columns, feature: np.full(PEOPLE, v)}) for v in ends]
        return np.min(scores, axis=0)


@pytest.mark.slow
def test_every_sentence_is_true_of_its_person_and_claims_a_side_only_where_the_better_one_would_have_helped(context):
    plain = Plain(context)
    terms = CompiledTerms(plain.model, ALL)
    known = context.glassleaf.reasons._known_of_features(context.record)
    place, names, drops = {f: k for k, (_, f) in enumerate(terms.items)}, plain.named(terms), plain.drops(terms)
    scores, helped, told = plain.units(plain.columns), {}, Counter()
    for i in range(PEOPLE):
        for feature in names[i]:
            side, pair = known[feature].asked, plain.median(feature)
            of = {feature: pair} if pair else {}
            lies = sides([feature], plain.columns, of, PEOPLE)[0, 0 if side == "above" else 1, i] if pair else False
            marked = bool(lies) and drops[i, place[feature]] > 0
            sentence = plain.model.feature(feature).reason[side if marked else "either"]
            claims = plain.model.feature(feature).kind == "numeric" and any(
                w in sentence for w in "|".join(BEYOND.values()).split("|")
            )
            if not pair:
                assert not claims and not marked
                told["no side"] += 1
                continue
            helped.setdefault((feature, side), plain.lowest_beyond(feature, side))
            would_help = helped[feature, side][i] < scores[i]
            told["claimed" if marked else "could have been" if would_help and lies else "no side"] += 1
            if not would_help:
                assert not marked and not claims
            if marked:
                value, others = plain.columns[feature][i], plain.training[feature].dropna().to_numpy(dtype=float)
                beyond = (others < value) if side == "above" else (others > value)
                assert 2 * beyond.sum() > len(others), sentence  # of most people on record
                assert plain.model.feature(feature).kind != "numeric" or any(
                    w in sentence for w in BEYOND[side].split("|")
                )
    assert told["claimed"] > 2 * told["could have been"] and told["no side"] > 20, told
    # the same under encryption, for some of them
    some = [str(i) for i in plain.people.index[:PEOPLE] if i in context.runtime.table.row_of][:4]
    for person in some:
        sheet = context.glassleaf.samples.of_person(context.record.id, person)
        asked = ReasonsRequest(context.record.id, sheet, key_bits=KEY, cutoff=0.0)
        [found] = context.glassleaf.reasons.start(asked).get().people
        i = plain.people.index.get_loc(person)
        assert {reason.feature for reason in found.reasons} == set(names[i])
        for reason in found.reasons:
            lies = sides(
                [reason.feature], plain.columns, {reason.feature: plain.median(reason.feature) or (0, 0)}, PEOPLE
            )
            marked = plain.median(reason.feature) and lies[0, 0 if reason.asked == "above" else 1, i]
            marked = bool(marked) and drops[i, place[reason.feature]] > 0
            assert (reason.side != "") == marked
