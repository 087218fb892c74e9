"""How a Guest and its Hosts are run: nobody is root, nothing is written where it should not be, and the check finds what is wrong."""

import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from backend.cli import COMMANDS
from backend.link.config import HostConfig
from backend.link.wire import LEAVE
from backend.services.host_service import ENDING_SECONDS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILES = sorted(DEPLOY.glob("Dockerfile.*"))
UNITS = sorted(DEPLOY.glob("*.service"))
MANIFESTS = {
    party: list(yaml.safe_load_all((DEPLOY / "kubernetes" / party / f"{party}.yaml").read_text(encoding="utf-8")))
    for party in ("host", "guest")
}
PODS = {party: manifests[0]["spec"]["template"]["spec"] for party, manifests in MANIFESTS.items()}


@pytest.fixture
def checks(monkeypatch, tmp_path):
    """The module that `make lint` runs, over a copy of deploy/ that a test may spoil."""
    spec = importlib.util.spec_from_file_location("deploy", ROOT / ".ci" / "deploy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    monkeypatch.setattr(module, "DEPLOY", tmp_path / "deploy")
    monkeypatch.setattr(module, "DOCKERFILES", sorted((tmp_path / "deploy").glob("Dockerfile.*")))
    return module


def validates(checks):
    """Whether manifests are compared with Kubernetes's schemas here."""
    return shutil.which("kubernetes-validate", path=f"{checks.TOOLS}{os.pathsep}{os.environ['PATH']}") is not None


def test_what_is_here_holds(checks):
    assert checks.check() == 0


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("Dockerfile.host", "FROM python:3.11-slim-bookworm\n", "FROM python\n"),
        ("Dockerfile.guest", "WORKDIR /src", "WORKDIR src"),
        ("compose.yaml", "read_only: true", "read_only: [1]"),
        ("compose.yaml", "restart:", "restarts:"),
        ("glassleaf-host.service", "Type=exec", "Type=no-such-type"),
        ("kubernetes/host/kustomization.yaml", "[host.yaml]", "[gone.yaml]"),
        ("kubernetes/guest/guest.yaml", "kind: StatefulSet", "kinds: StatefulSet"),
        ("kubernetes/guest/guest.yaml", "publishNotReadyAddresses:", "publishUnreadyAddresses:"),
        ("kubernetes/host/host.yaml", "runAsUser: 10001", "runAsUser: nobody"),
    ],
)
def test_what_is_wrong_is_found(checks, name, old, new):
    if name.endswith(".service") and shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    if name.startswith("kubernetes") and shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    if name.endswith(("guest.yaml", "host.yaml")) and not old.startswith("kind:") and not validates(checks):
        pytest.skip("kubernetes-validate is not installed")
    file = checks.DEPLOY / name
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    assert checks.check() == 1


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_an_image_is_of_a_named_base_runs_as_nobody_special_and_can_be_asked_how_it_is(file):
    text = file.read_text(encoding="utf-8")
    assert all(re.fullmatch(r"FROM \S+:\d\S*( AS \w+)?", line) for line in text.splitlines() if line.startswith("FROM"))
    last = text.split("\nFROM ")[-1]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE) and "HEALTHCHECK" in last
    assert last.index("USER") < last.index("ENTRYPOINT")


