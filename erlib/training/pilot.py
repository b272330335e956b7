"""How is a teacher trained by what its student learns from it? (IvRA, B.2; SMaT's pilot update)

Two nested problems, for a batch d, the teacher's coefficients φ = (ω, λ, η), the student's weights
θ, and L_SIM = CE(S(x), ỹ) + β KL(r ‖ r*):

    1.  θ' = θ − η_S ∇_θ L_SIM(d; φ, θ)          one step of gradient descent, kept in the graph
    2.  descend in φ on L_SIM(d; φ, θ')          eq. 15: through step 1, by second derivatives
    3.  θ ← θ − η_S ∇_θ L_SIM(d; φ_new, θ)       eq. 14: the student's real step

Only φ learns from the student: M's own weights are left to the other losses of the objective, so
that ỹ does not drift (ivra.md §3). The teacher answers and is read without dropout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from erlib.attributions.attribute import explaining
from erlib.attributions.explained import chosen_target
from erlib.config import OptimiserSpec
from erlib.errors import unknown
from erlib.losses import Step, Weighted
from erlib.losses.interpretability import explanation_divergence, log_probability
from erlib.models import Classifier, load_classifier
from erlib.models.learned_attention import calibrate, entropy, explain, explainer_of
from erlib.training.updates import PlainUpdate, strategy

OUTER = ("simulation", "smat")
STUDENT = "student."  # how the student's tensors are named among the strategy's
SEEDS_APART = 10_000  # the student's new head is not the one its teacher began with


class Lesson(NamedTuple):
    """What the student is told of some texts."""

    inputs: Mapping[str, Tensor]
    answer: Tensor  # ỹ: [batch], or [batch, 2] for spans
    r: Tensor  # [batch, token], in the graph of φ

    def rows(self, chosen: slice) -> Lesson:
        """The same of some of the texts."""
        inputs = {name: tensor[chosen] for name, tensor in self.inputs.items()}
        return Lesson(inputs, self.answer[chosen], self.r[chosen])


class Reply(nn.Module):
    """A student's logits and explanation as one module, so that other weights can be put in."""

    def __init__(self, student: Classifier) -> None:
        super().__init__()
        self.model = student.model
        self.student = student

    def forward(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """(logits, r*)."""
        output = self.student.forward(inputs)
        return output.logits, explain(self.student, output, inputs["attention_mask"]).r


@strategy("pilot", version=2)
class PilotUpdate(PlainUpdate):
    """SIM: a plain update of the objective, and with it the steps above.

    student_lr: η_S. beta: β.
    outer: the loss of step 2, "simulation" (eq. 15), which teacher and student can also lower by
        agreeing on any map whatever, or "smat": the student's cross-entropy alone, on texts that
        step 1 has not seen (every second text of the batch).
    An objective whose weights are all 0 is only measured, and M's predictions stay what they are.
    Logged: `simulatability` (the outer loss), its parts `student_ce` and `student_kl`, `entropy`.
    """

    version: ClassVar[int]
    seeded: ClassVar[bool] = True

    def __init__(
        self,
        classifier: Classifier,
        spec: OptimiserSpec,
        total_steps: int,
        *,
        seed: int,
        student_lr: float = 5e-3,
        beta: float = 1.0,
        outer: str = "simulation",
        explainer_lr: float | None = None,
        decay: float | None = None,
    ) -> None:
        if outer not in OUTER:
            raise unknown("outer loss", outer, OUTER)
        explainer_of(classifier)
        super().__init__(classifier, spec, total_steps, explainer_lr=explainer_lr, decay=decay)
        self.student_lr, self.beta, self.outer = student_lr, beta, outer
        self.student = pretrained_twin(classifier, seed + SEEDS_APART).train()
        self.student.freeze(classifier.frozen)

    def apply(self, objective: Weighted, step: Step, number: int) -> dict[str, Tensor]:
        """One step of teacher and student on the batch."""
        if step.at_once is not None:
            raise ValueError(
                "a student's step is no sum over texts, so that a batch must fit in memory at "
                "once: take a smaller batch or shorter texts"
            )
        calibrate(self.student, step.batch.inputs)
        teacher = Teacher(step)
        with torch.set_grad_enabled(any(weight for weight, _ in objective.parts)):
            losses = objective.loss(step)
        outer, parts = self.outer_loss(teacher.lesson())
        phi = step.classifier.explainer_parameters()
        slopes = torch.autograd.grad(outer, phi)
        # Σ φ · slope has the outer loss's gradient in φ and none elsewhere, and the value 0
        linear = sum(((p - p.detach()) * slope).sum() for p, slope in zip(phi, slopes, strict=True))
        total = losses["loss"] + outer.detach() + linear
        self.descend(total, number)
        with torch.no_grad():
            lesson = teacher.lesson()
        self.teach(lesson)
        seen = {name: value.detach() for name, value in parts.items()}
        return {**losses, **seen, "entropy": entropy(lesson.r).mean(), "loss": total.detach()}

    def outer_loss(self, lesson: Lesson) -> tuple[Tensor, dict[str, Tensor]]:
        """Steps 1 and 2 up to the loss, in the graph of φ; and the loss with its parts, by name."""
        asked = lesson
        if self.outer == "smat" and len(lesson.answer) > 1:
            asked = lesson.rows(slice(1, None, 2))
        weights = self._weights()
        slopes = self._slopes(weights, lesson, create_graph=True)
        moved = {n: weights[n] - self.student_lr * slope for n, slope in slopes.items()}  # eq. 14
        ce, kl = self.simulation(weights | moved, asked)
        outer = ce if self.outer == "smat" else ce + self.beta * kl  # eq. 15
        return outer, {"simulatability": outer, "student_ce": ce, "student_kl": kl}

    def simulation(self, weights: Mapping[str, Tensor], lesson: Lesson) -> tuple[Tensor, Tensor]:
        """eq. 7 of the student with these weights: CE(S(x), ỹ) and KL(r ‖ r*), means over texts."""
        named = {f"model.{name}": weight for name, weight in weights.items()}
        logits, learnt = functional_call(Reply(self.student), named, (lesson.inputs,))
        mask = lesson.inputs["attention_mask"]
        ce = -log_probability(logits, lesson.answer, mask).mean()
        return ce, explanation_divergence(lesson.r, learnt, mask).mean()

    def teach(self, lesson: Lesson) -> None:
        """Step 3."""
        weights = self._weights()
        slopes = self._slopes(weights, lesson)
        with torch.no_grad():
            for name, slope in slopes.items():
                weights[name] -= self.student_lr * slope

    def _weights(self) -> dict[str, Tensor]:
        """θ by name: what of the student is trained."""
        return {n: p for n, p in self.student.model.named_parameters() if p.requires_grad}

    def _slopes(
        self, weights: Mapping[str, Tensor], lesson: Lesson, *, create_graph: bool = False
    ) -> dict[str, Tensor]:
        """∇_θ L_SIM by name, where a weight has any part in it."""
        learnt = lesson.rows(slice(0, None, 2)) if self.outer == "smat" else lesson
        ce, kl = self.simulation(weights, learnt)
        slopes = torch.autograd.grad(
            ce + self.beta * kl,
            list(weights.values()),
            create_graph=create_graph,
            allow_unused=True,
        )
        named = zip(weights, slopes, strict=True)
        return {name: slope for name, slope in named if slope is not None}

    def tensors(self) -> dict[str, Tensor]:
        """The optimiser's state, and the student."""
        student = self.student.model.state_dict()
        return super().tensors() | {STUDENT + name: tensor for name, tensor in student.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        own = {n.removeprefix(STUDENT): t for n, t in tensors.items() if n.startswith(STUDENT)}
        self.student.model.load_state_dict(own)
        super().restore({n: t for n, t in tensors.items() if not n.startswith(STUDENT)})


class Teacher:
    """What the teacher says of a batch: answers and queries are read once, r anew for any φ."""

    def __init__(self, step: Step) -> None:
        classifier, self.inputs = step.classifier, step.batch.inputs
        self.explainer = explainer_of(classifier)
        with explaining(classifier, dropout=False), torch.no_grad():
            output = classifier.forward(self.inputs)
            self.answer = chosen_target("predicted", step.batch, output.logits)
            self.read = self.explainer.read(classifier, output, step.mask)

    def lesson(self) -> Lesson:
        """ỹ and, in the graph of φ as it is now, r."""
        r = self.explainer(self.read, self.inputs["attention_mask"]).r
        return Lesson(self.inputs, self.answer, r)


def pretrained_twin(classifier: Classifier, seed: int) -> Classifier:
    """The same model as it was before any training, with an explainer of the same kind."""
    return load_classifier(
        classifier.name,
        num_labels=None if classifier.task == "span" else classifier.num_labels,
        task=classifier.task,
        head=classifier.head,
        specials=classifier.specials,
        layers=classifier.model.config.num_hidden_layers,
        seed=seed,
        quirks=classifier.quirks,
        explainer=classifier.explainer.name,
    ).to(classifier.device)
