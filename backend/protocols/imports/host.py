"""A Host's side of an imported model: its operator sees thresholds and the word "import" before anything is kept.

A model that was trained here is one whose trees the Host has seen grow, under floors and by cuts of its own. An import can ask on which
side of any value a person lies. So it is a request of its own, and stays marked as an import in every request about the model.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from backend.errors import ModelError, SecurityError
from backend.protocols.approvals.messages import IMPORT
from backend.protocols.host_state import HostModels, ServedModel
from backend.protocols.imports.messages import KeepImport
from backend.protocols.scoring.dither import check_layout
from backend.protocols.terms.approvals import about_model
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Kind, Kinds, Permit, Reply
from backend.protocols.terms.records import Opened
from backend.protocols.training.messages import ModelKept
from backend.protocols.transport.message import Message
from backend.trees.ensemble import HostModel
from backend.trees.folding import fold_structure
from backend.trees.serialization import dump_host, load_host


def read_import(request: Asked) -> Ask:
    """Read a half of an imported model, for the Host's operator to decide about.

    Raises
    ------
    SecurityError
        If it is not a half of this Host, names other parties or features, or has a layout without room for dither.
    """
    message: KeepImport = request.message
    model = _read(request, message.partial_model)
    request.models.check_owner(message.model_id, request.sender)
    if request.models.grew(message.model_id):
        raise SecurityError("import_over_trained_model")
    served = ServedModel(model, fold_structure(model.skeletons, model.guest, model.hosts), 0)
    approval = about_model(request.session.guest, IMPORT, message.model_id, served, 0, imported=True)
    # The operator reads the half here, since it is not in the store yet.
    approval.about["partial_model"] = dump_host(model)
    # If it is sent again because another Host's operator decides later, it uses no volume.
    return Ask(approval=approval, amount=1, volume_of=f"import {served.structure[:40]}", subject=model)


def _read(request: Asked, text: str) -> HostModel:
    """Return the half without a salt, which the Guest would know, and without medians, which the Guest could invent."""
    try:
        model = load_host(text)
    except ModelError as error:
        raise SecurityError("import_unreadable") from error
    host = request.models.host
    parties = (model.guest, *model.hosts)
    own_splits = set()
    owners = set()
    for tree, skeleton in enumerate(model.skeletons):
        for node, fork in skeleton.forks.items():
            owners.add(fork.owner)
            if fork.owner == host:
                own_splits.add((tree, node))
    fits = model.host == host and model.guest == request.sender and len(set(parties)) == len(parties)
    if not fits or not owners | {host} <= set(parties):
        raise SecurityError("model_of_other_parties")
    if own_splits != set(model.rules):
        raise SecurityError("model_of_other_splits")
    unknown = {rule.feature for rule in model.rules.values()} - set(request.features)
    if unknown:
        raise SecurityError("import_of_unknown_features", features=tuple(sorted(unknown)))
    if model.layout is None:
        raise SecurityError("impossible_layout")
    if request.floors.synthetic:
        min_digits = 0
    else:
        min_digits = request.floors.score_bits
    return replace(model, layout=check_layout(model.layout, min_digits), salt="", medians={})


def answer_import(permit: Permit, opened: Opened, message: KeepImport, noise: Noise) -> Reply:
    """Salt the half, so that its hash confirms nothing; answer the hash."""
    model = replace(permit.ask.subject, salt=noise.salt())
    permit.session.keep(HostModel, model)
    digest = sha256(dump_host(model).encode()).hexdigest()
    yield permit.guest, ModelKept(message.conversation, message.model_id, digest)


def store_import(models: HostModels, permit: Permit, reply: Message) -> None:
    """Store an imported half; it has no day on which it was trained here."""
    message: KeepImport = permit.request.message
    model = permit.session.need(HostModel, "no_training")
    models.put(model, message.model_id)
    permit.session.drop(HostModel)


IMPORT_KINDS: Kinds = {KeepImport: Kind(read_import, answer_import, begins=True, store=store_import)}
