"""Checks deploy/: Dockerfiles (hadolint), the compose file (its schema, without a network), units (systemd-analyze, where it is), and
manifests for Kubernetes (put together by kubectl kustomize, then against Kubernetes's own schemas by kubernetes-validate, where they are).

`--images` builds the images, where a Docker daemon answers.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
TOOLS = Path(sys.executable).parent
DOCKERFILES = sorted(DEPLOY.glob("Dockerfile.*"))
PROGRAM = re.compile(r"(?<=^ExecStart=)/opt/glassleaf/bin/\S+", re.MULTILINE)


def main() -> int:
    """Exit status 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", action="store_true", help="build the images, where a daemon answers")
    return build_images() if parser.parse_args().images else check()


def check() -> int:
    """Every check; what a tool says is printed where it finds something."""
    compose = ["--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"]
    failed = [
        *_run(TOOLS / "hadolint", "--failure-threshold", "style", *DOCKERFILES),
        *_run(TOOLS / "check-jsonschema", "--quiet", *compose),
        *_units(),
        *_manifests(),
    ]
    print("\n".join(failed) or f"deploy/: {len(DOCKERFILES)} Dockerfiles, the compose file, units and manifests hold.")
    return bool(failed)


def _units() -> list[str]:
    """Units as they will be, but for the programs, which are not installed here."""
    if shutil.which("systemd-analyze") is None:
        print("systemd-analyze is not here: units are not checked.")
        return []
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder) / unit.name for unit in sorted(DEPLOY.glob("*.service"))]
        for copy in copies:
            copy.write_text(PROGRAM.sub(shutil.which("true") or "/bin/true", (DEPLOY / copy.name).read_text()))
        done = _done("systemd-analyze", "--man=no", "verify", *copies)
    # what it does not know it passes over with a line; lines on other units of this machine are none of ours
    ours = [line for line in done.stderr.splitlines() if any(copy.name in line for copy in copies)]
    return ours or (["systemd-analyze verify failed"] if done.returncode else [])


def _manifests() -> list[str]:
    """Put together what `kubectl apply -k` would apply, and compare it with the schemas of Kubernetes; neither needs a cluster."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        print("kubectl is not here: manifests are not checked.")
        return []
    folders = sorted(file.parent for file in DEPLOY.glob("kubernetes/*/kustomization.yaml"))
    validate = shutil.which("kubernetes-validate", path=f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    if validate is None:
        print(
            "kubernetes-validate is not here: manifests are put together, and not compared with Kubernetes's schemas."
        )
    found = []
    for folder in folders:
        done = _done(kubectl, "kustomize", folder)
        if done.returncode:
            found.append(done.stderr.strip() or f"kubectl kustomize {folder} failed")
        elif validate is not None:
            with tempfile.TemporaryDirectory() as put_together:
                file = Path(put_together) / f"{folder.name}.yaml"
                file.write_text(done.stdout)
                found += _run(validate, "--strict", "--quiet", file)
    return found


def build_images() -> int:
    """Build each, where a daemon answers."""
    docker = shutil.which("docker")
    if docker is None or _run(docker, "info"):
        print("No Docker daemon answers: no image was built.")
        return 0
    failed = []
    for file in DOCKERFILES:
        name = file.name.replace("Dockerfile.", "glassleaf-")
        failed += _run(docker, "build", "--file", file, "--tag", name, DEPLOY.parent)
    print("\n".join(failed) or f"{len(DOCKERFILES)} images were built.")
    return bool(failed)


def _run(*command: str | Path) -> list[str]:
    """What a command had to say, where it failed."""
    done = _done(*command)
    said = f"{done.stdout}{done.stderr}".strip()
    return [said or f"{command[0]} failed"] if done.returncode else []


def _done(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
