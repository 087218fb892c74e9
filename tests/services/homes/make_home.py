"""How a home of an older version was made for `test_old_home`; runs with that version's code, not with today's.

For 0.1.0::

    git worktree add /tmp/0.1.0 b471a9c
    cp tests/services/homes/make_home.py /tmp/0.1.0 && cd /tmp/0.1.0 && python make_home.py HOME 0.1.0.zip

It writes what a user of that version had done: the demo with 600 applicants, two models, scores under Paillier (a short key),
measurements, a review, a sign-off and a report. Secret keys and tables of obfuscators are left out of the archive.
"""

import json
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path

from backend.data.demo import write_demo
from backend.service import (  # the name in 0.1.0
    DisparityRequest,
    ForestParameters,
    Glassleaf,
    PermutationRequest,
    ProxyRequest,
    ScoringRequest,
    SecureBoostParameters,
    TrainingRequest,
)

BITS = 512  # below the floor of anything real
LEFT_OUT = (".key", ".tables", "-wal", "-shm")


def main(home: Path, archive: Path) -> None:
    write_demo(home / "demo", rows=600)
    glassleaf = Glassleaf(home, key_floor=BITS, pools=False, actor="A. Analyst")
    glassleaf.federations.add(home / "demo")
    boosted = glassleaf.training.start(
        TrainingRequest("demo", SecureBoostParameters(trees=3, depth=2, cipher="none"))
    ).get()
    forest = glassleaf.training.start(TrainingRequest("demo", ForestParameters(trees=3, depth=2, cipher="none"))).get()
    expected = {"models": [forest.id, boosted.id], "scores": {}}
    for record in (boosted, forest):
        people = [str(person) for person in glassleaf.samples.table(record.id).index[:5]]
        scores = []
        for person in people:
            sheet = glassleaf.samples.of_person(record.id, person)
            scores += glassleaf.scoring.start(ScoringRequest(record.id, sheet, key_bits=BITS)).get().scores
        expected["scores"][record.id] = {
            s.id: {"units": s.units, "margin": s.margin, "probability": s.probability, "decision": s.decision}
            for s in scores
        }
    glassleaf.explanation.start_permutation(PermutationRequest(boosted.id, samples=60, repeats=1, cipher="none")).get()
    glassleaf.fairness.start_disparity(DisparityRequest(boosted.id, "gender", cipher="none")).get()
    glassleaf.fairness.start_proxies(ProxyRequest(boosted.id, "gender", cipher="none")).get()
    finding = glassleaf.compliance.assess(boosted.id).findings[0]
    review = glassleaf.reviews.decide(
        boosted.id, finding.rule_id, finding.feature, "confirmed", "As the law says.", "R. Egulator"
    )
    glassleaf.reports.sign_off(boosted.id, "R. Egulator", "Reviewed with its findings.")
    (home / "report.json").write_bytes(glassleaf.reports.export(boosted.id, "json"))
    verdict = glassleaf.audit.verify("demo")
    expected["review"] = {"rule": finding.rule_id, "feature": finding.feature, "number": review.number}
    expected["audit"] = {"entries": verdict.entries, "head": json.loads(json.dumps(asdict(verdict.head), default=str))}
    expected["witnesses"] = list(verdict.witnesses)
    expected["permutation"] = {p.feature or p.party: p.fall for p in glassleaf.explanation.permutation(boosted.id)}
    glassleaf.close()
    (home / "expected.json").write_text(json.dumps(expected, indent=1))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for file in sorted(home.rglob("*")):
            if file.is_file() and not file.name.endswith(LEFT_OUT):
                packed.write(file, file.relative_to(home))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
