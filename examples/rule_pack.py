"""Add a rule pack of the house, and see what it says of a list of columns.

Run it from a clone's folder: ``.venv/bin/python -m examples.rule_pack``. docs/rules.md has all that a pack may say.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from glassleaf import Glassleaf

PACK = """
name: house
version: "1"
title: {en: House policy, zh: 内部政策}
jurisdiction: The bank
source: Credit policy 12
as_of: 2026-11-01
lists:
  pet: [dog, dogs, cat, cats]
rules:
  - id: house_pets
    title: {en: Pets, zh: 宠物}
    citation: Credit policy 12.2
    status: prohibited
    effective_from: 2026-01-01
    sensitivity: [pets]
    phrases: ["{pet}"]
    chinese_phrases: [宠物]
    exclusions: ["{pet} food"]
    explanation: {en: Pets say little about repayment., zh: 宠物与还款关系不大。}
    remedy: {en: Leave the feature out and retrain., zh: 移除该特征后重新训练。}
"""
COLUMNS = """name,meaning
dogs_owned,Number of dogs in the household
dog_food,Dog food bought in the last year
income,Net income per month
"""


def main() -> None:
    """Print what the packs find in three columns."""
    with TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        pack = Path(home) / "house.yaml"
        pack.write_text(PACK, encoding="utf-8")
        glassleaf.compliance.add_rule_pack(pack)

        columns = Path(home) / "columns.csv"
        columns.write_text(COLUMNS, encoding="utf-8")
        report, _ = glassleaf.compliance.try_list(columns)
        for finding in report.findings:
            print(f"{finding.feature}: {finding.rule_id}, {finding.status}")


if __name__ == "__main__":
    main()
