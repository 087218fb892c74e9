"""Train a model on the built-in demo federation, then score three people under encryption.

Run it from a clone's folder: ``.venv/bin/python -m examples.train_and_score``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from glassleaf import Glassleaf, ScoringRequest, SecureBoostParameters, TrainingRequest


def main() -> None:
    """Print a model's AUC and the scores of its first three test records."""
    with TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        federation = glassleaf.training.prepare_demo()
        # Simulated Hosts may train in the clear. Real Hosts refuse that: take cipher="paillier" or "rlwe" there.
        parameters = SecureBoostParameters(trees=10, depth=3, cipher="none")
        model = glassleaf.training.start(TrainingRequest(federation, parameters)).get()
        print(f"{model.id}: AUC {model.metrics.auc:.3f} on {model.parts['test']} test records")

        # A sample is a row of the Guest's own columns. Of a known person the id alone is enough.
        ids = glassleaf.models.test_ids(model)[:3]
        samples = glassleaf.samples.read(model.id, "\n".join(["id", *ids]).encode())
        batch = glassleaf.scoring.start(ScoringRequest(model.id, samples, cipher="rlwe")).get()
        for score in batch.scores:
            print(f"{score.id}: probability {score.probability:.3f}, {score.decision}")


if __name__ == "__main__":
    main()
