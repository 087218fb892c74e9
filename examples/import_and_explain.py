"""Import a forest that scikit-learn trained on joint data, then name what raised two people's scores.

Run it from a clone's folder: ``.venv/bin/python -m examples.import_and_explain``.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier

from glassleaf import Glassleaf, ReasonsRequest, export


def joint_table(folder: Path) -> pd.DataFrame:
    """Return the parties' files side by side. Only a simulation has them in one place."""
    tables = [pd.read_csv(file, index_col="id", dtype={"id": str}) for file in sorted(folder.glob("*.csv"))]
    return pd.concat(tables, axis=1, join="inner")


def main() -> None:
    """Print the reasons of two people."""
    with TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        federation = glassleaf.training.prepare_demo()
        joint = joint_table(Path(home) / federation)
        features = joint.drop(columns="default_90d").select_dtypes("number").dropna(axis=1)
        estimator = GradientBoostingClassifier(n_estimators=40, max_depth=3, random_state=0)
        estimator.fit(features, joint["default_90d"])

        file = Path(home) / "model.json"
        file.write_text(json.dumps(export(estimator)))
        model, proof = glassleaf.model_import.import_file(federation, file)
        print(f"{model.id}: same scores as scikit-learn on {proof.rows} records")

        ids = glassleaf.models.test_ids(model)[:2]
        samples = glassleaf.samples.read(model.id, "\n".join(["id", *ids]).encode())
        for person in glassleaf.reasons.start(ReasonsRequest(model.id, samples)).get().people:
            print(person.score.id, [reason.feature for reason in person.reasons])


if __name__ == "__main__":
    main()