def test_a_host_has_no_pages():
    text = (DEPLOY / "Dockerfile.host").read_text(encoding="utf-8")
    assert "dashboard" not in text and "[link,postgres,tables]" in text


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_service_writes_nowhere_but_in_its_own_folder_and_gains_no_rights(name):
    service = COMPOSE["services"][name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["user"] == "10001:10001" and "no-new-privileges:true" in service["security_opt"]
    assert service["environment"]["MALLOC_ARENA_MAX"] == "2"
    written = [volume for volume in service["volumes"] if not volume.endswith(":ro")]
    assert all(volume.endswith(":/var/lib/glassleaf") for volume in written)
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_two_parties_share_no_folder():
    guest, *hosts = (
        {volume.split(":")[0] for volume in COMPOSE["services"][name]["volumes"]}
        for name in ("guest", "telecom", "platform")
    )
    assert not guest & hosts[0] and not guest & hosts[1] and not hosts[0] & hosts[1]


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_a_unit_is_held_to_its_own_folder(file):
    text = file.read_text(encoding="utf-8")
    for line in (
        "User=glassleaf",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "CapabilityBoundingSet=",
        "SystemCallFilter=@system-service",
        "UMask=0077",
        "StateDirectory=glassleaf",
    ):
        assert f"\n{line}\n" in text, line
    assert re.search(r"^Environment=.*\bMALLOC_ARENA_MAX=2$", text, re.MULTILINE)


@pytest.mark.parametrize("party", PODS)
def test_a_pod_is_one_process_of_its_party_that_writes_on_its_volume_alone(party):
    pod = PODS[party]
    spec = MANIFESTS[party][0]["spec"]
    assert spec["replicas"] == 1 and pod["automountServiceAccountToken"] is False
    assert spec["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOncePod"]
    user = pod["securityContext"]
    assert (user["runAsUser"], user["runAsNonRoot"], user["fsGroupChangePolicy"]) == (10001, True, "OnRootMismatch")
    for container in (*pod["initContainers"], *pod["containers"]):
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] is True and rights["capabilities"] == {"drop": ["ALL"]}
        assert rights["allowPrivilegeEscalation"] is False and "memory" in container["resources"]["limits"]
        written = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert written == {"/srv", "/tmp"}  # noqa: S108 - a mount of the container


def test_pods_start_what_images_do_and_are_asked_where_it_answers():
    host = PODS["host"]["containers"][0]
    assert host["args"][:2] == ["host", "serve"] and HostConfig.model_fields["ops"].default in str(
        host["livenessProbe"]
    )
    assert "/live" in str(host["livenessProbe"]) and "/ready" in str(host["readinessProbe"])
    assert PODS["host"]["terminationGracePeriodSeconds"] > ENDING_SECONDS + LEAVE
    serve, pages = PODS["guest"]["containers"]
    command = (DEPLOY / "Dockerfile.guest").read_text(encoding="utf-8").rsplit("CMD ", 1)[1]
    assert serve["args"] == json.loads(command)
    assert {"name": "GLASSLEAF_LINKS", "value": "ask"} in pages["env"]
    assert pages["command"][2].replace("$", "") == COMPOSE["services"]["pages"]["entrypoint"][2].replace("$", "")


def test_hosts_can_dial_in_while_the_guest_is_not_ready_and_nobody_can_call_a_host():
    link = next(one for one in MANIFESTS["guest"] if one["metadata"]["name"] == "glassleaf-link")
    assert link["spec"]["publishNotReadyAddresses"] is True
    assert [one["kind"] for one in MANIFESTS["host"]] == ["StatefulSet", "NetworkPolicy"]
    assert "ingress" not in MANIFESTS["host"][1]["spec"] and "ports" not in PODS["host"]["containers"][0]


def test_commands_that_are_started_are_there():
    """`host` is the Hosts' own, in every place that starts one."""
    text = "".join(file.read_text(encoding="utf-8") for file in (*DOCKERFILES, *UNITS))
    started = set(re.findall(r"bin/glassleaf ([\w-]+)", text)) | set(
        re.findall(r'^CMD \["([\w-]+)"', text, re.MULTILINE)
    )
    assert started - {"host"} <= set(COMMANDS) and "serve" in started


def test_a_host_is_asked_where_it_answers_and_may_end_what_is_open():
    ops = HostConfig.model_fields["ops"].default
    assert f"http://{ops}/live" in (DEPLOY / "Dockerfile.host").read_text(encoding="utf-8")
    seconds = re.search(r"^TimeoutStopSec=(\d+)$", (DEPLOY / "glassleaf-host.service").read_text(), re.MULTILINE)
    assert seconds and int(seconds[1]) > ENDING_SECONDS + LEAVE
    for name in ("telecom", "platform"):
        assert int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s")) > ENDING_SECONDS + LEAVE
