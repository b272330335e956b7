"""One text's logit or probability as a function of a tensor inside the library's own model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

TEXT = "the plot is bad and the acting is unfunny ."
BLOCKS = {  # family → the module whose output enters the first layer
    "bert": "bert.embeddings",
    "roberta": "roberta.embeddings",
    "electra": "electra.embeddings_project",
    "distilbert": "distilbert.embeddings",
    "big_bird": "bert.embeddings",
    "gpt2": "transformer.drop",
    "llama": "model.embed_tokens",
}


class Plain(nn.Module):
    """f from the word embeddings x, or with `site="entry"` from what enters the first layer.

    The tensor is put in at the library's modules, so that `Classifier.forward` plays no part.
    """

    def __init__(
        self, classifier, label: int | None = None, of: str = "logit", site: str = "embeddings"
    ) -> None:
        super().__init__()
        self.model, self.of, self.label = classifier.model, of, label
        self.block = classifier.model.get_submodule(BLOCKS[classifier.family])
        if site == "embeddings":
            self.block = classifier.model.get_input_embeddings()
        (encoded,) = classifier.encode([TEXT])
        self.ids = torch.tensor([encoded.input_ids])
        seen: list[Tensor] = []
        hook = self.block.register_forward_hook(lambda module, inputs, output: seen.append(output))
        logits = classifier.model(input_ids=self.ids).logits
        hook.remove()
        self.x = seen[0].detach()
        if label is None:
            self.label = int(logits.argmax())

    def forward(self, x: Tensor) -> Tensor:
        hook = self.block.register_forward_hook(lambda module, inputs, output: x)
        logits = self.model(input_ids=self.ids.expand(len(x), -1)).logits
        hook.remove()
        return (logits.softmax(-1) if self.of == "probability" else logits)[:, self.label]

    def gradient(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(self(x).sum(), x)[0]
